//! Heaps of slablab: the process's heap, and one heap of each other engine, on the same page allocator.
//!
//! A call to one of the other heaps follows one pointer more than a call to the process's heap: about one
//! cycle.

use crate::block::{AnyBlock, null};
use crate::subject::{Role, Subject};
use slablab_malloc::shared::{NUMBERS, is_own};
use slablab_malloc::world::Native;
use slablab_malloc::{Engines, ExtraHeap, Slablab, api};
use slablab_slabs::Preset;
use std::alloc::GlobalAlloc;
use std::sync::OnceLock;

/// The heap number at addresses of blocks that are larger than any class. They belong to no cache, but to one
/// of our heaps.
const LARGE: u32 = (1 << 24) / NUMBERS;

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

macro_rules! engine {
    ($type:ident, $name:literal, $variant:ident, $engine:ty) => {
        #[doc = concat!("A heap of ", $name, ".")]
        #[derive(Debug)]
        pub(crate) struct $type;

        impl $type {
            fn open() -> ExtraHeap<$engine> {
                let preset = Preset::parse($name).expect("it is in the table of presets");
                match Engines::open(preset) {
                    Some(Engines::$variant(heap)) => heap,
                    _ => panic!("no memory for a heap of {}", $name),
                }
            }

            #[inline(always)]
            fn opened() -> &'static ExtraHeap<$engine> {
                static HEAP: OnceLock<ExtraHeap<$engine>> = OnceLock::new();
                HEAP.get_or_init($type::open)
            }

            /// The heap number of this engine's blocks. It must differ from that of the process's heap.
            fn number() -> u32 {
                static NUMBER: OnceLock<u32> = OnceLock::new();
                *NUMBER.get_or_init(|| {
                    let found = number(AnyBlock::<$type>::new(64).at());
                    let found = found.expect("a block of slablab's");
                    assert!(!is_own(found) && found != LARGE, "{} has a heap of its own", $name);
                    found
                })
            }
        }

        impl Subject for $type {
            const NAME: &'static str = $name;
            const ROLE: Role = Role::Ours;
            const EVIDENCE: &'static str = "the cache number at the address is this heap's";

            #[inline(always)]
            fn heap() -> &'static impl GlobalAlloc {
                $type::opened()
            }

            #[inline(always)]
            fn free_null() {
                $type::opened().heap().free(null());
            }

            fn serves(at: *const u8) -> bool {
                number(at).is_some_and(|number| number == $type::number() || number == LARGE)
            }
        }
    };
}

engine!(SlubOld, "slub@6.1", Slub, slablab_slabs::engines::slub::Slub<Native>);
engine!(Slqb, "slqb@2009-09", Slqb, slablab_slabs::engines::slqb::Slqb<Native>);
engine!(Slab, "slab@6.1", Slab, slablab_slabs::engines::slab::SlabEngine<Native>);
