//! The slabs of SLAB, 2.6.32 and 6.1 (docs/theory/slab.md 5.2 and 5.3).
//!
//! SLAB has a descriptor and one number per object for each slab. They are in the slab, before the objects;
//! for objects of at least an eighth of a page they are in an object of another cache. So the search that
//! finds the order also finds the number of objects; a division does not give it.
//!
//! Unlike SLUB's rules, this rule does not use the number of CPUs, and 2.6.32 has no boot parameter for it.

use super::MAX_ORDER;

/// Bytes of a slab's descriptor on 64-bit machines: 16 + 8 + 8 + 4 + 4 + 2, padded (docs/theory/slab.md 1).
const DESCRIPTOR: u64 = 48;
/// Bytes of one object's number (`kmem_bufctl_t`).
const BUFCTL: u64 = 4;
/// `slab_break_gfp_order` on machines with more than 32 MB: from this order on, any waste is accepted.
pub(super) const BREAK_ORDER: u8 = 1;
/// Most objects that a number of one byte can identify.
const INDEX_BYTE_MAX: u64 = 256;
/// log2 of the largest kmalloc, and so of the largest slab: 32 MB.
const LARGEST_SHIFT: u32 = 25;

/// The shape of a SLAB slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The order: log2 of its pages.
    pub order: u8,
    /// Objects per slab.
    pub objects: u64,
    /// Bytes that are neither objects nor the free list.
    pub tail: u64,
    /// Whether the rule intended an off-slab free list when it chose the order. The list moves into the slab
    /// if `tail` has room for it.
    pub off_slab: bool,
}

/// A slab's shape and the place of its free list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The shape. Its `tail` does not include the list.
    pub shape: Shape,
    /// Bytes of the list, if it is in the slab.
    pub in_slab: u64,
    /// Bytes of the list, if it is an object of another cache.
    pub off_slab_bytes: u64,
}

/// The orders that a search tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// The lowest order.
    pub from: u8,
    /// From this order on, any waste is accepted.
    pub enough: u8,
}

impl Orders {
    /// The orders of the rule: up to `max_order` (`slab_max_order`). A slab that a shrinker can free gets the
    /// smallest order that holds an object.
    pub const fn of(reclaimable: bool, max_order: u8) -> Orders {
        Orders { from: 0, enough: if reclaimable { 0 } else { max_order } }
    }

    /// A known order, or the next larger one that holds an object.
    pub const fn known(order: u8) -> Orders {
        Orders { from: order, enough: 0 }
    }

    fn all(self, page_shift: u32) -> core::ops::RangeInclusive<u8> {
        self.from..=(LARGEST_SHIFT - page_shift).min(MAX_ORDER as u32) as u8
    }

    fn takes(self, order: u8, tail: u64, bytes: u64) -> bool {
        order >= self.enough || tail * 8 <= bytes
    }
}

impl Shape {
    /// The slab of a cache with `size` bytes per object before alignment; `align` is a power of two. A
    /// `reclaimable` slab, which a shrinker can free, is as small as possible. `None` if no slab holds an
    /// object.
    pub fn of(size: u32, align: u32, page_shift: u32, reclaimable: bool) -> Option<Shape> {
        Shape::search(size, align, page_shift, Orders::of(reclaimable, BREAK_ORDER))
    }

    /// The slab and the place of its free list for the orders in `orders`, with a descriptor (until 3.12).
    pub fn with_descriptor(size: u32, align: u32, page_shift: u32, orders: Orders) -> Option<Found> {
        let shape = Shape::search(size, align, page_shift, orders)?;
        let list = (DESCRIPTOR + shape.objects * BUFCTL).next_multiple_of(align.max(1) as u64);
        Some(if shape.off_slab {
            shape.place(list)
        } else {
            Found { shape, in_slab: list, off_slab_bytes: 0 }
        })
    }

    /// The slab and the place of its free list since 3.13: one byte per object, or two if one byte cannot
    /// count the objects, and no descriptor. `spare` bytes of a free object may hold the list; 0 means none
    /// (4.6 and later). Orders and counts are those of a real 6.1.
    pub fn with_index(size: u32, spare: u32, page_shift: u32, orders: Orders) -> Option<Found> {
        let size = size.max(1) as u64;
        let index = |bytes: u64| if bytes / size <= INDEX_BYTE_MAX { 1 } else { 2 };
        let search = |in_slab: bool| {
            let off_slab = size >= (1 << page_shift) / 8;
            let at = |order: u8| {
                let bytes = 1u64 << (page_shift + order as u32);
                let each = size + if in_slab { index(bytes) } else { 0 };
                let objects = bytes / each;
                let tail = bytes - objects * each;
                (objects > 0).then_some((Shape { order, objects, tail, off_slab }, bytes))
            };
            let mut last = None;
            for (shape, bytes) in orders.all(page_shift).filter_map(at) {
                last = Some((shape, shape.objects * index(bytes)));
                if orders.takes(shape.order, shape.tail, bytes) {
                    break;
                }
            }
            last
        };
        let (without, list) = search(false)?;
        if list <= spare as u64 {
            return Some(Found { shape: without, in_slab: 0, off_slab_bytes: 0 });
        }
        if without.off_slab {
            return Some(without.place(list));
        }
        let (shape, list) = search(true)?;
        Some(Found { shape, in_slab: list, off_slab_bytes: 0 })
    }

    /// Places a list that was intended off-slab: in the slab if `tail` has room, else in another cache's
    /// object.
    fn place(self, list: u64) -> Found {
        if self.tail < list {
            return Found { shape: self, in_slab: 0, off_slab_bytes: list };
        }
        Found { shape: Shape { tail: self.tail - list, ..self }, in_slab: list, off_slab_bytes: 0 }
    }

    fn search(size: u32, align: u32, page_shift: u32, orders: Orders) -> Option<Shape> {
        let align = align.max(1) as u64;
        let size = (size.max(1) as u64).next_multiple_of(align);
        let off_slab = size >= (1 << page_shift) / 8;
        let list = |objects: u64| (DESCRIPTOR + objects * BUFCTL).next_multiple_of(align);
        let mut best = None;
        for order in orders.all(page_shift) {
            let bytes = 1u64 << (page_shift + order as u32);
            let (objects, tail) = if off_slab {
                (bytes / size, bytes % size)
            } else {
                let mut objects = (bytes - DESCRIPTOR) / (size + BUFCTL);
                if objects > 0 && list(objects) + objects * size > bytes {
                    objects -= 1;
                }
                (objects, bytes.saturating_sub(objects * size + list(objects)))
            };
            if objects == 0 {
                continue;
            }
            // If the list were larger than the objects of its slab, it would itself need an off-slab list.
            if off_slab && objects > size.saturating_sub(DESCRIPTOR) / BUFCTL {
                break;
            }
            best = Some(Shape { order, objects, tail, off_slab });
            if orders.takes(order, tail, bytes) {
                break;
            }
        }
        best
    }
}
