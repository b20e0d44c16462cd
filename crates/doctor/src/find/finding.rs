//! A finding: its kind, its caches, its bytes, its words.
//!
//! A finding is reported only if its bytes reach [`WORTH_PERCENT`] of the slab memory and [`WORTH_BYTES`], or
//! if it is about the trust in the numbers. The other thresholds are next to their findings. docs/doctor.md
//! lists all.
//!
//! [`WORTH_BYTES`]: crate::measure::WORTH_BYTES
//! [`WORTH_PERCENT`]: crate::measure::WORTH_PERCENT

use crate::measure::Line;
use schemars::JsonSchema;
use serde::Serialize;

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One cache has a large part of the memory.
    Dominates,
    /// Much of a cache is free objects.
    Fragmented,
    /// Much of a cache is behind the last objects of its slabs.
    Tail,
    /// Much of a cache is alignment and free pointers.
    Metadata,
    /// Debugging takes room.
    Debugging,
    /// CPUs park much.
    Parked,
    /// Large kmallocs, outside all caches.
    LargeKmalloc,
    /// meminfo and the caches do not agree, and it is not clear why.
    MeminfoGap,
    /// Nodes without memory.
    MemorylessNodes,
    /// Slabs got at the smallest order.
    Fallback,
    /// Orders that the page allocator has no block of.
    HighOrder,
    /// Much can be reclaimed.
    Reclaimable,
    /// Much of the machine's memory is slabs that cannot be reclaimed.
    Unreclaimable,
    /// A cache grows along a line.
    Leak,
    /// A cache grew, and there are not enough snapshots to say more.
    Growth,
    /// A cache grew that the kernel shrinks by itself.
    CacheGrowth,
    /// Removed cgroups that still hold memory.
    DyingCgroups,
    /// Merged caches: the kernel does not tell which of them holds the memory.
    Merged,
    /// The kernel estimated its counts.
    Approximated,
    /// The kernel counted while objects moved.
    Raced,
    /// Slabs of large pages, held by CPUs.
    BigPages,
    /// kmallocs got more than they asked for.
    Rounding,
    /// A message of the kernel: it could not get a slab.
    AllocFailed,
    /// A report of the OOM killer, or of an allocation of pages that failed.
    OutOfMemory,
    /// What holds the objects of a large cache.
    Holders,
    /// Directory entries, and how many of them the kernel can free.
    Dentries,
    /// The largest cache of a text cannot be reclaimed.
    Suspect,
    /// The largest cache of a text can be reclaimed.
    Benign,
    /// Caches with nearly the same number of objects.
    Together,
    /// Objects of a cache were damaged or lost.
    Corruption,
    /// A row of a table that could not be read.
    UnreadRow,
    /// Lines of code that allocate, and how much of it lives.
    CallSites,
    /// What the kernel keeps beside objects: whom they are charged to, which line of code allocated them.
    Accounting,
    /// Two kmalloc caches whose arrays of such words keep each other's slabs.
    PinningPair,
    /// Memory of the kernel that is no slabs grew.
    KernelMemory,
    /// Slabs that were read one by one.
    EachSlab,
}

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its kind.
    pub kind: Kind,
    /// The caches it is about, by name and ordinal; none if it is about the machine.
    pub caches: Vec<(String, u32)>,
    /// The bytes it is about: findings are sorted by it. 0 where the number is not of bytes.
    pub bytes: u64,
    /// The words.
    pub text: String,
}

impl Finding {
    /// A finding about these caches.
    pub(crate) fn of_caches(kind: Kind, lines: &[&Line], bytes: u64, text: String) -> Finding {
        let caches = lines.iter().map(|line| (line.cache.name.clone(), line.cache.ordinal)).collect();
        Finding { kind, caches, bytes, text }
    }

    /// A finding about the machine.
    pub(crate) fn of_machine(kind: Kind, bytes: u64, text: String) -> Finding {
        Finding { kind, caches: Vec::new(), bytes, text }
    }
}
