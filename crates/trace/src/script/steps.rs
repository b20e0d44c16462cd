//! How long a script is, before it runs.

use super::{Command, Script, StatOrder};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Script {
    /// The steps of the script and of all processes that it spawns: accesses of pages, names that are looked
    /// up, messages, pipes, groups of pages that are punched, spawns. At most [`u64::MAX`].
    pub fn steps(&self) -> u64 {
        steps(self, &mut BTreeMap::new())
    }
}

/// `known`: the steps of scripts that were counted, by their addresses. A script that is spawned from many
/// places is counted once: scripts that spawn one another twice would take exponential time else.
fn steps(script: &Script, known: &mut BTreeMap<*const Script, u64>) -> u64 {
    let mut sum: u64 = 0;
    for line in &script.commands {
        let of = match &line.command {
            Command::Access { rounds, groups } => {
                let round = groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.count));
                round.saturating_mul(*rounds)
            }
            Command::Stat(stat) => match stat.order {
                StatOrder::Passes(passes) => {
                    let names = u64::from(stat.directories) * u64::from(stat.files);
                    names.saturating_mul(passes.into())
                }
                StatOrder::Uniform(draws) => draws,
            },
            Command::Messages { count, .. } | Command::Pipes { count, .. } => u64::from(*count),
            Command::Punch { object, group, .. } => u64::from(script.object(*object).pages / *group),
            Command::Spawn(child) => {
                let child = &script.child(*child).script;
                let of = match known.get(&Arc::as_ptr(child)) {
                    Some(of) => *of,
                    None => steps(child, known),
                };
                known.insert(Arc::as_ptr(child), of);
                of.saturating_add(1)
            }
            _ => 0,
        };
        sum = sum.saturating_add(of);
    }
    sum
}
