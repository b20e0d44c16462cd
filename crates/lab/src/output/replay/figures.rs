//! The figures of a run: all caches together.

use crate::replay::outcome::{Counts, LOCKS, Outcome, Split, Traffic};
use slablab_platform::Event;
use slablab_report::column::Columns;
use slablab_report::html::Cell;

/// One engine's sums over its caches.
pub(super) struct Sums<'a> {
    outcome: &'a Outcome,
    total: Counts,
    traffic: Traffic,
    /// Slabs taken and returned, by order.
    orders: [(u64, u64); Outcome::ORDERS],
    split: Split,
}

impl<'a> Sums<'a> {
    pub(super) fn new(outcome: &'a Outcome) -> Sums<'a> {
        Sums {
            outcome,
            total: outcome.total(),
            traffic: outcome.traffic(),
            orders: outcome.slabs_by_order(),
            split: outcome.split(),
        }
    }

    fn bytes(&self, frames: fn(&Outcome) -> u64) -> Cell {
        Cell::Bytes(frames(self.outcome) * self.outcome.page_size)
    }
}

type Figures<'a> = Columns<Sums<'a>>;

/// A column per figure, in the order of tables.
pub(super) fn figures<'a>() -> Figures<'a> {
    assumed(locks(memory(slabs(requests(Columns::default())))))
}

fn requests(columns: Figures) -> Figures {
    columns
        .key("allocs", |sums| Cell::Count(sums.traffic.allocs))
        .title("allocations")
        .key("allocs_fast_percent", |sums| Cell::Percent(sums.total.fast_allocs_percent()))
        .title("  fast")
        .key("frees", |sums| Cell::Count(sums.traffic.frees))
        .title("frees")
        .key("frees_fast_percent", |sums| Cell::Percent(sums.total.fast_frees_percent()))
        .title("  fast")
        .key("frees_other_cpu", |sums| Cell::Count(sums.traffic.other_cpu))
        .title("  by another CPU")
        .key("frees_other_node", |sums| Cell::Count(sums.traffic.other_node))
        .title("  by another node")
}

fn slabs(columns: Figures) -> Figures {
    let orders = 0..Outcome::ORDERS;
    let columns =
        columns.key("slabs_taken", |sums| Cell::Count(sums.total.get(Event::AllocSlab))).title("slabs taken");
    let columns = orders.clone().fold(columns, |columns, order| {
        columns
            .key(format!("slabs_taken_order_{order}"), move |sums| Cell::Count(sums.orders[order].0))
            .title(format!("  of order {order}"))
            .when(move |sums| sums.orders[order].0 > 0)
    });
    let columns = columns
        .key("slab_pages_taken", |sums| {
            Cell::Count(sums.orders.iter().enumerate().map(|(order, (taken, _))| taken << order).sum())
        })
        .title("  pages")
        .key("slabs_returned", |sums| Cell::Count(sums.total.get(Event::FreeSlab)))
        .title("slabs returned");
    let columns = orders.fold(columns, |columns, order| {
        columns
            .key(format!("slabs_returned_order_{order}"), move |sums| Cell::Count(sums.orders[order].1))
            .title(format!("  of order {order}"))
            .when(move |sums| sums.orders[order].1 > 0)
    });
    columns
        .key("large_allocs", |sums| Cell::Count(sums.outcome.large.allocs))
        .title("large kmallocs")
        .key("slob_pages_walked", |sums| Cell::Count(sums.total.get(Event::SlobPagesWalked)))
        .title("pages walked")
        .when(|sums| sums.total.get(Event::SlobPagesWalked) > 0)
        .key("slob_blocks_walked", |sums| Cell::Count(sums.total.get(Event::SlobBlocksWalked)))
        .title("free blocks walked")
        .when(|sums| sums.total.get(Event::SlobPagesWalked) > 0)
}

fn memory(columns: Figures) -> Figures {
    columns
        .heading("slab memory")
        .key("slab_start_bytes", |sums| sums.bytes(|outcome| outcome.start_frames))
        .title("  start")
        .key("slab_peak_bytes", |sums| sums.bytes(|outcome| outcome.peak_frames))
        .title("  peak")
        .key("slab_end_bytes", |sums| sums.bytes(|outcome| outcome.end_frames))
        .title("  end")
        .key("live_bytes", |sums| Cell::Bytes(sums.split.live))
        .title("    live objects")
        .key("parked_bytes", |sums| Cell::Bytes(sums.split.parked))
        .title("    parked at CPUs")
        .key("free_bytes", |sums| Cell::Bytes(sums.split.free))
        .title("    free in slabs")
        .key("shared_free_bytes", |sums| Cell::Bytes(sums.outcome.shared.free_bytes))
        .title("      of these no cache's")
        .when(|sums| sums.outcome.shared.frames > 0)
        .key("tail_bytes", |sums| Cell::Bytes(sums.split.tail))
        .title("    tail of slabs")
}

fn locks(columns: Figures) -> Figures {
    let columns = LOCKS.into_iter().fold(columns.heading("locks taken"), |columns, lock| {
        columns
            .key(lock.name(), move |sums| Cell::Count(sums.total.get(lock)))
            .title(format!("  {}", lock.name().trim_start_matches("lock_")))
            .when(move |sums| sums.total.get(lock) > 0)
    });
    columns
        .key("lock_zone", |sums| Cell::Count(sums.outcome.global.get(Event::LockZone)))
        .title("  zone")
        .key("allocs_failed", |sums| Cell::Count(sums.traffic.failed + sums.outcome.large.failed))
        .title("failed allocations")
}

fn assumed(columns: Figures) -> Figures {
    columns
        .heading("assumed")
        .key("frees_old", |sums| Cell::Count(sums.traffic.old))
        .title("  frees of older objects")
        .key("allocs_assumed", |sums| Cell::Count(sums.traffic.bulk))
        .title("  untraced allocations")
        .key("frees_implied", |sums| Cell::Count(sums.traffic.implied))
        .title("  untraced frees")
        .key("frees_unknown", |sums| Cell::Count(sums.outcome.unknown_frees))
        .title("  frees of unknown caches")
        .key("rows_elsewhere", |sums| Cell::Count(sums.outcome.elsewhere.rows))
        .title("  rows of CPUs that were off")
        .when(|sums| sums.outcome.elsewhere.rows > 0)
}
