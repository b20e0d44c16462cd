//! How a machine is set up for a run: facts of its configuration, and nothing that a run measured.

use super::disk::BlockDisk;
use super::names::Unused;
use crate::block::disk::queue::QueueSpec;
use crate::heap::Named;
use crate::kernel::era::Era;
use slablab_model::Ps;
use slablab_model::disk::{Disk, DiskKind, Fixed};
use slablab_pages::PagesPolicy;
use slablab_pages::policy::{MinFree, Retries, ZoneRule};
use slablab_vm::Settings;
use slablab_vm::swap::SlotRule;

/// How the machine is set up.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Pages that are free when programs start; the rest is the kernel's. `None`: what the caches leave.
    pub free_pages: Option<u64>,
    /// Of the kernel's pages, those that lie on the first CPU's list at the start: beside the free ones.
    pub cached_pages: u64,
    /// `min_free_kbytes`; `None`: computed.
    pub min_free_kib: Option<u32>,
    /// Which zones a node has; `None`: those of its page size.
    pub zones: Option<ZoneRule>,
    /// What the administrator set.
    pub settings: Settings,
    /// Settings that a script's first process finds written, by their files.
    pub set: Vec<(&'static str, u32)>,
    /// Pages of swap.
    pub swap_pages: u32,
    /// How a free slot is found.
    pub slot_rule: SlotRule,
    /// The disk with swap, and the one with files.
    pub disk: [Disk; 2],
    /// The queue of both.
    pub queue: QueueSpec,
    /// Where swap begins on the disk with files, in sectors: both are on one disk. `None`: it has its own.
    pub swap_at: Option<u64>,
    /// The order of a pageblock; `None`: that of the rules of the page allocator.
    pub pageblock_order: Option<u8>,
    /// The rules of the page allocator; `None`: those of the slab engine's release.
    pub pages: Option<PagesPolicy>,
    /// Nodes of the page cache's trees are slab objects.
    pub tree_nodes: bool,
    /// Slab caches of the program's own.
    pub caches: Vec<Named>,
    /// Pages that the program of a script locks for itself: the first process, and each spawned one. If there
    /// are any, objects that are accessed by Zipf's distribution have locked tables too.
    pub locked: [u32; 2],
    /// Names that are unused at the start, by file system; reclaim asks these before those of programs.
    pub names: Vec<Unused>,
    /// Time between two calls of the policy's periodic work, which kswapd does (2.4: a second).
    pub tick_every: Option<Ps>,
    /// Time between two rounds of the flusher (`dirty_writeback_centisecs`).
    pub writeback_every: Ps,
    /// Time until its first round: where its timer stands at the start. `None`: a whole period.
    pub writeback_first: Option<Ps>,
    /// Simulated time without a page allocated or freed after which a task that reclaims ends the run.
    pub livelock_after: Ps,
}

const SECOND: Ps = 1_000_000_000_000;

impl Default for Guest {
    /// A guest with one zone, 384 MiB of swap, and two virtio disks of 0.1 ms a request.
    fn default() -> Guest {
        let disk = Disk {
            bytes: 1 << 30,
            depth: 1,
            rotational: true,
            kind: DiskKind::Fixed(Fixed { request: 100_000_000, kib: 0, write_limit: None }),
        };
        Guest {
            free_pages: None,
            cached_pages: 0,
            min_free_kib: None,
            zones: Some(ZoneRule::OneDma32),
            settings: Settings::default(),
            set: Vec::new(),
            swap_pages: 98_303,
            slot_rule: SlotRule::Clusters,
            disk: [disk.clone(), disk],
            queue: QueueSpec::named("mq-deadline@6.1").expect("a queue of this name"),
            swap_at: None,
            pageblock_order: None,
            pages: None,
            tree_nodes: false,
            caches: Vec::new(),
            locked: [0; 2],
            names: Vec::new(),
            tick_every: None,
            writeback_every: 5 * SECOND,
            writeback_first: None,
            livelock_after: 60 * SECOND,
        }
    }
}

impl Guest {
    /// The rules of the page allocator: where waiting costs time, requests are repeated as the kernel does,
    /// and since 6.7 CPUs tune how many pages they keep.
    pub(super) fn pages(&self, of: PagesPolicy, era: Era) -> PagesPolicy {
        let of = self.pages.unwrap_or(of);
        let of = if era.since(6, 7, 0) { of.tuned() } else { of };
        let min_free = self.min_free_kib.map_or(of.min_free, MinFree::Kib);
        PagesPolicy {
            min_free,
            zones: self.zones.or(of.zones),
            retries: Retries::AsKernel,
            pageblock_order: self.pageblock_order.or(of.pageblock_order),
            ..of
        }
    }

    pub(super) fn disks(&self) -> [BlockDisk; 2] {
        let [swap, data] = &self.disk;
        [BlockDisk::new("swap", 0, swap, self.queue), BlockDisk::new("vda", 1, data, self.queue)]
    }
}
