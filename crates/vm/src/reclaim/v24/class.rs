//! The run of reclaim of 2.4.10, which frees pages of the zones that one allocation can use, and its kswapd.

use super::clean::Writes;
use super::launder::{count_scan, give};
use super::lru::{ACTIVE, INACTIVE, MET, is_buffer_page, is_pinned};
use super::policy::{Kswapd, Launder, Target, Waits};
use super::{Caller, V24};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Mark, Work};
use crate::ids::Frame;
use crate::lists::ListId;
use crate::replacement::Freed;
use crate::state::State;
use crate::vm::{Host, Vm};

/// Pages that a run wants (`SWAP_CLUSTER_MAX`).
const WANT: u32 = 32;
/// The first priority (`DEF_PRIORITY`); 1 is the last.
const PRIORITY: u32 = 6;
/// Nanoseconds that kswapd sleeps after a failure.
const AFTER_FAILURE: u64 = 5_000_000_000;
/// Failures in a row after which kswapd that never sleeps returns to its host. Assumed: the host wakes it
/// again at the next allocation.
const SPINS: u32 = 16;

/// Pages freed by a task for itself, newest last; none: they go to the host at once.
pub type Local = Option<Vec<Frame>>;

/// What a look at one page of a list decided.
enum Step {
    /// It is somewhere else, and took nothing of the budget.
    Skipped,
    /// It stays.
    Kept,
    /// It is freed: give it away.
    Freed(Frame),
    /// It is clean, and waits in its zone: only where 2.4.10's run meets 2.4.9's lists.
    Cleaned,
    /// It needs a write, and has no buffers.
    Write(Frame),
    /// It has buffers.
    Buffers(Frame),
}

impl V24 {
    /// An allocation reclaims (`balance_classzone`): with `hands_over` it gets the page that it freed last
    /// (docs/theory/vm.md 5.8).
    pub(super) fn free_for(&self, vm: &Vm, host: &dyn Host, caller: &Caller, order: u8) -> Freed {
        let mut local = (self.choices.hands_over && order == 0).then(Vec::new);
        let (pages, progress) = self.free_class(vm, host, caller, &mut local);
        let mut local = local.unwrap_or_default();
        let page = local.pop();
        // In the reverse order, so that the newest is the first that is allocated.
        for frame in local {
            host.free(vm, frame);
        }
        Freed { pages, progress: progress || page.is_some(), page }
    }

    /// Frees 32 pages (`try_to_free_pages`). Returns pages freed, and whether trying again makes sense
    /// (docs/theory/vm.md 5.7).
    pub(super) fn free_class(
        &self,
        vm: &Vm,
        host: &dyn Host,
        caller: &Caller,
        local: &mut Local,
    ) -> (u32, bool) {
        let (mut freed, mut unmapped) = (0, false);
        for priority in (1..=PRIORITY).rev() {
            let missing = self.shrink_caches(vm, host, caller, WANT, priority, local);
            freed += WANT - missing;
            if missing == 0 {
                return (freed, true);
            }
            let found = self.walk_once(vm, host, caller, priority);
            unmapped |= found && self.choices.walk_counts;
        }
        (freed, unmapped)
    }

    /// Slabs, refill, cache, dentries and inodes (`shrink_caches`). Returns pages still wanted.
    pub fn shrink_caches(
        &self,
        vm: &Vm,
        host: &dyn Host,
        caller: &Caller,
        wanted: u32,
        priority: u32,
        local: &mut Local,
    ) -> u32 {
        let reaped = host.reap_slabs();
        let mut wanted = wanted - reaped.min(wanted.into()) as u32;
        if wanted == 0 {
            return 0;
        }
        match self.choices.target {
            Target::Pressure | Target::Quarter => self.refill_on_shortage(vm, host, priority),
            Target::No | Target::TwiceActive | Target::Balance => {
                let (most, all) = vm.with(|state| (self.refill_of(state, wanted), state.lists.len(ACTIVE)));
                if most > 0 {
                    self.refill(vm, host, all, most);
                }
            }
        }
        wanted = match self.choices.launder {
            Launder::Cache | Launder::BothLists => {
                self.shrink_cache(vm, host, caller, wanted, priority, local)
            }
            _ => wanted.saturating_sub(self.launder(vm, host, caller, wanted)),
        };
        if wanted > 0 && caller.fs {
            self.shrink_vfs(vm, host, priority);
        }
        wanted
    }

    /// Frees pages of the inactive list, or of both in turn (`shrink_cache`). Returns pages still wanted
    /// (docs/theory/vm.md 5.6).
    pub fn shrink_cache(
        &self,
        vm: &Vm,
        host: &dyn Host,
        caller: &Caller,
        mut wanted: u32,
        priority: u32,
        local: &mut Local,
    ) -> u32 {
        let (active, inactive) = vm.with(|state| (state.lists.len(ACTIVE), state.lists.len(INACTIVE)));
        let lists: &[(ListId, u32)] = match self.choices.launder {
            Launder::BothLists => {
                let most = (inactive + active / priority) / priority;
                &[(INACTIVE, most), (ACTIVE, most)]
            }
            _ => &[(INACTIVE, inactive / priority)],
        };
        for (list, most) in lists {
            // Referenced pages cost no budget, so a bound: each page is met twice at most.
            let (mut budget, mut looks) = (*most, 2 * (active + inactive));
            while wanted > 0 && budget > 0 && looks > 0 {
                looks -= 1;
                let step = vm.with(|state| {
                    let frame = state.lists.tail(*list)?;
                    count_scan(state, caller, frame);
                    Some(self.look_at(state, caller, *list, frame))
                });
                host.work(Work::Scan, 1);
                let Some(step) = step else { break };
                budget -= u32::from(!matches!(step, Step::Skipped));
                wanted -= u32::from(self.take_step(vm, host, caller, step, local));
            }
        }
        wanted
    }

    /// Does what a look decided. Returns whether a page was freed, or is clean.
    fn take_step(&self, vm: &Vm, host: &dyn Host, caller: &Caller, step: Step, local: &mut Local) -> bool {
        let freed = match step {
            Step::Skipped | Step::Kept => None,
            Step::Freed(frame) => Some(frame),
            Step::Cleaned => return true,
            Step::Write(frame) => {
                if caller.fs {
                    self.write(vm, host, frame);
                }
                None
            }
            Step::Buffers(frame) if vm.with(|state| self.passes(state, frame)) => None,
            Step::Buffers(frame) => {
                let wait = match self.choices.waits {
                    Waits::Always => true,
                    Waits::Users | Waits::Mask => !caller.kswapd && caller.fs,
                };
                let mut writes = Writes { start: caller.io, free: if wait { 0 } else { 1 }, wait };
                let (is_free, _) = self.free_buffers(vm, host, frame, &mut writes);
                let cleaned = vm.with(|state| {
                    let can_go = is_free && is_freeable(state, frame);
                    can_go.then(|| self.cleaned(state, caller, frame))
                });
                match cleaned {
                    Some(None) => return true,
                    freed => freed.flatten(),
                }
            }
        };
        let Some(frame) = freed else { return false };
        match local {
            Some(local) => {
                host.work(Work::Reclaim, 1);
                local.push(frame);
            }
            None => give(vm, host, frame),
        }
        true
    }

    /// Whether a page with dirty buffers is left alone this time.
    fn passes(&self, state: &mut State, frame: Frame) -> bool {
        let was_met = state.frames.clear(frame, MET).any(MET);
        let passes = self.choices.free_pass && state.frames.has(frame, Flags::DIRTY) && !was_met;
        if passes {
            state.frames.set(frame, MET);
        }
        passes
    }

    /// Looks at the page at the tail of a list, and puts it where it belongs.
    fn look_at(&self, state: &mut State, caller: &Caller, list: ListId, frame: Frame) -> Step {
        self.to(state, list, frame);
        let is_both = self.choices.launder == Launder::BothLists;
        if state.frames.clear(frame, Flags::REFERENCED).any(Flags::REFERENCED) {
            if is_both {
                self.activate(state, frame);
            }
            return Step::Skipped;
        }
        if is_both && list == ACTIVE {
            self.take(state, frame);
            self.put(state, INACTIVE, frame);
            state.count(Counter::PgDeactivate);
        }
        if !caller.helps(state, state.zone_of(frame)) {
            return Step::Kept;
        }
        let flags = state.frames.flags(frame);
        let has_buffers = flags.has(Flags::BUFFERS);
        if state.frames.mapped(frame) > 0 && (!has_buffers || self.choices.activate_mapped) {
            if self.choices.activate_mapped {
                self.activate(state, frame);
            }
            return Step::Kept;
        }
        if flags.has(Flags::LOCKED) || flags.has(Flags::WRITEBACK) && !has_buffers || is_pinned(state, frame)
        {
            return Step::Kept;
        }
        if has_buffers {
            return Step::Buffers(frame);
        }
        // A slot without users holds nothing that anybody wants (`exclusive_swap_page`).
        let is_dead = state.frames.slot(frame).is_some_and(|slot| state.swap.users(slot) == 0);
        if flags.has(Flags::DIRTY) && !is_dead {
            return Step::Write(frame);
        }
        self.cleaned(state, caller, frame).map_or(Step::Cleaned, Step::Freed)
    }

    /// kswapd balances the zones of a node up to `class`, from the highest (`kswapd_balance_pgdat`).
    pub(super) fn balance_node(&self, vm: &Vm, host: &dyn Host, node: u16, class: u8) {
        let mut needs = true;
        let mut fails = 0;
        while needs {
            needs = false;
            let caller = Caller::kswapd(node, class);
            let ran = self.try_to_free(vm, host, &caller);
            if !ran.success {
                fails += 1;
                if self.choices.kswapd == Kswapd::Zones {
                    host.nap(node, AFTER_FAILURE);
                    return;
                }
                needs = fails < SPINS;
            } else {
                fails = 0;
                needs |= !self.is_balanced(vm, host, &caller);
            }
            host.resched();
        }
    }

    /// A zone that helps has pages above high, free or clean.
    fn is_balanced(&self, vm: &Vm, host: &dyn Host, caller: &Caller) -> bool {
        let zones = vm.with(|state| {
            let helping = (0..state.zones.len()).filter(|zone| caller.helps(state, *zone));
            helping.map(|zone| (zone, self.clean_of(state, zone))).collect::<Vec<_>>()
        });
        zones.into_iter().any(|(zone, clean)| host.free_pages(zone) + clean > host.mark(zone, Mark::High))
    }
}

/// A page that nothing maps, that is clean, and that nobody references.
fn is_freeable(state: &State, frame: Frame) -> bool {
    let flags = state.frames.flags(frame);
    let is_clean = !flags.any(Flags::DIRTY | Flags::WRITEBACK | Flags::LOCKED | Flags::BUFFERS);
    let is_there = flags.has(Flags::LISTED);
    is_clean && is_there && (state.frames.mapped(frame) == 0 || is_buffer_page(state, frame))
}
