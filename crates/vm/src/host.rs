//! The words of the conversation with the machine around the memory.

use crate::ids::{Frame, MappingId, Slot, SpaceId};

/// Work that takes CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// One page looked at on a list.
    Scan,
    /// One page table entry looked at through a frame.
    Rmap,
    /// One page table entry looked at by a walk.
    Walk,
    /// A page unmapped, taken from its mapping and freed.
    Reclaim,
    /// A page given to a device.
    Submit,
    /// A fault that needed no read.
    Fault,
    /// A page copied or filled with zeros.
    Copy,
}

/// What a page is allocated for: its flags and migrate type follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Anonymous memory: movable, may wait, starts I/O.
    Anon,
    /// A page of a file: movable.
    File,
    /// A page of a file that read-ahead brings: no reclaim on its behalf beyond a first attempt.
    ReadAhead,
    /// A page of tmpfs: movable.
    Tmpfs,
    /// A page for a read from swap.
    SwapIn,
    /// A page table.
    Table,
}

/// The page allocator asks for reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The node whose zones were tried first.
    pub node: u16,
    /// The highest zone of a node that the request can use.
    pub class: u8,
    /// The order of the wanted block.
    pub order: u8,
    /// The request may start I/O (`__GFP_IO`).
    pub io: bool,
    /// The request may enter file systems (`__GFP_FS`).
    pub fs: bool,
    /// The requesting task's address space, if it has one.
    pub space: Option<SpaceId>,
    /// The group of the programs has as many pages as it may have (`memory.max`): no page allocator asks.
    pub group: bool,
}

/// Where I/O goes to or comes from: frames that follow each other there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Swap, from this slot on.
    Swap(Slot),
    /// A mapping, from this page on.
    Mapping(MappingId, u32),
}

/// A read or a write of frames. They are locked (a read) or under writeback (a write) until the host calls
/// [`crate::Vm::read_done`] or [`crate::Vm::write_done`], which may be before the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io<'a> {
    /// Where the first frame's page is; the others follow.
    pub place: Place,
    /// The frames.
    pub frames: &'a [Frame],
    /// A write.
    pub write: bool,
    /// Somebody will wait for it at once.
    pub sync: bool,
    /// Reclaim asks for it.
    pub reclaim: bool,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The frame's lock.
    Locked,
    /// The end of the frame's write.
    Writeback,
}

/// Why a reclaimer sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// Queues of disks are congested (`congestion_wait`).
    Congestion,
    /// Pages under writeback come round again. Whoever sleeps goes on after 32 writes for each sleeper.
    Writeback,
    /// Nothing could be reclaimed.
    NoProgress,
    /// Too many pages are isolated.
    Isolated,
    /// Less than half of the reserve is free, until kswapd ends this by [`crate::Host::unthrottle`].
    Reserve,
    /// A writer has made too many pages dirty.
    Dirty,
}

/// What a shrinker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// Objects that it looked at.
    pub scanned: u64,
    /// Objects that it freed.
    pub freed: u64,
    /// Pages that came back, of slabs that are empty now.
    pub pages: u64,
}

/// A cache whose objects can be freed on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrinker {
    /// Its name.
    pub name: &'static str,
    /// What it costs to make an object anew, in seeks; usually 2. 0: none.
    pub seeks: u32,
    /// Objects of one call; usually 128.
    pub batch: u32,
}

/// The type of a pageblock, and of the list that its free blocks are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Pages that cannot be moved: slabs, page tables, stacks.
    Unmovable,
    /// Pages that can be freed on demand: caches of dentries and inodes.
    Reclaimable,
    /// Pages of this crate.
    Movable,
    /// Set aside for requests that may not wait.
    Reserved,
}

/// A watermark of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Below it only urgent requests are served.
    Min,
    /// Below it kswapd is woken.
    Low,
    /// Up to it kswapd reclaims.
    High,
}
