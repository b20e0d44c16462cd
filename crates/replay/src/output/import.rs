//! What an import says when it is done. The counts are the trace's metadata, under the same names.

use super::recording::gaps;
use crate::import::Report;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::document::{Named, named};
use slablab_report::html::{name_of, number};
use slablab_report::text::{Table, counted, cut};
use slablab_report::{Answer, Document, visible};
use slablab_trace::{
    CacheCounts, Counts, CutOff, Import, Losses, Metadata, Repairs, Source, Statistics, Topology,
};

/// Caches in the table for people; JSON has all.
const CACHES_SHOWN: usize = 20;
/// Characters of a cache's name in text.
const NAME: usize = 31;
/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 3] = ["implied", "unseen", "other CPU"];

/// What was converted, lost and repaired.
#[derive(Serialize, JsonSchema)]
struct ImportDocument {
    architecture: Option<String>,
    /// The caches of the events.
    caches: Vec<CacheCounts>,
    /// Where the recording was cut off; null for a whole one.
    cut_off: Option<CutOff>,
    /// What was found and repaired; null for a trace.
    import: Option<Import>,
    /// Whether the recording is known to miss events.
    incomplete: bool,
    input: String,
    losses: Losses,
    output: String,
    /// Bytes of a page.
    page_size_bytes: Option<u64>,
    /// Whether addresses are hashes: they pair an object's events, and say nothing of pages and nodes.
    pairing_only: bool,
    /// The release of the kernel, as `uname -r` prints it.
    release: Option<String>,
    source: Option<Source>,
    statistics: Statistics,
    topology: Topology,
    /// What a user of the trace should be told, in sentences.
    warnings: Vec<String>,
}

impl Document for ImportDocument {
    const NAME: &str = "slablab.import.1";
    const TITLE: &str = "slablab import: what was converted, lost and repaired";
}

impl ImportDocument {
    fn new(report: &Report) -> ImportDocument {
        let metadata = report.metadata.clone();
        ImportDocument {
            architecture: metadata.architecture,
            caches: metadata.caches,
            cut_off: metadata.cut_off,
            import: metadata.import,
            incomplete: report.incomplete(),
            input: report.input.to_string_lossy().into(),
            losses: metadata.losses,
            output: report.output.to_string_lossy().into(),
            page_size_bytes: metadata.page_size_bytes,
            pairing_only: metadata.pairing_only,
            release: metadata.release,
            source: metadata.source,
            statistics: metadata.statistics,
            topology: metadata.topology,
            warnings: metadata.warnings,
        }
    }
}

/// The schema of a finished import.
pub(super) fn schema() -> Named {
    named::<ImportDocument>()
}

/// The answer of `import`.
pub fn import_answer(report: &Report) -> Answer {
    let Metadata { statistics, import, warnings, .. } = &report.metadata;
    let warnings = warnings.iter().map(|warning| format!("warning: {warning}"));
    let events = statistics.events.iter().map(|(name, count)| format!("{name} {count}"));
    let output = visible::path(&report.output);
    let (rows, seconds, cpus) = (statistics.rows, seconds(statistics), statistics.cpu_ids);
    let answer = Answer::new(format!("Import of {}", name_of(&report.input)), sentence(report))
        .warnings(gaps(&report.metadata).into_iter().chain(warnings))
        .document(&ImportDocument::new(report))
        .line(format!("{output}: {}, {seconds:.3} s, {}", counted(rows, "row"), counted(cpus.into(), "CPU")))
        .line(format!("events: {}", events.collect::<Vec<_>>().join(", ")))
        .line(format!("objects live at once: at most {}", statistics.object_ids));
    match import {
        Some(import) => caches(answer.list(repairs(&import.repairs)), report, import),
        None => answer,
    }
}

fn seconds(statistics: &Statistics) -> f64 {
    statistics.last_time_ns.saturating_sub(statistics.first_time_ns) as f64 / 1e9
}

/// What the trace has, and which of its frees are not like those of a whole recording.
fn sentence(report: &Report) -> String {
    let Metadata { statistics, losses, cut_off, import, .. } = &report.metadata;
    let repairs = import.as_ref().map(|import| &import.repairs);
    let sum = |of: fn(&Repairs) -> u64| repairs.map_or(0, of);
    let inferred = sum(|repairs| repairs.implied_by_alloc + repairs.implied_by_page + repairs.cache_changed);
    let lost = match (cut_off, losses.records, losses.events) {
        (Some(_), ..) => Some("the recording ended early".to_string()),
        (None, 0, _) => None,
        (None, _, 0) => Some("the recording lost events".to_string()),
        (None, _, lost) => Some(format!("the recording lost {}", counted(lost, "event"))),
    };
    let of = |count: u64, one: &str, many: &str, what: &str| {
        let verb = if count == 1 { one } else { many };
        (count > 0).then(|| format!("{} {verb} {what}", number::count(count)))
    };
    let unseen = of(sum(|repairs| repairs.unseen_frees), "has", "have", "no allocation in it");
    let frees: Vec<String> = unseen.into_iter().chain(of(inferred, "is", "are", "inferred")).collect();
    let frees = (!frees.is_empty()).then(|| format!("of its frees {}", frees.join(" and ")));
    let said: Vec<String> = lost.into_iter().chain(frees).collect();
    format!(
        "The trace has {} of {:.3} s on {}: {}.",
        counted(statistics.rows, "row"),
        seconds(statistics),
        counted(statistics.cpu_ids.into(), "CPU"),
        if said.is_empty() { "every free has its allocation".into() } else { said.join(", ") }
    )
}

/// What was repaired, a line each.
fn repairs(repairs: &Repairs) -> Vec<String> {
    let lines = [
        (repairs.unseen_frees, "frees of objects whose allocation is not in the recording"),
        (repairs.freed_before, "of these, allocated during the recording by a path that is not traced"),
        (repairs.implied_by_alloc, "untraced frees, shown by an allocation of the same address"),
        (repairs.implied_by_page, "untraced frees, shown by their page being freed or allocated"),
        (repairs.cache_changed, "untraced frees, shown by a free to another cache"),
        (repairs.reordered, "events moved, as their order was impossible"),
        (repairs.late, "events out of the order of time"),
        (repairs.failed_allocs, "allocations that failed"),
        (
            repairs.damaged_sizes,
            "damaged events, allocations of more than any kernel's largest block: left out",
        ),
        (repairs.pages_unchecked, "page events that could not be checked against objects"),
        (repairs.forgotten, "times that the freed addresses were forgotten"),
    ];
    let some = lines.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect()
}

/// The busiest caches; kmalloc sizes and unknown caches are among them.
fn caches(answer: Answer, report: &Report, import: &Import) -> Answer {
    let sizes = import.kmalloc.iter().map(|size| (format!("kmalloc of {}", size.bytes_alloc), size.counts));
    let named = report.metadata.caches.iter().map(|cache| (cache.name.clone(), cache.counts));
    let unknown = ("(not known)".to_string(), import.unknown);
    let mut rows: Vec<(String, Counts)> = named.chain(sizes).chain([unknown]).collect();
    let weight = |counts: &Counts| counts.allocs + counts.frees + counts.implied_frees;
    rows.retain(|(_, counts)| weight(counts) > 0);
    rows.sort_by(|(left_name, left), (right_name, right)| {
        weight(right).cmp(&weight(left)).then_with(|| left_name.cmp(right_name))
    });
    let mut table = Table::new(["cache", "allocs", "frees", "other CPU", "unseen", "implied", "untraced %"]);
    for (name, counts) in rows.iter().take(CACHES_SHOWN) {
        let untraced = counts.freed_before + counts.implied_frees;
        let share = 100.0 * untraced as f64 / weight(counts) as f64;
        let numbers =
            [counts.allocs, counts.frees, counts.frees_other_cpu, counts.unseen_frees, counts.implied_frees];
        let cells = numbers.iter().map(u64::to_string).chain([format!("{share:.1}")]);
        table.row(std::iter::once(cut(name, NAME)).chain(cells));
    }
    let answer = answer.table(table, &LEFT_OUT);
    match rows.len().saturating_sub(CACHES_SHOWN) {
        0 => answer,
        more => answer.line(format!("and {more} more (--format json)")),
    }
}
