//! The call sites of a recording.

use super::folded::{Weight, folded};
use super::{SitesDocument, fitted};
use crate::output::recording::{Recording, gaps};
use crate::sites::{Lifetimes, Quantile, Recorded, Site, Stack};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use slablab_report::Answer;
use slablab_report::column::{Columns, Style};
use slablab_report::html::{Cell, name_of, number};
use slablab_report::{text, visible};
use std::cmp::Reverse;

/// Characters of a site's name in text.
const NAME: usize = 36;
/// Characters of a cache's name in text.
const CACHE: usize = 31;
/// Characters of a site and its cache in the time line.
const LABEL: usize = 34;
/// Sites of the time line in text.
const LINES: usize = 5;
/// Times of it.
const TIMES: usize = 5;
/// Tasks, and sites of frees, in JSON.
const LISTED: usize = 5;
/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 9] =
    ["node", "task", "waste K", "90 %", "same", "other", "allocs/s", "live", "median"];

/// The call sites as a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct Document {
    /// Frees of objects from before the recording, whose call sites are not known.
    older_frees: u64,
    /// Seconds from the first row to the last.
    recorded_s: f64,
    #[serde(flatten)]
    recording: Recording,
    /// What the answer lacks, then what it rests on: sentences.
    remarks: Vec<String>,
    sites: Vec<SiteDocument>,
    /// Call chains, if the recording has them.
    stacks: Vec<StackDocument>,
    /// The times of `live_bytes_over_time`.
    time_s: Vec<f64>,
}

#[derive(Serialize, JsonSchema)]
struct SiteDocument {
    #[serde(flatten)]
    #[schemars(schema_with = "site_schema")]
    columns: Map<String, Value>,
    /// Frees by call site, most first.
    freed_by: Vec<Named>,
    live_bytes_over_time: Vec<u64>,
    /// Allocations by task, most first.
    tasks: Vec<Named>,
}

#[derive(Serialize, JsonSchema)]
struct Named {
    count: u64,
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct StackDocument {
    allocs: u64,
    cache: String,
    /// Frames from the outermost to the call site.
    frames: Vec<String>,
    /// Bytes of allocated objects.
    live_bytes: u64,
    /// Bytes that were allocated and not asked for.
    waste_bytes: u64,
}

fn site_schema(_: &mut SchemaGenerator) -> Schema {
    let mut lifetimes = Lifetimes::default();
    lifetimes.freed(1);
    let site = Site { address: Some(String::new()), lifetimes, ..Site::default() };
    let schema = columns().schema(&Row { site: &site, seconds: 1.0, has_nodes: true });
    schema.try_into().expect("an object is a schema")
}

/// The text, the document, the rows and the folded stacks; the page's blocks are in `recorded_page`.
pub(super) fn answer(sites: &Recorded, top: usize, weight: Weight) -> Answer {
    let all = rows(sites);
    let name = |row: &Row| Cell::Name(fitted(&row.site.name, NAME));
    let keys = ["in_cache", "live_objects", "live_bytes", "waste_bytes", "allocs_per_s", "median", "p90"];
    let freed = ["freed_same_cpu_percent", "freed_other_cpu_percent", "freed_other_node_percent", "task"];
    let keys = [&keys[..], &freed].concat();
    let answer = Answer::new(format!("Who allocates: {}", name_of(&sites.path)), sentence(sites))
        .warnings(gaps(&sites.metadata))
        .document(&SitesDocument::Recorded(document(sites, &all)))
        .rows(columns().frame(&all))
        .form("folded", folded(sites, weight))
        .line(recorded_line(sites))
        .line(sums_line(sites))
        .table(columns().text(("site", &name), &keys, all.iter().take(top), Style::Kib), &LEFT_OUT);
    let answer = match all.len().saturating_sub(top) {
        0 => answer,
        more => answer.line(format!("... and {} (--top)", text::counted(more as u64, "more site"))),
    };
    let answer = answer
        .line("same, other, node: percent of frees on the CPU that allocated, on another, on another node");
    let answer = match time_line(sites) {
        Some(table) => answer.table(table, &[]),
        None => answer,
    };
    answer.remarks(sites.notes.iter().cloned())
}

/// How much lives at the end, and the call site with most of it.
fn sentence(sites: &Recorded) -> String {
    let live = sites.sum(|site| site.live_bytes);
    let count = number::count(sites.sum(|site| site.allocs));
    let most = sites.sites.iter().max_by_key(|site| (site.live_bytes, Reverse(&site.name)));
    match most.filter(|_| live > 0) {
        None => format!("Of {count} allocations in the recording none lives at its end."),
        Some(site) => format!(
            "Of {count} allocations in the recording {} live at its end, with {}; {} of these, {}, are from {} in cache {}.",
            number::count(sites.sum(|site| site.live)),
            number::bytes_as_in_tables(live),
            number::bytes_as_in_tables(site.live_bytes),
            number::percent(100.0 * site.live_bytes as f64 / live as f64),
            site.name,
            site.cache
        ),
    }
}

fn recorded_line(sites: &Recorded) -> String {
    let kernel = sites.metadata.release.as_deref().unwrap_or("an unknown kernel");
    let (path, rows) = (visible::path(&sites.path), sites.metadata.statistics.rows);
    let rows = text::counted(rows, "row");
    format!("{path}: {rows} in {:.3} s, recorded on {kernel}", sites.seconds)
}

fn sums_line(sites: &Recorded) -> String {
    let sum = |of: fn(&Site) -> u64| sites.sum(of);
    format!(
        "{}; of {} {} live at the end: {} K, {} K of them not requested",
        text::counted(sites.sites.len() as u64, "call site"),
        text::counted(sum(|site| site.allocs), "allocation"),
        text::grouped(sum(|site| site.live)),
        text::grouped(sum(|site| site.live_bytes) / 1024),
        text::grouped(sum(|site| site.waste_bytes) / 1024)
    )
}

fn document<'a>(sites: &Recorded, rows: &[Row<'a>]) -> Document {
    let columns = columns();
    let named = |list: &[(String, u64)]| -> Vec<Named> {
        list.iter().take(LISTED).map(|(name, count)| Named { count: *count, name: name.clone() }).collect()
    };
    let site = |row: &Row<'a>| SiteDocument {
        columns: columns.json(row),
        freed_by: named(&row.site.freed_by),
        live_bytes_over_time: row.site.line.clone(),
        tasks: named(&row.site.tasks),
    };
    let stack = |stack: &Stack| StackDocument {
        allocs: stack.allocs,
        cache: stack.cache.clone(),
        frames: stack.frames.clone(),
        live_bytes: stack.live_bytes,
        waste_bytes: stack.waste_bytes,
    };
    let places = sites.sites.first().map_or(0, |site| site.line.len());
    let time = |place: usize| sites.seconds * place as f64 / (places.max(2) - 1) as f64;
    Document {
        older_frees: sites.older_frees,
        recorded_s: sites.seconds,
        recording: Recording::new(&sites.path, &sites.metadata),
        remarks: gaps(&sites.metadata).into_iter().chain(sites.notes.iter().cloned()).collect(),
        sites: rows.iter().map(site).collect(),
        stacks: sites.stacks.iter().map(stack).collect(),
        time_s: (0..places).map(time).collect(),
    }
}

/// Live bytes over time, of the sites that hold most.
fn time_line(sites: &Recorded) -> Option<text::Table> {
    let mut most: Vec<&Site> = sites.sites.iter().filter(|site| site.peak_bytes > 0).collect();
    most.sort_by_key(|site| std::cmp::Reverse((site.live_bytes, site.peak_bytes)));
    let length = most.first().map_or(0, |site| site.line.len());
    if length < 2 {
        return None;
    }
    let at = |step: usize| step * (length - 1) / (TIMES - 1);
    let time = |step: usize| format!("{:.2} s", sites.seconds * at(step) as f64 / (length - 1) as f64);
    let heads = std::iter::once("live K at".to_string()).chain((0..TIMES).map(time));
    let mut table = text::Table::new(heads);
    for site in most.iter().take(LINES) {
        let cells = (0..TIMES).map(|step| (site.line[at(step)] / 1024).to_string());
        table.row(std::iter::once(label(site)).chain(cells));
    }
    let whole = |step: usize| sites.sum(|site| site.line[at(step)]) / 1024;
    table.row(std::iter::once("all".to_string()).chain((0..TIMES).map(|step| whole(step).to_string())));
    Some(table)
}

/// The call site and its cache, of at most [`LABEL`] characters; the call site is what is cut.
fn label(site: &Site) -> String {
    let cache = fitted(&site.cache, LABEL / 2);
    format!("{} {cache}", fitted(&site.name, LABEL - 1 - cache.chars().count()))
}

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

/// A time as people write it, in plain letters.
pub(super) fn duration(ns: u64) -> String {
    let units = [(3_600e9, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    let ns = ns as f64;
    let (unit, name) = units.into_iter().find(|(unit, _)| ns >= *unit).unwrap_or((1.0, "ns"));
    let value = ns / unit;
    let places = if unit == 1.0 || value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    format!("{value:.places$} {name}")
}

/// The time by which so many per cent are freed, for people.
pub(super) fn quantile(lifetimes: &Lifetimes, percent: u32) -> Cell {
    match lifetimes.quantile(percent) {
        Quantile::None => Cell::Empty,
        Quantile::Known(ns) => Cell::Text(duration(ns)),
        Quantile::AtLeast(ns) => Cell::Text(format!("> {}", duration(ns))),
    }
}

/// The same in ns, if it is known.
pub(super) fn known(lifetimes: &Lifetimes, percent: u32) -> Cell {
    lifetimes.quantile(percent).known().map_or(Cell::Empty, Cell::Count)
}

pub(super) fn columns<'a>() -> Columns<Row<'a>> {
    Columns::<Row>::default()
        .key("site", |row| Cell::Name(row.site.name.clone()))
        .key("address", |row| row.site.address.clone().map_or(Cell::Empty, Cell::Name))
        .or_unknown()
        .add("cache", "cache", "cache", |row| Cell::Name(row.site.cache.clone()))
        .words()
        .people("in_cache", "cache", "", |row| Cell::Name(text::cut(&row.site.cache, CACHE)))
        .add("live_objects", "live", "live objects", |row| Cell::Count(row.site.live))
        .add("live_bytes", "live", "live", |row| Cell::Bytes(row.site.live_bytes))
        .bytes()
        .described("Bytes of allocated objects.")
        .add("waste_bytes", "waste", "waste", |row| Cell::Bytes(row.site.waste_bytes))
        .bytes()
        .described("Bytes that were allocated and not asked for.")
        .add("peak_bytes", "peak", "peak", |row| Cell::Bytes(row.site.peak_bytes))
        .bytes()
        .add("allocs", "allocs", "allocations", |row| Cell::Count(row.site.allocs))
        .add("allocs_per_s", "allocs/s", "allocations", |row| Cell::Number(row.rate(), 1))
        .unit("per s")
        .key("requested_bytes", |row| Cell::Bytes(row.site.requested_bytes))
        .described("Bytes that callers asked for.")
        .key("allocated_bytes", |row| Cell::Bytes(row.site.allocated_bytes))
        .described("Bytes that callers got.")
        .people("median", "median", "median lifetime", |row| quantile(&row.site.lifetimes, 50))
        .people("p90", "90 %", "90 % live less than", |row| quantile(&row.site.lifetimes, 90))
        .key("lifetime_median_ns", |row| known(&row.site.lifetimes, 50))
        .or_unknown()
        .key("lifetime_90_percent_ns", |row| known(&row.site.lifetimes, 90))
        .or_unknown()
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
        .csv_alone()
        .add("freed_by", "", "freed by", |row| {
            row.site.freed_by.first().map_or(Cell::Empty, |(name, _)| Cell::Name(name.clone()))
        })
        .words()
        .csv_alone()
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
}
