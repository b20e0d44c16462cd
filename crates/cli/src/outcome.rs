//! The result of a verb, and its messages to the user. `main` converts the result to an exit code.

use slablab_report::sink::Sink;
use slablab_report::visible;

/// How a verb ended.
pub(crate) enum Done {
    /// With the whole answer.
    Complete,
    /// With the whole answer, which is over a threshold that the user set.
    OverThreshold,
    /// With an answer from an input that lacks something.
    Incomplete,
    /// With the exit code of the program that was recorded.
    #[cfg_attr(not(feature = "laboratory"), expect(dead_code, reason = "of `record`"))]
    Exited { code: u8 },
    /// By a signal.
    Ended { signal: i32 },
}

/// An error for the user, in one line or a few.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Prints a line on standard error. Names in it come from inputs, so control characters are shown as escapes.
/// Standard error may be a pipe whose reader has ended, for example in `2>&1 | head`. Then the line is lost
/// and the program continues.
pub(crate) fn tell(text: impl std::fmt::Display) {
    say(&format!("slablab: {}\n", visible::lines(&text.to_string())));
}

/// Prints text on standard error as it is, as [`tell`] does.
pub(crate) fn say(text: &str) {
    let _ = Sink::new(std::io::stderr()).text(text);
}

/// Prints text with clap's styles on standard error.
pub(crate) fn complain(text: &str) {
    let _ = Sink::new(std::io::stderr()).styled(text);
}
