//! The columns of a replay's caches.

use crate::replay::outcome::{CacheOutcome, Counts, Outcome, Split};
use slablab_platform::Event;
use slablab_report::column::Columns;
use slablab_report::html::Cell;

/// Percent of a cache's events that must rest on assumptions before it is marked.
pub(super) const MARK_ABOVE_PERCENT: f64 = 1.0;

/// One cache under one engine.
pub(super) struct Row<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) cache: &'a CacheOutcome,
    split: Split,
}

impl<'a> Row<'a> {
    pub(super) fn new(outcome: &'a Outcome, cache: &'a CacheOutcome) -> Row<'a> {
        Row { outcome, cache, split: Split::of(&cache.end, &cache.geometry, outcome.page_size) }
    }

    pub(super) fn engine(&self) -> String {
        self.outcome.engine().to_string()
    }

    pub(super) fn slab_bytes(&self) -> u64 {
        self.split.slabs
    }

    fn counts(&self) -> &Counts {
        &self.cache.counts
    }

    /// Percent of its events that rest on assumptions, if that is worth a mark.
    pub(super) fn marked(&self) -> Option<f64> {
        Some(self.cache.traffic.assumed_percent()).filter(|percent| *percent > MARK_ABOVE_PERCENT)
    }
}

/// Columns for programs, then those that people see in the terms of `slabinfo -AD`, then a counter each for
/// CSV.
pub(super) fn caches<'a>() -> Columns<Row<'a>> {
    let columns = Columns::<Row>::default()
        .key("engine", |row| Cell::Name(row.engine()))
        .csv_alone()
        .key("cache", |row| Cell::Name(row.cache.name.clone()))
        .add("object_size_bytes", "", "object", |row| Cell::Count(row.cache.geometry.object_size.into()))
        .title("object_size")
        .unit("bytes")
        .row("slab_size", "slab_size_bytes", |row| Cell::Count(row.cache.geometry.size.into()))
        .add("order", "O", "order", |row| Cell::Count(row.cache.geometry.order.into()))
        .title("order")
        .row("objs_per_slab", "objs_per_slab", |row| Cell::Count(row.cache.geometry.objects.into()))
        .row("slabs start", "slabs_start", |row| Cell::Count(row.cache.start.slabs))
        .add("slabs", "Slabs", "slabs", |row| Cell::Count(row.cache.end.slabs))
        .title("slabs end")
        .add("objects", "Objects", "objects", |row| Cell::Count(row.cache.end.active_objects()))
        .title("objects end")
        .row("  parked of these", "parked_objects", |row| Cell::Count(row.cache.end.parked))
        .row("partial end", "partial", |row| Cell::Count(row.cache.end.partial))
        .json_alone()
        .row("cpu_slabs end", "cpu_slabs", |row| {
            Cell::Count(row.cache.end.cpu_slabs + row.cache.end.cpu_partial)
        })
        .json_alone()
        .add("slab_bytes", "Space", "space", |row| Cell::Bytes(row.split.slabs))
        .bytes()
        .described("Bytes of the pages of slabs.")
        .add("tail_bytes", "", "tail of slabs", |row| Cell::Bytes(row.split.tail))
        .described("Bytes at the ends of slabs that no object fits in.")
        .add("parked_bytes", "", "parked at CPUs", |row| Cell::Bytes(row.split.parked))
        .described("Bytes of free objects that CPUs hold.")
        .add("free_bytes", "", "free in slabs", |row| Cell::Bytes(row.split.free))
        .row("frees by another CPU", "frees_other_cpu", |row| Cell::Count(row.cache.traffic.other_cpu))
        .row("frees by another node", "frees_other_node", |row| Cell::Count(row.cache.traffic.other_node))
        .key("assumed_percent", |row| Cell::Percent(Some(row.cache.traffic.assumed_percent())))
        .key("allocs_failed", |row| Cell::Count(row.cache.traffic.failed));
    let columns = only_json(columns);
    let columns = people(columns);
    Event::ALL.iter().filter(|event| !event.is_of_model()).fold(columns, |columns, event| {
        let count = move |row: &Row| row.counts().get(*event);
        let column = columns.key(event.name(), move |row| Cell::Count(count(row))).csv_alone();
        column.title(event.name()).when(move |row| count(row) > 0)
    })
}

fn only_json<'a>(columns: Columns<Row<'a>>) -> Columns<Row<'a>> {
    type Get = fn(&Row) -> u64;
    let more: [(&'static str, &'static str, Get); 8] = [
        ("objects_start", "", |row| row.cache.start.active_objects()),
        ("live_objects", "", |row| row.cache.end.live_objects()),
        ("quarantined_objects", "", |row| row.cache.end.quarantined),
        ("allocs", "", |row| row.cache.traffic.allocs),
        ("frees", "", |row| row.cache.traffic.frees),
        ("frees_old", "frees of older objects", |row| row.cache.traffic.old),
        ("allocs_assumed", "untraced allocations", |row| row.cache.traffic.bulk),
        ("frees_implied", "untraced frees", |row| row.cache.traffic.implied),
    ];
    more.into_iter().fold(columns, |columns, (key, title, get)| {
        columns.key(key, move |row| Cell::Count(get(row))).title(title).json_alone()
    })
}

fn people<'a>(columns: Columns<Row<'a>>) -> Columns<Row<'a>> {
    columns
        .people("alloc", "Alloc", "allocations", |row| Cell::Count(row.counts().allocs()))
        .people("free", "Free", "frees", |row| Cell::Count(row.counts().frees()))
        .people("fast_allocs", "%Fast", "fast allocations", |row| {
            Cell::Percent(row.counts().fast_allocs_percent())
        })
        .people("fast_frees", "", "fast frees", |row| Cell::Percent(row.counts().fast_frees_percent()))
        .people("fallbacks", "Fallb", "fallbacks", |row| Cell::Count(row.counts().get(Event::OrderFallback)))
        .people("loss", "Loss", "loss", |row| Cell::Bytes(row.split.slabs - row.split.live))
        .bytes()
        .people("slab_memory", "", "slab memory", |row| Cell::Bytes(row.split.slabs))
        .people("live", "", "live objects", |row| Cell::Bytes(row.split.live))
        .people("assumed", "", "assumed", |row| {
            row.marked().map_or(Cell::Empty, |percent| Cell::Percent(Some(percent)))
        })
        .people("mark", "assumed", "", |row| {
            Cell::Text(row.marked().map_or(String::new(), |percent| format!("! {percent:.0} %")))
        })
}
