//! How much agrees, machine by machine.

use super::judge::{Judgement, NULL_MACHINE, Verdict, judge, judge_knowing};
use super::measure::{ELAPSED, SMALL};
use super::runs::Runs;
use slablab_stats::Sample;

/// The counts of one machine. Cells of bimodal scenarios, and maps that are nearly uniform, are in none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// The machine.
    pub machine: String,
    /// Judged cells.
    pub cells: usize,
    /// Those that agree because both means are small. They say little: most are 0 beside 0.
    pub small: usize,
    /// Those that agree inside of the repeats' range or near their mean.
    pub agree: usize,
    /// Judged cells of two behaviours: all, those that differ, those that so few runs cannot
    /// decide. They are in none of the counts above.
    pub bimodal: [usize; 3],
    /// Scenarios whose outcomes, killed or not, are judged: all, and those that differ.
    pub ends: [usize; 2],
    /// Phases whose times are judged, real or modelled [`SMALL`] ms or more: all, and those whose ranges of
    /// real repeats and modelled seeds meet.
    pub times: [usize; 2],
    /// The median of modelled over real mean of these times; `None` without such a phase.
    pub time_ratio: Option<f64>,
    /// Residency maps.
    pub maps: usize,
    /// Means over the maps: the modelled runs' agreement with the real ones.
    pub agreement: f64,
    /// That of the real repeats among each other; `None` with one repeat.
    pub repeats: Option<f64>,
    /// That of the null answer "as many pages, placed at random".
    pub random: f64,
    /// That of the null answer "as the real [`NULL_MACHINE`]"; `None` without its runs.
    pub null_machine: Option<f64>,
    /// Maps in which the modelled runs agree better than pages at random.
    pub above_random: usize,
    /// Differences between the kernel's LRUs, at its machine with MGLRU.
    pub signs: usize,
    /// Those whose modelled difference has the same sign.
    pub same_signs: usize,
}

impl Tally {
    /// Cells that do not agree.
    pub fn differs(&self) -> usize {
        self.cells - self.small - self.agree
    }
}

/// The counts of each machine, by name.
pub fn tallies(judgement: &Judgement) -> Vec<Tally> {
    let mut machines: Vec<&str> = judgement.cells.iter().map(|cell| cell.place.machine.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    machines.into_iter().map(|machine| tally(judgement, machine)).collect()
}

fn tally(judgement: &Judgement, machine: &str) -> Tally {
    let judged =
        judgement.cells.iter().filter(|cell| cell.measure.is_judged && cell.place.machine == machine);
    let (counted, bimodal): (Vec<_>, Vec<_>) = judged.partition(|cell| cell.is_counted());
    let verdicts: Vec<Verdict> = counted.iter().map(|cell| cell.verdict).collect();
    let of = |wanted: &[Verdict]| verdicts.iter().filter(|verdict| wanted.contains(verdict)).count();
    let of_two = |wanted: Verdict| bimodal.iter().filter(|cell| cell.verdict == wanted).count();
    let maps = judgement.pages.iter().filter(|cell| cell.place.machine == machine && cell.is_counted());
    let maps: Vec<_> = maps.collect();
    let times = judgement.cells.iter().filter(|cell| {
        let long = cell.real.mean.max(cell.modelled.mean) >= SMALL;
        cell.measure.name == ELAPSED && cell.place.machine == machine && cell.place.is_counted() && long
    });
    let times: Vec<_> = times.collect();
    let ends = || judgement.ends.iter().filter(|outcome| outcome.machine == machine);
    let mean = |of: &dyn Fn(usize) -> Option<f64>| {
        let values: Vec<f64> = (0..maps.len()).filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let signs: Vec<_> = judgement.signs.iter().filter(|sign| sign.place.machine == machine).collect();
    Tally {
        machine: machine.to_string(),
        cells: verdicts.len(),
        small: of(&[Verdict::Small]),
        agree: of(&[Verdict::Inside, Verdict::Near]),
        bimodal: [bimodal.len(), of_two(Verdict::Differs), of_two(Verdict::Undecided)],
        ends: [ends().count(), ends().filter(|outcome| outcome.differs()).count()],
        times: [times.len(), times.iter().filter(|cell| cell.real.meets(&cell.modelled)).count()],
        time_ratio: median(times.iter().map(|cell| cell.modelled.mean / cell.real.mean.max(1.0))),
        maps: maps.len(),
        agreement: mean(&|at| Some(maps[at].agreement)).unwrap_or(0.0),
        repeats: mean(&|at| maps[at].repeats),
        random: mean(&|at| Some(maps[at].random)).unwrap_or(0.0),
        null_machine: mean(&|at| maps[at].null_machine),
        above_random: maps.iter().filter(|map| map.agreement > map.random).count(),
        signs: signs.len(),
        same_signs: signs.iter().filter(|sign| sign.is_same()).count(),
    }
}

fn median(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    Sample::new(ratios.collect::<Vec<_>>()).ok().map(|sample| sample.median())
}

/// The counts of the null answer "every machine does what [`NULL_MACHINE`] does", judged as a model.
pub fn null_tallies(real: &Runs) -> Vec<Tally> {
    tallies(&judge(real, &real.all_as(NULL_MACHINE)))
}

/// The counts of the machine itself: its first repeat is judged by the other ones. No model can be expected
/// to agree in more cells.
pub fn repeat_tallies(real: &Runs) -> Vec<Tally> {
    let (first, others) = real.split_first();
    tallies(&judge_knowing(&others, &first, real))
}
