//! `slablab generate schemas`: the JSON Schemas of what verbs write with `--format json`, from the types that
//! are written.

use crate::laboratory::listed::{self, How, ListDocument};
use crate::laboratory::{bench, engines, installed, top, vm};
use crate::outcome::{Done, Failure};
use crate::output::write_out;
use serde_json::{Value, json};
use slablab_report::Answer;
use slablab_report::column::Columns;
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::nearest::nearest;
use slablab_report::typed_dict::{class_name, typed_dicts};
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

/// Prints types.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  slablab generate types -o slablab_documents.py")]
pub(crate) struct TypesArgs {
    /// Write the types to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The part of a name that all have.
const PREFIX: &str = "slablab.";

pub(crate) fn run(args: &Args) -> Result<Done, Failure> {
    match (&args.folder, &args.name) {
        (Some(folder), _) => {
            for (name, text) in schemas() {
                write_out(&text, Some(&folder.join(format!("{PREFIX}{name}.json"))))?;
            }
        }
        (None, Some(name)) => write_out(&find(name)?, args.output.as_deref())?,
        (None, None) => write_out(&table().text(false), args.output.as_deref())?,
    }
    Ok(Done::Complete)
}

/// The schemas of all crates.
fn documents() -> Vec<Named> {
    [
        slablab_doctor::output::schemas(),
        slablab_replay::output::schemas(),
        slablab_experiment::output::schemas(),
        slablab_compare::output::schemas(),
        slablab_bench::output::schemas(),
        slablab_calibrate::output::schemas(),
        slablab_machines::list::schemas(),
        slablab_linux::build::schemas(),
        vec![list_schema()],
        top::schemas(),
    ]
    .concat()
}

/// Writes the classes of all documents as a module of Python.
pub(crate) fn types(args: &TypesArgs) -> Result<Done, Failure> {
    let head = "\"\"\"Types of the answers: made by `slablab generate types`.\"\"\"\n\n\
                from typing import Any, Literal, TypedDict\n\n\n";
    let class = |(name, text): &(&str, String)| {
        let schema = serde_json::from_str(text).expect("a schema is JSON");
        typed_dicts(&class_name(name), &schema)
    };
    let text: String = std::iter::once(head.into()).chain(schemas().iter().map(class)).collect();
    write_out(&text, args.output.as_deref())?;
    Ok(Done::Complete)
}

/// The schema of the lists: a row is one of any of them.
fn list_schema() -> Named {
    let (name, mut schema) = named::<ListDocument>();
    let [experiments, workloads] = installed::row_schemas();
    let schemas = columns().schema(&Default::default());
    let rows =
        [engines::row_schema(), vm::row_schema(), experiments, workloads, schemas, bench::row_schema()];
    schema["properties"]["rows"]["items"] = json!({ "anyOf": rows });
    (name, schema)
}

/// Every schema by its name, without [`PREFIX`].
fn schemas() -> Vec<(&'static str, String)> {
    let typed = documents().into_iter().map(|(name, schema)| {
        let short = name.strip_prefix(PREFIX).unwrap_or(name);
        (short, slablab_report::json::document(&schema))
    });
    let mut all: Vec<_> = typed.collect();
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
        // A name without a number is asked for by the number that most have.
        let number = short.rsplit('.').next().is_some_and(|end| end.parse::<u32>().is_ok());
        let like = if number { short.to_string() } else { format!("{short}.1") };
        let near = nearest(&like, all.iter().map(|(name, _)| *name), 3);
        let near = match near.as_slice() {
            [] => String::new(),
            near => format!(
                "; near it: {}",
                near.iter().map(|name| format!("{PREFIX}{name}")).collect::<Vec<_>>().join(", ")
            ),
        };
        format!("no schema {asked}{near}; `slablab list schemas` lists all").into()
    })
}

/// The name and the title of each schema.
fn titles() -> Vec<(String, String)> {
    let title = |text: &str| {
        let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
        schema["title"].as_str().unwrap_or_default().to_string()
    };
    schemas().iter().map(|(name, text)| (format!("{PREFIX}{name}"), title(text))).collect()
}

fn columns() -> Columns<(String, String)> {
    Columns::default()
        .key("schema", |(name, _): &(String, String)| Cell::Text(name.clone()))
        .key("title", |(_, title)| Cell::Text(title.clone()))
}

/// The answer: a line for each schema, with its title.
fn table() -> Answer {
    let titles = titles();
    let sentence = format!(
        "{} documents of --format json have a JSON Schema; `slablab generate schemas NAME` prints one.",
        titles.len()
    );
    let items = titles.iter().map(|(name, title)| format!("{name}: {title}"));
    listed::answer("schemas", sentence, &columns(), &titles).heading("Schemas").list(items)
}

/// The list of all schemas.
pub(crate) fn list(how: &How) -> Result<Done, Failure> {
    how.write(&table())
}
