//! The answer in some sentences.

use super::found::{Judgement, Leak};
use super::suspect::{Course, Suspect};
use slablab_report::html::number;
use slablab_report::text::counted;

/// Names of caches in the sentence; the table has all.
const NAMES: usize = 2;
/// Hours from which on it does not matter how long the memory lasts.
const LASTS_H: f64 = 30.0 * 24.0;

/// What there is to say.
pub(super) fn of(leak: &Leak) -> String {
    let verdict = format!("{}.", capital(&leak.report.verdict.text));
    let lead = leak.suspects.first();
    match (leak.judgement, lead) {
        (Judgement::Corruption, _) => verdict,
        // The counters alone: what they do not show may be there all the same.
        (Judgement::Steady, _) if leak.report.measured.lines.is_empty() => verdict,
        (Judgement::OneSnapshot, lead) => {
            let held = lead.map_or(String::new(), |lead| who(leak, lead));
            format!("One snapshot does not tell what grows. {verdict}{held}")
        }
        (Judgement::Climbing | Judgement::Grew, Some(lead)) if !lead.reclaimable => of_lead(leak, lead),
        (Judgement::Climbing | Judgement::Grew, _) => of_counters(leak).unwrap_or(verdict),
        (Judgement::Reclaimable, Some(lead)) => format!(
            "No leak seen: what grew{} is what the kernel frees when it needs memory, most of it {}, {}.",
            span(leak),
            names(lead),
            number::bytes(lead.bytes)
        ),
        (Judgement::Reclaimable | Judgement::Steady, _) => format!(
            "No leak seen: nothing that the kernel does not free by itself grew by {} or more{}. A slower leak takes \
             a longer time.",
            number::bytes(leak.report.measured.worth),
            span(leak)
        ),
    }
}

fn of_lead(leak: &Leak, lead: &Suspect) -> String {
    let (names, bytes, span) = (names(lead), number::bytes(lead.bytes), span(leak));
    let rate = rate(leak, lead.bytes);
    let grew = match lead.course {
        Course::EachPart => {
            let per_hour =
                rate.map_or(String::new(), |rate| format!(", {} an hour", number::bytes(rate as u64)));
            format!(
                "Climbing: {names} grew by {bytes}{span}, all the time{per_hour}, and no shrinker frees that."
            )
        }
        Course::SomeParts => format!(
            "Grew, but not all the time: {names} by {bytes}{span}; no shrinker frees that. A program that started \
             does the same: look again for longer."
        ),
        Course::Unknown => format!(
            "Grew: {names} by {bytes}{span}, and no shrinker frees that; two snapshots do not tell whether it goes on."
        ),
    };
    let site = lead.site().map_or(String::new(), |site| {
        let task =
            site.tasks.first().map_or(String::new(), |(task, _)| format!(", called by the task {task}"));
        format!(" Allocated in {}{task}.", site.name)
    });
    let lasts = if lead.course == Course::EachPart { lasts(leak, rate) } else { String::new() };
    format!("{grew}{}{site}{lasts}", who(leak, lead))
}

/// What grew of the kernel's memory that is no slabs.
fn of_counters(leak: &Leak) -> Option<String> {
    let slabs_grew = leak.report.measured.lines.is_empty();
    let most = leak.report.measured.counters.first().filter(|_| !slabs_grew)?;
    let (name, grown, now) = (most.name, number::bytes(most.grown()), number::bytes(most.now));
    Some(format!(
        "Grew, but not in slabs: {name} by {grown}{}, to {now} ({}). No slabs grew that the kernel does not free.",
        span(leak),
        most.what
    ))
}

fn who(leak: &Leak, lead: &Suspect) -> String {
    let who = lead.who.as_ref();
    who.map_or(String::new(), |who| format!(" Who: {}.", leak.report.measured.held_by(who)))
}

/// How long the memory that is available lasts at this rate.
fn lasts(leak: &Leak, rate: Option<f64>) -> String {
    let available = leak.report.measured.state.dump.meminfo.get("MemAvailable");
    let Some((kb, rate)) = available.zip(rate.filter(|rate| *rate > 0.0)) else { return String::new() };
    let bytes = kb.saturating_mul(1024);
    let hours = bytes as f64 / rate;
    let time = match hours {
        LASTS_H.. => return String::new(),
        48.0.. => format!("{:.0} days", hours / 24.0),
        2.0.. => format!("{hours:.0} hours"),
        _ => format!("{:.0} minutes", hours * 60.0),
    };
    format!(" At this rate the {} that are available last {time}.", number::bytes(bytes))
}

/// Bytes an hour, if the time is known.
pub(crate) fn rate(leak: &Leak, bytes: u64) -> Option<f64> {
    let hours = leak.report.measured.history.as_ref()?.span_hours().filter(|hours| *hours > 0.0)?;
    Some(bytes as f64 / hours)
}

fn names(suspect: &Suspect) -> String {
    let shown = suspect.names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match suspect.names.len().saturating_sub(NAMES) {
        0 => shown.replacen(", ", " and ", 1),
        more => format!("{shown} and {}", counted(more as u64, "cache") + " that grew with them"),
    }
}

/// The time in words, after a blank; empty if it is not known.
pub(crate) fn span(leak: &Leak) -> String {
    leak.report.measured.history.as_ref().map_or(String::new(), |history| history.span_words())
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
