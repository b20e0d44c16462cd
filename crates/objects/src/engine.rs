//! One cache of one engine, wrapped or not.

use crate::spec::{Spec, WORD, state_offset};
use crate::{CreateError, Letters};
use slablab_malloc::world::Native;
use slablab_malloc::wrapped::{self, Encoded, Wrapped};
use slablab_malloc::{Over, report, sheaf_capacity, slub_here};
use slablab_native::Object;
use slablab_platform::{Memory, Platform};
use slablab_slabs::engines::slab::SlabEngine;
use slablab_slabs::engines::slqb::Slqb;
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Choice;
use slablab_slabs::slab::NewObjects;
use slablab_slabs::{CacheFlags, CacheId, CacheSpec, Engine, Preset};

/// One cache of one engine.
pub(crate) enum AnyEngine {
    Slub(Slub<Native>),
    Slqb(Slqb<Native>),
    Slab(SlabEngine<Native>),
    /// A wrapped engine. In a box of its own, so that the other variants are no larger and no slower.
    Wrapped(Box<WrappedEngine<Native>>),
    /// A wrapped engine with encoded links.
    Encoded(Box<WrappedEngine<Encoded>>),
}

/// One cache of one engine with debugging or hardening around it.
pub(crate) enum WrappedEngine<W: Platform> {
    Slub(Wrapped<Slub<W>, W>),
    Slqb(Wrapped<Slqb<W>, W>),
    Slab(Wrapped<SlabEngine<W>, W>),
}

/// Evaluates an expression with the engine's cache.
macro_rules! with {
    ($of:expr, $cache:ident => $body:expr) => {
        match $of {
            AnyEngine::Slub($cache) => $body,
            AnyEngine::Slqb($cache) => $body,
            AnyEngine::Slab($cache) => $body,
            AnyEngine::Wrapped(wrapped) => with!(wrapped wrapped, $cache => $body),
            AnyEngine::Encoded(wrapped) => with!(wrapped wrapped, $cache => $body),
        }
    };
    (wrapped $of:expr, $cache:ident => $body:expr) => {
        match &**$of {
            WrappedEngine::Slub($cache) => $body,
            WrappedEngine::Slqb($cache) => $body,
            WrappedEngine::Slab($cache) => $body,
        }
    };
}
pub(crate) use with;

/// The engine and wrappers of a new cache: those that `engine` names, else those of the process.
///
/// # Errors
/// There is no such engine, or it cannot have object caches.
pub(crate) fn choice(spec: &Spec<'_>, own: Choice) -> Result<Choice, CreateError> {
    let mut choice = match spec.engine {
        Some(text) => Choice::parse(text).map_err(|bad| CreateError::Engine(bad.to_string()))?,
        None => own,
    };
    let letters = &mut choice.wrap.letters;
    *letters = Letters::from_bits(letters.bits() | spec.debug.bits());
    if matches!(choice.preset, Preset::Slob(_)) {
        return Err(CreateError::Engine("SLOB does not know which cache an object belongs to".to_owned()));
    }
    Ok(choice)
}

impl AnyEngine {
    pub(crate) fn create(number: CacheId, spec: &Spec<'_>, choice: &Choice) -> AnyEngine {
        let wraps = choice.wrap.is_on_anywhere();
        let mut asked = CacheSpec::of_size(match (spec.mark, wraps) {
            // The red zone begins behind the last byte; an object has room for the link while it is
            // prefilled.
            (_, true) => spec.size.max(WORD),
            // A mark is in the second word.
            (Some(_), false) => spec.size.next_multiple_of(WORD).max(2 * WORD),
            (None, false) => spec.size.next_multiple_of(WORD),
        } as u32);
        asked.align = spec.align.max(WORD) as u32;
        asked.flags = CacheFlags::NO_MERGE.with(CacheFlags::HWCACHE_ALIGN, spec.hwcache_align);
        let mut zeroed = None;
        if spec.kept {
            // Behind what is kept: the word of state, then the link.
            asked.object_size = state_offset(spec.size) as u32 + 2 * WORD as u32;
            asked.flags |= CacheFlags::CONSTRUCTOR | CacheFlags::LINK_INSIDE;
            asked.flags = asked.flags.with(CacheFlags::TYPESAFE_BY_RCU, spec.end.is_some());
            zeroed = Some(state_offset(spec.size) as u32);
        }
        let mut choice = *choice;
        if let Preset::Slub(policy) = &mut choice.preset {
            *policy = slub_here(*policy, choice.wrap.encoded);
            asked.sheaf_capacity = sheaf_capacity(asked.object_size);
        }
        if wraps {
            return match choice.wrap.encoded {
                true => AnyEngine::Encoded(WrappedEngine::create(number, &asked, &choice, zeroed)),
                false => AnyEngine::Wrapped(WrappedEngine::create(number, &asked, &choice, zeroed)),
            };
        }
        let new = NewObjects { mark: spec.mark, zeroed, ..NewObjects::default() };
        match choice.preset {
            Preset::Slub(policy) => AnyEngine::Slub(made(number, &asked, &policy, new)),
            Preset::Slqb(policy) => AnyEngine::Slqb(made(number, &asked, &policy, new)),
            Preset::Slab(policy) => AnyEngine::Slab(made(number, &asked, &policy, new)),
            Preset::Slob(_) | Preset::Registered(_) => unreachable!("refused before"),
        }
    }

    /// Whether the engine's slabs keep their free list in the racing word.
    pub(crate) fn races(&self) -> bool {
        match self {
            AnyEngine::Slub(_) => true,
            AnyEngine::Wrapped(wrapped) => matches!(**wrapped, WrappedEngine::Slub(_)),
            AnyEngine::Encoded(wrapped) => matches!(**wrapped, WrappedEngine::Slub(_)),
            AnyEngine::Slqb(_) | AnyEngine::Slab(_) => false,
        }
    }

    /// The function that reads links.
    pub(crate) fn link(&self) -> fn(Object, u32) -> Option<Object> {
        match self {
            AnyEngine::Encoded(_) => Encoded::link,
            _ => Native::link,
        }
    }

    /// Whether the engine is wrapped.
    pub(crate) fn is_wrapped(&self) -> bool {
        matches!(self, AnyEngine::Wrapped(_) | AnyEngine::Encoded(_))
    }
}

impl<W: Over> WrappedEngine<W> {
    fn create(number: CacheId, asked: &CacheSpec, choice: &Choice, zeroed: Option<u32>) -> Box<Self> {
        let new = NewObjects { zeroed, ..NewObjects::default() };
        Box::new(match choice.preset {
            Preset::Slub(policy) => {
                WrappedEngine::Slub(made(number, asked, &wrapped::around(policy, choice), new))
            }
            Preset::Slqb(policy) => {
                WrappedEngine::Slqb(made(number, asked, &wrapped::around(policy, choice), new))
            }
            Preset::Slab(policy) => {
                WrappedEngine::Slab(made(number, asked, &wrapped::around(policy, choice), new))
            }
            Preset::Slob(_) | Preset::Registered(_) => unreachable!("refused before"),
        })
    }
}

fn made<W: Over, E: Engine<W>>(
    number: CacheId,
    asked: &CacheSpec,
    policy: &E::Policy,
    new: NewObjects<W>,
) -> E {
    let mut cache = E::create(number, asked, policy);
    cache.set_new_objects(new);
    cache.tell(report::print);
    cache
}
