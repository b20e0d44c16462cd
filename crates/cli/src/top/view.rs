//! An answer as text: a table, JSON, CSV.

use super::sample::{Cache, Sample};
use crate::output::Format;
use crate::watch::short_bytes;
use clap::ValueEnum;
use serde_json::{Value, json};
use slablab_report::csv::Csv;
use slablab_report::html::Cell;
use slablab_report::text::Table;
use slablab_report::visible;
use std::cmp::Reverse;
use std::time::Instant;

/// One look at a process.
pub(super) struct Answer {
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) engine: String,
    pub(super) slots: String,
    pub(super) version: String,
    pub(super) page_bytes: u64,
    /// When it was.
    pub(super) at: Instant,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) sample: Sample,
}

/// The cache that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    /// Most bytes of slabs
    Bytes,
    /// Most live objects
    Live,
    /// Most objects
    Objects,
    /// Most slabs
    Slabs,
    /// Most objects in sheaves
    Sheaves,
    /// Most objects in barns
    Barns,
    /// Most free objects in slabs
    Free,
    /// Largest objects
    Size,
    /// Names in their order
    Name,
}

impl Sort {
    /// The order that a key asks for: the first letter of its word, and `h` for sheaves, `z` for sizes.
    pub(super) fn of(letter: char) -> Option<Sort> {
        Some(match letter {
            'b' => Sort::Bytes,
            'l' => Sort::Live,
            'o' => Sort::Objects,
            's' => Sort::Slabs,
            'h' => Sort::Sheaves,
            'a' => Sort::Barns,
            'f' => Sort::Free,
            'z' => Sort::Size,
            'n' => Sort::Name,
            _ => return None,
        })
    }

    fn number(self, cache: &Cache) -> u64 {
        match self {
            Sort::Bytes => cache.bytes,
            Sort::Live => cache.live,
            Sort::Objects => cache.objects,
            Sort::Slabs => cache.slabs,
            Sort::Sheaves => cache.in_sheaves,
            Sort::Barns => cache.in_barns,
            Sort::Free => cache.free,
            Sort::Size => cache.object_bytes,
            Sort::Name => 0,
        }
    }
}

/// The answer; with an earlier one, the table has rates.
pub(super) fn text(answer: &Answer, before: Option<&Answer>, format: Format, sort: Sort) -> String {
    let mut caches: Vec<&Cache> = answer.sample.caches.iter().collect();
    caches.sort_by_key(|cache| (Reverse(sort.number(cache)), &cache.name));
    match format {
        Format::Table => head(answer, before) + &table(&caches),
        Format::Json => crate::output::document(document(answer, &caches)),
        Format::Csv => csv(&caches),
    }
}

fn head(answer: &Answer, before: Option<&Answer>) -> String {
    let Answer { pid, command, engine, slots, sample, minor_faults, major_faults, .. } = answer;
    let rate = |number: &dyn Fn(&Answer) -> u64| {
        let Some(before) = before else { return String::new() };
        let seconds = answer.at.saturating_duration_since(before.at).as_secs_f64();
        let grown = number(answer).saturating_sub(number(before)) as f64;
        if seconds > 0.0 { format!(" ({:.0}/s)", grown / seconds) } else { String::new() }
    };
    let faults = rate(&|answer| answer.minor_faults);
    let given = rate(&|answer| answer.sample.given_back_bytes / answer.page_bytes);
    let given_pages = sample.given_back_bytes / answer.page_bytes;
    let title = format!("process {pid} ({command}): {engine}, {slots}, {} slots used", sample.slots_used);
    format!(
        "{}\nheap {}, live {}, free frames {}; {} mappings of {}\n\
         page faults {minor_faults}{faults} minor, {major_faults} major; frames given back {given_pages}{given}\n\n",
        visible::name(&title),
        short_bytes(sample.heap_bytes),
        short_bytes(sample.live_bytes),
        short_bytes(sample.free_frame_bytes),
        sample.mappings,
        short_bytes(sample.mapping_bytes),
    )
}

fn table(caches: &[&Cache]) -> String {
    let heads = ["NAME", "BYTES", "LIVE", "OBJECTS", "SHEAVES", "BARNS", "FREE", "SLABS", "OBJ/SLAB", "SIZE"];
    let mut table = Table::new(heads);
    for cache in caches {
        let numbers = [
            cache.live,
            cache.objects,
            cache.in_sheaves,
            cache.in_barns,
            cache.free,
            cache.slabs,
            cache.objects_per_slab,
            cache.object_bytes,
        ];
        let cells = [cache.name.clone(), short_bytes(cache.bytes)];
        table.row(cells.into_iter().chain(numbers.map(|number| number.to_string())));
    }
    table.print()
}

/// The numbers of a cache by their names in JSON and CSV.
fn numbers(cache: &Cache) -> [(&'static str, u64); 12] {
    [
        ("object_bytes", cache.object_bytes),
        ("slot_bytes", cache.slot_bytes),
        ("objects_per_slab", cache.objects_per_slab),
        ("pages_per_slab", cache.pages_per_slab),
        ("slabs", cache.slabs),
        ("bytes", cache.bytes),
        ("objects", cache.objects),
        ("live_objects", cache.live),
        ("parked_objects", cache.in_sheaves + cache.in_barns),
        ("sheaf_objects", cache.in_sheaves),
        ("barn_objects", cache.in_barns),
        ("free_objects", cache.free),
    ]
}

fn document(answer: &Answer, caches: &[&Cache]) -> Value {
    let cache = |cache: &&Cache| {
        let mut row = json!({ "name": cache.name });
        numbers(cache).into_iter().for_each(|(key, number)| row[key] = number.into());
        row
    };
    let sample = &answer.sample;
    json!({
        "schema": "slablab.top.1",
        "version": answer.version,
        "pid": answer.pid,
        "command": answer.command,
        "engine": answer.engine,
        "slots": answer.slots,
        "slots_used": sample.slots_used,
        "page_bytes": answer.page_bytes,
        "heap_bytes": sample.heap_bytes,
        "live_bytes": sample.live_bytes,
        "free_frame_bytes": sample.free_frame_bytes,
        "given_back_bytes": sample.given_back_bytes,
        "mappings": sample.mappings,
        "mapping_bytes": sample.mapping_bytes,
        "minor_faults": answer.minor_faults,
        "major_faults": answer.major_faults,
        "caches": caches.iter().map(cache).collect::<Vec<_>>(),
    })
}

fn csv(caches: &[&Cache]) -> String {
    let keys = numbers(&Cache::default()).map(|(key, _)| key);
    let mut csv = Csv::new(["name"].into_iter().chain(keys));
    for cache in caches {
        let name = std::iter::once(Cell::Name(cache.name.clone()));
        csv.row(name.chain(numbers(cache).map(|(_, number)| Cell::Count(number))));
    }
    csv.finish()
}
