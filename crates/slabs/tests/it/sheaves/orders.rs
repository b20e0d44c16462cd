//! The order of slabs on a node's list, and the objects that a bulk free returns together.

use super::*;
use slablab_slabs::slab::Slab;

/// Runs `f` over a cache without sheaves on a machine. The policies are those of `preset`.
fn over(preset: &str, machine: MachineSpec, size: u32, f: impl FnOnce(&Slub<Model>, &Backing<'_, Model>)) {
    let mut machine = Machine::new(machine).expect("the spec is right");
    machine.enter(|| {
        let pages = Pages::<Model>::new(PagesPolicy::for_release(6, 1, 0));
        let cache = Slub::<Model>::create(CacheId(1), &CacheSpec::of_size(size), &policy(preset));
        f(&cache, &Backing::pages(&pages));
    });
}

fn alloc(cache: &Slub<Model>, backing: &Backing<'_, Model>, cpu: u16) -> Ptr {
    Model::run_on(CpuId(cpu));
    cache.alloc(backing, Gfp::KERNEL, None).expect("memory is left")
}

/// The first frame of an object's slab.
fn slab_of(object: Ptr) -> Pfn {
    Slab::<Model>::of(object).expect("an object is in a slab").0.pfn()
}

/// A shrink sorts a node's list, fullest slab first (docs/theory/slub.md 4.6). The order of slabs with equal
/// numbers of free objects is turned round. Programs sort the list in one pass, with the same result.
#[test]
fn a_shrink_sorts_the_fullest_slab_first() {
    for preset in ["slub@6.1,max_order=0,cpu_partial=0", "slub@6.1,max_order=0,cpu_partial=0,elastic=4"] {
        // Four objects per slab. All freed objects are of slabs that are on no CPU's list.
        over(preset, one_node(), 1024, |cache, backing| {
            let objects: Vec<Ptr> = (0..21).map(|_| alloc(cache, backing, 0)).collect();
            let slabs: Vec<Pfn> = objects.chunks(4).map(|slab| slab_of(slab[0])).collect();
            // The numbers of objects freed in slabs 0 to 4, which are listed in this order. Slab 5 is the CPU
            // slab, which the shrink lists first.
            for (slab, freed) in [3, 1, 2, 3, 4].into_iter().enumerate() {
                for object in &objects[4 * slab..4 * slab + freed] {
                    cache.free(backing, *object).expect("the cache's object");
                }
            }
            cache.shrink(backing);
            let served: Vec<Pfn> = (0..9).map(|_| slab_of(alloc(cache, backing, 0))).collect();
            let order = [1, 2, 2, 3, 3, 3, 0, 0, 0];
            assert_eq!(served, order.map(|slab: usize| slabs[slab]), "{preset}");
            // Slab 4 was empty: the next objects are the CPU slab's, then those of a new slab.
            let made = cache.counted(Event::AllocSlab);
            (0..4).for_each(|_| _ = alloc(cache, backing, 0));
            assert_eq!(cache.counted(Event::AllocSlab), made + 1, "{preset}");
        });
    }
}

/// After a refill from a new slab, the slab goes to the head of its node's list (docs/theory/sheaves.md 5).
/// The CPU is on a node without memory and searches only that node's list, so slabs that it allocated collect
/// on the other node's list.
#[test]
fn the_rest_of_a_new_slab_is_listed_first() {
    let mib = |bytes| NodeSpec { bytes: bytes * MIB };
    let machine = MachineSpec {
        cpu_node: vec![0, 1],
        nodes: vec![mib(0), mib(256)],
        ..MachineSpec::uniform(2, 2, 256 * MIB)
    };
    let preset = "slub@7.1,sheaves=off,max_order=0,memoryless=as-asked,defrag_ratio=0";
    over(preset, machine, 1024, |cache, backing| {
        let made: Vec<Pfn> = (0..3).map(|_| slab_of(alloc(cache, backing, 0))).collect();
        assert_eq!(cache.counted(Event::AllocSlab), 3, "each came from a slab of its own");
        let served: Vec<Pfn> = (0..9).map(|_| slab_of(alloc(cache, backing, 1))).collect();
        assert_eq!(served, [2, 2, 2, 1, 1, 1, 0, 0, 0].map(|slab: usize| made[slab]));
    });
}

/// A bulk free returns objects of one slab together if fewer than three objects of other slabs are between
/// them (docs/theory/slub.md 4.2).
#[test]
fn bulk_free_looks_ahead_past_two_objects() {
    let chains = |between: usize| {
        let mut chains = 0;
        // Two objects per slab. 2.6 takes a lock for each chain.
        over("slub@2.6.32,max_order=0", one_node(), 2048, |cache, backing| {
            let objects: Vec<Ptr> = (0..13).map(|_| alloc(cache, backing, 0)).collect();
            let others = (1..=between).map(|slab| objects[2 * slab]);
            let bulk: Vec<Ptr> = [objects[0]].into_iter().chain(others).chain([objects[1]]).collect();
            let before = cache.counted(Event::LockSlab);
            cache.free_bulk(backing, &bulk).expect("the cache's objects");
            chains = cache.counted(Event::LockSlab) - before;
        });
        chains
    };
    assert_eq!((chains(0), chains(2), chains(3)), (1, 3, 5));
}

/// An object that a bulk free passed by takes the place of one that it found behind it: so of two that were
/// passed by the farther one comes next (docs/theory/slub.md 4.2).
#[test]
fn an_object_passed_by_takes_the_place_of_one_that_was_found() {
    over("slub@7.1,max_order=0", one_node(), 2048, |cache, backing| {
        let objects: Vec<Ptr> = (0..6).map(|_| alloc(cache, backing, 0)).collect();
        let bulk = [objects[0], objects[2], objects[4], objects[1]];
        let slabs = [0, 2, 4].map(|object| slab_of(objects[object]));
        cache.free_bulk(backing, &bulk).expect("the cache's objects");
        let served: Vec<Pfn> = (0..4).map(|_| slab_of(alloc(cache, backing, 0))).collect();
        assert_eq!(served, [0, 0, 1, 2].map(|slab: usize| slabs[slab]));
    });
}

/// The last slab of a refill goes back to the list's end if it has objects left (docs/theory/sheaves.md 3.1).
#[test]
fn what_a_refill_leaves_is_listed_last() {
    let next = |preset: &str| {
        let mut next = 0;
        over(preset, one_node(), 1024, |cache, backing| {
            let objects: Vec<Ptr> = (0..12).map(|_| alloc(cache, backing, 0)).collect();
            let slabs: Vec<Pfn> = objects.chunks(4).map(|slab| slab_of(slab[0])).collect();
            for object in objects.chunks(4).flat_map(|slab| &slab[..3]) {
                cache.free(backing, *object).expect("the cache's object");
            }
            // Three objects of slab 0, one of slab 1.
            assert_eq!(cache.alloc_bulk(backing, Gfp::KERNEL, &mut [None; 4]), 4);
            let served = slab_of(alloc(cache, backing, 0));
            next = slabs.iter().position(|slab| *slab == served).expect("no slab was made");
        });
        next
    };
    assert_eq!(next("slub@7.1,max_order=0"), 2);
    assert_eq!(next("slub@7.1,max_order=0,leftover=head"), 1);
    assert_eq!(next("slub@7.1,max_order=0,refill_reads=locked"), 1);
}
