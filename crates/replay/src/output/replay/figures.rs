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
        .row("allocations", "allocs", |sums| Cell::Count(sums.traffic.allocs))
        .row("  fast", "allocs_fast_percent", |sums| Cell::Percent(sums.total.fast_allocs_percent()))
        .row("frees", "frees", |sums| Cell::Count(sums.traffic.frees))
        .row("  fast", "frees_fast_percent", |sums| Cell::Percent(sums.total.fast_frees_percent()))
        .row("  by another CPU", "frees_other_cpu", |sums| Cell::Count(sums.traffic.other_cpu))
        .row("  by another node", "frees_other_node", |sums| Cell::Count(sums.traffic.other_node))
}

fn slabs(columns: Figures) -> Figures {
    let orders = 0..Outcome::ORDERS;
    let columns =
        columns.key("slabs_taken", |sums| Cell::Count(sums.total.get(Event::AllocSlab))).title("slabs taken");
    let columns = orders.clone().fold(columns, |columns, order| {
        columns
            .row(format!("  of order {order}"), format!("slabs_taken_order_{order}"), move |sums| {
                Cell::Count(sums.orders[order].0)
            })
            .when(move |sums| sums.orders[order].0 > 0)
    });
    let columns = columns
        .row("  pages", "slab_pages_taken", |sums| {
            Cell::Count(sums.orders.iter().enumerate().map(|(order, (taken, _))| taken << order).sum())
        })
        .row("slabs returned", "slabs_returned", |sums| Cell::Count(sums.total.get(Event::FreeSlab)));
    let columns = orders.fold(columns, |columns, order| {
        columns
            .row(format!("  of order {order}"), format!("slabs_returned_order_{order}"), move |sums| {
                Cell::Count(sums.orders[order].1)
            })
            .when(move |sums| sums.orders[order].1 > 0)
    });
    columns
        .row("large kmallocs", "large_allocs", |sums| Cell::Count(sums.outcome.large.allocs))
        .row("pages walked", "slob_pages_walked", |sums| Cell::Count(sums.total.get(Event::SlobPagesWalked)))
        .when(|sums| sums.total.get(Event::SlobPagesWalked) > 0)
        .row("free blocks walked", "slob_blocks_walked", |sums| {
            Cell::Count(sums.total.get(Event::SlobBlocksWalked))
        })
        .when(|sums| sums.total.get(Event::SlobPagesWalked) > 0)
}

fn memory(columns: Figures) -> Figures {
    columns
        .heading("slab memory")
        .row("  start", "slab_start_bytes", |sums| sums.bytes(|outcome| outcome.start_frames))
        .row("  peak", "slab_peak_bytes", |sums| sums.bytes(|outcome| outcome.peak_frames))
        .row("  end", "slab_end_bytes", |sums| sums.bytes(|outcome| outcome.end_frames))
        .row("    live objects", "live_bytes", |sums| Cell::Bytes(sums.split.live))
        .described("Bytes of allocated objects.")
        .row("    parked at CPUs", "parked_bytes", |sums| Cell::Bytes(sums.split.parked))
        .described("Bytes of free objects that CPUs hold.")
        .row("    free in slabs", "free_bytes", |sums| Cell::Bytes(sums.split.free))
        .row("      no cache's", "shared_free_bytes", |sums| Cell::Bytes(sums.outcome.shared.free_bytes))
        .when(|sums| sums.outcome.shared.frames > 0)
        .row("    tail of slabs", "tail_bytes", |sums| Cell::Bytes(sums.split.tail))
        .described("Bytes at the ends of slabs that no object fits in.")
}

fn locks(columns: Figures) -> Figures {
    let columns = LOCKS.into_iter().fold(columns.heading("locks taken"), |columns, lock| {
        columns
            .key(lock.name(), move |sums| Cell::Count(sums.total.get(lock)))
            .title(format!("  {}", lock.name().trim_start_matches("lock_")))
            .when(move |sums| sums.total.get(lock) > 0)
    });
    columns.row("  zone", "lock_zone", |sums| Cell::Count(sums.outcome.global.get(Event::LockZone))).row(
        "failed allocations",
        "allocs_failed",
        |sums| Cell::Count(sums.traffic.failed + sums.outcome.large.failed),
    )
}

fn assumed(columns: Figures) -> Figures {
    columns
        .heading("assumed")
        .row("  frees of older objects", "frees_old", |sums| Cell::Count(sums.traffic.old))
        .row("  untraced allocations", "allocs_assumed", |sums| Cell::Count(sums.traffic.bulk))
        .row("  untraced frees", "frees_implied", |sums| Cell::Count(sums.traffic.implied))
        .row("  frees of unknown caches", "frees_unknown", |sums| Cell::Count(sums.outcome.unknown_frees))
        .row("  rows of CPUs that were off", "rows_elsewhere", |sums| {
            Cell::Count(sums.outcome.elsewhere.rows)
        })
        .when(|sums| sums.outcome.elsewhere.rows > 0)
}
