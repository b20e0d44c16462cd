//! What a process records at the end of a phase.

use crate::memory::Memory;
use crate::memory::views::{SlabRow, Snapshot};
use slablab_vm::mappings::Entry;
use slablab_vm::{MappingId, RegionId};

/// What one process recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The process's name; empty for the main one.
    pub process: String,
    /// Its phases in the order in which they ended.
    pub phases: Vec<Phase>,
    /// Whether it came to the end of its script; a process that was killed did not.
    pub is_complete: bool,
}

/// One phase. Counts are of this phase alone unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// The label.
    pub label: String,
    /// From its begin to its end.
    pub elapsed_ns: u64,
    /// The clock at its end.
    pub uptime_ns: u64,
    /// Faults and blocks of the process.
    pub usage: Usage,
    /// The process's CPU time in the program itself.
    pub user_ns: u64,
    /// Messages, pipes and lookups that succeeded, those that failed, lookups.
    pub counts: [u64; 3],
    /// The objects that were accessed.
    pub objects: Vec<ObjectUse>,
    /// Where the pages of each object are at the end.
    pub residency: Vec<(String, Pages)>,
    /// /proc/slabinfo at the end, where the script says `recslab 1`.
    pub slabs: Option<Vec<SlabRow>>,
    /// The fragmentation index of each order at the end, of each zone, where the script says `recfrag 1`.
    pub fragmentation: Option<Vec<(&'static str, Vec<i32>)>>,
    /// The whole machine at the begin.
    pub begin: Snapshot,
    /// The whole machine at the end.
    pub end: Snapshot,
}

impl Phase {
    /// The difference of a counter of /proc/vmstat; 0 for an unknown name.
    pub fn delta(&self, counter: &str) -> u64 {
        let of = |snapshot: &Snapshot| {
            snapshot.vmstat.iter().find(|(name, _)| *name == counter).map_or(0, |(_, value)| *value)
        };
        of(&self.end) - of(&self.begin)
    }
}

/// Faults, and blocks of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Faults without a read.
    pub minor: u64,
    /// Faults that waited for a read.
    pub major: u64,
    /// Blocks that the process had read: by system calls, faults, read-ahead.
    pub read: u64,
    /// Blocks that it had written.
    pub written: u64,
}

impl Usage {
    /// What was added since `before`.
    pub(super) fn since(self, before: Usage) -> Usage {
        Usage {
            minor: self.minor - before.minor,
            major: self.major - before.major,
            read: self.read - before.read,
            written: self.written - before.written,
        }
    }

    pub(super) fn add(&mut self, more: Usage) {
        self.minor += more.minor;
        self.major += more.major;
        self.read += more.read;
        self.written += more.written;
    }
}

/// What happened while one object was accessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectUse {
    /// The object.
    pub name: String,
    /// Accesses.
    pub accesses: u64,
    /// Faults and blocks meanwhile.
    pub usage: Usage,
    /// Time.
    pub ns: u64,
}

/// The pages of an object, one after the other: 0 absent, 1 present, 2 swapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pages(pub Vec<u8>);

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;
const SWAPPED: u8 = 2;

impl Pages {
    /// Anonymous memory, by the process's page table: a page that is only in the swap cache counts as
    /// swapped.
    pub(super) fn of_region(memory: &Memory, region: RegionId) -> Pages {
        memory.vm.with(|state| {
            let region = state.spaces.region(region);
            let of = |page: u32| {
                let pte = region.pte(page);
                if pte.slot().is_some() {
                    SWAPPED
                } else if pte == slablab_vm::Pte::NONE {
                    ABSENT
                } else {
                    PRESENT
                }
            };
            Pages((0..region.pages()).map(of).collect())
        })
    }

    /// A file: what is in the page cache, mapped or not, or, of tmpfs, in the swap cache (`mincore`).
    pub(super) fn of_mapping(memory: &Memory, mapping: MappingId, pages: u32) -> Pages {
        memory.vm.with(|state| {
            let mapping = state.mappings.get(mapping);
            let of = |page: u32| match mapping.entry(page) {
                Entry::Frame(_) => PRESENT,
                Entry::Slot(slot) if state.swap.cached(slot).frame().is_some() => PRESENT,
                _ => ABSENT,
            };
            Pages((0..pages).map(of).collect())
        })
    }

    /// How many pages are absent, present, swapped.
    pub fn counts(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        self.0.iter().for_each(|state| counts[usize::from(*state)] += 1);
        counts
    }
}
