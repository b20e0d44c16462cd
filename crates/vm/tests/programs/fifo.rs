//! A policy that evicts pages in the order in which they entered: for programs that test the rest.

use slablab_vm::counters::Counter;
use slablab_vm::mappings::{Entry, Kind};
use slablab_vm::pageout::put_back;
use slablab_vm::{
    Ask, Enter, Flags, Frame, Freed, Host, Io, ListId, MappingId, Place, Replacement, Sizes, State, Vm,
};

const LIST: ListId = ListId(0);

/// First in, first out.
pub(crate) struct Fifo;

/// What becomes of an isolated page.
enum Step {
    /// It stays.
    Keep,
    /// It is written first.
    Write(Place),
    /// It is gone.
    Gone,
}

impl Replacement for Fifo {
    fn name(&self) -> String {
        "fifo".into()
    }

    fn lists(&self, _zones: u16, _nodes: u16) -> u16 {
        1
    }

    fn enter(&self, state: &mut State, frame: Frame, _how: Enter, shadow: Option<u32>) {
        if shadow.is_some() {
            state.count_by_type(frame, Counter::RefaultAnon, Counter::RefaultFile);
        }
        state.push_head(LIST, frame);
    }

    fn access(&self, state: &mut State, frame: Frame) {
        state.frames.set(frame, Flags::REFERENCED);
    }

    fn leave(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            state.unlist(frame);
        }
    }

    fn evict(&self, _state: &mut State, frame: Frame) -> Option<u32> {
        Some(frame.0)
    }

    fn written(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            state.unlist(frame);
            state.push_tail(LIST, frame);
        }
    }

    fn direct(&self, vm: &Vm, host: &dyn Host, _ask: &Ask) -> Freed {
        let pages = self.reclaim(vm, host, 16);
        Freed { pages, progress: pages > 0, page: None }
    }

    fn kswapd(&self, vm: &Vm, host: &dyn Host, _node: u16, _order: u8, _class: u8) {
        self.reclaim(vm, host, 32);
    }

    fn sizes(&self, state: &State) -> Sizes {
        Sizes { inactive_file: state.lists.len(LIST).into(), ..Sizes::default() }
    }
}

impl Fifo {
    fn reclaim(&self, vm: &Vm, host: &dyn Host, want: u32) -> u32 {
        let mut freed = 0;
        for _ in 0..vm.with(|state| state.lists.len(LIST)) {
            if freed == want {
                break;
            }
            let Some(frame) = vm.with(|state| {
                let frame = state.lists.tail(LIST)?;
                state.isolate(frame);
                Some(frame)
            }) else {
                break;
            };
            // Others run while the page is isolated.
            host.resched();
            freed += self.reclaim_one(vm, host, frame);
        }
        freed
    }

    fn reclaim_one(&self, vm: &Vm, host: &dyn Host, frame: Frame) -> u32 {
        let step = vm.with(|state| self.step(state, frame));
        let mut freed = 1;
        put_back(vm, host, &[frame], |state, frame| {
            state.push_head(LIST, frame);
            freed = 0;
        });
        if let Step::Write(place) = step {
            let frames = [frame];
            vm.submit(host, Io { place, frames: &frames, write: true, sync: false, reclaim: true });
        }
        freed
    }

    fn step(&self, state: &mut State, frame: Frame) -> Step {
        let flags = state.frames.flags(frame);
        if flags.has(Flags::GONE) {
            return Step::Gone;
        }
        if flags.any(Flags::LOCKED | Flags::WRITEBACK) {
            return Step::Keep;
        }
        if flags.has(Flags::SWAPBACKED) && !flags.has(Flags::SWAPCACHE) && !give_slot(state, frame) {
            return Step::Keep;
        }
        state.unmap_all(frame);
        let slot = state.frames.slot(frame);
        let is_used = slot.is_none_or(|slot| state.swap.users(slot) > 0);
        if state.frames.has(frame, Flags::DIRTY) && is_used {
            let file = || Place::Mapping(MappingId(state.frames.owner(frame)), state.frames.index(frame));
            let place = slot.map_or_else(file, Place::Swap);
            state.begin_write(frame);
            state.frames.set(frame, Flags::RECLAIM);
            return Step::Write(place);
        }
        let left = self.evict(state, frame).map_or(Entry::Absent, Entry::Shadow);
        match slot {
            Some(_) => state.leave_swap_cache(frame, left),
            None => state.leave_mapping(frame, left),
        }
        state.frames.set(frame, Flags::GONE);
        Step::Gone
    }
}

/// Gives an anonymous or tmpfs page a slot. Returns whether there was one.
fn give_slot(state: &mut State, frame: Frame) -> bool {
    if state.frames.has(frame, Flags::ANON) {
        return state.add_to_swap(frame).is_some();
    }
    assert_eq!(state.mappings.get(MappingId(state.frames.owner(frame))).kind, Kind::Tmpfs);
    state.unmap_all(frame);
    let Some(slot) = state.add_to_swap(frame) else { return false };
    state.leave_for_slot(frame, slot);
    state.frames.give(frame, u32::MAX, slot);
    true
}
