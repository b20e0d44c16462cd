//! `slablab doctor --watch`: a live screen of slab memory, like slabtop.
//!
//! ```text
//! run             a screen, or one frame as text
//!   terminal      the terminal, keys, signals
//!   App           what is shown, what keys do
//!   draw          header, body, notices, keys
//!     header      slabtop's lines, meminfo's Slab
//!     list        the caches
//!       table     the columns
//!     detail      one cache
//!     cgroups     memory cgroups
//!     help        the keys
//! ```

mod app;
mod cgroups;
mod detail;
mod draw;
mod header;
mod help;
mod list;
mod table;
pub(crate) mod terminal;
#[cfg(test)]
mod tests;
pub(crate) mod theme;

use crate::outcome::{Done, Failure, tell};
use crate::output::write_out;
use app::{After, App};
use slablab_doctor::state::Input;
use slablab_doctor::watch::{SortKey, Source, Track};
use slablab_report::visible;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use table::{Column, Table};
use terminal::{Screen, Wake};
use theme::Theme;

/// How to watch.
#[derive(clap::Args)]
#[command(next_help_heading = "Watching")]
pub(crate) struct Args {
    /// Show slab memory on a live screen, like slabtop; press ? for the keys
    #[arg(long, conflicts_with_all = [
        "input", "cpus", "save", "since", "hours", "force", "recording", "loss", "lines", "aliases", "bytes", "format", "output",
        "html", "fail_over"
    ])]
    pub(crate) watch: bool,
    /// Seconds between samples
    #[arg(short, long, value_name = "SECONDS", default_value_t = 3.0, value_parser = delay, requires = "watch")]
    delay: f64,
    /// Print one frame as text and end
    #[arg(long, requires = "watch")]
    once: bool,
    /// Watch recorded states instead of this machine: the files of a directory, in the order of
    /// their names
    #[arg(long, value_name = "DIR", requires = "watch")]
    from: Option<PathBuf>,
}

fn delay(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected seconds from 0.1 to 3600".into())
}

fn sort_key(letter: char) -> Result<SortKey, Failure> {
    SortKey::of(letter).ok_or_else(|| {
        let known: Vec<String> =
            SortKey::ALL.iter().map(|key| format!("{} {}", key.letter(), key.title())).collect();
        format!("-s {letter}: expected one of: {}", known.join(", ")).into()
    })
}

/// Watches this machine or a recording, `page_size` is for inputs that do not tell it.
pub(crate) fn run(args: Args, sort: char, page_size: Option<u64>) -> Result<Done, Failure> {
    let sort = sort_key(sort)?;
    if !args.once {
        let why = match (std::io::stdout().is_terminal(), std::env::var("TERM").as_deref()) {
            (false, _) => Some("standard output is no terminal"),
            (true, Ok("dumb")) => Some("TERM=dumb is a terminal without a screen"),
            _ => None,
        };
        if let Some(why) = why {
            return Err(format!("{why}; --once prints one frame as text").into());
        }
    }
    let input = Input { path: None, page_size, cpus: None };
    let source = match &args.from {
        Some(folder) => Source::recorded(folder, args.delay, &input)?,
        None => Source::live(page_size)?,
    };
    let mut app = App::new(source, sort, args.delay, Theme::of_environment());
    if args.once {
        once(&mut app)?;
    } else if let Some(signal) = screen(&mut app)? {
        return Ok(Done::Ended { signal });
    }
    for missing in app.missing() {
        // What was not recorded cannot be read any more.
        let command = missing.command.as_ref().filter(|_| matches!(app.source, Source::Live(_)));
        let help = command.map_or(String::new(), |command| format!("; try {command}"));
        tell(format_args!("{}: {}; unknown: {}{help}", missing.file, missing.why, missing.costs));
    }
    Ok(if app.missing().next().is_some() { Done::Incomplete } else { Done::Complete })
}

/// The live screen, until a key or a signal ends it: the signal.
fn screen(app: &mut App) -> Result<Option<i32>, Failure> {
    let wakes = terminal::wakes()?;
    app.tick()?;
    let mut screen = Screen::take()?;
    let mut sampled = Instant::now();
    loop {
        screen.draw(|frame| draw::draw(app, frame))?;
        let due = sampled + Duration::from_secs_f64(app.delay_s);
        let wake = match app.runs() {
            true => wakes.recv_timeout(due.saturating_duration_since(Instant::now())),
            false => wakes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match wake {
            Ok(Wake::Event(event)) => match event.as_key_event().map(|key| app.key(key)).transpose()? {
                Some(After::Quit) => return Ok(None),
                Some(After::Suspend) => screen = screen.suspend()?,
                Some(After::Stay) | None => {}
            },
            Ok(Wake::Suspend) => screen = screen.suspend()?,
            Ok(Wake::End(signal)) => return Ok(Some(signal)),
            Ok(Wake::Lost(error)) => return Err(format!("the keyboard cannot be read: {error}").into()),
            Err(RecvTimeoutError::Timeout) => {
                sampled = Instant::now();
                app.tick()?;
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

/// One frame as plain text: the whole list, names uncut. A recording is played to its end first.
fn once(app: &mut App) -> Result<(), Failure> {
    app.tick()?;
    while matches!(app.source, Source::Recorded(_)) && !app.over {
        app.tick()?;
    }
    let owners = app.source.cgroups()?;
    if !owners.cgroups.is_empty() {
        app.cgroups = Some((owners.clone(), owners));
    }
    write_out(&text(app), None)
}

fn text(app: &App) -> String {
    let mut head = vec![header::title(app, false)];
    if !app.blind() {
        head.extend(header::slabtop(app));
    }
    head.push(header::memory(app, usize::MAX));
    let mut lines: Vec<String> = head.iter().map(ToString::to_string).collect();
    if !app.blind() {
        let list = app.list();
        let table = Table::new(&app.watch, &list, None, app.sort);
        let join = |cell: &dyn Fn(Column, usize) -> String| {
            let cells = table.columns().iter().map(|(column, width)| cell(*column, *width));
            cells.collect::<Vec<_>>().join(" ")
        };
        lines.push(String::new());
        lines.push(join(&|column, width| table.head(column, width)));
        let row = |track: &&Track| join(&|column, width| table.fitted(app.theme, column, width, track));
        lines.extend(list.iter().map(row));
    }
    if let Some((now, first)) = &app.cgroups {
        lines.push(String::new());
        lines.extend(cgroups::lines(now, first));
    }
    // Names are those of the input. The screen needs no such step: ratatui drops control characters itself.
    lines.iter().map(|line| visible::name(line.trim_end()).into_owned() + "\n").collect()
}
