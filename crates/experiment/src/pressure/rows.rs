//! Counters by phase, modelled beside real.

use super::run::Run;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::vmrecord::{Phase, Record};

/// Counters that are printed: the process's own, then those of /proc/vmstat, in this order.
const COUNTERS: [&str; 20] = [
    "pswpin",
    "pswpout",
    "pgpgin",
    "pgpgout",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_anon",
    "pgsteal_file",
    "pgactivate",
    "pgdeactivate",
    "pgrefill",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "slabs_scanned",
    "allocstall",
    "pageoutrun",
];

/// A number of a phase: of one run for each seed, and of the real kernel.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The process; empty for the main one.
    pub process: String,
    /// The phase.
    pub phase: String,
    /// The counter's name; `resident OBJECT`, `agreement OBJECT` for maps.
    pub counter: String,
    /// The modelled numbers, one for each seed.
    pub modelled: Vec<i64>,
    /// The real kernel's number; null without its record.
    pub real: Option<i64>,
}

impl Row {
    /// The middle of the modelled numbers.
    pub fn middle(&self) -> i64 {
        let mut sorted = self.modelled.clone();
        sorted.sort_unstable();
        sorted[sorted.len() / 2]
    }

    /// Modelled over real, in thousandths.
    pub fn ratio(&self) -> Option<i64> {
        let real = self.real.filter(|real| *real != 0)?;
        Some(self.middle() * 1_000 / real)
    }
}

/// The numbers of runs of one script, beside real records by process.
pub fn rows(runs: &[&Run], real: &[(String, Record)]) -> Vec<Row> {
    let Some(first) = runs.first() else { return Vec::new() };
    let mut rows = Vec::new();
    for (at, (process, record)) in first.records.iter().enumerate() {
        let beside = real.iter().find(|(name, _)| name == process).map(|(_, record)| record);
        for (place, phase) in record.phases.iter().enumerate() {
            let phases: Vec<&Phase> =
                runs.iter().filter_map(|run| run.records.get(at)?.1.phases.get(place)).collect();
            let beside = beside.and_then(|record| record.phase(&phase.name));
            let of = Of { process, phase: &phase.name, phases: &phases, beside };
            of.rows(&mut rows);
        }
    }
    rows
}

/// A phase of all runs.
struct Of<'a> {
    process: &'a str,
    phase: &'a str,
    phases: &'a [&'a Phase],
    beside: Option<&'a Phase>,
}

impl Of<'_> {
    fn add(&self, rows: &mut Vec<Row>, counter: String, of: impl Fn(&Phase) -> i64) {
        let modelled: Vec<i64> = self.phases.iter().map(|phase| of(phase)).collect();
        let real = self.beside.map(&of);
        if modelled.iter().chain(&real).any(|value| *value != 0) {
            let (process, phase) = (self.process.to_string(), self.phase.to_string());
            rows.push(Row { process, phase, counter, modelled, real });
        }
    }

    fn rows(&self, rows: &mut Vec<Row>) {
        self.add(rows, "minflt".into(), |phase| phase.rusage.minflt);
        self.add(rows, "majflt".into(), |phase| phase.rusage.majflt);
        self.add(rows, "inblock".into(), |phase| phase.rusage.inblock);
        for counter in COUNTERS {
            // The kernel counts some by zone or by migrate type.
            self.add(rows, counter.into(), |phase| delta(phase, counter));
        }
        self.add(rows, "ms".into(), |phase| (phase.elapsed_ns / 1_000_000) as i64);
        for disk in ["vda", "swap"] {
            self.add(rows, format!("{disk} reads"), |phase| phase.disk(disk).map_or(0, |disk| disk.reads()));
            self.add(rows, format!("{disk} writes"), |phase| {
                phase.disk(disk).map_or(0, |disk| disk.writes())
            });
        }
        let objects = self.phases.first().map_or(&[][..], |phase| &phase.residency);
        for object in objects {
            let name = &object.name;
            let present = |phase: &Phase| {
                let pages = phase.residency(name);
                pages.map_or(0, |pages| i64::from(pages.count(slablab_readers::vmrecord::State::Present)))
            };
            self.add(rows, format!("present {name}"), present);
            let Some(real) = self.beside.and_then(|phase| phase.residency(name)) else { continue };
            // Thousandths of the pages that are where the real kernel has them.
            let agreement = |phase: &Phase| {
                let pages = phase.residency(name);
                let same = pages.map_or(0, |pages| u64::from(pages.agreement(real)));
                (same * 1_000 / u64::from(real.pages()).max(1)) as i64
            };
            let modelled = self.phases.iter().map(|phase| agreement(phase)).collect();
            let (process, phase) = (self.process.to_string(), self.phase.to_string());
            rows.push(Row {
                process,
                phase,
                counter: format!("agreement {name}"),
                modelled,
                real: Some(1_000),
            });
        }
    }
}

fn delta(phase: &Phase, counter: &str) -> i64 {
    let matches = |name: &str| name == counter || counter == "allocstall" && name.starts_with("allocstall_");
    phase.vmstat.iter().filter(|of| matches(&of.name)).map(|of| of.delta).sum()
}
