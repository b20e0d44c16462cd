//! Threads that hand objects to each other, that end, and that outlive their cache.

use crate::{Census, under_every_engine};
use slablab_objects::{Builder, Constructed, Object, ObjectCache, Reserve};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier};

#[test]
fn objects_go_from_thread_to_thread() {
    under_every_engine(|engine| {
        let census = Census::default();
        let cache = Builder::new("handed on").engine(engine).create().expect("a cache");
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (sender, receiver) = sync_channel(64);
                let (cache, census) = (&cache, &census);
                scope.spawn(move || {
                    for n in 0..20_000 {
                        let number = thread << 32 | n;
                        sender.send(cache.insert(census.born(number)).expect("memory")).expect("it listens");
                    }
                });
                scope.spawn(move || {
                    for (value, n) in receiver.iter().zip(0..) {
                        assert!(value.is_whole() && value.number == (thread << 32 | n));
                    }
                });
            }
        });
        assert_eq!((census.living(), cache.destroy()), (0, Ok(())), "{engine}");
    });
}

#[test]
fn slots_of_ended_threads_are_reused() {
    under_every_engine(|engine| {
        let census = Census::default();
        let born = census.clone();
        let cache = Builder::new("storm").engine(engine).create_with(move || born.born(3)).expect("a cache");
        let mut most = 0;
        for _ in 0..200 {
            std::thread::scope(|scope| {
                scope.spawn(|| drop((0..50).map(|_| cache.alloc().expect("memory")).collect::<Vec<_>>()));
            });
            most = most.max(cache.stats().slabs);
        }
        assert!(most < 40, "{engine}: {most} slabs for 50 objects at a time");
        drop(cache);
        assert_eq!(census.living(), 0, "{engine}");
    });
}

/// The newest object first, as in one thread: nothing went to slabs, which hand out the lowest object first.
#[test]
fn an_ended_threads_objects_serve_the_next_thread() {
    let cache = Builder::new("handed on").engine("slub@7.1").create::<[u64; 8]>().expect("a cache");
    let (mut newest, mut others) = (0, 0);
    for _ in 0..100 {
        let address = |object: &[u64; 8]| std::ptr::from_ref(object).addr();
        let freed_last = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut some: Vec<_> = (0..10).map(|n| cache.insert([n; 8]).expect("memory")).collect();
                some.sort_by_key(|object| address(object));
                let last = address(some.last().expect("it has ten"));
                some.into_iter().for_each(drop);
                last
            });
            // Joined, so that the thread has ended.
            thread.join().expect("it ends")
        });
        let thread = || address(&cache.insert([1; 8]).expect("memory"));
        match std::thread::scope(|scope| scope.spawn(thread).join()).expect("it ends") == freed_last {
            true => newest += 1,
            false => others += 1,
        }
    }
    // Threads of other tests take slots, too.
    assert!(newest > 0, "{others} threads found another object first");
}

/// The slot of the thread that ended last is not. Not SLQB: it leaves a slot's pages to the next thread.
#[test]
fn slots_of_ended_threads_are_emptied() {
    for engine in ["slub@7.1", "slub@6.1", "slab@6.1"] {
        const THREADS: usize = 40;
        let cache = Builder::new("given up").engine(engine).create::<[u64; 64]>().expect("a cache");
        let all_have = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            let use_some = || {
                let some: Vec<_> = (0..50).map(|n| cache.insert([n; 64]).expect("memory")).collect();
                drop(some);
                all_have.wait();
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(use_some)).collect();
            // Joined, so that the thread has ended: its slot is emptied at its end.
            threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        });
        let (bytes, peak) = (cache.stats().bytes, THREADS as u64 * 50 * 512);
        assert!(bytes < peak / 2, "{engine}: {bytes} of {peak} bytes that were allocated at once");
    }
}

#[test]
fn destroy_empties_the_slots_of_live_threads() {
    under_every_engine(|engine| {
        let census = Census::default();
        let born = census.clone();
        let cache = Builder::new("idle").engine(engine).create_with(move || born.born(3)).expect("a cache");
        let cache = Arc::new(cache);
        let (used, gone) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
        let threads = [0, 1].map(|_| {
            let (cache, used, gone) = (cache.clone(), used.clone(), gone.clone());
            std::thread::spawn(move || {
                drop((0..100).map(|_| cache.alloc().expect("memory")).collect::<Vec<_>>());
                drop(cache);
                used.wait();
                gone.wait();
            })
        });
        used.wait();
        let cache = Arc::into_inner(cache).expect("the threads let go of it");
        assert_eq!(cache.destroy(), Ok(()), "{engine}");
        assert_eq!(census.living(), 0, "{engine}");
        gone.wait();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    });
}

#[test]
fn caches_are_created_and_destroyed_while_threads_use_others() {
    under_every_engine(|engine| {
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                scope.spawn(move || {
                    for n in 0..100 {
                        let cache = Builder::new("brief").engine(engine).create_with(move || vec![thread; 3]);
                        let cache: ObjectCache<_, _> = cache.expect("a cache");
                        let all: Vec<_> = (0..n).map(|_| cache.alloc().expect("memory")).collect();
                        assert!(all.iter().all(|value| **value == [thread; 3]), "{engine}");
                        drop(all);
                        assert_eq!(cache.destroy(), Ok(()), "{engine}");
                    }
                });
            }
        });
    });
}

/// What may go to other threads, and what may be shared: a cell may go and not be shared, and a cache of
/// cells may be shared all the same, because it lends none.
#[test]
fn caches_objects_and_reserves_go_to_threads() {
    fn goes<T: Send>() {}
    fn is_shared<T: Sync>() {}
    type Values = std::cell::Cell<u8>;
    goes::<ObjectCache<Values>>();
    goes::<ObjectCache<Values, Constructed<Values>>>();
    goes::<Object<'static, Values>>();
    goes::<Reserve<'static, Values, Constructed<Values>>>();
    is_shared::<ObjectCache<Values>>();
    is_shared::<ObjectCache<Values, Constructed<Values>>>();
    is_shared::<Object<'static, u8>>();
}
