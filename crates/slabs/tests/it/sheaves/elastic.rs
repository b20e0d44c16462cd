//! Sheaves that grow with their use. No kernel has them, so these tests define the behaviour.

use super::*;

fn case(steps: &[Step], expected: &[Expected]) {
    case_on(one_node, steps, expected);
}

fn case_on(machine: fn() -> MachineSpec, steps: &[Step], expected: &[Expected]) {
    check(&Case { name: "elastic", machine, presets: &["slub@7.1,elastic=4"], spec: SMALL, steps, expected });
}

/// A refill fills a young sheaf completely.
#[test]
fn a_young_sheaf_grows_when_it_is_empty() {
    // The first sheaf has 4 places and is empty, so the next has 12, and gets the 4 objects of the refill.
    case(
        &[Alloc(0, 1)],
        &[Counted(SheafAlloc, 2), Counted(SheafFree, 1), Counted(SheafRefill, 4), Parked(3)],
    );
    case(
        &[Alloc(0, 5)],
        &[Counted(SheafAlloc, 3), Counted(SheafFree, 2), Counted(SheafRefill, 4 + 12), Parked(11)],
    );
    // Sheaves of 4, 12, 28 and 60 places. 60 is the capacity: a sheaf of that size does not grow, and another
    // one is filled.
    case(&[Alloc(0, 4 + 12 + 28 + 1)], &[Counted(SheafAlloc, 5), Counted(SheafRefill, 44 + 60), Parked(59)]);
}

#[test]
fn a_young_sheaf_grows_when_it_is_full() {
    // 16 objects are freed after 16 allocations: a sheaf of 12 places is full, and is replaced by one of 28.
    case(&[Alloc(0, 16), Mark, Free(0, 16)], &[Counted(SheafAlloc, 0), Counted(SheafFlush, 0), Parked(16)]);
    case(&[Alloc(0, 44), Mark, Free(0, 44)], &[Counted(SheafAlloc, 0), Counted(FreeSlowpath, 0), Parked(44)]);
}

/// With the kernel's sheaves, alternating calls can exchange main and spare every time. Here the first
/// exchange leaves room on both sides.
#[test]
fn alternating_calls_do_not_exchange_sheaves() {
    const BORDER: &[Step] =
        &[Alloc(0, 300), Free(0, 300), Alloc(0, 60), Mark, Free(0, 2), Alloc(0, 2), Free(0, 2), Alloc(0, 2)];
    case(
        BORDER,
        &[Counted(AllocFastpath, 4), Counted(FreeFastpath, 4), Counted(SheafFlush, 0), Counted(BarnPut, 0)],
    );
}

/// The same steps again and again.
fn repeated(steps: &[Step], times: usize) -> Vec<Step> {
    steps.repeat(times)
}

/// A program that frees 100,000 objects and allocates them again, a swing, has room for them in the barn
/// after the first; for 200,000 there is none. The kernel's barn has ten sheaves.
#[test]
fn a_barn_keeps_2048_sheaves() {
    const SWING: &[Step] = &[Alloc(0, 100_000), Free(0, 100_000)];
    let swings = [&repeated(SWING, 2), &[Mark][..], SWING].concat();
    case(&swings, &[Counted(SheafRefill, 0), Counted(SheafFlush, 0)]);
    const LARGE: &[Step] = &[Alloc(0, 200_000), Free(0, 200_000)];
    const MOST: u64 = 2048 * 60;
    // Main and spare hold 104 more.
    case(&repeated(LARGE, 3), &[Parked(MOST + 104)]);
}

/// A barn from which no CPU draws passes full sheaves on to slabs: it holds 8 of 60 objects. What CPUs draw
/// in a row makes room for twice as many more, until two periodic shrinks later; so does what they miss.
#[test]
fn a_barn_holds_what_cpus_draw() {
    const SWING: &[Step] = &[Alloc(0, 6000), Free(0, 6000)];
    // A periodic shrink takes nothing that came since the one before. The slot's sheaves hold 104, until one
    // finds the main sheaf with as many objects as the one before.
    let after = |swings: usize, then: &[Step], parked: u64| {
        let steps = [&repeated(SWING, swings), then, &[Shrink(Idle::Since)]].concat();
        case(&steps, &[Parked(parked)]);
    };
    after(1, &[], 8 * 60 + 104);
    // All of them.
    after(2, &[], 99 * 60 + 104);
    let since = |times: usize| [&repeated(&[Shrink(Idle::Since)], times), SWING].concat();
    after(4, &since(1), 99 * 60);
    // The barn was emptied by then, and the draws are forgotten.
    after(4, &since(3), 8 * 60 + 104);
}

/// Slabs that hold few objects sink: no sheaf keeps objects that are freed then, because each may be the
/// last one of its slab. A refill ends that.
#[test]
fn a_cache_that_sinks_keeps_few_objects() {
    let spec = CacheSpec::of_size(1024);
    // One of `left` objects is freed after the shrink, the others before it.
    let check = |left: usize, refills: bool, few: bool| {
        Machine::new(one_node()).expect("the spec is right").enter(|| {
            let heap = Heap::new("slub@7.1,elastic=4", &spec);
            let metadata = FromCache(&heap.metadata, &heap.pages);
            let backing = Backing { metadata: Some(&metadata), ..Backing::pages(&heap.pages) };
            let cache = Slub::<Model>::create(CacheId(10), &spec, &policy("slub@7.1,elastic=4"));
            let one = || cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
            let free = |object| cache.free(&backing, object).expect("an object of the cache");
            let objects: Vec<_> = (0..4096).map(|_| one()).collect();
            let (last, first): (Vec<_>, Vec<_>) =
                objects.into_iter().enumerate().partition(|(at, _)| at % left == 0);
            first.into_iter().for_each(|(_, object)| free(object));
            while cache.shrink_idle(&backing, Idle::All) {}
            if refills {
                free(one());
            }
            last.into_iter().for_each(|(_, object)| free(object));
            let parked = cache.usage().parked;
            assert_eq!(parked <= 4, few, "1 of {left} left, refill: {refills}: {parked} objects parked");
            cache.destroy(&backing).expect("every object was freed");
            heap.end();
        });
    };
    check(16, false, true);
    check(16, true, false);
    check(2, false, false);
}

/// Of a barn's sheaves those go to slabs that nobody needed since the periodic shrink before; and the slot's,
/// if its main sheaf has as many objects as then.
#[test]
fn a_barn_gives_back_what_was_idle() {
    let freed = repeated(&[Alloc(0, 6000), Free(0, 6000)], 3);
    const SINCE: Step = Shrink(Idle::Since);
    let after = |steps: &[Step], parked| case(&[&freed, steps].concat(), &[Parked(parked)]);
    // 99 full sheaves: all of them came since the beginning.
    after(&[SINCE], 99 * 60 + 104);
    after(&[SINCE, SINCE], 0);
    // The slot's young sheaves get 104 objects from slabs, the other 496 are in 9 of the barn's sheaves.
    after(&[SINCE, Alloc(0, 600), Free(0, 600), SINCE], 9 * 60);
    after(&[SINCE, Alloc(0, 600), Free(0, 600), SINCE, SINCE], 0);
    // The same for any number of idle sheaves, also where a call ends with the last one: the call behind it
    // is no shrink of its own.
    for more in 0..32 {
        let all = 6000 + 60 * more;
        after(&[Alloc(0, all), Free(0, all), SINCE, Alloc(0, 600), Free(0, 600), SINCE], 9 * 60);
    }
    after(&[Shrink(Idle::All)], 0);
}

/// Every node's barn has the same periods: a shrink of several calls, which empties one barn after the other,
/// ends one period of each.
#[test]
fn barns_of_several_nodes_give_back_what_was_idle() {
    const SINCE: Step = Shrink(Idle::Since);
    let freed = repeated(&[Alloc(0, 6000), Free(0, 6000), Alloc(2, 6000), Free(2, 6000)], 3);
    let after = |steps: &[Step], parked| {
        case_on(two_nodes, &[&freed, steps].concat(), &[Parked(parked)]);
    };
    // One of the two slots holds two full sheaves.
    after(&[SINCE], (98 + 99) * 60 + 104 + 120);
    after(&[SINCE, SINCE], 0);
    // Nine sheaves of the node that was used stay, or eight where the slot had two.
    after(&[SINCE, Alloc(0, 600), Free(0, 600), SINCE], 9 * 60);
    after(&[SINCE, Alloc(2, 600), Free(2, 600), SINCE], 8 * 60);
    for more in 0..32 {
        let all = 6000 + 60 * more;
        let again = [Alloc(0, all), Free(0, all), SINCE, Alloc(2, 600), Free(2, 600), SINCE];
        after(&again, 8 * 60);
    }
    after(&[Shrink(Idle::All)], 0);
}

/// A young sheaf that is outgrown while its memory cannot be freed must wait, and must not be used as a
/// full-size one. Here a lent sheaf is the spare, and replaces the young one on a call without memory for
/// sheaves.
#[test]
fn an_outgrown_sheaf_is_not_used_again() {
    const STEPS: &[Step] =
        &[Alloc(0, 1), Lend(0, 1), Return(0), AllocBare(0, 4), Alloc(0, 300), Free(0, 305), Alloc(0, 300)];
    case(STEPS, &[Live(300)]);
}

/// On one CPU, the main sheaves of all caches together have room for 4 MiB before they grow no more. A CPU of
/// its own, and a CPU whose caches were emptied, may grow sheaves again.
#[test]
fn sheaves_of_a_cpu_grow_up_to_a_budget() {
    const OBJECTS: u32 = 1500;
    let spec = CacheSpec { sheaf_capacity: 500, ..CacheSpec::of_size(2048) };
    let mut machine = Machine::new(one_node()).expect("the spec is right");
    machine.enter(|| {
        let heap = Heap::new("slub@7.1,elastic=4", &spec);
        let metadata = FromCache(&heap.metadata, &heap.pages);
        let backing = Backing { metadata: Some(&metadata), ..Backing::pages(&heap.pages) };
        let policy = policy("slub@7.1,elastic=4");
        let mut caches: Vec<_> =
            (10..15).map(|number| Slub::<Model>::create(CacheId(number), &spec, &policy)).collect();
        // The objects that sheaves keep after a swing.
        let parked = |cache: &Slub<Model>, cpu| {
            Model::run_on(CpuId(cpu));
            let one = || cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
            let objects: Vec<_> = (0..OBJECTS).map(|_| one()).collect();
            for object in objects {
                cache.free(&backing, object).expect("an object of the cache");
            }
            cache.usage().parked
        };
        let swing = |cpu| -> Vec<u64> { caches.iter().map(|cache| parked(cache, cpu)).collect() };
        // 500 objects of 2 KiB four times; then the sheaves of 4, 12, 28, 60 and 124 places that still fit.
        // Each flush of the last one empties a half of it.
        assert_eq!(swing(0), [1014, 1014, 1014, 1014, 93]);
        assert_eq!(swing(1)[4], 93 + 93, "by then the other CPU's first four caches have grown");
        caches[0].shrink(&backing);
        assert!(parked(&caches[4], 0) > 1000, "the first cache's sheaves are gone");
        for cache in &mut caches {
            cache.destroy(&backing).expect("every object was freed");
        }
        heap.end();
    });
}
