//! Two builds at a time, iteration by iteration: the lines of the mail of February 2009.

use crate::run::results::Results;
use slablab_report::Answer;

/// The lines of each cell of `tmpfs-swap`; nothing of other workloads.
pub(super) fn builds(mut answer: Answer, results: &Results) -> Answer {
    if results.experiment.file.workload.name != "tmpfs-swap" {
        return answer;
    }
    answer =
        answer.heading("as in the mail, means over the runs; of a build elapsed, user and system seconds");
    for (at, _) in results.plain() {
        answer = answer.heading(results.name(at));
        let lines: String = (1..).map_while(|n| iteration(results, at, n)).collect();
        answer = lines.lines().fold(answer, |answer, line| answer.line(line));
    }
    answer
}

/// The lines of an iteration; `None` if it was not run.
fn iteration(results: &Results, cell: usize, n: u32) -> Option<String> {
    let sample = |name: &str| {
        let metric = results.experiment.file.workload.metrics.iter().find(|metric| metric.name == name)?;
        results.shown(cell, metric)
    };
    let mean = |name: &str| Some(sample(name)?.mean());
    let build = |build: u32| {
        let [elapsed, user, system] =
            ["build", "user", "system"].map(|part| mean(&format!("{part}{build}_{n}_ps")));
        Some(format!("build{build} {:.2} {:.2} {:.2}\n", elapsed?, user?, system?))
    };
    let tars = sample(&format!("tar_{n}"))?;
    let seen = tars.values().iter().filter(|tar| **tar > 0.0).count();
    let tar = match seen {
        0 => String::new(),
        _ => format!("tar xfj linux-2.6.28.tar.bz2 (in {seen} of {} runs)\n", tars.n()),
    };
    let total = mean(&format!("total_{n}_ps"))?;
    let each = (total / f64::from(n)).floor();
    Some(format!("{}{tar}{}{total:.0} secs for {n} iters, {each:.0} secs per iter\n", build(1)?, build(2)?))
}
