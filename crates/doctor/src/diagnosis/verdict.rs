//! The answer in one sentence: a cache that the kernel shrinks by itself, or memory that climbs and that only
//! its holder frees.

use super::Report;
use super::findings::{counted, percent, size, sum_name};
use super::reclaim::{Reclaim, bytes_of};

/// The kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It grew, and the kernel does not free what grew.
    Climbing,
    /// What is large, or grew, is what the kernel frees when it needs memory.
    BenignCache,
    /// It did not grow.
    Steady,
    /// Most of it can only be freed by its holders; whether it grows takes a second snapshot.
    NotReclaimable,
    /// The input does not tell what can be reclaimed.
    Unknown,
}

impl Judgement {
    /// Its key for programs.
    pub fn key(self) -> &'static str {
        match self {
            Judgement::Climbing => "climbing",
            Judgement::BenignCache => "benign_cache",
            Judgement::Steady => "steady",
            Judgement::NotReclaimable => "not_reclaimable",
            Judgement::Unknown => "unknown",
        }
    }
}

/// An answer and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The kind.
    pub judgement: Judgement,
    /// The sentence.
    pub text: String,
}

/// The answer to the question of whether slab memory is a problem.
pub(super) fn of(report: &Report, worth: u64) -> Verdict {
    let (judgement, text) = match &report.history {
        Some(_) => of_growth(report, worth),
        None => of_state(report),
    };
    Verdict { judgement, text: text + &of_memory(report) }
}

fn of_growth(report: &Report, worth: u64) -> (Judgement, String) {
    let history = report.history.as_ref().map(|history| (history.total().bytes, history.span_words()));
    let (total, span) = history.unwrap_or_default();
    let sum = |benign: bool| {
        let groups = report.grown.iter().filter(|group| group.benign == benign);
        groups.fold(0u64, |sum, group| sum.saturating_add(group.bytes))
    };
    let (climbed, cached) = (sum(false), sum(true));
    let sign = if total < 0 { "shrank" } else { "grew" };
    let all = format!("slab memory {sign} by {}{span}", size(total.unsigned_abs()));
    let lead = report.grown.iter().find(|group| !group.benign && group.bytes >= worth);
    match lead {
        Some(lead) => {
            let text = format!(
                "climbing and not reclaimable: {} of growth in caches that no shrinker frees, most in {}; {all}",
                size(climbed),
                match lead.names.len() {
                    1 => lead.names[0].clone(),
                    count => format!(
                        "{} and {} that grew with it",
                        lead.names[0],
                        counted(count as u64 - 1, "cache")
                    ),
                }
            );
            (Judgement::Climbing, text)
        }
        None if cached >= worth => {
            let text = format!(
                "benign cache: {} of growth is what the kernel frees when it needs memory; {all}",
                size(cached)
            );
            (Judgement::BenignCache, text)
        }
        None => (Judgement::Steady, format!("steady: no cache grew by {} or more; {all}", size(worth))),
    }
}

fn of_state(report: &Report) -> (Judgement, String) {
    let held = bytes_of(&report.lines, Reclaim::Holder);
    let known = report.meminfo.as_ref().and_then(|meminfo| {
        Some((meminfo.reclaimable?.saturating_sub(held), meminfo.unreclaimable?.saturating_add(held)))
    });
    let (free, stays) = known.unwrap_or_else(|| {
        let of = |kind| bytes_of(&report.lines, kind);
        (of(Reclaim::Shrinker) + of(Reclaim::PageCache), held + of(Reclaim::No) + of(Reclaim::WithInodes))
    });
    let all = free.saturating_add(stays);
    let sum = if known.is_some() { "slab memory" } else { sum_name(report) };
    // Slabs of caches that are known in no way tell nothing.
    if all == 0 || bytes_of(&report.lines, Reclaim::Unknown) > all {
        let text = "unknown: the input does not tell which slabs can be reclaimed".into();
        return (Judgement::Unknown, text);
    }
    if free >= stays {
        let text = format!(
            "benign cache: {} of {sum}, {}, is counted as reclaimable and has a shrinker: the kernel \
             frees unused entries when it needs memory",
            percent(free, all),
            size(free)
        );
        return (Judgement::BenignCache, text);
    }
    let text = format!(
        "not reclaimable: {} of {sum}, {}, can only be freed by what holds it; whether it climbs takes a \
         second snapshot (slablab doctor --save now.tar.xz, later --since now.tar.xz)",
        percent(stays, all),
        size(stays)
    );
    (Judgement::NotReclaimable, text)
}

/// Slab memory as a part of all.
fn of_memory(report: &Report) -> String {
    let meminfo = report.meminfo.as_ref();
    let total = meminfo.and_then(|meminfo| Some((meminfo.slab, meminfo.total.filter(|total| *total > 0)?)));
    total.map_or(String::new(), |(slab, total)| {
        let part = 100.0 * slab as f64 / total as f64;
        format!(". Slabs have {part:.1} % of the machine's {}", size(total))
    })
}
