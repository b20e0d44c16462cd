//! An explanation as a document.

use crate::explain::cells::{CellsExplained, Measured, Row};
use crate::explain::groups::Group;
use crate::explain::script::ScriptExplained;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::Document;

/// The part of each group in the difference between two presets, or two choices of values.
#[derive(Serialize, JsonSchema)]
struct Explanation {
    /// Combinations of groups that ran.
    combinations: u64,
    /// The first preset, or the first values.
    from: String,
    /// What differs.
    groups: Vec<Group>,
    /// What was left out, in sentences.
    left_out: Vec<String>,
    /// What was taken apart.
    rows: Vec<RowDocument>,
    /// The second preset, or the second values.
    to: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CellsDocument {
    /// The experiment's name.
    experiment: String,
    /// Runs of each combination in each row.
    repeats: u32,
    /// The seed of random numbers.
    seed: u64,
    /// How long runs are.
    size: &'static str,
    #[serde(flatten)]
    explanation: Explanation,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ScriptDocument {
    /// The script's path.
    script: String,
    /// Runs of each combination: the seeds from 1 on.
    seeds: u64,
    #[serde(flatten)]
    explanation: Explanation,
}

impl Document for CellsDocument {
    const NAME: &str = "slablab.explain-experiment.1";
    const TITLE: &str = "slablab explain EXPERIMENT: the part of each policy in a difference of times";
}

impl Document for ScriptDocument {
    const NAME: &str = "slablab.explain-script.1";
    const TITLE: &str = "slablab explain SCRIPT: the part of each policy of page replacement in a difference";
}

/// A row of the experiment, or a count of a phase.
#[derive(Serialize, JsonSchema)]
struct RowDocument {
    row: String,
    /// What was measured: the main metric first.
    measures: Vec<MeasureDocument>,
}

/// A metric's difference, in its unit.
#[derive(Serialize, JsonSchema)]
struct MeasureDocument {
    metric: &'static str,
    unit: &'static str,
    /// How many of the metric's own numbers are one of its unit.
    per_unit: f64,
    /// The mean under the first preset.
    from: f64,
    /// The mean under the second preset.
    to: f64,
    change: f64,
    /// The parts of all groups, whose sum is the change.
    parts: Vec<PartDocument>,
    /// What pairs of groups do beyond what each does without the other, the strongest first.
    interactions: Vec<PairDocument>,
}

#[derive(Serialize, JsonSchema)]
struct PartDocument {
    group: String,
    /// The mean over the repeats.
    value: f64,
    /// The sum over the repeats in the metric's own numbers: a whole number, or a fraction.
    sum_of_repeats: String,
    /// Half of Student's 95 % interval over the repeats; null with one.
    give_or_take: Option<f64>,
    /// What the group changes alone, in the first preset.
    alone: f64,
    /// What the group changes as the last, towards the second preset.
    last: f64,
    /// Whether it changes anything in any combination and repeat.
    has_effect: bool,
}

#[derive(Serialize, JsonSchema)]
struct PairDocument {
    groups: [String; 2],
    value: f64,
}

impl CellsDocument {
    pub(super) fn new(explained: &CellsExplained) -> CellsDocument {
        let plan = &explained.ends.plan;
        let CellsExplained { names: [from, to], groups, rows, left_out, .. } = explained;
        CellsDocument {
            experiment: explained.ends.experiment.file.name.clone(),
            repeats: plan.repeats.least,
            seed: plan.seed,
            size: plan.size.name(),
            explanation: Explanation::new([from, to].map(Clone::clone), groups, rows, left_out),
        }
    }
}

impl ScriptDocument {
    pub(super) fn new(explained: &ScriptExplained, script: &str) -> ScriptDocument {
        let ScriptExplained { from, to, seeds, groups, rows, left_out } = explained;
        let names = [from.to_string(), to.to_string()];
        let explanation = Explanation::new(names, groups, rows, left_out);
        ScriptDocument { script: script.to_string(), seeds: *seeds, explanation }
    }
}

impl Explanation {
    fn new([from, to]: [String; 2], groups: &[Group], rows: &[Row], left_out: &[String]) -> Explanation {
        let row = |row: &Row| RowDocument {
            row: row.name.clone(),
            measures: row.measures.iter().map(|measured| MeasureDocument::new(groups, measured)).collect(),
        };
        Explanation {
            combinations: 1 << groups.len(),
            from,
            groups: groups.to_vec(),
            left_out: left_out.to_vec(),
            rows: rows.iter().map(row).collect(),
            to,
        }
    }
}

impl MeasureDocument {
    fn new(groups: &[Group], measured: &Measured) -> MeasureDocument {
        let (unit, per_unit) = measured.unit;
        let parts = groups.iter().zip(&measured.parts).map(|(group, part)| PartDocument {
            group: group.name.clone(),
            value: part.value / per_unit,
            sum_of_repeats: part.sum.exact(),
            give_or_take: part.give_or_take.map(|half| half / per_unit),
            alone: part.alone / per_unit,
            last: part.last / per_unit,
            has_effect: part.moves,
        });
        let pair = |(pair, value): &([usize; 2], f64)| PairDocument {
            groups: pair.map(|group| groups[group].name.clone()),
            value: value / per_unit,
        };
        MeasureDocument {
            metric: measured.metric,
            unit,
            per_unit,
            from: measured.from / per_unit,
            to: measured.to / per_unit,
            change: (measured.to - measured.from) / per_unit,
            parts: parts.collect(),
            interactions: measured.together.iter().map(pair).collect(),
        }
    }
}
