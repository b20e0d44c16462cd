//! `page_launder`: passes over the inactive list that clean pages.

use super::balance::{self, Level};
use super::clean::Writes;
use super::lru::{INACTIVE, is_buffer_page, is_pinned};
use super::policy::{Choices, Launder, Rotate, Waits};
use super::{Caller, V24};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::Work;
use crate::ids::Frame;
use crate::state::State;
use crate::vm::{Host, Vm};

/// Writes of the second loop that nobody waits for: four clusters of the largest size.
const CLUSTERS: u32 = 4;
/// A pass over a part looks at one page of so many, as a power of two (`DEF_PRIORITY`).
const PRIORITY: u32 = 6;

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Pages that can be stolen now, or were freed.
    pub cleaned: u32,
    /// Pages that it could not clean without a write.
    pub failed: u32,
}

/// What a look at one page decided.
enum Step {
    /// It is in another place of the lists, and that is all.
    Moved,
    /// It is clean; a frame to give away.
    Cleaned(Option<Frame>),
    /// It needs a write, and has no buffers.
    Write(Frame),
    /// It has buffers.
    Buffers(Frame),
}

impl V24 {
    /// Cleans inactive pages. Returns pages cleaned or freed (docs/theory/vm.md 5.6).
    pub fn launder(&self, vm: &Vm, host: &dyn Host, caller: &Caller, wanted: u32) -> u32 {
        let inactive = vm.with(|state| state.lists.len(INACTIVE));
        let first = vm.with(|state| CLUSTERS << state.settings.page_cluster);
        match self.choices.launder {
            Launder::TwoLoops => {
                let mut cleaned = self.launder_pass(vm, host, caller, inactive, Writes::NONE).cleaned;
                if caller.fs && self.free_shortage(vm, host) > 0 {
                    host.wake_flushers(0);
                    let writes = self.writes(caller, first, cleaned == 0);
                    cleaned += self.launder_pass(vm, host, caller, inactive, writes).cleaned;
                }
                cleaned
            }
            Launder::OnePass => {
                let writes = self.writes(caller, first, true);
                self.launder_pass(vm, host, caller, inactive >> PRIORITY, writes).cleaned
            }
            Launder::Hysteresis => {
                let is_writing = self.data.writes.get() && caller.fs;
                let writes = if is_writing { self.writes(caller, first, true) } else { Writes::NONE };
                let passed = self.launder_pass(vm, host, caller, inactive, writes);
                self.judge(passed);
                passed.cleaned
            }
            Launder::Cache | Launder::BothLists => {
                let wanted = wanted.max(1);
                wanted - self.shrink_cache(vm, host, caller, wanted, PRIORITY, &mut None)
            }
        }
    }

    /// Laundering writes from the next pass on, or does not, by the part of pages that need a write.
    pub(super) fn judge(&self, passed: Passed) {
        self.data.writes.set(writes_next(&self.choices, passed, self.data.writes.get()));
    }

    /// How a pass may write, that `may_wait` if the caller may.
    fn writes(&self, caller: &Caller, free: u32, may_wait: bool) -> Writes {
        let (start, free, wait) = match self.choices.waits {
            Waits::Users => (caller.io, free, !caller.kswapd && may_wait),
            Waits::Always => (caller.io, 0, true),
            Waits::Mask => (caller.io, 0, !caller.kswapd && caller.fs),
        };
        // Without a wait and without a limit of its own, a pass starts as many writes as it meets.
        let free = if free == 0 && !wait { u32::MAX } else { free };
        Writes { start, free, wait }
    }

    /// Looks at up to `scan` pages from the tail.
    pub(super) fn launder_pass(
        &self,
        vm: &Vm,
        host: &dyn Host,
        caller: &Caller,
        scan: u32,
        mut writes: Writes,
    ) -> Passed {
        let (mut passed, mut levels) = (Passed::default(), balance::levels(vm, host));
        for _ in 0..scan {
            let step = vm.with(|state| {
                let frame = state.lists.tail(INACTIVE)?;
                count_scan(state, caller, frame);
                Some(self.look(state, &levels, caller, frame))
            });
            host.work(Work::Scan, 1);
            let Some(step) = step else { break };
            let is_still = matches!(step, Step::Moved | Step::Cleaned(None));
            let goes_on = self.launder_one(vm, host, caller, step, &mut writes, &mut passed);
            if !goes_on {
                break;
            }
            // A freed page, or a wait, changes how many pages are free for the next look.
            if !is_still {
                levels = balance::levels(vm, host);
            }
        }
        passed
    }

    /// Does what a look decided. Returns whether the pass goes on.
    fn launder_one(
        &self,
        vm: &Vm,
        host: &dyn Host,
        caller: &Caller,
        step: Step,
        writes: &mut Writes,
        passed: &mut Passed,
    ) -> bool {
        match step {
            Step::Moved => {}
            Step::Cleaned(freed) => {
                passed.cleaned += 1;
                if let Some(frame) = freed {
                    give(vm, host, frame);
                }
            }
            Step::Write(frame) => {
                passed.failed += 1;
                if writes.start && caller.fs {
                    self.write(vm, host, frame);
                }
            }
            Step::Buffers(frame) => {
                if !self.free_buffers(vm, host, frame, writes).0 {
                    passed.failed += 1;
                    return true;
                }
                passed.cleaned += 1;
                if let Some(frame) = vm.with(|state| self.without_buffers(state, caller, frame)) {
                    give(vm, host, frame);
                    // The freed page may have ended the shortage.
                    return self.free_shortage(vm, host) > 0;
                }
            }
        }
        true
    }

    /// Looks at one inactive page, and puts it where it belongs (docs/theory/vm.md 5.6).
    fn look(&self, state: &mut State, levels: &[Level], caller: &Caller, frame: Frame) -> Step {
        let flags = state.frames.flags(frame);
        let is_locked = flags.has(Flags::LOCKED);
        if self.is_used(state, frame, flags) && !(is_locked && self.choices.launder_ages) {
            self.activate(state, frame);
            return Step::Moved;
        }
        let is_dirty = flags.any(Flags::DIRTY | Flags::WRITEBACK);
        let goes_round = self.choices.rotate == Rotate::All || is_dirty || is_buffer_page(state, frame);
        if goes_round && self.free_plenty(state, levels, state.zone_of(frame)) {
            self.to(state, INACTIVE, frame);
            return Step::Moved;
        }
        let has_buffers = flags.has(Flags::BUFFERS);
        if is_locked || flags.has(Flags::WRITEBACK) && !has_buffers {
            self.to(state, INACTIVE, frame);
            return Step::Moved;
        }
        if has_buffers || flags.has(Flags::DIRTY) {
            self.to(state, INACTIVE, frame);
            return if has_buffers { Step::Buffers(frame) } else { Step::Write(frame) };
        }
        if state.frames.mapped(frame) > 0 {
            self.activate(state, frame);
            return Step::Moved;
        }
        Step::Cleaned(self.cleaned(state, caller, frame))
    }

    /// An inactive page is in use after all.
    fn is_used(&self, state: &State, frame: Frame, flags: Flags) -> bool {
        // A page with buffers has them written first, whether mapped or not; -ac counts them.
        let is_mapped = state.frames.mapped(frame) > 0;
        let counts = is_mapped && (self.choices.launder_ages || !flags.has(Flags::BUFFERS));
        let has_age = self.choices.launder_ages && state.frames.policy(frame) > 0;
        flags.has(Flags::REFERENCED) || has_age || counts || is_pinned(state, frame)
    }

    /// An inactive page has no buffers any more. Returns a frame to give away.
    fn without_buffers(&self, state: &mut State, caller: &Caller, frame: Frame) -> Option<Frame> {
        if is_buffer_page(state, frame) {
            self.detach(state, caller, frame);
            return Some(frame);
        }
        if state.frames.mapped(frame) > 0 {
            self.activate(state, frame);
            return None;
        }
        self.cleaned(state, caller, frame)
    }
}

/// Whether laundering writes after a pass: it begins when more than one percentage of the pages need a write,
/// and ends when less than another one do (docs/theory/vm.md 5.6).
fn writes_next(choices: &Choices, passed: Passed, writes: bool) -> bool {
    let all = passed.failed + passed.cleaned;
    let is_above = passed.failed * 100 > all * choices.write_above;
    let is_below = passed.failed * 100 < all * choices.write_below;
    is_above || writes && !is_below
}

/// Counts a look at an inactive page.
pub(super) fn count_scan(state: &mut State, caller: &Caller, frame: Frame) {
    let counter = if caller.kswapd { Counter::PgScanKswapd } else { Counter::PgScanDirect };
    state.count(counter);
    state.count_by_type(frame, Counter::PgScanAnon, Counter::PgScanFile);
}

/// Gives a frame that holds no page to the host.
pub(super) fn give(vm: &Vm, host: &dyn Host, frame: Frame) {
    host.work(Work::Reclaim, 1);
    host.free(vm, frame);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::with_knobs;

    #[test]
    fn laundering_writes_above_a_quarter_until_a_tenth() {
        for (knobs, failed, cleaned, writes, expected) in [
            ("", 25, 75, false, false),
            ("", 26, 74, false, true),
            ("", 26, 74, true, true),
            ("", 10, 90, true, true),
            ("", 9, 91, true, false),
            ("", 9, 91, false, false),
            // A pass without pages says nothing.
            ("", 0, 0, true, true),
            ("", 0, 0, false, false),
            ("write_above=50", 50, 50, false, false),
            ("write_above=50", 51, 49, false, true),
            ("write_below=0", 0, 100, true, true),
            ("write_below=20", 19, 81, true, false),
        ] {
            let choices = with_knobs("2.4.9-ac14+launder", knobs);
            let next = writes_next(&choices, Passed { cleaned, failed }, writes);
            assert_eq!(next, expected, "{knobs} {failed} of {}, {writes}", failed + cleaned);
        }
    }
}
