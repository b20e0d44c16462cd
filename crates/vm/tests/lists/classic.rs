//! The rules of 6.x's classic policy, one by one, on a machine without time.

use crate::machine::Machine;
use slablab_vm::shrinker::{Owed, share_by_priority, share_by_scan, shrink_slab, shrink_slab_by_scan};
use slablab_vm::workingset::{Packing, Shadow, competitors, is_early};
use slablab_vm::{Counter, Flags, Preset, Shrinker, Sizes};

/// A preset and how it prints, or the message.
#[track_caller]
fn parses(text: &str, expected: Result<&str, &str>) {
    let parsed = Preset::parse(text).map(|preset| preset.to_string()).map_err(|bad| bad.to_string());
    assert_eq!(parsed.as_deref().map_err(String::as_str), expected, "{text}");
}

#[test]
fn presets_parse_and_print() {
    parses("vm@6.1", Ok("vm@6.1"));
    parses("vm@6.1.176-1", Ok("vm@6.1"));
    parses("vm@6.12.117+deb12", Ok("vm@6.12"));
    parses("vm@6.17", Ok("vm@6.12"));
    parses("vm@7.0", Ok("vm@6.18"));
    parses("vm@7.1,lru_gen", Ok("vm@6.18,lru_gen"));
    parses("vm@7.2-rc1,lru_gen,look=4096", Ok("vm@7.2,lru_gen,look=4096"));
    parses("vm@7.3", Ok("vm@7.2"));
    parses("vm@6.18,s3fifo,small=20", Ok("vm@6.12,s3fifo,small=20"));
    parses("vm@6.1,swappiness=200,trim=no", Ok("vm@6.1,swappiness=200,trim=no"));
    parses("vm@6.1,trim=yes,inactive_ratio=3", Ok("vm@6.1,inactive_ratio=3"));
    parses("vm@6.12,cost=io", Ok("vm@6.12,cost=io"));
    parses("vm@2.6.29,lumpy=no,kswapd_order=no", Ok("vm@2.6.29,lumpy=no,kswapd_order=no"));
    parses("vm@3.10", Ok("vm@2.6.29"));
    parses(
        "vm@2.6.29-rc8",
        Err(
            "`2.6.29-rc8` is no release that has a preset (see `slablab list vm`); near it: 2.6.29, 2.4.9-ac14, 2.4.8",
        ),
    );
    parses("vm@6.1,lumpy=no", Err("no knob is called `lumpy`; near it: sums, tiny, lhd"));
    parses("slub@6.1", Err("no policy of page replacement is called `slub`; near it: vm"));
    parses("vm@6.1,swapiness=1", Err("no knob is called `swapiness`; near it: swappiness, slabs, stride"));
    parses("vm@6.1,swappiness=201", Err("swappiness=`201`: expected a number from 0 to 200"));
    parses("vm@6.1,cost=rotation", Err("cost=`rotation` is not known; near it: rotations, io"));
    for preset in Preset::all() {
        let text = preset.to_string();
        assert_eq!(Preset::parse(&text).as_ref(), Ok(&preset), "{text}");
    }
}

/// One direct reclaim from lists of files: `pages` inactive and active ones. It evicts so many of the
/// oldest inactive pages and deactivates so many active ones.
#[track_caller]
fn evicts(preset: &str, pages: (u32, u32), expected: (u32, u64)) {
    let machine = Machine::new(preset, 4096, 0);
    let file = machine.file(pages.0 + pages.1);
    for page in 0..pages.0 + pages.1 {
        let times = if page < pages.0 { 1 } else { 2 };
        for _ in 0..times {
            machine.read(file, page);
        }
    }
    machine.reclaim();
    let gone: Vec<u32> = (0..pages.0 + pages.1).filter(|page| !machine.is_cached(file, *page)).collect();
    assert_eq!(gone, (0..expected.0).collect::<Vec<_>>(), "{preset}: {pages:?}");
    assert_eq!(machine.count(Counter::PgDeactivate), expected.1, "{preset}: {pages:?}");
    machine.check();
}

#[test]
fn the_oldest_inactive_pages_go_first() {
    // A part of each list by priority: 600 >> 9, >> 8 ... until 32 are freed, 1 + 2 + 4 + 9 + 18.
    evicts("vm@6.1", (600, 0), (34, 0));
    // A long inactive list protects the active one.
    evicts("vm@6.1", (600, 300), (34, 0));
    // A short one does not. Priorities 8 to 2 deactivate 1, 2, 4, 9, 17, 33, 58, and 5 to 2 evict 1, 3,
    // 8, 23.
    evicts("vm@6.1", (40, 300), (35, 124));
    // A ratio of 10 leaves the active list alone as long as the inactive one has a tenth of it.
    evicts("vm@6.1,inactive_ratio=10", (100, 300), (40, 0));
}

/// Reads a stream of `stream` pages, of which memory holds a part, past 64 pages that were read `times`
/// times. Returns how many of the 64 are left.
fn survivors(preset: &str, times: u32, stream: u32) -> usize {
    let machine = Machine::with_marks(preset, 256, 0, [8, 16, 24]);
    let (hot, cold) = (machine.file(64), machine.file(stream));
    for page in 0..64 {
        for _ in 0..times {
            machine.read(hot, page);
        }
    }
    for page in 0..stream {
        machine.read(cold, page);
    }
    machine.check();
    (0..64).filter(|page| machine.is_cached(hot, *page)).count()
}

#[test]
fn a_stream_evicts_pages_used_once_and_no_others() {
    assert_eq!(survivors("vm@6.1", 1, 2000), 0);
    assert_eq!(survivors("vm@6.1", 2, 2000), 64);
}

#[test]
fn a_page_that_comes_back_early_is_active() {
    let active = |preset: &str, between: u32| {
        let machine = Machine::new(preset, 4096, 0);
        let file = machine.file(2000);
        // 400 active pages compete; 34 of the inactive ones are evicted, and `between` more before the
        // first comes back.
        for page in 0..1400 {
            machine.read(file, page);
            if page >= 1000 {
                machine.read(file, page);
            }
        }
        while machine.count(Counter::PgStealDirect) <= u64::from(between) {
            machine.reclaim();
        }
        let frame = machine.read(file, 0);
        machine.check();
        assert_eq!(machine.count(Counter::RefaultFile), u64::from(!preset.contains("workingset=no")));
        machine.vm.with(|state| state.frames.has(frame, Flags::ACTIVE))
    };
    // Activations count, too: the 400 were before the eviction.
    assert!(active("vm@6.1", 300));
    assert!(!active("vm@6.1", 500));
    assert!(!active("vm@6.1,workingset=no", 300));
}

#[test]
fn an_early_refault_lets_the_active_list_be_scanned() {
    let deactivated = |comes_back: bool| {
        let machine = Machine::new("vm@6.1", 4096, 0);
        let file = machine.file(2000);
        for page in 0..1400 {
            machine.read(file, page);
            if page >= 1000 {
                machine.read(file, page);
            }
        }
        machine.reclaim();
        assert_eq!(machine.count(Counter::PgDeactivate), 0);
        if comes_back {
            machine.read(file, 0);
        }
        machine.reclaim();
        machine.check();
        machine.count(Counter::PgDeactivate) > 0
    };
    assert!(deactivated(true));
    assert!(!deactivated(false));
}

/// A request for a low zone meets older pages of a higher one at the tail of the inactive list. It takes none
/// of them: they go to the head, the oldest in front.
#[test]
fn pages_of_higher_zones_go_round() {
    let machine = Machine::of_two_zones("vm@6.1", 256);
    let file = machine.file(512);
    // The first pages get the frames of the low zone. They are read again, so that the others are older.
    (0..512).for_each(|page| _ = machine.read(file, page));
    (0..256).for_each(|page| machine.drop_page(file, page));
    (0..256).for_each(|page| _ = machine.read(file, page));
    let freed = machine.reclaim().pages;
    let cached = machine.vm.with(|state| {
        let frame = state.mappings.get(file).entry(300).frame().expect("in memory");
        let list = state.lists.of(frame).expect("listed");
        state.lists.from_tail(list).map(|frame| state.frames.index(frame)).collect::<Vec<_>>()
    });
    machine.check();
    assert!(freed >= 32, "{freed}");
    let expected: Vec<u32> = (freed..256).chain((256..512).rev()).collect();
    assert_eq!(cached, expected);
}

#[test]
fn since_6_12_a_pass_goes_by_the_last_sum() {
    let deactivated = |preset: &str| {
        let machine = Machine::new(preset, 4096, 0);
        let file = machine.file(2000);
        machine.vm.policy.sum_up();
        for page in 0..1400 {
            machine.read(file, page);
            if page >= 1000 {
                machine.read(file, page);
            }
        }
        machine.reclaim();
        // Its refault competes with as many active pages as the sum has.
        machine.vm.policy.sum_up();
        machine.read(file, 0);
        machine.reclaim();
        let at_once = machine.count(Counter::PgDeactivate) > 0;
        machine.vm.policy.sum_up();
        machine.reclaim();
        machine.check();
        (at_once, machine.count(Counter::PgDeactivate) > 0)
    };
    assert_eq!(deactivated("vm@6.1"), (true, true));
    assert_eq!(deactivated("vm@6.12"), (false, true));
    assert_eq!(deactivated("vm@6.12,sums=pass"), (true, true));
}

#[test]
fn kswapd_gives_up_after_16_runs_in_vain() {
    // Anonymous pages, and no swap.
    let machine = Machine::with_marks("vm@6.1", 256, 0, [0, 0, 16]);
    let region = machine.anon(250);
    for page in 0..250 {
        machine.touch(region, page);
    }
    let wanted = || machine.vm.policy.wants_kswapd(&machine.vm, &machine.host, 0, 0, 0);
    assert!(wanted());
    machine.kswapd(0);
    assert_eq!(machine.count(Counter::PageOutRun), 16);
    assert_eq!(machine.count(Counter::KswapdHighHit), 15);
    assert!(!wanted());
    // A direct reclaimer that frees a page makes it try again.
    let file = machine.file(6);
    (0..6).for_each(|page| _ = machine.read(file, page));
    assert!(machine.reclaim().progress);
    assert!(wanted());
    machine.check();
}

/// Whether a direct reclaimer sleeps that finds a dirty page of a file and 200 anonymous pages.
fn sleeps(slots: u32) -> bool {
    let machine = Machine::new("vm@6.1", 256, slots);
    let (region, file) = (machine.anon(200), machine.file(1));
    let frame = machine.read(file, 0);
    machine.vm.with(|state| state.set_dirty(frame));
    for page in 0..200 {
        machine.touch(region, page);
        if slots > 0 {
            // Swap has room, but nothing that a reclaimer meets can go: it is locked.
            let frame = machine.touch(region, page).0;
            machine.vm.with(|state| state.frames.set(frame, Flags::LOCKED));
        }
    }
    assert_eq!(machine.reclaim().pages, 0);
    slablab_vm::Host::now(&machine.host) >= 4_000_000
}

#[test]
fn a_reclaimer_sleeps_if_half_of_what_it_could_take_waits_for_writes() {
    // Without swap the dirty page is all that could go.
    assert!(sleeps(0));
    // One of 201 pages is dirty: to wait for its write is in vain.
    assert!(!sleeps(16));
}

/// What a reclaimer takes from 1,000 inactive pages of each type: anonymous ones, of files.
fn taken(preset: &str, slots: u32) -> (u64, u64) {
    let machine = Machine::new(preset, 4096, slots);
    let (region, file) = (machine.anon(1000), machine.file(1000));
    for page in 0..1000 {
        machine.touch(region, page);
        machine.read(file, page);
        machine.age(region, page);
    }
    for _ in 0..4 {
        machine.reclaim();
    }
    machine.check();
    (machine.count(Counter::PgStealAnon), machine.count(Counter::PgStealFile))
}

#[test]
fn swappiness_and_swap_decide_what_goes() {
    // Cold files are enough alone (`cache_trim_mode`).
    assert_eq!(taken("vm@6.1", 2000).0, 0);
    let (anon, file) = taken("vm@6.1,trim=no,balance=equal", 2000);
    assert_eq!(anon, file);
    // Writes to swap are a cost, and reads of clean files are none: anonymous pages go less than
    // evenly.
    let (anon, file) = taken("vm@6.1,trim=no,swappiness=100", 2000);
    assert!(anon < file && anon * 3 > file, "{anon} and {file}");
    assert_eq!(taken("vm@6.1,trim=no,swappiness=0", 2000).0, 0);
    assert_eq!(taken("vm@6.1,trim=no,swappiness=200", 2000).1, 0);
    assert_eq!(taken("vm@6.1,trim=no,swappiness=200", 0).0, 0);
    assert!(taken("vm@6.1,trim=no,swappiness=60", 2000).0 < anon);
}

#[test]
fn shadows_keep_node_age_and_workingset() {
    let check = |nodes, frames, shadow: Shadow| {
        let packing = Packing::new(nodes, frames);
        let word = packing.pack(shadow);
        assert!(word < 1 << 30);
        packing.unpack(word)
    };
    let shadow = Shadow { node: 3, age: 1_234_567, workingset: true };
    assert_eq!(check(4, 1 << 20, shadow), shadow);
    // 2^28 frames on 16 nodes need 29 bits, and 25 are left: four bits of the age are lost.
    let coarse = check(16, 1 << 28, Shadow { node: 15, age: 1_234_567, workingset: false });
    assert_eq!(coarse, Shadow { node: 15, age: 1_234_567 >> 4 << 4, workingset: false });
    // As many bits as there are: 2^29 - 1 frames on one node. One more frame costs a bit.
    for (nodes, frames, lost) in
        [(1, (1 << 29) - 1, 0), (1, 1 << 29, 1), (2, 1 << 28, 1), (2, (1 << 28) - 1, 0), (1, u32::MAX, 3)]
    {
        let age = (1 << 25) - 1;
        let kept = check(nodes, frames, Shadow { node: 0, age, workingset: false });
        assert_eq!(kept.age, age >> lost << lost, "{frames} frames on {nodes} nodes");
    }
    // Ages wrap: 29 bits on one node.
    assert_eq!(Packing::new(1, 1000).distance(3, (1 << 29) - 2), 5);
}

#[test]
fn a_refault_competes_with_the_other_type() {
    let sizes = Sizes { inactive_anon: 1, active_anon: 10, inactive_file: 100, active_file: 1000 };
    assert_eq!(competitors(&sizes, true, true), 1011);
    assert_eq!(competitors(&sizes, true, false), 1000);
    assert_eq!(competitors(&sizes, false, true), 1110);
    assert_eq!(competitors(&sizes, false, false), 1100);
}

#[test]
fn a_refault_is_early_up_to_the_pages_it_competes_with() {
    let sizes = Sizes { inactive_anon: 1, active_anon: 10, inactive_file: 100, active_file: 1000 };
    for (distance, is_file, swap_is_free, expected) in [
        (1011, true, true, true),
        (1012, true, true, false),
        (1000, true, false, true),
        (1001, true, false, false),
        (1110, false, true, true),
        (1111, false, true, false),
        (0, false, false, true),
    ] {
        let early = is_early(distance, &sizes, is_file, swap_is_free);
        assert_eq!(early, expected, "{distance} {is_file} {swap_is_free}");
    }
}

/// Passes over one cache, at these priorities. Returns objects left after each.
fn passes(cache: Shrinker, objects: u64, priorities: &[u32]) -> Vec<u64> {
    let machine = Machine::new("vm@6.1", 64, 0);
    machine.host.add_cache(cache, objects);
    let owed = Owed::default();
    let left = |priority: &u32| {
        shrink_slab(&machine.vm, &machine.host, &owed, *priority);
        slablab_vm::Host::shrinkable(&machine.host, 0)
    };
    priorities.iter().map(left).collect()
}

#[test]
fn slab_caches_shrink_by_priority_since_4_16() {
    assert_eq!(share_by_priority(40_000, 12, 2), 18);
    assert_eq!(share_by_priority(40_000, 0, 2), 80_000);
    assert_eq!(share_by_priority(40_000, 12, 0), 20_000);
    let cache = Shrinker { name: "dentry", seeks: 2, batch: 128 };
    // 10,000 objects: 4 a pass are too few for a batch, and are owed. At priority 6, 312 are asked: two
    // batches, and 56 more are owed; the owed ones count by their share at the priority, (4 + 4) >> 6 =
    // 0.
    assert_eq!(passes(cache, 10_000, &[12, 12, 6]), [10_000, 10_000, 9_744]);
    // 64 are owed: half of them at priority 1 with 9,744: 9,744 + 32 in 76 batches, 48 stay.
    assert_eq!(passes(cache, 10_000, &[12, 12, 6, 1]), [10_000, 10_000, 9_744, 16]);
    // 120 passes owe 480 and free nothing, as 480 >> 12 is 0; an eighth of it and 2,500 are 20 batches
    // then.
    let passes_at = |priorities: &[u32]| *passes(cache, 10_000, priorities).last().expect("a pass");
    assert_eq!(passes_at(&[12; 120]), 10_000);
    assert_eq!(passes_at(&[&[12; 120][..], &[3]].concat()), 10_000 - 20 * 128);
    assert_eq!(passes_at(&[3]), 10_000 - 19 * 128);
    // Fewer objects than a batch: they are asked for when all of them are due.
    assert_eq!(passes(cache, 100, &[2, 1]), [100, 0]);
}

#[test]
fn slab_caches_shrink_by_pages_scanned_before() {
    // 1 % of the lists scanned: 2 % of the objects.
    assert_eq!(share_by_scan(10_000, 100, 9_999, 2), 200);
    assert_eq!(share_by_scan(10_000, 0, 9_999, 2), 64);
    let machine = Machine::new("vm@6.1", 64, 0);
    machine.host.add_cache(Shrinker { name: "dentry", seeks: 2, batch: 128 }, 10_000);
    let owed = Owed::default();
    let pass = |scanned| {
        shrink_slab_by_scan(&machine.vm, &machine.host, &owed, scanned, 9_999);
        slablab_vm::Host::shrinkable(&machine.host, 0)
    };
    // 200: a batch, and 72 stay owed; with 64 more there is a batch again.
    assert_eq!([pass(100), pass(32), pass(32)], [9_872, 9_744, 9_744]);
}
