//! tmpfs: pages are in frames, in swap, or holes. Also ramfs, whose pages are in frames for good.

use super::fault::{Fault, map_around};
use super::open::OpenFile;
use super::swapin::{self, Looked};
use super::{Rules, readahead};
use crate::frames::Flags;
use crate::host::{Purpose, Waited, Work};
use crate::ids::{Frame, MappingId};
use crate::mappings::{Entry, Kind};
use crate::replacement::Enter;
use crate::spaces::Pte;
use crate::state::State;
use crate::vm::{Host, Vm};

/// One look for a page, and what is to be done first.
enum Found {
    Ready(Frame),
    Hole,
    Swapped(u32),
    Locked(Frame),
    /// Its frame is in the swap cache, and is being written.
    Writing(Frame),
}

/// Looks for a page; takes it back from the swap cache, if it is there: its slot is free then, and it is
/// dirty (docs/theory/vm.md 2.7).
fn look_up(vm: &Vm, rules: &Rules, state: &mut State, (id, index): (MappingId, u32), want: Want) -> Found {
    match state.mappings.get(id).entry(index) {
        Entry::Absent | Entry::Shadow(_) => Found::Hole,
        Entry::Frame(frame) => {
            vm.policy.found(state, frame);
            if state.frames.has(frame, Flags::LOCKED) { Found::Locked(frame) } else { Found::Ready(frame) }
        }
        Entry::Slot(slot) => match swapin::look_up(vm, state, slot, None, rules) {
            Looked::Absent => Found::Swapped(slot),
            Looked::Locked(frame) => Found::Locked(frame),
            Looked::Ready(frame) if want == Want::Contents && !rules.tmpfs_read_frees_slot => {
                Found::Ready(frame)
            }
            Looked::Ready(frame) if state.frames.has(frame, Flags::WRITEBACK) => Found::Writing(frame),
            Looked::Ready(frame) => {
                take_back(vm, state, id, index, frame);
                Found::Ready(frame)
            }
        },
    }
}

/// The page of a frame in the swap cache goes back to its file.
fn take_back(vm: &Vm, state: &mut State, id: MappingId, index: u32, frame: Frame) {
    state.come_back(frame, id, index);
    vm.policy.unswapped(state, frame);
}

/// What a task wants of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    /// Its contents; a hole has none.
    Contents,
    /// A frame; a hole gets one of zeros.
    Frame,
    /// The same, for a fault.
    Fault,
    /// A frame that will be overwritten.
    Overwrite,
}

/// How a page was got.
struct Got {
    /// A read from swap was started for it.
    read: bool,
    /// It was waited for.
    waited: bool,
}

/// Brings a page into a frame, and calls `f` in the same breath: with the frame, or with `None` for a hole.
/// The flag of `f` says that the frame is new. `None`: no memory.
fn get(
    (vm, host, rules): (&Vm, &dyn Host, &Rules),
    (id, index): (MappingId, u32),
    want: Want,
    mut f: impl FnMut(&mut State, Option<Frame>, bool),
) -> Option<Got> {
    let mut got = Got { read: false, waited: false };
    let fault = if want == Want::Fault { Flags::FAULT } else { Flags::default() };
    loop {
        let found = vm.with(|state| {
            let found = look_up(vm, rules, state, (id, index), want);
            match &found {
                Found::Ready(frame) => f(state, Some(*frame), false),
                Found::Hole if want == Want::Contents => f(state, None, false),
                _ => {}
            }
            found
        });
        match found {
            Found::Ready(_) => return Some(got),
            Found::Hole if want == Want::Contents => return Some(got),
            Found::Hole => {
                if create(vm, host, (id, index), fault, &mut f)? {
                    return Some(got);
                }
            }
            Found::Swapped(slot) if want == Want::Overwrite && !rules.reads_overwritten => {
                forget(vm, (id, index), slot);
            }
            Found::Swapped(slot) => {
                swapin::read(vm, host, rules, None, fault, slot)?;
                got.read = true;
            }
            Found::Locked(frame) => {
                host.wait(vm, frame, Waited::Locked);
                got.waited = true;
            }
            Found::Writing(frame) => {
                host.wait(vm, frame, Waited::Writeback);
                got.waited = true;
            }
        }
    }
}

/// Fills a hole with a frame of zeros. Returns whether the hole was still there; `None`: no memory.
fn create(
    vm: &Vm,
    host: &dyn Host,
    (id, index): (MappingId, u32),
    fault: Flags,
    f: &mut impl FnMut(&mut State, Option<Frame>, bool),
) -> Option<bool> {
    let kind = vm.with(|state| state.mappings.get(id).kind);
    let frame = host.alloc(vm, Purpose::Tmpfs)?;
    host.work(Work::Copy, 1);
    let is_used = vm.with(|state| {
        let entry = state.mappings.get(id).entry(index);
        let is_used = matches!(entry, Entry::Absent | Entry::Shadow(_));
        if is_used {
            let flags = Flags::UPTODATE | Flags::DIRTY;
            if kind == Kind::Pinned {
                state.enter_mapping(frame, id, index, flags | Flags::UNEVICTABLE);
            } else {
                let flags = flags | Flags::SWAPBACKED | fault;
                readahead::enter(vm, state, frame, (id, index), flags, Enter::Tmpfs);
            }
            f(state, Some(frame), true);
        }
        is_used
    });
    if !is_used {
        host.free(vm, frame);
    }
    Some(is_used)
}

/// Makes a hole of a page in swap, unless it is in the swap cache.
fn forget(vm: &Vm, (id, index): (MappingId, u32), slot: u32) {
    vm.with(|state| {
        let is_there = state.mappings.get(id).entry(index) == Entry::Slot(slot);
        if is_there && state.swap.cached(slot).frame().is_none() {
            state.mappings.get_mut(id).set(index, Entry::Absent);
            state.swap.drop_user(slot);
        }
    });
}

/// Reads a whole page by a system call. Returns whether it waited.
pub(super) fn read(vm: &Vm, host: &dyn Host, rules: &Rules, file: &mut OpenFile, page: u32) -> Option<bool> {
    let mut content = 0;
    let got = get((vm, host, rules), (file.mapping, page), Want::Contents, |state, frame, _| {
        let Some(frame) = frame else { return };
        content = state.frames.content(frame);
        vm.policy.access(state, frame);
    })?;
    file.content = content;
    Some(got.waited)
}

/// Writes a page by a system call. Returns whether it waited (docs/theory/vm.md 2.7).
pub(super) fn write(
    vm: &Vm,
    host: &dyn Host,
    rules: &Rules,
    file: &OpenFile,
    page: u32,
    content: u32,
    whole: bool,
) -> Option<bool> {
    let want = if whole { Want::Overwrite } else { Want::Frame };
    let got = get((vm, host, rules), (file.mapping, page), want, |state, frame, is_new| {
        let Some(frame) = frame else { return };
        state.frames.set_content(frame, content);
        state.frames.set(frame, Flags::DIRTY);
        match (is_new, rules.new_tmpfs_referenced) {
            (true, true) => state.frames.set(frame, Flags::REFERENCED),
            (false, true) => vm.policy.access(state, frame),
            (_, false) => vm.policy.wrote(state, frame, true),
        }
    })?;
    Some(got.waited)
}

/// Serves a fault. One step: the caller looks again.
pub(super) fn fault(fault: &mut Fault<'_>, id: MappingId) -> Option<()> {
    let Fault { vm, host, rules, region, page, write, .. } = *fault;
    assert!(
        page < vm.with(|state| state.mappings.get(id).pages()),
        "page {page} of {region:?} is beyond the end of its file"
    );
    if !write && rules.fault_around > 1 && vm.with(|state| map_around(fault, state, id)) {
        return Some(());
    }
    let got = get((vm, host, rules), (id, page), Want::Fault, |state, frame, _| {
        let Some(frame) = frame else { return };
        if state.spaces.region(region).pte(page).frame().is_none() {
            state.map(region, page, Pte::map(frame, true).accessed(true).dirty(write));
            vm.policy.fault(state, frame);
        }
    })?;
    fault.major |= got.read;
    Some(())
}
