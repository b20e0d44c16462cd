//! Reclaim of a node: how many pages are looked at, when a new generation begins, when it stops.
//!
//! ```text
//! direct, kswapd ── shrink_node ── slab caches, by priority
//!                       └ until scanned: enough? ── due: age (walk, begin) ── evict a batch of 64
//! ```

use super::Generations;
use super::aging::due;
use super::lists::list;
use super::pass::{
    Dirty, Late, Next, Stops, Turn, after_aging, batch_wakes_flushers, pass_wakes_flushers, priority_for,
    progress, turn,
};
use super::policy::{BATCH, Budget, DirtyFiles, Placement, Rules, Stop};
use super::scan::{May, Taken};
use super::word::{GENERATIONS, Type, YOUNG, forget};
use crate::frames::Flags;
use crate::host::{Mark, Work};
use crate::ids::Frame;
use crate::pageout::{Evicted, FileWrites, References, Scan, Writing, evict_again, evict_batch, put_back};
use crate::reclaimers::{Manners, Met, Only, Reclaimer, Round, compact_gap, look_at_writes};
use crate::replacement::Sizes;
use crate::shrinker::shrink_slab;
use crate::state::State;
use crate::vm::{Host, Vm};
use std::rc::Rc;

impl Reclaimer for Generations {
    fn manners(&self) -> Manners {
        let Rules { boost, throttle, kswapd_order, .. } = self.rules;
        Manners { boost, throttle, kswapd_order }
    }

    fn nodes(&self) -> u16 {
        self.nodes.borrow().len() as u16
    }

    fn sizes_of(&self, node: u16) -> Sizes {
        self.with_node(node, |node| node.sizes())
    }

    fn failures(&self, node: u16, change: impl FnOnce(&mut u32)) -> u32 {
        self.with_node(node, |node| {
            change(&mut node.failures);
            node.failures
        })
    }

    fn only(&self, node: u16, change: impl FnOnce(&mut Only)) -> Only {
        self.with_node(node, |node| {
            change(&mut node.only);
            node.only
        })
    }

    fn is_balanced_now(&self, node: u16) {
        self.only(node, |only| *only = Only::default());
    }

    fn age(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        self.age_node(vm, host, round);
    }

    /// A pass over a node and over the slab caches (`shrink_node`, `lru_gen_shrink_node`).
    fn shrink_node(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        let before = round.reclaimed;
        if self.rules.stop == Stop::Enough {
            self.shrink_once(vm, host, round);
        } else {
            loop {
                let this_pass = round.reclaimed;
                self.shrink_pages_and_slabs(vm, host, round);
                if !self.should_continue(vm, host, round, round.reclaimed - this_pass) {
                    break;
                }
            }
        }
        if round.reclaimed > before {
            self.failures(round.node, |failures| *failures = 0);
        }
    }

    /// Pages of files count, and anonymous ones while swap is free. Those of a zone are those of its lists.
    fn reclaimable(&self, vm: &Vm, zone: usize) -> u64 {
        vm.with(|state| {
            let types = if state.swap.free() > 0 { &Type::ALL[..] } else { &Type::ALL[1..] };
            let lists = types.iter().flat_map(|of| (0..GENERATIONS as u8).map(|at| list(zone, *of, at)));
            lists.map(|list| u64::from(state.lists.len(list))).sum()
        })
    }
}

/// What a batch did.
struct Batch {
    /// Pages that count for the pass; 0: there is nothing to get.
    progress: u32,
    /// The type of its pages.
    of: Type,
    /// Dirty pages of files that the scan met.
    dirty: Dirty,
}

impl Generations {
    /// The weight of anonymous pages for a reclaimer; 0: they stay (`get_swappiness`).
    pub(crate) fn swappiness(&self, state: &State, round: &Round) -> u32 {
        let set = if u64::from(state.swap.free()) < BATCH { 0 } else { state.settings.swappiness };
        match self.rules.stop {
            _ if round.swap => set,
            // While marks are raised, files first.
            Stop::Late => set.min(1),
            Stop::Enough => 0,
        }
    }

    /// The pass since 6.3: no second one for a large block, none at all for raised marks or for a reclaimer
    /// that leaves dirty or mapped pages alone (from memory), and what kswapd got
    /// in earlier passes does not stop this one.
    fn shrink_once(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        if !round.write || round.keeps_mapped {
            return;
        }
        self.first_priority(vm, round);
        let before = if round.kswapd { std::mem::take(&mut round.reclaimed) } else { 0 };
        self.shrink_pages_and_slabs(vm, host, round);
        round.reclaimed += before;
    }

    fn shrink_pages_and_slabs(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        self.shrink_pages(vm, host, round);
        if self.rules.slabs {
            let owed = self.with_node(round.node, |node| Rc::clone(&node.owed));
            round.reclaimed += shrink_slab(vm, host, &owed, round.priority);
        }
        if self.rules.congestion {
            look_at_writes(self, vm, host, round);
        }
    }

    /// kswapd begins with the priority at which one pass would do (`set_initial_priority`).
    fn first_priority(&self, vm: &Vm, round: &mut Round) {
        let swaps = vm.with(|state| state.swap.free() > 0);
        let pages = self.with_node(round.node, |node| {
            let old =
                |of| (node.min_seq[of as usize]..node.max_seq - 1).map(|seq| node.size(of, seq)).sum::<u64>();
            old(Type::File) + if swaps { old(Type::Anon) } else { 0 }
        });
        round.priority = priority_for(self.rules.first_priority, round.priority, round.target, pages);
    }

    /// Looks at pages until enough were scanned (`lru_gen_shrink_lruvec`, `try_to_shrink_lruvec`).
    fn shrink_pages(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        let swappiness = vm.with(|state| self.swappiness(state, round));
        let first_seq = self.with_node(round.node, |node| node.max_seq);
        let before = round.reclaimed;
        let (mut scanned, mut finished) = (0, false);
        let (mut budget, mut dirty) = (None, Dirty::default());
        round.met = Met::default();
        let wanted_aging = loop {
            let (next, age) = self.next(vm, host, round, swappiness);
            if next.share == 0 {
                break age;
            }
            let (most, look) = match self.rules.budget {
                Budget::Each => (next.share, self.rules.look),
                Budget::Once => {
                    let most = *budget.get_or_insert(next.share);
                    (most, (most - scanned).min(self.rules.look.into()) as u32)
                }
            };
            let batch = self.evict_pages(vm, host, round, swappiness, look);
            dirty.of += batch.dirty.of;
            dirty.unqueued += batch.dirty.unqueued;
            if batch.progress == 0 {
                break age;
            }
            scanned += u64::from(batch.progress);
            let swapped = batch.of == Type::Anon;
            let ends = scanned >= most || next.is_last;
            if ends || self.stops(host, vm, round, first_seq, swapped) {
                finished = true;
                break age;
            }
            host.resched();
        };
        host.unplug();
        if finished && round.reclaimed - before >= BATCH && !wanted_aging {
            round.young_enough = true;
        }
        if pass_wakes_flushers(self.rules.flushers, dirty) {
            host.wake_flushers(0);
        }
    }

    /// Pages to look at in this pass, and whether it ends after a batch. Begins a new generation if it is due
    /// and this reclaimer's task to do so. Also whether it was due (`get_nr_to_scan`).
    fn next(&self, vm: &Vm, host: &dyn Host, round: &Round, swappiness: u32) -> (Next, bool) {
        let (due, seq) =
            self.with_node(round.node, |node| (due(node, &self.rules, swappiness), node.max_seq));
        let share = due.pages >> round.priority;
        let goes_on = |share| Next { share, is_last: false };
        if !due.age {
            return (goes_on(share), false);
        }
        let next = match turn(&self.rules, round.kswapd, round.priority, due.evictable) {
            Turn::Evicts => goes_on(share),
            Turn::Skips => goes_on(0),
            Turn::AgesAndEvicts => {
                let aged = self.begin_or_wait(vm, host, round, seq, swappiness);
                goes_on(if aged || due.evictable { share } else { 0 })
            }
            Turn::Ages => {
                let aged = self.begin_or_wait(vm, host, round, seq, swappiness);
                after_aging(self.rules.after_aging, round.group, aged, share)
            }
        };
        (next, true)
    }

    /// Evicts a batch, of at most so many pages that it looks at (`evict_folios`).
    fn evict_pages(&self, vm: &Vm, host: &dyn Host, round: &mut Round, swappiness: u32, look: u32) -> Batch {
        let may = May { class: round.class, io: round.write && round.io, unmap: !round.keeps_mapped, look };
        let (taken, progress) = vm.with(|state| {
            self.with_node(round.node, |node| {
                let taken = node.isolate(state, &self.rules, swappiness, may);
                let dropped = node.drop_empty(state, &self.rules, swappiness);
                let evictable = node.evictable(&self.rules, swappiness) + YOUNG <= node.max_seq;
                let progress = progress(self.rules.budget, taken.scanned, dropped, evictable);
                (taken, progress)
            })
        });
        let Taken { pages, of, dirty, unqueued, .. } = taken;
        let dirty = Dirty { of: dirty.into(), unqueued: unqueued.into() };
        let batch = Batch { progress, of, dirty };
        host.work(Work::Scan, taken.scanned);
        if pages.is_empty() {
            self.look_at_batch(host, 0, &Evicted::default(), dirty);
            return batch;
        }
        let count = pages.len() as u64;
        round.scanned += count;
        let only = self.only(round.node, |_| {});
        let how = Scan {
            group: round.group,
            references: References::Modern,
            io: round.io,
            fs: round.fs,
            unmap: !round.keeps_mapped,
            write: round.write,
            writing: Writing::Aside,
            file_writes: FileWrites::Flusher,
            met_writeback: only.writeback,
            met_dirty: only.dirty,
            tmpfs_two_visits: false,
            full_frees_slot: true,
        };
        let first = evict_batch(vm, host, pages, &how);
        self.look_at_batch(host, count, &first, dirty);
        round.met.add(&first, count, of == Type::File);
        let clean = self.put_rejected(vm, host, round.node, &first, true);
        let again = evict_again(vm, host, clean, &how);
        self.put_rejected(vm, host, round.node, &again, false);
        round.reclaimed += u64::from(first.freed + again.freed);
        batch
    }

    /// Wakes the flushers, if a batch met only pages that wait for them. `moved`: of pages of files that the
    /// scan met dirty; until 7.1 they are not among the `taken` ones.
    fn look_at_batch(&self, host: &dyn Host, taken: u64, evicted: &Evicted, moved: Dirty) {
        let moved = if self.rules.dirty == DirtyFiles::Next { moved } else { Dirty::default() };
        let unqueued = u64::from(evicted.unqueued_dirty) + moved.unqueued;
        if batch_wakes_flushers(self.rules.flushers, Dirty { of: taken + moved.of, unqueued }) {
            host.wake_flushers(0);
        }
    }

    /// Puts back what could not be evicted. Pages that became clean meanwhile stay isolated and are returned:
    /// their writes ended before anybody could move them to where reclaim looks next.
    fn put_rejected(&self, vm: &Vm, host: &dyn Host, node: u16, batch: &Evicted, retry: bool) -> Vec<Frame> {
        let mut clean = Vec::new();
        let mut rest = Vec::new();
        vm.with(|state| {
            for frame in batch.kept.iter().copied() {
                let again = retry && self.is_clean_now(state, frame);
                if again {
                    clean.push(frame);
                } else {
                    self.reject(state, node, frame);
                    rest.push(frame);
                }
            }
        });
        put_back(vm, host, &rest, |state, frame| self.put(state, frame));
        clean
    }

    fn is_clean_now(&self, state: &State, frame: Frame) -> bool {
        let flags = state.frames.flags(frame);
        let busy = Flags::ACTIVE | Flags::DIRTY | Flags::WRITEBACK | Flags::GONE | Flags::UNEVICTABLE;
        let used = Flags::REFERENCED | Flags::LOCKED;
        let is_new = self.rules.placement == Placement::Workingset;
        state.frames.mapped(frame) == 0 && !flags.any(busy) && (is_new || !flags.any(used))
    }

    /// A page that could not be evicted does not return to the oldest generation, unless its write will end
    /// (docs/theory/vm.md 4.10).
    fn reject(&self, state: &mut State, node: u16, frame: Frame) {
        let flags = state.frames.flags(frame);
        let rules = &self.rules;
        if rules.placement == Placement::Workingset {
            let is_file = Type::of(state, frame) as usize;
            let seq = self
                .with_node(node, |node| (node.seq_for(state, rules, frame, false), node.min_seq[is_file]));
            if seq.0 == seq.1 {
                forget(state, rules, frame);
                state.frames.set(frame, Flags::ACTIVE);
            }
        } else if flags.has(Flags::RECLAIM) && flags.any(Flags::DIRTY | Flags::WRITEBACK) {
            if flags.any(Flags::WORKINGSET) {
                state.frames.set(frame, Flags::REFERENCED);
            }
        } else {
            forget(state, rules, frame);
            state.frames.set(frame, Flags::ACTIVE);
        }
    }

    /// Whether a pass stops before it scanned its share (`should_abort_scan`). In 6.1 a pass that stops as
    /// free pages reach the mark counts a batch more (from memory): its reclaimer does not go on either
    /// (docs/theory/vm.md 4.11).
    fn stops(&self, host: &dyn Host, vm: &Vm, round: &mut Round, first_seq: u64, swapped: bool) -> bool {
        let marks = |round: &Round, mark: Mark, more: u64| {
            let zones = self.with_node(round.node, |node| node.zones.clone());
            let fits = |at: &usize| vm.with(|state| state.zones[*at].class <= round.class);
            zones.into_iter().filter(fits).all(|at| host.free_pages(at) >= host.mark(at, mark) + more)
        };
        if self.rules.stop == Stop::Enough {
            let has_enough = round.reclaimed >= round.target.max(compact_gap(round.order));
            let at_mark = round.kswapd && round.order == 0 && marks(round, Mark::High, BATCH);
            // A group's pass does its share (from memory).
            return !round.group && (has_enough || at_mark);
        }
        let (mark, before) = if round.kswapd { (Mark::High, round.before) } else { (Mark::Low, 0) };
        let seq = self.with_node(round.node, |node| node.max_seq);
        let late = Late {
            kswapd: round.kswapd,
            priority: round.priority,
            has_enough: round.reclaimed - before >= round.target,
            swapped,
            begun: seq - first_seq,
        };
        match late.stops() {
            Stops::Yes => true,
            Stops::AtMark if !round.group && marks(round, mark, 0) => {
                round.reclaimed += BATCH;
                true
            }
            Stops::AtMark | Stops::No => false,
        }
    }
}
