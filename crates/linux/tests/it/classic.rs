//! SLAB and SLOB of a real tree that has them: made, booted, used.

use super::allocators::{built, policy};
use slablab_engines::until_ended;
use slablab_linux::build::{Allocator, Built};
use slablab_linux::engine::Linux;
use slablab_model::{Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, Frames, Gfp, NodeId};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Place};

/// Four CPUs on two nodes. CPU 0 allocates, CPU 3 on the other node frees: then everything is free.
fn used(allocator: Allocator, built: &Built) {
    let mut machine = Machine::new(MachineSpec::uniform(4, 2, 1 << 30)).expect("a machine");
    machine.enter(|| {
        let pages = Pages::<Model>::new(PagesPolicy::for_release(6, 1, 0));
        let backing = Backing::pages(&pages);
        let cache = Linux::<Model>::create(CacheId(3), &CacheSpec::of_size(256), &policy(built));
        (0..4).for_each(|cpu| cache.cpu_up(&backing, CpuId(cpu)));
        seeded(allocator, &cache, &backing);
        Model::run_on(CpuId(0));
        let taken_before = cache.counted(Event::AllocSlab);
        let objects: Vec<_> =
            (0..500).map(|_| cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left")).collect();
        let taken = cache.counted(Event::AllocSlab) - taken_before;
        assert!(
            taken >= 500 / 16 && cache.usage().live_objects() == 500,
            "{allocator:?}: {:?}",
            cache.usage()
        );
        let on_node =
            cache.alloc(&backing, Gfp::KERNEL | Gfp::THISNODE, Some(NodeId(1))).expect("memory is left");
        assert_eq!(Pages::<Model>::block_of(on_node).expect("a slab").1.node, NodeId(1));
        cache.free(&backing, on_node).expect("an object of the cache");
        Model::run_on(CpuId(3));
        for object in objects {
            cache.free(&backing, object).expect("an object of the cache");
        }
        assert_eq!(cache.usage().live_objects(), 0);
        // Of each CPU that is up two visits of the reaper in four seconds.
        let mut visits = 0;
        for second in 1..=4 {
            Model::advance_to(second * 1_000_000_000);
            while let Some((cpu, work)) = Model::next_due() {
                cache.work(&backing, cpu, work);
                visits += 1;
            }
        }
        let expected = if allocator == Allocator::Slab { 4..=12 } else { 0..=0 };
        assert!(expected.contains(&visits), "{allocator:?}: {visits}");
        cache.cpu_down(&backing, CpuId(3));
        cache.cpu_up(&backing, CpuId(3));
        cache.shrink(&backing);
        let (left, freed) = (cache.usage().frames, cache.counted(Event::FreeSlab));
        assert!(left == 0 && freed >= taken, "{allocator:?}: {left} frames, {taken} taken, {freed} freed");
        cache.destroy(&backing).expect("nothing is held");
    });
}

/// Two slabs of an earlier life, whose objects are freed then.
fn seeded(allocator: Allocator, cache: &Linux<Model>, backing: &Backing<'_, Model>) {
    let base = cache.seed(backing, NodeId(1), Place::Node, &[1, 2, 5]).expect("a slab");
    let second = cache.seed(backing, NodeId(1), Place::Cpu(CpuId(3)), &[0]).expect("a slab");
    cache.seeded(backing);
    let objects = u64::from(cache.geometry().objects);
    assert_eq!(cache.usage().live_objects(), 2 * objects - 4, "{allocator:?}: {:?}", cache.usage());
    for (base, free) in [(base, [1, 2, 5].as_slice()), (second, &[0])] {
        let (pfn, offset) = Model::locate(base);
        for index in (0..objects).filter(|index| !free.contains(index)) {
            let size = u64::from(cache.geometry().size);
            let object = Model::address(pfn, u64::from(offset) + index * size);
            cache.free(backing, object).expect("an object of the cache");
        }
    }
    assert_eq!(cache.usage().live_objects(), 0);
}

#[test]
fn slab_and_slob_of_a_real_tree() {
    for allocator in [Allocator::Slab, Allocator::Slob] {
        let Some(built) = built(allocator) else { continue };
        until_ended(|| used(allocator, &built)).unwrap_or_else(|ended| panic!("{allocator:?}: {}", ended.0));
    }
}
