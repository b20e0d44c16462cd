//! One dump in the numbers that sums need.

use crate::act::Report;
use crate::act::verdict::Judgement;
use crate::state::State;
use crate::whatif::{Change, predict};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use slablab_report::visible;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// What machines are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The kernel's release, as 6.12.
    #[default]
    Release,
    /// The number of CPUs.
    Cpus,
    /// The architecture.
    Arch,
    /// The folder that the dump is in.
    Folder,
}

/// The names of caches of all dumps, once each.
#[derive(Debug, Default)]
pub struct Names(Mutex<(FxHashMap<String, u32>, Vec<String>)>);

impl Names {
    pub(super) fn id(&self, name: &str) -> u32 {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = names.0.get(name) {
            return *id;
        }
        let id = names.1.len() as u32;
        names.0.insert(name.into(), id);
        names.1.push(name.into());
        id
    }

    /// The names by their numbers.
    pub fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

/// Bytes that a change saves on a machine; below 0 it takes memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// At least, of likely outcomes.
    pub low: i64,
    /// Predicted.
    pub likely: i64,
    /// At most.
    pub high: i64,
}

/// A dump.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Its path.
    pub path: PathBuf,
    /// The host's name; without one, the path.
    pub name: String,
    /// What it is grouped by.
    pub group: String,
    /// Bytes of memory; 0 if that is not known.
    pub memory: u64,
    /// Bytes of slabs.
    pub slabs: u64,
    /// Bytes of slabs that no shrinker frees.
    pub unreclaimable: u64,
    /// Bytes of slabs that are not objects in use.
    pub loss: i64,
    /// What the doctor says of it.
    pub judgement: Judgement,
    /// When it was taken, in seconds since 1970.
    pub taken_s: Option<u64>,
    /// Bytes of its caches, by the number of their names, each once, and whether the kernel frees them.
    pub caches: Vec<(u32, u64, bool)>,
    /// What each change saves; `None` where it is not predicted.
    pub saved: Vec<Option<Saved>>,
}

impl Machine {
    /// The sums of a dump that was examined.
    pub(super) fn of(report: &Report, by: By, changes: &[Change], names: &Names) -> Machine {
        let measured = &report.measured;
        let state = measured.state;
        let mut caches: Vec<(u32, u64, bool)> = Vec::new();
        for line in measured.lines.iter().filter(|line| line.split.bytes > 0) {
            caches.push((names.id(&line.cache.name), line.split.bytes, line.reclaim.by_kernel()));
        }
        caches.sort_unstable_by_key(|cache| cache.0);
        // Several caches of one name are one here.
        caches.dedup_by(|next, first| {
            let same = next.0 == first.0;
            first.1 = first.1.saturating_add(if same { next.1 } else { 0 });
            same
        });
        let counted = measured.meminfo.as_ref().and_then(|meminfo| meminfo.unreclaimable);
        let of_lines = || caches.iter().filter(|cache| !cache.2).map(|cache| cache.1).sum();
        let path = visible::path(&state.path).to_string();
        Machine {
            name: state.dump.host.clone().unwrap_or(path),
            group: group(state, by),
            memory: measured.meminfo.as_ref().and_then(|meminfo| meminfo.total).unwrap_or(0),
            slabs: measured.all_bytes(),
            unreclaimable: counted.unwrap_or_else(of_lines),
            loss: measured.total.loss(),
            judgement: report.verdict.judgement,
            taken_s: state.taken_s,
            saved: changes.iter().map(|change| saves(state, change)).collect(),
            path: state.path.clone(),
            caches,
        }
    }

    /// Gives the names of caches other numbers: `numbers` has them by today's.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        self.caches.retain(|cache| (cache.0 as usize) < numbers.len());
        self.caches.iter_mut().for_each(|cache| cache.0 = numbers[cache.0 as usize]);
        self.caches.sort_unstable_by_key(|cache| cache.0);
    }

    /// A cache's bytes, and whether the kernel frees them; `None` if it has none.
    pub(super) fn cache(&self, id: u32) -> Option<(u64, bool)> {
        let at = self.caches.binary_search_by_key(&id, |cache| cache.0).ok()?;
        Some((self.caches[at].1, self.caches[at].2))
    }
}

fn group(state: &State, by: By) -> String {
    let unknown = || "unknown".to_string();
    match by {
        By::Release => {
            state.release.map_or_else(unknown, |release| format!("{}.{}", release.major, release.minor))
        }
        By::Cpus => state.cpus.map_or_else(unknown, |cpus| format!("{} CPUs", cpus.online)),
        By::Arch => state.dump.arch.clone().unwrap_or_else(unknown),
        By::Folder => {
            let folder = state.path.parent().and_then(|folder| folder.file_name());
            folder.map_or_else(|| ".".into(), |name| name.to_string_lossy().into_owned())
        }
    }
}

/// What a change saves; `None` if the dump does not tell what the rules need, or the change is not predicted.
fn saves(state: &State, change: &Change) -> Option<Saved> {
    let prediction = predict(state, change).ok().filter(|prediction| prediction.range.unknown().is_none())?;
    let less = |bytes: u64| prediction.today.bytes as i64 - bytes as i64;
    let whatif = &prediction.whatif;
    Some(Saved { low: less(whatif.high), likely: less(whatif.bytes), high: less(whatif.low) })
}
