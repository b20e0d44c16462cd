//! Which of two behaviours a run had, and whether modelled runs have it as often as real ones.

use super::measure::{LEVEL, SMALL};
use super::runs::{Repeats, Run};
use schemars::JsonSchema;
use serde::Serialize;

/// Scenarios, and the begin of the machines' names, whose runs are known to fall into one of two behaviours,
/// also from repeats that do not come with the project: all their counts are compared as distributions.
pub const BIMODAL: [(&str, &str); 3] = [("compete", ""), ("frag", ""), ("hotanon_stream_swp200", "612-")];

/// Whether the runs of a scenario on a machine fall into one of two behaviours.
pub fn is_bimodal(scenario: &str, machine: &str) -> bool {
    BIMODAL.iter().any(|(of, begin)| *of == scenario && machine.starts_with(begin))
}

/// How many runs of a scenario had an outcome.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    /// The scenario.
    pub scenario: String,
    /// The machine.
    pub machine: String,
    /// The outcome.
    #[serde(rename = "outcome")]
    pub what: &'static str,
    /// Real runs.
    pub real: Share,
    /// Modelled runs.
    pub modelled: Share,
    /// Fisher's exact test: the probability of shares that differ so much, if both have one.
    pub p: f64,
}

impl Outcome {
    /// Whether the shares differ: by the test, or as one side always has what the other never has. With few
    /// seeds the test alone finds nothing.
    pub fn differs(&self) -> bool {
        let always = |share: Share| share.had == share.runs;
        let opposite =
            always(self.real) && self.modelled.had == 0 || always(self.modelled) && self.real.had == 0;
        opposite || self.p <= LEVEL
    }

    /// Whether all runs of both sides had it.
    pub fn is_plain(&self) -> bool {
        [self.real, self.modelled].iter().all(|share| share.had == share.runs)
    }
}

/// How many of some runs had an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Share {
    /// Those that had it.
    pub had: usize,
    /// All.
    pub runs: usize,
}

/// Compares how often real and modelled runs had the outcome of a scenario of two behaviours.
pub(super) fn outcome(scenario: &str, machine: &str, repeats: &Repeats, seeds: &Repeats) -> Option<Outcome> {
    if !is_bimodal(scenario, machine) {
        return None;
    }
    let (what, had): (_, fn(&Run) -> bool) = match scenario {
        of if has_ends(of) => return Some(ends(scenario, machine, repeats, seeds)),
        "compete" => ("swapped 64 pages or more out", |run| swaps(run, "")),
        _ => ("swapped 64 pages or more out while the set was hot", |run| swaps(run, "stream_hot")),
    };
    Some(compare((scenario, machine), what, [repeats, seeds], had))
}

/// Compares how many real and modelled runs came to their end; the others' processes were killed.
pub(super) fn ends(scenario: &str, machine: &str, repeats: &Repeats, seeds: &Repeats) -> Outcome {
    let is_whole = |run: &Run| run.values().all(|record| record.is_complete);
    compare((scenario, machine), "completed", [repeats, seeds], is_whole)
}

fn compare(
    (scenario, machine): (&str, &str),
    what: &'static str,
    sides: [&Repeats; 2],
    had: fn(&Run) -> bool,
) -> Outcome {
    let count = |runs: &Repeats| Share { had: runs.iter().filter(|run| had(run)).count(), runs: runs.len() };
    let [real, modelled] = sides.map(count);
    let (scenario, machine) = (scenario.to_string(), machine.to_string());
    Outcome { scenario, machine, what, real, modelled, p: fisher(real, modelled) }
}

/// Whether the outcome of a scenario is how it ends: records without an end are whole.
pub(super) fn has_ends(scenario: &str) -> bool {
    scenario == "frag"
}

/// Whether a run swapped out in the phase, or in all if it has no name.
fn swaps(run: &Run, phase: &str) -> bool {
    let phases = run.get("").into_iter().flat_map(|record| &record.phases);
    let phases = phases.filter(|one| phase.is_empty() || one.name == phase);
    phases.map(|phase| phase.delta("pswpout")).sum::<i64>() >= SMALL as i64
}

/// In how many ways `some` runs can be taken from all.
pub(super) fn arrangements(some: usize, others: usize) -> f64 {
    (0..some).map(|at| (others + some - at) as f64 / (some - at) as f64).product()
}

/// Fisher's exact test, two-sided: the probability of a table that is at most as likely as this one, if both
/// sides have one share.
fn fisher(one: Share, other: Share) -> f64 {
    let (all, other_all, both) = (one.runs, other.runs, one.had + other.had);
    let ways = |had: usize| {
        let of = |had: usize, all: usize| arrangements(had, all - had);
        of(had, all) * of(both - had, other_all) / of(both, all + other_all)
    };
    let possible = both.saturating_sub(other_all)..=both.min(all);
    // Tables of one probability can differ by their rounding.
    let here = ways(one.had) * (1.0 + 1e-9);
    possible.map(ways).filter(|ways| *ways <= here).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R 4: `fisher.test(matrix(c(1, 1, 0, 8), 2))$p.value`, and so on.
    #[test]
    fn fishers_test_as_r() {
        let check = |real, modelled, expected: f64| {
            let [one, other] = [real, modelled].map(|(had, runs)| Share { had, runs });
            let p = fisher(one, other);
            assert!((p - expected).abs() < 1e-9, "{real:?} {modelled:?}: {p}, expected {expected}");
        };
        check((1, 2), (0, 8), 0.2);
        check((2, 2), (0, 8), 1.0 / 45.0);
        check((0, 2), (0, 8), 1.0);
        check((1, 2), (4, 8), 1.0);
        check((3, 3), (1, 4), 1.0 / 7.0);
        assert_eq!([arrangements(2, 8), arrangements(0, 3), arrangements(3, 3)], [45.0, 1.0, 20.0]);
    }

    /// The test at its level; and, however few the runs, what one side always and the other never has.
    #[test]
    fn outcomes_differ_by_the_test_or_if_they_are_opposite() {
        for (real, modelled, expected, is_plain) in [
            ((2, 2), (3, 3), false, true),
            ((2, 2), (0, 1), true, false),
            ((0, 2), (3, 3), true, false),
            ((0, 2), (0, 3), false, false),
            ((1, 2), (8, 8), false, false),
            ((1, 2), (0, 3), false, false),
            ((3, 3), (1, 8), true, false),
            ((2, 2), (1, 8), false, false),
            ((8, 8), (3, 8), true, false),
        ] {
            let [real, modelled] = [real, modelled].map(|(had, runs)| Share { had, runs });
            let outcome = Outcome {
                scenario: String::new(),
                machine: String::new(),
                what: "completed",
                real,
                modelled,
                p: fisher(real, modelled),
            };
            assert_eq!((outcome.differs(), outcome.is_plain()), (expected, is_plain), "{outcome:?}");
        }
    }
}
