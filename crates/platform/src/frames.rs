//! Page frames: their descriptors, and the addresses in them.
//!
//! A world keeps one [`Frame`] per page frame and finds it from the frame's number by arithmetic: the
//! kernel's memmap. The page allocator owns `state` always and `link` while a block is free; the engine that
//! allocated the block owns the other words until it frees the block.

use crate::{Field, NodeId, Pfn, Topology, Word};
use core::fmt::Debug;

/// Bytes of a block for each bit of its map ([`Frames::with_map`]).
pub const MAP_BYTES: u32 = 16;
/// Caches have lower numbers.
pub const NO_CACHE: u32 = 1 << 23;

/// Page frames, their descriptors, and the addresses in them.
pub trait Frames: Topology {
    /// An object's address: a non-zero number, natively the pointer's.
    type Ptr: Copy + Eq + Debug;
    /// A word that other CPUs may write at the same time.
    type Word: Word;
    /// A word that a lock or an owner protects. Worlds that check report an access without protection.
    type Field: Field;

    /// Calls `f` with the descriptor of a frame of some node ([`Topology::node_frames`]). The call is not
    /// suspended while `f` runs.
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> T) -> T;
    /// Calls `f` with a word of the map of the block that starts at `pfn`. The map has a bit for every
    /// [`MAP_BYTES`] bytes of the block; `index` counts its words. The block's owner gives the bits a
    /// meaning; when it gets the block, they may be anything. The call is not suspended while `f` runs.
    fn with_map<T>(pfn: Pfn, index: u32, f: impl FnOnce(&Self::Word) -> T) -> T;
    /// The address `offset` bytes into the block that starts at `pfn`.
    fn address(pfn: Pfn, offset: u64) -> Self::Ptr;
    /// The frame an address is in, and the offset in that frame.
    fn locate(object: Self::Ptr) -> (Pfn, u32);
    /// Makes the descriptors of `frames` frames from `first` on writable: of a largest block, whose first
    /// frame the page allocator is about to use. `false` without memory for descriptors: the zone then has no
    /// block beyond its frontier, for now.
    #[inline]
    fn commit_descriptors(_first: Pfn, _frames: u32) -> bool {
        true
    }
    /// Makes the memory of `frames` frames from `first` on readable and writable, before the page allocator
    /// hands them out. `false` without memory: the frames stay free, and the request fails.
    #[inline]
    fn commit_frames(_first: Pfn, _frames: u32) -> bool {
        true
    }
    /// Whether the memory of `frames` frames from `first` on was committed before. Then
    /// [`Frames::commit_frames`] needs none.
    #[inline]
    fn has_memory(_first: Pfn, _frames: u32) -> bool {
        true
    }
    /// Announces that the block at `pfn` holds objects of `size` bytes from now on: [`crate::Memory`] may
    /// reach them. `cache` is the number of the objects' cache, or one from [`NO_CACHE`] to 2^24 - 2 if they
    /// belong to several caches or to none: a world may keep it where it finds it from an address.
    fn map_slab(pfn: Pfn, order: u8, size: u32, cache: u32);
    /// Announces that the block at `pfn` holds no objects any more.
    fn unmap_slab(pfn: Pfn, order: u8);
}

/// A world's frame descriptor.
pub type Frame<P> = Descriptor<<P as Frames>::Word, <P as Frames>::Field>;

/// The descriptor of one page frame: six words. Generic over the words, not the world, so that a world that
/// wraps another world has that world's descriptors.
#[derive(Debug)]
pub struct Descriptor<W, F> {
    /// [`FrameState`], packed: read by every CPU, written by the block's owner or under `zone->lock`.
    pub state: W,
    /// An engine's racing state of a slab (head frame only).
    pub slab: W,
    /// Two frame numbers, next and previous on whatever list the block is: see [`Links`].
    pub link: F,
    /// The block's owner: an engine's own packing (cache, list).
    pub owner: F,
    /// A word of the block's owner.
    pub extra: F,
    /// The pageblock's migrate type, kept in its first frame, under `zone->lock`.
    pub block: F,
}

impl<W: Word, F: Field> Descriptor<W, F> {
    /// The descriptor of an untouched frame: all words 0.
    pub fn new() -> Self {
        Descriptor {
            state: W::new(0),
            slab: W::new(0),
            link: F::new(0),
            owner: F::new(0),
            extra: F::new(0),
            block: F::new(0),
        }
    }
}

impl<W: Word, F: Field> Descriptor<W, F> {
    /// The node the frame's memory is on, once the frame was allocated.
    pub fn node(&self) -> NodeId {
        FrameState::unpack(self.state.load()).node
    }
}

impl<W: Word, F: Field> Default for Descriptor<W, F> {
    fn default() -> Self {
        Self::new()
    }
}

/// What a frame is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// Never handed out: untouched memory, or no memory at all.
    Untouched = 0,
    /// Head of a free block on a buddy list.
    Buddy = 1,
    /// Head of a free block on a per-CPU page list.
    Pcp = 2,
    /// Head of an allocated block that is no slab.
    Allocated = 3,
    /// Head of a slab.
    Slab = 4,
    /// Head of a block that serves one large kmalloc.
    Large = 5,
    /// A later frame of a slab or a large kmalloc; `tail` says where the head is.
    Tail = 6,
    /// Inside a free or allocated block, not its head.
    Inside = 7,
}

impl FrameKind {
    const ALL: [FrameKind; 8] = [
        FrameKind::Untouched,
        FrameKind::Buddy,
        FrameKind::Pcp,
        FrameKind::Allocated,
        FrameKind::Slab,
        FrameKind::Large,
        FrameKind::Tail,
        FrameKind::Inside,
    ];
}

/// The packed state of a frame. Bits: kind 0-2, reserve 3, order 4-8, migrate type 9-11, zone 12-15, node
/// 16-31, tail 32-63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameState {
    /// What the frame is used for.
    pub kind: FrameKind,
    /// The block's order, in its head.
    pub order: u8,
    /// The block's migrate type, in its head.
    pub migrate_type: u8,
    /// The zone's index within its node.
    pub zone: u8,
    /// The node the frame's memory is on.
    pub node: NodeId,
    /// Frames back to the head (kind [`FrameKind::Tail`]).
    pub tail: u32,
    /// The block was allocated below all watermarks (`pfmemalloc`): only callers that free memory may use it.
    pub reserve: bool,
}

impl FrameState {
    /// The word for this state.
    #[inline]
    pub const fn pack(self) -> u64 {
        self.kind as u64
            | (self.reserve as u64) << 3
            | (self.order as u64) << 4
            | (self.migrate_type as u64) << 9
            | (self.zone as u64) << 12
            | (self.node.0 as u64) << 16
            | (self.tail as u64) << 32
    }

    /// The state in a word.
    #[inline]
    pub const fn unpack(word: u64) -> FrameState {
        FrameState {
            kind: FrameKind::ALL[(word & 7) as usize],
            order: (word >> 4 & 31) as u8,
            migrate_type: (word >> 9 & 7) as u8,
            zone: (word >> 12 & 15) as u8,
            node: NodeId((word >> 16) as u16),
            tail: (word >> 32) as u32,
            reserve: word >> 3 & 1 == 1,
        }
    }

    /// The head of the slab or large block that frame `pfn`, in this state, belongs to.
    #[inline]
    pub const fn head(self, pfn: Pfn) -> Pfn {
        Pfn(pfn.0 - self.tail)
    }
}

/// Two frame numbers in one word: a doubly linked list's next and previous. `NONE` ends a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// The frame after this one.
    pub next: Option<Pfn>,
    /// The frame before this one.
    pub prev: Option<Pfn>,
}

impl Links {
    const NONE: u32 = u32::MAX;

    /// The word for these links.
    #[inline]
    pub const fn pack(self) -> u64 {
        Self::half(self.next) as u64 | (Self::half(self.prev) as u64) << 32
    }

    /// The links in a word.
    #[inline]
    pub const fn unpack(word: u64) -> Links {
        Links { next: Self::whole(word as u32), prev: Self::whole((word >> 32) as u32) }
    }

    const fn half(pfn: Option<Pfn>) -> u32 {
        match pfn {
            Some(pfn) => pfn.0,
            None => Self::NONE,
        }
    }

    const fn whole(half: u32) -> Option<Pfn> {
        if half == Self::NONE { None } else { Some(Pfn(half)) }
    }
}
