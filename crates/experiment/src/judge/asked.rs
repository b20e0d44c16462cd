//! Everything that an experiment's published figures ask of its draws: relations, pairs of engines, orders.

use crate::judge::draws::{self, Question};
use crate::judge::{merit, pairs, verdict};
use crate::run::results::Results;
use std::collections::BTreeMap;

/// The drawn cells that need more draws, and how many in all.
pub fn wanted(results: &Results) -> BTreeMap<usize, u32> {
    let relations = results.experiment.file.expect.iter();
    let of = |expect| verdict::questions(results, expect, verdict::band(results, expect));
    let mut asked: Vec<Question> = relations.flat_map(of).collect();
    asked.extend(pairs::questions(results));
    asked.extend(merit::questions(results));
    draws::wanted(results, &asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::verdict::judge;
    use crate::plan::Cell;
    use crate::workload::{Runs, Sample};
    use crate::{Change, Experiment, Plan, Sign};
    use slablab_model::Costs;
    use slablab_sim::programs::draws::Draws as Stream;
    use std::path::Path;

    const TEXT: &str = r#"name = "made-up"
title = "a cell that is arithmetic"
machines = ["laptop"]
engines = ["slub@6.18", "slub@7.1"]
workload = "micro"
repeats = 10
[[published]]
cell = { engine = "slub@6.18" }
value = 1
n = 10
unit = "ns"
source = "s"
[[published]]
cell = { engine = "slub@7.1" }
value = 1
n = 10
unit = "ns"
source = "s"
[[expect]]
name = "one"
base = { engine = "slub@6.18" }
other = { engine = "slub@7.1" }
sign = "higher"
"#;

    /// The time of an operation on a machine with these costs: the second engine waits more for the second
    /// level and less for memory.
    fn time(costs: &Costs, engine: usize, shift: f64) -> f64 {
        let (memory, l2) = (costs.memory[0].1 as f64, costs.l2 as f64);
        match engine {
            0 => 2.0 * memory + 10.0 * l2,
            _ => (memory + 40.0 * l2) * shift.exp(),
        }
    }

    /// A number that the seed alone moves: normal, with this standard deviation.
    fn scattered(time: f64, sd: f64, seed: u64) -> f64 {
        let mut stream = Stream(seed);
        let mut uniform = || (stream.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        time * (sd * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0)).exp()
    }

    struct Tally {
        inside: usize,
        told: usize,
        right: usize,
        draws: usize,
    }

    /// Made-up machines, whose true costs are drawn from the priors: how often the interval holds the ratio
    /// that is measured there, and how often a sign that 95 % of the draws have is the measured one. `sd` is
    /// what the seed does; `apart` how far the two engines may be from each other.
    fn made_up(trials: u64, sd: f64, apart: f64) -> Tally {
        let file = crate::ExperimentFile::parse(TEXT).unwrap_or_else(|bad| panic!("{}", bad.what));
        let found = Experiment::find(Path::new("micro")).expect("an installed experiment");
        let laptop = slablab_machines::find(Path::new("laptop")).expect("an installed machine");
        let mut machines = found.machines.clone();
        machines.truncate(1);
        machines[0].machine = laptop.machine().expect("a whole machine");
        let experiment = Experiment { file, machines, ..found };
        let metric = experiment.file.workload.metrics[experiment.file.metric].name;
        let given = &experiment.machines[0].machine.priced.costs;
        let middle = (time(given, 1, 0.0) / time(given, 0, 0.0)).ln();
        let mut tally = Tally { inside: 0, told: 0, right: 0, draws: 0 };
        for trial in 0..trials {
            let plan = |seed: u64| {
                let change = Change { draws: Some(64), seed: Some(seed), ..Change::default() };
                Plan::new(&experiment, &change).expect("a plan")
            };
            let (truth, plan) = (plan(1_000_000 + trial), plan(trial));
            let shift = scattered(1.0, apart, trial ^ 0x5eed).ln() - middle;
            let number = |plan: &Plan, cell: &Cell, run: u32, seed: u64| {
                let costs = plan.setup(&experiment, cell, run).hardware.costs;
                scattered(time(&costs, cell.engine, shift), sd, seed)
            };
            // What somebody measured on the true machine, over 10 runs of each engine.
            let measured = |engine: usize| {
                let cell =
                    truth.cells.iter().find(|cell| cell.drawn && cell.engine == engine).expect("it is drawn");
                let seed = |run: u64| Stream(trial * 64 + run * 2 + engine as u64).draw() ^ 0xfeed;
                (0..10).map(|run| number(&truth, cell, 0, seed(run))).sum::<f64>() / 10.0
            };
            let published = measured(1) / measured(0);
            let run = |cell: usize, run: u32| {
                let of = &plan.cells[cell];
                let seed = plan.seed_of(run) ^ of.engine as u64;
                let number = number(&plan, of, run, seed) * 1e3;
                Ok(Sample { metrics: [(metric.to_string(), number as u64)].into(), ..Sample::default() })
            };
            let runs_of =
                |cell: usize, n: u32| -> Option<Runs> { Some((0..n).map(|at| run(cell, at)).collect()) };
            let runs =
                (0..plan.cells.len()).map(|cell| runs_of(cell, plan.runs(&plan.cells[cell]))).collect();
            let mut results = Results::of_runs(experiment.clone(), plan.clone(), runs, "p".into());
            loop {
                let wanted = wanted(&results);
                if wanted.is_empty() {
                    break;
                }
                for (cell, n) in wanted {
                    results.runs[cell] = runs_of(cell, n);
                }
            }
            let judged = judge(&results).remove(0).compared.remove(0);
            let drawn = judged.drawn.as_ref().expect("draws");
            tally.draws += drawn.n;
            tally.inside += usize::from(judged.outside_percent(published) == Some(0.0));
            if let Some(sign) = drawn.sign.filter(|sign| *sign != Sign::Nothing) {
                tally.told += 1;
                tally.right += usize::from(sign == Sign::of_ratio(published));
            }
        }
        tally
    }

    /// The 95 % of a verdict are 95 %.
    #[test]
    fn verdicts_hold_as_often_as_they_say() {
        let check = |sd: f64, apart: f64| {
            let trials = 1000;
            let Tally { inside, told, right, draws } = made_up(trials, sd, apart);
            let held = inside as f64 / trials as f64;
            println!("{sd} {apart}: inside {held}, told {told}, right {right}, draws {draws}");
            // A thousand trials of a true 95 % are within 1.4 % in 95 of 100 cases.
            assert!((0.936..=0.964).contains(&held), "{sd} {apart}: {held}");
            assert!(told > 100 && right as f64 >= 0.95 * told as f64, "{sd} {apart}: {right} of {told}");
            assert!(draws < 64 * trials as usize, "{sd} {apart}: clear rows stop early: {draws}");
        };
        check(0.0, 0.2);
        check(0.02, 0.2);
        check(0.1, 0.3);
    }
}
