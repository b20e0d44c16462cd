//! Evidence becomes an answer.

use super::evidence::Evidence;
use super::found::{Judgement, Leak};
use super::sentence;
use super::suspect::{Course, Suspect};
use crate::sites::Recorded;
use slablab_doctor::act::verdict;
use slablab_doctor::measure::history::History;
use slablab_doctor::measure::{Measured, Options, WORTH_BYTES, WORTH_PERCENT};
use slablab_doctor::state::State;
use slablab_doctor::{Report, examine as diagnose};
use slablab_report::error::Result;

/// Growth is worth a sentence if a day of it would take so many per cent of the machine's memory.
const DAY_PERCENT: u64 = 1;
/// The part of the machine's memory by which the kernel's other memory grew at least, if that is the answer:
/// less comes and goes with processes. 1 in so many.
const OTHER_PART: u64 = 400;
/// Slab memory in no cache from which on its growth is told: below, counters of CPUs may lag.
const LARGE_FROM: u64 = 1 << 20;

/// Judges what grew.
///
/// # Errors
/// Snapshots that cannot be compared.
pub fn examine(evidence: &Evidence) -> Result<Leak<'_>> {
    let Evidence { after, earlier, sites, lacks } = evidence;
    let options = Options { since: earlier, worth: worth(after, earlier)?, ..Options::default() };
    let report = diagnose(after, &options)?;
    let suspects = suspects(&report.measured, sites.as_ref());
    let judgement = judge(&report, &suspects);
    let mut leak = Leak {
        report,
        recorded: sites.as_ref(),
        suspects,
        judgement,
        text: String::new(),
        lacks: lacks.clone(),
    };
    leak.text = sentence::of(&leak);
    Ok(leak)
}

/// The least growth that is worth a sentence: less than the doctor's in a short time.
fn worth(after: &State, earlier: &[State]) -> Result<Option<u64>> {
    if earlier.is_empty() {
        return Ok(None);
    }
    let hours = History::new(after, earlier, None, false)?.span_hours();
    let memory = after.dump.meminfo.get("MemTotal").map(|kb| kb.saturating_mul(1024));
    Ok(hours.zip(memory).map(|(hours, memory)| {
        let of_day = (memory / 100 * DAY_PERCENT) as f64 * hours / 24.0;
        (of_day as u64).min(after.bytes() / 100 * WORTH_PERCENT).max(WORTH_BYTES)
    }))
}

fn suspects<'a>(measured: &Measured, recorded: Option<&'a Recorded>) -> Vec<Suspect<'a>> {
    let Some(history) = &measured.history else {
        let worthy = measured.held.iter().filter(|held| held.bytes >= measured.worth);
        return worthy.map(|held| Suspect::of_now(measured, held)).collect();
    };
    let worthy = measured.grown.iter().filter(|group| group.bytes >= measured.worth);
    let mut found: Vec<Suspect> = worthy.map(|group| Suspect::of_growth(measured, group, recorded)).collect();
    let counter = |name: &str| history.counter(name).map(|(before, now)| now as i64 - before as i64);
    // Large kmallocs are in the counter and in no cache.
    let outside = counter("Slab").map_or(0, |grown| grown - history.total().bytes.max(0));
    if !measured.lines.is_empty() && outside >= measured.worth.max(LARGE_FROM) as i64 {
        found.push(Suspect::of_large(outside as u64, recorded));
    }
    found.sort_by_key(Suspect::rank);
    found
}

/// Whether the kernel's memory that is no slabs grew by much.
fn has_other(measured: &Measured) -> bool {
    let memory = measured.state.dump.meminfo.get("MemTotal").map_or(0, |kb| kb.saturating_mul(1024));
    measured.counters.first().is_some_and(|most| most.grown() >= (memory / OTHER_PART).max(LARGE_FROM))
}

fn judge(report: &Report, suspects: &[Suspect]) -> Judgement {
    let measured = &report.measured;
    match report.verdict.judgement {
        verdict::Judgement::Corruption => return Judgement::Corruption,
        _ if measured.history.is_none() => return Judgement::OneSnapshot,
        // Without caches the counters are all there is.
        verdict::Judgement::Climbing if measured.lines.is_empty() => return Judgement::Grew,
        _ => {}
    }
    match suspects.first() {
        Some(first) if !first.reclaimable && first.course == Course::EachPart => Judgement::Climbing,
        Some(first) if !first.reclaimable => Judgement::Grew,
        _ if has_other(measured) => Judgement::Grew,
        Some(_) => Judgement::Reclaimable,
        None => Judgement::Steady,
    }
}
