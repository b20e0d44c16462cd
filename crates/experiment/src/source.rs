//! Where experiments are: installed, in a file, in a folder of results.

use super::file::ExperimentFile;
use super::input::Input;
use slablab_machines::{INSTALLED as MACHINES, Machine, MachineFile};
use slablab_report::error::{At, Error, Result};
use slablab_report::nearest::nearest;
use slablab_report::{Limit, read_at_most};
use std::path::{Path, PathBuf};

/// An experiment that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The name to ask for.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! installed {
    ($($name:literal,)*) => {
        /// All experiments that come with the program.
        pub const INSTALLED: &[Installed] = &[$(Installed {
            name: $name,
            text: include_str!(concat!("../experiments/", $name, ".toml")),
        },)*];
    };
}

installed! {
    "000",
    "000-kbuild",
    "000-tmpfs",
    "000-variants",
    "001",
    "001-loops",
    "001-memory",
    "002",
    "002-aim",
    "002-mkfs",
    "003-hackbench",
    "003-kbuild",
    "003-netio",
    "003-netperf",
    "003-oltp",
    "003-tbench",
    "004-apps",
    "004-followup",
    "004-make",
    "004-netatalk",
    "004-streaming",
    "2026",
    "brouer",
    "cpu-partial",
    "fork-exec-7.0",
    "fork-exec-7.0-arm64",
    "joonsoo-4.7",
    "kfree-rcu",
    "lkp-remote-refill",
    "maple-6.18",
    "memoryless-slqb",
    "mglru-7.2",
    "micro",
    "min-objects-2008",
    "mmap-stress",
    "mmap1-spr",
    "netio-min-partial",
    "orders-5.11",
    "placements",
    "scale",
    "sheaf-tuning-hackbench",
    "sheaf-tuning-mmap1",
    "sheaf-tuning-netperf",
    "sheaf-tuning-ublk",
    "sheaves-micro",
    "turin512-brk1",
    "turin512-brk1-threads",
    "turin512-mmap1",
    "turin512-mmap1-threads",
}

/// The experiments of one mail: those that come with the program and are named `name`, or `name` with a
/// hyphen and more. None, if there are no such.
pub fn of_mail(name: &str) -> Vec<&'static str> {
    let is_of = |rest: &str| rest.is_empty() || rest.starts_with('-');
    let names = INSTALLED.iter().map(|installed| installed.name);
    names.filter(|full| full.strip_prefix(name).is_some_and(is_of)).collect()
}

/// An experiment with its machines.
#[derive(Clone)]
pub struct Experiment {
    /// The file.
    pub file: ExperimentFile,
    /// The machines, in the file's order.
    pub machines: Vec<On>,
    /// Where it was read, for errors: a path, or an installed name.
    pub path: PathBuf,
}

/// An experiment as texts. Recordings stay where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Where the experiment was read, for errors.
    pub path: PathBuf,
    /// Its file.
    pub text: String,
    /// The files of its machines, in the experiment's order.
    pub machines: Vec<String>,
    /// Its recordings: each one's path, and the SHA-256 of its bytes.
    pub recordings: Vec<(PathBuf, String)>,
}

/// A machine of an experiment.
#[derive(Clone, Debug)]
pub struct On {
    /// As the experiment writes it: an installed name, or a path.
    pub given: String,
    /// Its name in tables.
    pub name: String,
    /// The text of its file.
    pub text: String,
    /// The machine.
    pub machine: Machine,
}

impl Experiment {
    /// Reads an experiment: an installed one by its name, or a file. A name with a slash or a dot is a path.
    ///
    /// # Errors
    /// What cannot be read or understood, with its line; a name that is neither, with the nearest names.
    pub fn find(given: &Path) -> Result<Experiment> {
        let name = given.to_str().unwrap_or_default();
        if let Some(installed) = INSTALLED.iter().find(|installed| installed.name == name) {
            let file = ExperimentFile::parse(installed.text).at(given)?;
            debug_assert!(file.inputs().next().is_none(), "an installed experiment has no folder");
            return Experiment::with_machines(file, given, &|machine| on_installed(machine, given));
        }
        if given.exists() || name.is_empty() || name.contains(['/', '.']) {
            let file = ExperimentFile::parse(&read(given)?).at(given)?;
            let folder = given.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            file.inputs().try_for_each(|input| input.find(folder, given))?;
            return Experiment::with_machines(file, given, &|machine| on(machine, folder, given));
        }
        let near = nearest(name, INSTALLED.iter().map(|installed| installed.name), 3);
        let near = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
        let what = format!("no such file, and no experiment of this name (slablab list experiments){near}");
        Err(Error::new(given, what))
    }

    /// Refuses an experiment that nothing was published of.
    ///
    /// # Errors
    /// What it lacks.
    pub fn expect_published(&self) -> Result<()> {
        let what =
            "the experiment has no [[published]], [[expect]] or [[linear]]: `slablab run` shows its figures";
        if self.file.has_published() { Ok(()) } else { Err(Error::new(&self.file.name, what)) }
    }

    /// The experiment that a folder of results was made from.
    ///
    /// # Errors
    /// A folder that is no such folder.
    pub fn stored(folder: &Path) -> Result<Experiment> {
        let path = folder.join(EXPERIMENT);
        let file = ExperimentFile::parse(&read(&path)?).at(&path)?;
        for (at, input) in file.inputs().enumerate() {
            input.find_at(folder.join(stored_input(at)))?;
        }
        let names = file.machines.clone();
        Experiment::with_machines(file, &path, &|given| {
            let at = names.iter().position(|name| name == given).expect("a machine of the file");
            let path = folder.join(stored_machine(at));
            on_text(given, read(&path)?, &path)
        })
    }

    /// All that the experiment consists of, for a process elsewhere.
    pub fn parts(&self) -> Parts {
        let recording = |input: &Input| {
            let path = input.path().unwrap_or(Path::new(input.given())).to_path_buf();
            (path, input.sha256().to_string())
        };
        Parts {
            path: self.path.clone(),
            text: self.file.text.clone(),
            machines: self.machines.iter().map(|on| on.text.clone()).collect(),
            recordings: self.file.inputs().map(recording).collect(),
        }
    }

    /// The experiment that [`Experiment::parts`] took apart.
    ///
    /// # Errors
    /// Parts that are no experiment's, and a recording that is not where it was, or is another one.
    pub fn of_parts(parts: &Parts) -> Result<Experiment> {
        let path = &parts.path;
        let file = ExperimentFile::parse(&parts.text).at(path)?;
        for (input, (recording, sha256)) in file.inputs().zip(&parts.recordings) {
            input.find_at(recording.clone())?;
            if input.sha256() != sha256 {
                let what = "this is another recording than the experiment's: expected the same file here";
                return Err(Error::new(recording, what));
            }
        }
        let names = file.machines.clone();
        Experiment::with_machines(file, path, &|given| {
            let text = names.iter().position(|name| name == given).and_then(|at| parts.machines.get(at));
            match text {
                Some(text) => on_text(given, text.clone(), path),
                None => Err(Error::new(path, unknown(given))),
            }
        })
    }

    /// An experiment of a text that names installed machines only; `path` is its name in errors.
    pub(super) fn of_text(text: &str, path: &Path) -> Result<Experiment> {
        let file = ExperimentFile::parse(text).at(path)?;
        Experiment::with_machines(file, path, &|machine| on_installed(machine, path))
    }

    fn with_machines(
        file: ExperimentFile,
        path: &Path,
        on: &dyn Fn(&str) -> Result<On>,
    ) -> Result<Experiment> {
        let lines = file.machines.iter().zip(&file.machine_lines);
        let machines = lines.map(|(given, line)| {
            // An error of the machine's own file names that file and its line.
            on(given).map_err(|error| match error.path == path {
                true => Error::new(path, format!("line {line}: {}", error.what)),
                false => error,
            })
        });
        let machines = machines.collect::<Result<Vec<_>>>()?;
        let is_second =
            |(at, on): &(usize, &On)| machines[..*at].iter().any(|earlier| earlier.name == on.name);
        if let Some((at, on)) = machines.iter().enumerate().find(is_second) {
            let (line, given) = (file.machine_lines[at], &file.machines[at]);
            let what = format!("line {line}: machines: {given} is the second one of the name {}", on.name);
            return Err(Error::new(path, what));
        }
        Ok(Experiment { file, machines, path: path.to_path_buf() })
    }
}

/// The experiment's file in a folder of results.
pub(crate) const EXPERIMENT: &str = "experiment.toml";

/// A recording in a folder of results.
pub(crate) fn stored_input(at: usize) -> String {
    format!("recording-{at}")
}

/// A machine's file in a folder of results.
pub(crate) fn stored_machine(at: usize) -> String {
    format!("machine-{at}.toml")
}

/// An experiment, or a machine's file beside it. The largest that comes with the program has 40 KiB.
const FILE: Limit = Limit::mib("an experiment (TOML)", 16);

fn read(path: &Path) -> Result<String> {
    let bytes = read_at_most(path, FILE)?;
    String::from_utf8(bytes).map_err(|_| Error::new(path, "expected TOML text"))
}

fn on_installed(given: &str, at: &Path) -> Result<On> {
    match MACHINES.iter().find(|machine| machine.name == given) {
        Some(installed) => on_text(given, installed.text.to_string(), Path::new(given)),
        None => Err(Error::new(at, unknown(given))),
    }
}

fn unknown(given: &str) -> String {
    let near = nearest(given, MACHINES.iter().map(|machine| machine.name), 3);
    let near = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
    format!("machines: {given}: no machine of this name (slablab list machines){near}")
}

/// A machine of an experiment in `folder`. A file outside of the folder is refused: what an experiment
/// depends on travels with it.
fn on(given: &str, folder: &Path, at: &Path) -> Result<On> {
    if MACHINES.iter().any(|machine| machine.name == given) {
        return on_installed(given, at);
    }
    let path = folder.join(given);
    if !given.contains(['/', '.']) && !path.exists() {
        return Err(Error::new(at, unknown(given)));
    }
    let (inside, whole) = (folder.canonicalize().at(folder)?, path.canonicalize().at(&path)?);
    if !whole.starts_with(&inside) {
        let expected = "expected a file in the experiment's folder, or a name (slablab list machines)";
        return Err(Error::new(at, format!("machines: {given} is outside of the folder: {expected}")));
    }
    on_text(given, read(&path)?, &path)
}

fn on_text(given: &str, text: String, at: &Path) -> Result<On> {
    let file = MachineFile::parse(&text).at(at)?;
    let machine = file.machine().at(at)?;
    let stem = Path::new(given).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = file.name.clone().or(stem).unwrap_or_else(|| given.to_string());
    Ok(On { given: given.to_string(), name, text, machine })
}
