//! Reclaim near an allocation, before another node gives the page (`zone_reclaim_mode`): a zone of 2.6
//! (`zone_reclaim`), a node since 4.8 (`node_reclaim`). All of it from memory, but for the setting itself.
//! Rules: docs/theory/vm.md 8.
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

/// Reclaims near a zone for a request. Frees nothing under a policy without [`crate::Replacement::near`]
/// (docs/theory/vm.md 8.2).
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
        descend(wanted, |priority| {
            pass.priority = priority;
            vm.policy.shrink_near(vm, host, ask, &mut pass);
            pass.freed
        });
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

/// Passes at falling priorities, until one of them says that so many pages are freed in all.
fn descend(wanted: u64, mut pass: impl FnMut(u32) -> u64) {
    for priority in (0..=FIRST).rev() {
        if pass(priority) >= wanted {
            break;
        }
    }
}

/// Whether zones have more pages of a kind than a ratio keeps: so many percent of each zone's pages
/// (docs/theory/vm.md 8.2).
fn exceeds(state: &State, zones: &[usize], pages: u64, percent: u8) -> bool {
    let kept = zones.iter().map(|zone| state.zones[*zone].managed * u64::from(percent) / 100).sum::<u64>();
    pages > kept
}

/// Whether more pages of files could go than `min_unmapped_ratio` keeps.
fn has_files(policy: &dyn crate::Replacement, state: &State, rule: Rule, zones: &[usize], mode: u8) -> bool {
    let sum = |of: &dyn Fn(usize) -> u64| zones.iter().map(|zone| of(*zone)).sum::<u64>();
    let files = sum(&|zone| policy.files_of(state, zone));
    let mapped = sum(&|zone| state.near[zone].mapped);
    let dirty = sum(&|zone| state.near[zone].dirty);
    let files = could_go(rule, mode, files, mapped, dirty);
    exceeds(state, zones, files, state.settings.min_unmapped_ratio)
}

/// Of the pages of files those that could go: without the mapped ones, and in a node without the dirty ones,
/// unless the mode lets them go. In a zone mapped ones never count, and dirty ones always do
/// (docs/theory/vm.md 8.2).
fn could_go(rule: Rule, mode: u8, files: u64, mapped: u64, dirty: u64) -> u64 {
    let mapped = if rule == Rule::Zone || mode & UNMAP == 0 { mapped } else { 0 };
    let dirty = if rule == Rule::Node && mode & WRITE == 0 { dirty } else { 0 };
    files.saturating_sub(mapped).saturating_sub(dirty)
}

/// Whether reclaimable slabs have more pages than `min_slab_ratio` keeps.
fn has_slabs(vm: &Vm, host: &dyn Host, zones: &[usize]) -> bool {
    let slabs = host.reclaimable_slabs();
    vm.with(|state| exceeds(state, zones, slabs, state.settings.min_slab_ratio))
}

/// Nothing is to be had from a zone for a while.
fn fill(vm: &Vm, rule: Rule, zone: usize, now: u64) {
    if rule == Rule::Zone {
        vm.with(|state| state.near[zone].full_until = now + FULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Preset;
    use crate::state::Zone;
    use crate::swap::{SlotRule, Swap};

    #[test]
    fn passes_go_down_until_the_wanted_pages_are_freed() {
        // Pages that each pass frees; the priorities of the passes.
        for (wanted, frees, expected) in [
            (1, [0; 5].as_slice(), [4, 3, 2, 1, 0].as_slice()),
            (1, &[1], &[4]),
            (4, &[1, 2, 1], &[4, 3, 2]),
            (4, &[1, 2, 0, 0, 1], &[4, 3, 2, 1, 0]),
            (4, &[5], &[4]),
        ] {
            let (mut priorities, mut freed) = (Vec::new(), 0);
            descend(wanted, |priority| {
                freed += frees[priorities.len()];
                priorities.push(priority);
                freed
            });
            assert_eq!(priorities, expected, "{wanted} wanted, {frees:?} freed");
        }
    }

    #[test]
    fn mapped_and_dirty_pages_could_go_by_the_mode_and_the_release() {
        for (rule, mode, expected) in [
            (Rule::Node, 1, 60),
            (Rule::Node, 1 | WRITE, 70),
            (Rule::Node, 1 | UNMAP, 90),
            (Rule::Node, 1 | WRITE | UNMAP, 100),
            (Rule::Zone, 1, 70),
            (Rule::Zone, 1 | WRITE, 70),
            (Rule::Zone, 1 | WRITE | UNMAP, 70),
        ] {
            assert_eq!(could_go(rule, mode, 100, 30, 10), expected, "{rule:?} {mode}");
        }
        assert_eq!(could_go(Rule::Node, 1, 10, 9, 9), 0);
    }

    #[test]
    fn ratios_keep_a_part_of_each_zone() {
        let zone = |at: u32, managed| Zone {
            name: "zone",
            node: 0,
            class: at as u8,
            frames: at * 2000..(at + 1) * 2000,
            managed,
        };
        for (knobs, zones, least_files, least_slabs) in [
            // 1 and 5 percent of 1,000 pages, then of 1,000 and 1,990 each, rounded down.
            ("", [0].as_slice(), 11, 51),
            ("", &[0, 1], 10 + 19 + 1, 50 + 99 + 1),
            (",min_slab_ratio=20", &[0], 11, 201),
            (",min_unmapped_ratio=50", &[0], 501, 51),
            (",min_slab_ratio=0,min_unmapped_ratio=0", &[0, 1], 1, 1),
        ] {
            let settings = Preset::parse(&format!("vm@6.1{knobs}")).expect("a preset").settings;
            let swap = Swap::new(0, SlotRule::Next);
            let state = State::new(vec![zone(0, 1000), zone(1, 1990)], swap, 0, settings);
            for (least, percent) in
                [(least_files, settings.min_unmapped_ratio), (least_slabs, settings.min_slab_ratio)]
            {
                assert!(exceeds(&state, zones, least, percent), "{knobs} {zones:?} {least}");
                assert!(!exceeds(&state, zones, least - 1, percent), "{knobs} {zones:?} {least}");
            }
        }
    }
}
