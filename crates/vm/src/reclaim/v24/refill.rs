//! `refill_inactive`: a pass over the active list that ages pages and deactivates old ones.

use super::V24;
use super::balance::{Level, levels, managed};
use super::lru::{ACTIVE, is_buffer_page, is_pinned};
use super::policy::{Limits, ZoneTest};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::Work;
use crate::ids::Frame;
use crate::state::State;
use crate::vm::{Host, Vm};

/// Parts of the page cache that are above their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Above {
    buffers: bool,
    cache: bool,
}

impl Above {
    /// Of `all` pages so many are of files, and of block devices among them.
    fn of(limits: Limits, files: u64, devices: u64, all: u64) -> Above {
        Above {
            buffers: limits != Limits::No && devices * 10 > all,
            cache: limits == Limits::Cache && files * 2 > all,
        }
    }
}

impl V24 {
    /// Looks at up to `scan` pages from the tail of the active list, until `wanted` pages are inactive.
    /// Returns how many that are.
    pub fn refill(&self, vm: &Vm, host: &dyn Host, scan: u32, wanted: u32) -> u32 {
        let levels = levels(vm, host);
        let (looked, moved) = vm.with(|state| {
            let above = self.above(state);
            let (mut looked, mut moved) = (0, 0);
            while looked < scan && moved < wanted {
                let Some(frame) = state.lists.tail(ACTIVE) else { break };
                looked += 1;
                moved += u32::from(self.refill_one(state, &levels, above, frame));
            }
            state.counters.add(Counter::PgRefill, looked.into());
            (looked, moved)
        });
        host.work(Work::Scan, looked);
        moved
    }

    /// The limits of the page cache that are crossed (docs/theory/vm.md 5.5).
    fn above(&self, state: &State) -> Above {
        let (files, devices) = self.cache_pages();
        Above::of(self.choices.limits, files, devices, managed(state))
    }

    /// Looks at one active page. Returns whether it is inactive now (docs/theory/vm.md 5.2).
    fn refill_one(&self, state: &mut State, levels: &[Level], above: Above, frame: Frame) -> bool {
        let is_mapped = state.frames.mapped(frame) > 0;
        let is_over = above.buffers && is_buffer_page(state, frame)
            || above.cache && !is_mapped && !state.frames.has(frame, Flags::SWAPCACHE);
        if is_over && !is_mapped && !is_pinned(state, frame) {
            self.deactivate(state, frame);
            return true;
        }
        let spares = matches!(self.choices.zone_test, ZoneTest::First | ZoneTest::AfterAge);
        // Ages change before the zone is looked at only since the test is made after them.
        let is_plenty = spares && self.inactive_plenty(state, levels, state.zone_of(frame));
        if is_plenty && self.choices.zone_test == ZoneTest::First {
            self.to(state, ACTIVE, frame);
            return false;
        }
        if state.frames.clear(frame, Flags::REFERENCED).any(Flags::REFERENCED) {
            self.age_up(state, frame);
            self.to(state, ACTIVE, frame);
            return false;
        }
        let is_young = self.age_down(state, frame) > 0;
        let is_held = is_mapped && !self.choices.deactivate_mapped;
        if is_young || is_held || is_plenty || is_pinned(state, frame) {
            self.to(state, ACTIVE, frame);
            return false;
        }
        self.deactivate(state, frame);
        if self.choices.refill_references {
            state.frames.set(frame, Flags::REFERENCED);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_limited_to_a_tenth_and_the_cache_to_a_half() {
        let above = |buffers, cache| Above { buffers, cache };
        for (limits, files, devices, expected) in [
            (Limits::No, 1000, 1000, above(false, false)),
            (Limits::Buffers, 1000, 100, above(false, false)),
            (Limits::Buffers, 1000, 101, above(true, false)),
            (Limits::Cache, 500, 100, above(false, false)),
            (Limits::Cache, 501, 100, above(false, true)),
            (Limits::Cache, 501, 101, above(true, true)),
        ] {
            let found = Above::of(limits, files, devices, 1000);
            assert_eq!(found, expected, "{limits:?} {files} {devices}");
        }
    }
}
