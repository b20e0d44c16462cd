//! SLAB of 2.4: no arrays on one CPU, slabs that stay until page reclaim's clock comes (docs/theory/slab.md
//! 10).

use super::*;
use slablab_slabs::clock::Clock;
use slablab_slabs::{Backing, CacheFlags};

const LINUS: &str = "slab@2.4";

fn one_cpu() -> MachineSpec {
    MachineSpec::uniform(1, 1, 256 * MIB)
}

#[test]
fn one_cpu_has_no_array() {
    // 30 objects of 128 bytes in a slab. Each allocation takes one object from a slab.
    check(&Case {
        name: "allocations",
        machine: one_cpu(),
        presets: &[LINUS],
        size: 128,
        steps: &[Alloc(0, 31)],
        expected: &[
            Slabs(2),
            Parked(0),
            FreeInSlabs(29),
            Counted(Event::AllocFastpath, 0),
            Counted(Event::SlabNodeAlloc, 31),
        ],
    });
    // Two CPUs have arrays: of 252 objects at 128 bytes, so 126 are moved at once; none above a page.
    let limits = [(100, 252), (256, 252), (257, 124), (1024, 124), (1025, 60), (4096, 60), (8192, 0)];
    for (size, limit) in limits {
        for (cpus, limit) in [(2, limit), (1, 0)] {
            let spec = MachineSpec::uniform(cpus, 1, 256 * MIB);
            Machine::new(spec).expect("the spec is right").enter(|| {
                let cache =
                    SlabEngine::<Model>::create(CacheId(1), &CacheSpec::of_size(size), &policy(LINUS));
                let found = cache.tunables();
                assert_eq!((found.limit, found.shared), (limit, 0), "{size} bytes, {cpus} CPUs");
                assert_eq!(found.batchcount, limit / 2, "{size} bytes, {cpus} CPUs");
            });
        }
    }
}

/// A free returns no slab, however many are empty; a shrink returns all.
#[test]
fn frees_keep_empty_slabs() {
    let case = |name, steps, expected| Case {
        name,
        machine: one_cpu(),
        presets: &[LINUS],
        size: 128,
        steps,
        expected,
    };
    check(&case(
        "kept",
        &[Alloc(0, 3000), Free(0, 3000), Wait(100_000)],
        &[Slabs(100), FreeInSlabs(3000), Counted(Event::FreeSlab, 0)],
    ));
    check(&case(
        "shrunk",
        &[Alloc(0, 3000), Free(0, 3000), Shrink],
        &[Slabs(0), Counted(Event::FreeSlab, 100)],
    ));
}

/// A slab that was full goes to the head of the partial list, where it stays at further frees; in 2.6 each
/// free moves a slab to the tail.
#[test]
fn partial_slabs_stay_where_they_are() {
    // Slabs of objects 0 to 29 and 30 to 59.
    let case = |name, presets, steps| Case {
        name,
        machine: one_cpu(),
        presets,
        size: 128,
        steps,
        expected: &[Slabs(2)],
    };
    let stays = &["slab@2.4"];
    let to_head = &[Alloc(0, 60), FreeNth(0, 30), FreeNth(0, 0), SameSlab(0, 0), SameSlab(0, 30)];
    check(&case("a full slab goes to the head", stays, to_head));
    let to_tail = &[Alloc(0, 60), FreeNth(0, 30), FreeNth(0, 0), SameSlab(0, 30), SameSlab(0, 0)];
    check(&case("a full slab goes to the tail", &["slab@2.4,requeue=tail"], to_tail));
    let again =
        &[Alloc(0, 60), FreeNth(0, 30), FreeNth(0, 0), FreeNth(0, 31), SameSlab(0, 0), SameSlab(0, 30)];
    check(&case("a partial slab stays", stays, again));
}

/// Caches with this size, with a constructor or without, and this many empty slabs.
type Caches = &'static [(u32, bool, u32)];

/// Turns of the clock, and the pages that each one returns.
#[track_caller]
fn check_turns(caches: Caches, turns: &[u64]) {
    Machine::new(one_cpu()).expect("the spec is right").enter(|| {
        let pages = Pages::<Model>::new(PagesPolicy::for_release(2, 4, 9));
        let backing = Backing::pages(&pages);
        let create = |(id, (size, constructor, _)): (usize, &(u32, bool, u32))| {
            let flags = CacheFlags::NONE.with(CacheFlags::CONSTRUCTOR, *constructor);
            let spec = CacheSpec { flags, ..CacheSpec::of_size(*size) };
            SlabEngine::<Model>::create(CacheId(id as u32 + 1), &spec, &policy(LINUS))
        };
        let engines: Vec<_> = caches.iter().enumerate().map(create).collect();
        let grow = |engine: &SlabEngine<Model>, slabs: u32| {
            let objects = slabs * engine.geometry().objects;
            let alloc = |_| engine.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
            let objects: Vec<_> = (0..objects).map(alloc).collect();
            objects.into_iter().for_each(|object| engine.free(&backing, object).expect("its own"));
        };
        engines.iter().zip(caches).for_each(|(engine, (.., slabs))| grow(engine, *slabs));
        let mut clock = Clock::default();
        let free = pages.free_frames(NodeId(0));
        let found: Vec<u64> = turns.iter().map(|_| clock.reap(&engines, &backing)).collect();
        assert_eq!(found, turns, "{caches:?}");
        assert_eq!(pages.free_frames(NodeId(0)) - free, turns.iter().sum::<u64>(), "{caches:?}");
    });
}

#[test]
fn the_clock_takes_most_of_one_cache() {
    // All caches grew before the first turn. Of 5 slabs 4 go, of 3 slabs 2.
    check_turns(&[(128, false, 3), (128, false, 5)], &[0, 4, 2, 1, 1, 0, 0]);
    // 10 pages end the turn; the next one begins behind.
    check_turns(&[(128, false, 10), (128, false, 20)], &[0, 8, 16, 3]);
    // A constructor, and an order above 0, make slabs count for less: 6 slabs for 5 pages, 3 slabs of two
    // pages for 5. The first of equal ones gives.
    check_turns(&[(128, true, 6), (128, false, 6)], &[0, 5, 5]);
    check_turns(&[(128, true, 6), (128, false, 5)], &[0, 5]);
    check_turns(&[(8192, false, 3), (128, false, 5)], &[0, 4, 4]);
    check_turns(&[(8192, false, 3), (128, false, 6)], &[0, 5]);
    // A turn looks at ten caches: the eleventh waits for the next one, and is passed over as it grew.
    const ONE: (u32, bool, u32) = (128, false, 1);
    check_turns(&[ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE, (128, false, 9), ONE], &[0, 1, 7]);
    check_turns(&[], &[0]);
}

/// A cache that grew since the last look is passed over once.
#[test]
fn growing_caches_are_spared() {
    Machine::new(one_cpu()).expect("the spec is right").enter(|| {
        let pages = Pages::<Model>::new(PagesPolicy::for_release(2, 4, 9));
        let backing = Backing::pages(&pages);
        for (preset, turns) in [(LINUS, [0, 1, 0, 1]), ("slab@2.6.29", [0; 4])] {
            let cache = [SlabEngine::<Model>::create(CacheId(1), &CacheSpec::of_size(128), &policy(preset))];
            let mut clock = Clock::default();
            let mut found = vec![];
            for _ in 0..2 {
                let object = cache[0].alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
                cache[0].free(&backing, object).expect("its own");
                found.extend([clock.reap(&cache, &backing), clock.reap(&cache, &backing)]);
            }
            assert_eq!(found, turns, "{preset}");
        }
    });
}

/// On two CPUs a look empties the array of the CPU that reclaims, so that its slabs can go.
#[test]
fn a_look_empties_the_array() {
    let mut machine = Machine::new(one_node()).expect("the spec is right");
    machine.enter(|| {
        let mut heap = Heap::new(LINUS, &CacheSpec::of_size(128));
        heap.step(Alloc(0, 150));
        heap.step(Free(0, 150));
        assert!(heap.look(Parked(150)).is_ok(), "{:?}", heap.cache.usage());
        let turn = |heap: &Heap| heap.with(|cache, backing| (cache.look_to_reap(backing)).map(|it| it.slabs));
        assert_eq!(turn(&heap), None, "it grew");
        assert_eq!(turn(&heap), Some(5));
        heap.end();
    });
}
