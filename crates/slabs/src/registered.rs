//! Registered engines, in the grammar beside the engines of this crate.
//!
//! An engine is generic over its world, so its code is made where a world is known: in a replay, in the
//! simulated kernel, in the checks. A [`Family`] is the engine in every world, as a type. A [`Registration`]
//! is the same as a value: names, presets and knobs of its policy, and for each user of engines a table of
//! functions that this user made from the type, and finds again by the table's own type.
//!
//! There is no list of registrations here, because this crate has no statics: who parses says which engines
//! there are ([`crate::Preset::parse_among`]).

use crate::engine::Engine;
pub use crate::knob::Table;
use crate::knob::{BadPreset, Knobs, Policy, Setting, assemble, no_preset};
use crate::release::{Release, ZoneReclaimMode};
use core::any::Any;
use core::fmt;
pub use slablab_choices::KNOBS_MAX;
use slablab_choices::{Erased, Text};
use slablab_platform::Platform;

/// An engine, as its type in every world.
pub trait Family: 'static {
    /// Its policies. [`Policy::NAME`] is its name in the grammar.
    type Policy: Policy + fmt::Debug + Send + Sync;
    /// A cache of it in the world `P`.
    type On<P: Platform>: Engine<P, Policy = Self::Policy> + 'static;
    /// What its paths cost; `None`: it runs where nothing has a price (recordings, checks, programs).
    const CYCLES: Option<Cycles> = None;
}

/// What the paths of an engine cost on a modelled CPU, in cycles of instructions alone: cache lines,
/// exchanges of a slab's word, locks and waits are charged where they happen. A third of the instructions
/// that callgrind counts of `bench --workloads pair64` is a fair guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycles {
    /// An allocation that finds an object in the CPU's slot.
    pub alloc: u32,
    /// A free that finds room there.
    pub free: u32,
    /// The begin of a path that the slot does not serve.
    pub slow: u32,
    /// What keeps others of the CPU out of the slot, at the machine's price.
    pub guard: Guard,
}

/// What keeps others of a CPU out of its slot while a path uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Interrupts are off, also while a lock is held: SLAB, SLQB.
    Interrupts,
    /// A local exchange of two words; slow paths and locks turn interrupts off: SLUB before sheaves.
    Exchange,
    /// Preemption is off; locks turn interrupts off: sheaves.
    Preemption,
}

/// The policies of a registered engine, without their type: their release, and the value of each knob.
#[derive(Clone, Copy)]
pub struct Registered {
    registration: &'static Registration,
    release: Release,
    values: Erased,
}

/// A registered engine, without its type.
pub struct Registration {
    engine: &'static str,
    assemble: for<'a> fn(&'static Self, Text<'a>, &mut dyn Knobs) -> Assembled<'a>,
    preset: fn(&'static Self, usize) -> Option<Registered>,
    setting: fn(&Registered, usize) -> Option<Setting>,
    zone_reclaim: fn(&Registered) -> ZoneReclaimMode,
    /// The only release, in the place of those of its presets.
    release: Option<Release>,
    /// What is set of single caches: `,CACHE/attribute=value` for each, as the grammar has it.
    attributes: &'static str,
    tables: &'static [&'static Table],
}

type Assembled<'a> = Result<Registered, BadPreset<'a>>;

impl Registration {
    /// The engine with these policies, and the tables of its functions.
    pub const fn new<T: Policy>(tables: &'static [&'static Table]) -> Registration {
        assert!(T::KNOBS.len() <= KNOBS_MAX, "more knobs than a registered engine may have");
        assert!(!T::PRESETS.is_empty(), "an engine has at least one preset");
        Registration {
            engine: T::NAME,
            assemble: |own, text, around| {
                assemble::<T>(text, around).map(|policy| Registered::of(own, &policy))
            },
            preset: |own, index| T::PRESETS.get(index).map(|policy| Registered::of(own, policy)),
            setting: |of, index| Some(T::KNOBS.get(index)?.setting(&of.policy::<T>())),
            zone_reclaim: |of| of.policy::<T>().zone_reclaim(),
            release: None,
            attributes: "",
            tables,
        }
    }

    /// As [`Registration::new`], for one of several engines of the same type: with a name of its own, and
    /// the only release that it is of. Its policies are the type's newest preset. `attributes` are those of
    /// single caches, which its tables know: it is printed behind the release, `,CACHE/attribute=value` for
    /// each.
    pub const fn named<T: Policy>(
        engine: &'static str,
        release: Release,
        attributes: &'static str,
        tables: &'static [&'static Table],
    ) -> Registration {
        let of_type = Registration::new::<T>(tables);
        Registration {
            engine,
            assemble: |own, mut text, around| {
                let given = text.release.take();
                match given.filter(|given| Release::parse(given) != own.release) {
                    Some(given) => Err(no_preset(given)),
                    None => assemble::<T>(text, around).map(|policy| Registered::of(own, &policy)),
                }
            },
            preset: |own, index| T::PRESETS.get(..1)?.get(index).map(|_| Registered::of(own, newest::<T>())),
            release: Some(release),
            attributes,
            ..of_type
        }
    }

    /// The engine's name in the grammar.
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// What is set of single caches, as the grammar has it.
    pub fn attributes(&self) -> &'static str {
        self.attributes
    }

    /// Its presets, oldest first.
    pub fn presets(&'static self) -> impl Iterator<Item = Registered> {
        (0..).map_while(move |index| (self.preset)(self, index))
    }

    /// The table of this type.
    pub fn table<T: Any>(&self) -> Option<&'static T> {
        self.tables.iter().find_map(|table| (*table as &dyn Any).downcast_ref())
    }

    /// The engine that a text of its name describes.
    pub(crate) fn assemble<'a>(&'static self, text: Text<'a>, around: &mut dyn Knobs) -> Assembled<'a> {
        (self.assemble)(self, text, around)
    }
}

impl Registered {
    fn of<T: Policy>(registration: &'static Registration, policy: &T) -> Registered {
        let release = registration.release.unwrap_or(policy.release());
        Registered { registration, release, values: Erased::of(policy, T::KNOBS) }
    }

    /// The policies with their type, which the engine was registered with.
    ///
    /// # Panics
    /// If `T` has no preset of this release: it is another engine's.
    pub fn policy<T: Policy>(&self) -> T {
        let preset = match self.registration.release {
            Some(_) => Some(newest::<T>()),
            None => T::PRESETS.iter().find(|preset| preset.release() == self.release),
        };
        let preset = preset.expect("these are the policies of the engine that was registered");
        self.values.policy(*preset, T::KNOBS).with_tables(self.registration.tables)
    }

    /// What the engine was registered as.
    pub fn registration(&self) -> &'static Registration {
        self.registration
    }

    /// The engine's table of this type.
    ///
    /// # Panics
    /// If it was registered without.
    pub fn table<T: Any>(&self) -> &'static T {
        let found = self.registration.table();
        found.unwrap_or_else(|| {
            panic!("{} was registered without {}", self.engine(), core::any::type_name::<T>())
        })
    }

    pub(crate) fn engine(&self) -> &'static str {
        self.registration.engine
    }

    pub(crate) fn release(&self) -> Release {
        self.release
    }

    pub(crate) fn zone_reclaim(&self) -> ZoneReclaimMode {
        (self.registration.zone_reclaim)(self)
    }

    pub(crate) fn setting(&self, index: usize) -> Option<Setting> {
        (self.registration.setting)(self, index)
    }

    /// Sets the knob of this index to a value that it allows.
    pub(crate) fn set(&mut self, index: usize, value: u64) {
        assert!(self.setting(index).is_some(), "{} has no knob {index}", self.engine());
        self.values.set(index, value);
    }

    /// The preset of its release, as it is without a knob.
    pub(crate) fn usual(&self) -> Registered {
        let found = self.registration.presets().find(|preset| preset.release == self.release);
        found.expect("a policy's release is a preset's")
    }
}

/// The last preset: [`Registration::new`] made sure that there is one.
fn newest<T: Policy>() -> &'static T {
    &T::PRESETS[T::PRESETS.len() - 1]
}

impl PartialEq for Registered {
    fn eq(&self, other: &Registered) -> bool {
        let own = |of: &Registered| (of.engine(), of.registration.attributes, of.release);
        own(self) == own(other) && self.values == other.values
    }
}

impl Eq for Registered {}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.engine()).field("release", &self.release).field("values", &self.values).finish()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("engine", &self.engine).finish_non_exhaustive()
    }
}
