//! A list of what the program has by name.

use crate::outcome::{Done, Failure};
use crate::output::{Format, write_out};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use slablab_report::column::Columns;
use slablab_report::{Answer, Document};
use std::path::{Path, PathBuf};

/// How a list is printed.
#[derive(Default, clap::Args)]
pub(crate) struct How {
    /// Format of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    /// Write the answer to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The document of a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ListDocument {
    /// engines, vm, experiments, workloads, schemas, or bench: its workloads and allocators.
    list: &'static str,
    /// What the list has, by the keys of its CSV.
    rows: Vec<Map<String, Value>>,
}

impl Document for ListDocument {
    const NAME: &str = "slablab.list.1";
    const TITLE: &str = "slablab list, slablab bench --list: engines, policies of page replacement, experiments, workloads, ..";
}

/// The answer of the list called `name`; the caller adds its text.
pub(crate) fn answer<R>(name: &'static str, sentence: String, columns: &Columns<R>, rows: &[R]) -> Answer {
    let document = ListDocument { list: name, rows: rows.iter().map(|row| columns.json(row)).collect() };
    Answer::new(name, sentence).document(&document).rows(columns.frame(rows))
}

impl How {
    pub(crate) fn output(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// Writes a list.
    pub(crate) fn write(&self, answer: &Answer) -> Result<Done, Failure> {
        let text = match self.format {
            Format::Table => answer.text(self.wide),
            Format::Csv => answer.csv().expect("a list has rows"),
            Format::Json => slablab_report::json::document(&answer.json()),
        };
        write_out(&text, self.output())?;
        Ok(Done::Complete)
    }
}
