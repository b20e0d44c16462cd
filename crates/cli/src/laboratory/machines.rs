//! `slablab list machines`: what can be written after `--machine`.

use crate::laboratory::listed::How;
use crate::outcome::{Done, Failure};
use crate::output::write_out;
use slablab_machines::list::machines_answer;
use slablab_machines::text_of;
use std::path::Path;

/// Lists machines.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the file of this machine: the start of a file for another one
    #[arg(conflicts_with = "format")]
    machine: Option<String>,
    #[command(flatten)]
    how: How,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    match &args.machine {
        Some(name) if Path::new(name).exists() => {
            Err(format!("{name}: this is a file: expected the name of an installed machine").into())
        }
        Some(name) => {
            write_out(text_of(name)?, args.how.output())?;
            Ok(Done::Complete)
        }
        None => args.how.write(&machines_answer()),
    }
}
