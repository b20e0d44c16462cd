//! Git, as a program: what it is told, what it says, and its errors.

use crate::build::{Ending, run};
use slablab_report::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Settings under which git does what it is told, whatever the user's settings are: no hooks, no signatures,
/// no files that are left out, no words for people.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.autocrlf=false",
    "core.quotePath=false",
    "core.looseCompression=1",
    "log.showSignature=false",
    "gc.auto=0",
];

/// Where git looks.
#[derive(Clone, Debug)]
pub(super) struct Git {
    /// What errors name.
    pub(super) shown: PathBuf,
    /// Variables of its environment.
    pub(super) variables: Vec<(&'static str, OsString)>,
}

impl Git {
    /// Git in a folder.
    pub(super) fn at(folder: &Path) -> Git {
        Git { shown: folder.into(), variables: Vec::new() }
    }

    /// With another variable.
    pub(super) fn with(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Git {
        self.variables.push((name, value.as_ref().into()));
        self
    }

    /// The command of these words, in `folder`.
    pub(super) fn command<S: AsRef<OsStr>>(
        &self,
        folder: &Path,
        words: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        command.arg("--no-pager").args(words).current_dir(folder);
        command
    }

    /// What git prints.
    ///
    /// # Errors
    /// No git; what git says.
    pub(super) fn says<S: AsRef<OsStr>>(
        &self,
        folder: &Path,
        words: impl IntoIterator<Item = S>,
    ) -> Result<String> {
        let output = self.command(folder, words).stdin(std::process::Stdio::null()).output();
        let output = output.map_err(|error| self.missing(&error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(self.refused(said.lines()))
    }

    /// Runs git to its end. `go` is asked from time to time whether to go on.
    ///
    /// # Errors
    /// No git; what git says; [`Ending::Stopped`].
    pub(super) fn does<S: AsRef<OsStr>>(
        &self,
        folder: &Path,
        words: impl IntoIterator<Item = S>,
        go: &mut dyn FnMut() -> bool,
    ) -> std::result::Result<(), Ending> {
        let ran = run(&mut self.command(folder, words), &mut |_| go()).map_err(|ending| match ending {
            Ending::Bad(error) if error.what.contains("No such file") => Ending::Bad(no_git()),
            ending => ending,
        })?;
        match ran.status.success() {
            true => Ok(()),
            false => Err(Ending::Bad(self.refused(ran.lines.iter().map(String::as_str)))),
        }
    }

    /// The error of what git said.
    fn refused<'a>(&self, lines: impl Iterator<Item = &'a str>) -> Error {
        let plain = |line: &'a str| {
            let line = line.trim_end();
            line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")).unwrap_or(line)
        };
        let said: Vec<&str> = lines.map(plain).filter(|line| !line.is_empty()).collect();
        let said = if said.is_empty() { "without a word".into() } else { said.join("\n") };
        Error::new(&self.shown, format!("git refused: {said}"))
    }

    fn missing(&self, error: &std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::NotFound => no_git(),
            _ => Error::new("git", error),
        }
    }
}

fn no_git() -> Error {
    Error::new("git", "this program is needed to read commits and patches: run `apt install git`")
}
