//! The rounds over the lists of a node (`shrink_lruvec`).

use super::balance::Prepared;
use super::{ACTIVE, ANON, BITE, Classic, Cost, FILE, INACTIVE, kind_of};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Throttle, Work};
use crate::ids::Frame;
use crate::pageout::{Evicted, References, Scan, Writing, evict_batch, put_back};
use crate::reclaimers::{FIRST, Round};
use crate::vm::{Host, Vm};

impl Classic {
    /// Scans each list of a node by its share, a bite of each in turn (docs/theory/vm.md 3.5).
    pub(super) fn shrink_lists(&self, vm: &Vm, host: &dyn Host, round: &mut Round, prepared: &Prepared) {
        let targets = vm.with(|state| self.scan_counts(state, round, prepared));
        let mut left = targets;
        let all_of_it = scans_all(round.kswapd, round.priority);
        let mut reclaimed = 0;
        while left[INACTIVE[ANON]] > 0 || left[ACTIVE[FILE]] > 0 || left[INACTIVE[FILE]] > 0 {
            for (list, left) in left.iter_mut().enumerate() {
                let bite = BITE.min(*left);
                if bite > 0 {
                    *left -= bite;
                    reclaimed += self.shrink_list(vm, host, round, prepared, list, bite);
                }
            }
            host.resched();
            if reclaimed < round.target || all_of_it {
                continue;
            }
            if !stop_the_shorter(&targets, &mut left) {
                break;
            }
        }
        host.unplug();
        round.reclaimed += reclaimed;
        self.age_anon(vm, host, round);
    }

    /// Ages a bite of the active anonymous pages, if their inactive list is short.
    pub(super) fn age_anon(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        let has_swap = vm.with(|state| state.swap.slots() > 0);
        if has_swap && self.node(round.node, |node| self.inactive_is_low(node, ANON)) {
            self.shrink_active(vm, host, round, ANON, BITE);
        }
    }

    fn shrink_list(
        &self,
        vm: &Vm,
        host: &dyn Host,
        round: &mut Round,
        prepared: &Prepared,
        list: usize,
        bite: u64,
    ) -> u64 {
        let kind = list / 2;
        if list == INACTIVE[kind] {
            return self.shrink_inactive(vm, host, round, kind, bite);
        }
        if prepared.deactivate[kind] {
            self.shrink_active(vm, host, round, kind, bite);
        } else {
            round.left_active = true;
        }
        0
    }

    /// Takes up to `most` pages from the tail of a list. Pages of zones above the round's go to its head
    /// (docs/theory/vm.md 3.5).
    fn isolate(&self, vm: &Vm, host: &dyn Host, round: &Round, list: usize, most: u64) -> Vec<Frame> {
        let id = self.id(round.node, list);
        let mut taken = Vec::with_capacity(most as usize);
        vm.with(|state| {
            let mut skipped = Vec::new();
            while (taken.len() as u64) < most {
                let Some(frame) = state.lists.tail(id) else { break };
                self.take(state, frame);
                let is_higher = state.zones[state.zone_of(frame)].class > round.class;
                if is_higher { skipped.push(frame) } else { taken.push(frame) }
            }
            for frame in &taken {
                state.frames.set(*frame, Flags::ISOLATED);
            }
            skipped.into_iter().rev().for_each(|frame| self.put(state, frame, false));
        });
        self.node(round.node, |node| node.isolated[list / 2] += taken.len() as u64);
        host.work(Work::Scan, taken.len() as u32);
        taken
    }

    /// Puts pages that a reclaimer held at the heads of their lists.
    fn put_all(&self, vm: &Vm, host: &dyn Host, pages: &[Frame]) {
        put_back(vm, host, pages, |state, frame| self.put(state, frame, false));
    }

    fn release(&self, round: &Round, kind: usize, pages: usize) {
        self.node(round.node, |node| node.isolated[kind] -= pages as u64);
    }

    /// Evicts pages from the tail of an inactive list. Returns how many (`shrink_inactive_list`).
    fn shrink_inactive(&self, vm: &Vm, host: &dyn Host, round: &mut Round, kind: usize, bite: u64) -> u64 {
        if self.too_many_isolated(round, kind) {
            host.throttle(Throttle::Isolated, 20_000_000);
            if self.too_many_isolated(round, kind) {
                return 0;
            }
        }
        let pages = self.isolate(vm, host, round, INACTIVE[kind], bite);
        let taken = pages.len();
        round.scanned += taken as u64;
        if taken == 0 {
            return 0;
        }
        let evicted = self.evict(vm, host, round, pages);
        self.put_all(vm, host, &evicted.kept);
        self.release(round, kind, taken);
        let (written, vain) = bite_cost(taken as u64, &evicted);
        self.note_cost(round.node, kind, written, vain);
        if u64::from(evicted.unqueued_dirty) == taken as u64 {
            host.wake_flushers(0);
        }
        round.met.add(&evicted, taken as u64, kind == FILE);
        u64::from(evicted.freed)
    }

    fn evict(&self, vm: &Vm, host: &dyn Host, round: &Round, pages: Vec<Frame>) -> Evicted {
        let only = self.node(round.node, |node| node.only);
        let how = Scan {
            group: round.group,
            references: References::Modern,
            io: round.io,
            fs: round.fs,
            unmap: !round.keeps_mapped,
            write: round.write,
            writing: Writing::Aside,
            file_writes: self.choices.file_writes,
            met_writeback: only.writeback,
            met_dirty: only.dirty,
            tmpfs_two_visits: false,
            full_frees_slot: true,
        };
        let evicted = evict_batch(vm, host, pages, &how);
        // Activations age the node (`workingset_age_nonresident`).
        let activated = u64::from(evicted.activated[ANON] + evicted.activated[FILE]);
        self.node(round.node, |node| node.age += activated);
        evicted
    }

    /// More pages are held than are left on the list; less than that for who may wait for I/O.
    fn too_many_isolated(&self, round: &Round, kind: usize) -> bool {
        let (inactive, isolated) =
            self.node(round.node, |node| (node.all(INACTIVE[kind]), node.isolated[kind]));
        !round.kswapd && isolated > most_isolated(inactive, round.io && round.fs)
    }

    /// Deactivates pages from the tail of an active list (`shrink_active_list`). A page that was accessed
    /// goes too, unless it is text of a program.
    fn shrink_active(&self, vm: &Vm, host: &dyn Host, round: &Round, kind: usize, bite: u64) {
        let pages = self.isolate(vm, host, round, ACTIVE[kind], bite);
        let (mut entries, mut rotated, mut kept, mut down) = (0, 0, Vec::new(), Vec::new());
        vm.with(|state| {
            state.counters.add(Counter::PgRefill, pages.len() as u64);
            for frame in &pages {
                let looked = state.look(*frame);
                entries += looked.entries;
                let is_file = kind_of(state, *frame) == FILE;
                if stays_active(self.choices.keep_text, looked.exec, is_file) {
                    rotated += 1;
                    kept.push(*frame);
                } else {
                    state.frames.clear(*frame, Flags::ACTIVE);
                    state.frames.set(*frame, Flags::WORKINGSET);
                    down.push(*frame);
                }
            }
            state.counters.add(Counter::PgDeactivate, down.len() as u64);
        });
        host.work(Work::Rmap, entries);
        self.put_all(vm, host, &kept);
        self.put_all(vm, host, &down);
        self.node(round.node, |node| node.age += kept.len() as u64);
        self.release(round, kind, pages.len());
        if rotated > 0 && self.choices.cost == Cost::IoAndRotations {
            self.note_cost(round.node, kind, 0, rotated);
        }
    }
}

/// Whether a pass scans all of its targets, however much it reclaims: an allocation's first one
/// (docs/theory/vm.md 3.5).
fn scans_all(kswapd: bool, priority: u32) -> bool {
    !kswapd && priority == FIRST
}

/// What a bite of so many pages costs its type: the pages that were written, and those scanned in vain
/// (docs/theory/vm.md 3.4).
fn bite_cost(taken: u64, evicted: &Evicted) -> (u64, u64) {
    (evicted.written.into(), taken - u64::from(evicted.freed))
}

/// Pages that reclaimers may hold of a list that has so many left: an eighth of them by those that may wait
/// for I/O (docs/theory/vm.md 3.5).
fn most_isolated(inactive: u64, waits: bool) -> u64 {
    if waits { inactive >> 3 } else { inactive }
}

/// Whether a page of an active list stays there: text of a program that was accessed (docs/theory/vm.md 3.6).
fn stays_active(keep_text: bool, accessed_text: bool, is_file: bool) -> bool {
    accessed_text && is_file && keep_text
}

/// Enough pages are reclaimed: the type with less left to scan stops, and the other goes on until the same
/// part of its target was scanned. Returns whether something is left (docs/theory/vm.md 3.5).
fn stop_the_shorter(targets: &[u64; 4], left: &mut [u64; 4]) -> bool {
    let sum = |of: &[u64; 4], kind: usize| of[INACTIVE[kind]] + of[ACTIVE[kind]];
    let (anon, file) = (sum(left, ANON), sum(left, FILE));
    if anon == 0 || file == 0 {
        return false;
    }
    let (stops, goes_on) = if file > anon { (ANON, FILE) } else { (FILE, ANON) };
    let part = sum(left, stops) * 100 / (sum(targets, stops) + 1);
    (left[INACTIVE[stops]], left[ACTIVE[stops]]) = (0, 0);
    for list in [INACTIVE[goes_on], ACTIVE[goes_on]] {
        let scanned = targets[list] - left[list];
        left[list] = (targets[list] * (100 - part) / 100).saturating_sub(scanned);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::Choices;
    use super::*;
    use crate::reclaim::with_knobs;

    #[test]
    fn both_types_are_scanned_to_the_same_part() {
        // Anonymous pages have half of their target left, files three quarters: files stop at half.
        let mut left = [50, 0, 300, 0];
        assert!(stop_the_shorter(&[100, 0, 400, 0], &mut left));
        // 50 of 101 are 49 %: files are scanned to 51 % of 400, of which 100 were.
        assert_eq!(left, [0, 0, 104, 0]);
        assert!(!stop_the_shorter(&[100, 0, 400, 0], &mut left));
    }

    #[test]
    fn an_allocation_scans_all_of_its_first_targets() {
        for (kswapd, priority, expected) in
            [(false, FIRST, true), (false, FIRST - 1, false), (true, FIRST, false), (true, 1, false)]
        {
            assert_eq!(scans_all(kswapd, priority), expected, "kswapd {kswapd}, {priority}");
        }
    }

    #[test]
    fn pages_that_were_not_freed_are_scanned_in_vain() {
        for (taken, freed, written, expected) in
            [(32, 32, 0, (0, 0)), (32, 20, 5, (5, 12)), (1, 0, 1, (1, 1))]
        {
            let evicted = Evicted { freed, written, ..Evicted::default() };
            assert_eq!(bite_cost(taken, &evicted), expected, "{taken} taken, {freed} freed");
        }
    }

    #[test]
    fn who_may_wait_leaves_seven_eighths_of_a_list() {
        for (inactive, waits, expected) in [(80, true, 10), (79, true, 9), (80, false, 80)] {
            assert_eq!(most_isolated(inactive, waits), expected, "{inactive} {waits}");
        }
    }

    #[test]
    fn accessed_text_of_files_stays_active() {
        let keeps = |knobs: &str| with_knobs::<Choices>("6.1", knobs).keep_text;
        for (knobs, accessed_text, is_file, expected) in [
            ("", true, true, true),
            ("", false, true, false),
            // Text of a file in tmpfs.
            ("", true, false, false),
            ("keep_text=no", true, true, false),
        ] {
            let stays = stays_active(keeps(knobs), accessed_text, is_file);
            assert_eq!(stays, expected, "{knobs} {accessed_text} {is_file}");
        }
    }
}
