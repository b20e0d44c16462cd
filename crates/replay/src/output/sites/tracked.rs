//! SLUB's debugging lists as text, JSON, CSV and a page.

use super::SCHEMA;
use crate::sites::{List, TrackedSites};
use serde_json::{Value, json};
use slablab_readers::tracked::Tracked;
use slablab_report::column::{Columns, Style};
use slablab_report::html::chart::{Axis, Bar, Bars, Scale};
use slablab_report::html::{Cell, Page, name_of};
use slablab_report::visible;
use std::fmt::Write;

/// Bars of a figure.
const BARS: usize = 24;

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

fn columns<'a>() -> Columns<Row<'a>> {
    Columns::<Row>::default()
        .key("cache", |row| row.list.cache.clone().map_or(Cell::Empty, Cell::Name))
        .key("list", |row| Cell::Text(if row.list.of_frees { "frees" } else { "allocs" }.into()))
        .key("site", |row| row.entry.site.clone().map_or(Cell::Empty, Cell::Name))
        .key("module", |row| row.entry.module.clone().map_or(Cell::Empty, Cell::Name))
        .add("objects", "objects", "objects", |row| Cell::Count(row.entry.count))
        .add("bytes", "bytes", "bytes", |row| row.bytes().map_or(Cell::Empty, Cell::Bytes))
        .bytes()
        .add("waste_bytes", "waste", "waste", |row| {
            row.entry.waste.map_or(Cell::Empty, |(all, _)| Cell::Bytes(all))
        })
        .bytes()
        .people("age_least", "youngest", "youngest", |row| row.age(0))
        .people("age_mean", "mean age", "mean age", |row| row.age(1))
        .people("age_most", "oldest", "oldest", |row| row.age(2))
        .key("age_least_jiffies", |row| row.entry.age.map_or(Cell::Empty, |ages| Cell::Count(ages[0])))
        .key("age_mean_jiffies", |row| row.entry.age.map_or(Cell::Empty, |ages| Cell::Count(ages[1])))
        .key("age_most_jiffies", |row| row.entry.age.map_or(Cell::Empty, |ages| Cell::Count(ages[2])))
        .people("pids", "pids", "tasks", |row| match row.entry.pids {
            None => Cell::Empty,
            Some((from, to)) if from == to => Cell::Text(from.to_string()),
            Some((from, to)) => Cell::Text(format!("{from}-{to}")),
        })
        .key("pid_least", |row| row.entry.pids.map_or(Cell::Empty, |(from, _)| Cell::Change(from)))
        .key("pid_most", |row| row.entry.pids.map_or(Cell::Empty, |(_, to)| Cell::Change(to)))
        .add("cpus", "CPUs", "CPUs", |row| Cell::Text(ranges(&row.entry.cpus)))
        .add("nodes", "nodes", "nodes", |row| Cell::Text(ranges(&row.entry.nodes)))
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

pub(super) fn notes(sites: &TrackedSites) -> Vec<String> {
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

pub(super) fn table(sites: &TrackedSites, top: usize) -> String {
    let mut out = String::new();
    let mut write = || -> std::fmt::Result {
        for list in &sites.lists {
            writeln!(out, "{}\n", visible::name(&heading(list)))?;
            let rows = rows(sites, list);
            let label = |row: &Row| Cell::Name(row.name());
            let columns = columns();
            let shown = columns.text(("site", &label), &SHOWN, rows.iter().take(top), Style::Kib);
            out.push_str(&shown.print());
            if rows.len() > top {
                writeln!(out, "... and {} more (--top)", rows.len() - top)?;
            }
            out.push('\n');
        }
        notes(sites).iter().try_for_each(|note| writeln!(out, "{note}"))
    };
    write().expect("a string takes everything");
    out
}

pub(super) fn csv(sites: &TrackedSites) -> String {
    columns().csv(sites.lists.iter().flat_map(|list| rows(sites, list)))
}

pub(super) fn json(sites: &TrackedSites) -> Value {
    let columns = columns();
    json!({
        "schema": SCHEMA,
        "of": "traces",
        "path": sites.path.display().to_string(),
        "jiffies_per_s": sites.hz,
        "remarks": notes(sites),
        "lists": sites.lists.iter().map(|list| json!({
            "cache": list.cache,
            "list": if list.of_frees { "frees" } else { "allocs" },
            "slab_size_bytes": list.slab_size,
            "objects": list.objects(),
            "sites": rows(sites, list).iter().map(|row| entry_json(&columns, row)).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn entry_json<'a>(columns: &Columns<Row<'a>>, row: &Row<'a>) -> Value {
    let mut value = columns.json(row);
    ["cache", "list"].iter().for_each(|key| drop(value.remove(*key)));
    value.insert("cpus".into(), json!(row.entry.cpus));
    value.insert("nodes".into(), json!(row.entry.nodes));
    value.insert("stack".into(), json!(row.entry.stack));
    Value::Object(value)
}

pub(super) fn page(sites: &TrackedSites, command: &str, top: usize) -> Page {
    let mut page = Page::new(&format!("Who allocated: {}", name_of(&sites.path)), command);
    if let Some(list) = sites.lists.first() {
        let first = rows(sites, list).first().map_or(String::new(), Row::name);
        page.lede(&format!("{}; most of them, {}, by {first}.", heading(list), list.sites[0].count));
    }
    for list in &sites.lists {
        page.section(&heading(list));
        let all = rows(sites, list);
        let bar = |row: &Row| Bar { label: row.name(), values: vec![row.entry.count as f64] };
        let bars = Bars {
            parts: vec!["objects".into()],
            first_colour: 0,
            bars: all.iter().take(top.min(BARS)).map(bar).collect(),
            axis: Axis::new("objects", Scale::Whole),
            remainder: false,
        };
        let label = |row: &Row| Cell::Name(row.name());
        let table = columns().html(("call site", &label), &SHOWN, all.iter().take(top));
        page.figure(&format!("{}.", heading(list)), &bars, &table);
    }
    page.evidence(&notes(sites));
    page
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
