//! Limits, prefilled objects, shrinkers.

use crate::{Census, under_every_engine};
use slablab_objects::{AllocError, Builder, Limit, Object, ObjectCache, Shrinker, shrink_all};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

#[test]
fn an_insert_at_the_limit_returns_the_value() {
    under_every_engine(|engine| {
        let builder = Builder::new("limited").engine(engine).limit(Limit::Objects(100));
        let cache = builder.create::<u64>().expect("a cache");
        let mut all: Vec<_> = (0..100).map(|n| cache.insert(n).expect("within the limit")).collect();
        let refused = cache.insert(100).expect_err("at the limit");
        assert_eq!((refused.value, refused.why), (100, AllocError::Limit), "{engine}");
        assert_eq!(cache.prefill(1).expect_err("at the limit"), AllocError::Limit, "{engine}");
        all.truncate(90);
        assert_eq!(cache.stats().active, 90, "{engine}");
        assert_eq!(cache.prefill(11).expect_err("beyond the limit"), AllocError::Limit, "{engine}");
        let reserve = cache.prefill(10).expect("within the limit");
        assert!(cache.insert(1).is_err(), "{engine}: prefilled objects count");
        drop(reserve);
        assert!(cache.insert(1).is_ok(), "{engine}");
    });
}

#[test]
fn a_limit_in_bytes_counts_padding() {
    let cache =
        Builder::new("bytes").align(64).limit(Limit::Bytes(1000)).create::<[u8; 40]>().expect("a cache");
    let all: Vec<_> = std::iter::repeat_with(|| cache.insert([1; 40])).map_while(Result::ok).collect();
    assert_eq!((all.len(), cache.stats().limit), (1000 / 64, Some(15)));
}

#[test]
fn threads_share_a_limit() {
    let cache = Builder::new("shared limit").limit(Limit::Objects(50)).create::<u64>().expect("a cache");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..2000 {
                    let held: Vec<_> = (0..30).filter_map(|n| cache.insert(n + round).ok()).collect();
                    assert!(held.len() <= 30 && cache.stats().active <= 50);
                }
            });
        }
    });
    assert_eq!(cache.stats().active, 0);
}

#[test]
fn prefilled_objects_cannot_fail() {
    under_every_engine(|engine| {
        let census = Census::default();
        let cache = Builder::new("ahead").engine(engine).create().expect("a cache");
        let mut reserve = cache.prefill(1000).expect("memory");
        assert_eq!(reserve.left(), 1000);
        let all: Vec<_> =
            (0..700).map(|n| reserve.insert(census.born(n)).ok().expect("taken before")).collect();
        assert!(all.iter().all(|value| value.is_whole()), "{engine}");
        assert_eq!((reserve.left(), census.living()), (300, 700), "{engine}");
        drop(reserve);
        drop(all);
        assert_eq!(cache.stats().found, 0, "{engine}");
        assert_eq!((census.living(), cache.destroy()), (0, Ok(())), "{engine}");
    });
}

#[test]
fn prefill_runs_the_constructor() {
    under_every_engine(|engine| {
        let census = Census::default();
        let born = census.clone();
        let cache = Builder::new("made").engine(engine).create_with(move || born.born(1)).expect("a cache");
        let mut reserve = cache.prefill(100).expect("memory");
        assert_eq!(census.living(), 100, "{engine}");
        let all: Vec<_> = std::iter::from_fn(|| reserve.alloc()).collect();
        assert_eq!((all.len(), census.living()), (100, 100), "{engine}");
        drop((all, reserve));
        drop(cache);
        assert_eq!(census.living(), 0, "{engine}");
    });
}

type Spares = Mutex<Vec<Object<'static, u64>>>;

/// A cache that keeps spare objects must be a static: its shrinker may be called at any time.
static SPARED: LazyLock<ObjectCache<u64>> =
    LazyLock::new(|| Builder::new("spared").limit(Limit::Objects(20)).create().expect("a cache"));
static SPARES: Spares = Mutex::new(Vec::new());

#[test]
fn shrinkers_run_at_the_limit_and_in_shrink_all() {
    let asked = Arc::new(AtomicU64::new(0));
    let counts = asked.clone();
    let shrinker: Shrinker = SPARED.shrinker(move |wanted| {
        counts.fetch_add(1, SeqCst);
        let mut spares = SPARES.lock().expect("no thread panicked");
        let left = spares.len().saturating_sub(wanted as usize);
        spares.drain(left..).count() as u64
    });
    let fill = || {
        let mut spares = SPARES.lock().expect("no thread panicked");
        while spares.len() < 20 {
            spares.push(SPARED.insert(7).expect("within the limit"));
        }
    };
    fill();
    let own = SPARED.insert(8).expect("a spare went");
    assert_eq!((asked.load(SeqCst), SPARES.lock().expect("no thread panicked").len()), (1, 19));
    drop(own);
    shrink_all();
    assert_eq!(SPARES.lock().expect("no thread panicked").len(), 0);
    let before = asked.load(SeqCst);
    fill();
    drop(shrinker);
    assert!(SPARED.insert(8).is_err(), "the shrinker is unregistered");
    shrink_all();
    assert_eq!((asked.load(SeqCst), SPARES.lock().expect("no thread panicked").len()), (before, 20));
}

#[test]
fn shrinking_all_gives_memory_back() {
    let cache = ObjectCache::new("much").expect("a cache");
    drop((0..20_000).map(|n| cache.insert([n; 128]).expect("memory")).collect::<Vec<_>>());
    // Threads of other tests shrink every cache now and then, and hold objects of this one meanwhile.
    let mut slabs = u64::MAX;
    for _ in 0..1000 {
        shrink_all();
        slabs = cache.stats().slabs;
        if slabs == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("{slabs} slabs stay");
}

/// Other tests of this process call every shrinker too. So the functions here act only in calls of the test's
/// own threads, or are correct in any call.
#[test]
fn unregistering_a_shrinker_waits_for_a_call_in_another_thread() {
    let (entered, may_end, ended) = <(Arc<AtomicBool>, Arc<AtomicBool>, Arc<AtomicU64>)>::default();
    let inside = (entered.clone(), may_end.clone(), ended.clone());
    let shrinker = Shrinker::register(move |_| {
        inside.0.store(true, SeqCst);
        while !inside.1.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        inside.2.fetch_add(1, SeqCst);
        0
    });
    let asks = std::thread::spawn(shrink_all);
    while !entered.load(SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let drops = std::thread::spawn(move || {
        drop(shrinker);
        ended.load(SeqCst)
    });
    std::thread::sleep(Duration::from_millis(50));
    may_end.store(true, SeqCst);
    let ended = drops.join().expect("no panic");
    assert!(ended > 0, "the drop returned while a call ran");
    asks.join().expect("no panic");
}

#[test]
fn a_shrinker_may_unregister_itself_or_panic() {
    let main = std::thread::current().id();
    let own = Arc::new(Mutex::new(None::<Shrinker>));
    let inside = own.clone();
    let calls = Arc::new(AtomicU64::new(0));
    let counts = calls.clone();
    *own.lock().expect("no thread panics") = Some(Shrinker::register(move |_| {
        if std::thread::current().id() == main {
            counts.fetch_add(1, SeqCst);
            let itself = inside.lock().expect("no thread panics").take();
            drop(itself);
        }
        0
    }));
    shrink_all();
    shrink_all();
    assert_eq!(calls.load(SeqCst), 1);
    assert_eq!(Arc::strong_count(&own), 1, "what the function captured was dropped");

    let panics = Shrinker::register(move |_| {
        assert_ne!(std::thread::current().id(), main, "on purpose");
        0
    });
    assert!(std::panic::catch_unwind(shrink_all).is_err());
    drop(panics);
    shrink_all();
}
