//! What the samples say: figures, ratios to the best peer, false alarms.

use crate::memory::{FIGURES, Footprint, Held};
use crate::patterns::Group;
use crate::rig::{Lane, Ran, Results};
use crate::stats::{Estimate, estimate, median};
use crate::subject::Role;

/// A round trip of a cache line that took so many times another: the CPUs were moved.
const MOVED: f64 = 2.0;

/// How ours does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval of the ratio is below one.
    Won,
    /// The interval holds one.
    Even,
    /// The whole interval is above one.
    Lost,
}

/// A contestant's figures on a workload.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Cell {
    /// Who.
    pub name: &'static str,
    /// What it is.
    pub role: Role,
    /// How each sample was proved.
    pub evidence: &'static str,
    /// CPU time per operation in ns.
    pub cpu_ns: Estimate,
    /// Wall time per operation in ns, where several threads ran.
    pub wall_ns: Option<Estimate>,
    /// CPU time over the best peer's in the same block; of ours and the twin.
    pub ratio: Option<Estimate>,
    /// What that says.
    pub verdict: Option<Verdict>,
    /// Round trips of a cache line before and after, in ns: medians, where several threads ran.
    pub pingpong_ns: Option<[f64; 2]>,
    /// Blocks in which the round trip changed more than twofold while it ran.
    pub moved: usize,
    /// CPU time per operation of every block, in ns.
    pub samples_ns: Vec<f64>,
}

/// A workload's figures.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Row {
    /// The workload.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Its table.
    pub group: Group,
    /// Operations of a sample.
    pub ops: u64,
    /// The peer with the least CPU time, if there is one.
    pub best_peer: Option<&'static str>,
    /// The twin's CPU time over that of the first of ours: an interval without one is a false alarm.
    pub twin: Option<Estimate>,
    /// By contestant, in the order of tables.
    pub cells: Vec<Cell>,
}

/// An allocator's memory: the median of its processes.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Memory {
    /// Who.
    pub name: &'static str,
    /// What it is.
    pub role: Role,
    /// Processes.
    pub processes: usize,
    /// In the order of [`FIGURES`].
    pub figures: Vec<f64>,
}

/// Everything that is said.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// Whole blocks.
    pub blocks: usize,
    /// Part of the usual number of operations.
    pub scale: f64,
    /// The seed.
    pub seed: u64,
    /// CPUs that the process may use.
    pub cpus: usize,
    /// Processes ready to run before and after.
    pub load: [f64; 2],
    /// Live bytes of the memory table.
    pub memory_live_bytes: u64,
    /// The timed workloads.
    pub rows: Vec<Row>,
    /// Memory.
    pub memory: Vec<Memory>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Report {
    /// Of results.
    pub fn new(results: &Results) -> Report {
        let seed = results.options.seed;
        let rows = results.ran.iter().filter(|ran| !ran.lanes[0].samples.is_empty());
        Report {
            blocks: results.blocks,
            scale: results.options.scale,
            seed,
            cpus: crate::threads::cpus().len(),
            load: results.load,
            memory_live_bytes: results.options.memory_bytes,
            rows: rows.map(|ran| row(ran, seed)).collect(),
            memory: results.memory.iter().map(|(who, all)| held(who, all)).collect(),
            notes: results.notes.clone(),
        }
    }

    /// Workloads of a group.
    pub fn group(&self, group: Group) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.group == group)
    }

    /// False alarms and workloads: how often the twin seems to differ from itself.
    pub fn false_alarms(&self) -> (usize, usize) {
        let twins: Vec<Estimate> = self.rows.iter().filter_map(|row| row.twin).collect();
        let alarms = twins.iter().filter(|twin| verdict(twin) != Verdict::Even).count();
        (alarms, twins.len())
    }

    /// Rows that ours lose, by workload and contestant.
    pub fn lost(&self) -> Vec<(&Row, &Cell)> {
        let cells = self.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)));
        let ours = cells.filter(|(_, cell)| cell.role == Role::Ours);
        ours.filter(|(_, cell)| cell.verdict == Some(Verdict::Lost)).collect()
    }
}

/// What an interval of a ratio says.
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

/// Over each other, block by block.
fn over(these: &[f64], those: &[f64], seed: u64) -> Option<Estimate> {
    let ratios: Vec<f64> = these.iter().zip(those).map(|(this, that)| this / that.max(1e-9)).collect();
    estimate(&ratios, seed)
}

fn row(ran: &Ran, seed: u64) -> Row {
    let times: Vec<Vec<f64>> = ran.lanes.iter().map(cpu).collect();
    let of_role = |role: Role| (0..times.len()).filter(move |lane| ran.lanes[*lane].contestant.role == role);
    let best = of_role(Role::Peer).min_by(|a, b| median(&times[*a]).total_cmp(&median(&times[*b])));
    let first_of_ours = of_role(Role::Ours).next();
    let twin = of_role(Role::Twin).next().zip(first_of_ours);
    Row {
        name: ran.workload.name,
        about: ran.workload.about,
        group: ran.workload.group,
        ops: ran.lanes[0].samples[0].ops,
        best_peer: best.map(|lane| ran.lanes[lane].contestant.name),
        twin: twin.and_then(|(twin, ours)| over(&times[twin], &times[ours], seed)),
        cells: (0..times.len()).map(|lane| cell(ran, &times, lane, best, seed)).collect(),
    }
}

fn cell(ran: &Ran, times: &[Vec<f64>], lane: usize, best: Option<usize>, seed: u64) -> Cell {
    let Lane { contestant, samples } = &ran.lanes[lane];
    let compared = matches!(contestant.role, Role::Ours | Role::Twin);
    let ratio = best.filter(|_| compared).and_then(|best| over(&times[lane], &times[best], seed));
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
        verdict: ratio.as_ref().map(verdict),
        ratio,
        pingpong_ns: (!trips.is_empty()).then(|| [trip(0), trip(1)]),
        moved: trips.iter().filter(moved).count(),
        samples_ns: times[lane].clone(),
    }
}

fn held(who: &Held, footprints: &[Footprint]) -> Memory {
    let figure = |value: fn(&Footprint) -> f64| median(&footprints.iter().map(value).collect::<Vec<f64>>());
    Memory {
        name: who.name,
        role: who.role,
        processes: footprints.len(),
        figures: FIGURES.iter().map(|(_, _, value)| figure(*value)).collect(),
    }
}
