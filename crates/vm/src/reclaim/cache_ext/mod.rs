//! Policies of papers in a kernel of 6.12 or 7.2: what `cache_ext` (SOSP 2025) brings to the page cache as
//! eBPF programs, here for all pages. A policy says which pages are next to go; the reclaimers, the eviction
//! of a page, page cache and write-back are the kernel's.
//!
//! | word | policy | source |
//! |---|---|---|
//! | `s3fifo` | three queues, first in first out | Yang et al., SOSP 2023 |
//! | `lhd` | the lowest density of hits goes | Beckmann, Chen, Cidon, NSDI 2018 |
//! | `mru` | the page used last goes | Denning 1968 as the opposite of LRU; best for loops |
//! | `stride` | pages behind a reader of constant stride go | Glass and Cao, SIGMETRICS 1997 (SEQ) |
//!
//! ```text
//! shrink_node ── next: a batch of pages, by the policy ── evict_batch ── accessed: kept, told to the policy
//!                                                             └ evicted: shadow ── comes back: enter
//! ```
//!
//! An access that a page was read for counts for nothing. An access through a page table is found when the
//! page is next to go: it stays this time. Rules: docs/theory/vm.md 13.

pub mod lhd;
pub mod mru;
pub mod s3fifo;
pub mod stride;

use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::Ask;
use crate::ids::Frame;
use crate::lists::ListId;
use crate::pageout::{FileWrites, References, Scan, Writing, evict_batch, put_back};
use crate::reclaimers::{
    Manners, Only, Reclaimer, Round, WANTED, look_at_writes, reclaim_directly, run_kswapd, should_wake,
    shrink_near,
};
use crate::replacement::{Enter, Freed, Pass, Rule, Sizes, Verdict};
use crate::shrinker::{Owed, shrink_slab};
use crate::state::State;
use crate::vm::{Host, Replacement, Vm};
use std::cell::{Cell, RefCell};

/// Pages of a batch.
pub(super) const BATCH: usize = 32;
/// Pages that a policy looks at for a batch, most of which the reclaimer may not take.
pub(super) const LOOK: usize = 4096;

/// Which pages are next to go. A page that is told of is in one of the policy's lists, unless it says so.
pub(super) trait Order {
    /// Lists that the policy has.
    const LISTS: u16;
    /// A page that is in no list enters one. `shadow`: what [`Order::evict`] left of it.
    fn enter(&mut self, state: &mut State, frame: Frame, shadow: Option<u32>);
    /// A page was accessed.
    fn access(&mut self, state: &mut State, frame: Frame);
    /// The next pages to go, at most [`BATCH`], of those that `fits` allows. They stay in their lists.
    fn next(&mut self, state: &mut State, fits: &dyn Fn(&State, Frame) -> bool) -> Vec<Frame>;
    /// A page is about to leave its list.
    fn leaves(&mut self, _state: &mut State, _frame: Frame) {}
    /// A page that is in no list any more is evicted. Returns what is left of it, in 29 bits.
    fn evict(&mut self, state: &mut State, frame: Frame) -> u32;
    /// A page that left its list comes back. `is_next`: it is clean now, and reclaim waits for it.
    fn put_back(&mut self, state: &mut State, frame: Frame, is_next: bool);
}

/// Of a page's word: it has not been accessed but for what it was read for.
pub(super) const FRESH: u32 = 1 << 31;

/// Of a page's word: an accessed bit was found when it was next to go.
const USED: u32 = 1 << 30;

/// Whether an access counts: not that for which the page was read, which it forgets.
pub(super) fn counts(state: &mut State, frame: Frame) -> bool {
    let word = state.frames.policy(frame);
    state.frames.set_policy(frame, word & !FRESH);
    word & FRESH == 0
}

/// The pages of a list from its tail on that a reclaimer may take, from the one behind `skip` others on.
pub(super) fn from_tail(
    state: &State,
    list: ListId,
    skip: usize,
    fits: &dyn Fn(&State, Frame) -> bool,
) -> Vec<Frame> {
    let pages = state.lists.from_tail(list).skip(skip).take(LOOK);
    pages.filter(|frame| fits(state, *frame)).take(BATCH).collect()
}

/// A policy of this folder on one machine.
pub(super) struct Ordered<T> {
    name: String,
    order: RefCell<T>,
    nodes: RefCell<Vec<Node>>,
    /// Pages of each zone: anonymous and of tmpfs, of files.
    pages: RefCell<Vec<[u64; 2]>>,
    owed: Owed,
}

/// What reclaim remembers of a node.
#[derive(Debug, Default)]
struct Node {
    only: Cell<Only>,
    failures: Cell<u32>,
    /// The node's zones.
    zones: Vec<usize>,
}

impl<T: Order> Ordered<T> {
    pub(super) fn new(name: String, order: T) -> Ordered<T> {
        Ordered {
            name,
            order: RefCell::new(order),
            nodes: RefCell::default(),
            pages: RefCell::default(),
            owed: Owed::default(),
        }
    }

    /// A page enters or leaves the lists. Pages of pinned files are in none.
    fn count(&self, state: &State, frame: Frame, more: bool) {
        let zone = state.zone_of(frame);
        let mut pages = self.pages.borrow_mut();
        let of = &mut pages[zone][usize::from(!state.frames.has(frame, Flags::SWAPBACKED))];
        *of = if more { *of + 1 } else { *of - 1 };
        let node = usize::from(state.zones[zone].node);
        let zones = &mut self.nodes.borrow_mut()[node].zones;
        if !zones.contains(&zone) {
            zones.push(zone);
        }
    }

    fn lists_again(&self, state: &mut State, frame: Frame, is_next: bool) {
        state.frames.clear(frame, Flags::ACTIVE);
        self.order.borrow_mut().put_back(state, frame, is_next);
        self.count(state, frame, true);
        let word = state.frames.policy(frame);
        if word & USED != 0 {
            state.frames.set_policy(frame, word & !USED);
            self.order.borrow_mut().access(state, frame);
        }
    }

    fn unlist(&self, state: &mut State, frame: Frame) {
        self.order.borrow_mut().leaves(state, frame);
        self.count(state, frame, false);
    }

    /// Isolates the next pages to go that the reclaimer may take.
    fn isolate_batch(&self, state: &mut State, round: &Round) -> Vec<Frame> {
        let swaps = round.swap && state.settings.swappiness > 0 && state.swap.free() > 0;
        let fits = |state: &State, frame: Frame| {
            let zone = &state.zones[state.zone_of(frame)];
            let can_go = swaps || !state.frames.has(frame, Flags::SWAPBACKED);
            zone.node == round.node && zone.class <= round.class && can_go
        };
        let batch = self.order.borrow_mut().next(state, &fits);
        for frame in &batch {
            self.unlist(state, *frame);
            state.isolate(*frame);
        }
        batch
    }

    /// Evicts a batch. Returns its pages.
    fn evict_pages(&self, vm: &Vm, host: &dyn Host, round: &mut Round) -> u64 {
        let batch = vm.with(|state| self.isolate_batch(state, round));
        let taken = batch.len() as u64;
        if taken == 0 {
            return 0;
        }
        let is_file = vm.with(|state| !state.frames.has(batch[0], Flags::SWAPBACKED));
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
        let evicted = evict_batch(vm, host, batch, &how);
        put_back(vm, host, &evicted.kept, |state, frame| self.lists_again(state, frame, false));
        if u64::from(evicted.unqueued_dirty) == taken {
            host.wake_flushers(0);
        }
        round.met.add(&evicted, taken, is_file);
        round.scanned += taken;
        round.reclaimed += u64::from(evicted.freed);
        taken
    }
}

impl<T: Order> Reclaimer for Ordered<T> {
    fn manners(&self) -> Manners {
        Manners { boost: true, throttle: true, kswapd_order: true }
    }

    fn nodes(&self) -> u16 {
        self.nodes.borrow().len() as u16
    }

    fn failures(&self, node: u16, change: impl FnOnce(&mut u32)) -> u32 {
        let of = &self.nodes.borrow()[usize::from(node)].failures;
        let mut failures = of.get();
        change(&mut failures);
        of.set(failures);
        failures
    }

    fn only(&self, node: u16, change: impl FnOnce(&mut Only)) -> Only {
        let of = &self.nodes.borrow()[usize::from(node)].only;
        let mut only = of.get();
        change(&mut only);
        of.set(only);
        only
    }

    fn is_balanced_now(&self, node: u16) {
        self.only(node, |only| *only = Only::default());
    }

    fn age(&self, _: &Vm, _: &dyn Host, _: &mut Round) {}

    /// A pass looks at size >> priority pages, and at a batch at least.
    fn shrink_node(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        let before = round.reclaimed;
        loop {
            let this_pass = round.reclaimed;
            round.met = Default::default();
            let sizes = self.sizes_of(round.node);
            let share = (sizes.inactive_anon + sizes.inactive_file) >> round.priority;
            let mut scanned = 0;
            while scanned < share.max(WANTED) && round.reclaimed < round.target {
                match self.evict_pages(vm, host, round) {
                    0 => break,
                    taken => scanned += taken,
                }
                host.resched();
            }
            host.unplug();
            round.reclaimed += shrink_slab(vm, host, &self.owed, round.priority);
            look_at_writes(self, vm, host, round);
            if !self.should_continue(vm, host, round, round.reclaimed - this_pass) {
                break;
            }
        }
        if round.reclaimed > before {
            self.failures(round.node, |failures| *failures = 0);
        }
    }

    fn sizes_of(&self, node: u16) -> Sizes {
        let pages = self.pages.borrow();
        let zones = &self.nodes.borrow()[usize::from(node)].zones;
        let of = |kind: usize| zones.iter().map(|zone| pages[*zone][kind]).sum();
        Sizes { inactive_anon: of(0), inactive_file: of(1), ..Sizes::default() }
    }

    fn reclaimable(&self, vm: &Vm, zone: usize) -> u64 {
        let [anon, file] = self.pages.borrow()[zone];
        file + if vm.with(|state| state.swap.free() > 0) { anon } else { 0 }
    }
}

impl<T: Order> Replacement for Ordered<T> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn lists(&self, zones: u16, nodes: u16) -> u16 {
        self.nodes.borrow_mut().resize_with(nodes.into(), Node::default);
        self.pages.borrow_mut().resize(zones.into(), [0; 2]);
        T::LISTS
    }

    fn enter(&self, state: &mut State, frame: Frame, _how: Enter, shadow: Option<u32>) {
        if shadow.is_some() {
            state.count_by_type(frame, Counter::RefaultAnon, Counter::RefaultFile);
        }
        if state.is_pinned(frame) {
            return;
        }
        state.frames.set_policy(frame, FRESH);
        self.order.borrow_mut().enter(state, frame, shadow);
        self.count(state, frame, true);
    }

    fn access(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            self.order.borrow_mut().access(state, frame);
        }
    }

    fn leave(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            self.unlist(state, frame);
            state.unlist(frame);
        }
    }

    fn evict(&self, state: &mut State, frame: Frame) -> Option<u32> {
        Some(self.order.borrow_mut().evict(state, frame))
    }

    /// A page whose accessed bit is set stays; the policy hears of the access when the page is in its list
    /// again.
    fn references(&self, state: &mut State, frame: Frame) -> Option<Verdict> {
        let looked = state.look(frame);
        let word = state.frames.policy(frame);
        if looked.accessed == 0 {
            return Some(if looked.locked { Verdict::Activate } else { Verdict::Reclaim });
        }
        state.frames.set_policy(frame, word | USED);
        Some(Verdict::Keep)
    }

    fn written(&self, state: &mut State, frame: Frame) {
        let flags = state.frames.flags(frame);
        if flags.has(Flags::LISTED) && !flags.any(Flags::LOCKED | Flags::DIRTY | Flags::UNEVICTABLE) {
            self.leave(state, frame);
            self.lists_again(state, frame, true);
            state.count(Counter::PgRotated);
        }
    }

    fn direct(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        reclaim_directly(self, vm, host, ask)
    }

    fn near(&self) -> Option<Rule> {
        Some(Rule::Node)
    }

    fn files_of(&self, _state: &State, zone: usize) -> u64 {
        self.pages.borrow()[zone][1]
    }

    fn shrink_near(&self, vm: &Vm, host: &dyn Host, ask: &Ask, pass: &mut Pass) {
        shrink_near(self, vm, host, ask, pass);
    }

    fn wants_kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) -> bool {
        should_wake(self, vm, host, node, order, class)
    }

    fn kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) {
        run_kswapd(self, vm, host, node, order, class);
    }

    fn isolate(&self, state: &mut State, frame: Frame) -> bool {
        self.unlist(state, frame);
        state.isolate(frame);
        true
    }

    fn put_back(&self, state: &mut State, frame: Frame) {
        assert!(!state.let_go(frame), "frame {} is gone", frame.0);
        if !state.is_pinned(frame) {
            self.lists_again(state, frame, false);
        }
    }

    fn sizes(&self, _state: &State) -> Sizes {
        let pages = self.pages.borrow();
        let [inactive_anon, inactive_file] =
            pages.iter().fold([0; 2], |all, one| [all[0] + one[0], all[1] + one[1]]);
        Sizes { inactive_anon, inactive_file, ..Sizes::default() }
    }
}

/// The presets of a policy: the same choices in two kernels.
macro_rules! presets {
    ($what:literal, $choices:expr) => {
        &[
            crate::knob::Preset {
                release: "6.12",
                kernel: [6, 12, 0],
                what: $what,
                settings: crate::settings::Settings::USUAL,
                policies: $choices,
            },
            crate::knob::Preset {
                release: "7.2",
                kernel: [7, 2, 0],
                what: $what,
                settings: crate::settings::Settings::USUAL,
                policies: $choices,
            },
        ]
    };
}
use presets;
