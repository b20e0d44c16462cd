//! Inputs that several verbs read: states of machines, recordings, engines, machine files. And progress.

use crate::outcome::{Failure, tell};
use crate::output::{Named, named};
use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};
use slablab_doctor::state::{self, State, page_size};
use slablab_engines::{ByCache, parse, parse_choice, parse_with};
use slablab_experiment::Pulse;
use slablab_experiment::Simulated;
use slablab_experiment::pressure::preset as vm;
use slablab_machines as machine;
use slablab_replay::import::{self, Input};
use slablab_replay::replay::Options;
use slablab_replay::replay::before::Before;
use slablab_slabs::preset::Text;
use slablab_slabs::{Preset, Release};
use slablab_trace::Reader;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The slab memory of which machine.
#[derive(clap::Args)]
pub(crate) struct InputArgs {
    /// Directory, tar, support bundle, slabinfo, output of grep -r, or any text with slabtop, vmstat -m or
    /// messages of the kernel in it; - for standard input; without it, this machine
    pub(crate) input: Option<PathBuf>,
    /// Page size, for example 4K or 65536, if the input does not contain it
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    pub(crate) page_size: Option<u64>,
    /// Number of CPUs, if the input does not contain it
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<u32>,
}

impl InputArgs {
    /// Reads the state.
    pub(crate) fn read(&self) -> Result<State, Failure> {
        self.read_at(self.input.clone())
    }

    /// Reads another state of the same machine.
    pub(crate) fn read_at(&self, path: Option<PathBuf>) -> Result<State, Failure> {
        Ok(state::read(&self.asked(path))?)
    }

    /// A file of the same machine, as a state is read from it.
    pub(crate) fn asked(&self, path: Option<PathBuf>) -> state::Input {
        state::Input { path, page_size: self.page_size, cpus: self.cpus }
    }

    /// Reads an earlier state of the same machine: of a recording, the one before it.
    pub(crate) fn read_earlier(&self, path: PathBuf) -> Result<State, Failure> {
        Ok(state::read_at(&self.asked(Some(path)), state::Moment::Before)?)
    }
}

/// Which engines, from which start.
#[derive(clap::Args)]
pub(crate) struct Choice {
    /// Engine, as `engine[@release][,knob=value]...`, also `CACHE/knob=value`; may be repeated (see `slablab
    /// list engines`)
    #[arg(long = "engine", value_name = "ENGINE")]
    pub(crate) engines: Vec<String>,
    #[command(flatten)]
    pub(crate) start: Start,
}

/// Which machine, in which state.
#[derive(clap::Args)]
pub(crate) struct Start {
    /// State before the recording: a tar or directory of /proc and /sys/kernel/slab (`/` for this machine),
    /// or the text of /proc/slabinfo. May be given twice: the second with totals read later, nearer to the
    /// recording, for example `--before before.tar.xz --before slabinfo-start.txt`
    #[arg(long, value_name = "DUMP")]
    before: Vec<PathBuf>,
    /// Machine to replay on instead of the recording's: a name of `slablab list machines`, or a file (TOML),
    /// which may say a part only
    #[arg(long, value_name = "MACHINE")]
    machine: Option<PathBuf>,
    /// Release of the recording kernel, if neither the recording nor the dump tells it, for example 6.1
    #[arg(long, value_name = "RELEASE", value_parser = release)]
    release: Option<Release>,
    /// Do not use the slabs that `slablab record` read one by one: guess the start, as of other recordings
    #[arg(long)]
    no_snapshot: bool,
    /// Take a dump of another release, architecture or page size than the recording's
    #[arg(long)]
    force: bool,
}

/// A release as `uname -r` has it.
fn release(text: &str) -> Result<Release, String> {
    let expected = || "expected a release of a kernel, for example 6.1 or 6.1.0-50-amd64".to_string();
    Release::parse(text).ok_or_else(expected)
}

/// The forms of a dump that `--before` and `--after` take.
pub(crate) const DUMP: &str =
    "a tar or directory of /proc and /sys/kernel/slab, or the text of /proc/slabinfo";

impl Start {
    /// The state before: one dump, or two of one machine.
    pub(crate) fn before(&self) -> &[PathBuf] {
        &self.before
    }

    /// The machine.
    pub(crate) fn machine(&self) -> Option<&Path> {
        self.machine.as_deref()
    }

    /// The start of these files.
    pub(crate) fn of(before: &[PathBuf], machine: Option<&PathBuf>) -> Start {
        Start {
            before: before.to_vec(),
            machine: machine.cloned(),
            release: None,
            no_snapshot: false,
            force: false,
        }
    }

    /// The files that are read.
    pub(crate) fn files(&self) -> impl Iterator<Item = Named<'_>> {
        named("--before", &self.before).chain(named("--machine", &self.machine))
    }

    /// Reads the files. Without a state of before, it is the one in `recording`, if that has one.
    pub(crate) fn options(&self, recording: &Path) -> Result<Options, Failure> {
        let file =
            |option, path: &'_ PathBuf, expected| expect_file(option, path, expected).map(Path::to_path_buf);
        let machine = self.machine.as_ref().map(|path| file("--machine", path, "a machine file (TOML)"));
        self.before.iter().try_for_each(|path| file("--before", path, DUMP).map(drop))?;
        let machine = machine.transpose()?;
        let machine = machine.as_deref().map(machine::find).transpose()?.unwrap_or_default();
        let mut before = Before::read_for(recording, &self.before)?;
        if let Some(before) = before.as_mut().filter(|_| self.no_snapshot) {
            before.snapshots = None;
        }
        let Start { release, force, .. } = *self;
        Ok(Options { machine, before, release, force, ..Options::default() })
    }
}

impl Choice {
    /// The engines, and the machine and state to start from, which may be in `recording`.
    pub(crate) fn options(&self, recording: &Path) -> Result<Options, Failure> {
        let engines = self.engines.iter().map(|text| engine(text, "--engine"));
        let engines = engines.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Options { engines, ..self.start.options(recording)? })
    }
}

/// Understands the choice of an engine; `what` is its name on the command line.
pub(crate) fn preset(text: &str, what: &str) -> Result<Preset, Failure> {
    let preset = parse(text).map_err(|bad| format!("{what} {text}: {bad}"))?;
    tell_stand_in(text, what, preset);
    Ok(preset)
}

/// As [`preset`], of an engine that runs on a modelled machine with costs.
pub(crate) fn costed(text: &str, what: &str) -> Result<Preset, Failure> {
    let preset = parse_with::<Simulated>(text).map_err(|bad| format!("{what} {text}: {bad}"))?;
    tell_stand_in(text, what, preset);
    Ok(preset)
}

/// Understands the choice of an engine and of the debugging around it; `what` is its name on the command
/// line.
pub(crate) fn engine(text: &str, what: &str) -> Result<ByCache, Failure> {
    let choice = parse_choice(text).map_err(|bad| format!("{what} {text}: {bad}"))?;
    tell_stand_in(text, what, choice.choice.preset);
    Ok(choice)
}

/// Says which preset stands for a release that has none.
fn tell_stand_in(text: &str, what: &str, preset: Preset) {
    let asked = Text::split(text).release.and_then(Release::parse);
    if asked.is_some_and(|asked| asked != preset.release()) {
        tell(format_args!("{what} {text}: the newest preset that is not newer is {preset}"));
    }
}

/// As for engines, of a policy of page replacement.
pub(crate) fn tell_vm_stand_in(text: &str, what: &str) {
    let (Ok(preset), Some((_, asked))) =
        (vm::Preset::parse(text), text.split(',').next().unwrap_or_default().split_once('@'))
    else {
        return;
    };
    let number = |release: Release| [release.major, release.minor, release.patch].map(u32::from);
    let is_other = Release::parse(asked).is_none_or(|asked| number(asked) != preset.kernel);
    if preset.release != asked && is_other {
        tell(format_args!("{what} {text}: the newest preset that is not newer is {preset}"));
    }
}

/// Refuses `-` for an option whose file is not read from standard input.
pub(crate) fn expect_file<'a>(option: &str, path: &'a Path, expected: &str) -> Result<&'a Path, Failure> {
    if path == Path::new("-") {
        let what = "standard input is not read for this option: expected";
        return Err(format!("{option} -: {what} {expected}").into());
    }
    Ok(path)
}

/// Opens a recording, perhaps one of a folder. It is a trace, or anything that `slablab import` reads: then
/// it becomes a trace in a temporary file first.
pub(crate) fn open(path: &Path, recording: Option<&str>) -> Result<Reader, Failure> {
    let progress = Progress::new("import");
    let input = Input { path, recording, formats: None };
    Ok(import::open(input, &mut |events| progress.at(events, events))?)
}

/// Time between two looks at how far runs are.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Progress on a terminal only. It is cleared at its end.
pub(crate) struct Progress(ProgressBar, Arc<Ended>);

/// What is done and the whole, of runs that ended.
#[derive(Default)]
struct Ended([AtomicU64; 2]);

impl Progress {
    pub(crate) fn new(what: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden(), Arc::default());
        }
        let bar = ProgressBar::new(0).with_style(style("{msg} {wide_bar} {percent} % {rate} {eta}"));
        Progress(bar.with_message(what.to_string()), Arc::default())
    }

    /// Progress of simulated runs, within a run too: `pulse` counts in the unit of [`Progress::at`].
    pub(crate) fn of_runs(what: &str, pulse: &Pulse) -> Progress {
        let progress = Progress::new(what);
        if !progress.0.is_hidden() {
            progress.0.set_style(style("{msg} {wide_bar} {percent} % {prefix} {eta}"));
            let (bar, ended, pulse) = (progress.0.clone(), progress.1.clone(), pulse.clone());
            std::thread::spawn(move || show_runs(&bar, &ended, &pulse));
        }
        progress
    }

    pub(crate) fn at(&self, done: u64, whole: u64) {
        self.0.set_length(whole);
        self.0.set_position(done);
        self.1.0.iter().zip([done, whole]).for_each(|(at, now)| at.store(now, Relaxed));
    }

    /// The bar, to be cleared from another thread.
    pub(crate) fn bar(&self) -> ProgressBar {
        self.0.clone()
    }
}

/// A style of a bar. Its `{rate}` is whole things a second.
pub(crate) fn style(template: &str) -> ProgressStyle {
    let rate = |state: &ProgressState, text: &mut dyn Write| {
        let _ = write!(text, "{}/s", HumanCount(state.per_sec() as u64));
    };
    ProgressStyle::with_template(template).expect("the template is right").with_key("rate", rate)
}

/// Draws how far the runs are until the bar is finished. Nothing is drawn before the whole is known: of
/// nothing the bar would say that all is done.
fn show_runs(bar: &ProgressBar, ended: &Ended, pulse: &Pulse) {
    while !bar.is_finished() {
        let [done, whole] = [0, 1].map(|at| ended.0[at].load(Relaxed));
        if whole > 0 {
            bar.set_prefix(format!("{} s simulated", pulse.simulated() / 1_000_000_000_000));
            bar.set_position(done + pulse.partial().min(whole - done.min(whole)));
            bar.tick();
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The command that runs, to be typed again; the program is called by its name, wherever it was.
pub(crate) fn command_line() -> String {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    slablab_report::html::command_line(std::iter::once("slablab").chain(words.iter().map(String::as_str)))
}
/// A number of bytes with a binary unit.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let error = || format!("expected a number of bytes, or one with K, M, G or T, found {text}");
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| error())?;
    let unit = text[digits..].trim_end_matches("iB").to_ascii_uppercase();
    let shift = match unit.as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(error()),
    };
    number.checked_mul(1 << shift).ok_or_else(error)
}
