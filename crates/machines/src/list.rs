//! The list of installed machines.

use crate::file::MachineFile;
use crate::installed::INSTALLED;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::{Answer, Document};

#[derive(Serialize, JsonSchema)]
struct MachinesDocument {
    #[schemars(schema_with = "machines")]
    machines: Vec<Map<String, Value>>,
}

impl Document for MachinesDocument {
    const NAME: &str = "slablab.machines.1";
    const TITLE: &str = "slablab list machines: the machines that come with the program";
}

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

    /// Costs that a measurement or a document gives, of all.
    fn sourced(&self) -> (usize, usize) {
        let priced = self.file.costs.iter().flat_map(|priced| &priced.sources);
        let (assumed, sourced): (Vec<_>, Vec<_>) = priced.partition(|source| source.is_assumed());
        (sourced.len(), sourced.len() + assumed.len())
    }

    fn cpus(&self) -> usize {
        self.file.cpus().unwrap_or(0).into()
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
        .add("cpus", "CPUs", "CPUs", |row| Cell::Count(row.cpus() as u64))
        .add("nodes", "nodes", "nodes", |row| Cell::Count(row.file.nodes.len() as u64))
        .add("nodes_with_memory", "with memory", "with memory", |row| {
            Cell::Count(row.nodes_with_memory() as u64)
        })
        .add("page_bytes", "page", "page", |row| Cell::Bytes(row.file.page_size.unwrap_or(4096)))
        .bytes()
        .key("memory_bytes", |row| Cell::Bytes(row.bytes()))
        .bytes()
        .add("costs_with_source", "costs with source", "costs with source", |row| {
            let (sourced, all) = row.sourced();
            Cell::Text(format!("{sourced} of {all}"))
        })
        .add("about", "what", "what", move |row| text(&row.file.about))
        .words()
}

/// The answer of `list machines`.
pub fn machines_answer() -> Answer {
    let (rows, columns) = (rows(), columns());
    let keys = ["cpus", "nodes", "nodes_with_memory", "page_bytes", "costs_with_source"];
    let name = |row: &Row| Cell::Text(row.name.into());
    let about = |row: &Row| format!("{}: {}", row.name, row.file.about.as_deref().unwrap_or("not described"));
    Answer::new("Machines", sentence(&rows))
        .document(&MachinesDocument { machines: rows.iter().map(|row| columns.json(row)).collect() })
        .rows(columns.frame(&rows))
        .table(columns.text(("machine", &name), &keys, &rows, Style::Kib), &[])
        .heading("What they are")
        .list(rows.iter().map(about))
}

/// The schemas of these answers.
pub fn schemas() -> Vec<Named> {
    vec![named::<MachinesDocument>()]
}

fn sentence(rows: &[Row]) -> String {
    let cpus = || rows.iter().map(Row::cpus);
    let (sourced, all) = rows.iter().map(Row::sourced).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    format!(
        "{} machines come with the program, of {} to {} CPUs; {sourced} of their {all} costs have a source, the \
         others are assumed.",
        rows.len(),
        cpus().min().unwrap_or(0),
        cpus().max().unwrap_or(0)
    )
}

/// The schema of the machines: that of their columns.
fn machines(_: &mut SchemaGenerator) -> Schema {
    let row = columns().schema(&rows()[0]);
    Schema::try_from(json!({ "type": "array", "items": row })).expect("an object is a schema")
}
