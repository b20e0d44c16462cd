//! What tasks do to memory: touch, map, read, write, fork, exit; and what a flusher writes.
//!
//! ```text
//! touch ── hit
//!       └─ fault: fresh page | copy of a shared one | swap-in, with read-ahead | page of a file or of tmpfs
//! read, write ── page cache ── read-ahead            balance_dirty ── write_back, or the host's throttle
//! ```
//!
//! Each function is straight code over ([`Vm`], [`Host`]): a task of the host runs it. Every call of the
//! host may suspend the task. So code after it looks again: a loop finds where the page is, takes one
//! step, and begins anew until the page is there. Rules: docs/theory/vm.md 2.
//!
//! `None` from a function means: no memory, after the OOM killer.

mod buffers;
mod cache;
mod dirty;
mod fault;
mod limits;
mod open;
mod readahead;
mod rules;
mod serve;
mod space;
mod swapin;
mod tmpfs;
mod writeback;

pub use cache::{read, write};
pub use dirty::balance_dirty;
pub use open::{OpenFile, lend_ahead};
pub use readahead::read_group;
pub use rules::{DirtyRule, ReadAheadRule, Rules, SwapReadAhead};
pub use space::{Punched, exit, fork, punch, truncate, unlink, unmap};
pub use writeback::{Why, drop_pagecache, fsync, invalidate, sync, write_back};

use crate::frames::Flags;
use crate::ids::{Frame, MappingId, RegionId, SpaceId};
use crate::spaces::Backing;
use crate::state::State;
use crate::vm::{Host, Vm};
use std::ops::Range;

/// What a touch met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// The entry was there.
    Hit,
    /// A fault that started no read.
    Minor,
    /// A fault that started a read and waited for it.
    Major,
}

/// The program loads from a page of a region, or stores to it. `None`: no memory.
///
/// # Panics
/// The region has no such page, or its file was truncated before it.
#[inline]
pub fn touch(
    vm: &Vm,
    host: &dyn Host,
    rules: &Rules,
    region: RegionId,
    page: u32,
    write: bool,
) -> Option<Touched> {
    if access(vm, region, page, write) {
        return Some(Touched::Hit);
    }
    serve::fault(vm, host, rules, region, page, write)
}

/// The program accesses pages of a region one after the other, as long as their entries allow it: as
/// [`touch`] of each, as one step. Returns how many of the pages did; the next one is a fault.
///
/// # Panics
/// The region has no such page.
#[inline]
pub fn touch_present(vm: &Vm, region: RegionId, pages: impl IntoIterator<Item = u32>, write: bool) -> u32 {
    vm.with(|state| state.spaces.access_run(region, pages, write))
}

/// The program accesses pages of a region one after the other, as long as they meet the same as the first: as
/// [`touch`] of each, as one step. Returns what they met and how many they were, at least one. `None`: no
/// memory for one of them.
///
/// # Panics
/// No pages; the region has no such page, or its file was truncated before it.
pub fn touch_run(
    vm: &Vm,
    host: &dyn Host,
    rules: &Rules,
    region: RegionId,
    pages: Range<u32>,
    write: bool,
) -> Option<(Touched, u32)> {
    assert!(!pages.is_empty(), "a run of no pages");
    let hits = touch_present(vm, region, pages.clone(), write);
    if hits > 0 {
        return Some((Touched::Hit, hits));
    }
    let fresh = if write { serve::fresh_run(vm, host, rules, region, pages.clone())? } else { 0 };
    if fresh > 0 {
        return Some((Touched::Minor, fresh));
    }
    Some((serve::fault(vm, host, rules, region, pages.start, write)?, 1))
}

/// The processor accesses a page. Returns whether the entry allows it.
#[inline]
fn access(vm: &Vm, region: RegionId, page: u32, write: bool) -> bool {
    vm.with(|state| state.spaces.access(region, page, write))
}

/// The contents of a page that was touched just before; 0 if it maps the page of zeros.
///
/// # Panics
/// The page is not mapped.
pub fn load(vm: &Vm, region: RegionId, page: u32) -> u32 {
    vm.with(|state| {
        let pte = state.spaces.region(region).pte(page);
        assert!(pte.is_zero() || pte.frame().is_some(), "page {page} of {region:?} is not mapped: {pte:?}");
        pte.frame().map_or(0, |frame| state.frames.content(frame))
    })
}

/// Changes the contents of a page that was touched for a write just before.
///
/// # Panics
/// The entry does not allow it.
pub fn store(vm: &Vm, region: RegionId, page: u32, content: u32) {
    vm.with(|state| {
        let pte = state.spaces.region(region).pte(page);
        let frame = pte.frame().filter(|_| pte.is_writable() && pte.is_dirty());
        let frame = frame.unwrap_or_else(|| panic!("page {page} of {region:?} was not written: {pte:?}"));
        state.frames.set_content(frame, content);
    });
}

/// Maps new anonymous memory at the end of a space.
pub fn anon(vm: &Vm, space: SpaceId, pages: u32) -> RegionId {
    vm.with(|state| {
        let family = state.spaces.family();
        state.spaces.add(space, Backing::Anon(family), pages)
    })
}

/// Maps a file at the end of a space, shared, from its first page to its last.
pub fn map(vm: &Vm, space: SpaceId, mapping: MappingId) -> RegionId {
    let pages = vm.with(|state| state.mappings.get(mapping).pages());
    map_first(vm, space, mapping, pages)
}

/// Maps the first pages of a file at the end of a space, shared.
pub fn map_first(vm: &Vm, space: SpaceId, mapping: MappingId, pages: u32) -> RegionId {
    vm.with(|state| {
        let region = state.spaces.add(space, Backing::Mapping(mapping), pages);
        state.mappings.get_mut(mapping).regions.push(region);
        region
    })
}

/// A page of a file is newer than the disk: notes when, for the first dirty page of the file.
fn mark_dirty(state: &mut State, frame: Frame, now: u64) {
    state.flush.tick(now);
    if state.frames.has(frame, Flags::ANON) || !state.set_dirty(frame) {
        return;
    }
    let mapping = state.mappings.get_mut(MappingId(state.frames.owner(frame)));
    if mapping.dirtied == 1 {
        mapping.dirtied_at = now;
    }
}
