//! How many pages of each kind are in frames at one moment, as /proc/meminfo has them.

use crate::frames::Flags;
use crate::ids::{Frame, MappingId};
use crate::mappings::Kind;
use crate::state::State;

/// Pages in frames, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Anonymous pages, those in the swap cache too.
    pub anon: u64,
    /// Of these, pages that a page table maps (`AnonPages`).
    pub anon_mapped: u64,
    /// Pages of tmpfs (`Shmem`).
    pub tmpfs: u64,
    /// Pages of files of disks.
    pub file: u64,
    /// Pages of block devices: metadata of file systems (`Buffers`).
    pub buffers: u64,
    /// Pages of files and tmpfs that a page table maps (`Mapped`).
    pub mapped: u64,
    /// Anonymous and tmpfs pages in the swap cache (`SwapCached`).
    pub swap_cached: u64,
    /// Page tables (`PageTables`).
    pub tables: u64,
}

/// Frames of one zone that pages and page tables have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Anonymous pages, those in the swap cache too.
    pub anon: u64,
    /// Pages of files of disks.
    pub file: u64,
    /// Pages of tmpfs.
    pub tmpfs: u64,
    /// Pages of block devices.
    pub buffers: u64,
    /// Page tables.
    pub tables: u64,
    /// Of the pages, those in lists of reclaim.
    pub listed: u64,
}

impl Holdings {
    /// All frames.
    pub const fn total(self) -> u64 {
        self.anon + self.file + self.tmpfs + self.buffers + self.tables
    }
}

impl State {
    /// Counts the pages of each kind. Walks all frames, mappings and page tables' frames.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        for frame in (0..self.frames.count()).map(Frame) {
            let flags = self.frames.flags(frame);
            if !flags.has(Flags::USED) {
                continue;
            }
            let is_mapped = u64::from(self.frames.mapped(frame) > 0);
            if flags.has(Flags::ANON) {
                census.anon += 1;
                census.anon_mapped += is_mapped;
            } else {
                census.tmpfs += u64::from(flags.has(Flags::SWAPBACKED));
                census.file += u64::from(!flags.has(Flags::SWAPBACKED));
                census.mapped += is_mapped;
            }
            census.swap_cached += u64::from(flags.has(Flags::SWAPCACHE));
        }
        let devices = self.mappings.iter().filter(|(_, mapping)| mapping.kind == Kind::Device);
        census.buffers = devices.map(|(_, mapping)| u64::from(mapping.frames)).sum();
        census.file -= census.buffers;
        let spaces = self.spaces.order.iter().flat_map(|space| &self.spaces.space(*space).regions);
        let tables = spaces.map(|region| self.spaces.region(*region)).map(|region| {
            (0..region.tables().len() as u32).filter(|at| region.table(*at).is_some()).count() as u64
        });
        census.tables = tables.sum();
        census
    }

    /// Pages that the programs have together, page tables included: what [`crate::Settings::group_pages`]
    /// limits.
    pub fn charged(&self) -> u64 {
        let regions = self.spaces.order.iter().flat_map(|space| &self.spaces.space(*space).regions);
        let tables: u64 = regions.map(|region| u64::from(self.spaces.region(*region).built)).sum();
        u64::from(self.frames.used()) + tables
    }

    /// Counts what pages and page tables have of each zone's frames.
    pub fn holdings(&self) -> Vec<Holdings> {
        let mut zones = vec![Holdings::default(); self.zones.len()];
        for frame in (0..self.frames.count()).map(Frame) {
            let flags = self.frames.flags(frame);
            if !flags.has(Flags::USED) {
                continue;
            }
            let of = &mut zones[self.zone_of(frame)];
            of.listed += u64::from(flags.has(Flags::LISTED));
            let owner = MappingId(self.frames.owner(frame));
            let is_device = || self.mappings.exists(owner) && self.mappings.get(owner).kind == Kind::Device;
            let kind = match () {
                () if flags.has(Flags::ANON) => &mut of.anon,
                () if flags.has(Flags::SWAPBACKED) => &mut of.tmpfs,
                () if is_device() => &mut of.buffers,
                () => &mut of.file,
            };
            *kind += 1;
        }
        for region in self.spaces.order.iter().flat_map(|space| &self.spaces.space(*space).regions) {
            let region = self.spaces.region(*region);
            for frame in (0..region.tables().len() as u32).filter_map(|at| region.table(at)) {
                zones[self.zone_of(frame)].tables += 1;
            }
        }
        zones
    }
}
