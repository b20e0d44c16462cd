//! The return of pages, misuse, and seeded caches.

use super::*;
use slablab_platform::Frames;

#[test]
fn pages_of_rcu_caches_wait_for_readers() {
    Machine::new(two_nodes()).expect("the spec is right").enter(|| {
        let flags = CacheFlags::TYPESAFE_BY_RCU;
        let spec = CacheSpec { flags, ..CacheSpec::of_size(64) };
        let mut heap = Heap::new("slqb@2009-09,reap_ms=0", &spec);
        assert_eq!((heap.cache.geometry().size, heap.cache.geometry().link_offset), (72, 64));
        heap.step(Alloc(0, 56));
        let object = heap.held[0];
        heap.step(Free(0, 56));
        heap.step(Shrink);
        assert_eq!(heap.cache.usage().slabs, 0);
        assert!(
            slablab_pages::Pages::<Model>::block_of(object).is_some(),
            "the page is gone before its readers"
        );
        Model::advance_to(60_000_000_000);
        heap.due();
        assert!(slablab_pages::Pages::<Model>::block_of(object).is_none(), "the page is still there");
        heap.end();
    });
}

#[test]
fn misuse_is_reported() {
    Machine::new(two_nodes()).expect("the spec is right").enter(|| {
        let mut heap = Heap::new(SEPTEMBER, &CacheSpec::of_size(64));
        let other = Slqb::<Model>::create(CacheId(4), &CacheSpec::of_size(704), &policy(SEPTEMBER));
        let object = heap.alloc(0, None);
        let (pfn, offset) = Model::locate(object);
        let inside = Model::address(pfn, offset as u64 + 8);
        let outside = Model::address(Pfn(pfn.0 + 500), 0);
        // CPUs on both sides of the node boundary; queues below and above `hiwater`: the fast and the slow
        // paths.
        for cpu in [0, 2] {
            Model::run_on(CpuId(cpu));
            assert_eq!(other.free(&heap.backing(), object), Err(Misuse::WrongCache(CacheId(3))));
            assert_eq!(heap.cache.free(&heap.backing(), outside), Err(Misuse::NotInSlab));
        }
        assert_eq!(heap.cache.free(&heap.backing(), inside), Err(Misuse::NotAnObject), "on a slow path");
        assert_eq!(heap.cache.usage().live_objects(), 1, "the refused free changed nothing");
        heap.end();
    });
}

#[test]
#[should_panic(expected = "in a queue: not in a slab (freed twice?)")]
fn a_double_free_aborts_when_the_queue_is_flushed() {
    Machine::new(two_nodes()).expect("the spec is right").enter(|| {
        let mut heap = Heap::new(SEPTEMBER, &CacheSpec::of_size(64));
        let object = heap.alloc(0, None);
        heap.free(0, Some(object));
        heap.free(0, Some(object));
        heap.step(Shrink);
    });
}

#[test]
fn seeded_pages_keep_their_free_objects() {
    for preset in [JANUARY, SEPTEMBER] {
        Machine::new(two_nodes()).expect("the spec is right").enter(|| {
            let mut heap = Heap::new(preset, &CacheSpec::of_size(1024));
            let seed =
                |node, place, free: &[u16]| heap.cache.seed(&heap.backing(), NodeId(node), place, free);
            let queued = seed(0, Place::Cpu(CpuId(0)), &[2, 0]).expect("memory is left");
            let partial = seed(1, Place::CpuPartial(CpuId(3)), &[1]).expect("memory is left");
            let full = seed(1, Place::Node, &[]).expect("memory is left");
            let empty = seed(0, Place::CpuPartial(CpuId(1)), &[3, 2, 1, 0]).expect("memory is left");
            let far = seed(1, Place::Cpu(CpuId(0)), &[0]).expect("memory is left");
            let usage = heap.cache.usage();
            assert_eq!((usage.slabs, usage.partial, usage.free_in_partial), (5, 2, 2), "{preset}: {usage:?}");
            assert_eq!((usage.parked, usage.live_objects()), (6, 20 - 8), "{preset}: {usage:?}");
            let at = |base, index: u64| {
                let (pfn, offset) = Model::locate(base);
                Model::address(pfn, offset as u64 + index * 1024)
            };
            let handed_out =
                [heap.alloc(0, None), heap.alloc(0, None), heap.alloc(3, None), heap.alloc(1, None)];
            assert_eq!(handed_out, [at(queued, 2), at(queued, 0), at(partial, 1), at(empty, 3)], "{preset}");
            assert_eq!(heap.alloc(0, Some(1)), at(far, 0), "{preset}: another node's page is its list's");
            let live =
                [(queued, &[1, 3][..]), (partial, &[0, 2, 3]), (full, &[0, 1, 2, 3]), (far, &[1, 2, 3])];
            heap.held.extend(live.into_iter().flat_map(|(base, all)| all.iter().map(move |i| at(base, *i))));
            heap.end();
        });
    }
}

#[test]
fn seeded_partial_slabs_are_distributed_over_cpus() {
    for preset in [JANUARY, SEPTEMBER] {
        Machine::new(two_nodes()).expect("the spec is right").enter(|| {
            let mut heap = Heap::new(preset, &CacheSpec::of_size(1024));
            for _ in 0..10 {
                let base =
                    heap.cache.seed(&heap.backing(), NodeId(1), Place::Node, &[0]).expect("memory is left");
                let (pfn, offset) = Model::locate(base);
                heap.held.extend((1..4).map(|index| Model::address(pfn, offset as u64 + index * 1024)));
            }
            heap.step(Alloc(2, 5));
            heap.step(Alloc(3, 5));
            assert_eq!(heap.cache.counted(Event::SlqbAllocSlabFill), 10, "{preset}");
            heap.end();
        });
    }
}
