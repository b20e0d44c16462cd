//! Dirty pages of files: who writes them when.
//!
//! ```text
//! 2.4      writer, bdflush   the oldest dirty pages of all files, 32 at a time
//!          kupdate           those of them that became dirty before `dirty_expire`
//! later    flusher           file by file, each in the order of its pages
//! ```

use super::limits::Limits;
use super::{DirtyRule, Rules};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Io, Place, Waited};
use crate::ids::{Frame, MappingId};
use crate::mappings::{Entry, Kind};
use crate::state::State;
use crate::vm::{Host, Vm};

/// Why a flusher writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Until fewer pages are dirty than the background limit.
    Background,
    /// Files whose first dirty page is older than [`crate::Settings::dirty_expire`]; 2.4: such pages.
    Old,
    /// So many pages.
    Pages(u64),
}

/// Pages of one request of write-back.
const REQUEST: usize = 256;
/// Pages that a flusher writes of a file before it looks at the next one.
const ROUND: u64 = 1024;
/// Pages of a batch of bdflush and kupdate (2.4).
const BATCH: u64 = 32;

/// Writes dirty pages of files: what a flusher does. Returns how many (docs/theory/vm.md 2.13).
pub fn write_back(vm: &Vm, host: &dyn Host, rules: &Rules, why: Why) -> u64 {
    if rules.dirty == DirtyRule::Buffers {
        return write_buffers(vm, host, rules, why);
    }
    match why {
        Why::Pages(pages) => write_pages(vm, host, rules, pages),
        Why::Old => write_old(vm, host, rules),
        Why::Background => write_background(vm, host, rules),
    }
}

fn write_pages(vm: &Vm, host: &dyn Host, rules: &Rules, pages: u64) -> u64 {
    let mut written = 0;
    for mapping in dirty_mappings(vm) {
        if written == pages {
            break;
        }
        written += write_mapping(vm, host, rules, mapping, pages - written, false);
    }
    written
}

fn write_old(vm: &Vm, host: &dyn Host, rules: &Rules) -> u64 {
    let (now, old) = (host.now(), vm.with(|state| state.settings.dirty_expire));
    let mut written = 0;
    for id in dirty_mappings(vm) {
        let at = vm.with(|state| state.mappings.exists(id).then(|| state.mappings.get(id).dirtied_at));
        if at.is_none_or(|at| !is_old(at, old, now)) {
            continue;
        }
        written += write_mapping(vm, host, rules, id, u64::MAX, false);
        vm.with(|state| {
            // What is dirty now became so meanwhile.
            if state.mappings.exists(id) {
                state.mappings.get_mut(id).dirtied_at = now;
            }
        });
    }
    written
}

/// Whether a file's first dirty page became dirty so long ago that the flusher writes it
/// (docs/theory/vm.md 2.13).
fn is_old(dirtied_at: u64, expire: u64, now: u64) -> bool {
    dirtied_at + expire <= now
}

fn write_background(vm: &Vm, host: &dyn Host, rules: &Rules) -> u64 {
    let mut written = 0;
    loop {
        let before = written;
        for mapping in dirty_mappings(vm) {
            if !is_over(vm, host, rules) {
                return written;
            }
            written += write_mapping(vm, host, rules, mapping, ROUND, false);
            host.resched();
        }
        if written == before {
            return written;
        }
    }
}

/// More pages are dirty than the background limit.
fn is_over(vm: &Vm, host: &dyn Host, rules: &Rules) -> bool {
    let background = Limits::of(vm, host, rules).background;
    vm.with(|state| state.dirty.file) > background
}

/// Keeps dirty pages in the order in which they become dirty, from now on. Those of before have that of
/// their files.
pub(super) fn keep_order(vm: &Vm) {
    vm.with(|state| {
        if state.flush.is_on() {
            return;
        }
        let files = state.mappings.iter().filter(|(_, file)| file.dirtied > 0);
        let pages = files.flat_map(|(id, file)| {
            let next = |index: &u32| file.next_dirty(index + 1);
            std::iter::successors(file.next_dirty(0), next).map(move |index| (id, index))
        });
        let pages = pages.collect();
        state.flush.start(pages);
    });
}

/// 2.4: batches of the oldest dirty pages. bdflush looks at the limit after a batch: who wakes it gets one at
/// least; at the end it waits for a write. kupdate goes on while the oldest page is old enough
/// (docs/theory/vm.md 2.13).
fn write_buffers(vm: &Vm, host: &dyn Host, rules: &Rules, why: Why) -> u64 {
    keep_order(vm);
    let age = vm.with(|state| state.settings.dirty_expire);
    let until = if why == Why::Old { host.now().checked_sub(age) } else { Some(u64::MAX) };
    let Some(until) = until else { return 0 };
    let mut written = 0;
    loop {
        let most = if let Why::Pages(pages) = why { pages } else { BATCH };
        let batch = write_oldest(vm, host, rules, most, until);
        written += batch;
        let goes_on = match why {
            Why::Pages(_) => return written,
            Why::Old => true,
            Why::Background => is_over(vm, host, rules),
        };
        if batch == 0 || !goes_on {
            break;
        }
        host.resched();
    }
    if why == Why::Background {
        wait_for_oldest(vm, host);
    }
    written
}

/// Writes at most `most` dirty pages, the oldest first, that became dirty at `until` or before. Pages that
/// are locked or written are left out. Returns how many.
fn write_oldest(vm: &Vm, host: &dyn Host, rules: &Rules, most: u64, until: u64) -> u64 {
    let (mut from, mut written) = (0, 0);
    while written < most {
        let run = vm.with(|state| next_run(state, rules, &mut from, (most - written) as usize, until));
        let Some((first, frames)) = run else { break };
        written += frames.len() as u64;
        vm.submit(host, Io { place: first, frames: &frames, write: true, sync: false, reclaim: false });
    }
    written
}

/// Takes the oldest dirty pages at `from` and behind it for writing, as long as they follow each other in one
/// file.
fn next_run(
    state: &mut State,
    rules: &Rules,
    from: &mut u64,
    most: usize,
    until: u64,
) -> Option<(Place, Vec<Frame>)> {
    let mut run: Option<(Place, Vec<Frame>)> = None;
    loop {
        let next = state.flush.from(*from).next().filter(|next| next.at <= until);
        let Some(next) = next else { return run };
        let follows = |(place, frames): &(Place, Vec<Frame>)| {
            *place == Place::Mapping(next.mapping, next.index.wrapping_sub(frames.len() as u32))
                && frames.len() < most
        };
        if run.as_ref().is_some_and(|run| !follows(run)) {
            return run;
        }
        *from = next.place + 1;
        if let Some(frame) = begin(state, rules, next.mapping, next.index) {
            let (_, frames) =
                run.get_or_insert_with(|| (Place::Mapping(next.mapping, next.index), Vec::new()));
            frames.push(frame);
        }
    }
}

fn dirty_mappings(vm: &Vm) -> Vec<MappingId> {
    vm.with(|state| {
        let dirty = state.mappings.iter().filter(|(_, mapping)| mapping.dirtied > 0);
        dirty.map(|(id, _)| id).collect()
    })
}

/// Takes a dirty page for writing: it is clean and under writeback then. `None`: it is locked, or written.
fn begin(state: &mut State, rules: &Rules, id: MappingId, index: u32) -> Option<Frame> {
    let Entry::Frame(frame) = state.mappings.get(id).entry(index) else { return None };
    if state.frames.flags(frame).any(Flags::LOCKED | Flags::WRITEBACK) {
        return None;
    }
    // Entries that allow writes are made read-only, so that the next write is a fault.
    let mappers: Vec<_> = if rules.write_notify { state.mappers(frame).collect() } else { Vec::new() };
    for (region, page) in mappers {
        let region = state.spaces.region_mut(region);
        let pte = region.pte(page);
        region.mark(page, pte.writable(false).dirty(false));
    }
    state.begin_write(frame);
    Some(frame)
}

/// Writes at most `most` dirty pages of a file, in their order. Returns how many. `all`: waits for pages that
/// are being written already.
fn write_mapping(vm: &Vm, host: &dyn Host, rules: &Rules, id: MappingId, most: u64, all: bool) -> u64 {
    let (mut from, mut written) = (0, 0);
    while written < most {
        let (first, frames, busy) = vm.with(|state| {
            if !state.mappings.exists(id) {
                return (0, Vec::new(), None);
            }
            let Some(first) = state.mappings.get(id).next_dirty(from) else { return (0, Vec::new(), None) };
            let mut frames = Vec::new();
            let mut index = first;
            while frames.len() < REQUEST.min((most - written) as usize)
                && state.mappings.get(id).next_dirty(index) == Some(index)
            {
                let Some(frame) = begin(state, rules, id, index) else { break };
                frames.push(frame);
                index += 1;
            }
            let busy = state.mappings.get(id).entry(first).frame().filter(|_| frames.is_empty());
            (first, frames, busy)
        });
        if let Some(frame) = busy {
            if all {
                host.wait(vm, frame, Waited::Locked);
                host.wait(vm, frame, Waited::Writeback);
            } else {
                from = first + 1;
            }
            continue;
        }
        if frames.is_empty() {
            break;
        }
        from = first + frames.len() as u32;
        written += frames.len() as u64;
        let place = Place::Mapping(id, first);
        vm.submit(host, Io { place, frames: &frames, write: true, sync: all, reclaim: false });
    }
    written
}

/// Writes a file's dirty pages, and waits for them.
pub fn fsync(vm: &Vm, host: &dyn Host, rules: &Rules, mapping: MappingId) {
    write_mapping(vm, host, rules, mapping, u64::MAX, true);
    let mut from = 0;
    loop {
        let written = vm.with(|state| {
            if !state.mappings.exists(mapping) {
                return None;
            }
            let file = state.mappings.get(mapping);
            let frames = (from..file.pages()).filter_map(|at| Some((at, file.entry(at).frame()?)));
            frames.into_iter().find(|(_, frame)| state.frames.has(*frame, Flags::WRITEBACK))
        });
        let Some((at, frame)) = written else { break };
        from = at;
        host.wait(vm, frame, Waited::Writeback);
    }
}

/// Writes all dirty pages of files, and waits for them.
pub fn sync(vm: &Vm, host: &dyn Host, rules: &Rules) {
    for mapping in dirty_mappings(vm) {
        write_mapping(vm, host, rules, mapping, u64::MAX, false);
    }
    let files: Vec<MappingId> = vm.with(|state| {
        let files = state.mappings.iter().filter(|(_, file)| matches!(file.kind, Kind::File | Kind::Device));
        files.map(|(id, _)| id).collect()
    });
    for mapping in files {
        fsync(vm, host, rules, mapping);
    }
}

/// Drops all clean pages of files that are neither mapped nor in use (`drop_caches`).
pub fn drop_pagecache(vm: &Vm, host: &dyn Host) {
    vm.with(|state| state.count(Counter::DropPagecache));
    let files: Vec<MappingId> = vm.with(|state| {
        let files = state.mappings.iter().filter(|(_, file)| matches!(file.kind, Kind::File | Kind::Device));
        files.map(|(id, _)| id).collect()
    });
    for id in files {
        invalidate(vm, host, id);
        host.resched();
    }
}

/// Drops the clean pages of a file that are neither mapped nor in use (`invalidate_mapping_pages`).
pub fn invalidate(vm: &Vm, host: &dyn Host, file: MappingId) {
    let mut index = 0;
    while let Some(gone) = vm.with(|state| drop_page(state, file, index)) {
        if let Some(frame) = gone {
            vm.release(host, frame);
        }
        index += 1;
    }
}

/// Drops a page of a file. `None`: the file ends before it.
fn drop_page(state: &mut State, id: MappingId, index: u32) -> Option<Option<Frame>> {
    if !state.mappings.exists(id) || index >= state.mappings.get(id).pages() {
        return None;
    }
    let Entry::Frame(frame) = state.mappings.get(id).entry(index) else { return Some(None) };
    let busy = Flags::LOCKED | Flags::DIRTY | Flags::WRITEBACK;
    if state.frames.flags(frame).any(busy) || state.frames.mapped(frame) > 0 {
        return Some(None);
    }
    state.leave_mapping(frame, Entry::Absent);
    Some(Some(frame))
}

/// Waits for the end of the oldest write of a file's page that is under way, if one is. Returns whether it
/// waited.
pub(super) fn wait_for_oldest(vm: &Vm, host: &dyn Host) -> bool {
    let written = vm.with(|state| {
        let State { flush, frames, .. } = state;
        let is_written = |frame| frames.has(frame, Flags::WRITEBACK) && !frames.has(frame, Flags::SWAPBACKED);
        flush.oldest_write(is_written)
    });
    if let Some(frame) = written {
        host.wait(vm, frame, Waited::Writeback);
    }
    written.is_some()
}

#[cfg(test)]
mod tests {
    use super::is_old;

    #[test]
    fn a_file_is_old_when_its_time_has_passed() {
        for (now, expected) in [(0, false), (39, false), (40, true), (41, true)] {
            assert_eq!(is_old(10, 30, now), expected, "at {now}");
        }
    }
}
