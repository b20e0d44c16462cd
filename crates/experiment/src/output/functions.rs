//! What each function cost of an engine whose code reports itself: the allocator of a kernel tree.

use crate::run::observe::Seen;
use crate::run::results::Results;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::Answer;
use slablab_report::text::Table;

/// The line above the tables.
const FUNCTIONS: &str = "Functions of the engines' own code, in the counted part of each cell's first repeat: each \
without those that it calls; a function that the compiler made a part of its caller is the caller's.";

/// What is said of cells whose engine reports no functions.
const NO_FUNCTIONS: &str = "No engine here reports its functions: expected linux:NAME, the allocator of a kernel \
tree (`slablab linux build PATH`).";

/// The most functions of a cell in text.
const SHOWN: usize = 16;

/// A function of a cell.
#[derive(Serialize, JsonSchema)]
pub(super) struct FunctionDocument {
    machine: String,
    engine: String,
    /// The cell, as tables name it.
    cell: String,
    function: String,
    /// Of the time in which the machine's CPUs were not idle.
    busy_percent: f64,
    /// Of all CPUs, with waits for locks.
    time_ps: u64,
    /// Cache lines that came from other CPUs' caches or from memory.
    cache_misses: u64,
    locks: u64,
    /// From where it came to a lock until it had it.
    lock_ps: u64,
}

/// The functions of each cell, those with the most time first. `seen` is what
/// [`crate::run::observe::seen`] saw.
pub(super) fn functions(results: &Results, seen: &[Option<Seen>]) -> Vec<FunctionDocument> {
    let mut all = Vec::new();
    for (at, cell) in results.plain() {
        let Some(profile) = seen.get(at).and_then(|seen| seen.as_ref()?.profile.as_ref()) else { continue };
        let busy = profile.spent.iter().flatten().sum::<u64>().max(1) as f64;
        let mut costs: Vec<_> = profile.functions.iter().collect();
        costs.sort_by_key(|(_, costs)| std::cmp::Reverse(costs.ps));
        all.extend(costs.into_iter().map(|(function, costs)| FunctionDocument {
            machine: results.experiment.machines[cell.machine].name.clone(),
            engine: results.experiment.file.engines[cell.engine].0.clone(),
            cell: results.name(at),
            function: function.clone(),
            busy_percent: costs.ps as f64 * 100.0 / busy,
            time_ps: costs.ps,
            cache_misses: costs.lines,
            locks: costs.locks,
            lock_ps: costs.lock_ps,
        }));
    }
    all
}

/// Adds a table for each cell.
pub(super) fn with_functions(mut answer: Answer, functions: &[FunctionDocument]) -> Answer {
    if functions.is_empty() {
        return answer.line(NO_FUNCTIONS);
    }
    answer = answer.line(FUNCTIONS);
    for cell in functions.chunk_by(|one, next| one.cell == next.cell) {
        let heads = ["", "busy, %", "time, ms", "misses", "locks", "lock, ms"];
        let mut table = Table::new(heads);
        for one in cell.iter().take(SHOWN) {
            table.row([
                one.function.clone(),
                format!("{:.2}", one.busy_percent),
                format!("{:.2}", one.time_ps as f64 / 1e9),
                one.cache_misses.to_string(),
                one.locks.to_string(),
                format!("{:.2}", one.lock_ps as f64 / 1e9),
            ]);
        }
        answer = answer.heading(&cell[0].cell).table(table, &[]);
    }
    answer
}
