//! Reads from swap, and which neighbours come with one.

use super::fault::{Fault, give_slot_up};
use super::{Rules, SwapReadAhead};
use crate::ahead::SwapAhead;
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Io, Place, Purpose, Waited};
use crate::ids::{Frame, RegionId, Slot};
use crate::mappings::Entry;
use crate::replacement::Enter;
use crate::spaces::{Backing, Pte, TABLE};
use crate::state::State;
use crate::vm::{Host, Vm};

/// The owner of a frame in the swap cache that nobody has claimed since it was read.
const UNCLAIMED: u32 = u32::MAX;
/// Hits that a region can count: 6 bits (from memory).
const REGION_HITS: u32 = 63;

/// What a look into the swap cache found.
pub(super) enum Looked {
    /// The slot's page is in this frame, and can be used.
    Ready(Frame),
    /// Somebody reads it.
    Locked(Frame),
    /// It is not in the swap cache.
    Absent,
}

/// Serves a fault on a page in swap. One step: the caller looks again.
pub(super) fn fault(fault: &mut Fault<'_>, slot: Slot) -> Option<()> {
    let Fault { vm, host, rules, region, page, .. } = *fault;
    let looked = vm.with(|state| {
        if state.spaces.region(region).pte(page).slot() != Some(slot) {
            return None;
        }
        let looked = look_up(vm, state, slot, Some((region, page)), rules);
        if let Looked::Ready(frame) = looked {
            map(fault, state, slot, frame);
        }
        Some(looked)
    });
    match looked {
        None | Some(Looked::Ready(_)) => {}
        Some(Looked::Locked(frame)) => {
            host.wait(vm, frame, Waited::Locked);
            fault.retried = true;
        }
        Some(Looked::Absent) => {
            read(vm, host, rules, Some((region, page)), Flags::FAULT, slot)?;
            fault.major = true;
        }
    }
    Some(())
}

/// Looks for a slot's page in the swap cache, and counts a hit of read-ahead. `at`: the page that faults, if
/// it is anonymous.
pub(super) fn look_up(
    vm: &Vm,
    state: &mut State,
    slot: Slot,
    at: Option<(RegionId, u32)>,
    rules: &Rules,
) -> Looked {
    let Entry::Frame(frame) = state.swap.cached(slot) else { return Looked::Absent };
    let is_hit = state.frames.clear(frame, Flags::READAHEAD).any(Flags::READAHEAD);
    if is_hit {
        state.count(Counter::SwapRaHit);
    }
    match (rules.swap_read_ahead, at) {
        // A region's cursor follows its faults, also those that find their page (from memory).
        (SwapReadAhead::Region, Some((region, page))) => {
            let ahead = &mut state.spaces.region_mut(region).swap_ahead;
            (ahead.previous, ahead.hits) = (page, (ahead.hits + u32::from(is_hit)).min(REGION_HITS));
        }
        _ => state.swap.ahead.hits += u32::from(is_hit),
    }
    vm.policy.found(state, frame);
    if state.frames.has(frame, Flags::LOCKED) { Looked::Locked(frame) } else { Looked::Ready(frame) }
}

/// Maps a frame of the swap cache in the place of its slot (docs/theory/vm.md 2.4).
fn map(fault: &Fault<'_>, state: &mut State, slot: Slot, frame: Frame) {
    let Fault { vm, rules, region, page, write, .. } = *fault;
    let Backing::Anon(family) = state.spaces.region(region).backing else { unreachable!() };
    state.frames.give(frame, family, page);
    state.frames.set(frame, Flags::ANON);
    let is_exclusive = state.frames.mapped(frame) == 0 && state.swap.users(slot) == 1;
    let may_write = is_exclusive && (write || rules.swap_in_writable);
    let pte = Pte::map(frame, may_write).accessed(true).dirty(is_exclusive && write);
    state.map(region, page, pte);
    if !vm.policy.keeps_slot(state, write) {
        give_slot_up(vm, state, frame);
    }
    vm.policy.fault(state, frame);
}

/// Reads a slot, with its neighbours; the read may be under way when this returns. `at`: the page that
/// faults, if it is anonymous. `fault`: [`Flags::FAULT`] if a fault asks. `None`: no memory.
pub(super) fn read(
    vm: &Vm,
    host: &dyn Host,
    rules: &Rules,
    at: Option<(RegionId, u32)>,
    fault: Flags,
    slot: Slot,
) -> Option<()> {
    let slots = vm.with(|state| match (rules.swap_read_ahead, at) {
        (SwapReadAhead::Block, _) => block(state, slot),
        (SwapReadAhead::Run, _) => run(state, slot),
        (SwapReadAhead::Region, Some((region, page))) => around(state, region, page, slot),
        (SwapReadAhead::Window | SwapReadAhead::Region, _) => window(state, slot),
    });
    let mut batch = Batch { fault, ..Batch::default() };
    for neighbour in slots {
        let how = if neighbour == slot { Enter::SwapIn } else { Enter::SwapAhead };
        if batch.bring(vm, host, neighbour, how).is_none() {
            break;
        }
    }
    // The wanted slot may be beyond what read-ahead brings.
    let got = batch.bring(vm, host, slot, Enter::SwapIn);
    batch.submit(vm, host);
    got
}

/// Slots of which the kernel's numbers are one higher: its first slot holds the header of the area.
fn aligned(slot: Slot, pages: u32) -> std::ops::Range<u32> {
    let start = (slot + 1) & !(pages - 1);
    start.max(1) - 1..start + pages - 1
}

/// 2.4: the aligned block up to its first free slot (docs/theory/vm.md 2.5).
fn block(state: &State, slot: Slot) -> Vec<Slot> {
    let pages = 1 << state.settings.page_cluster;
    aligned(slot, pages).take_while(|slot| is_taken(state, *slot)).collect()
}

/// 2.6.29: the used slots around the wanted one, within the aligned block (docs/theory/vm.md 2.5).
fn run(state: &State, slot: Slot) -> Vec<Slot> {
    let block = aligned(slot, 1 << state.settings.page_cluster);
    let before = (block.start..slot).rev().take_while(|slot| is_taken(state, *slot)).count() as u32;
    let after = (slot..block.end).take_while(|slot| is_taken(state, *slot)).count() as u32;
    (slot - before..slot + after).collect()
}

/// 6.x: the used slots of an aligned block, whose size follows the hits (docs/theory/vm.md 2.5).
fn window(state: &mut State, slot: Slot) -> Vec<Slot> {
    let most = 1 << state.settings.page_cluster;
    let ahead = &mut state.swap.ahead;
    let pages = window_pages(ahead, slot, most);
    if ahead.hits == 0 {
        ahead.previous = slot;
    }
    (ahead.hits, ahead.window) = (0, pages);
    aligned(slot, pages).filter(|slot| is_taken(state, *slot)).collect()
}

/// 6.x, without a rotating disk: the pages around the fault in its region and page table
/// (docs/theory/vm.md 2.5).
fn around(state: &mut State, region: RegionId, page: u32, slot: Slot) -> Vec<Slot> {
    let most = 1 << state.settings.page_cluster.min(5);
    let region = state.spaces.region_mut(region);
    let last = region.swap_ahead;
    let pages = window_pages(&last, page, most);
    region.swap_ahead = SwapAhead { previous: page, window: pages, hits: 0 };
    // How many of the pages lie before the fault.
    let before = if page == last.previous + 1 {
        0
    } else if page + 1 == last.previous {
        pages - 1
    } else {
        (pages - 1) / 2
    };
    let table = page / TABLE * TABLE;
    let end = (page + pages - before).min(region.pages()).min(table + TABLE);
    let slots = (page.saturating_sub(before).max(table)..end).filter_map(|page| region.pte(page).slot());
    if pages == 1 { vec![slot] } else { slots.collect() }
}

/// Pages of the next window (`swapin_nr_pages`, from memory): 2 more than the hits of the last one, as a
/// power of two; one without hits, unless the reads follow each other; and at least half of the last
/// (docs/theory/vm.md 2.5).
fn window_pages(ahead: &SwapAhead, at: u32, most: u32) -> u32 {
    let pages = match ahead.hits {
        0 if at != ahead.previous + 1 && at + 1 != ahead.previous => 1,
        0 => 2,
        hits => (hits + 2).next_power_of_two(),
    };
    pages.min(most).max(ahead.window / 2).min(most)
}

fn is_taken(state: &State, slot: Slot) -> bool {
    slot < state.swap.slots() && state.swap.is_used(slot)
}

/// Frames that will be read from slots that follow each other. They are locked.
#[derive(Default)]
struct Batch {
    first: Slot,
    frames: Vec<Frame>,
    /// Somebody waits for one of them.
    wanted: bool,
    /// [`Flags::FAULT`] if a fault asks.
    fault: Flags,
}

impl Batch {
    /// Puts a frame for a slot into the swap cache, if none is there and the slot is still used. `None`: no
    /// memory.
    fn bring(&mut self, vm: &Vm, host: &dyn Host, slot: Slot, how: Enter) -> Option<()> {
        let needs = |state: &State| state.swap.users(slot) > 0 && state.swap.cached(slot).frame().is_none();
        if !vm.with(|state| needs(state)) {
            return Some(());
        }
        let frame = host.alloc(vm, Purpose::SwapIn)?;
        let is_used = vm.with(|state| {
            let is_needed = needs(state);
            if is_needed {
                enter(vm, state, frame, slot, how, self.fault);
            }
            is_needed
        });
        if !is_used {
            host.free(vm, frame);
            return Some(());
        }
        if self.first + self.frames.len() as u32 != slot {
            self.submit(vm, host);
            self.first = slot;
        }
        self.wanted |= how == Enter::SwapIn;
        self.frames.push(frame);
        Some(())
    }

    fn submit(&mut self, vm: &Vm, host: &dyn Host) {
        let frames = std::mem::take(&mut self.frames);
        let sync = std::mem::take(&mut self.wanted);
        if !frames.is_empty() {
            let place = Place::Swap(self.first);
            vm.submit(host, Io { place, frames: &frames, write: false, sync, reclaim: false });
        }
    }
}

fn enter(vm: &Vm, state: &mut State, frame: Frame, slot: Slot, how: Enter, fault: Flags) {
    let shadow = match state.swap.cached(slot) {
        Entry::Shadow(shadow) => Some(shadow),
        _ => None,
    };
    state.frames.begin(frame, UNCLAIMED, slot, Flags::SWAPBACKED | Flags::LOCKED | fault);
    state.enter_swap_cache(frame, slot);
    if how == Enter::SwapAhead {
        state.frames.set(frame, Flags::READAHEAD);
        state.count(Counter::SwapRa);
    }
    vm.policy.enter(state, frame, how, shadow);
}
