//! The classic policy of 6.x: an active and an inactive list for anonymous pages and for files.
//!
//! ```text
//! enter ── head of inactive ── second access, or early refault ── head of active
//!             │ tail: shrink_inactive                               │ tail: shrink_active
//!             └ evicted, shadow left                                └ inactive again, marked workingset
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `policy` | the choices, the releases |
//! | `node` | a node: lists, slab caches, whether to go on, whether to sleep |
//! | `scan` | the rounds over the lists of a node |
//! | `balance` | how many pages of each list a round scans |
//!
//! Rules: docs/theory/vm.md 3. The reclaimers themselves, an allocation and kswapd, are in
//! `crate::reclaimers`.
//!
//! Not modelled: the batches through which pages enter, rotate and are activated (15 pages in 6.1, 31 in
//! 6.12, one set a CPU). They keep the order, and every reclaimer drains its CPU's before it looks.

mod balance;
mod node;
mod policy;
mod scan;

pub use policy::{Balance, Choices, Cost, Start, Sums};

use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::Ask;
use crate::ids::Frame;
use crate::lists::ListId;
use crate::reclaimers::{Only, reclaim_directly, run_kswapd, should_wake, shrink_near};
use crate::replacement::{Enter, Freed, Pass, Rule, Sizes};
use crate::shrinker::Owed;
use crate::state::State;
use crate::vm::{Host, Replacement, Vm};
use crate::workingset::{Packing, Shadow, is_early};
use std::cell::{Cell, RefCell};
use std::ops::Add;
use std::rc::Rc;

/// Lists of a node: inactive and active of anonymous pages, of files; pages that cannot be evicted.
const LISTS: u16 = 5;
const INACTIVE: [usize; 2] = [0, 2];
const ACTIVE: [usize; 2] = [1, 3];
const UNEVICTABLE: usize = 4;
/// The two types of pages, as indexes.
const ANON: usize = 0;
const FILE: usize = 1;
/// Zones of a node, at most.
const CLASSES: usize = 5;
/// Nanoseconds between two sums over memory groups (`FLUSH_TIME`; from memory).
const SUM_EVERY: u64 = 2_000_000_000;
/// Pages of one bite (`SWAP_CLUSTER_MAX`).
const BITE: u64 = 32;

/// The policy.
pub struct Classic {
    choices: Choices,
    name: String,
    nodes: RefCell<Vec<Node>>,
    /// Its first list: those before are of another policy ([`super::switch`]).
    first: Cell<u16>,
}

/// A node's lists (`lruvec`) and what reclaim remembers of it.
#[derive(Debug, Default)]
struct Node {
    /// Pages of each list, by zone.
    sizes: [[u64; CLASSES]; LISTS as usize],
    /// Evictions and activations (`nonresident_age`).
    age: u64,
    /// What evictions of each type cost, decaying.
    cost: [u64; 2],
    /// Refaults of each type that were activated; as of the end of the last reclaim.
    activated: [u64; 2],
    activated_before: [u64; 2],
    /// The last sum over memory groups; `None`: each reader sums up.
    summed: Option<Sum>,
    /// Pages that reclaimers hold.
    isolated: [u64; 2],
    /// What kswapd met.
    only: Only,
    /// Runs of kswapd without a page, in a row.
    failures: u32,
    /// What slab caches owe.
    owed: Rc<Owed>,
}

/// What a sum over memory groups says of a node (`lruvec_stats`).
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sizes: Sizes,
    activated: [u64; 2],
}

impl Node {
    /// The node as the last sum over memory groups has it.
    fn known(&self) -> Sum {
        self.summed.unwrap_or_else(|| Sum { sizes: self.sizes(), activated: self.activated })
    }

    /// Pages of a list in zones up to a class.
    fn size(&self, list: usize, class: u8) -> u64 {
        self.sizes[list][..=usize::from(class)].iter().sum()
    }

    /// Pages of a list.
    fn all(&self, list: usize) -> u64 {
        self.sizes[list].iter().sum()
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            inactive_anon: self.all(INACTIVE[ANON]),
            active_anon: self.all(ACTIVE[ANON]),
            inactive_file: self.all(INACTIVE[FILE]),
            active_file: self.all(ACTIVE[FILE]),
        }
    }
}

/// The list of a page.
fn list_of(flags: Flags) -> usize {
    if flags.any(Flags::UNEVICTABLE) {
        return UNEVICTABLE;
    }
    let kind = if flags.any(Flags::SWAPBACKED) { ANON } else { FILE };
    if flags.any(Flags::ACTIVE) { ACTIVE[kind] } else { INACTIVE[kind] }
}

/// The type of a page.
fn kind_of(state: &State, frame: Frame) -> usize {
    if state.frames.has(frame, Flags::SWAPBACKED) { ANON } else { FILE }
}

impl Classic {
    /// The policy of these choices, under this name.
    pub fn new(choices: Choices, name: String) -> Classic {
        Classic { choices, name, nodes: RefCell::default(), first: Cell::new(0) }
    }

    /// The number of a node's list.
    fn id(&self, node: u16, list: usize) -> ListId {
        ListId(self.first.get() + node * LISTS + list as u16)
    }

    /// Uses a node's data. `f` calls no host.
    fn node<T>(&self, node: u16, f: impl FnOnce(&mut Node) -> T) -> T {
        f(&mut self.nodes.borrow_mut()[usize::from(node)])
    }

    /// Lists a page at the head or the tail of its list.
    fn put(&self, state: &mut State, frame: Frame, at_tail: bool) {
        let zone = &state.zones[state.zone_of(frame)];
        let (node, class) = (zone.node, usize::from(zone.class));
        let list = list_of(state.frames.flags(frame));
        let id = self.id(node, list);
        self.node(node, |node| node.sizes[list][class] += 1);
        if at_tail { state.push_tail(id, frame) } else { state.push_head(id, frame) }
    }

    /// Takes a page from its list.
    fn take(&self, state: &mut State, frame: Frame) {
        let list = state.unlist(frame).0 - self.first.get();
        let class = usize::from(state.zones[state.zone_of(frame)].class);
        self.node(list / LISTS, |node| node.sizes[usize::from(list % LISTS)][class] -= 1);
    }

    fn node_of(&self, state: &State, frame: Frame) -> u16 {
        state.zones[state.zone_of(frame)].node
    }

    fn packing(&self, frames: u32) -> Packing {
        Packing::new(self.nodes.borrow().len() as u16, frames)
    }

    /// A page comes back (`workingset_refault`; docs/theory/vm.md 3.2).
    fn refault(&self, state: &mut State, frame: Frame, shadow: u32) {
        let packing = self.packing(state.frames.count());
        let shadow = packing.unpack(shadow);
        let (kind, node) = (kind_of(state, frame), self.node_of(state, frame));
        state.count_by_type(frame, Counter::RefaultAnon, Counter::RefaultFile);
        let (age, sizes) = self.node(shadow.node, |node| (node.age, node.known().sizes));
        let distance = packing.distance(age, shadow.age);
        if !is_early(distance, &sizes, kind == FILE, state.swap.free() > 0) {
            return;
        }
        state.frames.set(frame, Flags::ACTIVE);
        state.count_by_type(frame, Counter::ActivateAnon, Counter::ActivateFile);
        self.node(node, |node| {
            node.age += 1;
            node.activated[kind] += 1;
        });
        if shadow.workingset {
            state.frames.set(frame, Flags::WORKINGSET);
            state.count_by_type(frame, Counter::RestoreAnon, Counter::RestoreFile);
            self.note_cost(node, kind, 1, 0);
        }
    }

    /// Pages of a type were written or came back, and pages were scanned in vain (`lru_note_cost`).
    fn note_cost(&self, node: u16, kind: usize, io: u64, vain: u64) {
        let cost = balance::cost_of(self.choices.cost, io, vain);
        self.node(node, |node| {
            node.cost[kind] += cost;
            node.cost = balance::decayed(node.cost, &node.known().sizes);
        });
    }
}

impl Replacement for Classic {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn lists(&self, _zones: u16, nodes: u16) -> u16 {
        self.nodes.borrow_mut().resize_with(nodes.into(), Node::default);
        nodes * LISTS
    }

    fn enter(&self, state: &mut State, frame: Frame, how: Enter, shadow: Option<u32>) {
        if how == Enter::Anon && self.choices.start == Start::Active {
            state.frames.set(frame, Flags::ACTIVE);
        }
        if let Some(shadow) = shadow.filter(|_| self.choices.workingset) {
            self.refault(state, frame, shadow);
        }
        self.put(state, frame, false);
    }

    /// docs/theory/vm.md 3.1.
    fn access(&self, state: &mut State, frame: Frame) {
        let flags = state.frames.flags(frame);
        if !flags.any(Flags::REFERENCED) {
            state.frames.set(frame, Flags::REFERENCED);
        } else if !flags.any(Flags::ACTIVE | Flags::UNEVICTABLE) {
            if flags.any(Flags::LISTED) {
                self.take(state, frame);
                state.frames.set(frame, Flags::ACTIVE);
                self.put(state, frame, false);
                state.count(Counter::PgActivate);
            }
            state.frames.clear(frame, Flags::REFERENCED);
            let node = self.node_of(state, frame);
            self.node(node, |node| node.age += 1);
        }
    }

    fn leave(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            self.take(state, frame);
        }
    }

    fn evict(&self, state: &mut State, frame: Frame) -> Option<u32> {
        let node = self.node_of(state, frame);
        let workingset = state.frames.has(frame, Flags::WORKINGSET);
        let age = self.node(node, |node| {
            node.age += 1;
            node.age - 1
        });
        let packing = self.packing(state.frames.count());
        self.choices.workingset.then(|| packing.pack(Shadow { node, age, workingset }))
    }

    fn written(&self, state: &mut State, frame: Frame) {
        let flags = state.frames.flags(frame);
        if !flags.any(Flags::LISTED) || flags.any(Flags::LOCKED | Flags::DIRTY | Flags::UNEVICTABLE) {
            return;
        }
        self.take(state, frame);
        state.frames.clear(frame, Flags::ACTIVE);
        self.put(state, frame, true);
        state.count(Counter::PgRotated);
    }

    fn sums_up_every(&self) -> Option<u64> {
        (self.choices.sums == Sums::Periodic).then_some(SUM_EVERY)
    }

    fn sum_up(&self) {
        if self.choices.sums == Sums::Periodic {
            let mut nodes = self.nodes.borrow_mut();
            nodes.iter_mut().for_each(|node| {
                node.summed = Some(Sum { sizes: node.sizes(), activated: node.activated });
            });
        }
    }

    fn direct(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        reclaim_directly(self, vm, host, ask)
    }

    fn near(&self) -> Option<Rule> {
        Some(Rule::Node)
    }

    fn files_of(&self, state: &State, zone: usize) -> u64 {
        let of = &state.zones[zone];
        let class = usize::from(of.class);
        self.node(of.node, |node| node.sizes[INACTIVE[FILE]][class] + node.sizes[ACTIVE[FILE]][class])
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
        self.take(state, frame);
        state.frames.set(frame, Flags::ISOLATED);
        true
    }

    fn put_back(&self, state: &mut State, frame: Frame) {
        assert!(!state.let_go(frame), "frame {} is gone", frame.0);
        self.put(state, frame, false);
    }

    fn sizes(&self, _state: &State) -> Sizes {
        let nodes = self.nodes.borrow();
        nodes.iter().map(Node::sizes).fold(Sizes::default(), Add::add)
    }
}

/// What a change of policies needs ([`super::switch`]).
impl Classic {
    /// Its lists begin at this number.
    pub(super) fn begin_at(&self, first: u16) {
        self.first.set(first);
    }

    /// A page leaves its list for good: the one at the tail of the first list that has one.
    pub(super) fn give_up(&self, state: &mut State) -> Option<Frame> {
        let lists = self.nodes.borrow().len() as u16 * LISTS;
        let frame = (0..lists).find_map(|list| state.lists.tail(ListId(self.first.get() + list)))?;
        self.take(state, frame);
        Some(frame)
    }

    /// A page of another policy is listed.
    pub(super) fn take_over(&self, state: &mut State, frame: Frame) {
        self.put(state, frame, false);
    }

    /// The node of a shadow.
    pub(super) fn node_of_shadow(&self, frames: u32, shadow: u32) -> u16 {
        self.packing(frames).unpack(shadow).node
    }

    /// A shadow of a page that was evicted too long ago to count.
    pub(super) fn old_shadow(&self, frames: u32, node: u16) -> u32 {
        let packing = self.packing(frames);
        let age = packing.long_before(self.node(node, |node| node.age));
        packing.pack(Shadow { node, age, workingset: false })
    }
}
