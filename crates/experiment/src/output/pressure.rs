//! Records as tables of phases; modelled runs beside real ones.

use crate::pressure::judge::{Cell as Judged, Judgement, NULL_MACHINE, PagesCell, Spread, Verdict};
use crate::pressure::tally::{Tally, tallies};
use serde_json::{Value, json};
use slablab_readers::vmrecord::{Phase, Record, State};
use slablab_report::column::{Columns, Style};
use slablab_report::html::{self, Cell, Head, Page};
use slablab_report::text::Table;
use std::fmt::Write;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.pressure-records.1";
const JUDGEMENT_SCHEMA: &str = "slablab.pressure-judgement.1";

/// A record with the name of its file.
pub type Named = (String, Record);

struct Row<'a> {
    record: &'a str,
    phase: &'a Phase,
}

/// The counters of /proc/vmstat that `show` has, with their heads.
const COUNTERS: [(&str, &str); 16] = [
    ("pswpin", "swapin"),
    ("pswpout", "swapout"),
    ("pgsteal_kswapd", "steal_k"),
    ("pgsteal_direct", "steal_d"),
    ("pgscan_kswapd", "scan_k"),
    ("pgscan_direct", "scan_d"),
    ("workingset_refault_anon", "refault_a"),
    ("workingset_refault_file", "refault_f"),
    ("workingset_activate_anon", "refact_a"),
    ("workingset_activate_file", "refact_f"),
    ("pgactivate", "activate"),
    ("pgdeactivate", "deactivate"),
    ("slabs_scanned", "slabs_scanned"),
    ("allocstall_movable", "stalls"),
    ("compact_stall", "compact"),
    ("oom_kill", "oom_kill"),
];

/// A count that no phase lowers; the folding of per-CPU parts can make it -1.
fn count(value: i64) -> Cell {
    Cell::Count(value.max(0) as u64)
}

fn columns<'a>() -> Columns<Row<'a>> {
    let columns = Columns::<Row>::default()
        .key("record", |row| Cell::Name(row.record.to_string()))
        .key("phase", |row| Cell::Name(row.phase.name.clone()))
        .add("elapsed_ms", "ms", "", |row| Cell::Count(row.phase.elapsed_ns / 1_000_000))
        .add("minflt", "minflt", "", |row| count(row.phase.rusage.minflt))
        .add("majflt", "majflt", "", |row| count(row.phase.rusage.majflt))
        .add("read_by_process_pages", "read_p", "", |row| count(row.phase.rusage.inblock / 8))
        .add("read_pages", "read", "", |row| count(row.phase.delta("pgpgin") / 4));
    let columns = COUNTERS.into_iter().fold(columns, |columns, (name, head)| {
        columns.add(name, head, "", move |row| count(row.phase.delta(name)))
    });
    columns.add("free_pages_end", "free", "", |row| count(row.phase.value("nr_free_pages"))).add(
        "slab_reclaimable_pages_end",
        "slab_recl",
        "",
        |row| count(row.phase.value("nr_slab_reclaimable")),
    )
}

fn rows<'a>(records: &'a [Named]) -> impl Iterator<Item = Row<'a>> {
    records
        .iter()
        .flat_map(|(name, record)| record.phases.iter().map(move |phase| Row { record: name, phase }))
}

/// The phases of records as text: counters that are 0 in all phases are left out.
pub fn pressure_records_table(records: &[Named], width: usize) -> String {
    let mut text = String::new();
    for (name, record) in records {
        let rows: Vec<Row> = record.phases.iter().map(|phase| Row { record: name, phase }).collect();
        let columns = columns();
        let keys: Vec<String> = columns.keys().skip(2).map(str::to_string).collect();
        let says = |key: &&String| rows.iter().any(|row| columns.json(row)[*key] != json!(0));
        let picked: Vec<&str> = keys.iter().filter(says).map(String::as_str).collect();
        let label = |row: &Row| Cell::Name(row.phase.name.clone());
        let end =
            if record.is_complete { "" } else { "; it has no @end: the process was killed, or the file cut" };
        writeln!(text, "{name}: {} phases{end}\n", record.phases.len()).expect("a string takes all text");
        text += &columns.text(("phase", &label), &picked, &rows, Style::Kib).print_within(width);
        text += "\nPages in memory, in swap, in neither, at the end of a phase:\n";
        text += &residency(record).print_within(width);
        text.push('\n');
    }
    text
}

/// A row for each phase and object.
fn residency(record: &Record) -> Table {
    let mut table = Table::new(["phase", "object", "pages", "present", "swapped", "absent"]).numbers(2..6);
    for phase in &record.phases {
        for object in &phase.residency {
            let [absent, present, swapped] = State::ALL.map(|state| object.pages.count(state).to_string());
            let pages = object.pages.pages().to_string();
            table.row([phase.name.clone(), object.name.clone(), pages, present, swapped, absent]);
        }
    }
    table
}

/// The phases of records as CSV, a row each.
pub fn pressure_records_csv(records: &[Named]) -> String {
    columns().csv(rows(records))
}

/// The phases of records as JSON, with all counters of /proc/vmstat and the counts of residency.
pub fn pressure_records_json(records: &[Named]) -> Value {
    let incomplete = records.iter().filter(|(_, record)| !record.is_complete).map(|(name, _)| name);
    json!({
        "schema": SCHEMA,
        "incomplete": incomplete.collect::<Vec<_>>(),
        "phases": rows(records).map(|row| phase_json(&columns(), &row)).collect::<Vec<_>>(),
    })
}

fn phase_json<'a>(columns: &Columns<Row<'a>>, row: &Row<'a>) -> Value {
    let mut value = columns.json(row);
    let counters = row.phase.vmstat.iter();
    let counters = counters.map(|one| (one.name.clone(), json!({ "delta": one.delta, "value": one.value })));
    value.insert("vmstat".into(), Value::Object(counters.collect()));
    let objects = row.phase.residency.iter().map(|object| {
        let [absent, present, swapped] = State::ALL.map(|state| object.pages.count(state));
        let pages = object.pages.pages();
        let counts = json!({ "pages": pages, "present": present, "swapped": swapped, "absent": absent });
        (object.name.clone(), counts)
    });
    value.insert("residency".into(), Value::Object(objects.collect()));
    Value::Object(value)
}

/// How much agrees, machine by machine, beside the tallies of the null answer and of the machine's repeats.
pub fn judgement_summary(judgement: &Judgement, null: &[Tally], repeats: &[Tally]) -> String {
    let heads = ["machine", "cells", "small", "agree", "differ", "null", "repeats"];
    let maps = ["maps", "pages", "repeats", "random", "null", "signs", "same"];
    let mut table = Table::new(heads.into_iter().chain(maps));
    for tally in tallies(judgement) {
        let differ = |tallies: &[Tally]| {
            let beside = tallies.iter().find(|beside| beside.machine == tally.machine);
            beside.map_or("-".into(), |beside| beside.differs().to_string())
        };
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        let counts = [tally.cells, tally.small, tally.agree, tally.differs()].map(|count| count.to_string());
        let pages = [Some(tally.agreement), tally.repeats, Some(tally.random), tally.null_machine];
        let pages = pages.map(|share| share.map_or("-".into(), percent));
        let signs = [tally.signs, tally.same_signs].map(|count| count.to_string());
        let beside = [differ(null), differ(repeats), tally.maps.to_string()];
        let row = [tally.machine].into_iter().chain(counts).chain(beside);
        table.row(row.chain(pages).chain(signs));
    }
    let mut text = format!(
        "Judged counts: cells; small: both means below 64; agree, differ; null, repeats: cells that differ in \
         the null answer (the real {NULL_MACHINE} for every machine), and in a real repeat.\nMaps: percent of \
         pages in the same state, in modelled runs, real repeats, pages at random, the null answer.\n\n{}",
        table.print()
    );
    for outcome in &judgement.outcomes {
        let of = |(had, all): (usize, usize)| format!("{had} of {all}");
        let (real, modelled) = (of(outcome.real), of(outcome.modelled));
        let (scenario, machine, what, p) = (&outcome.scenario, &outcome.machine, outcome.what, outcome.p);
        writeln!(text, "{scenario} {machine}: {what}: real {real}, modelled {modelled}, p {p:.2}")
            .expect("a string takes all text");
    }
    for tally in tallies(judgement) {
        let (machine, [cells, differ, undecided]) = (tally.machine, tally.bimodal);
        if cells > 0 {
            writeln!(
                text,
                "{machine}: {cells} judged counts of scenarios with two behaviours: {differ} differ by a rank \
                 test at 5 %, {undecided} have too few runs for it"
            )
            .expect("a string takes all text");
        }
    }
    text
}

/// Columns of a judged count.
fn judged() -> Columns<Judged> {
    Columns::<Judged>::default()
        .key("scenario", |cell| Cell::Name(cell.place.scenario.clone()))
        .key("machine", |cell| Cell::Name(cell.place.machine.clone()))
        .key("process", |cell| Cell::Name(cell.place.process.clone()))
        .key("phase", |cell| Cell::Name(cell.place.phase.clone()))
        .key("measure", |cell| Cell::Text(cell.measure.name.into()))
        .key("real_mean", |cell| Cell::Number(cell.real.mean, 1))
        .key("real_min", |cell| Cell::Number(cell.real.min as f64, 0))
        .key("real_max", |cell| Cell::Number(cell.real.max as f64, 0))
        .key("modelled_mean", |cell| Cell::Number(cell.modelled.mean, 1))
        .key("modelled_min", |cell| Cell::Number(cell.modelled.min as f64, 0))
        .key("modelled_max", |cell| Cell::Number(cell.modelled.max as f64, 0))
        .key("judged", |cell| Cell::Count((cell.measure.is_judged && cell.place.is_counted()).into()))
        .key("verdict", |cell| Cell::Text(cell.verdict.word().into()))
        .key("p", |cell| cell.p.map_or(Cell::Text(String::new()), |p| Cell::Number(p, 3)))
        .key("noise_percent", |cell| Cell::Percent(cell.noise()))
        .key("null_mean", |cell| null(cell, |null, _| Cell::Number(null.mean, 1)))
        .key("null_verdict", |cell| null(cell, |_, verdict| Cell::Text(verdict.word().into())))
}

/// What the null answer says of a count; empty without its runs.
fn null(cell: &Judged, of: impl Fn(&Spread, Verdict) -> Cell) -> Cell {
    cell.null_machine.map_or(Cell::Text(String::new()), |(null, verdict)| of(&null, verdict))
}

/// Every cell as CSV.
pub fn judgement_csv(judgement: &Judgement) -> String {
    judged().csv(&judgement.cells)
}

/// Columns of a residency map. Shares of pages in percent.
fn maps() -> Columns<PagesCell> {
    let percent = |share: Option<f64>| Cell::Percent(share.map(|share| share * 100.0));
    Columns::<PagesCell>::default()
        .key("scenario", |cell| Cell::Name(cell.place.scenario.clone()))
        .key("machine", |cell| Cell::Name(cell.place.machine.clone()))
        .key("process", |cell| Cell::Name(cell.place.process.clone()))
        .key("phase", |cell| Cell::Name(cell.place.phase.clone()))
        .key("object", |cell| Cell::Name(cell.object.clone()))
        .key("agreement_percent", move |cell| percent(Some(cell.agreement)))
        .key("repeats_percent", move |cell| percent(cell.repeats))
        .key("random_percent", move |cell| percent(Some(cell.random)))
        .key("null_machine_percent", move |cell| percent(cell.null_machine))
        .key("judged", |cell| Cell::Count(cell.is_counted().into()))
}

/// Every residency map as CSV. Shares of pages in percent.
pub fn judgement_pages_csv(judgement: &Judgement) -> String {
    maps().csv(&judgement.pages)
}

/// Every count, map, difference between LRUs and outcome.
pub fn judgement_json(judgement: &Judgement) -> Value {
    let (judged, maps) = (judged(), maps());
    let signs = judgement.signs.iter().map(|sign| {
        let place = &sign.place;
        json!({
            "scenario": place.scenario, "machine": place.machine, "process": place.process,
            "phase": place.phase, "measure": sign.measure.name, "real": sign.real,
            "modelled": sign.modelled, "same_sign": sign.is_same(),
        })
    });
    let outcomes = judgement.outcomes.iter().map(|outcome| {
        let of = |(had, runs): (usize, usize)| json!({ "had": had, "runs": runs });
        json!({
            "scenario": outcome.scenario, "machine": outcome.machine, "outcome": outcome.what,
            "real": of(outcome.real), "modelled": of(outcome.modelled), "p": outcome.p,
        })
    });
    json!({
        "schema": JUDGEMENT_SCHEMA,
        "cells": judgement.cells.iter().map(|cell| judged.json(cell)).collect::<Vec<_>>(),
        "maps": judgement.pages.iter().map(|map| maps.json(map)).collect::<Vec<_>>(),
        "signs": signs.collect::<Vec<_>>(),
        "outcomes": outcomes.collect::<Vec<_>>(),
    })
}

/// The judged counts that differ, a row each: first those that the tallies count, then those of scenarios
/// with two behaviours.
pub fn judgement_differences(judgement: &Judgement) -> String {
    let differs = |cell: &&Judged| cell.verdict == Verdict::Differs && cell.measure.is_judged;
    let (counted, bimodal): (Vec<&Judged>, Vec<&Judged>) =
        judgement.cells.iter().filter(differs).partition(|cell| cell.place.is_counted());
    let mut text = format!("\nJudged counts that differ:\n\n{}", differences(&counted));
    if !bimodal.is_empty() {
        text += "\nCounts of scenarios with two behaviours whose distributions differ:\n\n";
        text += &differences(&bimodal);
    }
    text + "\nnoise: largest minus smallest real value in percent of their mean; null: mean of the real \
            61-classic, and whether it agrees.\n"
}

fn differences(cells: &[&Judged]) -> String {
    let real = ["scenario", "machine", "phase", "count", "real", "min", "max"];
    let heads = real.into_iter().chain(["noise", "modelled", "min", "max", "null", "it"]);
    let mut table = Table::new(heads).numbers(4..12);
    for cell in cells {
        let of = |of: &Spread| [format!("{:.0}", of.mean), of.min.to_string(), of.max.to_string()];
        let place = &cell.place;
        let phase = match place.process.as_str() {
            "" => place.phase.clone(),
            process => format!("{process}: {}", place.phase),
        };
        let words = [place.scenario.clone(), place.machine.clone(), phase, cell.measure.name.to_string()];
        let noise = cell.noise().map_or("-".into(), |noise| format!("{noise:.0}"));
        let null = cell.null_machine.map_or(["-".into(), String::new()], |(null, verdict)| {
            [format!("{:.0}", null.mean), verdict.word().to_string()]
        });
        table.row(
            words.into_iter().chain(of(&cell.real)).chain([noise]).chain(of(&cell.modelled)).chain(null),
        );
    }
    table.print()
}

/// The judgement as a page; `summary` is its text, `command` what made it.
pub fn judgement_page(judgement: &Judgement, summary: &str, command: &str) -> String {
    let mut page = Page::new("Modelled memory pressure beside real kernels", command);
    page.section("How much agrees").command(summary.trim_end());
    page.section("Counts").table(
        "Every count: mean and range of real repeats and of modelled seeds.",
        &whole(&judged(), &judgement.cells),
    );
    page.section("Pages").table("Percent of pages in the same state.", &whole(&maps(), &judgement.pages));
    page.finish()
}

/// A table of all columns.
fn whole<R>(columns: &Columns<R>, rows: &[R]) -> html::Table {
    let mut table = html::Table::new(columns.keys().map(Head::text));
    for row in rows {
        table.row(columns.cells(row));
    }
    table
}
