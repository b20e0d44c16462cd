//! What /proc and /sys show of a memory, as values.

use super::Memory;
use crate::heap::{CacheNumber, Named};
use slablab_model::Timed;
use slablab_platform::NodeId;
use slablab_slabs::CacheFlags;
use slablab_vm::{Census, Counter};

/// A page of the room `vm` has 4 KiB.
const PAGE_SHIFT: u32 = 12;

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// /proc/vmstat: name and value.
    pub vmstat: Vec<(&'static str, u64)>,
    /// /proc/meminfo: name and KiB.
    pub meminfo: Vec<(&'static str, u64)>,
    /// /proc/buddyinfo: free blocks of each order, of each zone.
    pub buddyinfo: Vec<(&'static str, Vec<u64>)>,
    /// /sys/block/DISK/stat.
    pub disks: Vec<(&'static str, [u64; 17])>,
    /// Lines of debugfs about the policy's lists.
    pub lists: Vec<String>,
    /// Generations: node, number, age in ms, pages that are anonymous, pages of files.
    pub generations: Vec<[u64; 5]>,
    /// The processes that have memory.
    pub processes: Vec<ProcessMemory>,
}

/// Page frames by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// All that the page allocator manages.
    pub total: u64,
    /// Free, without those in the page lists of CPUs.
    pub free: u64,
    /// Slab caches.
    pub slab: u64,
    /// Pages of programs and files, by kind, and page tables.
    pub pages: Census,
}

impl Frames {
    /// Names of the uses of [`Frames::uses`].
    pub const USES: [&str; 8] =
        ["anonymous", "files", "tmpfs", "buffers", "page tables", "slabs", "other", "free"];

    /// Frames of each use. `other`: the kernel's own and those in the page lists of CPUs.
    pub fn uses(&self) -> [u64; 8] {
        let Census { anon, file, tmpfs, buffers, tables, .. } = self.pages;
        let known = anon + file + tmpfs + buffers + tables + self.slab + self.free;
        let other = self.total.saturating_sub(known);
        [anon, file, tmpfs, buffers, tables, self.slab, other, self.free]
    }
}

/// The memory of a process, in pages of 4 KiB: what `ps` and /proc/PID/status show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Its name; empty for a script's main process.
    pub name: String,
    /// All of its address space (`VmSize`).
    pub virtual_pages: u64,
    /// Pages in frames that its page tables map (`VmRSS`).
    pub resident: u64,
    /// Entries of its page tables for pages in swap (`VmSwap`).
    pub swapped: u64,
    /// Page tables (`VmPTE`).
    pub tables: u64,
}

/// A cache's row of /proc/slabinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlabRow {
    /// The cache's name.
    pub name: String,
    /// Objects that are not free in slabs on a node's lists.
    pub active: u64,
    /// Objects that the slabs hold.
    pub objects: u64,
    /// Bytes of an object.
    pub bytes: u32,
    /// Slabs.
    pub slabs: u64,
    /// Their page frames.
    pub frames: u64,
}

impl Memory {
    /// Pages of slabs of caches that say they can shrink (`SReclaimable`).
    pub(super) fn reclaimable_slabs(&self) -> u64 {
        let heap = &self.kernel.heap;
        let caches = heap.caches().iter().enumerate();
        let ours = caches.filter(|(_, cache)| cache.spec.flags.has(CacheFlags::RECLAIM_ACCOUNT));
        ours.map(|(at, _)| heap.usage(CacheNumber(at as u16)).frames).sum()
    }

    /// /proc/slabinfo: the caches that have slabs.
    pub fn slabinfo(&self) -> Vec<SlabRow> {
        let heap = &self.kernel.heap;
        let row = |(at, cache): (usize, &Named)| {
            let usage = heap.usage(CacheNumber(at as u16));
            SlabRow {
                name: cache.name.clone(),
                active: usage.total_objects - usage.free_in_partial,
                objects: usage.total_objects,
                bytes: cache.spec.object_size,
                slabs: usage.slabs,
                frames: usage.frames,
            }
        };
        heap.caches().iter().enumerate().map(row).filter(|row| row.slabs > 0).collect()
    }

    /// What the memory's files say now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            vmstat: self.vmstat(self.free_pages()),
            meminfo: self.meminfo(&self.frames(self.vm.with(|state| state.census()))),
            buddyinfo: self.buddyinfo(),
            disks: self.disks.stats(),
            lists: self.vm.with(|state| self.vm.policy.describe(state)),
            processes: self.processes.list(&self.vm),
            generations: self.vm.policy.generations(Timed::clock() / 1_000),
        }
    }

    fn free_pages(&self) -> u64 {
        let pages = self.kernel.heap.pages();
        self.zones.iter().map(|(node, zone)| pages.zone_free(*node, *zone)).sum()
    }

    /// Page frames by use, with these pages of programs and files.
    pub(super) fn frames(&self, pages: Census) -> Frames {
        let allocator = self.kernel.heap.pages();
        Frames {
            total: self.nodes().map(|node| allocator.total_frames(NodeId(node))).sum(),
            free: self.free_pages(),
            slab: self.kernel.heap.slab_bytes() >> PAGE_SHIFT,
            pages,
        }
    }

    pub(super) fn vmstat(&self, free: u64) -> Vec<(&'static str, u64)> {
        self.vm.with(|state| {
            let sizes = self.vm.policy.sizes(state);
            let mut rows = vec![
                ("nr_free_pages", free),
                ("nr_inactive_anon", sizes.inactive_anon),
                ("nr_active_anon", sizes.active_anon),
                ("nr_inactive_file", sizes.inactive_file),
                ("nr_active_file", sizes.active_file),
                ("nr_dirty", state.dirty.file),
                ("nr_writeback", state.dirty.writeback),
            ];
            rows.extend(Counter::ALL.iter().map(|counter| (counter.name(), state.counters.get(*counter))));
            rows
        })
    }

    /// The lines of /proc/meminfo that the model has, in its order.
    pub(super) fn meminfo(&self, frames: &Frames) -> Vec<(&'static str, u64)> {
        let pages = frames.pages;
        self.vm.with(|state| {
            let sizes = self.vm.policy.sizes(state);
            let lines = [
                ("MemTotal", frames.total),
                ("MemFree", frames.free),
                ("Buffers", pages.buffers),
                ("Cached", pages.file + pages.tmpfs),
                ("SwapCached", pages.swap_cached),
                ("Active", sizes.active_anon + sizes.active_file),
                ("Inactive", sizes.inactive_anon + sizes.inactive_file),
                ("Active(anon)", sizes.active_anon),
                ("Inactive(anon)", sizes.inactive_anon),
                ("Active(file)", sizes.active_file),
                ("Inactive(file)", sizes.inactive_file),
                ("SwapTotal", state.swap.slots().into()),
                ("SwapFree", state.swap.free().into()),
                ("Dirty", state.dirty.file),
                ("Writeback", state.dirty.writeback),
                ("AnonPages", pages.anon_mapped),
                ("Mapped", pages.mapped),
                ("Shmem", pages.tmpfs),
                ("Slab", frames.slab),
                ("PageTables", pages.tables),
            ];
            lines.map(|(name, pages)| (name, pages << (PAGE_SHIFT - 10))).to_vec()
        })
    }

    fn buddyinfo(&self) -> Vec<(&'static str, Vec<u64>)> {
        let pages = self.kernel.heap.pages();
        let of = |(node, zone): &(NodeId, u8)| {
            let info = pages.zone_info(*node, *zone)?;
            let orders = info.blocks[..=pages.max_order() as usize].iter();
            Some((info.name, orders.map(|types| types.iter().map(|count| u64::from(*count)).sum()).collect()))
        };
        self.zones.iter().filter_map(of).collect()
    }

    /// The fragmentation index of each order, of each zone, in thousandths; -1000: there is a block.
    pub fn fragmentation(&self) -> Vec<(&'static str, Vec<i32>)> {
        let pages = self.kernel.heap.pages();
        let of = |(node, zone): &(NodeId, u8)| {
            let info = pages.zone_info(*node, *zone)?;
            let orders = 0..=pages.max_order();
            Some((info.name, orders.map(|order| pages.fragmentation(*node, *zone, order)).collect()))
        };
        self.zones.iter().filter_map(of).collect()
    }

    /// Every frame is where the counters say: the page allocator's, and the memory's own. Each has one
    /// holder: all programs have ended.
    ///
    /// # Errors
    /// What contradicts what.
    pub fn check(&self) -> Result<(), String> {
        self.kernel.heap.pages().check().map_err(|imbalance| imbalance.to_string())?;
        if !self.disks.are_idle() {
            return Err("a disk has work left".into());
        }
        self.objects.nodes.check(&self.vm)?;
        self.vm.with(|state| state.check())?;
        self.accounts.frames.check(&self.kernel, &self.zones, &self.vm)
    }
}
