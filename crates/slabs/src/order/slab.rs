//! The slabs of SLAB, 2.6.32 (reference/slab.md 5.2 and 5.3).
//!
//! SLAB keeps a descriptor and one number per object for each slab: in the slab, before the objects, or, for objects of an
//! eighth of a page and more, in an object of another cache. So how many objects a slab holds follows from the order as the
//! search found it, not from a division.
//!
//! Unlike SLUB's rules this one knows no CPUs, and no boot parameter of 2.6.32 moves it.

use super::MAX_ORDER;

/// Bytes of a slab's descriptor on 64-bit machines: 16 + 8 + 8 + 4 + 4 + 2, padded (slab.md, closed question).
const DESCRIPTOR: u64 = 48;
/// Bytes of one object's number (`kmem_bufctl_t`).
const BUFCTL: u64 = 4;
/// `slab_break_gfp_order` on machines with more than 32 MB: from this order on any waste is taken.
const BREAK_ORDER: u8 = 1;
/// log2 of the largest kmalloc, hence slab: 32 MB.
const LARGEST_SHIFT: u32 = 25;

/// A slab of SLAB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// log2 of its pages.
    pub order: u8,
    /// Objects in it.
    pub objects: u64,
    /// Bytes in it that are neither an object nor the list.
    pub tail: u64,
    /// Whether the list was meant for another cache when the order was chosen. It moves into the slab where `tail` has room.
    pub off_slab: bool,
}

impl Shape {
    /// The slab of a cache: `size` bytes per object before alignment, `align` a power of two. Slabs that a shrinker can free
    /// (`reclaimable`) are as small as can be. `None` where no slab holds an object.
    pub fn of(size: u32, align: u32, page_shift: u32, reclaimable: bool) -> Option<Shape> {
        let align = align as u64;
        let size = (size as u64).next_multiple_of(align);
        let off_slab = size >= (1 << page_shift) / 8;
        let list = |objects: u64| (DESCRIPTOR + objects * BUFCTL).next_multiple_of(align);
        let largest = (LARGEST_SHIFT - page_shift).min(MAX_ORDER as u32) as u8;
        let mut best = None;
        for order in 0..=largest {
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
            // A list larger than the objects it is for would need a list of its own kind.
            if off_slab && objects > size.saturating_sub(DESCRIPTOR) / BUFCTL {
                break;
            }
            best = Some(Shape { order, objects, tail, off_slab });
            if reclaimable || order >= BREAK_ORDER || tail * 8 <= bytes {
                break;
            }
        }
        best
    }
}
