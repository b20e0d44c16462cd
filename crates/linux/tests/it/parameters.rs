//! Boot parameters of a real tree, and what is written to files of single caches.

use super::allocators::{built, policy_with};
use slablab_engines::{Ended, until_ended};
use slablab_linux::build::{Allocator, Built};
use slablab_linux::engine::Linux;
use slablab_model::{Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Gfp};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine};

/// The order of slabs of 1024 bytes, and the slabs without objects that stay when all of many are freed.
fn seen(built: &Built, knobs: &str, attributes: &'static str) -> Result<(u8, u64), String> {
    let mut machine = Machine::new(MachineSpec::uniform(1, 1, 1 << 30)).expect("a machine");
    let run = || {
        let pages = Pages::<Model>::new(PagesPolicy::for_release(6, 1, 0));
        let backing = Backing::pages(&pages);
        let policy = policy_with(built, knobs, attributes);
        let mut cache = Linux::<Model>::create(CacheId(0), &CacheSpec::of_size(1024), &policy);
        cache.set_name("made");
        cache.cpu_up(&backing, CpuId(0));
        let objects: Vec<_> =
            (0..1000).map(|_| cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left")).collect();
        for object in objects {
            cache.free(&backing, object).expect("an object of the cache");
        }
        (cache.geometry().order, cache.usage().partial)
    };
    machine.enter(|| until_ended(run)).map_err(|Ended(what)| what)
}

#[test]
fn parameters_are_those_of_the_tree() {
    #[track_caller]
    fn check(knobs: &str, attributes: &'static str, expected: Result<(u8, u64), &str>) {
        let Some(built) = built(Allocator::Slub) else { return };
        // Objects in sheaves keep more slabs.
        let has_sheaves = built.version[0] >= 7;
        let known = |(order, kept): (u8, u64)| (order, if has_sheaves { 0 } else { kept });
        let found = seen(&built, knobs, attributes);
        let found = found.as_ref().map(|found| known(*found)).map_err(String::as_str);
        assert_eq!(found, expected.map(known), "{knobs} {attributes}");
    }
    // As many partial slabs stay as half the bits of the size, at least five.
    check("", "", Ok((1, 5)));
    check(",slab_max_order=0", "", Ok((0, 5)));
    check(",slab_min_order=3", "", Ok((3, 5)));
    check(",slab_max_order=3,slab_min_objects=32", "", Ok((3, 5)));
    check("", ",made/min_partial=0", Ok((1, 0)));
    check("", ",made/min_partial=0,m*/min_partial=7", Ok((1, 7)));
    check("", ",other/min_partial=0", Ok((1, 5)));
    let refused = |what| Err(what);
    check("", ",made/none=1", refused("made/none=1: the tree's caches have no file `none`"));
    check("", ",made/order=1", refused("made/order=1: the tree's file `order` cannot be written"));
    let word = "made/min_partial=few: the tree refuses `few` for `min_partial` (error -22)";
    check("", ",made/min_partial=few", refused(word));
}
