//! A script under page replacement: counters by phase, modelled beside real, and the memory over time.

use crate::output::memory::{Column, mmtests_vmstat, page_blocks};
use crate::pressure::rows::{Row, rows};
use crate::pressure::run::Run;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::vmrecord::Record;
use slablab_report::document::{Named, named};
use slablab_report::frame::Frame;
use slablab_report::html::{Cell, name_of};
use slablab_report::text::{Table, grouped};
use slablab_report::{Answer, Document};
use std::path::Path;

/// Columns that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 4] = ["each seed", "most", "least", "ratio"];

/// Counters by phase.
#[derive(Serialize, JsonSchema)]
struct RunDocument<'a> {
    rows: &'a [Row],
}

impl Document for RunDocument<'_> {
    const NAME: &'static str = "slablab.pressure-run.1";
    const TITLE: &'static str = "slablab pressure run: counters by phase";
}

pub(super) fn schema() -> Named {
    named::<RunDocument>()
}

/// The answer of `pressure run`: the runs of the first column by phase, beside `real` records by process. The
/// form `mmtests` and the page have the runs of all columns, of which there is one at least.
pub fn run_answer(script: &Path, columns: &[Column<'_>], real: &[(String, Record)]) -> Answer {
    let (title, runs) = (format!("{} under memory pressure", name_of(script)), &columns[0].1);
    let rows = rows(runs, real);
    let answer = Answer::new(title, sentence(&name_of(script), columns, real))
        .document(&RunDocument { rows: &rows })
        .rows(frame(&rows))
        .form("mmtests", mmtests_vmstat(columns))
        .table(table(&rows, runs.len()), &LEFT_OUT)
        .remarks(["All times are predicted by the model.".into()]);
    page_blocks(answer, columns)
}

/// Pages swapped and major faults of a run; the median of several.
fn sentence(script: &str, columns: &[Column<'_>], real: &[(String, Record)]) -> String {
    let mut sentence = String::new();
    for (vm, runs) in columns {
        let mut all: Vec<[i64; 3]> = runs.iter().map(|run| totals(&run.records)).collect();
        let medians = std::array::from_fn(|at| {
            all.sort_unstable_by_key(|totals| totals[at]);
            all[all.len() / 2][at]
        });
        sentence += if sentence.is_empty() { "Under" } else { "; under" };
        sentence += &format!(" {vm} {script} {}", swaps(medians));
        if runs.len() > 1 {
            sentence += &format!(" (medians of {} seeds)", runs.len());
        }
        match runs.iter().map(|run| run.killed.len()).sum() {
            0 => {}
            killed => sentence += &format!(", and {} killed", counted(killed as i64, "process", "processes")),
        }
    }
    if !real.is_empty() {
        sentence += &format!("; under the real kernel it {}", swaps(totals(real)));
    }
    sentence + "."
}

fn counted(count: i64, one: &str, several: &str) -> String {
    format!("{} {}", grouped(count.max(0) as u64), if count == 1 { one } else { several })
}

/// Pages swapped out and in of the whole machine, and major faults of all processes.
fn totals(records: &[(String, Record)]) -> [i64; 3] {
    let main = || records.iter().filter(|(process, _)| process.is_empty()).flat_map(|(_, of)| &of.phases);
    let delta = |counter| main().map(|phase| phase.delta(counter)).sum();
    let faults = records.iter().flat_map(|(_, of)| &of.phases).map(|phase| phase.rusage.majflt);
    [delta("pswpout"), delta("pswpin"), faults.sum()]
}

fn swaps([out, back, faults]: [i64; 3]) -> String {
    let faults = counted(faults, "major fault", "major faults");
    match (out, back) {
        (..=0, ..=0) => format!("swaps no page and has {faults}"),
        _ => {
            let (out, back) = (counted(out, "page", "pages"), grouped(back.max(0) as u64));
            format!("swaps {out} out and {back} in, and has {faults}")
        }
    }
}

/// The rows of `seeds` runs.
fn table(rows: &[Row], seeds: usize) -> Table {
    let has_real = rows.iter().any(|row| row.real.is_some());
    let of_seeds: &[&str] = if seeds > 1 { &["least", "most"] } else { &[] };
    let real: &[&str] = if has_real { &["real", "ratio"] } else { &[] };
    let each: &[&str] = if seeds > 1 { &["each seed"] } else { &[] };
    let mut table =
        Table::new([&["phase", "counter", "modelled"], of_seeds, real, each].concat()).numbers(2..usize::MAX);
    for row in rows {
        let phase = match row.process.as_str() {
            "" => row.phase.clone(),
            process => format!("{process}: {}", row.phase),
        };
        let mut cells = vec![phase, row.counter.clone(), row.middle().to_string()];
        if seeds > 1 {
            let ends = [row.modelled.iter().min(), row.modelled.iter().max()];
            cells.extend(ends.map(|end| end.map_or(String::new(), i64::to_string)));
        }
        if has_real {
            cells.push(row.real.map_or(String::new(), |real| real.to_string()));
            let ratio = |ratio: i64| format!("{}.{:03}", ratio / 1_000, ratio % 1_000);
            cells.push(row.ratio().map_or(String::new(), ratio));
        }
        if seeds > 1 {
            cells.push(row.modelled.iter().map(i64::to_string).collect::<Vec<_>>().join(" "));
        }
        table.row(cells);
    }
    table
}

fn frame(rows: &[Row]) -> Frame {
    let mut frame = Frame::new(["process", "phase", "counter", "seed_index", "modelled", "real"]);
    for row in rows {
        let name = |name: &String| Cell::Name(name.clone());
        for (at, value) in row.modelled.iter().enumerate() {
            frame.row([
                name(&row.process),
                name(&row.phase),
                name(&row.counter),
                Cell::Count(at as u64),
                Cell::Change(*value),
                row.real.map_or(Cell::Empty, Cell::Change),
            ]);
        }
    }
    frame
}

/// A line for each process that was killed because no page was free, and below it the processes that there
/// were then.
pub fn killed(run: &Run) -> Vec<String> {
    let name = |name: &str| if name.is_empty() { "(script)".into() } else { name.to_string() };
    let mut lines = Vec::new();
    for killed in &run.killed {
        lines.push(format!(
            "out of memory at {} ms: a block of order {}, {} pages free; killed {}. Pages in frames, in swap, \
             and page tables:",
            killed.at / 1_000_000_000,
            killed.order,
            killed.free,
            name(&killed.name)
        ));
        let process = |(of, resident, swapped, tables): &(String, u64, u64, u64)| {
            format!("  {:16} {resident:>10} {swapped:>10} {tables:>10}", name(of))
        };
        lines.extend(killed.processes.iter().map(process));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pressure::looked::Looked;
    use slablab_readers::vmrecord::{Counter, Phase, Rusage};

    fn record([out, back, faults]: [i64; 3]) -> Record {
        let counter = |name: &str, delta| Counter { name: name.into(), delta, value: delta };
        let phase = Phase {
            name: "fill_of_a_phase_with_a_long_name".into(),
            rusage: Rusage { majflt: faults, ..Rusage::default() },
            vmstat: vec![counter("pswpout", out), counter("pswpin", back)],
            ..Phase::default()
        };
        Record { phases: vec![phase], notes: Vec::new(), is_complete: true }
    }

    /// The sentence in the situations that it tells apart, and the columns that the text has at most.
    #[test]
    fn the_sentence_says_what_was_swapped() {
        let check = |vms: &[&str], counts: &[[i64; 3]], real: Option<[i64; 3]>, expected: &str| {
            let run = |(seed, counts): (usize, &[i64; 3])| Run {
                seed: seed as u64,
                records: vec![(String::new(), record(*counts))],
                killed: Vec::new(),
                accesses: 1,
                looked: Looked::default(),
            };
            let runs: Vec<Run> = counts.iter().enumerate().map(run).collect();
            let column = |vm: &&str| (vm.to_string(), runs.iter().collect::<Vec<_>>());
            let columns: Vec<Column<'_>> = vms.iter().map(column).collect();
            let real: Vec<_> = real.into_iter().map(|counts| (String::new(), record(counts))).collect();
            let answer = run_answer(Path::new("folder/my.t"), &columns, &real);
            assert_eq!(answer.sentence(), expected);
            let text = answer.text(false);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains("majflt"), "{text}");
        };
        let none = "Under vm@6.1 my.t swaps no page and has 1 major fault.";
        check(&["vm@6.1"], &[[0, 0, 1]], None, none);
        let some = "swaps 11,368 pages out and 5 in, and has 12 major faults";
        check(&["vm@6.1"], &[[11_368, 5, 12]], None, &format!("Under vm@6.1 my.t {some}."));
        let three = [[11_368, 4, 13], [20_000, 5, 12], [1, 6, 12]];
        let medians = format!("my.t {some} (medians of 3 seeds)");
        check(&["vm@6.1"], &three, None, &format!("Under vm@6.1 {medians}."));
        let both = format!("Under vm@6.1 {medians}; under vm@6.12 {medians}.");
        check(&["vm@6.1", "vm@6.12"], &three, None, &both);
        let real = format!("Under vm@6.1 my.t {some}; under the real kernel it {some}.");
        check(&["vm@6.1"], &[[11_368, 5, 12]], Some([11_368, 5, 12]), &real);
        let many = [[1_000_000_000_000, 5, 12]; 20];
        let huge = "Under vm@6.1 my.t swaps 1,000,000,000,000 pages out and 5 in, and has 12 major faults \
                    (medians of 20 seeds).";
        check(&["vm@6.1"], &many, None, huge);
    }
}
