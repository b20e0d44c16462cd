//! `slablab schema`: the JSON Schemas of what verbs write with `--format json`, as they are in `schemas/`.

use crate::outcome::{Done, Failure};
use crate::output::write_out;
use serde_json::Value;
use slablab_report::text::Table;
use slablab_trace::AtomicFile;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints schemas.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab schema\n  slablab schema slablab.replay.1\n  slablab schema replay > replay.json\n  slablab schema --all /usr/local/share/slablab/schemas"
)]
pub(crate) struct Args {
    /// The name of a schema, as in the key `schema` of an answer: slablab.replay.1, or replay; without it,
    /// all names are listed
    #[arg(value_name = "NAME", conflicts_with = "all")]
    name: Option<String>,
    /// Write every schema into DIR
    #[arg(long, value_name = "DIR")]
    all: Option<PathBuf>,
}

/// Names and texts of the schemas, from the files.
macro_rules! schemas {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../schemas/slablab.", $name, ".json")))),*]
    };
}

/// The part of a name that all have.
const PREFIX: &str = "slablab.";

/// Every schema; its name is that in the key `schema` of an answer, without [`PREFIX`].
const SCHEMAS: &[(&str, &str)] = schemas![
    "bench.1"
    "calibrate.1"
    "compare.1"
    "description.1"
    "doctor.1"
    "experiment.1"
    "explain-experiment.1"
    "explain-script.1"
    "explain.1"
    "hackbench.1"
    "import.1"
    "machines.1"
    "native.1"
    "orders.1"
    "per-cpu.1"
    "pressure-judgement.1"
    "pressure-records.1"
    "pressure-run.1"
    "replay.1"
    "reproduce.1"
    "reproduce.joined.1"
    "sites.1"
    "suite.1"
    "top.1"
    "verify-counters.1"
    "verify.1"
    "what.1"
    "whatif.1"
];

pub(crate) fn run(args: &Args) -> Result<Done, Failure> {
    match (&args.all, &args.name) {
        (Some(folder), _) => {
            for (name, text) in SCHEMAS {
                write_file(&folder.join(format!("{PREFIX}{name}.json")), text)?;
            }
        }
        (None, Some(name)) => write_out(find(name)?, None)?,
        (None, None) => write_out(&list(), None)?,
    }
    Ok(Done::Complete)
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes()).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(file.commit()?)
}

/// The schema of a name, with or without the prefix; without a number, the newest.
fn find(asked: &str) -> Result<&'static str, Failure> {
    let short = asked.strip_prefix(PREFIX).unwrap_or(asked);
    let is_asked = |name: &str| {
        let number = name.strip_prefix(short).and_then(|rest| rest.strip_prefix('.'));
        name == short || number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let found = SCHEMAS.iter().rev().find(|(name, _)| is_asked(name));
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<String> = SCHEMAS.iter().map(|(name, _)| format!("{PREFIX}{name}")).collect();
        format!("no schema {asked}: expected one of {}", names.join(", ")).into()
    })
}

/// A line for each schema, with its title.
fn list() -> String {
    let mut table = Table::headless().numbers(0..0);
    for (name, text) in SCHEMAS {
        let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
        table.row([format!("{PREFIX}{name}"), schema["title"].as_str().unwrap_or_default().to_string()]);
    }
    table.print()
}
