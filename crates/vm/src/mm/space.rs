//! What takes memory away from tasks: unmap, exit, punch, truncate. And fork.

use super::fault;
use crate::frames::Flags;
use crate::host::Waited;
use crate::ids::{Frame, MappingId, RegionId, Slot, SpaceId};
use crate::mappings::Entry;
use crate::spaces::{Backing, Pte, TABLE};
use crate::state::State;
use crate::vm::{Host, Vm};
use std::ops::Range;

/// What [`punch`] makes holes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punched {
    /// Pages of a region (`MADV_DONTNEED`): anonymous contents are gone, pages of files are unmapped.
    Region(RegionId),
    /// Pages of a file (`MADV_REMOVE`): they are holes, also in page tables.
    Mapping(MappingId),
}

/// Takes an entry out of a region. Returns a frame whose page is gone with it.
fn zap(vm: &Vm, state: &mut State, region: RegionId, page: u32) -> Option<Frame> {
    let pte = state.spaces.region(region).pte(page);
    let Some(frame) = pte.frame() else {
        let slot = pte.slot();
        state.forget(region, page);
        return slot.and_then(|slot| drop_cached(state, slot));
    };
    state.unmap(region, page, Pte::NONE);
    if !state.frames.has(frame, Flags::ANON) {
        if pte.is_dirty() {
            state.set_dirty(frame);
        }
        if pte.is_accessed() {
            vm.policy.unmapped(state, frame);
        }
        return None;
    }
    if state.frames.mapped(frame) > 0 {
        return None;
    }
    match state.frames.slot(frame) {
        Some(slot) => drop_cached(state, slot),
        None => Some(frame),
    }
}

/// A slot lost a user: if nobody uses it and its page, the page leaves the swap cache. One that is read or
/// written stays there until reclaim meets it (`free_swap_and_cache`). Returns the frame.
fn drop_cached(state: &mut State, slot: Slot) -> Option<Frame> {
    let frame = state.swap.cached(slot).frame()?;
    let is_busy = state.frames.flags(frame).any(Flags::LOCKED | Flags::WRITEBACK);
    if is_busy || state.swap.users(slot) > 0 || state.frames.mapped(frame) > 0 {
        return None;
    }
    state.leave_swap_cache(frame, Entry::Absent);
    state.frames.clear(frame, Flags::DIRTY);
    Some(frame)
}

/// Takes pages out of a region, a page table at a time.
fn zap_range(vm: &Vm, host: &dyn Host, region: RegionId, pages: Range<u32>) {
    let mut from = pages.start;
    while from < pages.end {
        let end = ((from / TABLE + 1) * TABLE).min(pages.end);
        // All of them leave their lists at once: a reclaimer must not meet one while another is freed.
        let gone: Vec<Frame> = vm.with(|state| {
            let mut leaves = |page| {
                let frame = zap(vm, state, region, page)?;
                vm.policy.leave(state, frame);
                state.end(frame).then_some(frame)
            };
            (from..end).filter_map(&mut leaves).collect()
        });
        for frame in gone {
            host.free(vm, frame);
        }
        host.resched();
        from = end;
    }
}

/// Unmaps a region. Its page tables are freed.
pub fn unmap(vm: &Vm, host: &dyn Host, region: RegionId) {
    let pages = vm.with(|state| state.spaces.region(region).pages());
    zap_range(vm, host, region, 0..pages);
    let tables = vm.with(|state| {
        let old = state.spaces.region(region);
        let tables: Vec<Frame> = (0..pages.div_ceil(TABLE)).filter_map(|at| old.table(at)).collect();
        if let Backing::Mapping(mapping) = old.backing {
            state.mappings.get_mut(mapping).regions.retain(|other| *other != region);
        }
        state.spaces.remove(region);
        tables
    });
    for frame in tables {
        host.free(vm, frame);
    }
}

/// A space ends, with its regions.
pub fn exit(vm: &Vm, host: &dyn Host, space: SpaceId) {
    while let Some(region) = vm.with(|state| state.spaces.space(space).regions.first().copied()) {
        unmap(vm, host, region);
    }
    vm.with(|state| state.spaces.end(space));
}

/// Copies a space: anonymous pages are shared until one of the two writes; pages of files are mapped by later
/// faults. `None`: no memory; nothing is left of the copy (docs/theory/vm.md 2.3).
pub fn fork(vm: &Vm, host: &dyn Host, space: SpaceId) -> Option<SpaceId> {
    let child = vm.with(|state| {
        let child = state.spaces.create();
        state.spaces.space_mut(child).flush_every = state.spaces.space(space).flush_every;
        child
    });
    let regions = vm.with(|state| state.spaces.space(space).regions.clone());
    for region in regions {
        let (backing, pages) = vm.with(|state| {
            let region = state.spaces.region(region);
            (region.backing, region.pages())
        });
        let copy = vm.with(|state| {
            let copy = state.spaces.add(child, backing, pages);
            if let Backing::Mapping(mapping) = backing {
                state.mappings.get_mut(mapping).regions.push(copy);
            }
            copy
        });
        if matches!(backing, Backing::Anon(_)) && copy_region(vm, host, region, copy, pages).is_none() {
            exit(vm, host, child);
            return None;
        }
    }
    vm.with(|state| state.spaces.flush(space));
    Some(child)
}

fn copy_region(vm: &Vm, host: &dyn Host, from: RegionId, to: RegionId, pages: u32) -> Option<()> {
    for start in (0..pages).step_by(TABLE as usize) {
        if vm.with(|state| state.spaces.region(from).tables()[(start / TABLE) as usize] == 0) {
            continue;
        }
        fault::table(vm, host, to, start)?;
        vm.with(|state| {
            for page in start..(start + TABLE).min(pages) {
                copy_entry(state, from, to, page);
            }
        });
        host.resched();
    }
    Some(())
}

fn copy_entry(state: &mut State, from: RegionId, to: RegionId, page: u32) {
    let pte = state.spaces.region(from).pte(page);
    if let Some(slot) = pte.slot() {
        state.swap.hold(slot);
        state.spaces.region_mut(to).set(page, pte);
    } else if pte.frame().is_some() {
        let shared = pte.writable(false);
        state.spaces.region_mut(from).mark(page, shared);
        // Both entries stay dirty: each of the two may keep the page when the other has copied it.
        state.map(to, page, shared.accessed(false));
    } else if pte.is_zero() {
        state.spaces.region_mut(to).set(page, pte);
    }
}

/// Makes holes.
pub fn punch(vm: &Vm, host: &dyn Host, what: Punched, pages: Range<u32>) {
    match what {
        Punched::Region(region) => {
            let end = vm.with(|state| state.spaces.region(region).pages());
            zap_range(vm, host, region, pages.start..pages.end.min(end));
        }
        Punched::Mapping(mapping) => {
            let end = vm.with(|state| state.mappings.get(mapping).pages());
            for index in pages.start..pages.end.min(end) {
                remove(vm, host, mapping, index);
            }
        }
    }
}

/// Cuts a file to `pages` pages, or lengthens it by a hole.
pub fn truncate(vm: &Vm, host: &dyn Host, mapping: MappingId, pages: u32) {
    let end = vm.with(|state| state.mappings.get(mapping).pages());
    for index in pages..end {
        remove(vm, host, mapping, index);
    }
    vm.with(|state| state.mappings.get_mut(mapping).resize(pages));
}

/// Removes a file, which no region maps.
pub fn unlink(vm: &Vm, host: &dyn Host, mapping: MappingId) {
    truncate(vm, host, mapping, 0);
    vm.with(|state| state.mappings.end(mapping));
}

/// Takes a page out of a file, also where it is in swap or mapped.
fn remove(vm: &Vm, host: &dyn Host, id: MappingId, index: u32) {
    /// What to wait for, or what to free.
    enum Step {
        Wait(Frame, Waited),
        Free(Option<Frame>),
    }
    loop {
        let step = vm.with(|state| match state.mappings.get(id).entry(index) {
            Entry::Frame(frame) if state.frames.has(frame, Flags::LOCKED) => {
                Step::Wait(frame, Waited::Locked)
            }
            Entry::Frame(frame) if state.frames.has(frame, Flags::WRITEBACK) => {
                Step::Wait(frame, Waited::Writeback)
            }
            Entry::Frame(frame) => {
                let mappers: Vec<(RegionId, u32)> = state.mappers(frame).collect();
                for (region, page) in mappers {
                    state.unmap(region, page, Pte::NONE);
                }
                state.leave_mapping(frame, Entry::Absent);
                Step::Free(Some(frame))
            }
            Entry::Slot(slot) => {
                state.mappings.get_mut(id).set(index, Entry::Absent);
                state.swap.drop_user(slot);
                Step::Free(drop_cached(state, slot))
            }
            Entry::Absent => Step::Free(None),
            Entry::Shadow(_) => {
                state.mappings.get_mut(id).set(index, Entry::Absent);
                Step::Free(None)
            }
        });
        match step {
            Step::Wait(frame, waited) => host.wait(vm, frame, waited),
            Step::Free(frame) => {
                vm.with(|state| state.mappings.get_mut(id).store(index, 0));
                if let Some(frame) = frame {
                    vm.release(host, frame);
                }
                return;
            }
        }
    }
}
