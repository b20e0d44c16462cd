//! Plain values.

use crate::{Census, is_wrapped, under_every_engine};
use slablab_objects::{Builder, CreateError, InUse, Letters, ObjectCache};
use std::cell::RefCell;

#[test]
fn values_stay_whole_and_are_dropped_with_their_objects() {
    under_every_engine(|engine| {
        let census = Census::default();
        let cache = Builder::new("plain").engine(engine).create().expect("a cache");
        let mut all: Vec<_> = (0..1000).map(|n| cache.insert(census.born(n)).expect("memory")).collect();
        assert_eq!(census.living(), 1000, "{engine}");
        all.iter_mut().for_each(|value| value.number += 0);
        assert!(all.iter().zip(0..).all(|(value, n)| value.number == n && value.is_whole()), "{engine}");
        all.retain(|value| value.number % 3 == 0);
        assert_eq!(census.living(), all.len(), "{engine}");
        let taken = all.pop().expect("one").into_inner();
        assert_eq!((taken.number, census.living()), (999, all.len() + 1), "{engine}");
        drop((taken, all));
        assert_eq!(census.living(), 0, "{engine}");
        assert_eq!(cache.destroy(), Ok(()), "{engine}");
    });
}

fn aligned<T: Copy + PartialEq + std::fmt::Debug>(engine: &'static str, value: T, align: usize) {
    let cache = Builder::new("aligned").engine(engine).align(align).create().expect("a cache");
    let want = align.max(align_of::<T>());
    // Several slabs: they may start at different colours.
    let count = ((96 << 10) / size_of::<T>().max(want)).clamp(50, 1000);
    let all: Vec<_> = (0..count).map(|_| cache.insert(value).expect("memory")).collect();
    for object in &all {
        assert_eq!(object.as_ptr().addr() % want, 0, "{engine}: {} bytes to {want}", size_of::<T>());
        assert_eq!(**object, value);
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(align(128))]
struct Wide(u8);

#[test]
fn objects_are_aligned_as_their_type_and_their_cache_ask() {
    under_every_engine(|engine| {
        for align in [1, 8, 32, 64, 256, 4096, 65536] {
            aligned(engine, (), align);
            aligned(engine, 1u8, align);
            aligned(engine, [7u64; 13], align);
            aligned(engine, [5u32; 96], align);
            aligned(engine, Wide(9), align);
            aligned(engine, [3u8; 9000], align);
        }
        let cache =
            Builder::new("lines").engine(engine).hwcache_align().create::<[u8; 40]>().expect("a cache");
        assert!(cache.stats().spaced_bytes == 64 || is_wrapped(engine), "{engine}");
    });
}

#[test]
fn invalid_options_are_errors() {
    let odd = Builder::new("odd").align(24).create::<u64>();
    assert_eq!(odd.err(), Some(CreateError::Align(24)));
    let huge = Builder::new("huge").create::<[u8; 5 << 20]>();
    assert_eq!(huge.err(), Some(CreateError::Size(5 << 20)));
    let unknown = Builder::new("unknown").engine("slurb").create::<u64>();
    assert!(matches!(unknown, Err(CreateError::Engine(said)) if said.contains("slub")));
    let slob = Builder::new("slob").engine("slob").create::<u64>();
    assert!(matches!(slob, Err(CreateError::Engine(_))));
}

#[test]
fn a_cache_may_be_debugged_alone() {
    let letters = Letters::parse("ZP").expect("letters");
    for engine in ["slub@7.1", "slqb", "slab"] {
        let cache =
            Builder::new("alone").engine(engine).debug(letters).create::<[u64; 8]>().expect("a cache");
        let plain = Builder::new("plain").engine(engine).create::<[u64; 8]>().expect("a cache");
        assert!(cache.stats().spaced_bytes > plain.stats().spaced_bytes, "{engine}");
        assert!(cache.stats().engine.ends_with(",debug=ZP"), "{}", cache.stats().engine);
    }
}

#[test]
fn forgotten_objects_are_counted_and_stay() {
    under_every_engine(|engine| {
        let cache = Builder::new("forgotten").engine(engine).create().expect("a cache");
        for n in 0..5u64 {
            std::mem::forget(cache.insert(n).expect("memory"));
        }
        drop(cache.insert(5).expect("memory"));
        assert_eq!(cache.destroy(), Err(InUse { objects: 5 }), "{engine}");
    });
}

#[test]
fn a_value_whose_drop_panics_frees_its_object() {
    struct Panics(bool);
    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(!self.0, "on purpose");
        }
    }
    let cache = ObjectCache::new("panics").expect("a cache");
    let object = cache.insert(Panics(true)).expect("memory");
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(object)));
    assert!(ended.is_err());
    assert_eq!(cache.destroy(), Ok(()));
}

#[test]
fn values_may_borrow() {
    let log = RefCell::new(Vec::new());
    struct Says<'a>(&'a RefCell<Vec<u32>>, u32);
    impl Drop for Says<'_> {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1);
        }
    }
    let cache = ObjectCache::new("borrows").expect("a cache");
    let first = cache.insert(Says(&log, 1)).expect("memory");
    drop(cache.insert(Says(&log, 2)).expect("memory"));
    drop(first);
    assert_eq!(*log.borrow(), [2, 1]);
}

#[test]
fn statistics_count_objects_slabs_and_bytes() {
    under_every_engine(|engine| {
        let cache = Builder::new("counted").engine(engine).create::<[u64; 8]>().expect("a cache");
        assert_eq!(cache.name(), "counted");
        let empty = cache.stats();
        assert_eq!((empty.slabs, empty.objects, empty.active, empty.bytes), (0, 0, 0, 0), "{engine}");
        assert_eq!((empty.object_bytes, empty.limit), (64, None), "{engine}");
        assert!(empty.spaced_bytes == 64 || is_wrapped(engine), "{engine}");
        let all: Vec<_> = (0..500).map(|n| cache.insert([n; 8]).expect("memory")).collect();
        let full = cache.stats();
        assert_eq!(full.active, 500, "{engine}");
        assert!(
            full.objects >= 500 && full.objects <= full.slabs * full.objects_per_slab,
            "{engine}: {full:?}"
        );
        assert!(full.bytes <= full.slabs * full.slab_bytes && full.bytes >= 500 * 64, "{engine}: {full:?}");
        assert!(full.engine.starts_with(&engine[..4]), "{} for {engine}", full.engine);
        assert_eq!(full.idle_bytes(), full.bytes - 500 * 64, "{engine}");
        drop(all);
        assert!(cache.shrink() > 0, "{engine}");
        let after = cache.stats();
        assert_eq!((after.slabs, after.active), (0, 0), "{engine}: {after:?}");
    });
}
