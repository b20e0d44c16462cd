//! Swap: which slot a page gets, and which neighbours a read brings, by era.

use slablab_vm::instant::Instant;
use slablab_vm::mm::{self, Rules, SwapReadAhead, Touched};
use slablab_vm::swap::SlotRule;
use slablab_vm::{Entry, Flags, Frame, Preset, RegionId, State, Swap, Vm, Zone};
use std::collections::BTreeSet;

/// A machine of 256 frames with one region of 128 anonymous pages.
struct Machine {
    vm: Vm,
    host: Instant,
    rules: Rules,
    region: RegionId,
}

impl Machine {
    fn new(preset: &str, slots: u32, rule: SlotRule) -> Machine {
        let preset = Preset::parse(preset).expect("a preset");
        let [major, minor, patch] = preset.kernel;
        let policy = preset.policy();
        let zone = Zone { name: "Normal", node: 0, class: 0, frames: 0..256, managed: 256 };
        let state = State::new(vec![zone], Swap::new(slots, rule), policy.lists(1, 1), preset.settings);
        let vm = Vm::new(state, policy);
        let space = vm.with(|state| state.spaces.create());
        let region = mm::anon(&vm, space, 128);
        let host = Instant::new(256, [0; 3], 0);
        Machine { vm, host, rules: Rules::of(major, minor, patch), region }
    }

    fn touch(&self, page: u32, write: bool) -> Touched {
        mm::touch(&self.vm, &self.host, &self.rules, self.region, page, write).expect("memory")
    }

    fn frame(&self, page: u32) -> Frame {
        self.vm.with(|state| state.spaces.region(self.region).pte(page).frame()).expect("mapped")
    }

    /// Evicts a page that was written, to the next slot.
    fn swap_out(&self, page: u32) {
        let frame = self.frame(page);
        self.vm.with(|state| {
            if !state.frames.has(frame, Flags::SWAPCACHE) {
                state.add_to_swap(frame).expect("a slot");
            }
            state.unmap_all(frame);
            state.clear_dirty(frame);
            state.leave_swap_cache(frame, Entry::Absent);
        });
        self.vm.release(&self.host, frame);
    }

    fn is_cached(&self, slot: u32) -> bool {
        self.vm.with(|state| state.swap.cached(slot).frame().is_some())
    }

    fn check(&self) {
        self.vm.with(|state| state.check()).expect("every page is in one place");
    }
}

/// Pages 0 to 63 go to the slots of their numbers, but those of `holes`, which no slot has afterwards. Then
/// pages are loaded, in their order, and bring the slots of each row.
#[track_caller]
fn brings(preset: &str, by: Option<SwapReadAhead>, holes: &[u32], loads: &[(u32, &[u32])]) {
    let mut machine = Machine::new(preset, 128, SlotRule::Next);
    machine.rules.swap_read_ahead = by.unwrap_or(machine.rules.swap_read_ahead);
    for page in 0..64 {
        machine.touch(page, true);
        machine.swap_out(page);
    }
    holes.iter().for_each(|page| machine.vm.with(|state| state.forget(machine.region, *page)));
    for (page, expected) in loads {
        let cached = || (0..64).filter(|slot| machine.is_cached(*slot)).collect::<BTreeSet<u32>>();
        let before = cached();
        machine.touch(*page, false);
        let brought: Vec<u32> = cached().difference(&before).copied().collect();
        assert_eq!(&brought, expected, "{preset} {by:?} without {holes:?}: page {page} of {loads:?}");
        machine.check();
    }
}

/// The kernel's first slot is a header, so the aligned blocks of 8 begin with slots 0 (of 7), 7, 15, ...
#[test]
fn a_read_brings_an_aligned_block_before_3_14() {
    // Up to the first free slot from the block's start on, and the wanted one.
    let old = "vm@2.4.8,page_cluster=3";
    brings(old, None, &[], &[(10, &[7, 8, 9, 10, 11, 12, 13, 14]), (2, &[0, 1, 2, 3, 4, 5, 6])]);
    brings(old, None, &[12], &[(10, &[7, 8, 9, 10, 11])]);
    brings(old, None, &[8], &[(10, &[7, 10])]);
    // The used ones around the wanted one.
    brings("vm@2.6.29", None, &[], &[(10, &[7, 8, 9, 10, 11, 12, 13, 14]), (2, &[0, 1, 2, 3, 4, 5, 6])]);
    brings("vm@2.6.29", None, &[8, 13], &[(11, &[9, 10, 11, 12])]);
    brings("vm@2.6.29,page_cluster=0", None, &[], &[(10, &[10])]);
}

#[test]
fn a_window_follows_the_hits_since_3_14() {
    // The first one counts four hits. Its pages that are used later are hits: 3 + 2 make 8 pages again.
    let first: &[u32] = &[7, 8, 9, 10, 11, 12, 13, 14];
    let rest: &[u32] = &[23, 24, 25, 26, 27, 28, 29, 30];
    brings("vm@6.1", None, &[], &[(10, first), (7, &[]), (8, &[]), (9, &[]), (24, rest)]);
    // One hit: 4 pages. None: 2, half of the last ones, then 1.
    let falls: [(u32, &[u32]); 5] =
        [(10, first), (8, &[]), (24, &[23, 24, 25, 26]), (40, &[39, 40]), (50, &[50])];
    brings("vm@6.1", None, &[], &falls);
    // Reads that follow each other bring 2 without hits. Free slots of the block are left out.
    brings("vm@6.1", None, &[12], &[(10, &[7, 8, 9, 10, 11, 13, 14]), (20, &[19, 20, 21, 22])]);
    let follows: [(u32, &[u32]); 6] =
        [(10, first), (20, &[19, 20, 21, 22]), (40, &[39, 40]), (50, &[50]), (51, &[51, 52]), (30, &[30])];
    brings("vm@6.1", None, &[], &follows);
}

#[test]
fn without_a_rotating_disk_a_window_lies_around_the_fault_in_its_region() {
    let by = Some(SwapReadAhead::Region);
    // 3 before, 4 after.
    brings("vm@6.1", by, &[], &[(10, &[7, 8, 9, 10, 11, 12, 13, 14])]);
    // The region ends the window, and does not move it.
    brings("vm@6.1", by, &[], &[(1, &[0, 1, 2, 3, 4, 5])]);
    // Without hits half of the last window, with the fault in its middle; two pages from the fault on, or
    // back from it, if it follows the last one.
    let falls: [(u32, &[u32]); 3] =
        [(20, &[17, 18, 19, 20, 21, 22, 23, 24]), (40, &[39, 40, 41, 42]), (60, &[60, 61])];
    let then = |last: (u32, &'static [u32])| brings("vm@6.1", by, &[], &[&falls[..], &[last]].concat());
    then((59, &[58, 59]));
    then((62, &[62]));
    brings("vm@6.1", by, &[61], &[(60, &[57, 58, 59, 60, 62, 63]), (50, &[49, 50, 51, 52])]);
}

/// Slots by the words of the notes: a set of free ones, and what is left of a run of 256.
struct Plain {
    free: BTreeSet<u32>,
    next: u32,
    left: u32,
}

impl Plain {
    fn take(&mut self, rule: SlotRule) -> Option<u32> {
        let lowest = *self.free.first()?;
        if rule == SlotRule::Clusters {
            if self.left == 0 {
                let is_run = |start: &&u32| self.free.range(**start..**start + 256).count() == 256;
                (self.next, self.left) = (self.free.iter().find(is_run).copied().unwrap_or(lowest), 256);
            }
            self.left -= 1;
        }
        let slot = self.free.range(self.next..).next().copied().unwrap_or(lowest);
        self.free.remove(&slot);
        self.next = slot + 1;
        Some(slot)
    }
}

#[test]
fn slots_are_those_of_a_plain_search() {
    let mut seed = 11_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for rule in [SlotRule::Clusters, SlotRule::Next] {
        let mut swap = Swap::new(1_500, rule);
        let mut plain = Plain { free: (0..1_500).collect(), next: 0, left: 0 };
        let (mut held, mut runs, mut was_full) = (Vec::new(), 0, false);
        for step in 0..20_000 {
            // Swap fills, empties and fills again; what goes are single slots, or a row of them.
            let fills = step / 2_000 % 2 == 0;
            if random(10) < if fills { 9 } else { 2 } {
                let slot = swap.take(Frame(7));
                assert_eq!(slot, plain.take(rule), "{rule:?} step {step}");
                runs += u32::from(slot.is_some() && plain.left == 255);
                held.extend(slot);
            } else if !held.is_empty() {
                held.sort_unstable();
                let at = random(held.len());
                let gone = if fills { 1 } else { (held.len() - at).min(random(40) + 1) };
                for slot in held.drain(at..at + gone) {
                    assert!(swap.leave_cache(slot, Entry::Absent));
                    plain.free.insert(slot);
                }
            }
            assert_eq!(swap.free() as usize, plain.free.len());
            was_full |= swap.free() == 0;
        }
        assert!(was_full);
        assert_eq!(runs > 10, rule == SlotRule::Clusters, "{runs}");
    }
}

/// So many of 16 slots are held by pages that were read back; the last one is free. The slot of the next page
/// that is evicted, and how many pages have a slot after that.
fn next_slot(mapped: u32, rule: fn(&mut State, Frame) -> Option<u32>) -> (u32, usize) {
    let machine = Machine::new("vm@6.1", 16, SlotRule::Next);
    (0..17).for_each(|page| _ = machine.touch(page, true));
    machine.vm.with(|state| {
        for page in 0..16 {
            let frame = state.spaces.region(machine.region).pte(page).frame().expect("mapped");
            state.add_to_swap(frame).expect("a slot");
        }
    });
    for page in mapped..15 {
        machine.swap_out(page);
    }
    let last = machine.frame(15);
    machine.vm.with(|state| state.leave_swap_cache(last, Entry::Absent));
    let frame = machine.frame(16);
    let slot = machine.vm.with(|state| rule(state, frame)).expect("a slot");
    machine.check();
    (slot, (0..16).filter(|slot| machine.is_cached(*slot)).count())
}

#[test]
fn a_search_in_a_full_swap_takes_slots_that_only_the_cache_holds() {
    // The search goes round from the end: the first slot is held by a page that is in memory.
    assert_eq!(next_slot(15, State::add_to_swap_or_reuse), (0, 15));
    assert_eq!(next_slot(1, State::add_to_swap_or_reuse), (0, 1));
    // 2.4 takes free slots only, and a slot that a page table has stays.
    assert_eq!(next_slot(15, State::add_to_swap), (15, 16));
    assert_eq!(next_slot(0, State::add_to_swap_or_reuse), (15, 1));
}

#[test]
fn a_slot_of_a_busy_page_is_left() {
    for (flag, expected) in
        [(Flags::default(), 0), (Flags::LOCKED, 1), (Flags::WRITEBACK, 1), (Flags::ISOLATED, 1)]
    {
        let machine = Machine::new("vm@6.1", 20, SlotRule::Next);
        (0..21).for_each(|page| _ = machine.touch(page, true));
        let frames: Vec<Frame> = (0..21).map(|page| machine.frame(page)).collect();
        machine.vm.with(|state| {
            frames[..20].iter().for_each(|frame| _ = state.add_to_swap(*frame).expect("a slot"));
            state.leave_swap_cache(frames[19], Entry::Absent);
            state.clear_dirty(frames[0]);
            state.frames.set(frames[0], flag);
            assert_eq!(state.add_to_swap_or_reuse(frames[20]), Some(expected), "{flag:?}");
            let flags = state.frames.flags(frames[0]);
            // A page that gave its slot up will be written to another one.
            assert_eq!(flags.has(Flags::SWAPCACHE), expected != 0);
            assert_eq!(flags.has(Flags::DIRTY), expected == 0);
        });
    }
}

#[test]
fn a_half_empty_swap_gives_free_slots_only() {
    for (free, expected) in [(4, (4, None)), (3, (0, Some(Frame(0))))] {
        let mut swap = Swap::new(8, SlotRule::Next);
        (0..8).for_each(|frame| _ = swap.take(Frame(frame)));
        (8 - free..8).for_each(|slot| assert!(swap.leave_cache(slot, Entry::Absent)));
        assert_eq!(swap.take_from(Frame(9), |_| true), Some(expected), "{free}");
        assert_eq!(swap.used(), 8 - free + u32::from(free == 4));
    }
}
