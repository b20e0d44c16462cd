//! The part of each group of policies in the difference between two presets of page replacement, on a
//! script.
//!
//! ```text
//! script, every combination of at most seven groups, every seed ── pressure::run ── counts of phases
//!     counts that differ most ── shapley, each seed ── parts
//! ```
//!
//! A combination in which a run fails, or a process is killed, has no counts: then nothing is taken apart.

use super::cells::{Named, Row, apart};
use super::groups::{Group, Groups};
use crate::pressure::guests::Facts;
use crate::pressure::judge::Spread;
use crate::pressure::measure::{MEASURES, Measure, SMALL};
use crate::pressure::run::{Options, RUN, Run};
use rayon::prelude::*;
use slablab_report::error::{Error, Result};
use slablab_report::nearest::nearest;
use slablab_sim::pulse::Pulse;
use slablab_sim::record::Recorder;
use slablab_stats::shapley::Plan;
use slablab_trace::script::Script;
use slablab_vm::preset::Preset;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most counts that are taken apart, unless some are asked for.
pub const COUNTS_MOST: usize = 8;

/// What to explain.
pub struct Question<'a> {
    /// The script's file, for errors.
    pub path: &'a Path,
    /// The script.
    pub script: &'a Arc<Script>,
    /// Slab engine and machine, with the first policy.
    pub options: &'a Options,
    /// The second policy.
    pub to: Preset,
    /// Seeds: from 1 to this.
    pub seeds: u64,
    /// The counts that are taken apart, by the names of [`MEASURES`]; those that differ most if empty.
    pub counts: &'a [String],
    /// Told how far the runs are that have not ended, in the unit of `progress`.
    pub pulse: Pulse,
}

/// The answer.
#[derive(Debug)]
pub struct ScriptExplained {
    /// The first policy.
    pub from: Preset,
    /// The second one.
    pub to: Preset,
    /// The number of seeds.
    pub seeds: u64,
    /// What differs between the policies.
    pub groups: Vec<Group>,
    /// The counts that were taken apart, each of one phase.
    pub rows: Vec<Row>,
    /// What was left out, in sentences.
    pub left_out: Vec<String>,
}

/// A count of a phase of a process.
struct Place {
    process: String,
    phase: String,
    measure: Measure,
}

impl Place {
    fn name(&self) -> String {
        let Place { process, phase, measure } = self;
        if process.is_empty() {
            format!("{phase}, {}", measure.name)
        } else {
            format!("{process}: {phase}, {}", measure.name)
        }
    }

    fn of(&self, run: &Run) -> Option<i64> {
        let (_, record) = run.records.iter().find(|(process, _)| *process == self.process)?;
        self.measure.of(record, &self.phase)
    }
}

/// Explains the difference. `progress` gets the number of runs that ended, and of all, each times [`RUN`].
///
/// # Errors
/// A count that there is not; policies of which a combination cannot run the script.
pub fn explain_script(question: &Question, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<ScriptExplained> {
    let at = |why: String| Error::new(question.path, why);
    let measures = measures(question.counts)?;
    let from = question.options.vm;
    let groups = Groups::new(from, question.to).map_err(at)?;
    let plan = Plan::new(groups.groups.len(), groups.groups.len(), 0, slablab_stats::shapley::SEED);
    let coalitions = plan.coalitions();
    let jobs = coalitions.iter().flat_map(|chosen| (1..=question.seeds).map(move |seed| (*chosen, seed)));
    let jobs: Vec<_> = jobs.collect();
    let ended = AtomicU64::new(0);
    progress(0, RUN * jobs.len() as u64);
    let run = |(chosen, seed): &(u64, u64)| {
        let vm = groups.variant(*chosen);
        // The guest is the kernel's, unless the caller changed it.
        let (own, facts) = (Facts::of(from.kernel), question.options.facts);
        let facts = if facts == own { Facts::of(vm.kernel) } else { facts };
        let options = Options { vm, facts, ..question.options.clone() };
        let recorder = Recorder::default().with_beat(question.pulse.run(RUN));
        let run = options
            .run_recorded(question.script, *seed, &recorder)
            .map_err(|why| at(format!("{vm}, seed {seed}: {why}")))?;
        progress(RUN * (ended.fetch_add(1, Ordering::Relaxed) + 1), RUN * jobs.len() as u64);
        match run.killed.first() {
            Some(killed) => Err(at(format!(
                "{vm}, seed {seed}: no page was free, and {:?} was killed; nothing can be taken apart",
                killed.name
            ))),
            None => Ok(run),
        }
    };
    let runs: Vec<Run> = jobs.par_iter().map(run).collect::<Result<_>>()?;
    let by_chosen: Vec<&[Run]> = runs.chunks(question.seeds as usize).collect();
    let ends = [by_chosen[0], by_chosen[by_chosen.len() - 1]];
    let (chosen, mut left_out) = choose(ends, &measures, question.counts.is_empty());
    let mut rows = Vec::new();
    for place in chosen {
        let values = |runs: &&[Run]| runs.iter().map(|run| place.of(run).map(i128::from)).collect();
        let values: Option<Vec<Vec<i128>>> = by_chosen.iter().map(values).collect();
        let of = Named { metric: place.measure.name, unit: ("", 1.0), decimals: 0 };
        match values {
            Some(values) => {
                rows.push(Row { name: place.name(), measures: vec![apart(&plan, &coalitions, &values, of)] })
            }
            None => left_out.push(format!("{}: a combination does not have it", place.name())),
        }
    }
    let in_themes = groups.groups.iter().filter(|group| group.policies.len() > 1);
    let names: Vec<&str> = in_themes.map(|group| group.name.as_str()).collect();
    if !names.is_empty() {
        left_out.push(format!("parts within a group of several policies: {}", names.join(", ")));
    }
    left_out.push(format!("other slab allocators than {}", question.options.engine));
    Ok(ScriptExplained {
        from,
        to: question.to,
        seeds: question.seeds,
        groups: groups.groups,
        rows,
        left_out,
    })
}

/// The measures asked for, or those that are judged.
fn measures(counts: &[String]) -> Result<Vec<Measure>> {
    if counts.is_empty() {
        return Ok(MEASURES.into_iter().filter(|measure| measure.is_judged).collect());
    }
    let names = || MEASURES.iter().map(|measure| measure.name);
    let find = |name: &String| {
        MEASURES.into_iter().find(|measure| measure.name == name).ok_or_else(|| {
            let near = nearest(name, names(), 3);
            let expected = if near.is_empty() { names().collect() } else { near };
            let expected = expected.join(", ");
            Error::new("--count", format!("no count is called {name}: expected one of {expected}"))
        })
    };
    counts.iter().map(find).collect()
}

/// The counts to take apart, in the order of phases: of those whose means differ by more than small counts,
/// the ones that differ most by percent; or all of them.
fn choose(ends: [&[Run]; 2], measures: &[Measure], some: bool) -> (Vec<Place>, Vec<String>) {
    let mut found: Vec<(usize, f64, Place)> = Vec::new();
    for (process, record) in &ends[0][0].records {
        for phase in &record.phases {
            for measure in measures.iter().filter(|measure| process.is_empty() || measure.of_process) {
                let (process, phase) = (process.clone(), phase.name.clone());
                let place = Place { process, phase, measure: *measure };
                let mean = |runs: &[Run]| {
                    let values: Vec<i64> = runs.iter().filter_map(|run| place.of(run)).collect();
                    Spread::of(&values).map(|spread| spread.mean)
                };
                let (Some(one), Some(other)) = (mean(ends[0]), mean(ends[1])) else { continue };
                let change = (one - other).abs();
                if change >= SMALL || !some && change > 0.0 {
                    found.push((found.len(), change / one.abs().max(other.abs()), place));
                }
            }
        }
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let most = if some { COUNTS_MOST } else { found.len() };
    let rest: Vec<String> = found.iter().skip(most).map(|(.., place)| place.name()).collect();
    found.truncate(most);
    found.sort_by_key(|(at, ..)| *at);
    let mut left_out = Vec::new();
    if some {
        left_out.push(format!("counts whose means differ by less than {SMALL}"));
    }
    if !rest.is_empty() {
        left_out.push(format!("counts that differ by less percent: {}", rest.join("; ")));
    }
    (found.into_iter().map(|(.., place)| place).collect(), left_out)
}
