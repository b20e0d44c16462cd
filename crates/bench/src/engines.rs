//! Heaps of slablab: the process's heap, and one heap of each other engine, on the same page allocator.
//!
//! A call to one of the other heaps follows one pointer more than a call to the process's heap: about one
//! cycle.

use crate::block::{AnyBlock, null};
use crate::subject::{Role, Subject};
use slablab_malloc::shared::{NUMBERS, is_own};
use slablab_malloc::world::Native;
use slablab_malloc::{ExtraHeap, Slablab, api, slub_here};
use slablab_platform::NO_CACHE;
use slablab_slabs::{Engine, Front, Preset, engines};
use std::alloc::GlobalAlloc;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// The heap number at addresses of blocks that are larger than any class. They belong to no cache, but to one
/// of our heaps.
const LARGE: u32 = NO_CACHE / NUMBERS;

/// The number of the heap that owns the block at an address; `None` outside slablab's memory.
fn number(at: *const u8) -> Option<u32> {
    Native::location(at).map(|location| location.cache / NUMBERS)
}

/// Whether an address is in a live block of one of our heaps.
pub(crate) fn known(at: *const u8) -> bool {
    number(at).is_some()
}

/// The process's heap. `SLABLAB_ENGINE` chooses its engine.
#[derive(Debug)]
pub(crate) struct Ours;

impl Subject for Ours {
    const NAME: &'static str = "slablab";
    const ROLE: Role = Role::Ours;
    const EVIDENCE: &'static str = "the cache number at the address is the process's heap's";

    #[inline(always)]
    fn heap() -> &'static impl GlobalAlloc {
        static HEAP: Slablab = Slablab;
        &HEAP
    }

    #[inline(always)]
    fn free_null() {
        api::free(null());
    }

    fn serves(at: *const u8) -> bool {
        number(at).is_some_and(|number| is_own(number) || number == LARGE)
    }
}

/// The place of a further heap in the process: a static, one for each engine.
pub struct Place<E: Front<Native> + 'static> {
    heap: OnceLock<ExtraHeap<E>>,
    /// The number of the heap's blocks.
    number: OnceLock<u32>,
}

impl<E: Front<Native>> Place<E> {
    /// A place without a heap: the first call makes it.
    pub const fn new() -> Place<E> {
        Place { heap: OnceLock::new(), number: OnceLock::new() }
    }
}

impl<E: Front<Native>> Default for Place<E> {
    fn default() -> Self {
        Place::new()
    }
}

/// A further heap: its engine, its policies and its place.
pub(crate) trait Extra: 'static {
    const NAME: &'static str;
    type Engine: Front<Native, Common: Sync> + Sync + 'static;
    fn policy() -> <Self::Engine as Engine<Native>>::Policy;
    fn place() -> &'static Place<Self::Engine>;
}

/// The allocator of a further heap.
#[derive(Debug)]
pub(crate) struct Further<X>(PhantomData<X>);

impl<X: Extra> Further<X> {
    #[inline(always)]
    fn opened() -> &'static ExtraHeap<X::Engine> {
        X::place().heap.get_or_init(|| {
            let heap = ExtraHeap::open(&X::policy());
            heap.unwrap_or_else(|| panic!("no memory for a heap of {}", X::NAME))
        })
    }

    /// The heap number of this engine's blocks. It must differ from that of the process's heap.
    fn number() -> u32 {
        *X::place().number.get_or_init(|| {
            let found = number(AnyBlock::<Self>::new(64).at());
            let found = found.expect("a block of slablab's");
            assert!(!is_own(found) && found != LARGE, "{} has a heap of its own", X::NAME);
            found
        })
    }
}

impl<X: Extra> Subject for Further<X> {
    const NAME: &'static str = X::NAME;
    const ROLE: Role = Role::Ours;
    const EVIDENCE: &'static str = "the cache number at the address is this heap's";

    #[inline(always)]
    fn heap() -> &'static impl GlobalAlloc {
        Self::opened()
    }

    #[inline(always)]
    fn free_null() {
        Self::opened().heap().free(null());
    }

    fn serves(at: *const u8) -> bool {
        number(at).is_some_and(|number| number == Self::number() || number == LARGE)
    }
}

macro_rules! extra {
    ($type:ident, $name:literal, $variant:ident, $engine:ty, $here:expr) => {
        #[doc = concat!("A heap of ", $name, ".")]
        #[derive(Debug)]
        pub(crate) struct $type;

        impl Extra for $type {
            const NAME: &'static str = $name;
            type Engine = $engine;

            fn policy() -> <$engine as Engine<Native>>::Policy {
                match Preset::parse($name) {
                    Ok(Preset::$variant(policy)) => $here(policy),
                    _ => unreachable!("{} is in the table of presets", $name),
                }
            }

            #[inline(always)]
            fn place() -> &'static Place<$engine> {
                static PLACE: Place<$engine> = Place::new();
                &PLACE
            }
        }
    };
}

extra!(Slub61, "slub@6.1", Slub, engines::slub::Slub<Native>, |policy| slub_here(policy, false));
extra!(Slqb2009, "slqb@2009-09", Slqb, engines::slqb::Slqb<Native>, std::convert::identity);
extra!(Slab61, "slab@6.1", Slab, engines::slab::SlabEngine<Native>, std::convert::identity);

/// SLUB before sheaves.
pub(crate) type SlubOld = Further<Slub61>;
/// SLQB.
pub(crate) type Slqb = Further<Slqb2009>;
/// SLAB.
pub(crate) type Slab = Further<Slab61>;
