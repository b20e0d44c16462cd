//! Allocators of other projects, through the crates that bind them. `unsafe`: asks them about addresses.
//!
//! | name | crate | allocator |
//! |---|---|---|
//! | mimalloc | mimalloc 0.1.52 | mimalloc 3.3.2 |
//! | jemalloc | tikv-jemallocator 0.7.0 | jemalloc 5.3.1 |
//! | snmalloc | snmalloc-rs 0.7.6 | snmalloc of the same repository |
//! | rpmalloc | rpmalloc 0.2.2 | rpmalloc 1.4; the binding is not maintained, and there is none of 2.0 |

use crate::block::AnyBlock;
use crate::engines;
use crate::harness::Harness;
use crate::subject::{Role, Subject};
use std::alloc::GlobalAlloc;
use std::ptr;
use std::sync::Once;

macro_rules! peer {
    ($type:ident, $name:literal, $heap:ty = $value:expr, $free:path, $evidence:literal, $serves:expr) => {
        #[doc = concat!("The allocator ", $name, ".")]
        #[derive(Debug)]
        pub(crate) struct $type;

        impl Subject for $type {
            const NAME: &'static str = $name;
            const ROLE: Role = Role::Peer;
            const EVIDENCE: &'static str = $evidence;

            #[inline(always)]
            fn heap() -> &'static impl GlobalAlloc {
                static HEAP: $heap = $value;
                &HEAP
            }

            #[inline(always)]
            fn free_null() {
                // SAFETY: null may be freed.
                unsafe { $free(ptr::null_mut()) }
            }

            fn serves(at: *const u8) -> bool {
                $serves(at)
            }
        }
    };
}

peer!(
    Mimalloc,
    "mimalloc",
    mimalloc::MiMalloc = mimalloc::MiMalloc,
    libmimalloc_sys::mi_free,
    "mi_is_in_heap_region",
    |at: *const u8| {
        // SAFETY: any address may be passed.
        unsafe { libmimalloc_sys::mi_is_in_heap_region(at.cast()) }
    }
);
peer!(
    Jemalloc,
    "jemalloc",
    tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc,
    tikv_jemalloc_sys::free,
    "mallctl arenas.lookup",
    |at: *const u8| {
        let (mut arena, mut bytes, mut at) = (0u32, size_of::<u32>(), at);
        // SAFETY: the call reads one pointer and writes one arena number, both with the given sizes. Any
        // address may be passed.
        let answer = unsafe {
            tikv_jemalloc_sys::mallctl(
                c"arenas.lookup".as_ptr(),
                ptr::from_mut(&mut arena).cast(),
                &mut bytes,
                ptr::from_mut(&mut at).cast(),
                size_of::<*const u8>(),
            )
        };
        answer == 0
    }
);
peer!(
    Snmalloc,
    "snmalloc",
    snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc,
    snmalloc_sys::sn_free,
    "its page map has a size for the address",
    |at: *const u8| {
        /// The page map does not exist before the first allocation.
        static STARTED: Once = Once::new();
        STARTED.call_once(|| drop(AnyBlock::<Snmalloc>::new(64)));
        snmalloc_rs::SnMalloc.usable_size(at).is_some_and(|bytes| bytes > 0)
    }
);
peer!(
    Rpmalloc,
    "rpmalloc",
    rpmalloc::RpMalloc = rpmalloc::RpMalloc,
    rpmalloc_sys::rpfree,
    "no other allocator knows the address; mallinfo2 does not count it",
    |at: *const u8| !engines::known(at) && !Harness::serves(at) && !known(Rpmalloc::NAME, at)
);

/// Whether a peer other than `name` owns the address.
pub(crate) fn known(name: &str, at: *const u8) -> bool {
    let knows = |other: &str, serves: fn(*const u8) -> bool| name != other && serves(at);
    knows(Mimalloc::NAME, Mimalloc::serves)
        || knows(Jemalloc::NAME, Jemalloc::serves)
        || knows(Snmalloc::NAME, Snmalloc::serves)
}
