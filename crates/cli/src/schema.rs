//! `slablab generate schemas`: the JSON Schemas of what verbs write with `--format json`. Those of answers
//! whose document is a type come from the type, the others are in `schemas/`.

use crate::listed::How;
use crate::outcome::{Done, Failure};
use crate::output::write_out;
use serde_json::Value;
use slablab_replay::output::verify_schemas;
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_report::text::Table;
use std::path::PathBuf;

/// Prints schemas.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab generate schemas replay > replay.json\n  slablab generate schemas slablab.replay.1 -o replay.json\n  slablab generate schemas --folder /usr/local/share/slablab/schemas"
)]
pub(crate) struct Args {
    /// The name of a schema, as in the key `schema` of an answer: slablab.replay.1, or replay; without it,
    /// all names are listed
    #[arg(value_name = "NAME", conflicts_with = "folder")]
    name: Option<String>,
    /// Write every schema into FOLDER
    #[arg(short = 'd', long, alias = "all", value_name = "FOLDER", conflicts_with = "output")]
    folder: Option<PathBuf>,
    /// Write the schema to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Names and texts of the schemas, from the files.
macro_rules! schemas {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../schemas/slablab.", $name, ".json")))),*]
    };
}

/// The part of a name that all have.
const PREFIX: &str = "slablab.";

/// The schemas of `schemas/`; a name is that in the key `schema` of an answer, without [`PREFIX`].
const FILES: &[(&str, &str)] = schemas![
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
    "list.1"
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
    "what.1"
    "whatif.1"
];

pub(crate) fn run(args: &Args) -> Result<Done, Failure> {
    match (&args.folder, &args.name) {
        (Some(folder), _) => {
            for (name, text) in schemas() {
                write_out(&text, Some(&folder.join(format!("{PREFIX}{name}.json"))))?;
            }
        }
        (None, Some(name)) => write_out(&find(name)?, args.output.as_deref())?,
        (None, None) => write_out(&table(), args.output.as_deref())?,
    }
    Ok(Done::Complete)
}

/// Every schema by its name, without [`PREFIX`].
fn schemas() -> Vec<(&'static str, String)> {
    let files = FILES.iter().map(|(name, text)| (*name, text.to_string()));
    let typed = verify_schemas().into_iter().map(|(name, schema)| {
        let short = name.strip_prefix(PREFIX).unwrap_or(name);
        (short, slablab_report::json::document(&schema))
    });
    let mut all: Vec<_> = files.chain(typed).collect();
    all.sort();
    all
}

/// The schema of a name, with or without the prefix; without a number, the newest.
fn find(asked: &str) -> Result<String, Failure> {
    let short = asked.strip_prefix(PREFIX).unwrap_or(asked);
    let is_asked = |name: &str| {
        let number = name.strip_prefix(short).and_then(|rest| rest.strip_prefix('.'));
        name == short || number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let all = schemas();
    let found = all.iter().rev().find(|(name, _)| is_asked(name));
    found.map(|(_, text)| text.clone()).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|(name, _)| format!("{PREFIX}{name}")).collect();
        format!("no schema {asked}: expected one of {}", names.join(", ")).into()
    })
}

/// The name and the title of each schema.
fn named() -> Vec<(String, String)> {
    let title = |text: &str| {
        let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
        schema["title"].as_str().unwrap_or_default().to_string()
    };
    schemas().iter().map(|(name, text)| (format!("{PREFIX}{name}"), title(text))).collect()
}

/// A line for each schema, with its title.
fn table() -> String {
    let mut table = Table::headless().numbers(0..0);
    named().into_iter().for_each(|(name, title)| table.row([name, title]));
    table.print()
}

/// The list of all schemas.
pub(crate) fn list(how: &How) -> Result<Done, Failure> {
    let columns = Columns::default()
        .key("schema", |(name, _): &(String, String)| Cell::Text(name.clone()))
        .key("title", |(_, title)| Cell::Text(title.clone()));
    how.write("schemas", || Ok(table()), &columns, &named())
}
