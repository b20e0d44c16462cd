//! One page: written, freed of its buffers, taken from its file or from swap, freed.
//!
//! A function that waits looks at the page anew afterwards: another task may have freed or used it.

use super::lru::{INACTIVE, clean_list};
use super::policy::Lists;
use super::walk::is_busy;
use super::{Caller, V24};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Io, Place, Waited, Work};
use crate::ids::{Frame, MappingId};
use crate::mappings::Entry;
use crate::state::State;
use crate::vm::{Host, Vm};

/// Clusters of swap writes in flight above which a writer waits for its page.
const CLUSTERS: u32 = 8;

/// How a pass treats writes of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writes {
    /// It starts writes.
    pub start: bool,
    /// So many without waiting for them.
    pub free: u32,
    /// Later ones it waits for; if not, it starts no more.
    pub wait: bool,
}

impl Writes {
    /// A pass that starts no write.
    pub(super) const NONE: Writes = Writes { start: false, free: 0, wait: false };
}

/// The page of a frame: whether it is still there after a wait.
fn page_of(state: &State, frame: Frame) -> Option<(u32, u32)> {
    let frames = &state.frames;
    frames.has(frame, Flags::LISTED).then(|| (frames.owner(frame), frames.index(frame)))
}

impl V24 {
    /// Takes a clean page that nothing maps out of its list and of its file or the swap cache. The caller
    /// gives the frame away.
    pub(super) fn detach(&self, state: &mut State, caller: &Caller, frame: Frame) {
        let kswapd = caller.kswapd;
        let counters = if kswapd { Counter::PgStealKswapd } else { Counter::PgStealDirect };
        state.count(counters);
        state.count_by_type(frame, Counter::PgStealAnon, Counter::PgStealFile);
        self.take(state, frame);
        // The frame may be handed over, and then no host frees it.
        assert!(!state.frames.has(frame, Flags::BUFFERS), "frame {} has a buffer head", frame.0);
        if state.frames.has(frame, Flags::SWAPCACHE) {
            state.clear_dirty(frame);
            state.leave_swap_cache(frame, Entry::Absent);
        } else {
            state.leave_mapping(frame, Entry::Absent);
        }
        let ours = state.end(frame);
        assert!(ours, "frame {} is held by a reclaimer of another policy", frame.0);
    }

    /// Starts the write of a dirty page of a list (`writepage`). A page of tmpfs gets a swap slot instead; a
    /// page of a slot without users is clean from now on. Returns whether a write was started
    /// (docs/theory/vm.md 5.8).
    pub(super) fn write(&self, vm: &Vm, host: &dyn Host, frame: Frame) -> bool {
        let Some(place) = vm.with(|state| self.begin_write(state, frame)) else { return false };
        host.work(Work::Submit, 1);
        vm.submit(host, Io { place, frames: &[frame], write: true, sync: false, reclaim: true });
        if matches!(place, Place::Swap(_)) && self.choices.limit_writes {
            let most = vm.with(|state| CLUSTERS << state.settings.page_cluster);
            if self.data.in_flight.get() > most && vm.with(|state| is_busy(state, frame)) {
                host.wait(vm, frame, Waited::Writeback);
            }
        }
        true
    }

    fn begin_write(&self, state: &mut State, frame: Frame) -> Option<Place> {
        let flags = state.frames.flags(frame);
        if flags.has(Flags::SWAPBACKED) && !flags.any(Flags::ANON | Flags::SWAPCACHE) {
            self.tmpfs_to_swap(state, frame);
            return None;
        }
        let place = match state.frames.slot(frame) {
            Some(slot) if state.swap.users(slot) == 0 && state.frames.mapped(frame) == 0 => {
                state.clear_dirty(frame);
                return None;
            }
            Some(slot) => Place::Swap(slot),
            None => Place::Mapping(MappingId(state.frames.owner(frame)), state.frames.index(frame)),
        };
        state.begin_write(frame);
        state.count(Counter::VmscanWrite);
        if matches!(place, Place::Swap(_)) {
            state.frames.set(frame, Flags::RECLAIM);
            self.data.in_flight.set(self.data.in_flight.get() + 1);
        }
        Some(place)
    }

    /// A page of tmpfs moves from its file to the swap cache, and stays dirty (`shmem_writepage`).
    fn tmpfs_to_swap(&self, state: &mut State, frame: Frame) {
        if let Some(slot) = state.add_to_swap(frame) {
            state.leave_mapping(frame, Entry::Slot(slot));
            state.swap.hold(slot);
            state.set_dirty(frame);
        }
    }

    /// Frees the buffers of a page, and writes them before (`try_to_free_buffers`). Returns whether the page
    /// is still in its list and has none; and whether a write was started.
    pub(super) fn free_buffers(
        &self,
        vm: &Vm,
        host: &dyn Host,
        frame: Frame,
        writes: &mut Writes,
    ) -> (bool, bool) {
        let (mut started, page) = (false, vm.with(|state| page_of(state, frame)));
        loop {
            let busy = Flags::DIRTY | Flags::WRITEBACK | Flags::LOCKED;
            let flags = vm.with(|state| {
                let is_there = page.is_some() && page_of(state, frame) == page;
                let flags = is_there.then(|| state.frames.flags(frame))?;
                if !flags.any(busy) {
                    state.frames.clear(frame, Flags::BUFFERS);
                }
                Some(flags)
            });
            let Some(flags) = flags else { return (false, started) };
            if !flags.any(busy) {
                if !flags.has(Flags::BUFFERS) {
                    return (true, started);
                }
                // Another task may use the page meanwhile: the next look says.
                host.buffers_freed(frame);
                continue;
            }
            let may_wait = writes.start && writes.wait && writes.free == 0;
            if flags.any(Flags::WRITEBACK) {
                if !may_wait {
                    return (false, started);
                }
                host.wait(vm, frame, Waited::Writeback);
            } else if flags.has(Flags::LOCKED) || started || !writes.start {
                // A page that is dirtied again while its write was waited for stays.
                return (false, started);
            } else if writes.free > 0 {
                writes.free -= 1;
                self.write(vm, host, frame);
                return (false, true);
            } else if !may_wait || !self.write(vm, host, frame) {
                return (false, started);
            } else {
                started = true;
            }
        }
    }

    /// A page is clean: it waits in its zone to be stolen, or it is freed (`keeps_clean`). Returns the
    /// frame to give away.
    pub(super) fn cleaned(&self, state: &mut State, caller: &Caller, frame: Frame) -> Option<Frame> {
        if self.keeps_clean() {
            let zone = state.zone_of(frame);
            self.to(state, clean_list(zone), frame);
            return None;
        }
        self.detach(state, caller, frame);
        Some(frame)
    }

    /// Takes a clean page of a zone for an allocation (`reclaim_page`; docs/theory/vm.md 5.1).
    pub(super) fn steal(&self, vm: &Vm, host: &dyn Host, zone: usize) -> Option<Frame> {
        if self.choices.lists == Lists::Two {
            return None;
        }
        let caller = Caller { kswapd: host.is_kswapd(), ..Caller::kswapd(0, 0) };
        let (looked, page) = vm.with(|state| {
            let (list, mut looked) = (clean_list(zone), 0);
            let page = loop {
                let Some(frame) = state.lists.tail(list) else { break None };
                let flags = state.frames.flags(frame);
                looked += 1;
                if flags.has(Flags::REFERENCED) || state.frames.mapped(frame) > 0 {
                    self.activate(state, frame);
                } else if flags.any(Flags::DIRTY | Flags::LOCKED | Flags::WRITEBACK | Flags::BUFFERS) {
                    self.to(state, INACTIVE, frame);
                } else {
                    self.detach(state, &caller, frame);
                    break Some(frame);
                }
            };
            (looked, page)
        });
        self.data.stolen.set(self.data.stolen.get() + u64::from(page.is_some()));
        host.work(Work::Scan, looked);
        host.work(Work::Reclaim, page.is_some().into());
        page
    }
}
