//! The rows between which a cache's counters count.

use super::{Run, World};
use crate::replay::outcome::Counts;
use slablab_slabs::{Engine, Usage};

/// One cache's window: counters and usage at its ends.
#[derive(Default)]
pub(in crate::replay) struct Window {
    pub(in crate::replay) open: bool,
    pub(in crate::replay) zero: Counts,
    pub(in crate::replay) start: Usage,
    pub(in crate::replay) closed: Option<(Counts, Usage)>,
}

impl<W: World, E: Engine<W>> Run<'_, W, E> {
    /// Opens windows that begin with the trace; answers the other edges, last first.
    pub(super) fn edges(&mut self) -> Vec<(u64, usize, bool)> {
        let mut edges = Vec::new();
        for (cache, (first, last)) in self.job.plan.windows.iter().enumerate() {
            if !self.served[cache] {
                continue;
            }
            if *first == 0 {
                self.edge((0, cache, true));
            } else {
                edges.push((*first, cache, true));
            }
            edges.push((*last, cache, false));
        }
        edges.retain(|edge| edge.0 != u64::MAX);
        edges.sort_unstable_by_key(|edge| std::cmp::Reverse(*edge));
        edges
    }

    pub(super) fn edge(&mut self, (_, cache, opens): (u64, usize, bool)) {
        let counts = self.counts(cache);
        let usage = self.caches[cache].usage();
        let window = &mut self.windows[cache];
        window.open = opens;
        if opens {
            (window.zero, window.start) = (counts, usage);
        } else {
            window.closed = Some((counts, usage));
        }
    }
}
