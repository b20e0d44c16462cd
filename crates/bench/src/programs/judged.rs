//! What the samples say: figures of each allocator, and their ratios to the first.

use super::process::Sample;
use super::run::{Lane, Measured};
use crate::doubts::{Seen, doubts};
use crate::stats::{Estimate, estimate};
use crate::threads;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::visible;

/// The figures of a program under several allocators.
pub struct Judged {
    /// The program and its arguments, as they are typed.
    pub command: String,
    /// The allocators, the first one first, and behind them the twin.
    pub rows: Vec<Row>,
    /// The number of complete blocks.
    pub blocks: usize,
    /// The number of runnable processes before and after.
    pub load: [f64; 2],
    /// The seed.
    pub seed: u64,
    /// Why there is no verdict, each a clause. Empty if there is one.
    pub no_verdict: Vec<String>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// An allocator's figures.
#[derive(Serialize, JsonSchema)]
pub struct Row {
    /// The allocator.
    pub allocator: String,
    /// The file that was preloaded.
    pub library: String,
    /// Whether it is the first allocator a second time, to show what the machine alone changes.
    pub is_twin: bool,
    /// User and system time of the program and the processes that it waited for, in ms.
    pub cpu_ms: Estimate,
    /// Of it, outside of the kernel, in ms: the median.
    pub user_ms: f64,
    /// From the start to the end, in ms.
    pub wall_ms: Estimate,
    /// The largest resident set of one process, in MB.
    pub peak_mb: Estimate,
    /// Page faults: the median.
    pub faults: f64,
    /// CPU time over that of the first allocator, block by block; null for the first.
    pub cpu_ratio: Option<Estimate>,
    /// The same of wall time.
    pub wall_ratio: Option<Estimate>,
    /// The same of the peak.
    pub peak_ratio: Option<Estimate>,
    /// The samples, one for each block.
    pub samples: Vec<Block>,
}

/// A run.
#[derive(Serialize, JsonSchema)]
pub struct Block {
    /// User and system time, in s.
    pub cpu_s: f64,
    /// The exit code; null if a signal ended it.
    pub exit_code: Option<i32>,
    /// Page faults.
    pub faults: u64,
    /// The largest resident set of one process, in bytes.
    pub peak_bytes: u64,
    /// System time, in s.
    pub system_s: f64,
    /// User time, in s.
    pub user_s: f64,
    /// From the start to the end, in s.
    pub wall_s: f64,
}

/// A number of a sample.
type Number = fn(&Sample) -> f64;

const CPU_MS: Number = |sample| (sample.user_ns + sample.system_ns) as f64 / 1e6;
const USER_MS: Number = |sample| sample.user_ns as f64 / 1e6;
const WALL_MS: Number = |sample| sample.wall_ns as f64 / 1e6;
const PEAK_MB: Number = |sample| sample.peak_bytes as f64 / 1e6;
const FAULTS: Number = |sample| sample.faults as f64;

impl Judged {
    /// Judges a measurement; `None` if no block is complete.
    pub fn new(measured: &Measured) -> Option<Judged> {
        let base = measured.lanes.first()?;
        let rows: Option<Vec<Row>> =
            measured.lanes.iter().map(|lane| row(lane, base, measured.seed)).collect();
        let rows = rows?;
        let twins: Vec<Estimate> =
            rows.iter().filter(|row| row.is_twin).filter_map(|row| row.cpu_ratio).collect();
        let seen = Seen {
            cpus: threads::cpus().len(),
            load: measured.load,
            is_threaded: true,
            alarms: twins.iter().filter(|twin| differs(twin)).count(),
            twins,
            blocks: measured.blocks,
        };
        Some(Judged {
            command: typed(measured),
            rows,
            blocks: measured.blocks,
            load: measured.load,
            seed: measured.seed,
            no_verdict: doubts(&seen),
            notes: notes(measured),
        })
    }

    /// The first allocator, which ratios are over.
    pub fn base(&self) -> &Row {
        &self.rows[0]
    }

    /// The allocator that is surely below the first, and least; `None` if none is.
    pub fn least(&self, ratio: impl Fn(&Row) -> Option<Estimate>) -> Option<(&Row, Estimate)> {
        let others = self.rows.iter().filter(|row| !row.is_twin);
        let below = others.filter_map(|row| Some((row, ratio(row)?))).filter(|(_, ratio)| ratio.high < 1.0);
        below.min_by(|a, b| a.1.median.total_cmp(&b.1.median))
    }
}

/// Whether the whole interval of a ratio is on one side of 1.
pub(crate) fn differs(ratio: &Estimate) -> bool {
    !(ratio.low..=ratio.high).contains(&1.0)
}

fn row(lane: &Lane, base: &Lane, seed: u64) -> Option<Row> {
    let of = |number: Number| estimate(&lane.samples.iter().map(number).collect::<Vec<_>>(), seed);
    let is_base = std::ptr::eq(lane, base);
    let ratio = |number: Number| {
        let pairs = lane.samples.iter().zip(&base.samples).map(|(one, first)| number(one) / number(first));
        (!is_base)
            .then(|| estimate(&pairs.filter(|ratio| ratio.is_finite()).collect::<Vec<_>>(), seed))
            .flatten()
    };
    Some(Row {
        allocator: lane.allocator.name.clone(),
        library: visible::path(&lane.allocator.library),
        is_twin: lane.is_twin,
        cpu_ms: of(CPU_MS)?,
        user_ms: of(USER_MS)?.median,
        wall_ms: of(WALL_MS)?,
        peak_mb: of(PEAK_MB)?,
        faults: of(FAULTS)?.median,
        cpu_ratio: ratio(CPU_MS),
        wall_ratio: ratio(WALL_MS),
        peak_ratio: ratio(PEAK_MB),
        samples: lane.samples.iter().map(block).collect(),
    })
}

fn block(sample: &Sample) -> Block {
    let seconds = |ns: u64| ns as f64 / 1e9;
    Block {
        cpu_s: seconds(sample.user_ns + sample.system_ns),
        exit_code: sample.code,
        faults: sample.faults,
        peak_bytes: sample.peak_bytes,
        system_s: seconds(sample.system_ns),
        user_s: seconds(sample.user_ns),
        wall_s: seconds(sample.wall_ns),
    }
}

/// The command as it would be typed into a shell.
fn typed(measured: &Measured) -> String {
    let quoted = |word: &std::ffi::OsString| {
        let word = word.to_string_lossy();
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=+,:@%".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.into_owned(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    };
    measured.words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Which runs did not do the same, and how many there were.
fn notes(measured: &Measured) -> Vec<String> {
    let mut notes = Vec::new();
    let outputs = |lane: &Lane| {
        let mut all: Vec<Option<u64>> = lane.samples.iter().map(|sample| sample.printed).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let first = outputs(&measured.lanes[0]);
    let others: Vec<&str> = (measured.lanes.iter())
        .filter(|lane| !lane.is_twin && outputs(lane) != first)
        .map(|lane| lane.allocator.name.as_str())
        .collect();
    match (first.as_slice(), others.as_slice()) {
        ([Some(_)], []) => notes.push("the program printed the same in all runs".into()),
        ([Some(_)], others) => notes.push(format!(
            "the program printed something else under {}: it may not have done the same work",
            others.join(", ")
        )),
        _ => notes.push("the program prints something else in each run, so outputs were not compared".into()),
    }
    let failed =
        measured.lanes.iter().flat_map(|lane| &lane.samples).filter(|one| one.code != Some(0)).count();
    if failed > 0 {
        notes.push(format!("{failed} runs ended with another exit code than 0, or by a signal"));
    }
    if measured.blocks < measured.wanted {
        notes.push(format!("interrupted: {} of {} blocks are complete", measured.blocks, measured.wanted));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Allocator;

    /// What allocators take beside the first, in percent, over ten blocks of a machine that drifts.
    fn measured(percent: &[u64]) -> Measured {
        let lane = |at: usize, percent: u64| Lane {
            allocator: Allocator {
                name: format!("{at}"),
                library: format!("/{at}.so").into(),
                environment: Vec::new(),
            },
            is_twin: false,
            samples: (0..10)
                .map(|block| Sample {
                    user_ns: (1_000_000 + 100_000 * block) * percent,
                    wall_ns: 1_000_000_000,
                    peak_bytes: 50_000_000,
                    code: Some(0),
                    printed: Some(1),
                    ..Sample::default()
                })
                .collect(),
        };
        Measured {
            words: ["a b", "it's", "-x=1"].map(Into::into).to_vec(),
            lanes: percent.iter().enumerate().map(|(at, percent)| lane(at, *percent)).collect(),
            blocks: 10,
            wanted: 10,
            seed: 1,
            load: [0.0; 2],
        }
    }

    #[test]
    fn ratios_are_those_of_blocks() {
        #[track_caller]
        fn check(percent: &[u64], least: Option<(&str, f64)>) {
            let judged = Judged::new(&measured(percent)).expect("blocks");
            let found = judged.least(|row| row.cpu_ratio);
            let found = found.map(|(row, ratio)| (row.allocator.as_str(), ratio.median));
            assert_eq!(found, least, "{percent:?}");
        }
        check(&[100], None);
        check(&[100, 100], None);
        check(&[100, 150, 200], None);
        // The machine drifts by a factor of two, and each block has the same ratio.
        check(&[100, 75, 50], Some(("2", 0.5)));
    }

    #[test]
    fn commands_as_typed() {
        assert_eq!(typed(&measured(&[100])), r"'a b' 'it'\''s' -x=1");
    }

    #[test]
    fn what_a_reader_must_know() {
        #[track_caller]
        fn check(change: impl Fn(&mut Measured), expected: &str) {
            let mut all = measured(&[100, 100]);
            change(&mut all);
            assert!(notes(&all).iter().any(|note| note.starts_with(expected)), "{:?}", notes(&all));
        }
        check(|_| {}, "the program printed the same in all runs");
        check(|all| all.lanes[1].samples[3].printed = Some(2), "the program printed something else under 1");
        check(
            |all| all.lanes[0].samples[3].printed = Some(2),
            "the program prints something else in each run",
        );
        check(|all| all.lanes[0].samples[3].printed = None, "the program prints something else in each run");
        check(|all| all.lanes[0].samples[3].code = None, "1 runs ended with another exit code");
        check(|all| all.wanted = 12, "interrupted: 10 of 12 blocks");
    }
}
