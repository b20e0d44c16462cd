//! A state and a change become a prediction.

use super::case::{Case, Keeping};
use super::change::Change;
use super::errors::{Class, Range, beyond};
use super::figures::{Row, Total};
use super::percpu::PerCpu;
use super::rules::Rules;
use super::sheaves::{Level, SCATTER};
use super::touch::Cpus;
use super::{arrays, assumptions, caches};
use crate::state::{Missing, State};
use slablab_report::error::Result;

/// What slabs would be like.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// What is different.
    pub change: Change,
    /// The rules that gave today's orders.
    pub rules: Rules,
    /// The rules that give those of the change.
    pub rules_whatif: Rules,
    /// Every cache, in the order of the input.
    pub rows: Vec<Row>,
    /// All caches today.
    pub today: Total,
    /// All caches with the change.
    pub whatif: Total,
    /// Where the range of `whatif` is from.
    pub range: Range,
    /// Caches whose order today is not what the rules give: what else chose it is not known, and the rules'
    /// predicted order may be wrong too.
    pub unexplained: Vec<String>,
    /// The assumptions, as sentences.
    pub assumed: Vec<String>,
}

/// Files whose absence costs a prediction nothing.
const UNUSED: [&str; 5] =
    ["/boot/config", "/proc/buddyinfo", "/proc/vmstat", "/proc/zoneinfo", "/sys/devices/system/node"];

/// What was not in the input and would have made predictions better.
pub fn missing(state: &State) -> impl Iterator<Item = &Missing> {
    state.missing.iter().filter(|missing| !UNUSED.contains(&missing.file.as_str()))
}

/// What was assumed of the input, with the options as they are called here: `--page-size` is a change, not
/// the input's.
pub fn evidence(state: &State) -> impl Iterator<Item = String> {
    state.assumed.iter().map(|text| text.replace("--page-size", "--input-page-size"))
}

/// Predicts what a change does.
///
/// # Errors
/// A state that does not tell what the rules need, or a value that no kernel takes.
pub fn predict(state: &State, change: &Change) -> Result<Prediction> {
    predict_with(state, change, &PerCpu::builtin())
}

/// [`predict`], with these tables of what kernels allocate for each CPU instead of the built-in ones.
///
/// # Errors
/// Those of [`predict`].
pub fn predict_with(state: &State, change: &Change, tables: &[PerCpu]) -> Result<Prediction> {
    let mut assumed = Vec::new();
    let case = Case::new(state, change, &mut assumed)?;
    let cpus = Cpus::new(state, case.cpus(), tables);
    let rows = caches::rows(&case, &cpus, Level::Expected);
    let unexplained = case.rules.unexplained(state);
    assumed.extend(assumptions::of(&case, &cpus, &unexplained));
    let range = range(&case, &cpus, &rows);
    Ok(Prediction {
        change: *change,
        rules: case.rules,
        rules_whatif: case.rules_whatif,
        today: Total::of(rows.iter().map(|row| &row.today), Range::Unchanged),
        whatif: Total::of(rows.iter().map(|row| &row.whatif), range),
        range,
        rows,
        unexplained,
        assumed,
    })
}

/// Where the range of the prediction is from. Boots measured predictions where CPUs hold objects in CPU
/// slabs, which the input counts, pages keep their size, and the kernel stays the same one.
fn range(case: &Case, cpus: &Cpus, rows: &[Row]) -> Range {
    if let Some(why) = arrays::unknown(case) {
        return Range::Unknown(why);
    }
    match case.kept {
        Keeping::Same if case.change.config.is_some() => return modelled(case, cpus),
        Keeping::Same => {}
        Keeping::Unknown(why) => return Range::Unknown(why),
        Keeping::Known(_) if cpus.differ() => return modelled(case, cpus).widened(measured(case).ln()),
        Keeping::Known(_) => return modelled(case, cpus),
    }
    if case.holds_otherwise().is_some() || !cpus.are_counted() || case.other_pages() {
        return Range::guess();
    }
    match rows.iter().all(|row| row.today == row.whatif) {
        true => Range::Unchanged,
        false => measured(case),
    }
}

/// The range of the predictions that boots measured.
fn measured(case: &Case) -> Range {
    let (today, then) = case.cpus();
    let class = Class::of(case.state, case.change, &case.rules_whatif);
    Range::measured(class, beyond(today, then))
}

/// The range of another release: everything parked as little, or as much, as can be, and the scatter of
/// boots.
fn modelled(case: &Case, cpus: &Cpus) -> Range {
    let bytes = |level| {
        let rows = caches::rows(case, cpus, level);
        Total::of(rows.iter().map(|row| &row.whatif), Range::Unchanged).bytes as f64
    };
    // Where the change takes sheaves away, the most of today's leaves the least.
    let [least, expected, most] = [Level::Least, Level::Expected, Level::Most].map(bytes);
    let low = least.min(expected).min(most) / (1.0 + SCATTER);
    let high = least.max(expected).max(most) * (1.0 + SCATTER);
    Range::Modelled { low: low as u64, high: high as u64 }
}
