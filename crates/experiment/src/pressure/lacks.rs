//! What records of real kernels lack: their end, or phases that the script has.

use super::outcome::has_ends;
use super::runs::{Repeats, Runs};
use std::collections::BTreeSet;

/// A line for each scenario and machine of `real` with a record that has no end, unless that is the outcome
/// which is judged, and for each with phases that no modelled run of the same process has.
pub fn lacks(real: &Runs, modelled: &Runs) -> Vec<String> {
    let mut lines = Vec::new();
    for (scenario, machines) in &real.scenarios {
        for (machine, repeats) in machines {
            let cut = repeats.iter().flat_map(|run| run.values()).filter(|of| !of.is_complete).count();
            if cut > 0 && !has_ends(scenario) {
                lines.push(format!(
                    "{scenario} {machine}: {cut} of its records have no @end: the process was killed, or the file \
                     is cut; the phases that are there are judged"
                ));
            }
            let models = modelled.scenarios.get(scenario).and_then(|models| models.get(machine));
            let unknown = models.map(|models| unknown(repeats, models)).unwrap_or_default();
            if !unknown.is_empty() {
                let names = unknown.into_iter().collect::<Vec<_>>().join(", ");
                lines.push(format!(
                    "{scenario} {machine}: the records have phases that the script has not: {names}"
                ));
            }
        }
    }
    lines
}

/// The phases of records that no modelled run has, if all of those came to their end.
fn unknown<'a>(repeats: &'a Repeats, models: &Repeats) -> BTreeSet<&'a str> {
    let whole = models.iter().all(|run| run.values().all(|record| record.is_complete));
    let is_modelled = |process: &str, phase: &str| {
        models.iter().any(|run| run.get(process).is_some_and(|record| record.phase(phase).is_some()))
    };
    let of_run = repeats.iter().filter(|_| whole).flat_map(|run| run.iter());
    let phases = of_run.flat_map(|(process, record)| record.phases.iter().map(move |of| (process, &of.name)));
    phases.filter(|(process, phase)| !is_modelled(process, phase)).map(|(_, phase)| phase.as_str()).collect()
}
