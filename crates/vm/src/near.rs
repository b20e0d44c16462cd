//! Reclaim near an allocation, before another node gives the page (`zone_reclaim_mode`): a zone of 2.6
//! (`zone_reclaim`), a node since 4.8 (`node_reclaim`). All of it from memory, but for the setting itself.
//!
//! ```text
//! a zone is below its low mark ── files that could go > min_unmapped_ratio, or slabs > min_slab_ratio?
//!      no, or it is known as full, or another task reclaims there ── the next zone
//!      yes ── passes at priorities 4 to 0 until a block's pages are freed ── the zone, if it is above its mark
//! ```
//!
//! Bit 1 of the mode allows clean pages of files that are not mapped, 2 writes, 4 mapped pages. What a write
//! is depends on the release: since 3.2 no allocation writes pages of files, so that 2 lets only pages of
//! swap and of tmpfs go.

use crate::counters::Counter;
use crate::host::Ask;
use crate::replacement::{Freed, Pass, Rule};
use crate::state::State;
use crate::vm::{Host, Vm};

/// Dirty pages may be written (`RECLAIM_WRITE`).
pub const WRITE: u8 = 2;
/// Mapped pages may go (`RECLAIM_UNMAP`).
pub const UNMAP: u8 = 4;
/// The mode that a kernel sets itself, where nodes are far from each other.
const AT_BOOT: u8 = 1;
/// The first priority (`NODE_RECLAIM_PRIORITY`): a sixteenth of the pages.
const FIRST: u32 = 4;
/// How long a zone without enough pages counts as full (`zlc_zonelist`'s bitmap, wiped each second).
const FULL: u64 = 1_000_000_000;

/// Reclaims near a zone for a request. Frees nothing under a policy without [`crate::Replacement::near`].
pub fn reclaim(vm: &Vm, host: &dyn Host, zone: usize, ask: &Ask) -> Freed {
    let Some(rule) = vm.policy.near() else { return Freed::default() };
    let mode = vm.with(|state| state.settings.zone_reclaim_mode.unwrap_or(AT_BOOT));
    let (zones, now) = (vm.with(|state| members(state, rule, zone)), host.now());
    let lock = zones[0];
    if mode == 0 || vm.with(|state| state.near[lock].full_until > now || state.near[lock].is_locked) {
        return Freed::default();
    }
    let files = vm.with(|state| has_files(&*vm.policy, state, rule, &zones, mode));
    if !files && !has_slabs(vm, host, &zones) {
        fill(vm, rule, lock, now);
        return Freed::default();
    }
    vm.with(|state| state.near[lock].is_locked = true);
    let wanted = 1 << ask.order;
    let mut pass = Pass {
        zone,
        priority: FIRST,
        write: mode & WRITE != 0,
        unmap: mode & UNMAP != 0,
        scanned: 0,
        freed: 0,
    };
    if files || rule == Rule::Node {
        for priority in (0..=FIRST).rev() {
            pass.priority = priority;
            vm.policy.shrink_near(vm, host, ask, &mut pass);
            if pass.freed >= wanted {
                break;
            }
        }
    }
    if rule == Rule::Zone && has_slabs(vm, host, &zones) {
        vm.policy.shrink_slabs_near(vm, host, &mut pass, wanted);
    }
    vm.with(|state| state.near[lock].is_locked = false);
    if pass.freed < wanted {
        fill(vm, rule, lock, now);
        if rule == Rule::Node {
            vm.with(|state| state.count(Counter::ZoneReclaimFailed));
        }
    }
    Freed { pages: pass.freed as u32, progress: pass.freed >= wanted, page: None }
}

/// The zone, or all zones of its node.
fn members(state: &State, rule: Rule, zone: usize) -> Vec<usize> {
    let is_one = |at: &usize| match rule {
        Rule::Zone => *at == zone,
        Rule::Node => state.zones[*at].node == state.zones[zone].node,
    };
    (0..state.zones.len()).filter(is_one).collect()
}

/// A percentage of the pages of zones.
fn part(state: &State, zones: &[usize], percent: u8) -> u64 {
    zones.iter().map(|zone| state.zones[*zone].managed * u64::from(percent) / 100).sum()
}

/// Whether more pages of files could go than `min_unmapped_ratio` keeps.
fn has_files(policy: &dyn crate::Replacement, state: &State, rule: Rule, zones: &[usize], mode: u8) -> bool {
    let sum = |of: &dyn Fn(usize) -> u64| zones.iter().map(|zone| of(*zone)).sum::<u64>();
    let files = sum(&|zone| policy.files_of(state, zone));
    let mapped =
        if rule == Rule::Zone || mode & UNMAP == 0 { sum(&|zone| state.near[zone].mapped) } else { 0 };
    let dirty = if rule == Rule::Node && mode & WRITE == 0 { sum(&|zone| state.near[zone].dirty) } else { 0 };
    files.saturating_sub(mapped).saturating_sub(dirty) > part(state, zones, state.settings.min_unmapped_ratio)
}

/// Whether reclaimable slabs have more pages than `min_slab_ratio` keeps.
fn has_slabs(vm: &Vm, host: &dyn Host, zones: &[usize]) -> bool {
    let least = vm.with(|state| part(state, zones, state.settings.min_slab_ratio));
    host.reclaimable_slabs() > least
}

/// Nothing is to be had from a zone for a while.
fn fill(vm: &Vm, rule: Rule, zone: usize, now: u64) {
    if rule == Rule::Zone {
        vm.with(|state| state.near[zone].full_until = now + FULL);
    }
}
