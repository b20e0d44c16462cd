//! The answer about a leak.

mod columns;
mod document;

use crate::leak::suspect::chain;
use crate::leak::{Judgement, Leak, Suspect};
use crate::output::recording::gaps;
use columns::{SiteRow, columns, site_columns};
use document::LeakDocument;
use slablab_report::Answer;
use slablab_report::column::Style;
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::{text, visible};

/// Suspects that are told with holder, call sites and what ends them.
const TOLD: usize = 3;
/// The file without which no cache is known.
const SLABINFO: &str = "/proc/slabinfo";
/// Rows of the table of what grew.
const ROWS: usize = 10;
/// Bytes by which other memory of the kernel grew, if that is told though no slabs grew.
const FEW: u64 = 4 << 20;
/// Frames of a call chain.
const FRAMES: usize = 8;
/// Characters of names in tables.
const NAME: usize = 30;
/// Columns that a narrow terminal does without, in this order.
const LEFT_OUT: [&str; 2] = ["freed", "an hour K"];
/// The part of the likeliest suspect's bytes that another one has at least, if it is told too: 1 in so many.
const TOLD_PART: u64 = 10;

/// The answer of `leak`: text and page have the first `top` call sites of each suspect.
pub fn leak_answer(leak: &Leak, top: usize) -> Answer {
    let answer = Answer::new("A leak", leak.text.clone())
        .document(&LeakDocument::new(leak))
        .rows(columns().frame(&rows(leak)))
        .line(about(leak));
    let held = || leak.suspects.iter().filter(|suspect| !suspect.reclaimable);
    let least = held().next().map_or(0, |lead| lead.bytes / TOLD_PART);
    let told: Vec<&Suspect> = held().filter(|suspect| suspect.bytes >= least).take(TOLD).collect();
    let answer = ends(answer, &told);
    let answer = grown(answer, leak);
    let answer = holders(answer, leak, &told);
    let answer = told.iter().fold(answer, |answer, suspect| sites(answer, leak, suspect, top));
    next(counters(answer, leak), leak).remarks(lacks(leak))
}

/// The schema of the answer about a leak.
pub(super) fn schema() -> Named {
    named::<LeakDocument>()
}

/// What was looked at: the machine, the time, the recording.
fn about(leak: &Leak) -> String {
    let state = leak.report.measured.state;
    let kernel = state.release.map_or("an unknown kernel".into(), |release| format!("Linux {release}"));
    let cpus =
        state.cpus.map_or(String::new(), |cpus| format!(", {}", text::counted(cpus.online.into(), "CPU")));
    let snapshots = leak.report.measured.history.as_ref().map_or(1, |history| history.points());
    let span = crate::leak::sentence::span(leak);
    let recorded = leak.recorded.map_or(String::new(), |recorded| {
        let rows = text::counted(recorded.metadata.statistics.rows, "event");
        format!(", and a recording of {rows} in {:.0} s", recorded.seconds)
    });
    let snapshots = text::counted(snapshots as u64, "snapshot");
    format!("{}: {kernel}{cpus}; {snapshots}{span}{recorded}", visible::path(&state.path))
}

/// What finds the holders and ends them.
fn ends(answer: Answer, told: &[&Suspect]) -> Answer {
    let mut commands: Vec<&str> = Vec::new();
    let mut answer = answer;
    for suspect in told {
        let Some(method) = suspect.ends else { continue };
        let Some(command) = method.run.as_deref().filter(|command| !commands.contains(command)) else {
            continue;
        };
        if commands.is_empty() {
            answer = answer.heading("What ends it").section("What ends it");
        }
        commands.push(command);
        let cost = method
            .cost
            .as_deref()
            .map_or(String::new(), |cost| format!(" Costs: {}.", cost.trim_end_matches('.')));
        let words = format!("{}: {}.{cost}", suspect.names[0], method.how.trim_end_matches('.'));
        answer = answer.paragraph(&words).list([words]).command(command);
    }
    answer
}

/// Rows of the table of what grew, or is held.
fn rows<'a>(leak: &'a Leak) -> Vec<columns::Row<'a>> {
    leak.suspects.iter().map(|suspect| columns::Row { leak, suspect }).collect()
}

fn grown(answer: Answer, leak: &Leak) -> Answer {
    let all = rows(leak);
    if all.is_empty() {
        return answer;
    }
    let (head, keys): (&str, &[&str]) = match leak.judgement {
        Judgement::OneSnapshot => ("What is held", &["objects", "bytes", "holder"]),
        _ => ("What grew", &["objects", "bytes", "bytes_per_hour", "course", "freed", "holder"]),
    };
    let name = |row: &columns::Row| Cell::Name(text::cut(&row.suspect.names.join(", "), NAME));
    let table = columns().text((head, &name), keys, all.iter().take(ROWS), Style::Kib);
    let page = columns().html((head, &name), keys, all.iter().take(ROWS));
    let answer = answer.table(table, &LEFT_OUT).section(head).page_table("The likeliest leak first.", page);
    match all.len().saturating_sub(ROWS) {
        0 => answer,
        more => answer.line(format!("... and {more} more (--format csv)")),
    }
}

fn holders(answer: Answer, leak: &Leak, told: &[&Suspect]) -> Answer {
    let who = told.iter().filter_map(|suspect| Some((suspect, suspect.who.as_ref()?)));
    let words = |(suspect, who): (&&Suspect, _)| {
        format!("{}: {}", suspect.names[0], leak.report.measured.held_by(who))
    };
    let mut said: Vec<String> = who.map(words).collect();
    let charged = &leak.report.measured.charged;
    let worth = leak.report.measured.worth as i64;
    said.extend(charged.iter().take(told.len().min(1)).filter_map(|first| {
        let grown = first.growth.filter(|grown| *grown >= worth)?;
        let bytes = slablab_report::html::number::bytes(grown.unsigned_abs());
        Some(format!("the cgroup that is charged for most of the growth: {}, {bytes}", first.name))
    }));
    if said.is_empty() {
        return answer;
    }
    let answer = answer.heading("Who").section("Who");
    said.into_iter().fold(answer, |answer, words| answer.paragraph(&words).list([words]))
}

/// The code that allocates from the caches of a suspect.
fn sites<'a>(answer: Answer, leak: &'a Leak, suspect: &Suspect<'a>, top: usize) -> Answer {
    let Some(recorded) = leak.recorded.filter(|_| !suspect.sites.is_empty()) else { return answer };
    let all: Vec<SiteRow> = suspect.sites.iter().take(top).map(|site| SiteRow { site }).collect();
    let head = format!("Call sites of what lives at the end, in {}", suspect.names[0]);
    let name = |row: &SiteRow| Cell::Name(text::cut(&row.site.name, NAME));
    let keys = ["cache", "live_objects", "live_bytes", "course", "task"];
    let table = site_columns().text(("site", &name), &keys, &all, Style::Kib);
    let page = site_columns().html(("site", &name), &keys, &all);
    let answer = answer.heading(&head).table(table, &["task", "course"]).section(&head);
    let answer = answer.page_table("Objects that the recording saw allocated and not freed.", page);
    let frames = suspect.site().map_or(Vec::new(), |site| chain(recorded, site));
    if frames.len() < 2 {
        return answer;
    }
    let words = format!("called by: {}", frames.iter().take(FRAMES).copied().collect::<Vec<_>>().join(" < "));
    answer.paragraph(&words).line(words)
}

/// The kernel's memory beside slabs, where it grew.
fn counters(answer: Answer, leak: &Leak) -> Answer {
    // Less than the slabs that grew comes and goes with processes.
    let least = leak.suspects.first().map_or(FEW, |lead| lead.bytes.max(leak.report.measured.worth));
    let grown = leak.report.measured.counters.iter().filter(|counter| counter.grown() >= least);
    let words: Vec<String> = grown
        .map(|counter| {
            let [before, now] = [counter.before, counter.now].map(slablab_report::html::number::bytes);
            format!("{}: from {before} to {now}; {}", counter.name, counter.what)
        })
        .collect();
    if words.is_empty() {
        return answer;
    }
    let answer = answer.heading("No slabs, and grew too").section("No slabs, and grew too");
    words.into_iter().fold(answer, |answer, words| answer.paragraph(&words).list([words]))
}

/// The next command, where the answer is not yet whole.
fn next(answer: Answer, leak: &Leak) -> Answer {
    let (words, command) = match leak.judgement {
        Judgement::OneSnapshot => (
            "On the machine, as root, a minute tells what grows, who holds it, and which code allocates it; FILE is \
             for somebody else:",
            "slablab leak --for 60s --save FILE",
        ),
        Judgement::Grew => ("A longer time tells whether it goes on:", "slablab leak --for 10m"),
        _ if leak.report.measured.lines.is_empty() => (
            "As root, it tells which caches grow, who holds their objects, and which code allocates:",
            "sudo slablab leak",
        ),
        Judgement::Climbing if leak.recorded.is_none() => {
            ("As root, a recording names the code that allocates:", "slablab leak --for 60s")
        }
        _ => return answer,
    };
    answer.heading(words).paragraph(words).command(command)
}

/// What is not there, and what the numbers do not have.
fn lacks(leak: &Leak) -> Vec<String> {
    let measured = &leak.report.measured;
    let is_told = |file: &str| file == SLABINFO || measured.state.is_cut_off();
    let missing = measured.missing().filter(|missing| is_told(&missing.file));
    let missing = missing.map(|missing| format!("{} ({}): {}", missing.file, missing.why, missing.costs));
    let gaps = leak.recorded.into_iter().flat_map(|recorded| gaps(&recorded.metadata));
    leak.lacks.iter().cloned().chain(missing).chain(gaps).collect()
}
