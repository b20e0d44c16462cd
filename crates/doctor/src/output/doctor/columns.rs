//! The columns of the caches: of what slabinfo and sysfs say, of the split, of growth.

use super::parts::PARTS;
use crate::measure::Line;
use crate::measure::split::{Metadata, Split};
use crate::state::Cache;
use slablab_report::column::Columns;
use slablab_report::html::Cell;

/// A size in bytes that is below zero only where counters raced.
pub(super) fn signed(bytes: i64) -> Cell {
    u64::try_from(bytes).map_or(Cell::ByteChange(bytes), Cell::Bytes)
}

/// A number of a cache whose objects are known, not only its bytes.
fn counted(line: &Line, of: fn(&Cache) -> u64) -> Cell {
    if line.cache.bytes_only { Cell::Empty } else { Cell::Count(of(line.cache)) }
}

fn percent(part: f64, whole: u64) -> Cell {
    Cell::Percent((whole > 0).then(|| 100.0 * part / whole as f64))
}

fn metadata(split: &Split, bytes: fn(Metadata) -> u64) -> Cell {
    split.metadata.map_or(Cell::Empty, |known| Cell::Bytes(bytes(known)))
}

/// A cache, its split and its growth.
pub(super) fn caches<'a>() -> Columns<Line<'a>> {
    let columns = Columns::<Line>::default()
        .key("cache", |line| Cell::Name(line.cache.name.clone()))
        .key("ordinal", |line| Cell::Count(line.cache.ordinal as u64))
        .key("object_size_bytes", |line| line.cache.object_size.map_or(Cell::Empty, Cell::Count))
        .key("slab_size_bytes", |line| counted(line, |cache| cache.size))
        .add("objs_per_slab", "O/S", "in a slab", |line| counted(line, |cache| cache.objects_per_slab))
        .unit("objects")
        .add("order", "O", "order", |line| counted(line, |cache| cache.order.into()))
        .key("slabs", |line| counted(line, |cache| cache.slabs))
        .key("total_objects", |line| counted(line, |cache| cache.total_objects))
        .add("active_objects", "Active", "active objects", |line| counted(line, |cache| cache.active_objects))
        .add("reclaim", "Recl", "reclaimable", |line| Cell::Text(line.reclaim.key().into()))
        .words()
        // For people alone.
        .people("mark", "Recl", "reclaimable", |line| Cell::Text(line.reclaim.mark().into()))
        .words()
        .people("objsize", "Objsize", "object", |line| {
            counted(line, |cache| cache.object_size.unwrap_or(cache.size))
        })
        .unit("bytes")
        .people("used", "%Ef", "in use", |line| percent(line.split.in_use as f64, line.split.bytes))
        .people("space", "Space", "space", |line| Cell::Bytes(line.split.bytes))
        .bytes()
        .people("loss", "Loss", "loss", |line| signed(line.split.loss()))
        .bytes()
        .people("loss_share", "", "of space", |line| percent(line.split.loss() as f64, line.split.bytes))
        .people("free", "", "free", |line| Cell::Bytes(line.split.free))
        .people("tail", "", "tail", |line| Cell::Bytes(line.split.tail))
        .people("padding", "", "padding", |line| {
            metadata(&line.split, |known| known.alignment.saturating_add(known.pointer))
        })
        .people("debugging", "", "debugging", |line| metadata(&line.split, |known| known.debugging));
    // CSV has the whole first and its parts after it.
    let (whole, parts) = PARTS.split_last().expect("the split has parts");
    let columns = std::iter::once(whole).chain(parts).fold(columns, |columns, part| {
        columns.key(part.key, |line| (part.get)(&line.split).map_or(Cell::Empty, signed))
    });
    growth(columns)
}

/// A cache's growth since the first snapshot. All cells are empty where there is none; JSON has an
/// object of its own for it.
fn growth<'a>(columns: Columns<Line<'a>>) -> Columns<Line<'a>> {
    let rate = |of: Option<f64>| of.map_or(Cell::Empty, |rate| Cell::ByteChange(rate as i64));
    let number = |of: Option<f64>| of.map_or(Cell::Empty, |number| Cell::Number(number, 3));
    columns
        .add("growth_bytes", "Grown", "grown", |line| {
            line.growth.as_ref().map_or(Cell::Empty, |growth| Cell::ByteChange(growth.bytes))
        })
        .bytes()
        .csv_alone()
        .add("growth_objects", "Objs grown", "active objects grown", |line| {
            line.growth.as_ref().map_or(Cell::Empty, |growth| Cell::Change(growth.objects))
        })
        .csv_alone()
        .key("bytes_per_hour", move |line| number(line.fit().map(|fit| fit.bytes_per_hour)))
        .csv_alone()
        .key("bytes_per_hour_error", move |line| number(line.fit().and_then(|fit| fit.error)))
        .csv_alone()
        .add("growth_r2", "", "R\u{b2}", move |line| number(line.fit().and_then(|fit| fit.r2)))
        .csv_alone()
        .people("rate", "per h", "an hour", move |line| rate(line.fit().map(|fit| fit.bytes_per_hour)))
        .bytes()
        .people("rate_error", "", "give or take", |line| {
            let error = line.fit().and_then(|fit| fit.error);
            error.map_or(Cell::Empty, |error| Cell::Bytes(error as u64))
        })
}
