//! Engines that a program registers as contestants: each is the engine of a malloc heap.
//!
//! A contestant is a type, and its calls are compiled for it. So the compiler makes the code of every
//! workload for an engine where the program names the engine's type ([`Own::of`]), and the rig finds a table
//! of functions here. The lists of everything that can run are here, too: slablab's own allocators, peers,
//! and registered engines.

use crate::contestants::{Known, identify};
use crate::engines::{Extra, Further, Place};
use crate::memory::{self, Footprint, Held};
use crate::patterns::{self, Contestant, Workload};
use crate::subject::{Role, Subject, Subjects, Visitor};
use slablab_malloc::world::Native;
use slablab_slabs::knob::Policy;
use slablab_slabs::registered::Registered;
use slablab_slabs::{Engine, Family, Front, Preset};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, OnceLock, PoisonError};

/// An engine that malloc's heap can be built over, with the place of that heap. [`benched!`] implements it.
///
/// [`benched!`]: crate::benched
pub trait Benched: Family<On<Native>: Front<Native, Common: Sync> + Sync> {
    /// The place of the engine's heap in the process.
    fn place() -> &'static Place<Self::On<Native>>;
}

/// Implements [`own::Benched`] for an engine.
///
/// [`own::Benched`]: crate::own::Benched
#[macro_export]
macro_rules! benched {
    ($family:ty) => {
        impl $crate::own::Benched for $family {
            #[inline(always)]
            fn place() -> &'static $crate::own::PlaceOf<Self> {
                static PLACE: $crate::own::PlaceOf<$family> = $crate::own::PlaceOf::<$family>::new();
                &PLACE
            }
        }
    };
}

/// The place of an engine's heap.
pub type PlaceOf<F> = Place<<F as Family>::On<Native>>;

/// What the rig calls of a registered engine.
#[derive(Clone, Copy)]
pub struct Own {
    /// The engine's name.
    pub(crate) name: &'static str,
    /// The engine as contestant of each workload of `patterns::of_subjects`, in their order.
    pub(crate) contestants: fn() -> Vec<Contestant>,
    pub(crate) identify: fn() -> Result<(), String>,
    pub(crate) footprint: fn(u64, u64) -> Result<Footprint, String>,
}

impl Own {
    /// The functions of `F`.
    pub fn of<F: Benched>() -> Own {
        Own {
            name: F::Policy::NAME,
            contestants: || {
                let all = patterns::of_subjects::<Only<F>>();
                all.into_iter().flat_map(|workload| workload.contestants).collect()
            },
            identify: identify::<Further<OwnHeap<F>>>,
            footprint: memory::footprint::<Further<OwnHeap<F>>>,
        }
    }
}

struct Only<F>(PhantomData<F>);

impl<F: Benched> Subjects for Only<F> {
    fn each(visitor: &mut impl Visitor) {
        visitor.visit::<Further<OwnHeap<F>>>();
    }
}

struct OwnHeap<F>(PhantomData<F>);

impl<F: Benched> Extra for OwnHeap<F> {
    const NAME: &'static str = F::Policy::NAME;
    type Engine = F::On<Native>;

    fn policy() -> <F::On<Native> as Engine<Native>>::Policy {
        match chosen(Self::NAME) {
            Some(policies) => policies.policy(),
            None => *F::Policy::PRESETS.last().expect("an engine has at least one preset"),
        }
    }

    #[inline(always)]
    fn place() -> &'static Place<F::On<Native>> {
        F::place()
    }
}

static OWN: OnceLock<Vec<Own>> = OnceLock::new();
static CHOSEN: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

/// Why an engine is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is another contestant of this name.
    Name(&'static str),
    /// Engines were registered, or the contestants were listed, before.
    Late,
    /// The choice of an engine that this program does not bench.
    NotOwn(String),
    /// The second choice of an engine: it has one heap in the process.
    Twice(String),
}

/// Registers the engines that this program benches beside those of slablab.
///
/// # Errors
/// A name that is given twice or is that of another contestant; it is too late.
pub fn register(own: Vec<Own>) -> Result<(), Refused> {
    let names = names_of_known();
    for (at, one) in own.iter().enumerate() {
        if names.contains(&one.name) || own[..at].iter().any(|other| other.name == one.name) {
            return Err(Refused::Name(one.name));
        }
    }
    OWN.set(own).map_err(|_| Refused::Late)
}

/// The registered engines.
pub(crate) fn registered() -> &'static [Own] {
    OWN.get_or_init(Vec::new)
}

/// The name of the twin: the first of our allocators a second time.
const TWIN: &str = "twin";

/// Every workload, in the order of tables, with the registered engines among its contestants.
pub fn workloads() -> Vec<Workload> {
    let mut all = patterns::of_subjects::<Known>();
    for own in registered() {
        for (workload, contestant) in all.iter_mut().zip((own.contestants)()) {
            add(&mut workload.contestants, |one| one.role, contestant);
        }
    }
    for workload in &mut all {
        let contestants = &mut workload.contestants;
        let ours = contestants.iter().find(|one| one.role == Role::Ours).expect("ours is a subject");
        // The twin runs the same machine code under another name.
        let twin = Contestant { name: TWIN, role: Role::Twin, ..ours.clone() };
        contestants.push(twin);
    }
    all.extend(patterns::of_none());
    all
}

/// The allocators whose memory is measured: all contestants except floors.
pub(crate) fn holders() -> Vec<Held> {
    struct Names(Vec<Held>);
    impl Visitor for Names {
        fn visit<A: Subject>(&mut self) {
            if A::ROLE != Role::Floor {
                self.0.push(Held { name: A::NAME, role: A::ROLE });
            }
        }
    }
    let mut names = Names(Vec::new());
    Known::each(&mut names);
    for own in registered() {
        add(&mut names.0, |one| one.role, Held { name: own.name, role: Role::Ours });
    }
    names.0
}

/// Puts `own` behind the last of our allocators.
fn add<T>(all: &mut Vec<T>, role: impl Fn(&T) -> Role, own: T) {
    let ours = all.iter().rposition(|one| role(one) == Role::Ours).expect("ours is a subject");
    all.insert(ours + 1, own);
}

/// The names of all contestants but the registered engines.
fn names_of_known() -> Vec<&'static str> {
    let mut all = patterns::of_subjects::<Known>();
    all.extend(patterns::of_none());
    all.iter().flat_map(|one| &one.contestants).map(|one| one.name).chain([TWIN]).collect()
}

/// Chooses the policies of a registered engine's heap, before the first run. Without a choice they are those
/// of its newest preset.
///
/// # Errors
/// The engine is not registered here, or was chosen before.
pub fn choose(preset: &Preset) -> Result<(), Refused> {
    let is_own = |own: &&Registered| registered().iter().any(|one| one.name == own.registration().engine());
    let Preset::Registered(own) = preset else { return Err(Refused::NotOwn(preset.to_string())) };
    if !is_own(&own) {
        return Err(Refused::NotOwn(preset.to_string()));
    }
    let mut all = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    if all.iter().any(|other| other.registration().engine() == own.registration().engine()) {
        return Err(Refused::Twice(preset.to_string()));
    }
    all.push(*own);
    Ok(())
}

fn chosen(engine: &str) -> Option<Registered> {
    let all = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|one| one.registration().engine() == engine).copied()
}

/// The chosen policies, as notes of the answer.
pub(crate) fn notes() -> Vec<String> {
    let all = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    let note = |own: &Registered| format!("{} is {}", own.registration().engine(), Preset::Registered(*own));
    all.iter().map(note).collect()
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Name(name) => write!(f, "an allocator is called {name} already: expected another name"),
            Refused::Late => f.write_str("engines are registered once, before the first run"),
            Refused::NotOwn(name) => {
                let own: Vec<&str> = registered().iter().map(|one| one.name).collect();
                write!(f, "{name}: expected an engine that this program adds to the bench")?;
                match &own[..] {
                    [] => f.write_str(", which adds none")?,
                    own => write!(f, ": {}", own.join(", "))?,
                }
                f.write_str("; SLABLAB_ENGINE chooses the engine of slablab's own heap")
            }
            Refused::Twice(name) => {
                write!(f, "{name}: an engine has one heap in the bench: expected one choice")
            }
        }
    }
}
