//! What the page allocator asks the world for when memory is short, and what the world answers.

use crate::{Gfp, NodeId, Pfn};

/// A request of the page allocator to the reclaim policy ([`crate::Hooks::reclaim`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reclaim {
    /// The node whose zonelist was tried.
    pub node: NodeId,
    /// The zone class: index of the highest zone that the request may use. Only pages of this zone and of
    /// lower ones help it.
    pub class: u8,
    /// The zone that the step is about, where it is about one: [`ReclaimStep::WakeKreclaimd`],
    /// [`ReclaimStep::StealClean`], [`ReclaimStep::Zone`]. Else the same as `class`.
    pub zone: u8,
    /// The order of the wanted block.
    pub order: u8,
    /// The caller's flags. They say the migrate type, too.
    pub gfp: Gfp,
    /// The caller is a reclaimer itself ([`crate::Hooks::is_reclaimer`]), so it must not wait for another
    /// one.
    pub reclaimer: bool,
    /// How many requests the same allocation made before.
    pub attempt: u32,
    /// The step that is wanted.
    pub step: ReclaimStep,
}

/// The steps of the slow path that a reclaim policy can take (docs/theory/pagealloc.md 5). A world answers
/// [`Reclaimed::NOTHING`] to a step that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimStep {
    /// Wake the daemon for this order; no page is freed before the call returns.
    WakeKswapd,
    /// Free pages before the call returns, shrinkers included.
    Direct,
    /// Move pages to make a block.
    Compact,
    /// Kill a task.
    Oom,
    /// 2.6: nothing was to be had, and the request will try again: wait up to 20 ms for a disk whose queue
    /// was congested (`congestion_wait`). Without progress the request fails.
    Wait,
    /// `zone_reclaim_mode`: free unmapped page cache and slabs of one zone, near the caller, before the
    /// request goes to a farther node.
    Zone,
    /// 2.4.8, 2.4.9: wake the daemon that moves `inactive_clean` pages of one zone to its free list.
    WakeKreclaimd,
    /// 2.4.8, 2.4.9: hand over one page of one zone's `inactive_clean` list ([`Reclaimed::page`]).
    StealClean,
    /// 2.4.8, 2.4.9: let another task run (`SCHED_YIELD`), so that the woken daemon can free pages.
    Yield,
    /// 2.4.8, 2.4.9: write dirty inactive pages, and wait for them (`page_launder` with `sync`).
    Launder,
}

impl ReclaimStep {
    /// Whether the caller frees memory itself in this step, so that it is a reclaimer meanwhile.
    pub const fn frees(self) -> bool {
        use ReclaimStep::{Compact, Direct, Launder, Oom, Zone};
        matches!(self, Direct | Compact | Oom | Zone | Launder)
    }
}

/// What a reclaim policy did. A world that only knows whether another attempt makes sense answers with a
/// `bool`: `true.into()` is [`Reclaimed::ROUND`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reclaimed {
    /// Pages that were freed.
    pub freed: u32,
    /// Whether another attempt makes sense.
    pub progress: bool,
    /// A block for the caller itself, which no other task can take: the head of an allocated block of the
    /// wanted order, in a zone that the request may use. It stays allocated, and becomes the caller's.
    /// Answers to the steps that wake a task, yield, launder or reclaim a [`ReclaimStep::Zone`] have none.
    pub page: Option<Pfn>,
}

impl Reclaimed {
    /// Nothing was freed, and nothing will be.
    pub const NOTHING: Reclaimed = Reclaimed { freed: 0, progress: false, page: None };
    /// One round of direct reclaim that reached its goal of 32 pages (`SWAP_CLUSTER_MAX`).
    pub const ROUND: Reclaimed = Reclaimed { freed: 32, progress: true, page: None };

    /// This many pages were freed: progress, unless there were none.
    pub const fn freed(pages: u32) -> Reclaimed {
        Reclaimed { freed: pages, progress: pages > 0, page: None }
    }

    /// A block is handed over to the caller.
    pub const fn page(pfn: Pfn) -> Reclaimed {
        Reclaimed { freed: 0, progress: true, page: Some(pfn) }
    }
}

impl From<bool> for Reclaimed {
    fn from(progress: bool) -> Reclaimed {
        if progress { Reclaimed::ROUND } else { Reclaimed::NOTHING }
    }
}
