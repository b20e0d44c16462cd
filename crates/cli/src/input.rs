//! Inputs that several verbs read: states of machines, recordings, sizes, times. And progress.

use crate::outcome::Failure;
use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};
use slablab_doctor::state::{self, State, page_size};
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

/// Refuses `-` for an option whose file is not read from standard input.
pub(crate) fn expect_file<'a>(option: &str, path: &'a Path, expected: &str) -> Result<&'a Path, Failure> {
    if path == Path::new("-") {
        let what = "standard input is not read for this option: expected";
        return Err(format!("{option} -: {what} {expected}").into());
    }
    Ok(path)
}

/// Progress on a terminal only. It is cleared at its end. Beside the bar: what is done, and the whole.
pub(crate) struct Progress(pub(crate) ProgressBar, pub(crate) Arc<[AtomicU64; 2]>);

impl Progress {
    pub(crate) fn new(what: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden(), Arc::default());
        }
        let bar = ProgressBar::new(0).with_style(style("{msg} {wide_bar} {percent} % {rate} {eta}"));
        Progress(bar.with_message(what.to_string()), Arc::default())
    }

    pub(crate) fn at(&self, done: u64, whole: u64) {
        self.0.set_length(whole);
        self.0.set_position(done);
        self.1.iter().zip([done, whole]).for_each(|(at, now)| at.store(now, Relaxed));
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

/// A time with a unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let error = || format!("expected a time such as 500ms, 10s, 2m or 1h, found {text}");
    let digits = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| error())?;
    let seconds = match &text[digits..] {
        "ms" => number / 1000.0,
        "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(error()),
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).ok_or_else(error)
}
