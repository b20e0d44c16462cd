//! The rounds over the lists of a zone (`shrink_zone`).

use super::balance::anon_is_low;
use super::isolate::{Bite, kind_of_list};
use super::policy::Lumpy;
use super::{ACTIVE, ANON, ActiveFiles, BITE, FILE, INACTIVE, Split, kind_of, lru_pages, size};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Mark, Throttle, Work};
use crate::ids::Frame;
use crate::pageout::{References, Scan, Writing, evict_again, evict_batch, put_back};
use crate::settings::DirtyLimit;
use crate::state::State;
use crate::vm::{Host, Vm};

/// The first priority of a reclaimer: it looks at 1/4096 of each list.
pub(super) const FIRST: u32 = 12;
/// The highest order for which reclaim does not wait for whole blocks (`PAGE_ALLOC_COSTLY_ORDER`).
const COSTLY: u8 = 3;
/// How long a reclaimer sleeps while disks are busy.
pub(super) const NAP: u64 = 100_000_000;

/// Percent of free and listed pages that may be dirty, if nobody set it.
const DIRTY_LIMIT: DirtyLimit = DirtyLimit::Percent(10);

/// What one reclaimer wants and has found (`scan_control`).
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    pub order: u8,
    pub priority: u32,
    pub kswapd: bool,
    pub io: bool,
    pub fs: bool,
    /// Mapped pages stay, and dirty ones.
    pub keeps_mapped: bool,
    pub keeps_dirty: bool,
    pub reclaimed: u64,
    pub scanned: u64,
}

impl Split {
    /// Scans the lists of a zone by their shares.
    pub(super) fn shrink_zone(&self, vm: &Vm, host: &dyn Host, zone: usize, round: &mut Round) {
        let (free, high) = (host.free_pages(zone), host.mark(zone, Mark::High));
        let percent = vm.with(|state| self.scan_ratio(state, zone, free, high));
        let mut left = vm.with(|state| self.due(state, zone, round.priority, percent));
        while left[INACTIVE[ANON]] > 0 || left[ACTIVE[FILE]] > 0 || left[INACTIVE[FILE]] > 0 {
            for (list, left) in left.iter_mut().enumerate() {
                let bite = BITE.min(*left);
                if bite > 0 {
                    *left -= bite;
                    round.reclaimed += self.shrink_list(vm, host, zone, list, bite, round);
                }
            }
            if round.reclaimed > BITE && round.priority < FIRST && !round.kswapd {
                break;
            }
        }
        self.age_anon(vm, host, zone, round);
        self.wait_for_writes(vm, host, round);
    }

    /// Ages a bite of the active anonymous pages, if their inactive list is short.
    pub(super) fn age_anon(&self, vm: &Vm, host: &dyn Host, zone: usize, round: &Round) {
        if vm.with(|state| anon_is_low(state, zone)) {
            self.shrink_active(vm, host, zone, ANON, BITE, round);
        }
    }

    fn shrink_list(
        &self,
        vm: &Vm,
        host: &dyn Host,
        zone: usize,
        list: usize,
        bite: u64,
        round: &mut Round,
    ) -> u64 {
        let is_low = |state: &mut State| match self.choices.active_files {
            ActiveFiles::Always => true,
            ActiveFiles::Low => size(state, zone, ACTIVE[FILE]) > size(state, zone, INACTIVE[FILE]),
        };
        if list == ACTIVE[FILE] {
            if vm.with(is_low) {
                self.shrink_active(vm, host, zone, FILE, bite, round);
            }
            return 0;
        }
        if list == ACTIVE[ANON] && vm.with(|state| anon_is_low(state, zone)) {
            self.shrink_active(vm, host, zone, ANON, bite, round);
            return 0;
        }
        // What is due on the active anonymous list while it is short goes to the inactive one.
        self.shrink_inactive(vm, host, zone, kind_of_list(list), bite, round)
    }

    /// Deactivates pages from the tail of an active list, accessed or not (`shrink_active_list`;
    /// docs/theory/vm.md 6.3).
    fn shrink_active(&self, vm: &Vm, host: &dyn Host, zone: usize, kind: usize, bite: u64, round: &Round) {
        let bite = Bite { zone, list: ACTIVE[kind], order: round.order, every: false, most: bite };
        let mut entries = 0;
        let taken = vm.with(|state| {
            let taken = self.isolate_bite(state, &bite);
            let mut used = 0;
            for frame in &taken.pages {
                if is_in_use(state, *frame) {
                    let looked = state.look(*frame);
                    entries += looked.entries;
                    let referenced = state.frames.clear(*frame, Flags::REFERENCED).any(Flags::REFERENCED);
                    used += u64::from(referenced || looked.accessed > 0);
                }
                state.frames.clear(*frame, Flags::ACTIVE);
            }
            self.past(zone, |past| {
                past.in_vain += taken.scanned;
                past.scanned[kind] += taken.pages.len() as u64;
                past.rotated[kind] += used;
            });
            state.counters.add(Counter::PgRefill, taken.scanned);
            state.counters.add(Counter::PgDeactivate, taken.pages.len() as u64);
            taken
        });
        host.work(Work::Scan, taken.scanned as u32);
        host.work(Work::Rmap, entries);
        self.put_all(vm, host, &taken.pages);
    }

    /// Evicts pages from the tail of an inactive list. Returns how many (`shrink_inactive_list`).
    fn shrink_inactive(
        &self,
        vm: &Vm,
        host: &dyn Host,
        zone: usize,
        kind: usize,
        bite: u64,
        round: &mut Round,
    ) -> u64 {
        let every = takes_active(round.order, round.priority);
        let one = Bite { zone, list: INACTIVE[kind], order: round.order, every, most: BITE };
        let (mut scanned, mut freed) = (0, 0);
        while scanned < bite {
            let taken = vm.with(|state| {
                let taken = self.isolate_bite(state, &one);
                deactivate(state, &taken.pages);
                taken
            });
            scanned += taken.scanned;
            self.past(zone, |past| {
                past.in_vain += taken.scanned;
                (0..2).for_each(|kind| past.scanned[kind] += taken.kinds[kind]);
            });
            host.work(Work::Scan, taken.scanned as u32);
            if taken.pages.is_empty() {
                break;
            }
            freed += self.evict(vm, host, zone, taken.pages, round);
        }
        round.scanned += scanned;
        freed
    }

    fn evict(&self, vm: &Vm, host: &dyn Host, zone: usize, pages: Vec<Frame>, round: &Round) -> u64 {
        let is_costly = self.choices.lumpy != Lumpy::No && round.order > COSTLY;
        let mut how = Scan {
            group: false,
            references: References::Any { lumpy: is_costly },
            io: round.io,
            fs: round.fs,
            unmap: !round.keeps_mapped,
            write: !round.keeps_dirty,
            writing: Writing::Keep,
            file_writes: self.choices.file_writes,
            met_writeback: false,
            met_dirty: true,
            tmpfs_two_visits: self.choices.tmpfs_two_visits,
            full_frees_slot: true,
        };
        let mut evicted = evict_batch(vm, host, pages, &how);
        let mut freed = u64::from(evicted.freed);
        // For a large block every page of it must go: the reclaimer waits for the writes.
        if !evicted.kept.is_empty() && !round.kswapd && is_costly {
            self.throttle(host);
            vm.with(|state| deactivate(state, &evicted.kept));
            how.writing = Writing::Wait;
            evicted = evict_again(vm, host, evicted.kept, &how);
            freed += u64::from(evicted.freed);
        }
        vm.with(|state| {
            let active = |frame: &&Frame| state.frames.has(**frame, Flags::ACTIVE);
            for frame in evicted.kept.iter().filter(active) {
                let kind = kind_of(state, *frame);
                self.past(zone, |past| past.rotated[kind] += 1);
            }
        });
        self.put_all(vm, host, &evicted.kept);
        freed
    }

    fn put_all(&self, vm: &Vm, host: &dyn Host, pages: &[Frame]) {
        put_back(vm, host, pages, |state, frame| self.put(state, frame, false));
    }

    /// Sleeps while disks are busy.
    pub(super) fn throttle(&self, host: &dyn Host) {
        if self.choices.throttle { host.throttle(Throttle::Congestion, NAP) } else { host.resched() }
    }

    /// Sleeps while more pages are being written than a tenth above the dirty limit; at most once if the
    /// caller may not wait for I/O (`throttle_vm_writeout`; docs/theory/vm.md 6.8).
    fn wait_for_writes(&self, vm: &Vm, host: &dyn Host, round: &Round) {
        /// A disk that ends nothing in this many naps does not hold reclaim up any longer. Assumed.
        const MOST: u32 = 100;
        let is_over = || {
            let free: u64 = (0..vm.with(|state| state.zones.len())).map(|zone| host.free_pages(zone)).sum();
            vm.with(|state| {
                let pages: u64 = (0..state.zones.len()).map(|zone| lru_pages(state, zone)).sum();
                let limit = state.settings.dirty_limit.unwrap_or(DIRTY_LIMIT);
                state.dirty.writeback * 1000 > limit.hundredths(free + pages) * 11
            })
        };
        for _ in 0..MOST {
            if !self.choices.throttle || !is_over() {
                break;
            }
            host.throttle(Throttle::Congestion, NAP);
            if !(round.io && round.fs) {
                break;
            }
        }
    }
}

/// Whether the active neighbours of a page come along: always for a large block, below priority 10 for a
/// smaller one (docs/theory/vm.md 6.4).
fn takes_active(order: u8, priority: u32) -> bool {
    order > COSTLY || order > 0 && priority < FIRST - 2
}

/// Accesses count for a page that is mapped, in the swap cache, or of a mapped file
/// (`page_mapping_inuse`).
fn is_in_use(state: &State, frame: Frame) -> bool {
    let flags = state.frames.flags(frame);
    let is_mapped_file = || {
        let mapping = crate::ids::MappingId(state.frames.owner(frame));
        !flags.any(Flags::ANON) && !state.mappings.get(mapping).regions.is_empty()
    };
    state.frames.mapped(frame) > 0 || flags.any(Flags::SWAPCACHE) || is_mapped_file()
}

/// Active pages that came along as neighbours are inactive from here on.
fn deactivate(state: &mut State, pages: &[Frame]) {
    for frame in pages {
        if state.frames.clear(*frame, Flags::ACTIVE).any(Flags::ACTIVE) {
            state.count(Counter::PgDeactivate);
        }
    }
}

/// Pages of all lists of all zones that reclaim scans.
pub(super) fn all_pages(state: &State, zones: &[usize]) -> u64 {
    zones.iter().map(|zone| lru_pages(state, *zone)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_neighbours_come_along_for_blocks() {
        for (order, priority, expected) in [
            (0, 12, false),
            (0, 0, false),
            (1, 11, false),
            (3, 10, false),
            (1, 9, true),
            (3, 0, true),
            (4, 12, true),
        ] {
            assert_eq!(takes_active(order, priority), expected, "order {order}, priority {priority}");
        }
    }
}
