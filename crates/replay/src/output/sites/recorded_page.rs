//! The blocks of the page of a recording's call sites.

use super::folded::{Weight, flame};
use super::over_time::OverTime;
use super::recorded::{Row, columns, rows};
use crate::sites::{Recorded, Site};
use slablab_report::Answer;
use slablab_report::html::chart::Scale;
use slablab_report::html::{Cell, Head, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Caches in the tables beside flame graphs.
const CACHES: usize = 40;

/// The page's blocks: live memory over time, flame graphs, and the first `top` call sites.
pub(super) fn blocks(answer: Answer, sites: &Recorded, top: usize) -> Answer {
    let over_time = over_time(sites);
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
            over_time.chart(),
            over_time.table(),
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

/// Live memory over time, of the sites that held most at any time.
fn over_time(sites: &Recorded) -> OverTime {
    let mut most: Vec<&Site> = sites.sites.iter().collect();
    most.sort_by_key(|site| Reverse((site.peak_bytes, site.live_bytes)));
    let name = |site: &Site| format!("{} ({})", site.name, site.cache);
    OverTime::of(sites.seconds, most.iter().map(|site| (name(site), &site.line[..])))
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
