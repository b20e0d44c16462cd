//! In the place of the laboratory in a program without it: no verb, nothing to register.

use crate::beside::Rule;
use crate::outcome::{Done, Failure};
use clap::{Command, Subcommand};
use slablab_doctor::measure::rounding::Rounding;
use slablab_report::visible;
use std::path::Path;

#[derive(Subcommand)]
pub(crate) enum Verb {}

impl Verb {
    pub(crate) fn run(self, _: Command, _: &Registered) -> Result<Done, Failure> {
        match self {}
    }
}

pub(crate) const RULES: &[Rule] = &[];

/// What a program adds: there is nothing to add it to.
#[derive(Default)]
pub(crate) struct Own;

pub(crate) struct Registered;

impl Own {
    pub(crate) fn shown(&self, command: Command) -> Command {
        command
    }

    pub(crate) fn register(self) -> Result<Registered, Failure> {
        Ok(Registered)
    }
}

/// A recording is for the whole program.
pub(crate) fn rounding(path: &Path) -> Result<Rounding, Failure> {
    let what = "this slablab is the small one, which reads no recordings: expected the whole one";
    Err(format!("--recording {}: {what}", visible::path(path)).into())
}

pub(crate) fn unmet() -> Result<(), Failure> {
    Ok(())
}
