//! Values that stay constructed while their objects are free.

use crate::{Census, Counted, is_wrapped, under_every_engine};
use slablab_objects::{Builder, Constructed, ObjectCache};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

fn cache(engine: &'static str, census: &Census) -> ObjectCache<Counted, Constructed<Counted>> {
    let (census, next) = (census.clone(), AtomicU64::new(0));
    let make = move || census.born(next.fetch_add(1, SeqCst));
    Builder::new("kept").engine(engine).create_with(make).expect("a cache")
}

#[test]
fn a_constructed_value_is_as_its_last_user_left_it() {
    under_every_engine(|engine| {
        let census = Census::default();
        let cache = cache(engine, &census);
        for n in 0..100 {
            let mut object = cache.alloc().expect("memory");
            // A quarantine delays the reuse of an object.
            assert!(object.is_whole() && (object.number == n || is_wrapped(engine)), "{engine}");
            object.set(n + 1);
        }
        assert!(census.living() == 1 || is_wrapped(engine), "{engine}: one object is reused every time");
        drop(cache);
        assert_eq!(census.living(), 0, "{engine}");
    });
}

#[test]
fn values_are_constructed_once_and_dropped_with_their_slab() {
    under_every_engine(|engine| {
        let census = Census::default();
        let cache = cache(engine, &census);
        let all: Vec<_> = (0..1000).map(|_| cache.alloc().expect("memory")).collect();
        let numbers: HashSet<u64> = all.iter().map(|object| object.number).collect();
        assert_eq!((numbers.len(), census.living()), (1000, 1000), "{engine}");
        // Every tenth object stays, so that the slabs stay.
        let stay: Vec<_> = all.into_iter().filter(|object| object.number % 10 == 0).collect();
        assert!(census.living() >= 900, "{engine}: {} of 1000 values left", census.living());
        drop(stay);
        assert!(cache.shrink() > 0, "{engine}");
        assert_eq!((census.living(), cache.stats().slabs), (0, 0), "{engine}");
        assert!(cache.alloc().expect("memory").is_whole(), "{engine}");
        assert_eq!(census.living(), 1, "{engine}");
        drop(cache);
        assert_eq!(census.living(), 0, "{engine}");
    });
}

#[test]
fn destroy_drops_the_values_that_were_not_forgotten() {
    under_every_engine(|engine| {
        let census = Census::default();
        let cache = cache(engine, &census);
        let all: Vec<_> = (0..300).map(|_| cache.alloc().expect("memory")).collect();
        for object in all {
            if object.number == 7 {
                std::mem::forget(object);
            }
        }
        drop(cache);
        let most = 300 / 2;
        assert!((1..most).contains(&census.living()), "{engine}: {} values left", census.living());
    });
}

#[test]
fn a_constructor_that_panics_leaves_nothing() {
    under_every_engine(|engine| {
        static FAILS: AtomicBool = AtomicBool::new(true);
        let made = || {
            assert!(!FAILS.load(SeqCst), "on purpose");
            String::from("made")
        };
        let cache = Builder::new("panics").engine(engine).create_with(made).expect("a cache");
        FAILS.store(true, SeqCst);
        let caught = |f: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
        assert!(caught(&|| drop(cache.alloc())), "{engine}");
        assert!(caught(&|| drop(cache.prefill(40))), "{engine}");
        FAILS.store(false, SeqCst);
        assert_eq!(*cache.alloc().expect("memory"), "made", "{engine}");
        assert_eq!(cache.destroy(), Ok(()), "{engine}");
    });
}

/// A value's `Drop` may take the program's locks: it runs in calls of the value's own cache only, not in any
/// call that a thread makes while it holds such a lock.
#[test]
fn values_are_dropped_in_calls_of_their_cache() {
    static LOCKED: Mutex<u32> = Mutex::new(0);
    struct Locks;
    impl Drop for Locks {
        fn drop(&mut self) {
            *LOCKED.lock().expect("no thread panicked") += 1;
        }
    }
    let cache = ObjectCache::with("locks", || Locks).expect("a cache");
    let all: Vec<_> = (0..5000).map(|_| cache.alloc().expect("memory")).collect();
    drop(all);
    let held = LOCKED.lock().expect("no thread panicked");
    // Slow paths of another cache run the deferred work of this one.
    let other = ObjectCache::new("other").expect("a cache");
    for _ in 0..50 {
        drop((0..500).map(|n| other.insert([n; 100]).expect("memory")).collect::<Vec<_>>());
        other.shrink();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(held);
    drop(cache);
    assert_eq!(*LOCKED.lock().expect("no thread panicked"), 5000);
}
