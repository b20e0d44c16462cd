//! The lines of /proc/allocinfo as text, JSON, CSV and a page.

use super::SCHEMA;
use crate::sites::{Counted, Growth};
use serde_json::{Value, json};
use slablab_report::column::{Columns, Style};
use slablab_report::html::chart::{Axis, Bar, Bars, Scale};
use slablab_report::html::{Cell, Page, Table, name_of, number};
use slablab_report::visible;
use std::fmt::Write;

/// Bars of a figure; its table has all shown lines.
const BARS: usize = 24;

fn columns() -> Columns<Growth> {
    let change = |value: Option<i64>, cell: fn(i64) -> Cell| value.map_or(Cell::Empty, cell);
    Columns::<Growth>::default()
        .key("place", |row| Cell::Name(row.place()))
        .add("function", "function", "function", |row| Cell::Name(row.now.function.clone()))
        .words()
        .add("module", "module", "module", |row| row.now.module.clone().map_or(Cell::Empty, Cell::Name))
        .words()
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

fn place(row: &Growth) -> Cell {
    Cell::Name(row.place())
}

fn title(sites: &Counted) -> String {
    let held = format!(
        "{}: {} lines of code hold {} K",
        sites.path.display(),
        sites.sites.len(),
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

pub(super) fn table(sites: &Counted, top: usize) -> String {
    let mut out = String::new();
    let mut write = || -> std::fmt::Result {
        writeln!(out, "{}\n", visible::name(&title(sites)))?;
        let rows = sites.sites.iter().take(top);
        out.push_str(&columns().text(("place", &place), &keys(sites), rows, Style::Kib).print());
        if sites.sites.len() > top {
            writeln!(out, "... and {} more (--top)", sites.sites.len() - top)?;
        }
        out.push('\n');
        sites.notes.iter().try_for_each(|note| writeln!(out, "{}", visible::lines(note)))
    };
    write().expect("a string takes everything");
    out
}

pub(super) fn csv(sites: &Counted) -> String {
    columns().csv(&sites.sites)
}

pub(super) fn json(sites: &Counted) -> Value {
    let columns = columns();
    json!({
        "schema": SCHEMA,
        "of": "allocinfo",
        "path": sites.path.display().to_string(),
        "since": sites.since.as_ref().map(|path| path.display().to_string()),
        "remarks": sites.notes,
        "sites": sites.sites.iter().map(|site| Value::Object(columns.json(site))).collect::<Vec<_>>(),
    })
}

pub(super) fn page(sites: &Counted, command: &str, top: usize) -> Page {
    let mut page = Page::new(&format!("Who allocates: {}", name_of(&sites.path)), command);
    page.lede(&lede(sites));
    let by_growth = sites.since.is_some();
    let value = |site: &Growth| if by_growth { site.bytes().unwrap_or(0) } else { site.now.bytes };
    let bar = |site: &Growth| Bar {
        label: format!("{} {}", site.now.function, site.place()),
        values: vec![value(site) as f64],
    };
    let bars = Bars {
        parts: vec!["bytes".into()],
        first_colour: 0,
        bars: sites.sites.iter().filter(|site| value(site) > 0).take(top.min(BARS)).map(bar).collect(),
        axis: Axis::new(if by_growth { "growth" } else { "held now" }, Scale::Bytes),
        remainder: false,
    };
    let table: Table = columns().html(("place", &place), &keys(sites), sites.sites.iter().take(top));
    let caption = if by_growth { "Lines of code that grew most." } else { "Lines of code that hold most." };
    page.figure(caption, &bars, &table);
    page.evidence(&sites.notes);
    page
}

fn lede(sites: &Counted) -> String {
    let bytes = |bytes: i64| number::bytes(bytes.max(0) as u64);
    let Some(first) = sites.sites.first() else { return String::new() };
    let name = format!("{} ({})", first.now.function, first.place());
    match first.bytes() {
        Some(grew) if grew > 0 => {
            format!("{name} grew most: by {}, to {}.", bytes(grew), bytes(first.now.bytes))
        }
        Some(_) => "No line of code grew.".into(),
        None => format!("{name} holds most: {} of {}.", bytes(first.now.bytes), bytes(sites.bytes())),
    }
}
