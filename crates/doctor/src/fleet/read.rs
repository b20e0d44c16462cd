//! Reads dumps side by side, and keeps the sums of each.

use super::machine::{By, Machine, Names};
use crate::examine::examine;
use crate::measure::Options;
use crate::state::{Input, read as read_state};
use crate::whatif::Change;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use slablab_report::error::Error;
use slablab_report::visible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A dump that could not be read, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Its path.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// Machines, each with its newest dump.
#[derive(Debug, Default)]
pub struct Fleet {
    /// The machines, in the order of the dumps.
    pub machines: Vec<Machine>,
    /// Earlier dumps by the index of their machine, oldest first.
    pub earlier: FxHashMap<usize, Vec<Machine>>,
    /// The names of caches by number.
    pub names: Vec<String>,
    /// The changes whose savings are known.
    pub changes: Vec<Change>,
    /// What could not be read, or not to its end: then its beginning is among the machines, too.
    pub unread: Vec<Unread>,
}

/// Dumps that one process read, for another process to join with those of others ([`whole`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The names of caches by number.
    names: Vec<String>,
    /// The dumps in their order: a machine, and what could not be read of it; or nothing but that.
    read: Vec<Result<(Machine, Option<Unread>), Unread>>,
}

/// Reads dumps. `progress` hears how many of how many are done, on the thread that read one. The answer does
/// not depend on which thread reads what.
pub fn read(paths: &[PathBuf], by: By, changes: &[Change], progress: &(dyn Fn(u64, u64) + Sync)) -> Fleet {
    whole(vec![part(paths, by, changes, progress)], changes)
}

/// Reads a part of the dumps of a fleet: [`read`] is all of them in one part.
pub fn part(paths: &[PathBuf], by: By, changes: &[Change], progress: &(dyn Fn(u64, u64) + Sync)) -> Part {
    let (names, done, all) = (Names::default(), AtomicU64::new(0), paths.len() as u64);
    let one = |path: &PathBuf| {
        let read = machine(path, by, changes, &names);
        progress(done.fetch_add(1, Relaxed) + 1, all);
        read
    };
    let read = paths.par_iter().map(one).collect();
    Part { names: names.list(), read }
}

/// Joins the parts of a fleet, in the order of the dumps. The answer does not depend on where dumps are cut
/// into parts.
pub fn whole(parts: Vec<Part>, changes: &[Change]) -> Fleet {
    let names = Names::default();
    let mut fleet = Fleet { changes: changes.to_vec(), ..Fleet::default() };
    let mut dumps: Vec<Vec<Machine>> = Vec::new();
    let mut at: FxHashMap<String, usize> = FxHashMap::default();
    for Part { names: of_part, read } in parts {
        let numbers: Vec<u32> = of_part.iter().map(|name| names.id(name)).collect();
        for machine in read {
            match machine {
                Ok((mut machine, rest)) => {
                    machine.renumber(&numbers);
                    fleet.unread.extend(rest);
                    let index = *at.entry(machine.name.clone()).or_insert(dumps.len());
                    dumps.resize_with(dumps.len().max(index + 1), Vec::new);
                    dumps[index].push(machine);
                }
                Err(unread) => fleet.unread.push(unread),
            }
        }
    }
    for (index, mut of_machine) in dumps.into_iter().enumerate() {
        of_machine.sort_by_key(|machine| machine.taken_s);
        fleet.machines.extend(of_machine.pop());
        if !of_machine.is_empty() {
            fleet.earlier.insert(index, of_machine);
        }
    }
    fleet.names = names.list();
    fleet
}

fn machine(
    path: &Path,
    by: By,
    changes: &[Change],
    names: &Names,
) -> Result<(Machine, Option<Unread>), Unread> {
    let unread = |error: Error| Unread { path: path.to_path_buf(), why: error.to_string() };
    let state = read_state(&Input { path: Some(path.to_path_buf()), ..Input::default() }).map_err(unread)?;
    let report = examine(&state, &Options::default()).map_err(unread)?;
    let cut_off = || format!("{}: cut off; sums have what comes before", visible::path(path));
    let rest = state.is_cut_off().then(|| Unread { path: path.to_path_buf(), why: cut_off() });
    Ok((Machine::of(&report, by, changes, names), rest))
}
