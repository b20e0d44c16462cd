//! What is its user's own in a program, and its registration with the verbs.

use super::check::Entry;
use super::trees;
use crate::outcome::Failure;
use clap::Command;
use slablab_bench::own;
use slablab_experiment::pressure::preset;
use slablab_experiment::pressure::registered::Registration as Replacement;
use slablab_slabs::registered::Registration;

/// What a program adds to the laboratory.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) engines: Vec<&'static Registration>,
    pub(crate) benched: Vec<own::Own>,
    pub(crate) checks: Vec<Entry>,
    pub(crate) replacements: Vec<&'static Replacement>,
}

/// What the verbs get, of what is not found by its name.
#[derive(Default)]
pub(crate) struct Registered {
    pub(crate) checks: Vec<Entry>,
}

impl Own {
    /// The command line without options that nothing was added for.
    pub(crate) fn shown(&self, command: Command) -> Command {
        command.mut_subcommand("bench", |verb| {
            verb.mut_arg("engine", |engine| engine.hide(self.benched.is_empty()))
        })
    }

    /// Has every verb know engines and policies by their names.
    pub(crate) fn register(self) -> Result<Registered, Failure> {
        slablab_engines::find_with(("linux", trees::find));
        slablab_engines::register(self.engines).map_err(|refused| refused.to_string())?;
        own::register(self.benched).map_err(|refused| refused.to_string())?;
        preset::register(self.replacements).map_err(|refused| refused.to_string())?;
        Ok(Registered { checks: self.checks })
    }
}
