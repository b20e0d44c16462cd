//! Sizes: what a slab looks like, and how many objects are kept where (docs/theory/slab.md 2, 5.2 to 5.4).

use super::policy::{Management, SlabPolicy};
use crate::cache::{CACHE_LINE, CacheSpec, WORD, alignment};
use crate::order::slab::{Found, Orders, Shape};

/// How many objects an array holds, and how many move at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Objects a CPU's array holds.
    pub limit: u32,
    /// Objects that an array for another node's objects holds.
    pub alien: u32,
    /// Objects moved at once.
    pub batchcount: u32,
    /// Objects a node's shared array holds; 0 for none.
    pub shared: u32,
}

impl Tunables {
    /// The largest limit of a CPU's array in builds with debugging.
    pub const DEBUG_LIMIT: u32 = 32;

    /// By the bytes per object.
    pub(super) fn new(size: u32, page_shift: u32, cpus: u16, policy: &SlabPolicy) -> Tunables {
        let page = 1u32 << page_shift;
        let rule = match size {
            131_073.. => 1,
            _ if size > page => 8,
            1025.. => 24,
            257.. => 54,
            _ => 120,
        };
        let limit = policy.limit.unwrap_or(rule).min(policy.limit_max);
        let batchcount = policy.batchcount.unwrap_or(limit.div_ceil(2)).min(limit);
        let batches = policy.shared.unwrap_or(if size <= page && cpus > 1 { 8 } else { 0 });
        let alien = policy.alien_limit.unwrap_or(limit);
        Tunables { limit, alien, batchcount, shared: batches * batchcount }
    }
}

/// Where things are in a slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// log2 of its pages.
    pub(super) order: u8,
    /// Objects in it.
    pub(super) objects: u32,
    /// Bytes before the first object of a slab without colour: the list, where it is there.
    front: u32,
    /// Bytes of the list if it is an object of another cache; 0 if it is in the slab.
    pub(super) management: u32,
    /// Bytes between two colours.
    colour_offset: u32,
    /// How many colours there are.
    pub(super) colours: u16,
}

impl Layout {
    /// By the cache and its bytes per object, of the order that is known or else by the rule, which also stands in where no
    /// slab of the known order can be. `None` where no slab holds an object.
    pub(super) fn new(spec: &CacheSpec, size: u32, page_shift: u32, policy: &SlabPolicy) -> Option<Layout> {
        // A size known from a real kernel need not follow the rule of alignment.
        let align = if size.is_multiple_of(alignment(spec)) { alignment(spec) } else { WORD };
        // Who keeps contents over a free cannot lend an object to the list.
        let keeps_contents = spec.flags.constructor || spec.flags.typesafe_by_rcu;
        let spare = if keeps_contents { 0 } else { spec.object_size };
        let of = |orders: Orders| match policy.management {
            Management::Descriptor => Shape::with_descriptor(size, align, page_shift, orders),
            Management::Index => Shape::with_index(size, spare, page_shift, orders),
        };
        let known = spec.known_order.and_then(|order| of(Orders::known(order)));
        let rule = || of(Orders::of(spec.flags.reclaim_account, policy.max_order));
        let Found { shape: Shape { order, objects, tail, .. }, in_slab, beside } = known.or_else(rule)?;
        let colour_offset = CACHE_LINE.max(align);
        Some(Layout {
            order,
            objects: objects as u32,
            // The index is behind the objects.
            front: if policy.management == Management::Descriptor { in_slab as u32 } else { 0 },
            management: beside as u32,
            colour_offset,
            colours: (tail / colour_offset as u64).clamp(1, u16::MAX as u64) as u16,
        })
    }

    /// Where the first object of a slab with this colour is, bytes.
    #[inline]
    pub(super) fn first(&self, colour: u16) -> u32 {
        self.front + colour as u32 * self.colour_offset
    }
}
