//! Sizes: the layout of a slab and the capacities of the arrays (docs/theory/slab.md 2, 5.2 to 5.4).

use super::policy::{Limits, Management, SlabPolicy};
use crate::cache::{CACHE_LINE, CacheFlags, CacheSpec, WORD, alignment};
use crate::order::OBJECTS_MAX;
use crate::order::slab::{Found, Orders, Shape};

/// The capacities of the arrays, and the number of objects that move at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Capacity of a CPU's array, in objects; 0 for none.
    pub limit: u32,
    /// Capacity of an alien array, in objects.
    pub alien: u32,
    /// The number of objects moved at once.
    pub batchcount: u32,
    /// Capacity of a node's shared array, in objects; 0 for none.
    pub shared: u32,
}

impl Tunables {
    /// The largest limit of a CPU's array in builds with debugging.
    pub const DEBUG_LIMIT: u32 = 32;

    /// Chooses the values for objects of `size` bytes.
    pub(super) fn new(size: u32, page_shift: u32, cpus: u16, policy: &SlabPolicy) -> Tunables {
        let page = 1u32 << page_shift;
        let rule = match policy.limits {
            Limits::Smp if cpus == 1 || size > page => 0,
            Limits::Smp => match size {
                1025.. => 60,
                257.. => 124,
                _ => 252,
            },
            Limits::All => match size {
                131_073.. => 1,
                _ if size > page => 8,
                1025.. => 24,
                257.. => 54,
                _ => 120,
            },
        };
        let limit = policy.limit.unwrap_or(rule).min(policy.limit_max);
        let batchcount = policy.batchcount.unwrap_or(limit.div_ceil(2)).min(limit);
        let batches = policy.shared.unwrap_or(if size <= page && cpus > 1 { 8 } else { 0 });
        let alien = policy.alien_limit.unwrap_or(limit);
        Tunables { limit, alien, batchcount, shared: batches * batchcount }
    }
}

/// The layout of a slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The slab's order: log2 of its pages.
    pub(super) order: u8,
    /// Objects per slab.
    pub(super) objects: u32,
    /// Bytes before the first object at colour 0: the free list, if it is at the start of the slab.
    front: u32,
    /// Size in bytes of an off-slab free list; 0 if the list is in the slab.
    pub(super) management: u32,
    /// Bytes between two colours.
    colour_offset: u32,
    /// The number of colours.
    pub(super) colours: u16,
}

impl Layout {
    /// The layout for objects of `size` bytes. Uses the cache's known order if it has one; if no slab of that
    /// order can exist, or if the order is not known, the rule chooses it. `None` if no slab holds an object.
    pub(super) fn new(spec: &CacheSpec, size: u32, page_shift: u32, policy: &SlabPolicy) -> Option<Layout> {
        // The known size of a real kernel's cache need not be a multiple of the alignment.
        let align = if size.is_multiple_of(alignment(spec)) { alignment(spec) } else { WORD };
        // If objects must survive a free, a free object cannot hold the slab's list.
        let keeps_contents = spec.flags.keeps_contents();
        let spare = if keeps_contents { 0 } else { spec.object_size };
        let of = |orders: Orders| match policy.management {
            Management::Descriptor => Shape::with_descriptor(size, align, page_shift, orders),
            Management::Index => Shape::with_index(size, spare, page_shift, orders),
        };
        let counted = |found: &Found| found.shape.objects <= OBJECTS_MAX;
        let known = spec.known_order.and_then(|order| of(Orders::known(order))).filter(counted);
        let rule = || of(Orders::of(spec.flags.has(CacheFlags::RECLAIM_ACCOUNT), policy.max_order));
        let Found { shape: Shape { order, objects, tail, .. }, in_slab, off_slab_bytes } =
            known.or_else(rule).filter(counted)?;
        let colour_offset = CACHE_LINE.max(align);
        Some(Layout {
            order,
            objects: objects as u32,
            // The index lies after the objects.
            front: if policy.management == Management::Descriptor { in_slab as u32 } else { 0 },
            management: off_slab_bytes as u32,
            colour_offset,
            colours: (tail / colour_offset as u64).clamp(1, u16::MAX as u64) as u16,
        })
    }

    /// The offsets of all first objects, in bytes, are multiples of the lowest bit of this number. 0 if they
    /// start where the slab does.
    pub(super) fn first_step(&self) -> u32 {
        self.front | if self.colours > 1 { self.colour_offset } else { 0 }
    }

    /// The offset in bytes of the first object in a slab of this colour.
    #[inline]
    pub(super) fn first(&self, colour: u16) -> u32 {
        self.front + colour as u32 * self.colour_offset
    }
}
