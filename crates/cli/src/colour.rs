//! Whether answers have colour, and how wide the terminal is. Both are of standard output.

use slablab_report::text;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    /// Also into files and pipes
    Always,
    /// Never
    Never,
}

static COLOUR: AtomicBool = AtomicBool::new(false);

/// The most and the least columns that a text is wrapped to: longer lines are hard to read.
const COLUMNS: std::ops::RangeInclusive<usize> = 40..=120;

/// Takes the choice, and the width of the terminal.
pub(crate) fn set(when: When) {
    let wanted = match when {
        When::Always => true,
        When::Never => false,
        When::Auto => is_automatic(&std::io::stdout()),
    };
    COLOUR.store(wanted, Relaxed);
    if let Some(columns) = columns() {
        text::set_width(columns.clamp(*COLUMNS.start(), *COLUMNS.end()));
    }
}

/// Whether a stream has colour if the user does not choose.
pub(crate) fn is_automatic(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    stream.is_terminal() && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// The columns of the terminal that is standard output.
pub(crate) fn columns() -> Option<usize> {
    // Without a terminal the library would start `tput` to ask.
    let terminal = std::io::stdout().is_terminal().then(ratatui::crossterm::terminal::size);
    let (columns, _) = terminal?.ok()?;
    Some(usize::from(columns)).filter(|columns| *columns > 0)
}

/// Whether texts on standard output have colour.
pub(crate) fn wanted() -> bool {
    COLOUR.load(Relaxed)
}
