//! The lines of /proc/allocinfo.

use super::{SitesDocument, fitted};
use crate::sites::{Counted, Growth};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_readers::allocinfo::AllocSite;
use slablab_report::Answer;
use slablab_report::column::{Columns, Style};
use slablab_report::html::chart::{Axis, Bar, Bars, Scale};
use slablab_report::html::{Cell, name_of, number};
use slablab_report::text::counted;

/// Bars of a figure; its table has all shown lines.
const BARS: usize = 24;
/// Characters of a place in text.
const PLACE: usize = 40;
/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 4] = ["calls +", "module", "calls", "function"];

/// The lines as a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct Document {
    /// The file.
    path: String,
    /// What the answer lacks, then what it rests on: sentences.
    remarks: Vec<String>,
    /// The earlier file.
    since: Option<String>,
    #[schemars(schema_with = "rows")]
    sites: Vec<Map<String, Value>>,
}

fn rows(_: &mut SchemaGenerator) -> Schema {
    let now = AllocSite {
        bytes: 0,
        calls: 0,
        file: String::new(),
        line: 0,
        function: String::new(),
        module: Some(String::new()),
        accurate: true,
    };
    let row = columns().schema(&Growth { now, before: Some((0, 0)) });
    json!({ "type": "array", "items": row }).try_into().expect("an object is a schema")
}

/// The lines of code that hold most, or grew most.
pub(super) fn answer(sites: &Counted, top: usize) -> Answer {
    let columns = columns();
    let document = Document {
        path: sites.path.display().to_string(),
        remarks: sites.notes.clone(),
        since: sites.since.as_ref().map(|path| path.display().to_string()),
        sites: sites.sites.iter().map(|site| columns.json(site)).collect(),
    };
    let by_growth = sites.since.is_some();
    let shown = || sites.sites.iter().take(top);
    let place = |row: &Growth| Cell::Name(row.place());
    let short = |row: &Growth| Cell::Name(fitted(&row.place(), PLACE));
    let answer = Answer::new(format!("Who allocates: {}", name_of(&sites.path)), sentence(sites))
        .document(&SitesDocument::Counted(document))
        .rows(columns.frame(&sites.sites))
        .line(title(sites))
        .table(columns.text(("place", &short), &keys(sites), shown(), Style::Kib), &LEFT_OUT);
    let answer = match sites.sites.len().saturating_sub(top) {
        0 => answer,
        more => answer.line(format!("... and {more} more (--top)")),
    };
    let caption = if by_growth { "Lines of code that grew most." } else { "Lines of code that hold most." };
    let table = columns.html(("place", &place), &keys(sites), shown());
    answer.figure(caption, bars(sites, top), table).remarks(sites.notes.iter().cloned())
}

fn bars(sites: &Counted, top: usize) -> Bars {
    let by_growth = sites.since.is_some();
    let value = |site: &Growth| if by_growth { site.bytes().unwrap_or(0) } else { site.now.bytes };
    let bar = |site: &Growth| Bar {
        label: format!("{} {}", site.now.function, site.place()),
        values: vec![value(site) as f64],
    };
    Bars {
        parts: vec!["bytes".into()],
        first_colour: 0,
        bars: sites.sites.iter().filter(|site| value(site) > 0).take(top.min(BARS)).map(bar).collect(),
        axis: Axis::new(if by_growth { "growth" } else { "held now" }, Scale::Bytes),
        remainder: false,
    }
}

/// The line that holds or grew most, but for that of the slabs' pages, whose bytes are those of the others.
fn sentence(sites: &Counted) -> String {
    let bytes = |bytes: i64| number::bytes_as_in_tables(bytes.max(0) as u64);
    let Some(first) = sites.own().next() else { return "No line of code holds memory.".into() };
    let name = format!("{} ({})", first.now.function, first.place());
    match first.bytes() {
        Some(grew) if grew > 0 => {
            format!("{name} grew most: by {}, to {}.", bytes(grew), bytes(first.now.bytes))
        }
        Some(_) => "No line of code grew.".into(),
        None => format!("{name} holds most: {} of {}.", bytes(first.now.bytes), bytes(sites.bytes())),
    }
}

fn title(sites: &Counted) -> String {
    let lines = sites.sites.len() as u64;
    let hold = if lines == 1 { "holds" } else { "hold" };
    let held = format!(
        "{}: {} of code {hold} {} K",
        sites.path.display(),
        counted(lines, "line"),
        sites.bytes() / 1024
    );
    match &sites.since {
        None => held,
        Some(since) => {
            let grew: i64 = sites.sites.iter().filter_map(Growth::bytes).sum();
            format!("{held}, {:+} K since {}", grew / 1024, since.display())
        }
    }
}

fn columns() -> Columns<Growth> {
    let change = |value: Option<i64>, cell: fn(i64) -> Cell| value.map_or(Cell::Empty, cell);
    Columns::<Growth>::default()
        .key("place", |row| Cell::Name(row.place()))
        .add("function", "function", "function", |row| Cell::Name(row.now.function.clone()))
        .words()
        .add("module", "module", "module", |row| row.now.module.clone().map_or(Cell::Empty, Cell::Name))
        .words()
        .or_unknown()
        .add("bytes", "bytes", "bytes", |row| match u64::try_from(row.now.bytes) {
            Ok(bytes) => Cell::Bytes(bytes),
            Err(_) => Cell::ByteChange(row.now.bytes),
        })
        .bytes()
        .add("calls", "calls", "allocations", |row| match u64::try_from(row.now.calls) {
            Ok(calls) => Cell::Count(calls),
            Err(_) => Cell::Change(row.now.calls),
        })
        .add("bytes_change", "grew", "grew", move |row| change(row.bytes(), Cell::ByteChange))
        .bytes()
        .when(|row| row.before.is_some())
        .add("calls_change", "calls +", "more allocations", move |row| change(row.calls(), Cell::Change))
        .when(|row| row.before.is_some())
        .key("accurate", |row| Cell::Count(row.now.accurate.into()))
}

fn keys(sites: &Counted) -> Vec<&'static str> {
    let mut keys = vec!["function", "module", "bytes", "calls"];
    if sites.since.is_some() {
        keys.extend(["bytes_change", "calls_change"]);
    }
    keys
}
