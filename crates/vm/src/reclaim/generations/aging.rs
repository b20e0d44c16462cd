//! Aging: when a new generation is due, who begins it, and the walk before it.

use super::Generations;
use super::lists::{Node, modulo};
use super::policy::{Ager, Aging, Rules};
use super::walker::Step;
use super::word::{Type, YOUNG};
use crate::host::{Throttle, Work};
use crate::reclaimers::{FIRST, Round};
use crate::state::State;
use crate::vm::{Host, Vm};

/// Page tables that are walked before other tasks may run (assumed).
const TABLES: u32 = 16;
/// A reclaimer that waits for another one's walk looks each tenth of a millisecond, for a second (assumed:
/// the kernel's is woken).
const WAIT: u64 = 100_000;
const WAITS: u32 = 10_000;

/// What the number of generations and their pages call for.
pub(crate) struct Due {
    /// A new generation.
    pub(crate) age: bool,
    /// Pages that could be looked at.
    pub(crate) pages: u64,
    /// Pages can be evicted without one.
    pub(crate) evictable: bool,
}

/// Whether a new generation is due (`should_run_aging`; docs/theory/vm.md 4.5).
pub(crate) fn due(node: &Node, rules: &Rules, swappiness: u32) -> Due {
    let types = if swappiness == 0 { &Type::ALL[1..] } else { &Type::ALL[..] };
    let oldest = node.evictable(rules, swappiness);
    let (mut total, mut young, mut old) = (0, 0, 0);
    for of in types {
        for seq in node.min_seq[*of as usize]..=node.max_seq {
            let size = node.size(*of, seq);
            total += size;
            young += if seq == node.max_seq { size } else { 0 };
            old += if seq + YOUNG == node.max_seq { size } else { 0 };
        }
    }
    let age = match rules.aging {
        _ if oldest + YOUNG > node.max_seq => true,
        Aging::Full => oldest + YOUNG == node.max_seq,
        Aging::Spread if oldest + YOUNG < node.max_seq => false,
        Aging::Spread => young * YOUNG > total || old * (YOUNG + 2) < total,
    };
    Due { age, pages: total, evictable: oldest + YOUNG <= node.max_seq }
}

impl Generations {
    /// kswapd begins a new generation before its round, if one is due (6.1), and kills a task if all pages
    /// are younger than the working set's time (`lru_gen_age_node`; docs/theory/vm.md 4.6).
    pub(crate) fn age_node(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        round.before = round.reclaimed;
        let swappiness = vm.with(|state| self.swappiness(state, &Round { swap: true, ..round.clone() }));
        let set = vm.with(|state| state.settings.min_ttl_ms);
        let min_ttl = set.map_or(self.rules.min_ttl_ms, u64::from) * 1_000_000;
        let (due, seq, born) = self.with_node(round.node, |node| {
            let oldest = usize::from(modulo(node.min_seq[Type::File as usize]));
            (due(node, &self.rules, swappiness), node.max_seq, node.born[oldest])
        });
        if self.rules.ager == Ager::Round {
            if std::mem::take(&mut round.young_enough) {
                return;
            }
            if min_ttl == 0 || host.now() >= born + min_ttl {
                if due.age {
                    self.begin(vm, host, round.node, seq, swappiness);
                }
                return;
            }
        } else if min_ttl == 0 || round.priority == FIRST || host.now() >= born + min_ttl {
            return;
        }
        if round.order == 0 {
            host.out_of_memory(vm);
        }
    }

    /// Begins a new generation, or waits for the reclaimer that does so, from the third priority on. Returns
    /// whether one began.
    pub(crate) fn begin_or_wait(
        &self,
        vm: &Vm,
        host: &dyn Host,
        round: &Round,
        seq: u64,
        swappiness: u32,
    ) -> bool {
        if self.begin(vm, host, round.node, seq, swappiness) {
            // Others ran meanwhile, and then the walker's own task again.
            if let Some(space) = round.space {
                self.with_node(round.node, |node| node.walker.runs(space));
            }
            return true;
        }
        for _ in 0..WAITS {
            let (began, is_busy) =
                self.with_node(round.node, |node| (node.max_seq > seq, node.walker.is_busy));
            if began || !is_busy || round.priority > FIRST - 2 {
                return began;
            }
            host.throttle(Throttle::NoProgress, WAIT);
        }
        false
    }

    /// Walks page tables, and begins a new generation. Returns whether one began; not if another reclaimer
    /// does so (`try_to_inc_max_seq`).
    pub(crate) fn begin(&self, vm: &Vm, host: &dyn Host, number: u16, seq: u64, swappiness: u32) -> bool {
        let begins = self.with_node(number, |node| {
            let begins = node.max_seq == seq && !node.walker.is_busy;
            if begins {
                node.walker.begin();
            }
            begins
        });
        if !begins {
            return false;
        }
        let swaps = swappiness > 0;
        if vm.with(|state| self.rules.walks_now(&state.settings)) {
            for space in vm.with(|state| state.spaces.order.clone()) {
                let enters = |state: &mut State| {
                    self.with_node(number, |node| node.walker.enters(state, seq, space, swaps))
                };
                let mut step = vm.with(enters).then_some(Step { space, region: 0, table: 0 });
                while let Some(at) = step {
                    let (entries, next) = vm.with(|state| {
                        self.with_node(number, |node| node.walk(state, &self.rules, swaps, at, TABLES))
                    });
                    step = next;
                    // An accessed entry's page changes: a look at it costs as much as one on a list.
                    host.work(Work::Walk, entries[0]);
                    host.work(Work::Scan, entries[1]);
                    host.resched();
                }
            }
        }
        let now = host.now();
        vm.with(|state| {
            self.with_node(number, |node| {
                node.walker.is_busy = false;
                node.begin(state, &self.rules, swappiness, now);
            });
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::with_knobs;

    /// Whether a new generation is due, and whether pages can go without one. `pages`: those of files of
    /// each generation, the oldest first; the last one is the youngest.
    #[track_caller]
    fn is_due(knobs: &str, pages: &[u64], expected: (bool, bool)) {
        let mut node = Node::new(Vec::new());
        let count = pages.len() as u64;
        // Generation 8 is the youngest; anonymous pages are in as many generations, and there are none.
        node.max_seq = 8;
        node.min_seq = [9 - count; 2];
        for (at, pages) in pages.iter().enumerate() {
            node.pages[Type::File as usize][usize::from(modulo(9 - count + at as u64))] = *pages;
        }
        let due = due(&node, &with_knobs("6.1", knobs), 60);
        assert_eq!((due.age, due.evictable), expected, "{knobs} {pages:?}");
        assert_eq!(due.pages, pages.iter().sum::<u64>());
    }

    #[test]
    fn a_generation_is_due_by_how_many_there_are_and_by_their_pages() {
        // Two: always, and nothing can go before.
        is_due("", &[100, 0], (true, false));
        is_due("aging=full", &[100, 0], (true, false));
        // Three: the youngest has more than half of the pages, or the oldest less than a quarter.
        is_due("", &[50, 0, 50], (false, true));
        is_due("", &[50, 0, 51], (true, true));
        is_due("", &[25, 75, 0], (false, true));
        is_due("", &[24, 75, 0], (true, true));
        is_due("aging=full", &[50, 0, 50], (true, true));
        // Four: never.
        is_due("", &[0, 0, 0, 100], (false, true));
        is_due("aging=full", &[0, 0, 0, 100], (false, true));
    }
}
