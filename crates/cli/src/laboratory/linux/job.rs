//! What is run of each build: a recording or an experiment.

use crate::input::{Progress, expect_file};
use crate::laboratory::choice::{Start, costed, engine};
use crate::laboratory::recording::open;
use crate::laboratory::run::How;
use crate::outcome::Failure;
use slablab_experiment::series::{Kept, Of, Ran, of_experiment, of_recording};
use slablab_experiment::{Experiment, Options, Plan};
use slablab_replay::replay;
use slablab_report::visible;
use slablab_trace::Reader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::SystemTime;

/// What is run.
#[derive(clap::Args)]
pub(super) struct What {
    /// Run an experiment with each build: a file (TOML), or a name of `slablab list experiments`
    #[arg(long, value_name = "EXPERIMENT")]
    pub(super) run: Option<PathBuf>,
    /// Replay a recording with each build: anything that `slablab replay` takes
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub(super) replay: Option<PathBuf>,
    /// With --replay: the state before the recording, as for `slablab replay`
    #[arg(long, value_name = "DUMP", requires = "replay")]
    before: Vec<PathBuf>,
    /// With --replay: the machine to replay on instead of the recording's
    #[arg(long, value_name = "MACHINE", requires = "replay")]
    machine: Option<PathBuf>,
}

impl What {
    /// The files that are read.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.replay.iter().chain(&self.before).chain(&self.machine)
    }
}

/// A job that can be run.
pub(super) enum Job {
    Replay { reader: Box<Reader>, path: PathBuf, options: Box<replay::Options> },
    Run { experiment: Box<Experiment>, options: Box<Options> },
}

impl Job {
    /// Reads what is to be run; `None` if nothing is named.
    pub(super) fn of(what: &What, how: &How) -> Result<Option<Job>, Failure> {
        if let Some(path) = &what.replay {
            if how.is_of_runs() {
                let words =
                    "--quick, --full, --repeats, --seed, --threads and --force say how an experiment runs";
                return Err(
                    format!("{words}: a replay has one run, expected none of them beside --replay").into()
                );
            }
            expect_file("--replay", path, "a recording")?;
            let start = Start::of(&what.before, what.machine.as_ref());
            let options = Box::new(start.options(path)?);
            let reader = Box::new(open(path, None)?);
            return Ok(Some(Job::Replay { reader, path: path.clone(), options }));
        }
        let Some(path) = &what.run else { return Ok(None) };
        let experiment = Box::new(Experiment::find(path)?);
        let options = Box::new(how.options(experiment.file.repeats.least, None)?);
        Ok(Some(Job::Run { experiment, options }))
    }

    /// What it is, for an answer.
    pub(super) fn shown(&self) -> Of {
        match self {
            Job::Replay { path, .. } => Of::Recording(visible::path(path)),
            Job::Run { experiment, .. } => Of::Experiment(experiment.file.name.clone()),
        }
    }

    /// The folder of what was run, by all that the numbers depend on; `words` has what is no part of the job.
    pub(super) fn kept(
        &self,
        folder: &Path,
        what: &What,
        how: &How,
        mut words: Vec<String>,
    ) -> Result<Kept, Failure> {
        words.push(how.options(1, None)?.program);
        let mut files = Vec::new();
        match self {
            Job::Replay { .. } => {
                words.push("replay".into());
                files.extend(what.files().filter(|path| path.is_file()).cloned());
                words.extend(what.machine.iter().map(|path| visible::path(path)));
                // The files of a folder may be other ones by the next call.
                let is_folder = what.before.iter().any(|path| path.is_dir());
                words.extend(is_folder.then(|| format!("{:?}", SystemTime::now())));
            }
            Job::Run { experiment, options } => {
                let plan = Plan::new(experiment, &options.change)?;
                words.extend(plan.keys(experiment, &options.program));
            }
        }
        Ok(Kept::new(folder, &words, &files)?)
    }

    /// Runs it with an engine. A signal ends the program: what was run before is kept.
    pub(super) fn run(&self, name: &str, shown: &str, signal: &Arc<AtomicUsize>) -> Result<Ran, Failure> {
        let progress = Progress::new(shown);
        let bar = progress.bar();
        let tick = |done, whole| {
            let number = signal.load(Relaxed);
            if number != 0 {
                bar.finish_and_clear();
                std::process::exit(128 + number as i32);
            }
            progress.at(done, whole);
        };
        match self {
            Job::Replay { reader, path, options } => {
                Ok(of_recording((reader, path), options, engine(name, "--replay")?, &tick)?)
            }
            Job::Run { experiment, options } => {
                let preset = costed(name, "--run")?;
                Ok(of_experiment(experiment, (name.to_string(), preset), options, &tick)?)
            }
        }
    }
}
