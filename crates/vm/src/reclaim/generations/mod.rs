//! The multi-generational LRU of 6.1, 6.12 and 6.18.
//!
//! Pages are in up to four *generations*, numbered as they begin: `max_seq` is the youngest, `min_seq` the
//! oldest of each type (anonymous, file). Pages that the processor accessed get into the youngest generation;
//! pages that system calls access stay where they are, and are counted in *tiers*.
//!
//! ```text
//! fault ──────────────── max_seq ◄──────── aging: a walk finds the accessed bit
//! read(), read-ahead ─── min_seq, or the one after it
//!                            │ tail: tier protected? one generation on.  accessed? max_seq.  else evicted
//!                            └ shadow: min_seq, accesses ── comes back: refault of its tier ── controller
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `policy`, `preset` | in what releases differ ([`Rules`]); their knobs and presets |
//! | `node`, `pass` | a pass over a node; what it decides |
//! | `scan` | the pages that are taken from the oldest generation |
//! | `balance` | the controller ([`Control`]): type and tiers to evict |
//! | `word`, `lists` | a page's generation and accesses; the generations of a node |
//! | `walker`, `walk` | accessed bits: which tables are walked; the walk, the look around an entry |
//! | `aging` | when a new generation begins, and who begins it |
//! | `shadow` | eviction and refault |
//!
//! Rules: docs/theory/vm.md 4. The reclaimers themselves, an allocation and kswapd, are in
//! `crate::reclaimers`.
//!
//! Invariant: a listed page's word names its generation, between `min_seq` of its type and `max_seq`; the
//! pages of a generation are counted by words ([`Replacement::check`]). Its list may be that of an older
//! generation: eviction moves the page when it meets it.
//!
//! Not here: memory groups (there is one), huge pages, and the per-CPU batches through which pages enter.

mod aging;
mod balance;
mod lists;
mod node;
mod pass;
mod policy;
mod preset;
mod scan;
mod shadow;
mod walk;
mod walker;
mod word;

pub use balance::{Control, Position, Tier};
pub use policy::*;
pub use word::{GENERATIONS, TIERS, Type, YOUNG};

use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::Ask;
use crate::ids::Frame;
use crate::reclaimers::{reclaim_directly, run_kswapd, should_wake, shrink_near};
use crate::replacement::{Enter, Freed, Pass, Rule, Sizes, Verdict};
use crate::state::State;
use crate::vm::{Host, Replacement, Vm};
use lists::{Node, list};
use shadow::Shadow;
use std::cell::RefCell;
use std::ops::Add;
use word::Word;

/// The policy.
pub struct Generations {
    rules: Rules,
    name: String,
    nodes: RefCell<Vec<Node>>,
}

impl Generations {
    /// The policy of these rules, under this name.
    pub fn new(rules: Rules, name: String) -> Generations {
        Generations { rules, name, nodes: RefCell::default() }
    }

    /// Uses a node's data. `f` calls no host.
    fn with_node<T>(&self, number: u16, f: impl FnOnce(&mut Node) -> T) -> T {
        f(&mut self.nodes.borrow_mut()[usize::from(number)])
    }

    fn node_of(&self, state: &State, frame: Frame) -> u16 {
        state.zones[state.zone_of(frame)].node
    }

    /// Fills the nodes' zones when the first page comes: [`Replacement::lists`] knows only numbers.
    fn find_zones(&self, state: &State) {
        let mut nodes = self.nodes.borrow_mut();
        for (at, zone) in state.zones.iter().enumerate() {
            let zones = &mut nodes[usize::from(zone.node)].zones;
            if !zones.contains(&at) {
                zones.push(at);
            }
        }
    }

    /// Puts a page that is in no list into its generation.
    fn put(&self, state: &mut State, frame: Frame) {
        if state.is_pinned(frame) {
            return;
        }
        let number = self.node_of(state, frame);
        self.with_node(number, |node| node.put(state, &self.rules, frame, false));
    }
}

impl Replacement for Generations {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn lists(&self, zones: u16, nodes: u16) -> u16 {
        self.nodes.borrow_mut().resize_with(nodes.into(), || Node::new(Vec::new()));
        zones * 2 * GENERATIONS as u16
    }

    fn enter(&self, state: &mut State, frame: Frame, how: Enter, shadow: Option<u32>) {
        self.find_zones(state);
        // A page that a fault brings, read ahead or not, is hot.
        let is_faulted = state.frames.clear(frame, Flags::FAULT).any(Flags::FAULT);
        if is_faulted || matches!(how, Enter::Anon | Enter::FileFault) {
            state.frames.set(frame, Flags::ACTIVE);
        }
        let number = self.node_of(state, frame);
        if let Some(shadow) = shadow.map(Shadow::unpack).filter(|shadow| shadow.node == number) {
            self.with_node(number, |node| shadow::come_back(node, state, &self.rules, frame, shadow));
        }
        self.put(state, frame);
    }

    fn access(&self, state: &mut State, frame: Frame) {
        word::count_access(state, &self.rules, frame);
    }

    fn leave(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            let number = self.node_of(state, frame);
            self.with_node(number, |node| node.take(state, frame));
            state.unlist(frame);
        }
    }

    fn evict(&self, state: &mut State, frame: Frame) -> Option<u32> {
        let number = self.node_of(state, frame);
        let shadow = self.with_node(number, |node| shadow::leave(node, state, &self.rules, number, frame));
        Some(shadow.pack())
    }

    fn references(&self, state: &mut State, frame: Frame) -> Option<Verdict> {
        let swaps = state.settings.swappiness > 0 && u64::from(state.swap.free()) >= BATCH;
        let number = self.node_of(state, frame);
        Some(self.with_node(number, |node| node.judge(state, &self.rules, swaps, frame)))
    }

    fn written(&self, state: &mut State, frame: Frame) {
        let flags = state.frames.flags(frame);
        if !flags.has(Flags::LISTED) || flags.any(Flags::LOCKED | Flags::DIRTY | Flags::UNEVICTABLE) {
            return;
        }
        self.leave(state, frame);
        state.frames.clear(frame, Flags::ACTIVE);
        let number = self.node_of(state, frame);
        self.with_node(number, |node| node.put(state, &self.rules, frame, true));
        state.count(Counter::PgRotated);
    }

    fn direct(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        vm.with(|state| self.find_zones(state));
        reclaim_directly(self, vm, host, ask)
    }

    fn near(&self) -> Option<Rule> {
        Some(Rule::Node)
    }

    fn files_of(&self, state: &State, zone: usize) -> u64 {
        let lists = (0..GENERATIONS as u8).map(|at| list(zone, Type::File, at));
        lists.map(|list| u64::from(state.lists.len(list))).sum()
    }

    fn shrink_near(&self, vm: &Vm, host: &dyn Host, ask: &Ask, pass: &mut Pass) {
        shrink_near(self, vm, host, ask, pass);
    }

    fn wants_kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) -> bool {
        should_wake(self, vm, host, node, order, class)
    }

    fn kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) {
        vm.with(|state| self.find_zones(state));
        run_kswapd(self, vm, host, node, order, class);
    }

    fn isolate(&self, state: &mut State, frame: Frame) -> bool {
        let number = self.node_of(state, frame);
        let generation = self.with_node(number, |node| node.take(state, frame));
        let is_young = generation.is_some_and(|is| self.with_node(number, |node| node.is_young(is)));
        if is_young {
            state.frames.set(frame, Flags::ACTIVE);
        }
        state.isolate(frame);
        true
    }

    fn put_back(&self, state: &mut State, frame: Frame) {
        assert!(!state.let_go(frame), "frame {} is gone", frame.0);
        self.put(state, frame);
    }

    fn sizes(&self, _state: &State) -> Sizes {
        let nodes = self.nodes.borrow();
        nodes.iter().map(Node::sizes).fold(Sizes::default(), Add::add)
    }

    fn age(&self, vm: &Vm, host: &dyn Host, node: u16) -> bool {
        let swappiness = vm.with(|state| {
            self.find_zones(state);
            state.settings.swappiness
        });
        let seq = self.with_node(node, |node| node.max_seq);
        self.begin(vm, host, node, seq, swappiness)
    }

    /// The number of the generation and the tier: `3 tier 0`.
    fn whereabouts(&self, state: &State, frame: Frame) -> Option<String> {
        let generation = u64::from(Word::of(state, frame).generation?);
        let number = self.node_of(state, frame);
        let oldest = self.with_node(number, |node| node.min_seq[Type::of(state, frame) as usize]);
        let seq = oldest + (generation + GENERATIONS - oldest % GENERATIONS) % GENERATIONS;
        Some(format!("{seq} tier {}", word::accesses(state, &self.rules, frame).tier))
    }

    fn generations(&self, now: u64) -> Vec<[u64; 5]> {
        let nodes = self.nodes.borrow();
        let rows = nodes.iter().zip(0..).flat_map(|(node, number)| {
            let oldest = node.min_seq[0].min(node.min_seq[1]);
            (oldest..=node.max_seq).map(move |seq| {
                let age = now.saturating_sub(node.born[usize::from(lists::modulo(seq))]) / 1_000_000;
                let pages = |of: Type| if seq < node.min_seq[of as usize] { 0 } else { node.size(of, seq) };
                [number, seq, age, pages(Type::Anon), pages(Type::File)]
            })
        });
        rows.collect()
    }

    fn check(&self, state: &State) -> Result<(), String> {
        self.nodes.borrow().iter().try_for_each(|node| node.check(state))
    }
}

/// What a change of policies needs ([`super::switch`]).
impl Generations {
    /// A page leaves its generation for good, by the numbers of generations modulo four; one of the youngest
    /// two is active (`drain_evictable`; from memory).
    pub(super) fn give_up(&self, state: &mut State) -> Option<Frame> {
        let zones = 0..state.zones.len();
        let of_type = |at: u8, of: Type| zones.clone().map(move |zone| list(zone, of, at));
        let lists =
            (0..GENERATIONS as u8).flat_map(|at| Type::ALL.into_iter().flat_map(move |of| of_type(at, of)));
        let frame = lists.into_iter().find_map(|list| state.lists.tail(list))?;
        let number = self.node_of(state, frame);
        let generation = self.with_node(number, |node| node.take(state, frame));
        state.unlist(frame);
        if generation.is_some_and(|is| self.with_node(number, |node| node.is_young(is))) {
            state.frames.set(frame, Flags::ACTIVE);
        }
        state.frames.set_policy(frame, 0);
        Some(frame)
    }

    /// A page of another policy gets into a generation.
    pub(super) fn take_over(&self, state: &mut State, frame: Frame) {
        self.find_zones(state);
        self.put(state, frame);
    }

    /// The node of a shadow.
    pub(super) fn node_of_shadow(shadow: u32) -> u16 {
        Shadow::unpack(shadow).node
    }

    /// A shadow of a page that was evicted too long ago to count.
    pub(super) fn old_shadow(&self, node: u16) -> u32 {
        Shadow::long_before(node, self.with_node(node, |node| node.max_seq)).pack()
    }
}
