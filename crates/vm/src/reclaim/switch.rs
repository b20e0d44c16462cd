//! Classic lists and generations of one kernel, of which the administrator chooses while programs run
//! (`lru_gen/enabled`).
//!
//! ```text
//! written: on ──  classic lists, from the tail of each ── generations: active ones into the youngest
//! written: off ── generations, from the tail of each ──── classic lists: the youngest two are active
//! ```
//!
//! A page that is in a list is served by that list's policy, every other one by the policy that is on. So a
//! reclaimer that sleeps while the policies change ends its pass with what it holds, and what it puts back
//! moves over when the next reclaimer begins. Rules: docs/theory/vm.md 4.15.

use super::{classic::Classic, generations::Generations};
use crate::host::Ask;
use crate::ids::Frame;
use crate::replacement::{Enter, Freed, Pass, Rule, Sizes, Verdict};
use crate::state::State;
use crate::vm::{Host, Replacement, Vm};
use std::cell::Cell;

/// Both policies.
pub(crate) struct Switch {
    generations: Generations,
    classic: Classic,
    /// The first list of the classic policy: those before are of generations.
    first: Cell<u16>,
    /// Generations are on.
    is_on: Cell<bool>,
    name: String,
}

impl Switch {
    /// Both policies of a kernel, of which one is on, under this name.
    pub(crate) fn new(generations: Generations, classic: Classic, is_on: bool, name: String) -> Switch {
        Switch { generations, classic, first: Cell::new(0), is_on: Cell::new(is_on), name }
    }

    /// The policy that is on.
    fn now(&self) -> &dyn Replacement {
        if self.is_on.get() { &self.generations } else { &self.classic }
    }

    /// The policy of a page: that of its list, or the one that is on.
    fn of(&self, state: &State, frame: Frame) -> &dyn Replacement {
        match state.lists.of(frame) {
            Some(list) if list.0 < self.first.get() => &self.generations,
            Some(_) => &self.classic,
            None => self.now(),
        }
    }

    /// Pages in the lists of the policy that is off get into those of the other one.
    fn move_over(&self, state: &mut State) {
        if self.is_on.get() {
            while let Some(frame) = self.classic.give_up(state) {
                self.generations.take_over(state, frame);
            }
        } else {
            while let Some(frame) = self.generations.give_up(state) {
                self.classic.take_over(state, frame);
            }
        }
    }

    /// A reclaimer begins.
    fn begins(&self, vm: &Vm) -> &dyn Replacement {
        vm.with(|state| self.move_over(state));
        self.now()
    }
}

impl Replacement for Switch {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn lists(&self, zones: u16, nodes: u16) -> u16 {
        let first = self.generations.lists(zones, nodes);
        self.first.set(first);
        self.classic.begin_at(first);
        first + self.classic.lists(zones, nodes)
    }

    fn can_switch(&self) -> bool {
        true
    }

    fn switch(&self, state: &mut State, generations: bool) {
        if self.is_on.replace(generations) == generations {
            return;
        }
        self.move_over(state);
        let frames = state.frames.count();
        state.change_shadows(|shadow| match generations {
            true => self.generations.old_shadow(self.classic.node_of_shadow(frames, shadow)),
            false => self.classic.old_shadow(frames, Generations::node_of_shadow(shadow)),
        });
    }

    fn enter(&self, state: &mut State, frame: Frame, how: Enter, shadow: Option<u32>) {
        self.now().enter(state, frame, how, shadow);
    }

    fn access(&self, state: &mut State, frame: Frame) {
        self.of(state, frame).access(state, frame);
    }

    fn leave(&self, state: &mut State, frame: Frame) {
        self.of(state, frame).leave(state, frame);
    }

    fn evict(&self, state: &mut State, frame: Frame) -> Option<u32> {
        self.now().evict(state, frame)
    }

    fn references(&self, state: &mut State, frame: Frame) -> Option<Verdict> {
        self.now().references(state, frame)
    }

    fn written(&self, state: &mut State, frame: Frame) {
        self.of(state, frame).written(state, frame);
    }

    fn sums_up_every(&self) -> Option<u64> {
        self.classic.sums_up_every()
    }

    fn sum_up(&self) {
        self.classic.sum_up();
    }

    fn direct(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        self.begins(vm).direct(vm, host, ask)
    }

    fn near(&self) -> Option<Rule> {
        self.now().near()
    }

    fn files_of(&self, state: &State, zone: usize) -> u64 {
        self.generations.files_of(state, zone) + self.classic.files_of(state, zone)
    }

    fn shrink_near(&self, vm: &Vm, host: &dyn Host, ask: &Ask, pass: &mut Pass) {
        self.begins(vm).shrink_near(vm, host, ask, pass);
    }

    fn wants_kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) -> bool {
        self.now().wants_kswapd(vm, host, node, order, class)
    }

    fn kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) {
        self.begins(vm).kswapd(vm, host, node, order, class);
    }

    fn isolate(&self, state: &mut State, frame: Frame) -> bool {
        self.of(state, frame).isolate(state, frame)
    }

    fn put_back(&self, state: &mut State, frame: Frame) {
        self.now().put_back(state, frame);
    }

    fn sizes(&self, state: &State) -> Sizes {
        self.generations.sizes(state) + self.classic.sizes(state)
    }

    fn age(&self, vm: &Vm, host: &dyn Host, node: u16) -> bool {
        self.begins(vm).age(vm, host, node)
    }

    fn whereabouts(&self, state: &State, frame: Frame) -> Option<String> {
        self.of(state, frame).whereabouts(state, frame)
    }

    fn check(&self, state: &State) -> Result<(), String> {
        let is_stray = |frame: &Frame| {
            state.frames.policy(*frame) & 7 != 0
                && state.lists.of(*frame).is_some_and(|list| list.0 >= self.first.get())
        };
        if let Some(frame) = (0..state.frames.count()).map(Frame).find(is_stray) {
            return Err(format!("{frame:?} is in a classic list, and of a generation"));
        }
        self.generations.check(state)
    }

    fn generations(&self, now: u64) -> Vec<[u64; 5]> {
        self.now().generations(now)
    }
}
