//! Two engines over every registered workload: an experiment for each pair of workload and machine.
//!
//! ```text
//! WORKLOADS ── Workload::suite, or Pair::DEFAULT ── Suite: experiments built in memory
//!                                                     │
//!   FOLDER/suite.json, FOLDER/PAIR/... ────── run, one after the other ── SuiteResults ── one table, Holm over it
//! ```
//!
//! A workload enters the suite by its registration. docs/suite.md is the manual.

use super::plan::{Change, Plan};
use super::run::folder::{self, Folder, RESULT};
use super::run::results::Results;
use super::run::{LONGEST, Options, Shard, run};
use super::source::Experiment;
use super::workload::{Pair, Size, Workload};
use super::workloads::WORKLOADS;
use serde_json::{Value as Json, json};
use slablab_engines as engines;
use slablab_report::error::{At, Error, Result};
use slablab_report::json::document;
use slablab_report::nearest::nearest;
use slablab_report::{AtomicFile, read_text_at_most};
use slablab_sim::heap::Simulated;
use slablab_slabs::Preset;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs of each cell.
pub const REPEATS: u32 = 5;
/// What a folder of a suite holds beside the folders of its experiments.
const MANIFEST: &str = "suite.json";
const SCHEMA: &str = "slablab.suite-plan.1";

/// Two engines, and where they are compared.
#[derive(Clone)]
pub struct Suite {
    /// The engines: the base, and the one that is compared with it.
    pub engines: [(String, Preset); 2],
    /// Each pair of workload and machine, with its experiment.
    pub pairs: Vec<(Pair, Experiment)>,
    /// The workloads that were asked for; all if empty.
    pub only: Vec<String>,
}

/// What a suite gave: the results of each of its experiments, or `None` for those of another part.
#[derive(Clone)]
pub struct SuiteResults {
    /// The suite.
    pub suite: Suite,
    /// What was changed of it.
    pub change: Change,
    /// The results, in the order of [`Suite::pairs`].
    pub results: Vec<Option<Results>>,
}

/// The pairs of workload and machine of the whole suite.
pub fn pairs() -> impl Iterator<Item = (&'static Workload, &'static Pair)> {
    let of = |workload: &'static Workload| {
        let pairs = if workload.suite.is_empty() { Pair::DEFAULT } else { workload.suite };
        pairs.iter().map(move |pair| (workload, pair))
    };
    in_suite().flat_map(of)
}

/// The workloads of the suite: all that need no file of the user's.
fn in_suite() -> impl Iterator<Item = &'static Workload> {
    WORKLOADS.iter().copied().filter(|workload| !workload.needs_file())
}

impl Suite {
    /// The suite of two engines, over the workloads named in `only`, or over all.
    ///
    /// # Errors
    /// A workload that is not known, with the nearest names.
    pub fn new(engines: [(String, Preset); 2], only: &[String]) -> Result<Suite> {
        let names = || in_suite().map(|workload| workload.name);
        if let Some(unknown) = only.iter().find(|name| !names().any(|known| known == name.as_str())) {
            let near = nearest(unknown, names(), 3);
            let known = if near.is_empty() { names().collect() } else { near };
            return Err(Error::new("suite", format!("no workload {unknown}; near it: {}", known.join(", "))));
        }
        let wanted = |workload: &Workload| only.is_empty() || only.iter().any(|name| name == workload.name);
        let mut suite = Suite { engines, pairs: Vec::new(), only: only.to_vec() };
        for (workload, pair) in pairs().filter(|(workload, _)| wanted(workload)) {
            let of_workload = suite.pairs.iter().filter(|(_, one)| one.file.workload.name == workload.name);
            let name = format!("{}-{}", workload.name, of_workload.count() + 1);
            let experiment = suite.experiment(&name, workload, pair)?;
            suite.pairs.push((*pair, experiment));
        }
        Ok(suite)
    }

    /// The experiment of a pair. A suite of one engine with itself has two columns, so that it shows what the
    /// suite says where there is no difference.
    fn experiment(&self, name: &str, workload: &Workload, pair: &Pair) -> Result<Experiment> {
        let [(base, _), (other, _)] = &self.engines;
        let engines = if base == other { format!("{base:?}") } else { format!("{base:?}, {other:?}") };
        let text = format!(
            "name = {name:?}\ntitle = {:?}\nmachines = [{:?}]\nengines = [{engines}]\nworkload = {:?}\n\
             repeats = {REPEATS}\n[parameters]\n{}\n",
            pair.why, pair.machine, workload.name, pair.parameters
        );
        let mut experiment = Experiment::of_text(&text, Path::new(name))?;
        experiment.file.engines = self.engines.to_vec();
        Ok(experiment)
    }

    /// What all runs need of the host: nanoseconds of one core, by experiment.
    ///
    /// # Errors
    /// A pair whose parameters contradict each other or its machine.
    pub fn estimates(&self, change: &Change) -> Result<Vec<u64>> {
        let of = |(_, experiment): &(Pair, Experiment)| {
            Ok(Plan::new(experiment, change)?.estimate(experiment).host_ns.max(1))
        };
        self.pairs.iter().map(of).collect()
    }

    /// Runs the suite. With a folder, each experiment has its own inside it, and goes on where it was
    /// interrupted. A part of the suite is every so many-th pair.
    ///
    /// # Errors
    /// A suite that needs too much of the host, or a folder that cannot be written.
    pub fn run(
        &self,
        options: &Options,
        folder: Option<&Path>,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<SuiteResults> {
        let estimates = self.estimates(&options.change)?;
        let mine = |at: usize| options.shard.is_none_or(|shard| shard.has(at));
        let whole: u64 = (0..estimates.len()).filter(|at| mine(*at)).map(|at| estimates[at]).sum();
        let threads = options.threads.unwrap_or_else(rayon::current_num_threads).max(1);
        let time = Duration::from_nanos(whole / threads as u64);
        if time > LONGEST && !options.force {
            let minutes = time.as_secs() / 60;
            let what = format!(
                "about {minutes} minutes on {threads} threads: --quick, --workload or fewer repeats need less; --force runs it"
            );
            return Err(Error::new("suite", what));
        }
        if let Some(folder) = folder {
            self.write_manifest(folder, &options.change, &options.program)?;
        }
        let mut before = 0;
        let mut results = Vec::new();
        for (at, (_, experiment)) in self.pairs.iter().enumerate() {
            results.push(if mine(at) {
                let inner =
                    folder.map(|folder| Folder::open(&folder.join(&experiment.file.name))).transpose()?;
                let options = Options { shard: None, ..options.clone() };
                let tick = |done: u64, _| progress(before + done.min(estimates[at]), whole);
                let results = run(experiment, &options, inner.as_ref(), &tick)?;
                before += estimates[at];
                Some(results)
            } else {
                None
            });
        }
        Ok(SuiteResults { suite: self.clone(), change: options.change.clone(), results })
    }

    fn write_manifest(&self, folder: &Path, change: &Change, program: &str) -> Result<()> {
        let path = folder.join(MANIFEST);
        if let Ok(mut entries) = fs::read_dir(folder)
            && !path.exists()
            && entries.next().is_some()
        {
            let expected = "expected a new or empty folder, or one of an earlier suite";
            return Err(Error::new(folder, format!("the folder holds other files: {expected}")));
        }
        fs::create_dir_all(folder).at(folder)?;
        let [base, other] = &self.engines;
        let manifest = json!({
            "schema": SCHEMA,
            "program": program,
            "engines": [base.0, other.0],
            "workloads": self.only,
            "size": change.size.map(Size::name),
            "repeats": change.repeats,
            "seed": change.seed,
        });
        let mut file = AtomicFile::create(&path)?;
        file.write_all(document(&manifest).as_bytes()).at(&path)?;
        file.commit()
    }
}

/// Whether a folder is one of a suite.
pub fn is_suite(folder: &Path) -> bool {
    folder.join(MANIFEST).exists()
}

/// Joins folders that hold parts of one suite, and writes the whole to `to`.
///
/// # Errors
/// Folders of different suites or programs, or cells that none of them has.
pub fn join(folders: &[PathBuf], to: Option<&Path>) -> Result<SuiteResults> {
    let first = folders.first().ok_or_else(|| Error::new("report", "expected a folder of a suite"))?;
    let manifest = manifest(first)?;
    for other in &folders[1..] {
        if self::manifest(other)? != manifest {
            let what = "this is a part of another suite, or of another program: run it again";
            return Err(Error::new(other, what));
        }
    }
    let bad = || Error::new(first, format!("{MANIFEST} is no plan of this program"));
    let (suite, change, program) = of_manifest(&manifest).ok_or_else(bad)?;
    let suite = suite?;
    if let Some(to) = to {
        suite.write_manifest(to, &change, &program)?;
    }
    let mut results = Vec::new();
    for (_, experiment) in &suite.pairs {
        let plan = Plan::new(experiment, &change)?;
        let inner: Vec<PathBuf> = folders.iter().map(|folder| folder.join(&experiment.file.name)).collect();
        let cell = |key: &String| inner.iter().find_map(|folder| folder::cell(folder, key));
        let runs: Vec<_> = plan.keys(experiment, &program).iter().map(cell).collect();
        if runs.iter().any(Option::is_none) {
            let what =
                format!("cells of {} are missing: expected the folders of all parts", experiment.file.name);
            return Err(Error::new(first, what));
        }
        let found =
            Results { experiment: experiment.clone(), plan, runs, computed: 0, program: program.clone() };
        if let Some(to) = to {
            found.write_whole(&Folder::open(&to.join(&experiment.file.name))?)?;
        }
        results.push(Some(found));
    }
    Ok(SuiteResults { suite, change, results })
}

fn manifest(folder: &Path) -> Result<Json> {
    let path = folder.join(MANIFEST);
    let text = read_text_at_most(&path, RESULT)?;
    serde_json::from_str(&text).at(&path)
}

/// The suite, its change and the program of a manifest; `None` if it is none.
fn of_manifest(manifest: &Json) -> Option<(Result<Suite>, Change, String)> {
    let engine = |at: usize| {
        let name = manifest["engines"][at].as_str()?;
        Some((name.to_string(), engines::parse_with::<Simulated>(name).ok()?))
    };
    let word = |value: &Json| value.as_str().map(String::from);
    let only: Vec<String> = manifest["workloads"].as_array()?.iter().map(word).collect::<Option<_>>()?;
    let size = manifest["size"].as_str();
    let change = Change {
        size: size.and_then(|size| Size::NAMES.iter().find(|(name, _)| *name == size)).map(|(_, size)| *size),
        repeats: manifest["repeats"].as_u64().and_then(|repeats| repeats.try_into().ok()),
        seed: manifest["seed"].as_u64(),
        draws: None,
    };
    Some((Suite::new([engine(0)?, engine(1)?], &only), change, word(&manifest["program"])?))
}

/// The part of a suite that was run, in words; empty for all of it.
pub fn part(shard: Option<Shard>) -> String {
    shard.map_or(String::new(), |Shard { part, of }| format!("part {} of {of}", part + 1))
}
