//! `slablab list machines`: what can be written after `--machine`.

use crate::outcome::{Done, Failure};
use crate::output::{Format, write_out};
use slablab_machines::{list, text_of};
use std::path::{Path, PathBuf};

/// Lists machines.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the file of this machine: the start of a file for another one
    #[arg(conflicts_with = "format")]
    machine: Option<String>,
    /// Format of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Write the answer to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let text = match (&args.machine, args.format) {
        (Some(name), _) if Path::new(name).exists() => {
            return Err(format!("{name}: this is a file: expected the name of an installed machine").into());
        }
        (Some(name), _) => text_of(name)?.to_string(),
        (None, Format::Table) => list::table(),
        (None, Format::Csv) => list::csv(),
        (None, Format::Json) => crate::output::document(list::json()),
    };
    write_out(&text, args.output.as_deref())?;
    Ok(Done::Complete)
}
