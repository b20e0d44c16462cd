//! Modelled runs beside real ones: which counts agree, which pages are in the same state.
//!
//! Pure: two [`Runs`] go in, values come out. A cell is one measure of one phase on one machine. What is
//! judged, and the thresholds, are in docs/pressure.md; both were fixed before any modelled run was judged.

use super::measure::{LEVEL, MEASURES, Measure, SMALL};
use super::outcome::{Outcome, arrangements, ends, is_bimodal, outcome};
use super::runs::{Repeats, Run, Runs};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::vmrecord::{Residency, State};
use slablab_stats::Sample;
use slablab_stats::rank::mann_whitney;
use std::sync::Arc;

/// A modelled mean agrees if it is within this part of the real mean, in percent.
pub const PERCENT: f64 = 15.0;
/// A map says nothing if pages placed at random agree with it to this share: nearly all are in one state.
pub const UNIFORM: f64 = 0.995;
/// The machine of the second null answer.
pub const NULL_MACHINE: &str = "61-classic";
/// Seeds with which two real repeats can be told from modelled runs at [`LEVEL`]: 2 of 45 arrangements of 10
/// runs are as extreme as the two repeats beside one another at an end.
pub const SEEDS_LEAST: u64 = 8;

/// Mean and range over repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The smallest value.
    pub min: i64,
    /// The largest value.
    pub max: i64,
}

impl Spread {
    /// `None` without values.
    pub fn of(values: &[i64]) -> Option<Spread> {
        let (min, max) = (*values.iter().min()?, *values.iter().max()?);
        Some(Spread { mean: values.iter().sum::<i64>() as f64 / values.len() as f64, min, max })
    }

    fn is_small(&self) -> bool {
        self.mean.abs() < SMALL
    }

    /// Whether the values lie apart by more than their mean: runs fall into two behaviours, and a mean says
    /// nothing of either.
    pub fn is_of_two(&self) -> bool {
        !self.is_small() && (self.max - self.min) as f64 > self.mean.abs()
    }

    /// Whether their ranges have a value in common.
    pub fn meets(&self, other: &Spread) -> bool {
        self.max >= other.min && other.max >= self.min
    }

    /// Whether no value of one is in the range of the other, and the means differ by more than the thresholds
    /// under which they would agree.
    fn differs(&self, other: &Spread) -> bool {
        let apart = !self.meets(other);
        let larger = self.mean.abs().max(other.mean.abs());
        let difference = (self.mean - other.mean).abs();
        apart && difference >= SMALL && difference > larger * PERCENT / 100.0
    }
}

/// Whether a modelled mean agrees with real repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Real and modelled mean are both below [`SMALL`].
    Small,
    /// Between the smallest and the largest real value.
    Inside,
    /// Within [`PERCENT`] of the real mean.
    Near,
    /// Of two behaviours: nothing tells both distributions apart.
    Alike,
    /// Of two behaviours: with so few runs nothing could.
    Undecided,
    /// None of these.
    Differs,
}

impl Verdict {
    /// Judges `modelled` by its mean.
    pub fn of(real: &Spread, modelled: &Spread) -> Verdict {
        let mean = modelled.mean;
        if real.is_small() && modelled.is_small() {
            Verdict::Small
        } else if (real.min as f64..=real.max as f64).contains(&mean) {
            Verdict::Inside
        } else if (mean - real.mean).abs() <= real.mean.abs() * PERCENT / 100.0 {
            Verdict::Near
        } else {
            Verdict::Differs
        }
    }

    /// Judges modelled runs as a distribution: Mann and Whitney's test at [`LEVEL`]. Also its p.
    fn of_distributions(real: &[i64], modelled: &[i64]) -> Option<(Verdict, f64)> {
        let small =
            [real, modelled].map(Spread::of).into_iter().all(|spread| spread.is_some_and(|s| s.is_small()));
        let sample =
            |values: &[i64]| Sample::new(values.iter().map(|value| *value as f64).collect::<Vec<_>>()).ok();
        let p = mann_whitney(&sample(real)?, &sample(modelled)?).p;
        let verdict = match p {
            _ if small => Verdict::Small,
            _ if 2.0 / arrangements(real.len(), modelled.len()) > LEVEL => Verdict::Undecided,
            p if p <= LEVEL => Verdict::Differs,
            _ => Verdict::Alike,
        };
        Some((verdict, p))
    }

    /// Its word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Small => "small",
            Verdict::Inside => "inside",
            Verdict::Near => "near",
            Verdict::Alike => "alike",
            Verdict::Undecided => "undecided",
            Verdict::Differs => "differs",
        }
    }
}

/// Where a cell is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Place {
    /// The scenario.
    pub scenario: String,
    /// The machine: kernel and LRU.
    pub machine: String,
    /// The spawned process; empty for the script's own.
    pub process: String,
    /// The phase.
    pub phase: String,
}

impl Place {
    /// Whether the place's scenario is not known to have two behaviours.
    pub fn is_counted(&self) -> bool {
        !is_bimodal(&self.scenario, &self.machine)
    }
}

/// One measure of one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Where.
    pub place: Place,
    /// What.
    pub measure: Measure,
    /// The real repeats.
    pub real: Spread,
    /// The modelled seeds.
    pub modelled: Spread,
    /// Whether they agree; also of a measure that is not judged.
    pub verdict: Verdict,
    /// Of two behaviours: the probability of repeats and seeds that differ so much, if one distribution has
    /// both.
    pub p: Option<f64>,
    /// Null answer: the real runs of [`NULL_MACHINE`]; `None` without such runs.
    pub null_machine: Option<(Spread, Verdict)>,
}

impl Cell {
    /// Whether it is judged by its mean. If not, the scenario is known to have two behaviours, or the repeats
    /// of this count show two ([`Spread::is_of_two`]), and it is counted apart.
    pub fn is_counted(&self) -> bool {
        self.p.is_none()
    }

    /// Largest minus smallest real value, in percent of the mean; `None` if the mean is 0.
    pub fn noise(&self) -> Option<f64> {
        let range = (self.real.max - self.real.min) as f64;
        (self.real.mean != 0.0).then(|| range * 100.0 / self.real.mean.abs())
    }
}

/// The pages of one object at one phase's end. Shares of pages whose states are equal, from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PagesCell {
    /// Where.
    pub place: Place,
    /// The object.
    pub object: String,
    /// Mean over the pairs of a real and a modelled run.
    pub agreement: f64,
    /// Mean over the pairs of real repeats; `None` with one repeat.
    pub repeats: Option<f64>,
    /// First null answer: expectation for as many pages in each state as in the real run, placed at random.
    pub random: f64,
    /// Second null answer: the real runs of [`NULL_MACHINE`]; `None` without such runs.
    pub null_machine: Option<f64>,
}

impl PagesCell {
    /// Whether the map can tell a good model from a bad one.
    pub fn is_counted(&self) -> bool {
        self.place.is_counted() && self.random < UNIFORM
    }
}

/// A measure in which a kernel's two LRUs differ beyond the spread of their repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Sign {
    /// Where; the machine is the kernel's with MGLRU.
    pub place: Place,
    /// What.
    pub measure: Measure,
    /// Mean with MGLRU minus mean of the classic LRU.
    pub real: f64,
    /// The modelled difference.
    pub modelled: f64,
}

impl Sign {
    /// Whether both differences have the same sign.
    pub fn is_same(&self) -> bool {
        self.real * self.modelled > 0.0
    }
}

/// All comparisons.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Counts.
    pub cells: Vec<Cell>,
    /// Residency.
    pub pages: Vec<PagesCell>,
    /// Differences between LRUs.
    pub signs: Vec<Sign>,
    /// Outcomes of bimodal scenarios.
    pub outcomes: Vec<Outcome>,
    /// Of each scenario and machine: how many runs came to their end, and how many were killed before.
    pub ends: Vec<Outcome>,
}

/// Sets modelled runs beside real ones: every scenario and machine that both have.
pub fn judge(real: &Runs, modelled: &Runs) -> Judgement {
    judge_knowing(real, modelled, real)
}

/// The same; `all` are the repeats that say which counts have two behaviours.
pub(super) fn judge_knowing(real: &Runs, modelled: &Runs, all: &Runs) -> Judgement {
    let mut judgement = Judgement::default();
    for (scenario, machines) in &real.scenarios {
        let Some(models) = modelled.scenarios.get(scenario) else { continue };
        for (machine, repeats) in machines {
            let Some(seeds) = models.get(machine).filter(|seeds| !seeds.is_empty()) else { continue };
            let null = machines.get(NULL_MACHINE);
            let known = all.scenarios.get(scenario).and_then(|all| all.get(machine)).unwrap_or(repeats);
            for place in places(scenario, machine, repeats) {
                let sides = Sides { repeats, seeds, null, known };
                judgement.cells.extend(cells(&place, &sides));
                judgement.pages.extend(pages(&place, repeats, seeds, null));
            }
            judgement.outcomes.extend(outcome(scenario, machine, repeats, seeds));
            judgement.ends.push(ends(scenario, machine, repeats, seeds));
        }
    }
    judgement.signs = signs(&judgement.cells);
    judgement
}

/// The phases of the processes of these runs, in the order of the first run that has them.
fn places(scenario: &str, machine: &str, runs: &Repeats) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (process, record) in runs.iter().flat_map(|run| run.iter()) {
        for phase in &record.phases {
            let place = Place {
                scenario: scenario.to_string(),
                machine: machine.to_string(),
                process: process.clone(),
                phase: phase.name.clone(),
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// The values of the runs that have the phase and the measure.
fn values(measure: &Measure, place: &Place, runs: &Repeats) -> Vec<i64> {
    let value = |run: &Arc<Run>| measure.of(run.get(&place.process)?, &place.phase);
    runs.iter().filter_map(value).collect()
}

/// Whether a judged count of these repeats has two behaviours.
pub(super) fn has_two_behaviours(scenario: &str, machine: &str, repeats: &Repeats) -> bool {
    let of_two = |place: &Place, measure: &Measure| {
        Spread::of(&values(measure, place, repeats)).is_some_and(|spread| spread.is_of_two())
    };
    let judged = || MEASURES.iter().filter(|measure| measure.is_judged);
    places(scenario, machine, repeats).iter().any(|place| judged().any(|measure| of_two(place, measure)))
}

/// Runs of a scenario on a machine.
struct Sides<'a> {
    repeats: &'a Repeats,
    seeds: &'a Repeats,
    null: Option<&'a Repeats>,
    /// The repeats that say which counts have two behaviours.
    known: &'a Repeats,
}

fn cells(place: &Place, sides: &Sides<'_>) -> Vec<Cell> {
    let Sides { repeats, seeds, null, known } = *sides;
    let here = MEASURES.iter().filter(|measure| place.process.is_empty() || measure.of_process);
    let cell = |measure: &Measure| {
        let of = |runs| values(measure, place, runs);
        let (all_real, all_modelled) = (of(repeats), of(seeds));
        let (real, modelled) = (Spread::of(&all_real)?, Spread::of(&all_modelled)?);
        let of_two = Spread::of(&of(known)).is_some_and(|spread| spread.is_of_two());
        let (verdict, p) = if place.is_counted() && !of_two {
            (Verdict::of(&real, &modelled), None)
        } else {
            let (verdict, p) = Verdict::of_distributions(&all_real, &all_modelled)?;
            (verdict, Some(p))
        };
        let null = null.and_then(|null| Spread::of(&of(null)));
        let null_machine = null.map(|null| (null, Verdict::of(&real, &null)));
        Some(Cell { place: place.clone(), measure: *measure, real, modelled, verdict, p, null_machine })
    };
    here.filter_map(cell).collect()
}

/// The maps of an object in the runs that have the phase.
fn maps<'a>(place: &Place, object: &str, runs: &'a Repeats) -> Vec<&'a Residency> {
    let map = |run: &'a Arc<Run>| run.get(&place.process)?.phase(&place.phase)?.residency(object);
    runs.iter().filter_map(map).collect()
}

fn pages(place: &Place, repeats: &Repeats, seeds: &Repeats, null: Option<&Repeats>) -> Vec<PagesCell> {
    let records = repeats.iter().filter_map(|run| run.get(&place.process)?.phase(&place.phase));
    let objects = records.max_by_key(|phase| phase.residency.len()).map_or(&[][..], |phase| &phase.residency);
    let cell = |object: &str| {
        let (real, modelled) = (maps(place, object, repeats), maps(place, object, seeds));
        let null = null.map(|null| maps(place, object, null)).unwrap_or_default();
        let pairs = real
            .iter()
            .enumerate()
            .flat_map(|(at, one)| real[at + 1..].iter().map(move |other| (one, other)));
        let random = real.iter().map(|map| random_agreement(map));
        Some(PagesCell {
            place: place.clone(),
            object: object.to_string(),
            agreement: mean(real.iter().flat_map(|one| modelled.iter().map(move |other| share(one, other))))?,
            repeats: mean(pairs.map(|(one, other)| share(one, other))),
            random: mean(random)?,
            null_machine: mean(real.iter().flat_map(|one| null.iter().map(move |other| share(one, other)))),
        })
    };
    objects.iter().filter_map(|object| cell(&object.name)).collect()
}

/// The share of pages that are in the same state; a page that one map alone has is in none.
fn share(one: &Residency, other: &Residency) -> f64 {
    f64::from(one.agreement(other)) / f64::from(one.pages().max(other.pages()).max(1))
}

/// The expected share of equal pages if as many pages of each state are placed at random: the sum of the
/// squares of the states' shares.
fn random_agreement(map: &Residency) -> f64 {
    let shares = State::ALL.map(|state| f64::from(map.count(state)) / f64::from(map.pages().max(1)));
    shares.iter().map(|share| share * share).sum()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The judged cells of kernels with MGLRU that differ from those of their classic LRU.
fn signs(cells: &[Cell]) -> Vec<Sign> {
    let judged = cells.iter().filter(|cell| cell.measure.is_judged && cell.place.is_counted());
    let sign = |cell: &Cell| {
        let kernel = cell.place.machine.strip_suffix("-mglru")?;
        let place = Place { machine: format!("{kernel}-classic"), ..cell.place.clone() };
        let classic = cells.iter().find(|other| other.measure == cell.measure && other.place == place)?;
        let differs = cell.real.differs(&classic.real);
        differs.then(|| Sign {
            place: cell.place.clone(),
            measure: cell.measure,
            real: cell.real.mean - classic.real.mean,
            modelled: cell.modelled.mean - classic.modelled.mean,
        })
    };
    judged.filter_map(sign).collect()
}
