//! The answer of repeated runs of hackbench.

use crate::costs::digits;
use crate::hackbench::Options;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::column::Columns;
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::text::{counted, grouped};
use slablab_report::{Answer, Document};
use slablab_stats::{Bootstrap, Interval, Sample, quantile};

#[derive(Serialize, JsonSchema)]
struct HackbenchDocument<'a> {
    /// pipe or socketpair.
    channel: &'static str,
    /// Groups of 20 senders and 20 receivers.
    groups: usize,
    /// processes or threads.
    kind: &'static str,
    /// Messages of each sender to each receiver of its group.
    loops: usize,
    /// Messages of a run.
    messages: u64,
    /// Seconds of every run.
    runs: &'a [f64],
    /// The median of the runs.
    seconds: f64,
    /// The ends of the 95 % interval of the median; null for fewer than 5 runs.
    seconds_interval_95: Option<[f64; 2]>,
}

impl Document for HackbenchDocument<'_> {
    const NAME: &'static str = "slablab.hackbench.1";
    const TITLE: &'static str = "slablab calibrate hackbench: times of senders and receivers";
}

/// The schema of this answer.
pub(super) fn schema() -> Named {
    named::<HackbenchDocument>()
}

/// The answer of runs that took so many seconds each; its lines are those of `perf bench sched messaging`.
pub fn hackbench_answer(options: Options, seconds: &[f64]) -> Answer {
    let sample = Sample::new(seconds).expect("at least one run");
    let ends = interval(&sample);
    let (kind, groups, tasks) = (options.kind(), options.groups, options.tasks());
    let (loops, messages) = (options.loops, options.messages());
    let document = HackbenchDocument {
        channel: if options.pipes { "pipe" } else { "socketpair" },
        groups,
        kind,
        loops,
        messages,
        runs: seconds,
        seconds: sample.median(),
        seconds_interval_95: ends.map(|ends| [ends.low, ends.high]),
    };
    let channel = if options.pipes { "pipes" } else { "socket pairs" };
    let each = sample.median() * 1e9 / messages as f64;
    let sentence = format!(
        "{} {kind} exchange {} in {:.3} s, {} ns for each (median of {}).",
        grouped(tasks as u64),
        counted(messages, "message"),
        sample.median(),
        if each < 1000.0 { digits(each) } else { grouped(each.round() as u64) },
        counted(sample.n() as u64, "run")
    );
    let range = format!("shortest {:.3} s, longest {:.3} s", sample.min(), sample.max());
    let range = range
        + &ends.map_or(String::new(), |ends| {
            format!("; 95 % interval of the median {:.3} to {:.3} s", ends.low, ends.high)
        });
    let rows: Vec<(usize, f64)> = seconds.iter().copied().enumerate().collect();
    let columns = Columns::default().key("run", |row: &(usize, f64)| Cell::Count(row.0 as u64 + 1)).add(
        "seconds",
        "",
        "seconds",
        |row| Cell::Number(row.1, 3),
    );
    let number = |row: &(usize, f64)| Cell::Count(row.0 as u64 + 1);
    Answer::new("hackbench", sentence)
        .document(&document)
        .rows(columns.frame(&rows))
        .line(format!("# 20 sender and receiver {kind} per group"))
        .line(format!("# {} == {} {kind} run", counted(groups as u64, "group"), grouped(tasks as u64)))
        .line(format!(
            "# {}, {} of 100 bytes through {channel}",
            counted(loops as u64, "loop"),
            counted(messages, "message")
        ))
        .line(format!("Total time: {:.3} [sec]", sample.median()))
        .facts([
            ("Median", Cell::Text(format!("{:.3} s", sample.median()))),
            ("Groups", Cell::Count(groups as u64)),
            ("Loops", Cell::Count(loops as u64)),
            ("Through", Cell::Text(channel.into())),
        ])
        .page_table("Every run.", columns.html(("run", &number), &["seconds"], &rows))
        .remarks([range])
}

/// The 95 % interval of the median over repeated runs; `None` for fewer than five.
fn interval(seconds: &Sample) -> Option<Interval> {
    let enough = seconds.n() >= 5;
    enough.then(|| Bootstrap::default().interval(seconds, |sorted| quantile(sorted, 0.5)).ok()).flatten()
}
