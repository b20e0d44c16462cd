//! The list of installed machines as a table, CSV and JSON.

use crate::file::MachineFile;
use crate::installed::INSTALLED;
use serde_json::Value;
use slablab_report::column::{Columns, Style};
use slablab_report::html::Cell;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.machines.1";

/// An installed machine, as the list shows it.
struct Row {
    name: &'static str,
    file: MachineFile,
}

impl Row {
    fn nodes_with_memory(&self) -> usize {
        self.file.nodes.iter().filter(|node| node.memory > 0).count()
    }

    fn bytes(&self) -> u64 {
        self.file.nodes.iter().map(|node| node.memory).sum()
    }

    /// Costs that somebody measured or a document has, of all.
    fn sourced(&self) -> String {
        let priced = self.file.costs.iter().flat_map(|priced| &priced.sources);
        let (assumed, sourced): (Vec<_>, Vec<_>) = priced.partition(|source| source.is_assumed());
        format!("{} of {}", sourced.len(), sourced.len() + assumed.len())
    }
}

fn rows() -> Vec<Row> {
    let parse = |text| MachineFile::parse(text).unwrap_or_else(|bad| panic!("an installed machine: {bad}"));
    INSTALLED.iter().map(|machine| Row { name: machine.name, file: parse(machine.text) }).collect()
}

fn columns() -> Columns<Row> {
    let text = |text: &Option<String>| Cell::Text(text.clone().unwrap_or_default());
    Columns::default()
        .key("machine", |row: &Row| Cell::Text(row.name.into()))
        .add("cpus", "CPUs", "CPUs", |row| Cell::Count(row.file.cpus().unwrap_or(0) as u64))
        .add("nodes", "nodes", "nodes", |row| Cell::Count(row.file.nodes.len() as u64))
        .add("nodes_with_memory", "with memory", "with memory", |row| {
            Cell::Count(row.nodes_with_memory() as u64)
        })
        .add("page_bytes", "page", "page", |row| Cell::Bytes(row.file.page_size.unwrap_or(4096)))
        .bytes()
        .key("memory_bytes", |row| Cell::Bytes(row.bytes()))
        .bytes()
        .add("costs_with_source", "costs with source", "costs with source", |row| Cell::Text(row.sourced()))
        .add("about", "what", "what", move |row| text(&row.file.about))
        .words()
}

/// The list as a text table.
pub fn table() -> String {
    let keys = ["cpus", "nodes", "nodes_with_memory", "page_bytes", "costs_with_source", "about"];
    let name = |row: &Row| Cell::Text(row.name.into());
    columns().text(("machine", &name), &keys, &rows(), Style::Kib).numbers(1..5).print()
}

/// The list as CSV.
pub fn csv() -> String {
    columns().csv(rows())
}

/// The list as JSON.
pub fn json() -> Value {
    let columns = columns();
    let machines: Vec<Value> = rows().iter().map(|row| Value::Object(columns.json(row))).collect();
    serde_json::json!({ "schema": SCHEMA, "machines": machines })
}
