//! The blocks of the page of a program's call sites.

use super::folded::{Weight, flame_of};
use super::over_time::OverTime;
use super::program::{KEYS, columns, paths, spoken, value};
use crate::sites::{Program, ProgramSite};
use slablab_report::Answer;
use slablab_report::html::chart::Scale;
use slablab_report::html::{Cell, Head, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The page's blocks: live memory over time, flame graphs, and the first `top` call sites.
pub(super) fn blocks(answer: Answer, program: &Program, top: usize) -> Answer {
    let over_time = over_time(program);
    let resident = program.resident.map(|resident| ("In memory at the end", Cell::Bytes(resident.end)));
    let mut answer = answer
        .facts(
            [
                ("Call sites", Cell::Count(program.sites.len() as u64)),
                ("Allocations", Cell::Count(program.allocs)),
                ("Live at most", Cell::Bytes(program.peak[0])),
                ("Live at the end", Cell::Bytes(program.end[0])),
                ("Recorded time", Cell::Text(Scale::Seconds.print(program.seconds))),
            ]
            .into_iter()
            .chain(resident),
        )
        .section("Live memory over time")
        .figure("Bytes of blocks that live, by call site.", over_time.chart(), over_time.table())
        .section("Where it goes");
    for weight in [Weight::Peak, Weight::Live, Weight::Waste, Weight::Allocs] {
        let mut paths = paths(program, weight);
        paths.iter_mut().flat_map(|(frames, _)| frames).for_each(|frame| *frame = spoken(frame));
        let flame = flame_of(paths, weight, weight.of_program());
        if !flame.is_empty() {
            let caption = format!(
                "Call chains from the outermost function: widths are {}. A click on a frame widens it.",
                weight.of_program()
            );
            answer = answer.figure(&caption, flame, site_table(program, weight));
        }
    }
    let label = |site: &ProgramSite| Cell::Name(spoken(&site.name));
    let caption =
        format!("The first {} of {} call sites.", top.min(program.sites.len()), program.sites.len());
    let table = columns().html(("call site", &label), &KEYS, program.sites.iter().take(top));
    answer.section("Call sites").page_table(&caption, table)
}

/// Live memory over time, of the sites that held most at the peak.
fn over_time(program: &Program) -> OverTime {
    let mut most: Vec<&ProgramSite> = program.sites.iter().collect();
    most.sort_by_key(|site| Reverse((site.numbers.peak_bytes, site.numbers.live_bytes)));
    OverTime::of(program.seconds, most.iter().map(|site| (spoken(&site.name), &site.line[..])))
}

/// The sites of a flame graph.
fn site_table(program: &Program, weight: Weight) -> Table {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for chain in &program.chains {
        *sums.entry(&chain.site).or_default() += value(&chain.numbers, weight);
    }
    let mut sums: Vec<(&str, u64)> = sums.into_iter().filter(|(_, value)| *value > 0).collect();
    sums.sort_by_key(|(name, value)| (Reverse(*value), *name));
    let mut table = Table::new([Head::text("call site"), Head::number(weight.of_program())]);
    for (name, value) in sums {
        let cell = if weight == Weight::Allocs { Cell::Count(value) } else { Cell::Bytes(value) };
        table.row([Cell::Name(spoken(name)), cell]);
    }
    table
}
