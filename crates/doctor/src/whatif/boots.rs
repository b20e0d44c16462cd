//! Errors of predictions, from dumps of boots of the same kernels.
//!
//! Every dump of a kernel predicts every other one in the same state. Nothing that the prediction uses comes
//! from the machine that is predicted: what kernels allocate for each CPU is derived anew, without the dumps
//! of that machine (its architecture and number of CPUs).

use super::against::Against;
use super::change::Change;
use super::errors::{Class, LogError, half_width, is_loaded};
use super::percpu::{Kernel, PerCpu};
use super::predict::predict_with;
use super::rules::Rules;
use super::{layout, merge, reach, touch};
use crate::state::State;
use slablab_report::error::Result;
use std::collections::HashSet;

/// A dump with its name.
pub struct Boot {
    /// A name, unique among the dumps.
    pub name: String,
    /// The dump.
    pub state: State,
}

/// One prediction, compared with the boot that had the change.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The dump that predicts.
    pub from: String,
    /// The dump that is predicted.
    pub to: String,
    /// What was asked.
    pub change: Change,
    /// The class of the prediction.
    pub class: Class,
    /// Whether fewer CPUs were asked for.
    pub fewer: bool,
    /// Architecture and CPUs of the predicted machine.
    pub machine: String,
    /// Bytes of slabs, predicted.
    pub predicted: u64,
    /// Bytes of slabs of the boot.
    pub real: u64,
    /// The caches that are off, by name: bytes too many.
    pub caches: Vec<(String, i64)>,
}

impl Comparison {
    /// The natural logarithm of real over predicted bytes.
    pub fn ln(&self) -> f64 {
        (self.real.max(1) as f64 / self.predicted.max(1) as f64).ln()
    }

    /// What a range needs of it.
    fn as_error(&self) -> LogError {
        LogError { class: self.class, machine: self.machine.clone(), ln: self.ln() }
    }

    /// A row of [`errors::COLUMNS`](super::errors::COLUMNS).
    pub fn row(&self) -> [String; 10] {
        let Class { question, large, loaded, far } = self.class;
        let word = |yes: bool| String::from(if yes { "yes" } else { "no" });
        [
            self.from.clone(),
            self.to.clone(),
            self.machine.clone(),
            self.change.to_string(),
            question.name().into(),
            word(large),
            word(loaded),
            word(far),
            self.predicted.to_string(),
            self.real.to_string(),
        ]
    }

    /// The error as a part of the real bytes; positive if the prediction is too high.
    pub fn error(&self) -> f64 {
        self.predicted as f64 / self.real.max(1) as f64 - 1.0
    }
}

/// All predictions that these dumps allow, in the order of the dumps, from the tables of all other machines.
///
/// # Errors
/// A dump that does not tell what the rules need.
pub fn measure(boots: &[Boot]) -> Result<Vec<Comparison>> {
    measure_with(boots, |state| without(&machine(state), boots))
}

/// All predictions that these dumps allow, in the order of the dumps, from the tables given for a dump that
/// is predicted: the same ones for each machine.
///
/// # Errors
/// A dump that does not tell what the rules need.
pub fn measure_with(boots: &[Boot], tables_of: impl Fn(&State) -> Vec<PerCpu>) -> Result<Vec<Comparison>> {
    let mut measured = Vec::new();
    let mut tables: Vec<((String, Kernel), Vec<PerCpu>)> = Vec::new();
    for to in boots {
        let machine = machine(&to.state);
        let key = (machine.clone(), Kernel::of(&to.state));
        if tables.iter().all(|(known, _)| *known != key) {
            tables.push((key.clone(), tables_of(&to.state)));
        }
        let Some((_, tables)) = tables.iter().find(|(known, _)| *known == key) else { continue };
        for from in boots.iter().filter(|from| from.name != to.name) {
            let Some(change) = question(&from.state, &to.state)? else { continue };
            let prediction = predict_with(&from.state, &change, tables)?;
            let caches = Against::new(&prediction, &to.state).off;
            measured.push(Comparison {
                caches,
                from: from.name.clone(),
                to: to.name.clone(),
                class: Class::of(&from.state, &change, &prediction.rules_whatif),
                fewer: prediction.rules_whatif.cpus.online < prediction.rules.cpus.online,
                machine: machine.clone(),
                predicted: prediction.whatif.bytes,
                real: to.state.bytes(),
                change,
            });
        }
    }
    Ok(measured)
}

/// Architecture and CPUs: boots of one machine share them.
pub fn machine(state: &State) -> String {
    let arch = state.dump.arch.as_deref().unwrap_or("unknown");
    format!("{arch}-{}", state.cpus.map_or(0, |cpus| cpus.online))
}

/// What kernels allocate for each CPU, from the dumps just after boot of all other machines; and how lists of
/// partial slabs follow CPUs, from the dumps after a load.
pub fn without(machine: &str, boots: &[Boot]) -> Vec<PerCpu> {
    let others = boots.iter().map(|boot| &boot.state).filter(|state| self::machine(state) != machine);
    let (loaded, mut booted) = others.partition::<Vec<&State>, _>(|state| is_loaded(state));
    let mut tables = Vec::new();
    while let Some(first) = booted.first().copied() {
        let own = |state: &&State| Kernel::of(state) == Kernel::of(first);
        let (same, rest) = booted.iter().partition::<Vec<&State>, _>(|state| own(state));
        let loaded: Vec<&State> = loaded.iter().copied().filter(own).collect();
        let table = PerCpu::of(&same).or_else(|_| PerCpu::of_one_size(&same));
        tables.extend(table.and_then(|table| table.with_lists(&loaded)).ok());
        booted = rest;
    }
    tables
}

/// [`reach::twice`] of all pairs of boots of one machine in one state.
pub fn touched_twice(boots: &[Boot]) -> Vec<(f64, f64)> {
    let key = |boot: &Boot| (machine(&boot.state), Kernel::of(&boot.state), is_loaded(&boot.state));
    let mut twice = Vec::new();
    for one in boots {
        let cpus = one.state.cpus.map_or(0, |cpus| cpus.online);
        for other in boots.iter().filter(|other| other.name != one.name && key(one) == key(other)) {
            twice.extend(reach::twice(cpus, &touch::touched(&one.state), &touch::touched(&other.state)));
        }
    }
    twice
}

/// What to ask of one dump to predict the other; `None` for other kernels, or another state.
fn question(from: &State, to: &State) -> Result<Option<Change>> {
    let same = from.dump.release == to.dump.release
        && from.dump.arch == to.dump.arch
        && names(from).symmetric_difference(&names(to)).count() * 10 <= from.caches.len();
    let states = (is_loaded(from), is_loaded(to));
    if !same || from.page_size != to.page_size || states.0 != states.1 {
        return Ok(None);
    }
    let (before, after) = (Rules::of(from, &mut Vec::new())?, Rules::of(to, &mut Vec::new())?);
    let differ = |before: u32, after: u32| (before != after).then_some(after);
    let (debug, debug_then) = (layout::of_most(from), layout::of_most(to));
    let debug = (debug != debug_then).then_some(debug_then);
    let (merged, merged_then) = (merge::is_on(from), merge::is_on(to));
    // Debugging turns merging off by itself.
    let merges = merged != merged_then && !debug_then.prevents_merging();
    let order = differ(before.max_order.into(), after.max_order.into());
    Ok(Some(Change {
        cpus: differ(before.cpus.online, after.cpus.online),
        max_order: order.map(|_| after.max_order),
        merge: merges.then_some(merged_then),
        debug,
        ..Change::default()
    }))
}

/// The names of all caches, those of merged ones included. Loaded modules have caches of their own: dumps
/// with more than a tenth of other names are not boots of one machine.
fn names(state: &State) -> HashSet<&str> {
    let aliases = state.caches.iter().flat_map(|cache| cache.aliases.iter().map(String::as_str));
    state.caches.iter().map(|cache| cache.name.as_str()).chain(aliases).collect()
}

/// What the errors of one list of predictions amount to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Predictions.
    pub count: usize,
    /// The median of the absolute errors, as a part of the real bytes.
    pub median: f64,
    /// The largest error, with its sign.
    pub worst: f64,
    /// The mean error: positive if predictions are too high.
    pub bias: f64,
    /// The part of the boots that lie in the range of the prediction, each range from the errors on other
    /// machines.
    pub coverage: f64,
    /// The mean half width of these ranges, as a part of the prediction.
    pub width: f64,
}

/// Sums up those of `measured` that are `wanted`. Each prediction's range comes from `measured` without the
/// predictions of the same machine.
pub fn summary(measured: &[Comparison], wanted: impl Fn(&Comparison) -> bool) -> Summary {
    let errors: Vec<LogError> = measured.iter().map(Comparison::as_error).collect();
    let chosen: Vec<&Comparison> = measured.iter().filter(|one| wanted(one)).collect();
    let mut sizes: Vec<f64> = chosen.iter().map(|one| one.error().abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let count = chosen.len();
    let mean = |sum: f64| sum / count.max(1) as f64;
    let signed = chosen.iter().map(|one| one.error());
    let ranges = chosen.iter().map(|one| {
        let ln = half_width(errors.iter().filter(|other| other.machine != one.machine), one.class);
        (one.ln().abs() <= ln, ln.exp_m1())
    });
    let ranges: Vec<(bool, f64)> = ranges.collect();
    Summary {
        count,
        median: sizes.get(count / 2).copied().unwrap_or(0.0),
        worst: signed.clone().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0),
        bias: mean(signed.sum()),
        coverage: mean(ranges.iter().filter(|(inside, _)| *inside).count() as f64),
        width: mean(ranges.iter().map(|(_, width)| width).sum()),
    }
}
