//! 2.6.29.

use crate::machine::Machine;
use slablab_vm::{Counter, DirtyLimit, Flags, Frame, State, Work};

/// Whole blocks of 16 pages that are free after a reclaim for order 4. Every second page was read once,
/// the others twice: half of each block is inactive.
fn blocks(preset: &str) -> usize {
    let machine = Machine::new(preset, 1024, 0);
    let file = machine.file(1024);
    for page in 0..1024 {
        machine.read(file, page);
        if page % 2 > 0 {
            machine.read(file, page);
        }
    }
    machine.reclaim_for(4);
    machine.check();
    machine.vm.with(|state| {
        let is_free = |at: &u32| !state.frames.has(Frame(*at), Flags::USED);
        (0..64).filter(|block| (block * 16..block * 16 + 16).all(|at| is_free(&at))).count()
    })
}

#[test]
fn lumpy_reclaim_frees_neighbours() {
    // Due are 1 + 2 + 4 + 8 + 16 + 32 of 512 inactive pages down to priority 4: two bites, each of
    // which takes 32 pages: two blocks, of which half was due, and the active half came along.
    assert_eq!(blocks("vm@2.6.29,active_files=low"), 4);
    assert_eq!(blocks("vm@2.6.29,active_files=low,lumpy=no"), 0);
}

/// Anonymous pages that a reclaim for order 4 looks at without swap, so that it scans files alone. The pages
/// of a file, inactive ones, and anonymous ones alternate by frame.
fn strangers(preset: &str) -> u64 {
    let machine = Machine::new(&format!("{preset},start=inactive"), 1024, 0);
    let (file, region) = (machine.file(512), machine.anon(512));
    for page in 0..512 {
        machine.read(file, page);
        machine.touch(region, page);
    }
    machine.reclaim_for(4);
    machine.check();
    machine.count(Counter::PgScanAnon)
}

#[test]
fn lumpy_reclaim_takes_neighbours_of_the_same_type() {
    assert_eq!(strangers("vm@2.6.29"), 0);
    // Two bites of files, each of which brings as many anonymous pages.
    assert_eq!(strangers("vm@2.6.29,lumpy=all"), 32);
    assert_eq!(strangers("vm@2.6.29,lumpy=no"), 0);
}

/// Locked pages: nothing goes, and the pages of a bite are tried twice, the second time with waits for
/// writes.
#[test]
fn a_second_pass_over_a_bite_is_no_scan() {
    let machine = Machine::new("vm@2.6.29", 512, 0);
    let file = machine.file(480);
    for page in 0..480 {
        let frame = machine.read(file, page);
        machine.vm.with(|state| state.frames.set(frame, Flags::LOCKED));
    }
    machine.reclaim_for(4);
    let scanned = machine.count(Counter::PgScanDirect);
    assert!(scanned > 480);
    assert_eq!(scanned, machine.host.done(Work::Scan));
}

#[test]
fn reclaim_naps_while_more_is_written_than_the_dirty_limit_and_a_tenth() {
    /// Naps of 100 ms with 110 of 1,000 pages under write and a dirty limit of so many percent.
    fn naps(percent: Option<u32>, written: u64) -> u64 {
        let limit = percent.map(DirtyLimit::Percent);
        let machine = Machine::new("vm@2.6.29", 1000, 0);
        let file = machine.file(1000);
        (0..1000).for_each(|page| _ = machine.read(file, page));
        machine.vm.with(|state| (state.settings.dirty_limit, state.dirty.writeback) = (limit, written));
        machine.reclaim();
        slablab_vm::Host::now(&machine.host) / 100_000_000
    }
    // No write ends: a hundred naps are the most for each look at the zone.
    assert_eq!(naps(None, 110), 0);
    assert!(naps(None, 111) >= 100);
    assert_eq!(naps(Some(20), 220), 0);
    assert!(naps(Some(20), 221) >= 100);
}

#[test]
fn an_allocation_stops_in_the_middle_of_a_round() {
    let machine = Machine::new("vm@2.6.29,start=inactive,balance=equal", 4096, 4096);
    let (region, file) = (machine.anon(2000), machine.file(2000));
    for page in 0..2000 {
        machine.touch(region, page);
        machine.read(file, page);
        machine.age(region, page);
    }
    // 57 of each are due at the first priority that makes a bite. Both have one, and 64 are more than
    // 32.
    assert_eq!(machine.reclaim().pages, 64);
    machine.check();
}

#[test]
fn without_swap_anonymous_pages_are_not_looked_at() {
    let looks = |preset: &str, slots: u32| {
        let machine = Machine::new(preset, 4096, slots);
        let (region, file) = (machine.anon(1000), machine.file(1000));
        for page in 0..1000 {
            machine.touch(region, page);
            machine.read(file, page);
        }
        let sizes = machine.sizes();
        assert_eq!(sizes.active_anon, if preset.contains("start") { 0 } else { 1000 });
        assert_eq!(sizes.inactive_file, 1000);
        for _ in 0..8 {
            machine.reclaim();
        }
        machine.check();
        machine.count(Counter::PgScanAnon) > 0
    };
    assert!(looks("vm@2.6.29,balance=equal,start=inactive", 4096));
    assert!(!looks("vm@2.6.29,balance=equal,start=inactive", 0));
    // All that entered was in use, and no file was: files alone are due.
    assert!(!looks("vm@2.6.29", 4096));
}

/// Pages evicted by kswapd for an order, from a machine of which a fifth is free, but no two pages
/// together.
fn evicted(preset: &str, order: u8) -> u64 {
    let machine = Machine::with_marks(preset, 2048, 0, [0, 0, 64]);
    let file = machine.file(2048);
    for page in 0..2048 {
        machine.read(file, page);
    }
    for page in (0..2048).step_by(5) {
        machine.drop_page(file, page);
    }
    let before = machine.count(Counter::PgStealKswapd) + machine.count(Counter::PgStealDirect);
    machine.kswapd(order);
    machine.check();
    machine.count(Counter::PgStealKswapd) + machine.count(Counter::PgStealDirect) - before
}

#[test]
fn kswapd_evicts_for_the_order_that_was_asked_for() {
    assert_eq!(evicted("vm@2.6.29", 0), 0);
    // Of 1,638 pages 1 + 3 + 6 + 12 + 25 are due down to priority 6: two bites of 32 pages, in whole
    // blocks.
    assert_eq!(evicted("vm@2.6.29", 3), 64);
    assert_eq!(evicted("vm@2.6.29,kswapd_order=no", 3), 0);
    // What is far more than enough for a zone is left alone, whatever the order.
    assert_eq!(evicted("vm@2.6.29,enough=1", 0), 0);
}

/// Slots taken and pages written by a reclaim of tmpfs pages that nobody touches.
fn visits(preset: &str) -> (u32, u64) {
    let machine = Machine::new(&format!("{preset},tmpfs_start=inactive"), 1024, 1024);
    machine.tmpfs(600);
    machine.reclaim();
    machine.check();
    (machine.vm.with(|state| state.swap.used()), machine.count(Counter::VmscanWrite))
}

#[test]
fn a_page_of_tmpfs_is_written_at_its_second_visit() {
    // A bite of pages is written, and the first reclaim has its 32.
    let (slots, written) = visits("vm@2.6.29,tmpfs_two_visits=no");
    assert_eq!((u64::from(slots), slots < 100), (written, true));
    // The whole list is visited before a page comes round again.
    let (slots, written) = visits("vm@2.6.29");
    assert_eq!(slots, 600);
    assert!((32..100).contains(&written), "{written}");
}

/// kswapd scans a zone whose pages are all locked six times over, and leaves it alone then: an allocation
/// looks at 1/4096 of it, and finds nothing although the pages are unlocked. Once a page goes, it finds more.
#[test]
fn a_zone_that_gives_nothing_is_left_alone_until_a_page_of_it_goes() {
    for (preset, is_left_alone) in [("vm@2.6.29", true), ("vm@2.6.29,gives_up=no", false)] {
        let machine = Machine::with_marks(preset, 512, 0, [8, 16, 40]);
        let file = machine.file(480);
        let frames: Vec<Frame> = (0..480).map(|page| machine.read(file, page)).collect();
        let set = |flag: fn(&mut State, Frame)| {
            machine.vm.with(|state| frames.iter().for_each(|frame| flag(state, *frame)));
        };
        set(|state, frame| state.frames.set(frame, Flags::LOCKED));
        machine.kswapd(0);
        let scanned = machine.count(Counter::PgScanKswapd) + machine.count(Counter::PgScanDirect);
        assert_eq!(scanned >= 6 * 480, is_left_alone, "{preset}: {scanned}");
        set(|state, frame| _ = state.frames.clear(frame, Flags::LOCKED));
        let freed = machine.reclaim();
        assert_eq!((freed.pages == 0, freed.progress), (is_left_alone, !is_left_alone), "{preset}");
        machine.drop_page(file, 479);
        assert!(machine.reclaim().pages >= 32, "{preset}");
        machine.check();
    }
}

#[test]
fn a_stream_leaves_anonymous_pages_alone() {
    let machine = Machine::with_marks("vm@2.6.29", 512, 512, [16, 24, 32]);
    let (region, file) = (machine.anon(128), machine.file(2000));
    for page in 0..128 {
        machine.touch(region, page);
    }
    for page in 0..2000 {
        machine.read(file, page);
        // The set is in use.
        machine.touch(region, page % 128);
    }
    machine.check();
    assert_eq!(machine.count(Counter::PgStealAnon), 0);
}

/// A part of a machine reclaims for as many requests a second as the whole: it looks at as many pages for
/// each.
#[test]
fn a_pass_over_a_part_looks_at_as_many_pages_as_over_the_whole() {
    /// Pages that a direct reclaimer looks at, of so many that were read once.
    fn looks(pages: u32, part: u32) -> u64 {
        let machine = Machine::new("vm@2.6.29", pages + 64, 0);
        let file = machine.file(pages);
        (0..pages).for_each(|page| _ = machine.read(file, page));
        machine.vm.with(|state| state.settings.part = part);
        machine.reclaim();
        machine.count(Counter::PgScanDirect)
    }
    // 1/4096 of the whole makes a bite at the first priority; 63 pages of the part are due at the eighth,
    // which are two bites.
    assert_eq!(looks(1 << 17, 1), 32);
    assert_eq!(looks(1 << 10, 128), 32);
    assert_eq!(looks(1 << 10, 1), 64);
    // No more is due than there is.
    assert_eq!(looks(48, 1 << 12), 48);
}

#[test]
fn a_page_that_was_read_keeps_its_slot_while_swap_is_not_full() {
    for (preset, used, write, expected) in [
        ("vm@2.6.29", 50, false, true),
        ("vm@2.6.29", 51, false, false),
        ("vm@2.6.29", 10, true, false),
        ("vm@2.6.29,swap_full=80", 80, false, true),
        ("vm@2.6.29,swap_full=80", 81, false, false),
        ("vm@2.6.29,swap_full=0", 0, false, true),
        ("vm@2.6.29,swap_full=0", 1, false, false),
    ] {
        let machine = Machine::new(preset, 128, 100);
        let keeps = machine.vm.with(|state| {
            (0..used).for_each(|frame| _ = state.swap.take(Frame(frame)).expect("a slot"));
            machine.vm.policy.keeps_slot(state, write)
        });
        assert_eq!(keeps, expected, "{preset}: {used} of 100, write {write}");
    }
}
