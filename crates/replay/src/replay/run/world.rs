//! The worlds that a replay runs in, and what they hear of it.

use super::Job;
use crate::replay::Variant;
use crate::replay::outcome::Outcome;
use crate::replay::own::Own;
use slablab_model::{Addr, Model};
use slablab_platform::Platform;
use slablab_report::error::Result;
use slablab_slabs::registered::Registered;
use slablab_slabs::wrap::Hardened;
use slablab_slabs::{CacheSpec, Engine};

/// A world that a replay can run in: the model, or one around it. The machine itself is driven through
/// [`Model`].
pub trait World: Platform<Ptr = Addr> + Sized {
    /// One run with nothing around the engine. `None`: this world runs wrapped engines alone, so that the
    /// code of a run is not made once more for each engine.
    fn bare<E: Engine<Self>>(
        _job: &Job<'_>,
        _variant: &Variant,
        _policy: &dyn Fn(&Own<'_>) -> E::Policy,
        _tick: &dyn Fn(u64),
    ) -> Option<Result<Outcome>> {
        None
    }
    /// Called for what the world itself cannot see.
    #[inline(always)]
    fn noted(_note: Note<'_>) {}
    /// The run of a registered engine in this world.
    fn registered(table: &Replayed) -> RunOne;
}

/// Wrappers cost time, and the model's runs are many.
impl World for Model {
    fn bare<E: Engine<Model>>(
        job: &Job<'_>,
        variant: &Variant,
        policy: &dyn Fn(&Own<'_>) -> E::Policy,
        tick: &dyn Fn(u64),
    ) -> Option<Result<Outcome>> {
        Some(job.run::<Model, E>(variant, policy, tick))
    }
    fn registered(table: &Replayed) -> RunOne {
        table.plain
    }
}

impl World for Hardened<Model> {
    fn registered(table: &Replayed) -> RunOne {
        table.hardened
    }
}

/// One run of an engine that this function knows.
pub type RunOne = fn(&Job<'_>, &Variant, &dyn Fn(u64)) -> Result<Outcome>;

/// A registered engine in a replay: a table of its [`Registration`](slablab_slabs::registered::Registration).
#[derive(Debug)]
pub struct Replayed {
    pub(crate) plain: RunOne,
    pub(crate) hardened: RunOne,
    pub(crate) watched: RunOne,
    pub(crate) watched_hardened: RunOne,
    /// Whether objects of several caches lie in one page.
    pub(crate) shares_pages: bool,
    /// The order of a cache's slabs; `None` without a layout.
    pub(crate) order: fn(&CacheSpec, &Registered) -> Option<u8>,
}

/// What happens in a replay.
#[derive(Clone, Copy, Debug)]
pub enum Note<'a> {
    /// A row of the trace begins.
    Row {
        /// Its number, from 0.
        row: u64,
        /// Its time.
        time_ns: u64,
        /// Its CPU.
        cpu: u16,
    },
    /// An engine handed an object out.
    Allocated(Addr),
    /// An object comes back to its engine.
    Freed(Addr),
    /// A slab from before the trace, of which the objects with indexes in `free` are free.
    Seeded {
        /// The address of object 0.
        base: Addr,
        /// The address that the kernel has the slab at; 0 if that is not known.
        address: u64,
        /// Objects of the slab.
        objects: u32,
        /// Free objects.
        free: &'a [u16],
    },
}
