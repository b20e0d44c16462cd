//! The call sites of a recording as text, JSON and CSV.

use super::SCHEMA;
use crate::sites::{Quantile, Recorded, Site};
use serde_json::{Map, Value, json};
use slablab_report::column::{Columns, Style};
use slablab_report::html::{Cell, number};
use slablab_report::{text, visible};
use std::fmt::Write;

/// Characters of a site's name in text.
const NAME: usize = 40;
/// Sites of the time line in text.
const LINES: usize = 5;
/// Times of it.
const TIMES: usize = 5;
/// Tasks, and sites of frees, in JSON.
const LISTED: usize = 5;

/// A site with what its recording says.
pub(super) struct Row<'a> {
    pub(super) site: &'a Site,
    seconds: f64,
    has_nodes: bool,
}

pub(super) fn rows(sites: &Recorded) -> Vec<Row<'_>> {
    let row = |site| Row { site, seconds: sites.seconds, has_nodes: sites.has_nodes };
    sites.sites.iter().map(row).collect()
}

impl Row<'_> {
    fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.site.allocs as f64 / self.seconds } else { 0.0 }
    }

    fn share(&self, part: u64) -> Cell {
        let seen = self.site.frees.seen();
        Cell::Percent((seen > 0).then(|| 100.0 * part as f64 / seen as f64))
    }
}

/// What the recording lacks.
pub(super) fn gaps(sites: &Recorded) -> Vec<String> {
    sites.metadata.gaps().into_iter().map(|gap| format!("INCOMPLETE: {gap}")).collect()
}

/// A time as people write it, in plain letters.
pub(super) fn duration(ns: u64) -> String {
    let units = [(3_600e9, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    let ns = ns as f64;
    let (unit, name) = units.into_iter().find(|(unit, _)| ns >= *unit).unwrap_or((1.0, "ns"));
    let value = ns / unit;
    let places = if unit == 1.0 || value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    format!("{value:.places$} {name}")
}

fn quantile(site: &Site, percent: u32) -> Cell {
    match site.lifetimes.quantile(percent) {
        Quantile::None => Cell::Empty,
        Quantile::Known(ns) => Cell::Text(duration(ns)),
        Quantile::AtLeast(ns) => Cell::Text(format!("> {}", duration(ns))),
    }
}

fn known(site: &Site, percent: u32) -> Cell {
    site.lifetimes.quantile(percent).known().map_or(Cell::Empty, Cell::Count)
}

pub(super) fn columns<'a>() -> Columns<Row<'a>> {
    Columns::<Row>::default()
        .key("site", |row| Cell::Name(row.site.name.clone()))
        .key("address", |row| row.site.address.clone().map_or(Cell::Empty, Cell::Name))
        .add("cache", "cache", "cache", |row| Cell::Name(row.site.cache.clone()))
        .words()
        .add("live_objects", "live", "live objects", |row| Cell::Count(row.site.live))
        .add("live_bytes", "live", "live", |row| Cell::Bytes(row.site.live_bytes))
        .bytes()
        .add("waste_bytes", "waste", "waste", |row| Cell::Bytes(row.site.waste_bytes))
        .bytes()
        .add("peak_bytes", "peak", "peak", |row| Cell::Bytes(row.site.peak_bytes))
        .bytes()
        .add("allocs", "allocs", "allocations", |row| Cell::Count(row.site.allocs))
        .add("allocs_per_s", "allocs/s", "allocations", |row| Cell::Number(row.rate(), 1))
        .unit("per s")
        .key("requested_bytes", |row| Cell::Bytes(row.site.requested_bytes))
        .key("allocated_bytes", |row| Cell::Bytes(row.site.allocated_bytes))
        .people("median", "median", "median lifetime", |row| quantile(row.site, 50))
        .people("p90", "90 %", "90 % live less than", |row| quantile(row.site, 90))
        .key("lifetime_median_ns", |row| known(row.site, 50))
        .key("lifetime_90_percent_ns", |row| known(row.site, 90))
        .key("frees", |row| Cell::Count(row.site.frees.seen()))
        .key("frees_implied", |row| Cell::Count(row.site.frees.implied))
        .add("freed_same_cpu_percent", "same", "freed on the same CPU", |row| {
            row.share(row.site.frees.same_cpu)
        })
        .add("freed_other_cpu_percent", "other", "on another CPU", |row| row.share(row.site.frees.other_cpu))
        .add("freed_other_node_percent", "node", "on another node", |row| match row.has_nodes {
            true => row.share(row.site.frees.other_node),
            false => Cell::Percent(None),
        })
        .add("task", "task", "task", |row| {
            row.site.tasks.first().map_or(Cell::Empty, |(name, _)| Cell::Name(name.clone()))
        })
        .words()
        .add("freed_by", "", "freed by", |row| {
            row.site.freed_by.first().map_or(Cell::Empty, |(name, _)| Cell::Name(name.clone()))
        })
        .words()
}

/// A name of at most so many characters, shortened in the middle.
fn fitted(name: &str, width: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= width {
        return name.into();
    }
    let (head, tail) = ((width - 2).div_ceil(2), (width - 2) / 2);
    let (head, tail): (String, String) =
        (chars[..head].iter().collect(), chars[chars.len() - tail..].iter().collect());
    format!("{head}..{tail}")
}

pub(super) fn table(sites: &Recorded, top: usize) -> String {
    let mut out = String::new();
    write_table(sites, top, &mut out).expect("a string takes everything");
    out
}

fn write_table(sites: &Recorded, top: usize, out: &mut String) -> std::fmt::Result {
    gaps(sites).iter().try_for_each(|gap| writeln!(out, "{}", visible::lines(gap)))?;
    let kernel = sites.metadata.release.as_deref().unwrap_or("an unknown kernel");
    let title = format!(
        "{}: {} rows in {:.3} s, recorded on {kernel}",
        sites.path.display(),
        sites.metadata.statistics.rows,
        sites.seconds
    );
    writeln!(out, "{}", visible::name(&title))?;
    let (live, waste) = (sites.sum(|site| site.live_bytes), sites.sum(|site| site.waste_bytes));
    writeln!(
        out,
        "{} call sites; of {} allocations {} live at the end: {} K, {} K of them not requested\n",
        sites.sites.len(),
        text::grouped(sites.sum(|site| site.allocs)),
        text::grouped(sites.sum(|site| site.live)),
        text::grouped(live / 1024),
        text::grouped(waste / 1024)
    )?;
    let all = rows(sites);
    let keys = [
        "cache",
        "live_objects",
        "live_bytes",
        "waste_bytes",
        "allocs_per_s",
        "median",
        "p90",
        "freed_same_cpu_percent",
        "freed_other_cpu_percent",
        "freed_other_node_percent",
        "task",
    ];
    let label = |row: &Row| Cell::Name(fitted(&row.site.name, NAME));
    out.push_str(&columns().text(("site", &label), &keys, all.iter().take(top), Style::Kib).print());
    if all.len() > top {
        writeln!(out, "... and {} more sites (--top)", all.len() - top)?;
    }
    writeln!(
        out,
        "same, other, node: percent of frees on the CPU that allocated, on another, on another node\n"
    )?;
    write_line(sites, out)?;
    out.push('\n');
    sites.notes.iter().try_for_each(|note| writeln!(out, "{}", visible::lines(note)))
}

/// Live bytes over time, of the sites that hold most.
fn write_line(sites: &Recorded, out: &mut String) -> std::fmt::Result {
    let mut most: Vec<&Site> = sites.sites.iter().filter(|site| site.peak_bytes > 0).collect();
    most.sort_by_key(|site| std::cmp::Reverse((site.live_bytes, site.peak_bytes)));
    let length = most.first().map_or(0, |site| site.line.len());
    if length < 2 {
        return Ok(());
    }
    let at = |step: usize| step * (length - 1) / (TIMES - 1);
    let time = |step: usize| format!("{:.2} s", sites.seconds * at(step) as f64 / (length - 1) as f64);
    let heads = std::iter::once("live K at".to_string()).chain((0..TIMES).map(time));
    let mut table = text::Table::new(heads);
    for site in most.iter().take(LINES) {
        let cells = (0..TIMES).map(|step| (site.line[at(step)] / 1024).to_string());
        table.row(std::iter::once(format!("{} {}", fitted(&site.name, NAME), site.cache)).chain(cells));
    }
    let whole = |step: usize| sites.sum(|site| site.line[at(step)]) / 1024;
    table.row(std::iter::once("all".to_string()).chain((0..TIMES).map(|step| whole(step).to_string())));
    out.push_str(&table.print());
    Ok(())
}

pub(super) fn csv(sites: &Recorded) -> String {
    columns().csv(rows(sites))
}

pub(super) fn json(sites: &Recorded) -> Value {
    let columns = columns();
    let places = sites.sites.first().map_or(0, |site| site.line.len());
    let time = |place: usize| sites.seconds * place as f64 / (places.max(2) - 1) as f64;
    json!({
        "schema": SCHEMA,
        "of": "recording",
        "recording": sites.path.display().to_string(),
        "release": sites.metadata.release,
        "events_lost": sites.metadata.losses.events,
        "lost_records": sites.metadata.losses.records,
        "cut_off": sites.metadata.cut_off,
        "recorded_s": sites.seconds,
        "older_frees": sites.older_frees,
        "remarks": gaps(sites).into_iter().chain(sites.notes.iter().cloned()).collect::<Vec<_>>(),
        "time_s": (0..places).map(time).collect::<Vec<_>>(),
        "sites": rows(sites).iter().map(|row| site_json(&columns, row)).collect::<Vec<_>>(),
        "stacks": sites.stacks.iter().map(|stack| json!({
            "cache": stack.cache,
            "frames": stack.frames,
            "allocs": stack.allocs,
            "live_bytes": stack.live_bytes,
            "waste_bytes": stack.waste_bytes,
        })).collect::<Vec<_>>(),
    })
}

fn site_json<'a>(columns: &Columns<Row<'a>>, row: &Row<'a>) -> Value {
    let counts = |list: &[(String, u64)]| -> Vec<Value> {
        list.iter().take(LISTED).map(|(name, count)| json!({ "name": name, "count": count })).collect()
    };
    let mut value: Map<String, Value> = columns.json(row);
    value.remove("task");
    value.remove("freed_by");
    value.insert("tasks".into(), json!(counts(&row.site.tasks)));
    value.insert("freed_by".into(), json!(counts(&row.site.freed_by)));
    value.insert("live_bytes_over_time".into(), json!(row.site.line));
    Value::Object(value)
}

/// Bytes in words, for sentences.
pub(super) fn bytes(count: u64) -> String {
    number::bytes(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        #[track_caller]
        fn check(ns: u64, expected: &str) {
            assert_eq!(duration(ns), expected);
        }
        check(0, "0 ns");
        check(999, "999 ns");
        check(1_000, "1.00 us");
        check(12_345_678, "12.3 ms");
        check(999_600_000, "1000 ms");
        check(59_000_000_000, "59.0 s");
        check(5_400_000_000_000, "1.50 h");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(fitted("__alloc_skb+0x10", 40), "__alloc_skb+0x10");
        assert_eq!(fitted("abcdefghijklmnop", 10), "abcd..mnop");
    }
}
