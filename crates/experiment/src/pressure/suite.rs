//! Every scenario of real records on every machine, modelled, for the judge.

use super::judge::{SEEDS_LEAST, has_two_behaviours};
use super::outcome::is_bimodal;
use super::run::{Options, RUN};
use super::runs::Runs;
use super::scenario::Settings;
use super::script::{affordable, load};
use crate::run::on_threads;
use rayon::prelude::*;
use slablab_report::error::{At, Error, Result};
use slablab_report::nearest::nearest;
use slablab_sim::pulse::Pulse;
use slablab_sim::record::Recorder;
use slablab_trace::script::Script;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A machine of real records: its name there, its memory's policy, its slab allocator.
pub const MACHINES: [[&str; 3]; 6] = [
    ["61-classic", "vm@6.1", "slub@6.1"],
    ["61-mglru", "vm@6.1,lru_gen", "slub@6.1"],
    ["612-classic", "vm@6.12", "slub@6.12"],
    ["612-mglru", "vm@6.12,lru_gen", "slub@6.12"],
    ["618-classic", "vm@6.18", "slub@6.18"],
    ["618-mglru", "vm@6.18,lru_gen", "slub@6.18"],
];

/// Where the project has its scripts.
const BUNDLED: &str = "examples/data/vm";

/// Modelled runs, and what did not run: `scenario machine: why`.
pub struct Modelled {
    /// The runs by scenario and machine.
    pub runs: Runs,
    /// Those without a record.
    pub failed: Vec<String>,
}

/// Scenario, machine, script, how it is run, seed.
type Job = (String, String, Arc<Script>, Arc<Options>, u64);

/// What to run.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Folder with a script for each scenario.
    pub scripts: &'a Path,
    /// The machine's name or file.
    pub machine: &'a Path,
    /// Runs of each scenario and kernel: the seeds from 1 to this; of two behaviours at least
    /// [`SEEDS_LEAST`].
    pub seeds: u64,
    /// Threads; as many as the host has CPUs if not given.
    pub threads: Option<usize>,
    /// Whether scripts run that take very long.
    pub force: bool,
    /// Told how far the runs are that have not ended: 1 is a whole run's [`RUN`]-th part.
    pub pulse: Pulse,
}

/// Those of the runs that are of these scenarios and of these machines, each by its name or its policy
/// (`61-mglru`, `vm@6.1,lru_gen`). An empty list stands for all.
///
/// # Errors
/// A scenario or a machine that no run has, with the names that look like it.
pub fn choose(mut real: Runs, scenarios: &[String], machines: &[String]) -> Result<Runs> {
    let known: Vec<&String> = real.scenarios.keys().collect();
    if let Some(scenario) = scenarios.iter().find(|scenario| !known.contains(scenario)) {
        let names = known.iter().map(|name| name.as_str());
        return Err(unknown("--scenario", "scenario", scenario, names));
    }
    let mut names = Vec::new();
    for machine in machines {
        let found = MACHINES.iter().find(|[name, vm, _]| name == machine || vm == machine);
        let all = MACHINES.iter().flat_map(|[name, vm, _]| [*name, *vm]);
        names.push(found.ok_or_else(|| unknown("--vm", "machine", machine, all))?[0]);
    }
    real.scenarios.retain(|scenario, _| scenarios.is_empty() || scenarios.contains(scenario));
    for runs in real.scenarios.values_mut() {
        runs.retain(|machine, _| names.is_empty() || names.contains(&machine.as_str()));
    }
    Ok(real)
}

fn unknown<'a>(option: &str, what: &str, given: &str, names: impl Iterator<Item = &'a str> + Clone) -> Error {
    let near = nearest(given, names.clone(), 3);
    let (word, names) = match near.is_empty() {
        true => ("one of", names.collect()),
        false => ("perhaps", near),
    };
    Error::new(
        option,
        format!("no {what} of the records is called {given}: expected {word} {}", names.join(", ")),
    )
}

/// Runs each scenario of `real` whose script is in the folder, with each seed. `progress` gets the number of
/// runs that ended, and of all, each times [`RUN`].
///
/// # Errors
/// A script that cannot be read, a machine that cannot be used.
pub fn model(real: &Runs, wanted: &Wanted, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Modelled> {
    let (mut jobs, mut failed): (Vec<Job>, Vec<String>) = Default::default();
    for (scenario, machines) in &real.scenarios {
        let path = wanted.scripts.join(format!("{scenario}.t"));
        if !path.is_file() {
            return Err(Error::new(&path, missing(scenario, wanted.scripts)));
        }
        let (script, settings) = (Arc::new(load(&path)?), Settings::read(wanted.scripts, scenario)?);
        if !wanted.force {
            affordable(&script)?;
        }
        for (of, repeats) in machines {
            let Some(options) = options(real, (scenario, of), settings.clone(), wanted.machine)? else {
                failed
                    .push(format!("{scenario} {of}: this machine is not modelled: {}", expected_machine(of)));
                continue;
            };
            let is_of_two = is_bimodal(scenario, of) || has_two_behaviours(scenario, of, repeats);
            let least = if is_of_two { SEEDS_LEAST } else { 1 };
            let (seeds, options) = (1..=wanted.seeds.max(least), Arc::new(options));
            let job = |seed| (scenario.clone(), of.clone(), script.clone(), options.clone(), seed);
            jobs.extend(seeds.map(job));
        }
    }
    let threads = wanted.threads.unwrap_or_else(rayon::current_num_threads).max(1);
    let modelled = on_threads(threads, || run_all(jobs, &wanted.pulse, progress));
    let mut modelled = modelled.at(Path::new("--threads"))?;
    failed.append(&mut modelled.failed);
    Ok(Modelled { failed, ..modelled })
}

/// How a scenario is run on a machine: as the records say that it was set up, else as the machine's name and
/// the scenario's settings say. `None`: neither says which kernel it is.
fn options(
    real: &Runs,
    (scenario, of): (&str, &str),
    settings: Settings,
    machine: &Path,
) -> Result<Option<Options>> {
    let known = MACHINES.into_iter().find(|known| known[0] == of);
    let recorded = real.configs.of(scenario, of, &settings)?;
    let names = recorded.as_ref().and_then(|recorded| recorded.names.clone());
    let Some([vm, engine]) = names.or(known.map(|[_, vm, engine]| [vm, engine].map(str::to_string))) else {
        return Ok(None);
    };
    let mut options = Options::of(&vm, &engine, machine, &[])?;
    match recorded {
        Some(recorded) => (options.facts, options.settings) = (recorded.facts, recorded.settings),
        None => {
            options.facts = settings.memory_mib.map_or(options.facts, |mib| options.facts.with_memory(mib));
            options.facts.cpus = settings.cpus.unwrap_or(options.facts.cpus);
            options.facts.check()?;
            options.settings = settings;
        }
    }
    Ok(Some(options))
}

/// What is expected in the place of a machine's name.
fn expected_machine(given: &str) -> String {
    let names = MACHINES.map(|known| known[0]);
    let near = nearest(given, names.into_iter(), 1);
    let near = near.first().map(|name| format!("; near it: {name}"));
    format!("expected one of {}{}", names.join(", "), near.unwrap_or_default())
}

/// What is said of a scenario without a script: those of the folder can be chosen.
fn missing(scenario: &str, scripts: &Path) -> String {
    let here = script_names(scripts).unwrap_or_default();
    let here = here.iter().map(|name| format!("--scenario {name}")).collect::<Vec<_>>().join(" ");
    format!("no script of the scenario {scenario} of the records: expected this file, or only {here}")
}

/// The names of the scripts in a folder, without `.t`.
fn script_names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        let is_script = path.extension().is_some_and(|extension| extension == "t");
        names.extend(path.file_stem().filter(|_| is_script).map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn run_all(jobs: Vec<Job>, pulse: &Pulse, progress: &(dyn Fn(u64, u64) + Sync)) -> Modelled {
    let (ended, all) = (AtomicU64::new(0), jobs.len() as u64);
    progress(0, RUN * all);
    let done: Vec<_> = jobs
        .into_par_iter()
        .map(|(scenario, machine, script, options, seed)| {
            let run = options.run_recorded(&script, seed, &Recorder::default().with_beat(pulse.run(RUN)));
            progress(RUN * (ended.fetch_add(1, Ordering::Relaxed) + 1), RUN * all);
            (scenario, machine, seed, run)
        })
        .collect();
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
                runs.add(scenario, machine, Arc::new(run.records.into_iter().collect()));
            }
            Err(why) => failed.push(format!("{scenario} {machine} seed {seed}: {why}")),
        }
    }
    Modelled { runs, failed }
}

/// Where a folder has scripts and records: `scen` beside folders of records, or scripts alone.
///
/// # Errors
/// No folder, or one without a script.
pub fn folders(given: &Path) -> Result<(PathBuf, Option<&Path>)> {
    let scen = given.join("scen");
    let (scripts, records) = if scen.is_dir() { (scen, Some(given)) } else { (given.to_path_buf(), None) };
    let expected = "expected a folder with a script for each scenario, SCENARIO.t";
    if !scripts.is_dir() {
        let found = if scripts.exists() { "a file" } else { "nothing" };
        return Err(Error::new(
            &scripts,
            format!("{expected}, found {found}; those of the project are in {BUNDLED}"),
        ));
    }
    if script_names(&scripts)?.is_empty() {
        return Err(Error::new(&scripts, format!("{expected}, found no script")));
    }
    Ok((scripts, records))
}
