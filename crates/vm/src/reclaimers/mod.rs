//! The two reclaimers of 6.x, an allocation and kswapd, over any policy that can reclaim from a node.
//!
//! Direct reclaim and kswapd decide when a node is scanned, at what priority, and who sleeps. The policy
//! ([`Reclaimer`]) decides what a pass over the node does: the classic lists or the generations.

mod direct;
mod kswapd;
mod writes;

pub(crate) use direct::{reclaim_directly, shrink_near};
pub(crate) use kswapd::{run_kswapd, should_wake};
pub(crate) use writes::{Only, look_at_writes};

use crate::host::{Mark, Throttle};
use crate::ids::SpaceId;
use crate::replacement::Sizes;
use crate::state::State;
use crate::vm::{Host, Vm};

/// The first priority of a reclaimer (`DEF_PRIORITY`): it looks at 1/4096 of the pages.
pub(crate) const FIRST: u32 = 12;
/// Pages that an allocation wants (`SWAP_CLUSTER_MAX`).
pub(crate) const WANTED: u64 = 32;
/// Runs of kswapd without a page after which it gives up (`MAX_RECLAIM_RETRIES`).
pub(crate) const RETRIES: u32 = 16;
/// One tick of the clock at 250 Hz, the configuration of Debian.
pub(crate) const TICK: u64 = 4_000_000;
/// The largest order that is retried for long (`PAGE_ALLOC_COSTLY_ORDER`).
pub(crate) const COSTLY: u8 = 3;

/// What one reclaimer wants and has found (`scan_control`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    pub(crate) node: u16,
    /// The highest zone.
    pub(crate) class: u8,
    pub(crate) order: u8,
    pub(crate) priority: u32,
    pub(crate) kswapd: bool,
    /// The requesting task's address space.
    pub(crate) space: Option<SpaceId>,
    /// For the limit of a group: free pages and marks do not count.
    pub(crate) group: bool,
    pub(crate) io: bool,
    pub(crate) fs: bool,
    /// Pages may be written; anonymous pages may go to swap.
    pub(crate) write: bool,
    pub(crate) swap: bool,
    /// Mapped pages stay.
    pub(crate) keeps_mapped: bool,
    /// Pages wanted, freed, scanned.
    pub(crate) target: u64,
    pub(crate) reclaimed: u64,
    pub(crate) scanned: u64,
    /// Classic: active lists are scanned even if their inactive ones are long; one was left alone as it is.
    pub(crate) deactivate: bool,
    pub(crate) left_active: bool,
    /// Classic: files are not trimmed alone; doing so freed nothing.
    pub(crate) no_trim: bool,
    pub(crate) trim_failed: bool,
    /// Generations: pages reclaimed before kswapd's present round; its last round needed no new generation.
    pub(crate) before: u64,
    pub(crate) young_enough: bool,
    /// Compaction could make the wanted block.
    pub(crate) compaction_ready: bool,
    /// Pages met by this pass over the node.
    pub(crate) met: Met,
}

/// Pages met by a pass over a node (`sc->nr`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    pub(crate) dirty: u64,
    pub(crate) unqueued_dirty: u64,
    pub(crate) congested: u64,
    pub(crate) writeback: u64,
    pub(crate) immediate: u64,
    pub(crate) taken: u64,
    pub(crate) file_taken: u64,
}

/// What the reclaimers may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manners {
    /// Raised watermarks make kswapd reclaim, without writes.
    pub(crate) boost: bool,
    /// They sleep for the reasons of `reclaim_throttle`.
    pub(crate) throttle: bool,
    /// kswapd goes on for the order that was asked for; if not, only for single pages.
    pub(crate) kswapd_order: bool,
}

/// A policy that can reclaim from a node.
pub(crate) trait Reclaimer {
    /// What the reclaimers may do.
    fn manners(&self) -> Manners;
    /// Nodes of the machine.
    fn nodes(&self) -> u16;
    /// Runs of kswapd of a node without a page, in a row. `change` sets them.
    fn failures(&self, node: u16, change: impl FnOnce(&mut u32)) -> u32;
    /// What kswapd of a node met. `change` sets it.
    fn only(&self, node: u16, change: impl FnOnce(&mut Only)) -> Only;
    /// kswapd looks at what is old, before a pass.
    fn age(&self, vm: &Vm, host: &dyn Host, round: &mut Round);
    /// A pass over a node: pages and slab caches.
    fn shrink_node(&self, vm: &Vm, host: &dyn Host, round: &mut Round);
    /// Pages of a node of each kind.
    fn sizes_of(&self, node: u16) -> Sizes;
    /// Pages that reclaim could take from a zone (`zone_reclaimable_pages`).
    fn reclaimable(&self, vm: &Vm, zone: usize) -> u64;
    /// A node is balanced.
    fn is_balanced_now(&self, _node: u16) {}
    /// A reclaim ends.
    fn ends(&self, _node: u16) {}

    /// Whether kswapd of a node has given up.
    fn gave_up(&self, node: u16) -> bool {
        self.failures(node, |_| {}) >= RETRIES
    }

    /// Sleeps, if the reclaimers do.
    fn throttle(&self, host: &dyn Host, why: Throttle, most: u64) {
        if self.manners().throttle { host.throttle(why, most) } else { host.resched() }
    }

    /// A sleep would not help (`skip_throttle_noprogress`): kswapd has given up, or most pages that reclaim
    /// could take wait for no write. Dirty pages of all nodes are taken for the node's own
    /// (docs/theory/vm.md 3.9).
    fn sleep_is_vain(&self, vm: &Vm, node: u16) -> bool {
        let pending = 2 * vm.with(|state| state.dirty.file + state.dirty.writeback);
        let zones = vm.with(|state| zones_of(state, node));
        let pages: u64 = zones.into_iter().map(|zone| self.reclaimable(vm, zone)).sum();
        self.gave_up(node) || pending <= pages
    }

    /// Whether a pass for a large block goes on: reclaim still finds pages, and compaction has too few
    /// (`should_continue_reclaim`).
    fn should_continue(&self, vm: &Vm, host: &dyn Host, round: &Round, reclaimed: u64) -> bool {
        let is_large = round.order > 0 && (round.order > COSTLY || round.priority < FIRST - 2);
        if !is_large || reclaimed == 0 {
            return false;
        }
        let zones = vm.with(|state| zones_up_to(state, round.node, round.class));
        if zones.iter().any(|zone| can_compact(host, *zone, round.order, round.class)) {
            return false;
        }
        let swaps = vm.with(|state| state.swap.free() > 0);
        let sizes = self.sizes_of(round.node);
        sizes.inactive_file + if swaps { sizes.inactive_anon } else { 0 } > compact_gap(round.order)
    }
}

/// The zones of a node, as indexes.
pub(crate) fn zones_of(state: &State, node: u16) -> Vec<usize> {
    let zones = state.zones.iter().enumerate();
    zones.filter(|(_, zone)| zone.node == node && zone.managed > 0).map(|(at, _)| at).collect()
}

/// The zones of a node that a request can use, as indexes.
pub(crate) fn zones_up_to(state: &State, node: u16, class: u8) -> Vec<usize> {
    let zones = zones_of(state, node).into_iter();
    zones.filter(|zone| state.zones[*zone].class <= class).collect()
}

/// Free pages that compaction works with, beside the watermark: twice the block.
pub(crate) fn compact_gap(order: u8) -> u64 {
    2 << order
}

/// Whether compaction has work and room in a zone: the block is there, or enough single pages are.
pub(crate) fn can_compact(host: &dyn Host, zone: usize, order: u8, class: u8) -> bool {
    let mark = if order > COSTLY { Mark::Low } else { Mark::Min };
    let enough = host.mark(zone, mark) + compact_gap(order);
    host.is_above(zone, Mark::Min, order, class) || host.free_pages(zone) > enough
}
