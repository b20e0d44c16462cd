//! The forms of a list of what the program has by name.

use crate::outcome::{Done, Failure};
use crate::output::{Format, document, write_out};
use serde_json::{Value, json};
use slablab_report::column::Columns;
use std::path::PathBuf;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.list.1";

/// How a list is printed.
#[derive(clap::Args)]
pub(crate) struct How {
    /// Format of the answer
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Write the answer to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl How {
    /// Writes the list called `name`.
    pub(crate) fn write<R>(
        &self,
        name: &str,
        table: impl FnOnce() -> Result<String, Failure>,
        columns: &Columns<R>,
        rows: &[R],
    ) -> Result<Done, Failure> {
        let text = match self.format {
            Format::Table => table()?,
            Format::Csv => columns.csv(rows),
            Format::Json => {
                let rows: Vec<Value> = rows.iter().map(|row| Value::Object(columns.json(row))).collect();
                document(json!({ "schema": SCHEMA, "list": name, "rows": rows }))
            }
        };
        write_out(&text, self.output.as_deref())?;
        Ok(Done::Complete)
    }
}
