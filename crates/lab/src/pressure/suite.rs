//! Every scenario of real records on every machine, modelled, for the judge.

use super::run::Options;
use super::runs::Runs;
use super::script::load;
use rayon::prelude::*;
use slablab_report::error::Result;
use slablab_workloads::script::Script;
use std::path::Path;
use std::sync::Arc;

/// A machine of the real records: its name there, its memory's policy, its slab allocator.
pub const MACHINES: [[&str; 3]; 4] = [
    ["61-classic", "vm@6.1", "slub@6.1"],
    ["61-mglru", "vm@6.1,lru_gen", "slub@6.1"],
    ["612-classic", "vm@6.12", "slub@6.12"],
    ["612-mglru", "vm@6.12,lru_gen", "slub@6.12"],
];

/// How a scenario's machine was set up beside the defaults: bytes a second to which writes of the data disk
/// were held.
const WRITE_LIMITS: [(&str, u64); 1] = [("wrfile", 24_000_000)];

/// Modelled runs, and what did not run: `scenario machine: why`.
pub struct Modelled {
    /// The runs by scenario and machine.
    pub runs: Runs,
    /// Those without a record.
    pub failed: Vec<String>,
}

/// Runs each scenario of `real` whose script is in `scripts` with the seeds from 1 to `seeds`.
///
/// # Errors
/// A script that cannot be read.
pub fn model(real: &Runs, scripts: &Path, machine: &Path, seeds: u64) -> Result<Modelled> {
    let mut jobs: Vec<(String, [&str; 3], Arc<Script>, u64)> = Vec::new();
    for (scenario, machines) in &real.scenarios {
        let script = Arc::new(load(&scripts.join(format!("{scenario}.t")))?);
        for of in MACHINES.into_iter().filter(|of| machines.contains_key(of[0])) {
            jobs.extend((1..=seeds).map(|seed| (scenario.clone(), of, script.clone(), seed)));
        }
    }
    let done: Vec<_> = jobs
        .into_par_iter()
        .map(|(scenario, of, script, seed)| {
            let [name, vm, engine] = of;
            let mut options = Options::of(vm, engine, machine, &[])?;
            options.write_limit =
                WRITE_LIMITS.into_iter().find(|(limited, _)| *limited == scenario).map(|(_, limit)| limit);
            Ok((scenario, name, seed, options.run(&script, seed)))
        })
        .collect::<Result<_>>()?;
    let (mut runs, mut failed) = (Runs::default(), Vec::new());
    for (scenario, machine, seed, run) in done {
        match run {
            Ok(run) => {
                let killed = run.killed.first();
                failed.extend(killed.map(|of| {
                    format!(
                        "{scenario} {machine} seed {seed}: killed {:?} at {} ms",
                        of.name,
                        of.at / 1_000_000_000
                    )
                }));
                runs.add(scenario, machine.into(), Arc::new(run.records.into_iter().collect()));
            }
            Err(why) => failed.push(format!("{scenario} {machine} seed {seed}: {why}")),
        }
    }
    Ok(Modelled { runs, failed })
}
