//! `slablab top PID`: what a process that runs under slablab holds, like slabtop.
//!
//! ```text
//! run             a screen, or one answer
//!   Process       the process, by /proc
//!   Directory     where its library keeps its counts
//!   purge         asks it to give back what it does not need
//!   sample        one look at them
//!     pins          which slabs' free memory is kept
//!   view          the answer
//!   profile       a look as a file of pprof's
//! ```
//!
//! The process does nothing for a look: no signal, no stop, no store.

mod directory;
#[cfg(any(test, feature = "fuzz"))]
mod noise;
mod pins;
mod process;
mod profile;
mod purge;
mod sample;
#[cfg(test)]
mod tests;
mod view;

use crate::outcome::{Done, Failure, tell};
use crate::output::{Format, write_out};
use crate::watch::terminal::{self, Screen, Wake};
use directory::{Bad, Directory};
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use noise::fuzz;
use process::{Memory, Process};
use ratatui::crossterm::event::{KeyCode, KeyEventKind, KeyModifiers};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use slablab_report::AtomicFile;
use slablab_report::document::Named;
use slablab_report::error::At;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use view::{Look, Question, Sort};

/// Which process to look at, and how.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The process: its number
    pid: u32,
    /// Print one answer and end
    #[arg(long)]
    once: bool,
    /// Have the process give back all memory that no object needs; print what it gave back and end
    #[arg(long)]
    purge: bool,
    /// Show which caches' objects keep memory that is free, and end
    #[arg(long, conflicts_with_all = ["purge", "sort"])]
    pins: bool,
    /// Write what each cache holds to FILE, for pprof; print the answer and end
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Format of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// What comes first
    #[arg(short, long, value_enum, default_value = "bytes")]
    sort: Sort,
    /// Seconds between looks
    #[arg(short, long, value_name = "SECONDS", default_value_t = 2.0, value_parser = delay)]
    delay: f64,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
}

fn delay(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected seconds from 0.1 to 3600".into())
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let on_screen = !(args.once || args.purge || args.pins || args.pprof.is_some());
    if on_screen && args.format != Format::Table {
        return Err("--format json and csv need --once: the screen is a table".into());
    }
    let process = Process::open(args.pid)?;
    let said = |bad: Bad| failure(&process, &bad);
    let directory = Directory::find(&process).map_err(said)?;
    if on_screen {
        if !std::io::stdout().is_terminal() {
            return Err("standard output is no terminal; --once prints one answer".into());
        }
        return screen(&args, &process, &directory);
    }
    let purge = |before: Look| {
        let purged = purge::ask(&process, &directory)?;
        Ok(view::Purge { heap_bytes_before: before.sample.heap_bytes, purged })
    };
    let before = if args.purge { Some(look(&process, &directory).map_err(said)?) } else { None };
    let purge = before.map(purge).transpose().map_err(said)?;
    let question = match &purge {
        Some(purge) => Question::Purge(purge),
        None if args.pins => Question::Pins,
        None => Question::Holds,
    };
    let look = look(&process, &directory).map_err(said)?;
    if let Some(path) = &args.pprof {
        let mut file = AtomicFile::create(path)?;
        profile::of(&look).write(&mut file).at(path)?;
        file.commit()?;
    }
    let answer = view::answer(&look, None, args.sort, &question);
    let text = match args.format {
        Format::Table => answer.text(args.wide),
        Format::Json => slablab_report::json::document(&answer.json()),
        Format::Csv => answer.csv().expect("the answer has rows"),
    };
    write_out(&text, None)?;
    let waits = purge.is_some_and(|purge| purge.purged.is_none());
    Ok(if waits { Done::Incomplete } else { Done::Complete })
}

/// The schemas of these answers.
pub(crate) fn schemas() -> Vec<Named> {
    vec![view::schema()]
}

/// One look at the process.
fn look(process: &Process, directory: &Directory) -> Result<Look, Bad> {
    let sample = sample::take(process, directory)?;
    let (minor_faults, major_faults) = process.faults()?;
    Ok(Look {
        pid: process.pid,
        command: process.name.clone(),
        engine: directory.text(directory::ENGINE.0, directory::ENGINE.1),
        slots: directory.text(directory::SLOTS.0, directory::SLOTS.1),
        version: directory.text(directory::VERSION.0, directory::VERSION.1),
        page_bytes: directory.page_bytes(),
        at: Instant::now(),
        minor_faults,
        major_faults,
        sample,
    })
}

/// The live screen, until a key, a signal, or the process's end.
fn screen(args: &Args, process: &Process, directory: &Directory) -> Result<Done, Failure> {
    let wakes = terminal::wakes()?;
    let mut sort = args.sort;
    let (mut now, mut before) = (look(process, directory).map_err(|bad| failure(process, &bad))?, None);
    let mut screen = Screen::take()?;
    loop {
        screen.draw(|frame| {
            slablab_report::text::set_width(frame.area().width.into());
            let text = view::answer(&now, before.as_ref(), sort, &Question::Holds).text(args.wide);
            let lines: Vec<Line> = text.lines().map(Line::raw).collect();
            frame.render_widget(Paragraph::new(lines), frame.area());
        })?;
        let due = now.at + Duration::from_secs_f64(args.delay);
        match wakes.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(Wake::Event(event)) => {
                let Some(key) = event.as_key_event().filter(|key| key.kind != KeyEventKind::Release) else {
                    continue;
                };
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('z') if control => screen = screen.suspend()?,
                    KeyCode::Char('c') if control => return Ok(Done::Complete),
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(Done::Complete),
                    KeyCode::Char(letter) => sort = Sort::of(letter).unwrap_or(sort),
                    _ => {}
                }
            }
            Ok(Wake::Suspend) => screen = screen.suspend()?,
            Ok(Wake::End(signal)) => return Ok(Done::Ended { signal }),
            Ok(Wake::Lost(error)) => return Err(format!("the keyboard cannot be read: {error}").into()),
            Err(RecvTimeoutError::Timeout) => match look(process, directory) {
                Ok(next) => before = Some(std::mem::replace(&mut now, next)),
                Err(bad) => {
                    drop(screen);
                    return ended(process, bad);
                }
            },
            Err(RecvTimeoutError::Disconnected) => return Ok(Done::Complete),
        }
    }
}

/// The end of the looks at a process: it has ended, or cannot be read any more.
fn ended(process: &Process, bad: Bad) -> Result<Done, Failure> {
    if process.mappings().is_ok_and(|mappings| !mappings.is_empty()) {
        return Err(failure(process, &bad));
    }
    tell(format_args!("process {} ({}) has ended", process.pid, process.name));
    Ok(Done::Complete)
}

fn failure(process: &Process, bad: &Bad) -> Failure {
    format!("process {} ({}): {bad}", process.pid, process.name).into()
}
