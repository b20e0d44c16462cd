//! Lists and ages: where a page enters, and what a touch does to it.

use super::V24;
use super::policy::{Age, Anon, DropBehind, Start, Touch, Write};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::ids::{Frame, MappingId};
use crate::lists::ListId;
use crate::mappings::Kind;
use crate::replacement::Enter;
use crate::state::State;

/// The active list.
pub const ACTIVE: ListId = ListId(0);
/// The inactive list; with three lists `inactive_dirty`, whose pages may be clean.
pub const INACTIVE: ListId = ListId(1);
/// The task that read a page in has not used it yet: it finds the page by no lookup.
const FRESH: Flags = Flags::POLICY;
/// A listed page of a block device.
const DEVICE: Flags = Flags(Flags::POLICY.0 << 1);
/// A page with dirty buffers was met before (`BH_Wait_IO`).
pub(super) const MET: Flags = Flags(Flags::POLICY.0 << 2);
/// Pages of the longest window of read-ahead.
const MOST_AHEAD: u32 = 31;

/// A zone's `inactive_clean` list.
pub const fn clean_list(zone: usize) -> ListId {
    ListId(2 + zone as u16)
}

/// A page that lists hold without a file: of a block device.
pub(super) fn is_buffer_page(state: &State, frame: Frame) -> bool {
    kind_of(state, frame) == Some(Kind::Device)
}

/// The kind of the page's mapping; none if it is in the swap cache or anonymous.
fn kind_of(state: &State, frame: Frame) -> Option<Kind> {
    let flags = state.frames.flags(frame);
    let mapping = MappingId(state.frames.owner(frame));
    (!flags.any(Flags::ANON | Flags::SWAPCACHE)).then(|| state.mappings.get(mapping).kind)
}

/// The page is of ramfs, or locked in memory.
pub(super) fn is_pinned(state: &State, frame: Frame) -> bool {
    state.frames.has(frame, Flags::UNEVICTABLE) || kind_of(state, frame) == Some(Kind::Pinned)
}

impl V24 {
    /// The age of a page after an access (docs/theory/vm.md 5.2).
    pub(super) fn age_up(&self, state: &mut State, frame: Frame) {
        let (age, is) = (state.frames.policy(frame), &self.choices);
        let up = match is.age {
            Age::None => return,
            Age::Doubling if age == 0 => 1,
            Age::Doubling => age * 2,
            Age::Bit | Age::Exponential | Age::Linear => age + is.age_advance,
        };
        state.frames.set_policy(frame, up.min(is.age_max));
    }

    /// The age of a page after a look that found no access. Returns it (docs/theory/vm.md 5.2).
    pub(super) fn age_down(&self, state: &mut State, frame: Frame) -> u32 {
        let age = state.frames.policy(frame);
        let down = match self.choices.age {
            Age::None | Age::Bit => 0,
            Age::Exponential => age / 2,
            Age::Linear | Age::Doubling => age.saturating_sub(self.choices.age_decline),
        };
        state.frames.set_policy(frame, down);
        down
    }

    /// Puts a frame that is in no list at the head of one.
    pub(super) fn put(&self, state: &mut State, list: ListId, frame: Frame) {
        state.push_head(list, frame);
        if list == ACTIVE {
            state.frames.set(frame, Flags::ACTIVE);
        }
        if is_buffer_page(state, frame) {
            state.frames.set(frame, DEVICE);
        }
        self.count_listed(state, frame, list, 1);
    }

    /// Takes a frame out of its list.
    pub(super) fn take(&self, state: &mut State, frame: Frame) -> ListId {
        let list = state.unlist(frame);
        self.count_listed(state, frame, list, -1);
        state.frames.clear(frame, Flags::ACTIVE | DEVICE);
        list
    }

    /// Counts a page in or out of a list. Its mapping may be gone when it goes: a flag says what it was.
    fn count_listed(&self, state: &State, frame: Frame, list: ListId, by: i64) {
        let mut sizes = self.data.sizes.get();
        let count = match (list == ACTIVE, state.frames.has(frame, Flags::SWAPBACKED)) {
            (true, true) => &mut sizes.active_anon,
            (true, false) => &mut sizes.active_file,
            (false, true) => &mut sizes.inactive_anon,
            (false, false) => &mut sizes.inactive_file,
        };
        *count = count.checked_add_signed(by).expect("the page was counted");
        self.data.sizes.set(sizes);
        if state.frames.has(frame, DEVICE) {
            let devices = self.data.devices.get();
            self.data.devices.set(devices.checked_add_signed(by).expect("the page was counted"));
        }
        if list == INACTIVE {
            self.count_inactive(state.zone_of(frame), by);
        }
    }

    /// Moves a frame to the head of a list, its own one too.
    pub(super) fn to(&self, state: &mut State, list: ListId, frame: Frame) {
        self.take(state, frame);
        self.put(state, list, frame);
    }

    /// A page becomes active, with the age of a new page at least.
    pub fn activate(&self, state: &mut State, frame: Frame) {
        if state.lists.of(frame).is_some_and(|list| list != ACTIVE) {
            self.to(state, ACTIVE, frame);
            state.count(Counter::PgActivate);
        }
        let age = state.frames.policy(frame).max(self.choices.age_start);
        state.frames.set_policy(frame, age);
    }

    /// A page becomes inactive, if it may: no age, no reference.
    pub(super) fn deactivate(&self, state: &mut State, frame: Frame) {
        state.frames.set_policy(frame, 0);
        state.frames.clear(frame, Flags::REFERENCED);
        let is_held = state.frames.mapped(frame) > 0 && !self.choices.deactivate_mapped;
        if state.lists.of(frame) == Some(ACTIVE) && !is_held && !is_pinned(state, frame) {
            self.to(state, INACTIVE, frame);
            state.count(Counter::PgDeactivate);
        }
    }

    /// A page that got a swap slot enters the lists, as a page of a file does (docs/theory/vm.md 5.1).
    pub(super) fn enlist(&self, state: &mut State, frame: Frame) {
        let (list, age) = match self.choices.start {
            Start::Inactive => (INACTIVE, 0),
            Start::Active => (ACTIVE, self.choices.age_start),
        };
        state.frames.set_policy(frame, age);
        state.frames.clear(frame, Flags::REFERENCED);
        if !state.frames.has(frame, Flags::LISTED) {
            self.put(state, list, frame);
        }
    }

    pub(super) fn entered(&self, state: &mut State, frame: Frame, how: Enter) {
        let is_anon = how == Enter::Anon;
        if is_anon && self.choices.anon == Anon::AtSlot {
            state.frames.set_policy(frame, self.choices.age_start);
            return;
        }
        self.enlist(state, frame);
        if matches!(how, Enter::File | Enter::FileFault | Enter::Tmpfs | Enter::SwapIn) {
            state.frames.set(frame, FRESH);
        }
    }

    /// A page was found by its place in its file or in swap (docs/theory/vm.md 5.3).
    pub(super) fn looked_up(&self, state: &mut State, frame: Frame) {
        let is_inactive = !state.frames.has(frame, Flags::ACTIVE);
        match self.choices.touch {
            _ if state.frames.has(frame, FRESH) => {}
            Touch::Lookup if is_inactive => self.activate(state, frame),
            Touch::Age | Touch::Second | Touch::Lookup => {
                state.frames.set(frame, Flags::REFERENCED);
            }
            Touch::Explicit | Touch::Referenced => {}
        }
    }

    /// A read by a system call. tmpfs has no use-once (docs/theory/vm.md 5.3).
    pub(super) fn read(&self, state: &mut State, frame: Frame) {
        state.frames.clear(frame, FRESH);
        let is_once = !state.frames.has(frame, Flags::SWAPBACKED);
        let is_active = state.frames.has(frame, Flags::ACTIVE);
        let is_first = state.frames.policy(frame) == 0;
        match self.choices.touch {
            Touch::Age if is_once && is_first => self.touch_first(state, frame),
            Touch::Second if is_once && !is_active && is_first => self.touch_first(state, frame),
            Touch::Second if is_once && !is_active => self.activate(state, frame),
            Touch::Age | Touch::Second | Touch::Lookup => {}
            Touch::Explicit => self.touched(state, frame),
            Touch::Referenced => self.mark_accessed(state, frame),
        }
    }

    /// The first use of a page: it gets an age, and no reference.
    fn touch_first(&self, state: &mut State, frame: Frame) {
        state.frames.set_policy(frame, self.choices.age_start);
        state.frames.clear(frame, Flags::REFERENCED);
    }

    /// The explicit touch of the ageing kernels.
    fn touched(&self, state: &mut State, frame: Frame) {
        if state.lists.of(frame).is_some_and(|list| list > INACTIVE) {
            self.activate(state, frame);
        } else {
            state.frames.set(frame, Flags::REFERENCED);
        }
    }

    /// `mark_page_accessed`.
    fn mark_accessed(&self, state: &mut State, frame: Frame) {
        let flags = state.frames.flags(frame);
        if flags.has(Flags::REFERENCED) && !flags.has(Flags::ACTIVE) && flags.has(Flags::LISTED) {
            self.activate(state, frame);
            state.frames.clear(frame, Flags::REFERENCED);
        } else {
            state.frames.set(frame, Flags::REFERENCED);
        }
    }

    /// A fault that maps a page of a file or of the swap cache (docs/theory/vm.md 5.3).
    pub(super) fn faulted(&self, state: &mut State, frame: Frame) {
        state.frames.clear(frame, FRESH);
        let is_file = !state.frames.has(frame, Flags::SWAPBACKED);
        match self.choices.touch {
            _ if self.choices.fault_activates && is_file => self.activate(state, frame),
            Touch::Age | Touch::Second | Touch::Lookup => {}
            Touch::Explicit => self.touched(state, frame),
            Touch::Referenced => self.mark_accessed(state, frame),
        }
    }

    /// A write by a system call (docs/theory/vm.md 5.3).
    pub(super) fn write_touch(&self, state: &mut State, frame: Frame, to_end: bool) {
        match self.choices.write {
            Write::AsRead => self.read(state, frame),
            Write::References => {
                state.frames.clear(frame, FRESH);
                state.frames.set(frame, Flags::REFERENCED);
            }
            Write::Drop => {
                self.read(state, frame);
                if to_end {
                    self.deactivate(state, frame);
                }
            }
        }
    }

    /// Deactivates the pages before the window that begins at `frame` (docs/theory/vm.md 5.3).
    pub(super) fn drop_window(&self, state: &mut State, frame: Frame) {
        if self.choices.drop_behind == DropBehind::No {
            return;
        }
        let (mapping, index) = (MappingId(state.frames.owner(frame)), state.frames.index(frame));
        for at in (index.saturating_sub(MOST_AHEAD)..index).rev() {
            let Some(behind) = state.mappings.get(mapping).entry(at).frame() else { break };
            let is_active = state.frames.has(behind, Flags::ACTIVE);
            if self.choices.drop_behind == DropBehind::UntilInactive && !is_active {
                break;
            }
            self.deactivate(state, behind);
        }
    }
}
