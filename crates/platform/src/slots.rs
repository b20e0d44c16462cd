//! The two per-CPU primitives.
//!
//! Each operation tests its conditions and commits with one store, so that a world can make it a restartable sequence.
//! What a slot holds between operations is plain data: [`HotList`] and [`HotArray`].

/// The condition under which a tagged list serves: `tag & mask == value`.
///
/// SLUB's tag is the CPU slab and its node: a free wants that slab, an allocation wants any slab or one of a node. SLQB
/// wants nothing of the tag and bounds the count instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Bits of the tag that matter.
    pub mask: u64,
    /// What they must be.
    pub value: u64,
}

impl Want {
    /// Any tag will do.
    pub const ANY: Want = Want { mask: 0, value: 0 };

    /// Whether `tag` satisfies the condition.
    #[inline]
    pub const fn met(self, tag: u64) -> bool {
        tag & self.mask == self.value
    }
}

/// A list of free objects linked through [`Platform::link`](crate::Platform::link), last in, first out.
///
/// `count` is packed with the head natively (48 and 16 bits), so it costs nothing and never exceeds [`HotList::COUNT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotList<Ptr> {
    /// The object popped next.
    pub head: Option<Ptr>,
    /// Objects on the list.
    pub count: u32,
    /// What the owner says about the list; `pop_if` and `push_if` test it.
    pub tag: u64,
}

impl<Ptr> HotList<Ptr> {
    /// Most objects a list may hold.
    pub const COUNT_MAX: u32 = u16::MAX as u32;
    /// No objects, tag 0.
    pub const EMPTY: HotList<Ptr> = HotList { head: None, count: 0, tag: 0 };
}

/// A bounded array of object addresses that lives in an object (a sheaf, an array cache) and is reached through the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotArray<Ptr> {
    /// The object that holds the array: words [`HotArray::HEADER`].. are addresses.
    pub storage: Option<Ptr>,
    /// Addresses in it.
    pub size: u32,
    /// Addresses it can hold; 0 without storage, so that `pop` and `push` need one test.
    pub capacity: u32,
}

impl<Ptr> HotArray<Ptr> {
    /// Words before the first address: a sheaf's header of 32 bytes (docs/theory/sheaves.md 1).
    pub const HEADER: u32 = 4;
    /// No storage: every `pop` and `push` fails.
    pub const NONE: HotArray<Ptr> = HotArray { storage: None, size: 0, capacity: 0 };
}
