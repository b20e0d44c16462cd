//! The call sites of a program; the page's blocks are in `program_page`.

use super::folded::{Weight, lines_of};
use super::recorded::{duration, known, quantile};
use super::{SitesDocument, fitted};
use crate::output::recording::{Recording, gaps};
use crate::sites::{Lifetimes, Numbers, Program, ProgramSite};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use slablab_report::Answer;
use slablab_report::column::{Columns, Style};
use slablab_report::html::{Cell, name_of, number};
use slablab_report::pprof::{Kind, Profile};
use slablab_report::{text, visible};
use std::cmp::Reverse;

/// Characters of a site's name in text.
const NAME: usize = 40;
/// Columns of text and page behind the site, in their order.
pub(super) const KEYS: [&str; 8] = [
    "live_bytes",
    "live_blocks",
    "peak_bytes",
    "pinned_bytes",
    "allocs",
    "brief_percent",
    "median",
    "called",
];
/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 4] = ["calls", "allocs", "median", "blocks"];
/// Sites in the sentence.
const NAMED: usize = 3;

/// Less than this is not worth a verdict.
const LITTLE: u64 = 4 << 20;

/// What a program's memory is, at the end of its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    /// What lives grew all the time, and is near its peak.
    Growing,
    /// The allocator keeps pages that hold no live block.
    Kept,
    /// Live blocks are spread over pages that are mostly free.
    Fragmented,
    /// Live blocks are most of what the process has.
    Live,
    /// The process has little, or the recording does not say what.
    Little,
}

impl State {
    fn of(program: &Program) -> State {
        let (live, half) = (program.end[0], program.line.get(program.line.len() / 2).copied().unwrap_or(0));
        let grew = live.saturating_sub(half);
        if live >= LITTLE && live >= program.peak[0] / 10 * 9 && grew >= live / 5 {
            return State::Growing;
        }
        let Some(resident) = program.resident else { return State::Little };
        let more = resident.end.saturating_sub(resident.begin);
        let (empty, free) = (more.saturating_sub(program.pages.bytes), program.pages.free_bytes());
        match () {
            () if more < LITTLE => State::Little,
            () if empty >= LITTLE.max(more / 3) => State::Kept,
            () if free >= LITTLE.max(program.pages.bytes / 2) => State::Fragmented,
            () => State::Live,
        }
    }
}

/// The call sites as a document. Numbers of sites are estimates if `sample_bytes` is above 1.
#[derive(Serialize, JsonSchema)]
pub(super) struct Document {
    /// Allocations.
    allocs: u64,
    /// Call chains.
    chains: Vec<ChainDocument>,
    /// Blocks that live at the end.
    live_blocks: u64,
    /// Bytes that live at the end.
    live_bytes: u64,
    /// Bytes that live, at the times of `time_s`.
    live_bytes_over_time: Vec<u64>,
    /// Bytes of pages with live blocks at the end, and those of them that are free.
    page_bytes: u64,
    page_free_bytes: u64,
    /// Blocks that lived when most bytes did.
    peak_blocks: u64,
    /// Bytes that lived at most.
    peak_bytes: u64,
    /// Seconds from the first call to then.
    peak_s: f64,
    /// Seconds from the first row to the last.
    recorded_s: f64,
    #[serde(flatten)]
    recording: Recording,
    /// What the answer lacks, then what it rests on: sentences.
    remarks: Vec<String>,
    /// Bytes of the process in memory that are no file's: when the recording began, at most, and at its end.
    resident_begin_bytes: Option<u64>,
    resident_bytes: Option<u64>,
    resident_most_bytes: Option<u64>,
    /// Bytes in each of which about one allocation has a call chain; 1: every allocation has.
    sample_bytes: u64,
    sites: Vec<SiteDocument>,
    /// What the memory is.
    state: State,
    time_s: Vec<f64>,
}

#[derive(Serialize, JsonSchema)]
struct SiteDocument {
    #[serde(flatten)]
    #[schemars(schema_with = "site_schema")]
    columns: Map<String, Value>,
    live_bytes_over_time: Vec<u64>,
}

#[derive(Serialize, JsonSchema)]
struct ChainDocument {
    allocs: u64,
    /// Frames from the outermost to the innermost.
    frames: Vec<String>,
    live_bytes: u64,
    peak_bytes: u64,
    /// Bytes that were requested in all.
    requested_bytes: u64,
    /// The site that it counts for.
    site: String,
}

fn site_schema(_: &mut SchemaGenerator) -> Schema {
    let mut lifetimes = Lifetimes::default();
    lifetimes.freed(1);
    let schema = columns().schema(&ProgramSite { lifetimes, ..ProgramSite::default() });
    schema.try_into().expect("an object is a schema")
}

/// The text, the document, the rows, the folded chains.
pub(super) fn answer(program: &Program, top: usize, weight: Weight) -> Answer {
    let state = State::of(program);
    let name = |site: &ProgramSite| Cell::Name(fitted(&spoken(&site.name), NAME));
    let shown = || program.sites.iter().take(top);
    let folded = lines_of(paths(program, weight));
    let answer = Answer::new(format!("Who allocates: {}", name_of(&program.path)), sentence(program, state))
        .warnings(gaps(&program.metadata))
        .document(&SitesDocument::Program(document(program, state)))
        .rows(columns().frame(&program.sites))
        .form("folded", folded)
        .line(recorded_line(program))
        .line(memory_line(program))
        .list(advice(program, state))
        .table(columns().text(("site", &name), &KEYS, shown(), Style::Kib), &LEFT_OUT);
    let answer = match program.sites.len().saturating_sub(top) {
        0 => answer,
        more => answer.line(format!("... and {} (--top)", text::counted(more as u64, "more site"))),
    };
    let answer = answer.line(
        "peak: of what lived when most did; pins: free bytes in the pages of its live blocks; brief: percent of its \
         blocks that were freed before their thread allocated again",
    );
    answer.remarks(program.notes.iter().cloned())
}

/// The most that lived and where it came from, then what the memory is at the end.
fn sentence(program: &Program, state: State) -> String {
    let who = program.metadata.source.as_ref().and_then(|source| source.command.first());
    let who = who.map_or("The program", |path| path.rsplit('/').next().unwrap_or(path));
    let bytes = number::bytes_as_in_tables;
    let most = named(program, program.peak[0], |numbers| numbers.peak_bytes);
    let at = duration((program.peak_s * 1e9) as u64);
    let peak =
        format!("{who} had at most {} live, {at} after its first call: {most}.", bytes(program.peak[0]));
    let live = named(program, program.end[0], |numbers| numbers.live_bytes);
    let has = format!("{} live at the end", bytes(program.end[0]));
    let more = program.resident.map_or(0, |resident| resident.end.saturating_sub(resident.begin));
    let end = match state {
        State::Growing => format!("{has}, and it grew to the last: a leak, or data that is kept: {live}"),
        State::Kept => format!(
            "{has}, in pages of {}; the process has {} more than it began with: the allocator keeps what was freed",
            bytes(program.pages.bytes),
            bytes(more)
        ),
        State::Fragmented => format!(
            "{has}, spread over pages of {}: fragmentation; pinned most by {}",
            bytes(program.pages.bytes),
            named(program, program.pages.free_bytes(), |numbers| numbers.pinned_bytes)
        ),
        State::Live => format!("{has} are most of what the process has: {live}"),
        State::Little => format!("{has}, too little to judge"),
    };
    format!("{peak} {}.", upper(&end))
}

fn upper(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// A frame as people say it: without the parameters of its function and those of its templates.
pub(super) fn spoken(frame: &str) -> String {
    let (function, place) = match frame.rsplit_once(" (") {
        Some((function, place)) if place.contains(':') => (function, format!(" ({place}")),
        _ => (frame, String::new()),
    };
    let (mut words, mut angles, mut brackets) = (String::new(), 0i32, 0i32);
    for (at, letter) in function.char_indices() {
        match letter {
            '<' => angles += 1,
            // An arrow closes nothing.
            '>' if angles > 0 && !function[..at].ends_with('-') => angles -= 1,
            '(' if angles == 0 => brackets += 1,
            ')' if angles == 0 => brackets -= 1,
            _ if angles == 0 && brackets == 0 => words.push(letter),
            _ => {}
        }
    }
    let words = words.trim().trim_end_matches(" const").trim_end();
    // Where the brackets are no pairs, or a part of the name is gone, the whole is better.
    let is_whole = angles != 0 || brackets != 0 || words.is_empty() || words.starts_with("::");
    // A function that is a template has the type of its result first.
    let name = match is_whole || words.contains("operator") {
        true => function,
        false => words.rsplit(' ').next().unwrap_or(words),
    };
    format!("{name}{place}")
}

/// The sites with most of a number, each with its part of `whole`.
fn named(program: &Program, whole: u64, of: impl Fn(&Numbers) -> u64) -> String {
    let mut most: Vec<&ProgramSite> = program.sites.iter().filter(|site| of(&site.numbers) > 0).collect();
    most.sort_by_key(|site| (Reverse(of(&site.numbers)), &site.name));
    let part = |site: &&ProgramSite| {
        let percent = 100.0 * of(&site.numbers) as f64 / whole.max(1) as f64;
        format!("{}, {}", spoken(&site.name), number::percent(percent.min(100.0)))
    };
    // One in a hundred is not worth its words.
    let is_worth = |site: &&&ProgramSite| of(&site.numbers) >= whole / 100;
    match most.split_first() {
        None => "no site that was recorded".into(),
        Some((first, rest)) => {
            let rest = rest.iter().filter(is_worth).take(NAMED - 1).map(part);
            std::iter::once(part(first)).chain(rest).collect::<Vec<_>>().join("; ")
        }
    }
}

/// What to do, by the allocator that the program had.
fn advice(program: &Program, state: State) -> Vec<String> {
    let path = program.metadata.other.get("malloc").and_then(|malloc| malloc.get("allocator")?.as_str());
    let path = path.unwrap_or("");
    let gives_back = match () {
        () if path.contains("slablab") => "`slablab top PID --purge`, malloc_trim(0), SLABLAB_LIMIT",
        () if path.contains("jemalloc") => "MALLOC_CONF=background_thread:true,dirty_decay_ms:1000",
        () if path.contains("mimalloc") => "MIMALLOC_PURGE_DELAY=0",
        () if path.contains("tcmalloc") => "TCMALLOC_RELEASE_RATE=10, or ReleaseFreeMemory()",
        () => "malloc_trim(0), or MALLOC_TRIM_THRESHOLD_=131072 and MALLOC_ARENA_MAX=2",
    };
    let trace = visible::path(&program.path);
    let beside = format!("Beside other allocators, with these very calls: slablab bench --trace {trace}");
    match state {
        State::Growing => {
            vec![
                "If it is a leak: the call chains of the first site are in --html and --format folded."
                    .into(),
            ]
        }
        State::Kept => vec![format!("To have it back: {gives_back}."), beside],
        State::Fragmented => {
            let what = "What stays lies among what was freed. Blocks of the first site in a cache or an arena of their \
                        own, or a copy of those that stay, give the pages back.";
            vec![what.into(), beside]
        }
        State::Live | State::Little => Vec::new(),
    }
}

fn recorded_line(program: &Program) -> String {
    let path = visible::path(&program.path);
    let allocs = text::counted(program.allocs, "allocation");
    let each = match program.sample_bytes {
        1 => "all with call chains".to_string(),
        bytes => format!(
            "{} with call chains, about one in each {}",
            text::grouped(program.sum(|numbers| numbers.seen)),
            number::bytes_as_in_tables(bytes)
        ),
    };
    format!("{path}: {allocs} in {:.3} s, {each}", program.seconds)
}

fn memory_line(program: &Program) -> String {
    let kib = |bytes: u64| text::grouped(bytes / 1024);
    let resident = program.resident.map_or(String::new(), |resident| {
        format!(
            "; in memory, without files, {} K at most, {} at the end, {} at the beginning",
            kib(resident.most),
            kib(resident.end),
            kib(resident.begin)
        )
    });
    format!(
        "live {} K in {} at most, {} in {} at the end, in pages of {} K{resident}",
        kib(program.peak[0]),
        text::counted(program.peak[1], "block"),
        kib(program.end[0]),
        text::counted(program.end[1], "block"),
        kib(program.pages.bytes)
    )
}

fn document(program: &Program, state: State) -> Document {
    let columns = columns();
    let places = program.line.len();
    let time = |place: usize| program.seconds * place as f64 / (places.max(2) - 1) as f64;
    Document {
        allocs: program.allocs,
        chains: program
            .chains
            .iter()
            .map(|chain| ChainDocument {
                allocs: chain.numbers.allocs,
                frames: chain.frames.clone(),
                live_bytes: chain.numbers.live_bytes,
                peak_bytes: chain.numbers.peak_bytes,
                requested_bytes: chain.numbers.bytes,
                site: chain.site.clone(),
            })
            .collect(),
        live_blocks: program.end[1],
        live_bytes: program.end[0],
        live_bytes_over_time: program.line.clone(),
        page_bytes: program.pages.bytes,
        page_free_bytes: program.pages.free_bytes(),
        peak_blocks: program.peak[1],
        peak_bytes: program.peak[0],
        peak_s: program.peak_s,
        recorded_s: program.seconds,
        recording: Recording::new(&program.path, &program.metadata),
        remarks: gaps(&program.metadata).into_iter().chain(program.notes.iter().cloned()).collect(),
        resident_begin_bytes: program.resident.map(|resident| resident.begin),
        resident_bytes: program.resident.map(|resident| resident.end),
        resident_most_bytes: program.resident.map(|resident| resident.most),
        sample_bytes: program.sample_bytes,
        sites: program
            .sites
            .iter()
            .map(|site| SiteDocument { columns: columns.json(site), live_bytes_over_time: site.line.clone() })
            .collect(),
        state,
        time_s: (0..places).map(time).collect(),
    }
}

pub(super) fn columns() -> Columns<ProgramSite> {
    Columns::<ProgramSite>::default()
        .key("site", |site| Cell::Name(site.name.clone()))
        .add("called", "calls", "calls", |site| Cell::Name(site.called.clone()))
        .words()
        .add("live_bytes", "live", "live at the end", |site| Cell::Bytes(site.numbers.live_bytes))
        .bytes()
        .add("live_blocks", "blocks", "live blocks", |site| Cell::Count(site.numbers.live))
        .add("peak_bytes", "peak", "live at the peak", |site| Cell::Bytes(site.numbers.peak_bytes))
        .bytes()
        .described("Bytes that lived when most lived of the whole program.")
        .add("pinned_bytes", "pins", "pinned", |site| Cell::Bytes(site.numbers.pinned_bytes))
        .bytes()
        .described("Free bytes in the pages of its live blocks.")
        .add("allocs", "allocs", "allocations", |site| Cell::Count(site.numbers.allocs))
        .add("brief_percent", "brief", "freed before the next", |site| {
            let allocs = site.numbers.allocs;
            Cell::Percent((allocs > 0).then(|| 100.0 * site.numbers.brief as f64 / allocs as f64))
        })
        .key("requested_bytes", |site| Cell::Bytes(site.numbers.bytes))
        .described("Bytes that were requested in all.")
        .key("chains_seen", |site| Cell::Count(site.numbers.seen))
        .described("Allocations in the recording that have a call chain.")
        .people("median", "median", "median lifetime", |site| quantile(&site.lifetimes, 50))
        .key("lifetime_median_ns", |site| known(&site.lifetimes, 50))
        .or_unknown()
}

/// The number that a weight is of.
pub(super) fn value(numbers: &Numbers, weight: Weight) -> u64 {
    match weight {
        Weight::Live => numbers.live_bytes,
        Weight::Waste => numbers.pinned_bytes,
        Weight::Peak => numbers.peak_bytes,
        Weight::Allocs => numbers.allocs,
    }
}

/// The chains with a number above 0.
pub(super) fn paths(program: &Program, weight: Weight) -> Vec<(Vec<String>, u64)> {
    let chains = program.chains.iter().map(|chain| (chain.frames.clone(), value(&chain.numbers, weight)));
    chains.filter(|(_, value)| *value > 0).collect()
}

/// The chains as a profile that pprof reads.
pub(super) fn profile(program: &Program) -> Profile {
    let kinds = [
        Kind::new("alloc_objects", "count"),
        Kind::new("alloc_space", "bytes"),
        Kind::new("inuse_objects", "count"),
        Kind::new("inuse_space", "bytes"),
        Kind::new("peak_space", "bytes"),
    ];
    let mut profile = Profile::new(&kinds, "inuse_space", program.sample_bytes);
    for chain in &program.chains {
        let Numbers { allocs, bytes, live, live_bytes, peak_bytes, .. } = chain.numbers;
        profile
            .sample(chain.frames.iter().map(String::as_str), &[allocs, bytes, live, live_bytes, peak_bytes]);
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::{Pages, Resident};

    #[test]
    fn frames_are_spoken_without_parameters() {
        for (frame, expected) in [
            ("make(int) (heavy.cpp:8)", "make (heavy.cpp:8)"),
            ("load(std::map<int, std::vector<int> >&, int) (a.cpp:9)", "load (a.cpp:9)"),
            ("void ns::Table<int>::grow<char>(int) const (t.h:3)", "ns::Table::grow (t.h:3)"),
            ("wrapped (chains.c:10)", "wrapped (chains.c:10)"),
            ("fill+0x10", "fill+0x10"),
            ("[libx.so]+0x12", "[libx.so]+0x12"),
            ("bool operator<(A const&, A const&) (a.h:1)", "bool operator<(A const&, A const&) (a.h:1)"),
            (
                "<app::Row as core::clone::Clone>::clone (r.rs:5)",
                "<app::Row as core::clone::Clone>::clone (r.rs:5)",
            ),
        ] {
            assert_eq!(spoken(frame), expected);
        }
    }

    /// Megabytes that live: at the peak, in the middle, at the end; in pages; in memory at the beginning and
    /// the end.
    #[track_caller]
    fn check(live: [u64; 3], pages: u64, resident: Option<[u64; 2]>, expected: State) {
        let [peak, half, end] = live.map(|mb| mb << 20);
        let resident =
            resident.map(|[begin, end]| Resident { begin: begin << 20, most: end << 20, end: end << 20 });
        let pages = Pages { page_bytes: 4096, bytes: pages << 20, live_bytes: end };
        let program = Program {
            path: "x".into(),
            metadata: slablab_trace::Metadata::default(),
            sample_bytes: 1,
            sites: Vec::new(),
            chains: Vec::new(),
            allocs: 0,
            peak: [peak, 0],
            peak_s: 0.0,
            end: [end, 0],
            seconds: 1.0,
            line: vec![half; 240],
            pages,
            resident,
            notes: Vec::new(),
        };
        assert_eq!(State::of(&program), expected);
    }

    #[test]
    fn what_memory_is() {
        check([100, 50, 100], 104, Some([2, 120]), State::Growing);
        check([100, 50, 100], 104, None, State::Growing);
        // It has what it needs since the middle.
        check([100, 99, 100], 104, Some([2, 120]), State::Live);
        // Freed, and the process has it still: no block is in its pages, or few blocks are in all of them.
        check([100, 90, 10], 12, Some([2, 110]), State::Kept);
        check([100, 90, 10], 100, Some([2, 110]), State::Fragmented);
        // Freed and given back.
        check([100, 90, 10], 11, Some([2, 14]), State::Live);
        check([3, 1, 3], 3, Some([2, 6]), State::Live);
        check([3, 1, 3], 3, Some([2, 5]), State::Little);
        check([100, 90, 10], 100, None, State::Little);
    }
}
