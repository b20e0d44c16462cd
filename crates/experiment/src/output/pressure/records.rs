//! Records of memory pressure as tables of phases.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_readers::vmrecord::{Phase, Record, State};
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::text::{Table, grouped};
use slablab_report::{Answer, Document};
use std::collections::BTreeMap;

/// Columns that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 16] = [
    "slab_recl",
    "refact_a",
    "refact_f",
    "deactivate",
    "activate",
    "compact",
    "stalls",
    "slabs_scanned",
    "scan_d",
    "scan_k",
    "refault_a",
    "refault_f",
    "oom_kill",
    "read_p",
    "free",
    "minflt",
];

/// The phases of records.
#[derive(Serialize, JsonSchema)]
struct RecordsDocument {
    /// The records without an end: the process was killed, or the file is cut.
    incomplete: Vec<String>,
    #[schemars(schema_with = "phases")]
    phases: Vec<Map<String, Value>>,
}

impl Document for RecordsDocument {
    const NAME: &str = "slablab.pressure-records.1";
    const TITLE: &str = "slablab pressure show: the phases of records";
}

/// A counter of /proc/vmstat.
#[derive(Serialize, JsonSchema)]
struct CounterDocument {
    /// Its change in the phase.
    delta: i64,
    /// Its value at the end of the phase.
    value: i64,
}

/// Pages of an object.
#[derive(Serialize, JsonSchema)]
struct PagesDocument {
    absent: u32,
    pages: u32,
    present: u32,
    swapped: u32,
}

pub(super) fn schema() -> Named {
    named::<RecordsDocument>()
}

/// The answer of `pressure show`: records by the names of their files. The text has no counters that are 0 in
/// all phases of a record.
pub fn records_answer(records: &[(String, Record)]) -> Answer {
    let incomplete = || records.iter().filter(|(_, record)| !record.is_complete).map(|(name, _)| name);
    let document = RecordsDocument {
        incomplete: incomplete().cloned().collect(),
        phases: rows(records).map(|row| phase_json(&columns(), &row)).collect(),
    };
    let lacks = |name: &String| format!("{name}: it has no @end: the process was killed, or the file cut");
    let answer = Answer::new("Records of memory pressure", sentence(records))
        .warnings(incomplete().map(lacks))
        .document(&document)
        .rows(columns().frame(rows(records)));
    records.iter().fold(answer, |answer, (name, record)| {
        let answer = if records.len() > 1 { answer.heading(format!("{name}:")) } else { answer };
        let answer = answer.table(phases_table(name, record), &LEFT_OUT);
        let residency = residency(record);
        if residency.is_empty() {
            return answer;
        }
        let head = "Pages in memory, in swap, in neither, at the end of a phase:";
        answer.heading(head).table(residency, &[])
    })
}

/// What was swapped. The counters are of the whole machine, so those of several records cannot be added.
fn sentence(records: &[(String, Record)]) -> String {
    let rows: Vec<Row<'_>> = rows(records).collect();
    let of = match (records, rows.len()) {
        ([(name, _)], _) => name.clone(),
        (records, _) => format!("{} records", records.len()),
    };
    let of = match rows.len() {
        0 => return format!("No phase is in {of}."),
        1 => format!("the only phase of {of}"),
        phases => format!("the {phases} phases of {of}"),
    };
    let swapped = |row: &Row<'_>| ["pswpout", "pswpin"].map(|counter| row.phase.delta(counter).max(0) as u64);
    let shown = |[out, back]: [u64; 2]| {
        let pages = if out == 1 { "page was" } else { "pages were" };
        format!("{} {pages} swapped out and {} in", grouped(out), grouped(back))
    };
    let most = rows.iter().rev().max_by_key(|row| swapped(row).iter().sum::<u64>());
    match most.filter(|row| swapped(row) != [0, 0]) {
        None => format!("No page was swapped in {of}."),
        Some(most) if rows.len() == 1 => format!("In {of} {}.", shown(swapped(most))),
        Some(most) => {
            let whose = if records.len() > 1 { format!(" of {}", most.record) } else { String::new() };
            format!("Of {of} most was swapped in {}{whose}: {}.", most.phase.name, shown(swapped(most)))
        }
    }
}

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

fn rows<'a>(records: &'a [(String, Record)]) -> impl Iterator<Item = Row<'a>> {
    records
        .iter()
        .flat_map(|(name, record)| record.phases.iter().map(move |phase| Row { record: name, phase }))
}

/// The phases of a record, without the counters that are 0 in all of them.
fn phases_table(name: &str, record: &Record) -> Table {
    let rows: Vec<Row<'_>> = record.phases.iter().map(|phase| Row { record: name, phase }).collect();
    let columns = columns();
    let keys: Vec<String> = columns.keys().skip(2).map(str::to_string).collect();
    let says = |key: &&String| rows.iter().any(|row| columns.json(row)[*key] != json!(0));
    let picked: Vec<&str> = keys.iter().filter(says).map(String::as_str).collect();
    let label = |row: &Row<'_>| Cell::Name(row.phase.name.clone());
    columns.text(("phase", &label), &picked, &rows, Style::Kib)
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

/// A phase with all counters of /proc/vmstat and the counts of residency.
fn phase_json<'a>(columns: &Columns<Row<'a>>, row: &Row<'a>) -> Map<String, Value> {
    let counters = row.phase.vmstat.iter();
    let counters = counters.map(|one| (&one.name, CounterDocument { delta: one.delta, value: one.value }));
    let objects = row.phase.residency.iter().map(|object| {
        let [absent, present, swapped] = State::ALL.map(|state| object.pages.count(state));
        (&object.name, PagesDocument { absent, pages: object.pages.pages(), present, swapped })
    });
    let mut members = columns.json(row);
    members.insert("vmstat".into(), json!(counters.collect::<BTreeMap<_, _>>()));
    members.insert("residency".into(), json!(objects.collect::<BTreeMap<_, _>>()));
    members
}

/// The schema of [`phase_json`].
fn phases(generator: &mut SchemaGenerator) -> Schema {
    let phase = Phase::default();
    let mut row = columns().schema(&Row { record: "", phase: &phase });
    let mut add = |name: &str, schema: Schema, description: &str| {
        row["properties"][name] = schema.to_value();
        row["properties"][name]["description"] = description.into();
        row["required"].as_array_mut().expect("a list of names").push(name.into());
    };
    let counters = generator.subschema_for::<BTreeMap<String, CounterDocument>>();
    add("vmstat", counters, "Counters of /proc/vmstat: change in the phase, and value at its end.");
    let pages = generator.subschema_for::<BTreeMap<String, PagesDocument>>();
    add("residency", pages, "Pages of each object at the end of the phase.");
    Schema::try_from(json!({ "type": "array", "items": row })).expect("an object is a schema")
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_readers::vmrecord::{Counter, ObjectResidency, Residency};

    /// A record with a phase for each pair of pages swapped out and in.
    fn record(phases: &[[i64; 2]], is_complete: bool) -> Record {
        let phase = |(number, [out, back]): (usize, &[i64; 2])| Phase {
            name: format!("phase{number}"),
            vmstat: [("pswpout", out), ("pswpin", back)]
                .into_iter()
                .chain(COUNTERS.iter().skip(2).map(|(name, _)| (*name, out)))
                .map(|(name, delta)| Counter { name: name.into(), delta: *delta, value: *delta })
                .collect(),
            residency: vec![ObjectResidency { name: "a".into(), pages: Residency::of([State::Present]) }],
            ..Phase::default()
        };
        let phases = phases.iter().enumerate().map(phase).collect();
        Record { phases, notes: Vec::new(), is_complete }
    }

    /// The sentence in the situations that it tells apart, and the columns that the text has at most.
    #[test]
    fn the_sentence_says_what_was_swapped() {
        let check = |records: &[Record], expected: &str| {
            let named = |(number, record): (usize, &Record)| (format!("rec{number}"), record.clone());
            let records: Vec<_> = records.iter().enumerate().map(named).collect();
            let answer = records_answer(&records);
            assert_eq!(answer.sentence(), expected);
            let text = answer.text(false);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            let is_complete = records.iter().all(|(_, record)| record.is_complete);
            assert_eq!(text.contains("it has no @end"), !is_complete, "{text}");
        };
        check(&[record(&[], true)], "No phase is in rec0.");
        check(&[record(&[[0, 0]], true)], "No page was swapped in the only phase of rec0.");
        let one = "In the only phase of rec0 11,368 pages were swapped out and 0 in.";
        check(&[record(&[[11_368, 0]], false)], one);
        let most = "Of the 3 phases of rec0 most was swapped in phase1: 1 page was swapped out and 2,000 in.";
        check(&[record(&[[5, 6], [1, 2_000], [0, 0]], true)], most);
        let several = "Of the 4 phases of 2 records most was swapped in phase0 of rec1: 12,345,678 pages were \
                       swapped out and 1 in.";
        check(&[record(&[[5, 6]], true), record(&[[12_345_678, 1], [1, 1], [2, 2]], false)], several);
        check(&[record(&[], true), record(&[], true)], "No phase is in 2 records.");
    }
}
