//! The answers.

mod document;
mod hackbench;
mod tables;

pub use hackbench::hackbench_answer;

use crate::costs::{Basis, Cost, Value, costs, digits, doubts};
use crate::rig::{Calibration, Noise};
use document::CalibrationDocument;
use slablab_report::Answer;
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::text::counted;
use std::fmt;

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        write!(
            f,
            "Load average {:.1} before and {:.1} after; other programs used {} of the CPUs, the hypervisor {}; \
             {} of the blocks took over 1.5 times their median.",
            self.load[0],
            self.load[1],
            percent(self.others),
            percent(self.stolen),
            percent(self.disturbed)
        )
    }
}

/// The answer of `calibrate`. Its CSV has a row for each cost of a machine file.
pub fn calibration_answer(run: &Calibration) -> Answer {
    let host = &run.host;
    let costs = costs(host, &run.samples);
    let guest = if host.virtual_machine { " (a virtual machine)" } else { "" };
    let (cpus, nodes) = (host.cpus.len() as u64, host.nodes.len() as u64);
    let has = format!("{}, {}", counted(cpus, "CPU"), counted(nodes, "node"));
    let answer = Answer::new("What this host's parts cost", sentence(&costs))
        .warnings(doubts(host, &run.samples))
        .document(&CalibrationDocument::new(run))
        .rows(tables::columns().frame(&costs))
        .line(format!("{}, {has}, Linux {}{guest}", host.model, host.kernel))
        .facts([
            ("CPU", Cell::Text(host.model.clone())),
            ("CPUs", Cell::Count(cpus)),
            ("Nodes", Cell::Count(nodes)),
            ("Kernel", Cell::Text(host.kernel.clone())),
        ])
        .page_table("The costs of a machine file.", tables::costs_page(&costs));
    let all = std::iter::once(tables::costs(&costs))
        .chain(tables::pairs(run))
        .chain([tables::messages(run), tables::measured(run)]);
    all.fold(answer, |answer, table| answer.table(table, &tables::LEFT_OUT))
        .remarks([format!("{} in {:.0} s. {}", counted(run.rounds as u64, "round"), run.seconds, run.noise)])
        .remarks(run.notes.iter().cloned())
}

/// The schemas of these answers.
pub fn schemas() -> Vec<Named> {
    vec![named::<CalibrationDocument>(), hackbench::schema()]
}

/// How many costs were measured, and those that readers know best.
fn sentence(costs: &[Cost]) -> String {
    let count = |is: fn(&Basis) -> bool| costs.iter().filter(|cost| is(&cost.basis)).count();
    let measured = count(|basis| *basis == Basis::Measured);
    let assumed = count(|basis| matches!(basis, Basis::Assumed(_)));
    let read = costs.len() - measured - assumed;
    let ns = |name: &str, words: &str| {
        let cost = costs.iter().find(|cost| cost.name == name && cost.basis == Basis::Measured)?;
        match cost.value {
            Value::Ns(ns) => Some(format!("{words} takes {} ns", digits(ns))),
            _ => None,
        }
    };
    let known =
        [("memory", "memory"), ("transfer_llc", "a line of another CPU"), ("syscall", "a system call")];
    let known: Vec<String> = known.into_iter().filter_map(|(name, words)| ns(name, words)).collect();
    let known = if known.is_empty() { String::new() } else { format!(": {}", known.join(", ")) };
    format!(
        "Of {} costs of a machine file {measured} were measured here, {read} were read and {assumed} are \
         assumed{known}.",
        costs.len()
    )
}
