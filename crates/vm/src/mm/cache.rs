//! Reads and writes of files through the page cache, and faults on them.

use super::fault::{Fault, map_around};
use super::open::OpenFile;
use super::{Rules, balance_dirty, buffers, mark_dirty, readahead, tmpfs};
use crate::ahead::FileAhead;
use crate::frames::Flags;
use crate::host::{Purpose, Waited};
use crate::ids::{Frame, MappingId, RegionId};
use crate::mappings::{Entry, Kind};
use crate::replacement::Enter;
use crate::spaces::Pte;
use crate::state::State;
use crate::vm::{Host, Vm};

/// Where a page of a file is, and what is to be done first.
enum Found {
    Ready,
    /// It starts the next window of read-ahead.
    Marked,
    Locked(Frame),
    /// It is locked by the caller, and lacks the buffer head that a write needs.
    Bare(Frame),
    Absent,
}

/// Looks for a page. A mark of read-ahead is cleared and answered if the caller reads `ahead`.
fn look_up(vm: &Vm, state: &mut State, id: MappingId, index: u32, ahead: bool) -> Found {
    let Entry::Frame(frame) = state.mappings.get(id).entry(index) else { return Found::Absent };
    // A page under writeback starts no read-ahead (from memory).
    let marked = state.frames.has(frame, Flags::READAHEAD) && !state.frames.has(frame, Flags::WRITEBACK);
    if marked && ahead {
        state.frames.clear(frame, Flags::READAHEAD);
        return Found::Marked;
    }
    vm.policy.found(state, frame);
    if state.frames.has(frame, Flags::LOCKED) { Found::Locked(frame) } else { Found::Ready }
}

/// The program reads a whole page by a system call; its contents are in [`OpenFile::content`] then. Returns
/// whether it waited for a disk; `None`: no memory. A page beyond the end has no contents
/// (docs/theory/vm.md 2.11).
pub fn read(vm: &Vm, host: &dyn Host, rules: &Rules, file: &mut OpenFile, page: u32) -> Option<bool> {
    let kind = vm.with(|state| {
        let mapping = state.mappings.get(file.mapping);
        (page < mapping.pages()).then_some(mapping.kind)
    });
    file.content = 0;
    match kind {
        None => Some(false),
        Some(Kind::Tmpfs | Kind::Pinned) => tmpfs::read(vm, host, rules, file, page),
        Some(Kind::File | Kind::Device) => {
            let waited = read_cached(vm, host, rules, file, page)?;
            file.ahead.previous = page + 1;
            Some(waited)
        }
    }
}

fn read_cached(vm: &Vm, host: &dyn Host, rules: &Rules, file: &mut OpenFile, page: u32) -> Option<bool> {
    let id = file.mapping;
    // Read-ahead allocates, which can evict the wanted page again: a call reads ahead once.
    let (mut waited, mut ahead) = (false, false);
    loop {
        let found = vm.with(|state| {
            let found = look_up(vm, state, id, page, !ahead);
            if let (Found::Ready, Some(frame)) = (&found, state.mappings.get(id).entry(page).frame()) {
                file.content = state.frames.content(frame);
                if rules.repeats_access || file.ahead.previous != page + 1 {
                    vm.policy.access(state, frame);
                }
            }
            found
        });
        match found {
            Found::Ready | Found::Bare(_) => return Some(waited),
            Found::Marked => {
                ahead = true;
                let window = vm.with(|state| {
                    if let Some(frame) = state.mappings.get(id).entry(page).frame() {
                        vm.policy.drop_behind(state, frame);
                    }
                    readahead::marked(state, rules, id, &mut file.ahead, page)
                });
                readahead::read(vm, host, rules, id, window, (page, Enter::File));
            }
            Found::Locked(frame) => {
                host.wait(vm, frame, Waited::Locked);
                waited = true;
            }
            Found::Absent => {
                if !std::mem::replace(&mut ahead, true) {
                    let window = vm.with(|state| readahead::missed(state, rules, id, &mut file.ahead, page));
                    readahead::read(vm, host, rules, id, window, (page, Enter::File));
                }
                readahead::read_one(vm, host, rules, id, page, Enter::File)?;
            }
        }
    }
}

/// The program writes a page by a system call: the whole page, or a part of it, for which the page is read
/// first. The file grows if the page is beyond its end. Returns whether it waited for a disk; `None`: no
/// memory.
pub fn write(
    vm: &Vm,
    host: &dyn Host,
    rules: &Rules,
    file: &mut OpenFile,
    page: u32,
    content: u32,
    whole: bool,
) -> Option<bool> {
    let id = file.mapping;
    let kind = vm.with(|state| state.mappings.get(id).kind);
    if matches!(kind, Kind::Tmpfs | Kind::Pinned) {
        let waited = tmpfs::write(vm, host, rules, file, page, content, whole)?;
        let is_dirty = rules.tmpfs_counts_dirty && kind == Kind::Tmpfs;
        return Some(is_dirty && balance_dirty(vm, host, rules, id) || waited);
    }
    // A page for whose buffer head there is no memory is written without.
    let (mut waited, mut has_tried) = (false, false);
    loop {
        let now = host.now();
        let found = vm.with(|state| {
            let found = look_up(vm, state, id, page, false);
            if let (Found::Ready, Some(frame)) = (&found, state.mappings.get(id).entry(page).frame()) {
                if !has_tried && buffers::lock(state, frame) {
                    return Found::Bare(frame);
                }
                state.frames.set_content(frame, content);
                mark_dirty(state, frame, now);
                if rules.writes_access {
                    vm.policy.wrote(state, frame, true);
                }
            }
            found
        });
        match found {
            Found::Ready | Found::Marked => break,
            Found::Bare(frame) => {
                buffers::add_locked(vm, host, frame);
                has_tried = true;
            }
            Found::Locked(frame) => {
                host.wait(vm, frame, Waited::Locked);
                waited = true;
            }
            Found::Absent => {
                let beyond = vm.with(|state| page >= state.mappings.get(id).pages());
                if whole || beyond {
                    create(vm, host, id, page)?;
                } else {
                    readahead::read_one(vm, host, rules, id, page, Enter::File)?;
                }
            }
        }
    }
    Some(balance_dirty(vm, host, rules, id) || waited)
}

/// Gives a page that will be overwritten a frame. `None`: no memory.
fn create(vm: &Vm, host: &dyn Host, id: MappingId, page: u32) -> Option<()> {
    let frame = host.alloc(vm, Purpose::File)?;
    let is_used = vm.with(|state| {
        let is_used = state.mappings.get(id).entry(page).frame().is_none();
        if is_used {
            readahead::enter_for_write(vm, state, frame, (id, page), Flags::UPTODATE);
        }
        is_used
    });
    if !is_used {
        host.free(vm, frame);
    }
    Some(())
}

/// Serves a fault on a page of a file. One step: the caller looks again (docs/theory/vm.md 2.9).
pub(super) fn fault(fault: &mut Fault<'_>, id: MappingId) -> Option<()> {
    let Fault { vm, host, rules, region, page, write, .. } = *fault;
    assert!(
        page < vm.with(|state| state.mappings.get(id).pages()),
        "page {page} of {region:?} is beyond the end of its file"
    );
    if !write && rules.fault_around > 1 && vm.with(|state| map_around(fault, state, id)) {
        return Some(());
    }
    let now = host.now();
    let found = vm.with(|state| {
        // A store to a page that is mapped already looks nothing up.
        let is_mapped = state.spaces.region(region).pte(page).frame().is_some();
        let found = look_up(vm, state, id, page, !fault.ahead && !is_mapped);
        let ahead = &mut state.spaces.region_mut(region).ahead;
        // A fault that is tried again counts no hit: its first try missed, or counted it (from memory).
        if !matches!(found, Found::Absent) && !fault.major && !fault.retried && !is_mapped {
            ahead.misses = ahead.misses.saturating_sub(1);
        }
        if let (Found::Ready, Some(frame)) = (&found, state.mappings.get(id).entry(page).frame()) {
            if write && rules.write_notify && !fault.has_tried && buffers::lock(state, frame) {
                return Found::Bare(frame);
            }
            map_page(fault, state, frame, now);
        }
        found
    });
    match found {
        Found::Ready if write => {
            balance_dirty(vm, host, rules, id);
        }
        Found::Ready => {}
        Found::Bare(frame) => {
            buffers::add_locked(vm, host, frame);
            fault.has_tried = true;
        }
        Found::Locked(frame) => {
            host.wait(vm, frame, Waited::Locked);
            fault.retried = true;
        }
        Found::Marked => {
            (fault.ahead, fault.retried) = (true, true);
            let window =
                with_ahead(vm, region, |state, ahead| readahead::marked(state, rules, id, ahead, page));
            readahead::read(vm, host, rules, id, window, (page, Enter::FileFault));
        }
        Found::Absent => {
            let window =
                with_ahead(vm, region, |state, ahead| readahead::around(state, rules, id, ahead, page));
            readahead::read(vm, host, rules, id, window, (page, Enter::FileFault));
            readahead::read_one(vm, host, rules, id, page, Enter::FileFault)?;
            fault.major = true;
        }
    }
    Some(())
}

/// Uses the state and the read-ahead of a region.
fn with_ahead<T>(vm: &Vm, region: RegionId, f: impl FnOnce(&State, &mut FileAhead) -> T) -> T {
    vm.with(|state| {
        let mut ahead = state.spaces.region(region).ahead;
        let result = f(state, &mut ahead);
        state.spaces.region_mut(region).ahead = ahead;
        result
    })
}

/// Maps the faulting page, or makes its entry writable.
fn map_page(fault: &Fault<'_>, state: &mut State, frame: Frame, now: u64) {
    let Fault { vm, rules, region, page, write, .. } = *fault;
    let may_write = write || !rules.write_notify;
    let pte = state.spaces.region(region).pte(page);
    if pte.frame().is_some() {
        state.spaces.region_mut(region).mark(page, pte.writable(may_write).accessed(true).dirty(write));
    } else {
        state.map(region, page, Pte::map(frame, may_write).accessed(true).dirty(write));
        vm.policy.fault(state, frame);
    }
    if write && rules.write_notify {
        mark_dirty(state, frame, now);
    }
}
