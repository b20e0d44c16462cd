//! What engines cost in this process, beside what the model predicts with this host's costs.
//!
//! Native: CPU time of an allocation and a free together, with the loop around them; where blocks pass a
//! queue, less that of the same program on a ring of blocks, which allocates nothing. Each block of
//! measurements runs all engines in turn; a figure is the median of the blocks. Model: the same engine,
//! pattern and size on a machine file's machine, with the prices of slots of threads
//! ([`slablab_sim::paths::native`]). One number is fitted: the time of an instruction, so that SLQB's pair
//! has its native cost.

use crate::clock::Sample;
use crate::engines::{Slqb, SlubOld};
use crate::harness::Harness;
use crate::patterns::nine::{Fifo, Pair};
use crate::patterns::queue::{OneWay, PLACES};
use crate::patterns::{Pattern as _, Run, Task};
use crate::subject::Subject;
use slablab_machines::Machine;
use slablab_platform::CpuId;
use slablab_sim::paths;
use slablab_sim::programs::micro::{self, Load, Pattern};
use slablab_sim::record::Recorder;
use slablab_sim::setup::{Boot, Setup};
use slablab_slabs::Preset;

/// Bytes of an object.
const BYTES: u32 = 64;
/// Objects of a native measurement, and of a modelled one.
const NATIVE: u64 = 400_000;
const MODELLED: u64 = 100_000;

/// A pattern, natively by engine and on the ring, and in the model.
struct Workload {
    name: &'static str,
    engines: [(&'static str, Run); 2],
    ring: Run,
    /// Whether the blocks pass a queue.
    passes: bool,
    modelled: Pattern,
}

macro_rules! workload {
    ($name:literal, $pattern:ty, $modelled:expr) => {
        Workload {
            name: $name,
            engines: [
                (SlubOld::NAME, <$pattern>::run::<SlubOld> as Run),
                (Slqb::NAME, <$pattern>::run::<Slqb> as Run),
            ],
            ring: <$pattern>::run::<Harness>,
            passes: matches!($modelled, Pattern::OneWay { .. }),
            modelled: $modelled,
        }
    };
}

fn workloads() -> [Workload; 5] {
    let one_way = Pattern::OneWay { to: CpuId(1), window: PLACES as u32 };
    [
        workload!("pair", Pair<64>, Pattern::Pair),
        workload!("batch of 10", Fifo<64, 10>, Pattern::Batch(10)),
        workload!("batch of 100", Fifo<64, 100>, Pattern::Batch(100)),
        workload!("batch of 1000", Fifo<64, 1000>, Pattern::Batch(1000)),
        workload!("freed on another CPU", OneWay<64>, one_way),
    ]
}

/// One pattern on one engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The pattern.
    pub pattern: &'static str,
    /// The engine.
    pub engine: &'static str,
    /// Native costs, ns for an allocation and a free: low quartile, median, high quartile.
    pub native: [f64; 3],
    /// The modelled cost, ns.
    pub modelled: f64,
    /// Whether the modelled cost was fitted to the native one.
    pub fitted: bool,
}

impl Row {
    /// Modelled over native.
    pub fn ratio(&self) -> f64 {
        self.modelled / self.native[1]
    }
}

/// Measures and predicts. `go_on` is told how many of how many measurements are done; `None` if it says no.
///
/// # Errors
/// A block that another allocator served; a machine that cannot be modelled.
pub fn rows(
    machine: &Machine,
    repeats: u64,
    go_on: impl Fn(u64, u64) -> bool,
) -> Result<Option<Vec<Row>>, String> {
    let workloads = workloads();
    let mut native: Vec<Vec<f64>> = vec![Vec::new(); workloads.len() * 2];
    let whole = repeats * workloads.len() as u64;
    for repeat in 0..repeats {
        for (at, workload) in workloads.iter().enumerate() {
            if !go_on(repeat * workloads.len() as u64 + at as u64, whole) {
                return Ok(None);
            }
            let run =
                |run: Run| run(Task { ops: NATIVE, seed: repeat }).map(|sample: Sample| sample.cpu_per_op());
            let ring = if workload.passes { run(workload.ring)? } else { 0.0 };
            for (engine, (_, measured)) in workload.engines.iter().enumerate() {
                native[2 * at + engine].push(run(*measured)? - ring);
            }
        }
    }
    let native: Vec<[f64; 3]> = native.iter_mut().map(|times| quartiles(times)).collect();
    // SLQB's pair, the second figure, in femtoseconds for each instruction.
    let instruction = (native[1][1] * 1e6) as u64 / paths::NATIVE_PAIR;
    let mut rows = Vec::new();
    for (at, workload) in workloads.iter().enumerate() {
        for (engine, (name, _)) in workload.engines.iter().enumerate() {
            let modelled = modelled(machine, name, workload.modelled, instruction)?;
            let (native, fitted) = (native[2 * at + engine], at == 0 && engine == 1);
            rows.push(Row { pattern: workload.name, engine: name, native, modelled, fitted });
        }
    }
    Ok(Some(rows))
}

/// The modelled cost of an allocation and a free, ns.
fn modelled(machine: &Machine, engine: &str, pattern: Pattern, instruction: u64) -> Result<f64, String> {
    let preset = Preset::parse(engine).map_err(|error| format!("{engine}: {error:?}"))?;
    let (spec, hardware) = (machine.spec.clone(), machine.hardware.clone());
    let setup = Setup { spec, hardware, preset, boot: Boot::default(), placement: None };
    let load = Load { pattern, bytes: BYTES, sheaf_capacity: 0, objects: MODELLED, seed: 1 };
    let paths = paths::native(&preset, &machine.hardware.costs, instruction);
    let measured =
        micro::measure(&setup, paths, &load, &Recorder::default()).map_err(|error| error.to_string())?;
    Ok(measured.cpu as f64 / 1000.0)
}

fn quartiles(times: &mut [f64]) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| times[(times.len() - 1) * quarter / 4])
}
