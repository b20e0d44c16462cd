//! A cache's specification, and the layout of its objects and slabs that follows from it.
//!
//! Layout and merge rules: docs/theory/slub.md 7 and 9.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// A cache's number, below [`NO_CACHE`](slablab_platform::NO_CACHE). The creator of the cache chooses it, and
/// each slab's frame contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheId(pub u32);

/// A set of flags of a cache. The names are those of the kernel's `SLAB_*`, where it has one.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheFlags(u16);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl CacheFlags {
            $($(#[$doc])* pub const $name: CacheFlags = CacheFlags(1 << $bit);)*
            /// Every single flag with its name.
            const NAMES: &'static [(CacheFlags, &'static str)] =
                &[$((CacheFlags::$name, stringify!($name)),)*];
        }
    };
}

flags! {
    /// Align to the cache line (`SLAB_HWCACHE_ALIGN`).
    HWCACHE_ALIGN = 0;
    /// Pages are reclaimable (`SLAB_RECLAIM_ACCOUNT`).
    RECLAIM_ACCOUNT = 1;
    /// Pages must be below 16 MiB (`SLAB_CACHE_DMA`).
    DMA = 2;
    /// A slab's pages are returned only after a grace period (`SLAB_TYPESAFE_BY_RCU`, `SLAB_DESTROY_BY_RCU`).
    TYPESAFE_BY_RCU = 3;
    /// Objects are charged to a memory cgroup (`SLAB_ACCOUNT`).
    ACCOUNT = 4;
    /// Never merged: `SLAB_NO_MERGE`, the two caches that are created before all others, and caches with a
    /// region that may be copied to user space (`usersize` in sysfs; no such cache is merged in any dump).
    NO_MERGE = 5;
    /// The objects have a constructor; their contents survive a free.
    CONSTRUCTOR = 6;
    /// The object's last word may hold the link although contents survive a free. A caller that sets the
    /// link's place (`use_freeptr_offset`, docs/theory/slub.md 7; measured on 6.18) needs no space after the
    /// object.
    LINK_INSIDE = 7;
    /// A kmalloc class: requests have a size ([`crate::Engine::alloc_sized`]).
    KMALLOC = 8;
    /// Never has sheaves: `kmem_cache` and `kmem_cache_node`, which exist before sheaves can, and
    /// `SLAB_NOLEAKTRACE`.
    NO_SHEAVES = 9;
}

impl CacheFlags {
    /// No flags: a cache of plain objects.
    pub const NONE: CacheFlags = CacheFlags(0);

    /// True if every flag of `other` is set.
    #[inline]
    pub const fn has(self, other: CacheFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags, with each flag of `other` set if `is_set`, else cleared.
    #[must_use]
    pub const fn with(self, other: CacheFlags, is_set: bool) -> CacheFlags {
        CacheFlags(if is_set { self.0 | other.0 } else { self.0 & !other.0 })
    }

    /// The flags that are in both sets.
    pub const fn and(self, other: CacheFlags) -> CacheFlags {
        CacheFlags(self.0 & other.0)
    }

    /// Whether an object's contents survive a free: a constructor made them, or readers may still read them.
    /// The link of a free object must not overwrite them.
    pub const fn keeps_contents(self) -> bool {
        self.0 & (CacheFlags::CONSTRUCTOR.0 | CacheFlags::TYPESAFE_BY_RCU.0) != 0
    }
}

impl BitOr for CacheFlags {
    type Output = CacheFlags;

    fn bitor(self, other: CacheFlags) -> CacheFlags {
        CacheFlags(self.0 | other.0)
    }
}

impl BitOrAssign for CacheFlags {
    fn bitor_assign(&mut self, other: CacheFlags) {
        self.0 |= other.0;
    }
}

/// The names of the flags, as a set.
impl fmt::Debug for CacheFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = Self::NAMES.iter().filter(|(flag, _)| self.has(*flag));
        f.debug_set().entries(set.map(|(_, name)| name)).finish()
    }
}

/// A cache's specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Requested bytes per object, at least 1.
    pub object_size: u32,
    /// Bytes of alignment, a power of two; 0 for a word.
    pub align: u32,
    /// Further requirements.
    pub flags: CacheFlags,
    /// Bytes per object, including metadata and padding, if known from a real kernel; 0 computes it.
    pub known_size: u32,
    /// The order of the cache's slabs, if it replaces the engine's rule.
    pub known_order: Option<u8>,
    /// The layout of each object's slot, if a debugging wrapper determines it; `None` computes it.
    pub slot: Option<SlotLayout>,
    /// The least number of objects in a sheaf, for caches that request sheaves; 0 for other caches.
    pub sheaf_capacity: u32,
}

impl CacheSpec {
    /// A cache of plain objects.
    pub const fn of_size(object_size: u32) -> CacheSpec {
        CacheSpec {
            object_size,
            align: 0,
            flags: CacheFlags::NONE,
            known_size: 0,
            known_order: None,
            slot: None,
            sheaf_capacity: 0,
        }
    }

    /// Whether a layout can be computed: no size is above [`LARGEST_BLOCK`], which no object can exceed.
    pub fn is_possible(&self) -> bool {
        let slot = self.slot.map_or(0, |slot| slot.size);
        self.object_size.max(self.known_size).max(self.align).max(slot) <= LARGEST_BLOCK
    }

    /// This cache on a machine with cache lines of `cache_line` bytes, such as 128 on ppc64. The alignment of
    /// [`CacheFlags::HWCACHE_ALIGN`] becomes a requirement of the caller, which [`alignment`] never lowers.
    pub fn on_line(self, cache_line: u32) -> CacheSpec {
        CacheSpec { align: alignment_on(&self, cache_line), ..self }
    }
}

/// Bytes of the largest block that a page allocator of Linux ever had: order 13 of 64K pages.
pub const LARGEST_BLOCK: u32 = 512 << 20;
/// Bytes of a machine word on all supported targets.
pub const WORD: u32 = 8;
/// Bytes of a cache line for [`CacheFlags::HWCACHE_ALIGN`], unless [`CacheSpec::on_line`] sets another size.
pub const CACHE_LINE: u32 = 64;

/// The place of the link in a free object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPlace {
    /// At the object's start (until 5.6, and SLQB).
    Start,
    /// Near the middle (since 5.7).
    Middle,
}

/// The slot of one object in a cache whose objects have red zones and records around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLayout {
    /// Bytes from one slot to the next.
    pub size: u32,
    /// Bytes from the slot's start to the object (`red_left_pad`).
    pub left: u32,
    /// Bytes from the slot's start to the link of a free object.
    pub link: u32,
}

/// The layout of a cache's slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The bytes that a caller may use.
    pub object_size: u32,
    /// Bytes from one object to the next.
    pub size: u32,
    /// Bytes from the start of one object to the next slot, for
    /// [`Frames::map_slab`](slablab_platform::Frames::map_slab): less than `size` if a zone lies before
    /// objects.
    pub spacing: u32,
    /// The offset of the link in a free object, in bytes.
    pub link_offset: u32,
    /// The order that is tried first.
    pub order: u8,
    /// Objects in a slab of the order `order`.
    pub objects: u32,
    /// The order that is tried if memory is low.
    pub min_order: u8,
    /// Objects in a slab of the order `min_order`.
    pub min_objects: u32,
}

impl Geometry {
    /// The alignment of all objects in bytes, a power of two, if the first object of each slab starts at a
    /// multiple of `first` bytes; 0: at the slab's start.
    pub const fn object_align(&self, first: u32) -> u32 {
        common_align(self.size, first)
    }

    /// Bytes of a slab that no object can use.
    pub fn tail(&self, page_shift: u32) -> u32 {
        ((1u64 << (page_shift + self.order as u32)) - self.objects as u64 * self.size as u64) as u32
    }
}

/// The largest power of two that divides both numbers; one of them is not 0.
pub(crate) const fn common_align(one: u32, other: u32) -> u32 {
    1 << (one | other).trailing_zeros()
}

/// Ends the creation of a cache that has no layout ([`crate::Engine::layout`]).
#[cold]
pub(crate) fn no_layout(spec: &CacheSpec) -> ! {
    panic!("no layout: an object of {} bytes fits no slab", spec.object_size.max(spec.known_size))
}

/// Bytes from one object to the next, and the link's offset in a free object. Sizes above [`LARGEST_BLOCK`]
/// count as one byte more than that: no slab holds such an object, whatever its size.
pub fn layout(spec: &CacheSpec, place: LinkPlace) -> (u32, u32) {
    if !spec.is_possible() {
        return (LARGEST_BLOCK + WORD, 0);
    }
    if let Some(slot) = &spec.slot {
        return (slot.size, slot.link);
    }
    let object = spec.object_size.max(1).next_multiple_of(WORD);
    // Contents that survive a free leave no space inside the object, so the link follows the object.
    let survives = spec.flags.keeps_contents();
    let (end, link) = match (survives, place) {
        (true, _) if spec.flags.has(CacheFlags::LINK_INSIDE) => (object, object - WORD),
        (true, _) => (object + WORD, object),
        (false, LinkPlace::Start) => (object, 0),
        (false, LinkPlace::Middle) => (object, spec.object_size / 2 / WORD * WORD),
    };
    let size = match spec.known_size {
        0 => end.next_multiple_of(alignment(spec)),
        // A kernel with SLOB reports sizes that are no multiple of a word. The objects of other engines are
        // multiples.
        known => known.next_multiple_of(WORD),
    };
    (size, link.min(size - WORD))
}

/// Bytes between any two addresses in use: starts of slots, and starts of objects after their left red zones.
pub fn spacing(spec: &CacheSpec, size: u32) -> u32 {
    size - spec.slot.map_or(0, |slot| slot.left)
}

/// The alignment of objects: the caller's, but at least a word. With [`CacheFlags::HWCACHE_ALIGN`], a cache
/// line, halved while two objects fit into it.
pub fn alignment(spec: &CacheSpec) -> u32 {
    alignment_on(spec, CACHE_LINE)
}

/// The alignment of objects, as [`alignment`], on a machine whose cache lines have `cache_line` bytes.
pub fn alignment_on(spec: &CacheSpec, cache_line: u32) -> u32 {
    let mut align = spec.align.clamp(WORD, LARGEST_BLOCK);
    if spec.flags.has(CacheFlags::HWCACHE_ALIGN) {
        let mut line = cache_line;
        while spec.object_size.max(1) <= line / 2 {
            line /= 2;
        }
        align = align.max(line);
    }
    align.next_multiple_of(WORD)
}

/// Whether a new cache may share an existing one's slabs (docs/theory/slub.md 9).
///
/// `candidate_size` is the existing cache's size per object.
pub fn mergeable(new: &CacheSpec, candidate: &CacheSpec, candidate_size: u32) -> bool {
    let never = |spec: &CacheSpec| {
        spec.flags.keeps_contents() || spec.flags.has(CacheFlags::NO_MERGE) || spec.sheaf_capacity > 0
    };
    let shared = CacheFlags::DMA | CacheFlags::RECLAIM_ACCOUNT | CacheFlags::ACCOUNT;
    let align = alignment(new);
    let size = new.object_size.min(LARGEST_BLOCK).next_multiple_of(WORD).next_multiple_of(align);
    new.is_possible()
        && !never(new)
        && !never(candidate)
        && new.flags.and(shared) == candidate.flags.and(shared)
        && size <= candidate_size
        && candidate_size.is_multiple_of(align)
        && candidate_size - size < WORD
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn flags_are_a_set() {
        let flags = CacheFlags::DMA | CacheFlags::NO_MERGE;
        assert!(flags.has(CacheFlags::DMA) && flags.has(flags) && flags.has(CacheFlags::NONE));
        assert!(!flags.has(CacheFlags::DMA | CacheFlags::ACCOUNT), "one of two is not both");
        assert_eq!(flags.with(CacheFlags::DMA, false), CacheFlags::NO_MERGE);
        assert_eq!(flags.with(CacheFlags::ACCOUNT, true).and(CacheFlags::ACCOUNT), CacheFlags::ACCOUNT);
        assert!(!flags.keeps_contents());
        assert!(CacheFlags::TYPESAFE_BY_RCU.keeps_contents() && CacheFlags::CONSTRUCTOR.keeps_contents());
        assert_eq!(format!("{flags:?}"), r#"{"DMA", "NO_MERGE"}"#);
        let all = CacheFlags::NAMES.iter().fold(CacheFlags::NONE, |all, (flag, _)| all | *flag);
        assert_eq!(all.0.count_ones() as usize, CacheFlags::NAMES.len(), "each flag has a bit of its own");
    }
}
