//! What slabs would take with another `slub_max_order`: [`whatif`] predicts it, here it becomes what an
//! action saves.

use crate::state::State;
use crate::whatif::{self, Change, Prediction, Rules};

/// The change, and what it makes of all slabs.
#[derive(Clone, Debug)]
pub(super) struct Predicted(Prediction);

impl Predicted {
    /// Bytes saved: least, likely, most. The range is what such predictions were off by on real boots.
    pub(super) fn saved(&self) -> (i64, i64, i64) {
        let less = |bytes: u64| self.0.today.bytes as i64 - bytes as i64;
        (less(self.0.whatif.high), less(self.0.whatif.bytes), less(self.0.whatif.low))
    }

    /// Slabs that the change makes of each of today's: how much more often the page allocator is asked.
    pub(super) fn slabs_ratio(&self) -> f64 {
        self.0.whatif.slabs as f64 / self.0.today.slabs.max(1) as f64
    }

    /// Caches whose order changes.
    pub(super) fn caches(&self) -> usize {
        self.0.rows.iter().filter(|row| row.today.order != row.whatif.order).count()
    }
}

/// Slabs of all caches with this `slub_max_order`. `None` where release or CPUs are not known.
pub(super) fn with_max_order(state: &State, max_order: u8) -> Option<Predicted> {
    state.release?;
    let change = Change { max_order: Some(max_order), ..Change::default() };
    whatif::predict(state, &change).ok().map(Predicted)
}

/// `slub_max_order` of this boot; `None` where the state does not tell what the rules need.
pub(super) fn max_order_now(state: &State) -> Option<u8> {
    Rules::of(state, &mut Vec::new()).ok().map(|rules| rules.max_order)
}
