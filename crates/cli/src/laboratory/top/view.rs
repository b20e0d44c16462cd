//! The answer of a look at a process.

use super::purge::Purged;
use super::sample::{Cache, Sample};
use crate::watch::theme::bytes as short_bytes;
use clap::ValueEnum;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::{Answer, Document};
use std::cmp::Reverse;
use std::time::Instant;

/// One look at a process.
pub(super) struct Look {
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

/// A purge that the process was asked for.
pub(super) struct Purge {
    pub(super) heap_bytes_before: u64,
    /// `None`: the process has not done it yet.
    pub(super) purged: Option<Purged>,
}

/// What is asked of a look.
pub(super) enum Question<'a> {
    /// What the process holds.
    Holds,
    /// What it gave back.
    Purge(&'a Purge),
    /// Which caches' objects keep memory that is free.
    Pins,
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

#[derive(Serialize, JsonSchema)]
struct TopDocument<'a> {
    #[schemars(schema_with = "caches")]
    caches: Vec<Map<String, Value>>,
    command: &'a str,
    engine: &'a str,
    /// Bytes of free page frames.
    free_frame_bytes: u64,
    /// Bytes of page frames that were given back to the kernel, since the process began.
    given_back_bytes: u64,
    heap_bytes: u64,
    /// Bytes of allocated objects.
    live_bytes: u64,
    major_faults: u64,
    mapping_bytes: u64,
    /// Blocks that have a mapping of their own.
    mappings: u64,
    minor_faults: u64,
    page_bytes: u64,
    pid: u32,
    /// Whose the slots are: of each CPU or of each thread.
    slots: &'a str,
    slots_used: u64,
    /// With `--purge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    purge: Option<PurgeDocument>,
    /// The version of the process's library.
    version: &'a str,
}

/// A purge that the process was asked for.
#[derive(Serialize, JsonSchema)]
struct PurgeDocument {
    /// Bytes that went back to the kernel. Missing: no thread of the process came to a slow path in 2 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_back_bytes: Option<u64>,
    /// `heap_bytes` before the purge.
    heap_bytes_before: u64,
    /// Threads that had not emptied their slots when the purge was done: each does it on its next slow path.
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u64>,
}

impl Document for TopDocument<'_> {
    const NAME: &'static str = "slablab.top.1";
    const TITLE: &'static str = "slablab top: what a running process holds";
}

/// The schema of this answer.
pub(super) fn schema() -> Named {
    named::<TopDocument>()
}

/// Columns that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 5] = ["SIZE", "OBJ/SLAB", "BARNS", "SHEAVES", "SLABS"];

/// The columns of a look, and those of what pins memory.
const HELD: [&str; 9] = [
    "short_bytes",
    "live_objects",
    "objects",
    "sheaf_objects",
    "barn_objects",
    "free_objects",
    "slabs",
    "objects_per_slab",
    "object_bytes",
];
const PINNED: [&str; 8] = [
    "short_pinned",
    "short_bytes",
    "live_objects",
    "slabs",
    "sparse_slabs",
    "sparse_objects",
    "short_sparse",
    "object_bytes",
];

/// The answer of a look; with an earlier one, its text has rates.
pub(super) fn answer(look: &Look, before: Option<&Look>, sort: Sort, question: &Question<'_>) -> Answer {
    let is_of_pins = matches!(question, Question::Pins);
    let number = |cache: &Cache| if is_of_pins { cache.pinned_bytes() } else { sort.number(cache) };
    let mut caches: Vec<&Cache> = look.sample.caches.iter().collect();
    caches.sort_by_key(|cache| (Reverse(number(cache)), &cache.name));
    let columns = columns();
    let name = |cache: &Cache| Cell::Name(cache.name.clone());
    let keys: &[&str] = if is_of_pins { &PINNED } else { &HELD };
    let rows = caches.iter().copied();
    let table = columns.text(("NAME", &name), keys, rows, Style::Units);
    let (sentence, purge) = match question {
        Question::Holds => (sentence(look), None),
        Question::Purge(purge) => (of_purge(look, purge), Some(*purge)),
        Question::Pins => (of_pins(look, &caches), None),
    };
    let answer = Answer::new(format!("What process {} holds", look.pid), sentence)
        .document(&document(look, &caches, &columns, purge))
        .rows(columns.frame(caches.iter().copied()));
    head(look, before).into_iter().fold(answer, Answer::line).table(table, &LEFT_OUT)
}

/// What the process holds, and the cache with most of it.
fn sentence(look: &Look) -> String {
    let Look { pid, command, sample, .. } = look;
    let most = sample.caches.iter().max_by_key(|cache| cache.bytes);
    let most = most.map_or(String::new(), |cache| {
        format!(", most of it in {} ({})", cache.name, short_bytes(cache.bytes))
    });
    format!(
        "Process {pid} ({command}) holds {} in {} cache{}{most}: {} are live objects, {} free frames.",
        short_bytes(sample.heap_bytes),
        sample.caches.len(),
        if sample.caches.len() == 1 { "" } else { "s" },
        short_bytes(sample.live_bytes),
        short_bytes(sample.free_frame_bytes)
    )
}

/// What the process gave back.
fn of_purge(look: &Look, purge: &Purge) -> String {
    let Look { pid, command, sample, .. } = look;
    let before = short_bytes(purge.heap_bytes_before);
    let Some(purged) = purge.purged else {
        return format!(
            "Process {pid} ({command}) is asked to give memory back, and has not done so: none of its threads \
             allocated or freed enough in 2 s. The next one that does will. It holds {before}."
        );
    };
    let now = short_bytes(sample.heap_bytes);
    let left = match purged.threads {
        0 => String::new(),
        1 => "; 1 thread keeps what is in its slot until it allocates".to_owned(),
        threads => format!("; {threads} threads keep what is in their slots until they allocate"),
    };
    format!(
        "Process {pid} ({command}) gave {} back: it holds {now}, and held {before} before{left}.",
        short_bytes(purged.given_back_bytes)
    )
}

/// Which memory is free and cannot go back, and whose objects keep most of it.
fn of_pins(look: &Look, caches: &[&Cache]) -> String {
    let Look { pid, command, sample, .. } = look;
    let pinned: u64 = caches.iter().map(|cache| cache.pinned_bytes()).sum();
    let Some(most) = caches.first().filter(|most| most.pinned_bytes() > 0) else {
        return format!(
            "Process {pid} ({command}) holds no free object beside one in use: nothing is pinned."
        );
    };
    let Cache { name, slabs, pins, .. } = most;
    format!(
        "Objects in use keep {} of free memory of process {pid} ({command}), of {} that it holds: most in {name} \
         ({}), where {} of {slabs} slabs have no more than a quarter in use, by {} objects, and {} free.",
        short_bytes(pinned),
        short_bytes(sample.heap_bytes),
        short_bytes(most.pinned_bytes()),
        pins.sparse_slabs,
        pins.sparse_objects,
        short_bytes(most.sparse_bytes()),
    )
}

fn head(look: &Look, before: Option<&Look>) -> [String; 2] {
    let Look { engine, slots, sample, minor_faults, major_faults, .. } = look;
    let rate = |number: &dyn Fn(&Look) -> u64| {
        let Some(before) = before else { return String::new() };
        let seconds = look.at.saturating_duration_since(before.at).as_secs_f64();
        let grown = number(look).saturating_sub(number(before)) as f64;
        if seconds > 0.0 { format!(" ({:.0}/s)", grown / seconds) } else { String::new() }
    };
    let faults = rate(&|look| look.minor_faults);
    let given = rate(&|look| look.sample.given_back_bytes / look.page_bytes);
    let given_pages = sample.given_back_bytes / look.page_bytes;
    [
        format!(
            "{engine}, {slots}, {} slots used; {} mappings of {}",
            sample.slots_used,
            sample.mappings,
            short_bytes(sample.mapping_bytes)
        ),
        format!(
            "page faults {minor_faults}{faults} minor, {major_faults} major; frames given back {given_pages}{given}"
        ),
    ]
}

fn columns() -> Columns<Cache> {
    Columns::default()
        .key("name", |cache: &Cache| Cell::Name(cache.name.clone()))
        .add("object_bytes", "SIZE", "", |cache| Cell::Count(cache.object_bytes))
        .key("slot_bytes", |cache| Cell::Count(cache.slot_bytes))
        .described("Bytes from one object to the next.")
        .add("objects_per_slab", "OBJ/SLAB", "", |cache| Cell::Count(cache.objects_per_slab))
        .key("pages_per_slab", |cache| Cell::Count(cache.pages_per_slab))
        .add("slabs", "SLABS", "", |cache| Cell::Count(cache.slabs))
        .key("bytes", |cache| Cell::Count(cache.bytes))
        .described("Bytes of the slabs.")
        .people("short_bytes", "BYTES", "", |cache| Cell::Text(short_bytes(cache.bytes)))
        .add("objects", "OBJECTS", "", |cache| Cell::Count(cache.objects))
        .add("live_objects", "LIVE", "", |cache| Cell::Count(cache.live))
        .key("parked_objects", |cache| Cell::Count(cache.in_sheaves + cache.in_barns))
        .described("Free objects in sheaves and barns.")
        .add("sheaf_objects", "SHEAVES", "", |cache| Cell::Count(cache.in_sheaves))
        .add("barn_objects", "BARNS", "", |cache| Cell::Count(cache.in_barns))
        .add("free_objects", "FREE", "", |cache| Cell::Count(cache.free))
        .described("Free objects in slabs.")
        .key("pinned_bytes", |cache| Cell::Count(cache.pinned_bytes()))
        .described(
            "Bytes of the free objects of slabs that have an object in use, so that they cannot go back.",
        )
        .people("short_pinned", "PINNED", "", |cache| Cell::Text(short_bytes(cache.pinned_bytes())))
        .add("sparse_slabs", "SPARSE", "", |cache| Cell::Count(cache.pins.sparse_slabs))
        .described("Slabs of which no more than a quarter is in use.")
        .add("sparse_objects", "BY", "", |cache| Cell::Count(cache.pins.sparse_objects))
        .described("Objects in use of those slabs: in sheaves and barns, too.")
        .key("sparse_bytes", |cache| Cell::Count(cache.sparse_bytes()))
        .described("Bytes of the free objects of those slabs.")
        .people("short_sparse", "THEIRS", "", |cache| Cell::Text(short_bytes(cache.sparse_bytes())))
}

/// The schema of the caches: that of their columns.
fn caches(_: &mut SchemaGenerator) -> Schema {
    let row = columns().schema(&Cache::default());
    Schema::try_from(json!({ "type": "array", "items": row })).expect("an object is a schema")
}

fn document<'a>(
    look: &'a Look,
    caches: &[&Cache],
    columns: &Columns<Cache>,
    purge: Option<&Purge>,
) -> TopDocument<'a> {
    let sample = &look.sample;
    TopDocument {
        caches: caches.iter().map(|cache| columns.json(cache)).collect(),
        command: &look.command,
        engine: &look.engine,
        free_frame_bytes: sample.free_frame_bytes,
        given_back_bytes: sample.given_back_bytes,
        heap_bytes: sample.heap_bytes,
        live_bytes: sample.live_bytes,
        major_faults: look.major_faults,
        mapping_bytes: sample.mapping_bytes,
        mappings: sample.mappings,
        minor_faults: look.minor_faults,
        page_bytes: look.page_bytes,
        pid: look.pid,
        purge: purge.map(|purge| PurgeDocument {
            given_back_bytes: purge.purged.map(|purged| purged.given_back_bytes),
            heap_bytes_before: purge.heap_bytes_before,
            threads: purge.purged.map(|purged| purged.threads),
        }),
        slots: &look.slots,
        slots_used: sample.slots_used,
        version: &look.version,
    }
}
