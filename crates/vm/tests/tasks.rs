//! What tasks meet: faults, read-ahead, writers that are held back.

use slablab_vm::counters::Counter;
use slablab_vm::frames::Flags;
use slablab_vm::instant::Instant;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules, Touched, Why};
use slablab_vm::preset::Preset;
use slablab_vm::swap::SlotRule;
use slablab_vm::{Frame, Host, MappingId, RegionId, Settings, State, Swap, Vm, Zone};
use std::ops::Range;

const FRAMES: u32 = 4096;

/// A machine under `vm@RELEASE` with much memory.
fn machine(release: &str) -> (Vm, Instant, Rules) {
    let preset = Preset::parse(&format!("vm@{release}")).expect("a preset");
    let ([major, minor, patch], policy) = (preset.kernel, preset.policy());
    let zone = Zone { name: "Normal", node: 0, class: 0, frames: 0..FRAMES, managed: FRAMES.into() };
    let swap = Swap::new(1024, SlotRule::Clusters);
    let state = State::new(vec![zone], swap, policy.lists(1, 1), Settings::default());
    (Vm::new(state, policy), Instant::new(FRAMES, [16, 20, 24], 64), Rules::of(major, minor, patch))
}

fn file(vm: &Vm, pages: u32) -> MappingId {
    vm.with(|state| state.mappings.create(Kind::File, pages))
}

fn anon(vm: &Vm, pages: u32) -> RegionId {
    let space = vm.with(|state| state.spaces.create());
    mm::anon(vm, space, pages)
}

/// Pages of a file that are cached.
fn cached(vm: &Vm, file: MappingId) -> Vec<u32> {
    vm.with(|state| {
        let file = state.mappings.get(file);
        (0..file.pages()).filter(|page| file.entry(*page).frame().is_some()).collect()
    })
}

#[test]
fn a_first_read_takes_no_frame() {
    for (release, frames) in [("2.4.10", 1), ("2.6.29", 2), ("6.1", 1)] {
        let (vm, host, rules) = machine(release);
        let region = anon(&vm, 8);
        assert_eq!(mm::touch(&vm, &host, &rules, region, 3, false), Some(Touched::Minor));
        // One is the page table.
        assert_eq!(FRAMES as usize - host.free_frames(), frames, "{release}");
        assert_eq!(mm::touch(&vm, &host, &rules, region, 3, false), Some(Touched::Hit));
        let write = mm::touch(&vm, &host, &rules, region, 3, true);
        assert_eq!(write, Some(if release == "2.6.29" { Touched::Hit } else { Touched::Minor }));
        assert_eq!(FRAMES as usize - host.free_frames(), 2, "{release}");
    }
}

#[test]
fn sequential_reads_ramp_up_and_random_ones_read_a_page() {
    let (vm, host, rules) = machine("6.1");
    let mut open = OpenFile::new(file(&vm, 1000));
    let mut read = |page| {
        assert!(mm::read(&vm, &host, &rules, &mut open, page).is_some());
        cached(&vm, open.mapping).len()
    };
    // 4 pages with a mark on the second, then 8, 16, 32 and 32 at each mark.
    let seen: Vec<usize> = (0..32).map(&mut read).collect();
    assert_eq!(seen[..5], [4, 12, 12, 12, 28]);
    assert_eq!(seen[12], 60);
    assert_eq!(seen[28], 92);
    let before = seen[31];
    assert_eq!(read(500), before + 1);
    assert_eq!(read(700), before + 2);
    // The third page of a run is a sequential read.
    assert_eq!(read(701), before + 2 + 4);
}

#[test]
fn a_fault_reads_around_and_maps_what_is_cached() {
    let (vm, host, rules) = machine("6.1");
    let mapping = file(&vm, 200);
    let space = vm.with(|state| state.spaces.create());
    let region = mm::map(&vm, space, mapping);
    assert_eq!(mm::touch(&vm, &host, &rules, region, 100, false), Some(Touched::Major));
    assert_eq!(cached(&vm, mapping), (84..116).collect::<Vec<u32>>());
    // After the read the fault is tried again: it maps the aligned 16 but the marked page, 108.
    assert_eq!(vm.with(|state| state.spaces.region(region).resident), 15);
    assert_eq!(mm::touch(&vm, &host, &rules, region, 90, false), Some(Touched::Minor));
    assert_eq!(vm.with(|state| state.spaces.region(region).resident), 15 + 12);
}

#[test]
fn a_fault_that_reads_ahead_is_major_for_its_task_until_6_4() {
    for (release, expected) in [("5.8", 1), ("6.1", 7), ("6.12", 1)] {
        let (vm, host, rules) = machine(release);
        let mapping = file(&vm, 200);
        let space = vm.with(|state| state.spaces.create());
        let region = mm::map(&vm, space, mapping);
        let touched = (0..200).map(|page| mm::touch(&vm, &host, &rules, region, page, false));
        let majors = touched.filter(|touched| *touched == Some(Touched::Major)).count();
        // One miss, and the marked pages 24, 32, 64, 96, 128, 160.
        assert_eq!(majors, expected, "{release}");
        assert_eq!(vm.with(|state| state.counters.get(Counter::PgMajFault)), 1, "{release}");
    }
}

#[test]
fn a_clean_page_of_a_file_is_written_by_a_fault() {
    for (release, faults) in [("2.4.10", 1), ("6.1", 3)] {
        let (vm, host, rules) = machine(release);
        let mapping = file(&vm, 4);
        let space = vm.with(|state| state.spaces.create());
        let region = mm::map(&vm, space, mapping);
        mm::touch(&vm, &host, &rules, region, 0, false);
        mm::touch(&vm, &host, &rules, region, 0, true);
        mm::fsync(&vm, &host, &rules, mapping);
        mm::touch(&vm, &host, &rules, region, 0, true);
        assert_eq!(vm.with(|state| state.counters.get(Counter::PgFault)), faults, "{release}");
    }
}

/// A store to a page that is mapped and clean looks nothing up in the file: it is no hit of the read-ahead.
#[test]
fn a_store_to_a_mapped_page_is_no_hit() {
    for release in ["6.1", "6.12"] {
        let (vm, host, rules) = machine(release);
        let mapping = file(&vm, 4_000);
        let space = vm.with(|state| state.spaces.create());
        let region = mm::map(&vm, space, mapping);
        let misses = || vm.with(|state| state.spaces.region(region).ahead.misses);
        let pages = (0..110).map(|at| at * 33);
        pages.clone().for_each(|page| _ = mm::touch(&vm, &host, &rules, region, page, true));
        assert_eq!(misses(), 110, "{release}");
        mm::fsync(&vm, &host, &rules, mapping);
        let faults = |vm: &Vm| vm.with(|state| state.counters.get(Counter::PgFault));
        let before = faults(&vm);
        pages.for_each(|page| _ = mm::touch(&vm, &host, &rules, region, page, true));
        assert_eq!((faults(&vm) - before, misses()), (110, 110), "{release}");
        // So the next miss reads its page alone.
        let held = cached(&vm, mapping).len();
        mm::touch(&vm, &host, &rules, region, 3_800, true);
        assert_eq!(cached(&vm, mapping).len(), held + 1, "{release}");
    }
}

#[test]
fn writers_are_held_back_at_the_limit_of_their_release() {
    // A writer of 2.4 and of 2.6.29 writes itself, and goes on when its pages are under way: only the disk's
    // queue bounds these. In 6.1 the writer sleeps, and a flusher writes.
    for (release, percent) in [("2.4.10", 30), ("2.6.29", 10), ("6.1", 20)] {
        let (vm, host, rules) = machine(release);
        let mut open = OpenFile::new(file(&vm, 0));
        for page in 0..3000 {
            mm::write(&vm, &host, &rules, &mut open, page, 1, true).expect("memory");
            let in_flight = if release == "6.1" { vm.with(|state| state.dirty.writeback) } else { 0 };
            let dirty = vm.with(|state| state.dirty.file) + in_flight;
            // 2.6.29 looks every 128 pages of this machine.
            assert!(dirty <= u64::from(FRAMES * percent / 100 + 128), "{release}: {dirty} of page {page}");
            let has_flusher = release == "6.1" && page % 32 == 0;
            if has_flusher {
                mm::write_back(&vm, &host, &rules, Why::Background);
                host.settle(&vm);
            }
        }
        host.settle(&vm);
        assert!(vm.with(|state| state.counters.get(Counter::Written)) > 500, "{release}");
    }
}

#[test]
fn pages_of_tmpfs_count_in_no_dirty_limit() {
    for (tmpfs_counts_dirty, sleeps) in [(false, false), (true, true)] {
        let (vm, host, rules) = machine("2.6.29");
        let rules = Rules { tmpfs_counts_dirty, ..rules };
        let mut open = OpenFile::new(vm.with(|state| state.mappings.create(Kind::Tmpfs, 0)));
        let mut slept = false;
        for page in 0..FRAMES / 5 {
            slept |= mm::write(&vm, &host, &rules, &mut open, page, 1, true).expect("memory");
        }
        assert_eq!(slept, sleeps, "tmpfs counts: {tmpfs_counts_dirty}");
        assert_eq!(vm.with(|state| state.dirty.tmpfs), u64::from(FRAMES / 5));
    }
}

#[test]
fn writers_of_6_1_sleep_above_the_mean_of_both_limits() {
    let (vm, host, rules) = machine("6.1");
    let mut open = OpenFile::new(file(&vm, 0));
    let mut slept = |pages: std::ops::Range<u32>| {
        let waits = pages.filter(|page| {
            // A write that waited for no disk waited for its throttle.
            mm::write(&vm, &host, &rules, &mut open, *page, 1, true).expect("memory")
        });
        waits.count()
    };
    // 15 % of the frames above the high mark are 610 pages.
    assert_eq!(slept(0..600), 0);
    assert!(slept(600..700) > 0);
}

#[test]
fn a_child_keeps_contents_that_its_parent_copied() {
    let (vm, host, rules) = machine("6.1");
    let region = anon(&vm, 1);
    let parent = vm.with(|state| state.spaces.region(region).space);
    mm::touch(&vm, &host, &rules, region, 0, true);
    mm::store(&vm, region, 0, 7);
    let child = mm::fork(&vm, &host, parent).expect("memory");
    let copy = vm.with(|state| state.spaces.space(child).regions[0]);
    mm::touch(&vm, &host, &rules, region, 0, true);
    mm::store(&vm, region, 0, 8);
    assert_eq!((mm::load(&vm, region, 0), mm::load(&vm, copy, 0)), (8, 7));
    // A slot that the page kept may be older than it: the child's entry says so.
    assert!(vm.with(|state| state.spaces.region(copy).pte(0).is_dirty()));
}

/// Between two frames that an exit frees, another task reclaims: it must not meet a page that is gone.
#[test]
fn a_reclaimer_meets_no_page_of_an_exit() {
    for release in ["2.4.10", "2.6.29", "6.1", "6.12,lru_gen"] {
        let (vm, host, rules) = machine(release);
        let region = anon(&vm, 600);
        let space = vm.with(|state| state.spaces.region(region).space);
        for page in 0..600 {
            assert!(mm::touch(&vm, &host, &rules, region, page, true).is_some());
        }
        host.contend();
        mm::exit(&vm, &host, space);
        host.settle(&vm);
        vm.with(|state| state.check()).unwrap_or_else(|what| panic!("{release}: {what}"));
        // Pages that were being written stay in the swap cache until reclaim meets them.
        let flags = |frame| vm.with(|state| state.frames.flags(Frame(frame)));
        let left = (0..FRAMES).filter(|frame| flags(*frame).has(Flags::USED | Flags::SWAPCACHE)).count();
        assert_eq!(host.free_frames() + left, FRAMES as usize, "{release}");
    }
}

/// Touches pages of a region one by one, or by runs. Returns what they met.
fn touches(
    room: &(Vm, Instant, Rules),
    region: RegionId,
    pages: Range<u32>,
    write: bool,
    runs: bool,
) -> [u32; 3] {
    let (vm, host, rules) = room;
    let (mut met, mut left) = ([0; 3], pages);
    while !left.is_empty() {
        let (touched, pages) = match runs {
            true => mm::touch_run(vm, host, rules, region, left.clone(), write).expect("memory"),
            false => (mm::touch(vm, host, rules, region, left.start, write).expect("memory"), 1),
        };
        assert!(pages > 0);
        met[touched as usize] += pages;
        left.start += pages;
    }
    met
}

/// Hits that flush the TLB in the middle, first writes, first reads, pages in swap: pages, entries with their
/// accessed bits, counters, work and time are the same by runs.
#[test]
fn a_run_of_touches_is_each_of_its_touches() {
    for release in ["2.4.10", "2.6.29", "6.1", "6.12,lru_gen"] {
        let [single, runs] = [false, true].map(|runs| {
            let room = machine(release);
            let (vm, host, _) = &room;
            let (region, other) = (anon(vm, 1_500), anon(vm, 3_000));
            let mut met = vec![touches(&room, region, 0..1_200, true, runs)];
            for frame in (0..FRAMES).map(Frame) {
                vm.with(|state| {
                    if state.frames.mapped(frame) > 0 {
                        state.look(frame);
                    }
                });
            }
            met.push(touches(&room, region, 100..900, false, runs));
            met.push(touches(&room, region, 1_100..1_300, false, runs));
            met.push(touches(&room, other, 0..3_000, true, runs));
            met.push(touches(&room, region, 0..1_500, true, runs));
            let (ptes, counters) = vm.with(|state| {
                state.check().expect("all pages are counted");
                let ptes = [region, other].map(|id| {
                    let region = state.spaces.region(id);
                    (0..region.pages()).map(|page| region.pte(page)).collect::<Vec<_>>()
                });
                (ptes, state.counters.iter().collect::<Vec<_>>())
            });
            (met, ptes, counters, host.now(), host.free_frames())
        });
        assert_eq!(single, runs, "{release}");
        let met = single.0;
        // Each kind is there: by runs, too, most of them are of more than one page.
        assert!(met[0][Touched::Minor as usize] == 1_200 && met[1][Touched::Hit as usize] == 800, "{met:?}");
        assert!(met[4][Touched::Major as usize] > 0, "{release}: {met:?}");
    }
}
