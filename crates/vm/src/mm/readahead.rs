//! Read-ahead of files.

use super::{ReadAheadRule, Rules, buffers};
use crate::ahead::FileAhead;
use crate::frames::Flags;
use crate::host::{Io, Place, Purpose};
use crate::ids::{Frame, MappingId};
use crate::mappings::{Entry, Kind};
use crate::replacement::Enter;
use crate::state::State;
use crate::vm::{Host, Vm};
use std::ops::Range;

/// Pages to read: from `start` on `pages`, the one that is wanted, and the one that is marked to start the
/// next window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub start: u32,
    pub pages: u32,
    pub marked: Option<u32>,
}

impl Window {
    /// `pages` from `start` on, with a mark so that `trigger` pages are left after it.
    fn new(start: u32, pages: u32, trigger: u32) -> Window {
        Window { start, pages, marked: (start + pages).checked_sub(trigger).filter(|_| trigger > 0) }
    }

    /// Its part before the end of the file.
    fn within(self, end: u32) -> Window {
        // The mark is counted from the end of what is read (from memory).
        let pages = self.pages.min(end.saturating_sub(self.start));
        let cut = self.pages - pages;
        let marked = self.marked.and_then(|marked| marked.checked_sub(cut)).filter(|at| *at >= self.start);
        Window { pages, marked, ..self }
    }
}

/// Most pages of a window.
fn most(rules: &Rules, ahead: &FileAhead) -> u32 {
    ahead.most.unwrap_or(rules.read_ahead_pages)
}

/// A read of `index` missed the cache: the window to read.
pub(super) fn missed(
    state: &State,
    rules: &Rules,
    id: MappingId,
    ahead: &mut FileAhead,
    index: u32,
) -> Window {
    let (mapping, most) = (state.mappings.get(id), most(rules, ahead));
    let window = match rules.read_ahead {
        // Without read-ahead each read is of one page.
        _ if most == 0 => Window::new(index, 1, 0),
        ReadAheadRule::Doubling => doubling(ahead, most, index),
        ReadAheadRule::OnDemand => {
            let is_cached = |index: u32| mapping.entry(index).frame().is_some();
            on_demand(ahead, most, index, is_cached)
        }
    };
    window.within(mapping.pages())
}

/// A read of `index` met the marked page: the window to read.
pub(super) fn marked(
    state: &State,
    rules: &Rules,
    id: MappingId,
    ahead: &mut FileAhead,
    index: u32,
) -> Window {
    let mapping = state.mappings.get(id);
    let most = most(rules, ahead);
    let expected = ahead.start + ahead.size - ahead.trigger;
    if index == expected || index == ahead.start + ahead.size {
        ahead.start += ahead.size;
        ahead.size = next_size(ahead.size, most);
    } else {
        // Another reader's mark: go on from the first page after it that is absent.
        let absent = (index + 1..=index + most).find(|at| mapping.entry(*at).frame().is_none());
        let Some(start) = absent else { return Window::default() };
        ahead.start = start;
        ahead.size = next_size(start - index + 1, most);
    }
    ahead.trigger = ahead.size;
    Window::new(ahead.start, ahead.size, ahead.trigger).within(mapping.pages())
}

/// A fault on `index` missed the cache: the pages around it, or only it (docs/theory/vm.md 2.9).
pub(super) fn around(
    state: &State,
    rules: &Rules,
    id: MappingId,
    ahead: &mut FileAhead,
    index: u32,
) -> Window {
    // From memory: a file whose faults missed 100 times more often than they hit is read at random.
    const LOTS: u32 = 100;
    let pages = state.mappings.get(id).pages();
    if rules.read_ahead == ReadAheadRule::Doubling {
        // 2.4: an aligned cluster.
        let cluster = 1 << state.settings.page_cluster;
        return Window::new(index & !(cluster - 1), cluster, 0).within(pages);
    }
    ahead.misses = (ahead.misses + 1).min(10 * LOTS);
    let most = most(rules, ahead);
    if ahead.misses > LOTS || most == 0 {
        return Window::default();
    }
    ahead.start = index.saturating_sub(most / 2);
    (ahead.size, ahead.trigger) = (most, most / 4);
    Window::new(ahead.start, ahead.size, ahead.trigger).within(pages)
}

/// 2.4: at least 3 pages once the reads follow each other; the window doubles (docs/theory/vm.md 2.8).
fn doubling(ahead: &mut FileAhead, most: u32, index: u32) -> Window {
    let follows = index == ahead.previous || index < ahead.start + ahead.size && index >= ahead.start;
    if !follows {
        // A seek outside: the page alone, and one more (request + 1).
        (ahead.start, ahead.size) = (index, 2.min(most));
    } else {
        let size = (2 * ahead.size).clamp(3, most);
        (ahead.start, ahead.size) = (index, size);
    }
    ahead.trigger = ahead.size;
    Window::new(ahead.start, ahead.size, ahead.trigger)
}

/// From 2.6.23 on (`ondemand_readahead`, from memory beside the reference; docs/theory/vm.md 2.8).
fn on_demand(ahead: &mut FileAhead, most: u32, index: u32, is_cached: impl Fn(u32) -> bool) -> Window {
    let expected = ahead.start + ahead.size - ahead.trigger;
    if index > 0 && ahead.size > 0 && (index == expected || index == ahead.start + ahead.size) {
        ahead.start += ahead.size;
        ahead.size = next_size(ahead.size, most);
        ahead.trigger = ahead.size;
    } else if index == 0 || index == ahead.previous || index + 1 == ahead.previous {
        ahead.start = index;
        ahead.size = first_size(1, most);
        ahead.trigger = if ahead.size > 1 { ahead.size - 1 } else { ahead.size };
    } else {
        // Pages before it that are cached: an interleaved sequential reader whose cursor is lost.
        let before = (0..index).rev().take(most as usize).take_while(|at| is_cached(*at)).count() as u32;
        if before <= 1 {
            return Window::new(index, 1, 0);
        }
        let before = if before >= index { 2 * before } else { before };
        (ahead.start, ahead.size, ahead.trigger) = (index, (before + 1).min(most), 1);
    }
    if index == ahead.start && ahead.size == ahead.trigger {
        let more = next_size(ahead.size, most);
        if ahead.size + more <= most {
            (ahead.trigger, ahead.size) = (more, ahead.size + more);
        } else {
            (ahead.size, ahead.trigger) = (most, most / 2);
        }
    }
    Window::new(ahead.start, ahead.size, ahead.trigger)
}

/// docs/theory/vm.md 2.8.
fn first_size(request: u32, most: u32) -> u32 {
    let size = request.next_power_of_two();
    if size <= most / 32 {
        4 * size
    } else if size <= most / 4 {
        2 * size
    } else {
        most
    }
}

/// docs/theory/vm.md 2.8.
fn next_size(size: u32, most: u32) -> u32 {
    if size < most / 16 {
        4 * size
    } else if size <= most / 2 {
        2 * size
    } else {
        most
    }
}

/// Reads the pages of a window that are absent. Stops where there is no memory.
pub(super) fn read(
    vm: &Vm,
    host: &dyn Host,
    rules: &Rules,
    id: MappingId,
    window: Window,
    (wanted, how): (u32, Enter),
) {
    let mut batch = Batch::new(vm, rules, id, how);
    for index in window.start..window.start + window.pages {
        let enter = if index == wanted { how } else { Enter::ReadAhead };
        let purpose = if index == wanted { Purpose::File } else { Purpose::ReadAhead };
        if !batch.bring(vm, host, index, (purpose, enter), window.marked == Some(index)) {
            break;
        }
        batch.wanted |= index == wanted;
    }
    batch.submit(vm, host);
}

/// Starts to read the absent ones of these pages if the wanted page is absent: blocks of a file system that
/// it reads together.
pub fn read_group(vm: &Vm, host: &dyn Host, rules: &Rules, id: MappingId, pages: Range<u32>, wanted: u32) {
    if vm.with(|state| state.mappings.get(id).entry(wanted).frame().is_none()) {
        let window = Window { start: pages.start, pages: pages.end - pages.start, marked: None };
        read(vm, host, rules, id, window, (wanted, Enter::File));
    }
}

/// Reads one page. `None`: no memory.
pub(super) fn read_one(
    vm: &Vm,
    host: &dyn Host,
    rules: &Rules,
    id: MappingId,
    index: u32,
    how: Enter,
) -> Option<()> {
    let mut batch = Batch { wanted: true, ..Batch::new(vm, rules, id, how) };
    let got = batch.bring(vm, host, index, (Purpose::File, how), false);
    batch.submit(vm, host);
    got.then_some(())
}

/// Frames that will be read from pages that follow each other. They are locked.
struct Batch {
    id: MappingId,
    first: u32,
    frames: Vec<Frame>,
    /// Somebody waits for one of them.
    wanted: bool,
    /// Flags of its frames.
    flags: Flags,
    /// They get buffer heads.
    buffers: bool,
}

impl Batch {
    fn new(vm: &Vm, rules: &Rules, id: MappingId, how: Enter) -> Batch {
        let fault = if how == Enter::FileFault { Flags::FAULT } else { Flags::default() };
        // A block device's pages are read by way of their buffers in each release.
        let is_device = vm.with(|state| state.mappings.get(id).kind == Kind::Device);
        let buffers = is_device || rules.buffers_on_read;
        Batch { id, first: 0, frames: Vec::new(), wanted: false, flags: Flags::LOCKED | fault, buffers }
    }

    /// Puts a frame for a page into the page cache, if none is there. Returns whether there was memory.
    fn bring(
        &mut self,
        vm: &Vm,
        host: &dyn Host,
        index: u32,
        (purpose, how): (Purpose, Enter),
        marked: bool,
    ) -> bool {
        let id = self.id;
        let needs = |state: &State| {
            let mapping = state.mappings.get(id);
            index < mapping.pages() && mapping.entry(index).frame().is_none()
        };
        if !vm.with(|state| needs(state)) {
            return true;
        }
        let Some(frame) = host.alloc(vm, purpose) else { return false };
        let is_used = vm.with(|state| {
            let is_needed = needs(state);
            if is_needed {
                let flags = if marked { self.flags | Flags::READAHEAD } else { self.flags };
                enter(vm, state, frame, (id, index), flags, how);
            }
            is_needed
        });
        if !is_used {
            host.free(vm, frame);
            return true;
        }
        if self.buffers {
            buffers::add(vm, host, frame);
        }
        if self.first + self.frames.len() as u32 != index {
            self.submit(vm, host);
            self.first = index;
        }
        self.frames.push(frame);
        true
    }

    fn submit(&mut self, vm: &Vm, host: &dyn Host) {
        let frames = std::mem::take(&mut self.frames);
        if !frames.is_empty() {
            let place = Place::Mapping(self.id, self.first);
            vm.submit(host, Io { place, frames: &frames, write: false, sync: self.wanted, reclaim: false });
        }
    }
}

/// Makes a frame hold a page of a file.
pub(super) fn enter(
    vm: &Vm,
    state: &mut State,
    frame: Frame,
    (id, index): (MappingId, u32),
    flags: Flags,
    how: Enter,
) {
    let shadow = match state.enter_mapping(frame, id, index, flags) {
        Entry::Shadow(shadow) => Some(shadow),
        _ => None,
    };
    vm.policy.enter(state, frame, how, shadow);
}

/// Makes a frame hold a page of a file that a write brings. That it was evicted before does not count: what
/// it held is overwritten (from memory).
pub(super) fn enter_for_write(
    vm: &Vm,
    state: &mut State,
    frame: Frame,
    (id, index): (MappingId, u32),
    flags: Flags,
) {
    state.enter_mapping(frame, id, index, flags);
    vm.policy.enter(state, frame, Enter::File, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_up_to_the_most() {
        // The first window of a request of so many pages.
        for (request, most, expected) in
            [(1, 32, 4), (2, 32, 4), (3, 32, 8), (8, 32, 16), (9, 32, 32), (1, 8, 2)]
        {
            assert_eq!(first_size(request, most), expected, "{request} of {most}");
        }
        for (size, most, expected) in
            [(1, 32, 4), (2, 32, 4), (3, 32, 6), (16, 32, 32), (17, 32, 32), (4, 31, 8), (15, 31, 30)]
        {
            assert_eq!(next_size(size, most), expected, "{size} of {most}");
        }
    }
}
