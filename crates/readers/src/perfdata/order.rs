//! Puts records of many CPUs in time order.
//!
//! perf reads the CPUs' buffers one after another, in rounds, and marks the end of each with a FINISHED_ROUND
//! record. What a later round adds cannot be older than the newest time seen when the previous round ended;
//! so at the end of a round everything up to the newest time of the round before may go out. Where a
//! recording has few rounds the window is capped: its older half goes out early, and whatever then comes late
//! is counted by the caller.

use std::collections::VecDeque;

use crate::event::{Event, Lost, Name};

/// What waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiting {
    /// An event; its task's name is added when it goes out.
    Event(Event),
    /// A task takes a name.
    Comm { tid: i32, name: Name },
    /// A task is born and has its parent's name.
    Fork { tid: i32, parent: i32 },
    /// A loss.
    Lost(Lost),
}

/// The sorting window.
pub(super) struct Order {
    incoming: Vec<(u64, Waiting)>,
    outgoing: VecDeque<(u64, Waiting)>,
    newest: u64,
    flush_to: u64,
    capacity: usize,
}

impl Order {
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.max(2);
        Order { incoming: Vec::new(), outgoing: VecDeque::new(), newest: 0, flush_to: 0, capacity }
    }

    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(2);
    }

    /// The oldest of those that may go out.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, Waiting)> {
        self.outgoing.pop_front()
    }

    /// Adds one; without a time it goes out with what is out already.
    #[inline]
    pub(super) fn push(&mut self, time_ns: Option<u64>, waiting: Waiting) {
        let Some(time) = time_ns.filter(|&time| time != 0) else {
            self.outgoing.push_back((0, waiting));
            return;
        };
        self.newest = self.newest.max(time);
        self.incoming.push((time, waiting));
        if self.incoming.len() >= self.capacity {
            self.incoming.sort_by_key(|&(time, _)| time);
            let older = self.incoming.len() / 2;
            self.outgoing.extend(self.incoming.drain(..older));
        }
    }

    /// A round ended.
    pub(super) fn finish_round(&mut self) {
        // Stable, and near linear on what arrives: one sorted run per CPU.
        self.incoming.sort_by_key(|&(time, _)| time);
        let ready = self.incoming.partition_point(|&(time, _)| time <= self.flush_to);
        self.outgoing.extend(self.incoming.drain(..ready));
        self.flush_to = self.newest;
    }

    /// The recording ended.
    pub(super) fn finish(&mut self) {
        self.flush_to = u64::MAX;
        self.finish_round();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes rounds of times and collects what comes out after each, and at the end.
    #[track_caller]
    fn check(capacity: usize, rounds: &[&[u64]], expected: &[&[u64]]) {
        let mut order = Order::new(capacity);
        let out = |order: &mut Order| -> Vec<u64> {
            std::iter::from_fn(|| order.pop()).map(|(time, _)| time).collect()
        };
        let mut found = Vec::new();
        for round in rounds {
            for &time in *round {
                order.push(Some(time), Waiting::Fork { tid: 1, parent: 0 });
            }
            order.finish_round();
            found.push(out(&mut order));
        }
        order.finish();
        found.push(out(&mut order));
        assert_eq!(found, expected);
    }

    #[test]
    fn rounds_let_out_what_nothing_can_overtake() {
        // Two CPUs in each round; the second round still has times of the first.
        check(
            100,
            &[&[1, 4, 2, 3], &[5, 8, 3, 9], &[10, 9, 12]],
            &[&[], &[1, 2, 3, 3, 4], &[5, 8, 9, 9], &[10, 12]],
        );
    }

    #[test]
    fn a_full_window_lets_out_its_older_half() {
        check(4, &[&[7, 1, 6, 2]], &[&[1, 2], &[6, 7]]);
    }

    #[test]
    fn what_has_no_time_does_not_wait() {
        let mut order = Order::new(100);
        order.push(Some(5), Waiting::Fork { tid: 1, parent: 0 });
        order.push(None, Waiting::Fork { tid: 2, parent: 0 });
        assert!(matches!(order.pop(), Some((0, Waiting::Fork { tid: 2, .. }))));
        assert!(order.pop().is_none());
    }
}
