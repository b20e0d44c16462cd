//! The blocks of the page of a recording's call sites.

use super::folded::{Weight, flame};
use super::recorded::{Row, columns, rows};
use crate::sites::{Recorded, Site};
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Scale, Stacked};
use slablab_report::html::{Cell, Head, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Bands of the time line beside that of all others.
const BANDS: usize = 5;
/// Times in its table.
const TIMES: usize = 11;
/// Caches in the tables beside flame graphs.
const CACHES: usize = 40;

/// The page's blocks: live memory over time, flame graphs, and the first `top` call sites.
pub(super) fn blocks(answer: Answer, sites: &Recorded, top: usize) -> Answer {
    let bands = bands(sites);
    let mut answer = answer
        .facts([
            ("Call sites", Cell::Count(sites.sites.len() as u64)),
            ("Allocations", Cell::Count(sites.sum(|site| site.allocs))),
            ("Live at the end", Cell::Bytes(sites.sum(|site| site.live_bytes))),
            ("Of these not requested", Cell::Bytes(sites.sum(|site| site.waste_bytes))),
            ("Recorded time", Cell::Text(Scale::Seconds.print(sites.seconds))),
            ("Events lost", Cell::Count(sites.metadata.losses.events)),
        ])
        .section("Live memory over time")
        .figure(
            "Bytes of objects that were allocated during the recording and live, by call site.",
            line(sites, &bands),
            line_table(sites, &bands),
        )
        .section("Where it goes");
    for weight in [Weight::Live, Weight::Waste, Weight::Allocs] {
        let flame = flame(sites, weight);
        if !flame.is_empty() {
            let between = if sites.has_stacks { "callers, from the outermost, and " } else { "" };
            let caption = format!(
                "Caches, below each its {between}call sites: widths are {}. A click on a frame widens it.",
                weight.name()
            );
            answer = answer.figure(&caption, flame, cache_table(sites, weight));
        }
    }
    let keys = ["cache", "live_objects", "live_bytes", "waste_bytes", "peak_bytes", "allocs", "allocs_per_s"];
    let times = ["median", "p90", "freed_same_cpu_percent", "freed_other_cpu_percent"];
    let keys = [&keys[..], &times, &["freed_other_node_percent", "task", "freed_by"]].concat();
    let all = rows(sites);
    let label = |row: &Row| Cell::Name(row.site.name.clone());
    let caption = format!("The first {} of {} call sites.", top.min(all.len()), all.len());
    let table = columns().html(("call site", &label), &keys, all.iter().take(top));
    answer.section("Call sites").page_table(&caption, table)
}

/// The sites that held most at any time: their bands, and one for all others.
fn bands(sites: &Recorded) -> Vec<(String, Vec<f64>)> {
    let mut most: Vec<&Site> = sites.sites.iter().collect();
    most.sort_by_key(|site| Reverse((site.peak_bytes, site.live_bytes)));
    let (own, others) = most.split_at(most.len().min(BANDS));
    let floats = |line: &[u64]| line.iter().map(|bytes| *bytes as f64).collect::<Vec<f64>>();
    let mut bands: Vec<(String, Vec<f64>)> =
        own.iter().map(|site| (format!("{} ({})", site.name, site.cache), floats(&site.line))).collect();
    if let Some(first) = others.first() {
        let sum = |place: usize| others.iter().map(|site| site.line[place] as f64).sum();
        bands.push((format!("{} others", others.len()), (0..first.line.len()).map(sum).collect()));
    }
    bands
}

fn times(sites: &Recorded, bands: &[(String, Vec<f64>)]) -> Vec<f64> {
    let places = bands.first().map_or(0, |band| band.1.len());
    (0..places).map(|place| sites.seconds * place as f64 / (places.max(2) - 1) as f64).collect()
}

fn line(sites: &Recorded, bands: &[(String, Vec<f64>)]) -> Stacked {
    Stacked {
        x: Axis::new("time", Scale::Seconds),
        y: Axis::new("live bytes", Scale::Bytes),
        at: times(sites, bands),
        parts: bands.to_vec(),
    }
}

fn line_table(sites: &Recorded, bands: &[(String, Vec<f64>)]) -> Table {
    let heads = bands.iter().map(|band| Head::number(&band.0));
    let mut table = Table::new(std::iter::once(Head::number("time")).chain(heads));
    let at = times(sites, bands);
    for step in 0..TIMES {
        let place = step * at.len().saturating_sub(1) / (TIMES - 1);
        let Some(time) = at.get(place) else { continue };
        let cells = bands.iter().map(|band| Cell::Bytes(band.1[place] as u64));
        table.row(std::iter::once(Cell::Text(Scale::Seconds.print(*time))).chain(cells));
    }
    table
}

/// The caches of a flame graph.
fn cache_table(sites: &Recorded, weight: Weight) -> Table {
    let mut caches: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for site in &sites.sites {
        let (value, count) = caches.entry(&site.cache).or_default();
        *value += match weight {
            Weight::Live | Weight::Peak => site.live_bytes,
            Weight::Waste => site.waste_bytes,
            Weight::Allocs => site.allocs,
        };
        *count += 1;
    }
    let whole: u64 = caches.values().map(|(value, _)| value).sum();
    let mut caches: Vec<_> = caches.into_iter().filter(|(_, (value, _))| *value > 0).collect();
    caches.sort_by_key(|(name, (value, _))| (Reverse(*value), *name));
    let mut table = Table::new([
        Head::text("cache"),
        Head::number(weight.name()),
        Head::number("share"),
        Head::number("call sites"),
    ]);
    for (name, (value, count)) in caches.into_iter().take(CACHES) {
        let cell = if weight == Weight::Allocs { Cell::Count(value) } else { Cell::Bytes(value) };
        let share = Cell::Percent(Some(100.0 * value as f64 / whole as f64));
        table.row([Cell::Name(name.into()), cell, share, Cell::Count(count)]);
    }
    table
}
