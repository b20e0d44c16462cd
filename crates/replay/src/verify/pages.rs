//! Slabs that the kernel took and gave back while it was recorded, as its page events show them.
//!
//! A block of pages was made a slab when an object is allocated in it; a freed block was a slab when an
//! object was seen in it. Nothing of the start matters to this, unlike to the change of slab memory: the two
//! are wrong in different ways.

use crate::recorded::Snapshots;
use crate::replay::outcome::Outcome;
use rustc_hash::{FxHashMap, FxHashSet};
use slablab_report::error::{At, Result};
use slablab_trace::{Batch, Columns, EventKind, NONE, Reader, flags};
use std::path::Path;

/// Slabs by order: taken and returned.
pub(super) type ByOrder = [(u64, u64); 11];

/// Slabs taken and returned, real and predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabPages {
    /// What the kernel did.
    pub real: ByOrder,
    /// What the engine would have done.
    pub predicted: ByOrder,
    /// What the recording's own balance would make: whole slabs for what it allocates more than it frees.
    pub balance: ByOrder,
}

impl SlabPages {
    /// Compares a recording, between its snapshots if it has them, with what an engine made of it; `None`
    /// where the recording does not tell which object is in which page.
    ///
    /// # Errors
    /// A trace that cannot be read.
    pub fn of(
        recording: (&Reader, &Path),
        outcome: &Outcome,
        balance: ByOrder,
        snapshots: Option<&Snapshots>,
    ) -> Result<Option<SlabPages>> {
        let real = recorded(recording, snapshots)?;
        Ok(real.map(|real| SlabPages { real, predicted: outcome.slabs_by_order(), balance }))
    }

    /// By how many pages the prediction is off in all orders, both ways, in percent of the pages that really
    /// moved.
    pub fn error_percent(&self) -> f64 {
        self.off_by(&self.predicted)
    }

    /// The same of the recording's own balance in whole slabs.
    pub fn balance_error_percent(&self) -> f64 {
        self.off_by(&self.balance)
    }

    fn off_by(&self, model: &ByOrder) -> f64 {
        let (mut moved, mut off) = (0u64, 0u64);
        for (order, (real, predicted)) in self.real.iter().zip(model).enumerate() {
            moved += (real.0 + real.1) << order;
            off += (real.0.abs_diff(predicted.0) + real.1.abs_diff(predicted.1)) << order;
        }
        100.0 * off as f64 / moved.max(1) as f64
    }

    /// A sentence with the numbers.
    pub fn sentence(&self) -> String {
        let taken = |of: &ByOrder| of.iter().map(|both| both.0).sum::<u64>();
        let returned = |of: &ByOrder| of.iter().map(|both| both.1).sum::<u64>();
        format!(
            "in the recording {} slabs were taken, predicted {}, and {} returned, predicted {}: off by \
             {:.1} % of the pages (\"nothing changes\": 100 %; the recording's own balance in whole slabs: \
             {:.1} %)",
            taken(&self.real),
            taken(&self.predicted),
            returned(&self.real),
            returned(&self.predicted),
            self.error_percent(),
            self.balance_error_percent()
        )
    }
}

/// What is known of page frames at a row.
#[derive(Default)]
struct Frames {
    /// Frames of blocks in which no object was seen yet, with the block's first.
    fresh: FxHashMap<u64, u64>,
    /// Orders of those blocks, by their first frame.
    orders: FxHashMap<u64, u8>,
    /// Frames in which objects were seen.
    slabs: FxHashSet<u64>,
    by_order: ByOrder,
    /// Whether what happens now counts.
    counts: bool,
}

/// The largest order that is counted.
const ORDER_MAX: i8 = 10;

impl Frames {
    fn page(&mut self, event: EventKind, first: u64, order: i8) {
        let order = order.clamp(0, ORDER_MAX) as u8;
        let mut held_objects = false;
        for frame in first..first.saturating_add(1 << order) {
            held_objects |= self.slabs.remove(&frame);
            self.fresh.remove(&frame);
            if event == EventKind::PageAlloc {
                self.fresh.insert(frame, first);
            }
        }
        self.orders.remove(&first);
        if event == EventKind::PageAlloc {
            self.orders.insert(first, order);
        } else if held_objects {
            self.by_order[order as usize].1 += u64::from(self.counts);
        }
    }

    fn object(&mut self, frame: u64) {
        self.slabs.insert(frame);
        let Some(first) = self.fresh.get(&frame).copied() else { return };
        let Some(order) = self.orders.remove(&first) else { return };
        for frame in first..first + (1 << order) {
            self.fresh.remove(&frame);
        }
        self.by_order[order as usize].0 += u64::from(self.counts);
    }
}

fn recorded((reader, path): (&Reader, &Path), snapshots: Option<&Snapshots>) -> Result<Option<ByOrder>> {
    let metadata = reader.metadata();
    let within_ns = snapshots.map_or(0..u64::MAX, Snapshots::times_ns);
    let read_map = snapshots.map(|snapshots| snapshots.start.linear_map);
    let found_map = metadata.import.as_ref().and_then(|import| import.linear_map);
    let Some(linear_map) = read_map.or(found_map) else {
        return Ok(None);
    };
    let page_shift = metadata.page_size_bytes.unwrap_or(4096).max(1).ilog2();
    let columns = Columns::REPLAY | Columns::ADDRESS | Columns::PFN | Columns::ORDER;
    let (mut frames, mut batch) = (Frames::default(), Batch::default());
    let mut batches = reader.batches(columns);
    while batches.next(&mut batch).at(path)? {
        for row in 0..batch.len() {
            let Some(event) = EventKind::from_u8(batch.event[row]) else { continue };
            frames.counts = within_ns.contains(&batch.time_ns[row]);
            match event {
                EventKind::PageAlloc | EventKind::PageFree if batch.pfn[row] >= 0 => {
                    frames.page(event, batch.pfn[row] as u64, batch.order[row]);
                }
                _ if !event.is_alloc() && !event.is_free() => {}
                _ if batch.flags[row] & (flags::NULL | flags::ZERO_SIZE) != 0 => {}
                // A kmalloc of more than two pages is a page block without a slab. A free of an unseen object
                // may be the free of such a block.
                _ if batch.cache[row] == NONE && !(1..=2 << page_shift).contains(&batch.bytes_alloc[row]) => {
                }
                _ => frames.object(batch.address[row].wrapping_sub(linear_map) >> page_shift),
            }
        }
    }
    Ok(Some(frames.by_order))
}
