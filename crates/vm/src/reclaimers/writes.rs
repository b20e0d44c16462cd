//! What pages under write mean for a node's reclaimers: what kswapd remembers of them, and who sleeps.

use super::{Met, Reclaimer, Round, TICK};
use crate::host::Throttle;
use crate::pageout::Evicted;
use crate::vm::{Host, Vm};

/// What passes of kswapd met since the node was balanced last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Only {
    /// One met only pages under writeback, that did not come round again.
    pub(crate) writeback: bool,
    /// Of pages of files one met only dirty ones that nobody writes.
    pub(crate) dirty: bool,
    /// Of dirty pages one met only those that are written and came round again.
    pub(crate) congested: bool,
}

impl Only {
    fn of(met: &Met) -> Only {
        Only {
            writeback: met.writeback > 0 && met.writeback == met.taken,
            dirty: met.unqueued_dirty == met.file_taken,
            congested: met.dirty > 0 && met.dirty == met.congested,
        }
    }
}

impl Met {
    /// A batch of so many pages was evicted, of files or not.
    pub(crate) fn add(&mut self, evicted: &Evicted, taken: u64, is_file: bool) {
        self.dirty += u64::from(evicted.dirty);
        self.unqueued_dirty += u64::from(evicted.unqueued_dirty);
        self.congested += u64::from(evicted.congested);
        self.writeback += u64::from(evicted.writeback);
        self.immediate += u64::from(evicted.immediate);
        self.taken += taken;
        self.file_taken += if is_file { taken } else { 0 };
    }
}

/// Remembers what a pass met, and sleeps if writes hold reclaim up (docs/theory/vm.md 3.9).
pub(crate) fn look_at_writes(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, round: &Round) {
    let met = round.met;
    let known = policy.only(round.node, |known| {
        if round.kswapd {
            let only = Only::of(&met);
            known.writeback |= only.writeback;
            known.dirty |= only.dirty;
            known.congested |= only.congested;
        }
    });
    if round.kswapd && met.immediate > 0 {
        policy.throttle(host, Throttle::Writeback, 100_000_000);
    }
    if !round.kswapd && known.congested && !policy.sleep_is_vain(vm, round.node) {
        policy.throttle(host, Throttle::Congestion, TICK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_remembers_that_it_met_pages_of_one_kind_only() {
        let met = Met { taken: 32, file_taken: 20, dirty: 20, unqueued_dirty: 12, ..Met::default() };
        let only = |writeback, dirty, congested| Only { writeback, dirty, congested };
        for (met, expected) in [
            (met, only(false, false, false)),
            (Met { writeback: 31, ..met }, only(false, false, false)),
            (Met { writeback: 32, ..met }, only(true, false, false)),
            // All pages of files; the twelve anonymous ones do not count.
            (Met { unqueued_dirty: 20, ..met }, only(false, true, false)),
            (Met { unqueued_dirty: 32, ..met }, only(false, false, false)),
            (Met { congested: 19, ..met }, only(false, false, false)),
            (Met { congested: 20, ..met }, only(false, false, true)),
            // A pass without pages of files met no clean one of them.
            (Met { taken: 32, ..Met::default() }, only(false, true, false)),
            (Met::default(), only(false, true, false)),
        ] {
            assert_eq!(Only::of(&met), expected, "{met:?}");
        }
    }
}
