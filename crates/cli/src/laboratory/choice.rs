//! What verbs that model take: engines, a start, a machine, policies of page replacement.

use crate::input::expect_file;
use crate::outcome::{Failure, tell};
use crate::output::{Named, named};
use slablab_engines::{ByCache, parse, parse_choice, parse_with};
use slablab_experiment::Simulated;
use slablab_experiment::pressure::preset as vm;
use slablab_machines as machine;
use slablab_replay::replay::Options;
use slablab_replay::replay::before::Before;
use slablab_slabs::preset::Text;
use slablab_slabs::{Preset, Release};
use std::path::{Path, PathBuf};

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
