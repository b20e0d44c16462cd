//! The results of the samples: figures, ratios to the best peer, false alarms.

use crate::clock::Sample;
use crate::costs::Costs;
use crate::day::Day;
use crate::doubts::{Seen, doubts};
use crate::memory::{FIGURES, Footprint, Held};
use crate::patterns::Group;
use crate::rig::{Lane, Ran, Results};
use crate::stats::{Estimate, estimate, median};
use crate::subject::Role;
use crate::times::Calls;
use schemars::JsonSchema;
use serde::Serialize;

/// If a round trip of a cache line takes this many times as long as another one, the host moved the CPUs.
const MOVED: f64 = 2.0;

/// The result of our allocator against the best peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The ratio's whole interval is below one.
    Won,
    /// The interval contains one.
    Even,
    /// The ratio's whole interval is above one.
    Lost,
}

impl Verdict {
    /// The verdict's name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Won => "won",
            Verdict::Even => "even",
            Verdict::Lost => "lost",
        }
    }
}

/// A contestant's figures for a workload.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Cell {
    /// The contestant's name.
    pub name: &'static str,
    /// The contestant's role.
    pub role: Role,
    /// How each sample was proved.
    pub evidence: &'static str,
    /// CPU time per operation in ns.
    pub cpu_ns: Estimate,
    /// Wall time per operation in ns, if several threads ran.
    pub wall_ns: Option<Estimate>,
    /// CPU time over the best peer's in the same block; for our allocators and the twin.
    pub ratio: Option<Estimate>,
    /// The verdict of the ratio, for our allocators; `None` if the run gives no verdicts.
    pub verdict: Option<Verdict>,
    /// Medians of the round trip of a cache line before and after, in ns, if several threads ran.
    pub pingpong_ns: Option<[f64; 2]>,
    /// The number of blocks in which the round trip changed more than twofold during the run.
    pub moved: usize,
    /// Peak memory and page faults, if each sample had a process of its own.
    pub process: Option<Process>,
    /// How long calls took, the least of each figure of all blocks, if each call was timed.
    pub calls: Option<Calls>,
    /// The memory over a service's day, medians of all blocks, if it was one.
    pub day: Option<Day>,
    /// CPU time per operation in ns, by block.
    pub samples_ns: Vec<f64>,
}

/// The costs of a contestant's processes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Process {
    /// The largest resident memory, less that before the workload, in MB.
    pub peak_mb: Estimate,
    /// Peak memory over that of the peer with the smallest median, in the same block; for our allocators.
    pub peak_ratio: Option<Estimate>,
    /// The verdict of `peak_ratio`.
    pub peak_verdict: Option<Verdict>,
    /// The other figures, medians: page faults, ns of a fault, percent of CPU time in faults and in the
    /// kernel, and ns per operation without faults ([`PROCESS_FIGURES`]). Null for what was not measured.
    #[schemars(with = "Vec<Option<f64>>")]
    pub figures: Vec<f64>,
    /// The costs, by block.
    pub samples: Vec<Costs>,
}

/// A figure of a sample with costs: name, unit, and value in that unit.
pub type ProcessFigure = (&'static str, &'static str, fn(&Sample, &Costs) -> f64);

/// The figures of a process beside CPU time and peak memory, in the order of tables.
pub const PROCESS_FIGURES: [ProcessFigure; 5] = [
    ("faults", "", |_, costs| costs.faults as f64),
    ("fault price", "ns", |_, costs| costs.fault_ns),
    ("fault share", "%", |sample, costs| share(costs.all_faults_ns(), sample)),
    ("kernel share", "%", |sample, costs| share(costs.system_ns as f64, sample)),
    ("without faults", "ns", |sample, costs| {
        (sample.cpu_ns as f64 - costs.all_faults_ns()) / sample.ops.max(1) as f64
    }),
];

/// A part of a sample's CPU time in percent.
fn share(ns: f64, sample: &Sample) -> f64 {
    ns / sample.cpu_ns.max(1) as f64 * 100.0
}

impl Process {
    /// The costs of a contestant's samples, beside those of the peer with the least peak memory. `None` if
    /// the samples did not run in processes of their own.
    fn new(samples: &[Sample], leanest: Option<&[Sample]>, seed: u64) -> Option<Process> {
        let with_costs = |sample: &Sample| sample.costs.map(|costs| (*sample, costs));
        let all: Option<Vec<(Sample, Costs)>> = samples.iter().map(with_costs).collect();
        let all = all?;
        let peaks = peaks_mb(samples);
        let ratios = leanest.map(|leanest| {
            let pairs = peaks.iter().zip(peaks_mb(leanest));
            pairs.map(|(this, that)| this / that.max(1e-9)).collect::<Vec<f64>>()
        });
        let peak_ratio = ratios.and_then(|ratios| estimate(&ratios, seed));
        let figure = |(_, _, value): &ProcessFigure| {
            median(&all.iter().map(|(sample, costs)| value(sample, costs)).collect::<Vec<f64>>())
        };
        Some(Process {
            peak_mb: estimate(&peaks, seed)?,
            peak_verdict: peak_ratio.as_ref().map(verdict),
            peak_ratio,
            figures: PROCESS_FIGURES.iter().map(figure).collect(),
            samples: all.iter().map(|(_, costs)| *costs).collect(),
        })
    }
}

/// The figures of a workload.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Row {
    /// The workload's name.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The group whose table has the workload.
    pub group: Group,
    /// The number of operations of a sample.
    pub ops: u64,
    /// The peer with the least CPU time, if there is a peer.
    pub best_peer: Option<&'static str>,
    /// The peer with the least peak memory, if each sample had a process of its own.
    pub leanest_peer: Option<&'static str>,
    /// The twin's CPU time over that of the first of our allocators. If the interval does not contain 1, it
    /// is a false alarm.
    pub twin: Option<Estimate>,
    /// The cells, by contestant, in the order of tables.
    pub cells: Vec<Cell>,
}

/// Memory of an allocator: medians over its processes.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The allocator's name.
    pub name: &'static str,
    /// The allocator's role.
    pub role: Role,
    /// The number of processes.
    pub processes: usize,
    /// The figures, in the order of [`FIGURES`].
    pub figures: Vec<f64>,
}

/// The whole report.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of complete blocks.
    pub blocks: usize,
    /// The factor on the usual number of operations.
    pub scale: f64,
    /// The seed.
    pub seed: u64,
    /// CPUs that the process may use.
    pub cpus: usize,
    /// The number of runnable processes before and after.
    pub load: [f64; 2],
    /// Live bytes of the memory workload.
    pub memory_live_bytes: u64,
    /// The timed workloads.
    pub rows: Vec<Row>,
    /// The memory table.
    pub memory: Vec<Memory>,
    /// Workloads and samples that were left out, with the reason.
    pub notes: Vec<String>,
    /// Why the run gives no verdict; empty if it gives verdicts. Ratios have none then.
    pub no_verdict: Vec<String>,
}

impl Report {
    /// The report of a run's results.
    pub fn new(results: &Results) -> Report {
        let seed = results.options.seed;
        let rows = results.ran.iter().filter(|ran| !ran.lanes[0].samples.is_empty());
        let mut report = Report {
            blocks: results.blocks,
            scale: results.options.scale,
            seed,
            cpus: crate::threads::cpus().len(),
            load: results.load,
            memory_live_bytes: results.options.memory_bytes,
            rows: rows.map(|ran| row(ran, seed)).collect(),
            memory: results.memory.iter().map(|(allocator, all)| held(allocator, all)).collect(),
            notes: results.notes.clone(),
            no_verdict: Vec::new(),
        };
        if !report.rows.is_empty() {
            report.no_verdict = doubts(&report.seen());
        }
        if !report.no_verdict.is_empty() {
            for cell in report.rows.iter_mut().flat_map(|row| &mut row.cells) {
                cell.verdict = None;
                cell.process.iter_mut().for_each(|process| process.peak_verdict = None);
            }
        }
        report
    }

    /// The workloads of a group.
    pub fn group(&self, group: Group) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.group == group)
    }

    /// The number of false alarms, and the number of workloads with a twin.
    pub fn false_alarms(&self) -> (usize, usize) {
        let twins: Vec<Estimate> = self.rows.iter().filter_map(|row| row.twin).collect();
        let alarms = twins.iter().filter(|twin| verdict(twin) != Verdict::Even).count();
        (alarms, twins.len())
    }

    /// What the run says of its machine.
    fn seen(&self) -> Seen {
        let is_threaded = |row: &Row| row.group == Group::Threads || row.group.is_alone();
        Seen {
            cpus: self.cpus,
            load: self.load,
            is_threaded: self.rows.iter().any(is_threaded),
            twins: self.rows.iter().filter_map(|row| row.twin).collect(),
            alarms: self.false_alarms().0,
            blocks: self.blocks,
        }
    }

    /// How often our allocators win, are even and lose, over all workloads. The twin is not counted.
    pub fn tally(&self) -> [usize; 3] {
        let ours = || self.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.role == Role::Ours);
        [Verdict::Won, Verdict::Even, Verdict::Lost]
            .map(|wanted| ours().filter(|cell| cell.verdict == Some(wanted)).count())
    }

    /// The workloads and allocators of ours that lose.
    pub fn lost(&self) -> Vec<(&Row, &Cell)> {
        let cells = self.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)));
        let ours = cells.filter(|(_, cell)| cell.role == Role::Ours);
        ours.filter(|(_, cell)| cell.verdict == Some(Verdict::Lost)).collect()
    }
}

/// The verdict of a ratio's interval.
pub fn verdict(ratio: &Estimate) -> Verdict {
    if ratio.high < 1.0 {
        Verdict::Won
    } else if ratio.low > 1.0 {
        Verdict::Lost
    } else {
        Verdict::Even
    }
}

fn cpu(lane: &Lane) -> Vec<f64> {
    lane.samples.iter().map(|sample| sample.cpu_per_op()).collect()
}

/// The ratio of two contestants, block by block.
fn over(these: &[f64], those: &[f64], seed: u64) -> Option<Estimate> {
    let ratios: Vec<f64> = these.iter().zip(those).map(|(this, that)| this / that.max(1e-9)).collect();
    estimate(&ratios, seed)
}

fn row(ran: &Ran, seed: u64) -> Row {
    let times: Vec<Vec<f64>> = ran.lanes.iter().map(cpu).collect();
    let of_role = |role: Role| (0..times.len()).filter(move |lane| ran.lanes[*lane].contestant.role == role);
    let best = of_role(Role::Peer).min_by(|a, b| median(&times[*a]).total_cmp(&median(&times[*b])));
    let with_costs =
        of_role(Role::Peer).filter(|lane| ran.lanes[*lane].samples.iter().all(|one| one.costs.is_some()));
    let peak = |lane: &usize| median(&peaks_mb(&ran.lanes[*lane].samples));
    let leanest = with_costs.min_by(|a, b| peak(a).total_cmp(&peak(b)));
    let first_of_ours = of_role(Role::Ours).next();
    let twin = of_role(Role::Twin).next().zip(first_of_ours);
    Row {
        name: ran.workload.name,
        about: ran.workload.about,
        group: ran.workload.group,
        ops: ran.lanes[0].samples[0].ops,
        best_peer: best.map(|lane| ran.lanes[lane].contestant.name),
        leanest_peer: leanest.map(|lane| ran.lanes[lane].contestant.name),
        twin: twin.and_then(|(twin, ours)| over(&times[twin], &times[ours], seed)),
        cells: (0..times.len()).map(|lane| cell(ran, &times, lane, [best, leanest], seed)).collect(),
    }
}

/// The cell of a contestant. `best` and `leanest` are the peers with the least CPU time and peak memory.
fn cell(ran: &Ran, times: &[Vec<f64>], lane: usize, [best, leanest]: [Option<usize>; 2], seed: u64) -> Cell {
    let Lane { contestant, samples } = &ran.lanes[lane];
    // CPU time of timed calls is that of the clock.
    let compared = matches!(contestant.role, Role::Ours | Role::Twin) && ran.workload.group != Group::Latency;
    let ratio = best.filter(|_| compared).and_then(|best| over(&times[lane], &times[best], seed));
    let leanest = leanest.filter(|_| compared).map(|peer| &ran.lanes[peer].samples[..]);
    let walls: Vec<f64> = samples.iter().filter_map(|sample| sample.wall_per_op()).collect();
    let trips: Vec<[f64; 2]> = samples.iter().filter_map(|sample| sample.pingpong_ns).collect();
    let trip = |which: usize| median(&trips.iter().map(|trip| trip[which]).collect::<Vec<f64>>());
    let moved = |trip: &&[f64; 2]| trip[0].max(trip[1]) > MOVED * trip[0].min(trip[1]);
    Cell {
        name: contestant.name,
        role: contestant.role,
        evidence: contestant.evidence,
        cpu_ns: estimate(&times[lane], seed).expect("there are samples"),
        wall_ns: estimate(&walls, seed),
        verdict: ratio.as_ref().filter(|_| contestant.role == Role::Ours).map(verdict),
        ratio,
        pingpong_ns: (!trips.is_empty()).then(|| [trip(0), trip(1)]),
        moved: trips.iter().filter(moved).count(),
        process: Process::new(samples, leanest, seed).map(|process| match contestant.role {
            Role::Ours => process,
            _ => Process { peak_verdict: None, ..process },
        }),
        calls: Calls::least(&samples.iter().filter_map(|sample| sample.calls).collect::<Vec<_>>()),
        day: Day::median(&samples.iter().filter_map(|sample| sample.day).collect::<Vec<_>>()),
        samples_ns: times[lane].clone(),
    }
}

/// The peaks of samples in MB.
fn peaks_mb(samples: &[Sample]) -> Vec<f64> {
    samples.iter().filter_map(|sample| sample.costs).map(|costs| costs.peak_bytes as f64 / 1e6).collect()
}

fn held(allocator: &Held, footprints: &[Footprint]) -> Memory {
    let figure = |value: fn(&Footprint) -> f64| median(&footprints.iter().map(value).collect::<Vec<f64>>());
    Memory {
        name: allocator.name,
        role: allocator.role,
        processes: footprints.len(),
        figures: FIGURES.iter().map(|(_, _, value)| figure(*value)).collect(),
    }
}
