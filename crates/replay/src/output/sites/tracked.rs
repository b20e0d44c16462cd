//! SLUB's debugging lists.

use super::{SitesDocument, fitted};
use crate::sites::{List, TrackedSites};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use slablab_readers::tracked::Tracked;
use slablab_report::Answer;
use slablab_report::column::{Columns, Style};
use slablab_report::html::chart::{Axis, Bar, Bars, Scale};
use slablab_report::html::{Cell, name_of, number};
use std::path::PathBuf;

/// Bars of a figure.
const BARS: usize = 24;
/// Characters of a site in text.
const NAME: usize = 40;
/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 7] = ["nodes", "CPUs", "waste K", "pids", "youngest", "mean age", "oldest"];

/// The lists as a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct Document {
    /// Jiffies in a second, if known.
    jiffies_per_s: Option<u64>,
    lists: Vec<ListDocument>,
    /// The file or folder.
    path: String,
    /// What the answer lacks, then what it rests on: sentences.
    remarks: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct ListDocument {
    cache: Option<String>,
    /// `allocs`: who allocated the objects that live; `frees`: who freed objects last.
    list: &'static str,
    objects: u64,
    sites: Vec<Entry>,
    /// Bytes of an object with its debugging, if known.
    slab_size_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    cpus: Vec<u32>,
    nodes: Vec<u32>,
    /// The call chain, innermost first.
    stack: Vec<String>,
    #[serde(flatten)]
    #[schemars(schema_with = "entry_schema")]
    columns: Map<String, Value>,
}

fn entry_schema(_: &mut SchemaGenerator) -> Schema {
    let (site, module) = (Some(String::new()), Some(String::new()));
    let (waste, age, pids) = (Some((0, 0)), Some([0; 3]), Some((0, 0)));
    let entry = Tracked { site, module, waste, age, pids, ..Tracked::default() };
    let list = List { cache: None, of_frees: false, slab_size: Some(0), sites: Vec::new() };
    let of = TrackedSites { path: PathBuf::new(), lists: Vec::new(), empty: 0, hz: None };
    let schema = columns().schema(&Row { list: &list, entry: &entry, of: &of });
    schema.try_into().expect("an object is a schema")
}

/// An entry, its list and the unit of ages.
struct Row<'a> {
    list: &'a List,
    entry: &'a Tracked,
    of: &'a TrackedSites,
}

impl Row<'_> {
    fn age(&self, which: usize) -> Cell {
        let Some(ages) = self.entry.age else { return Cell::Empty };
        match self.of.seconds(ages[which]) {
            Some(seconds) => Cell::Number(seconds, 1),
            None => Cell::Count(ages[which]),
        }
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.entry.count.saturating_mul(self.list.slab_size?))
    }

    fn name(&self) -> String {
        let site = self.entry.site.as_deref().unwrap_or("(not available)");
        let module = self.entry.module.as_ref().map_or(String::new(), |module| format!(" [{module}]"));
        format!("{site}{module}")
    }
}

fn rows<'a>(sites: &'a TrackedSites, list: &'a List) -> Vec<Row<'a>> {
    list.sites.iter().map(|entry| Row { list, entry, of: sites }).collect()
}

/// Which list it is, in a word.
fn which(list: &List) -> &'static str {
    if list.of_frees { "frees" } else { "allocs" }
}

fn columns<'a>() -> Columns<Row<'a>> {
    Columns::<Row>::default()
        .key("cache", |row| row.list.cache.clone().map_or(Cell::Empty, Cell::Name))
        .csv_alone()
        .key("list", |row| Cell::Text(which(row.list).into()))
        .csv_alone()
        .key("site", |row| row.entry.site.clone().map_or(Cell::Empty, Cell::Name))
        .or_unknown()
        .key("module", |row| row.entry.module.clone().map_or(Cell::Empty, Cell::Name))
        .or_unknown()
        .add("objects", "objects", "objects", |row| Cell::Count(row.entry.count))
        .add("bytes", "bytes", "bytes", |row| row.bytes().map_or(Cell::Empty, Cell::Bytes))
        .bytes()
        .or_unknown()
        .add("waste_bytes", "waste", "waste", |row| {
            row.entry.waste.map_or(Cell::Empty, |(all, _)| Cell::Bytes(all))
        })
        .bytes()
        .or_unknown()
        .described("Bytes that were allocated and not asked for.")
        .people("age_least", "youngest", "youngest", |row| row.age(0))
        .people("age_mean", "mean age", "mean age", |row| row.age(1))
        .people("age_most", "oldest", "oldest", |row| row.age(2))
        .key("age_least_jiffies", |row| row.entry.age.map_or(Cell::Empty, |ages| Cell::Count(ages[0])))
        .or_unknown()
        .key("age_mean_jiffies", |row| row.entry.age.map_or(Cell::Empty, |ages| Cell::Count(ages[1])))
        .or_unknown()
        .key("age_most_jiffies", |row| row.entry.age.map_or(Cell::Empty, |ages| Cell::Count(ages[2])))
        .or_unknown()
        .people("pids", "pids", "tasks", |row| match row.entry.pids {
            None => Cell::Empty,
            Some((from, to)) if from == to => Cell::Text(from.to_string()),
            Some((from, to)) => Cell::Text(format!("{from}-{to}")),
        })
        .key("pid_least", |row| row.entry.pids.map_or(Cell::Empty, |(from, _)| Cell::Change(from)))
        .or_unknown()
        .key("pid_most", |row| row.entry.pids.map_or(Cell::Empty, |(_, to)| Cell::Change(to)))
        .or_unknown()
        .add("cpus", "CPUs", "CPUs", |row| Cell::Text(ranges(&row.entry.cpus)))
        .csv_alone()
        .add("nodes", "nodes", "nodes", |row| Cell::Text(ranges(&row.entry.nodes)))
        .csv_alone()
}

/// `0-3,7`.
fn ranges(ids: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for id in ids {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *id => *last = *id,
            _ => parts.push((*id, *id)),
        }
    }
    let part = |(from, to): &(u32, u32)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

const SHOWN: [&str; 9] =
    ["objects", "bytes", "waste_bytes", "age_least", "age_mean", "age_most", "pids", "cpus", "nodes"];

fn heading(list: &List) -> String {
    let cache = list.cache.as_deref().unwrap_or("a cache");
    let what = if list.of_frees { "freed last by" } else { "allocated by" };
    format!("{cache}: {} objects {what}", list.objects())
}

fn notes(sites: &TrackedSites) -> Vec<String> {
    let mut notes = Vec::new();
    match sites.hz {
        Some(hz) => notes.push(format!("ages are seconds, of {hz} jiffies each")),
        None => notes.push("ages are jiffies; --hz N (the kernel's CONFIG_HZ) makes them seconds".into()),
    }
    if sites.empty > 0 {
        notes.push(format!("{} lists are empty", sites.empty));
    }
    if sites.lists.iter().any(|list| list.slab_size.is_none()) {
        notes.push("bytes need /sys/kernel/slab beside /sys/kernel/debug/slab".into());
    }
    notes
}

/// Each list: who allocated or freed most of its objects.
pub(super) fn answer(sites: &TrackedSites, top: usize) -> Answer {
    let columns = columns();
    let document = Document {
        jiffies_per_s: sites.hz,
        lists: sites.lists.iter().map(|list| list_document(sites, list)).collect(),
        path: sites.path.display().to_string(),
        remarks: notes(sites),
    };
    let mut answer = Answer::new(format!("Who allocated: {}", name_of(&sites.path)), sentence(sites))
        .document(&SitesDocument::Tracked(document))
        .rows(columns.frame(sites.lists.iter().flat_map(|list| rows(sites, list))));
    for list in &sites.lists {
        let rows = rows(sites, list);
        let (label, short) =
            (|row: &Row| Cell::Name(row.name()), |row: &Row| Cell::Name(fitted(&row.name(), NAME)));
        let text = columns.text(("site", &short), &SHOWN, rows.iter().take(top), Style::Kib);
        let table = columns.html(("call site", &label), &SHOWN, rows.iter().take(top));
        answer = answer.heading(heading(list)).table(text, &LEFT_OUT).section(&heading(list)).figure(
            &format!("{}.", heading(list)),
            bars(&rows, top),
            table,
        );
        if let more @ 1.. = rows.len().saturating_sub(top) {
            answer = answer.line(format!("... and {more} more (--top)"));
        }
    }
    answer.remarks(notes(sites))
}

fn sentence(sites: &TrackedSites) -> String {
    let Some(list) = sites.lists.first() else { return "No list has an object.".into() };
    let (first, most) =
        rows(sites, list).first().map_or_else(Default::default, |row| (row.name(), row.entry.count));
    let cache = list.cache.as_deref().unwrap_or("a cache");
    let all = list.objects();
    let of_all = number::percent(100.0 * most as f64 / all.max(1) as f64);
    let (all, most) = (number::count(all), number::count(most));
    match list.of_frees {
        false => {
            format!("Of {all} tracked objects of {cache} {first} allocated {most} ({of_all}), most of all.")
        }
        true => {
            format!("Of {all} tracked objects of {cache} {first} freed {most} ({of_all}) last, most of all.")
        }
    }
}

fn list_document<'a>(sites: &'a TrackedSites, list: &'a List) -> ListDocument {
    let columns = columns();
    let entry = |row: &Row<'a>| Entry {
        cpus: row.entry.cpus.clone(),
        nodes: row.entry.nodes.clone(),
        stack: row.entry.stack.clone(),
        columns: columns.json(row),
    };
    ListDocument {
        cache: list.cache.clone(),
        list: which(list),
        objects: list.objects(),
        sites: rows(sites, list).iter().map(entry).collect(),
        slab_size_bytes: list.slab_size,
    }
}

fn bars(rows: &[Row], top: usize) -> Bars {
    let bar = |row: &Row| Bar { label: row.name(), values: vec![row.entry.count as f64] };
    Bars {
        parts: vec!["objects".into()],
        first_colour: 0,
        bars: rows.iter().take(top.min(BARS)).map(bar).collect(),
        axis: Axis::new("objects", Scale::Whole),
        remainder: false,
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn neighbours_are_a_range() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[4]), "4");
        assert_eq!(ranges(&[0, 1, 2, 7, 9, 10]), "0-2,7,9-10");
    }
}
