//! The locks of each cell: how often they were taken, and how long calls waited for them and held them.

use crate::run::results::Results;
use slablab_model::LockTimes;
use slablab_report::text::Table;
use std::collections::BTreeMap;

/// The heading of the table.
pub const LOCKS: &str =
    "locks, means over the repeats, from the start of a run: all locks of a name together";

/// The locks that calls took, by cell and rank: means over the repeats. Locks of a rank are counted together,
/// from the start of a run.
pub fn locks_table(results: &Results) -> Table {
    let heads = [
        "",
        "lock",
        "taken",
        "waited, %",
        "wait each, us",
        "hold each, us",
        "waits in all, ms",
        "holds in all, ms",
        "holds of a message, ns",
    ];
    let mut table = Table::new(heads);
    for (at, _) in results.plain() {
        let name = results.name(at);
        let messages = messages(results, at);
        for (lock, (times, runs)) in sums(results, at) {
            table.row(row(&name, &lock, &times, runs, messages));
        }
    }
    table
}

/// The sums over the runs of a cell, and the number of its runs; locks that no call took are left out.
fn sums(results: &Results, cell: usize) -> BTreeMap<String, (LockTimes, u64)> {
    let mut sums: BTreeMap<String, (LockTimes, u64)> = BTreeMap::new();
    let runs = results.runs[cell].iter().flatten().filter_map(|run| run.as_ref().ok());
    for (lock, times) in runs.flat_map(|sample| &sample.locks).filter(|(_, times)| times.taken > 0) {
        let (sum, runs) = sums.entry(lock.clone()).or_default();
        sum.taken += times.taken;
        sum.waited += times.waited;
        sum.wait += times.wait;
        sum.hold += times.hold;
        *runs += 1;
    }
    sums
}

/// Messages of a run, if the workload measures their time.
fn messages(results: &Results, cell: usize) -> Option<f64> {
    let mean = |name: &str| {
        let metric = results.experiment.file.workload.metrics.iter().find(|metric| metric.name == name)?;
        Some(results.sample(cell, metric)?.mean())
    };
    Some(mean("elapsed_ps")? / mean("message_ps")?)
}

fn row(name: &str, lock: &str, times: &LockTimes, runs: u64, messages: Option<f64>) -> [String; 9] {
    let each = |sum: u64, of: u64| sum as f64 / of.max(1) as f64;
    [
        name.to_string(),
        lock.to_string(),
        format!("{:.0}", each(times.taken, runs)),
        format!("{:.1}", each(times.waited, times.taken) * 100.0),
        format!("{:.3}", each(times.wait, times.waited) / 1e6),
        format!("{:.3}", each(times.hold, times.taken) / 1e6),
        format!("{:.2}", each(times.wait, runs) / 1e9),
        format!("{:.2}", each(times.hold, runs) / 1e9),
        messages.map_or("-".into(), |messages| format!("{:.0}", each(times.hold, runs) / messages / 1e3)),
    ]
}
