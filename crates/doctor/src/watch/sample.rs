//! One reading of slab memory: /proc/slabinfo and three lines of /proc/meminfo.

use crate::state::State;
use slablab_readers::procfs::Numbers;
use slablab_readers::slabinfo::SlabinfoRow;

/// Slab memory at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the first sample.
    pub at_s: f64,
    /// Caches in the order of the input.
    pub rows: Vec<Row>,
    /// /proc/meminfo's own figures, if it was there.
    pub memory: Option<Memory>,
}

/// One cache of a sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its line of /proc/slabinfo.
    pub info: SlabinfoRow,
    /// Bytes of its slabs.
    pub bytes: u64,
}

/// Slab memory as /proc/meminfo has it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// `Slab`: the caches and, since 5.9 or so, large kmallocs, which are in no cache.
    pub slab: u64,
    /// `SReclaimable`, 0 before 2.6.19.
    pub reclaimable: u64,
}

/// The header of slabtop: sums over the caches of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects in use, or parked with a CPU.
    pub active_objects: u64,
    /// Objects there is room for.
    pub objects: u64,
    /// Slabs with an object in use; under SLUB, all.
    pub active_slabs: u64,
    /// Slabs.
    pub slabs: u64,
    /// Caches with an active object.
    pub active_caches: u64,
    /// Caches.
    pub caches: u64,
    /// Bytes of the active objects with their padding.
    pub active_bytes: u64,
    /// Bytes of all objects with their padding: the slabs without their tails.
    pub object_bytes: u64,
    /// Bytes of the slabs.
    pub bytes: u64,
    /// Bytes of the smallest object of any cache.
    pub smallest: u64,
    /// Bytes of the largest object of any cache.
    pub largest: u64,
}

impl Row {
    /// A line of /proc/slabinfo on a machine with such pages.
    pub fn new(info: SlabinfoRow, page_size: u64) -> Row {
        let slab = info.pagesperslab.saturating_mul(page_size);
        Row { bytes: info.num_slabs.saturating_mul(slab), info }
    }

    /// Active objects in percent of all; `None` without objects. May exceed 100 by a little: the kernel reads
    /// both numbers while they change.
    pub fn use_percent(&self) -> Option<f64> {
        percent(self.info.active_objs, self.info.num_objs)
    }
}

/// `part` in percent of `whole`; `None` of nothing.
pub fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

impl Memory {
    /// From the lines of /proc/meminfo; `None` if they do not have `Slab`.
    pub fn of(meminfo: &Numbers) -> Option<Memory> {
        let bytes = |name: &str| meminfo.get(name).map(|kb| kb.saturating_mul(1024));
        Some(Memory { slab: bytes("Slab")?, reclaimable: bytes("SReclaimable").unwrap_or(0) })
    }
}

impl Sample {
    /// The sample of a machine's state. The rows are from its slabinfo, or from its sysfs if there is no
    /// slabinfo.
    pub fn of(state: &State, at_s: f64) -> Sample {
        let row = |info| Row::new(info, state.page_size);
        let rows = match &state.dump.slabinfo {
            Some(slabinfo) => slabinfo.rows.iter().cloned().map(row).collect(),
            None => state
                .caches
                .iter()
                .map(|cache| {
                    row(SlabinfoRow {
                        name: cache.name.clone(),
                        ordinal: cache.ordinal,
                        active_objs: cache.active_objects,
                        num_objs: cache.total_objects,
                        objsize: cache.size,
                        objperslab: cache.objects_per_slab,
                        pagesperslab: 1 << cache.order,
                        active_slabs: cache.slabs,
                        num_slabs: cache.slabs,
                        ..SlabinfoRow::default()
                    })
                })
                .collect(),
        };
        Sample { at_s, rows, memory: Memory::of(&state.dump.meminfo) }
    }

    /// Sums over the caches.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { smallest: u64::MAX, ..Totals::default() };
        for Row { info, bytes } in &self.rows {
            totals.active_objects += info.active_objs;
            totals.objects += info.num_objs;
            totals.active_slabs += info.active_slabs;
            totals.slabs += info.num_slabs;
            totals.active_caches += u64::from(info.active_objs > 0);
            totals.caches += 1;
            totals.active_bytes += info.active_objs * info.objsize;
            totals.object_bytes += info.num_objs * info.objsize;
            totals.bytes += bytes;
            totals.smallest = totals.smallest.min(info.objsize);
            totals.largest = totals.largest.max(info.objsize);
        }
        if self.rows.is_empty() {
            totals.smallest = 0;
        }
        totals
    }

    /// Bytes of slab memory: the kernel's figure if it was read, else the sum of the caches.
    pub fn slab_bytes(&self) -> u64 {
        self.memory.map_or_else(|| self.totals().bytes, |memory| memory.slab)
    }
}
