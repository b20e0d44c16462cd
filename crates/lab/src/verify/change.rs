//! The change between two dumps, real and predicted.
//!
//! Judged on change, not on level: most caches do not change, so that predicting nothing already looks good by level. The
//! skill is 1 - sum |predicted - real| / sum |real| over all caches, in bytes: 1 is perfect, 0 is no better than "nothing
//! changes", below 0 is worse.

use super::{Compared, Verified};
use crate::error::{At, Error, Result};
use crate::replay::before::{Before, dump_of_tar};
use crate::replay::outcome::CacheOutcome;
use crate::replay::{Options, Replay, replay};
use crate::state::folder;
use serde_json::json;
use slablab_kernel::slabinfo::{Slabinfo, SlabinfoRow};
use slablab_workloads::Reader;
use std::collections::HashMap;
use std::path::Path;

/// One cache's change.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// Slabs and active objects at the start.
    pub start: (u64, u64),
    /// Real change of slabs and of active objects.
    pub real: (i64, i64),
    /// Predicted change of slabs and of active objects.
    pub predicted: (i64, i64),
    /// Bytes of a slab and of an object.
    pub bytes: (u64, u64),
    /// Why the two differ, as far as the recording tells.
    pub cause: String,
}

/// Skill in bytes of slabs and of active objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skill {
    /// Over slab bytes.
    pub slabs: f64,
    /// Over active objects' bytes.
    pub objects: f64,
}

/// Verifies a recording between two dumps.
///
/// # Errors
/// An input that cannot be read.
pub fn verify_change(
    reader: &Reader,
    path: &Path,
    after: &Path,
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(Verified, Replay)> {
    let Some(before) = &options.before else {
        return Err(Error::new(path, "verify needs the state before the recording: --before"));
    };
    let start = slabinfo(&before.path)?;
    let end = slabinfo(after)?;
    let replay = replay(reader, path, options, progress)?;
    let page_size = 1u64 << replay.machine.spec.page_shift;
    let mut changes = changes(&replay, before, &start, &end, page_size);
    let skill = skill(&changes);
    let summary = summary(&changes, skill, &replay);
    changes.retain(|change| change.real != (0, 0) || change.predicted != (0, 0));
    changes.sort_by_key(|change| {
        (std::cmp::Reverse(change.error_bytes()), std::cmp::Reverse(change.real.0.abs()), change.name.clone())
    });
    let header = ["cache", "slabs", "real", "predicted", "active", "real", "predicted", "error K", "why"];
    let signed = |n: i64| format!("{n:+}");
    let row = |change: &Change| {
        vec![
            change.name.clone(),
            change.start.0.to_string(),
            signed(change.real.0),
            signed(change.predicted.0),
            change.start.1.to_string(),
            signed(change.real.1),
            signed(change.predicted.1),
            (change.error_bytes() / 1024).to_string(),
            if change.real == change.predicted { String::new() } else { change.cause.clone() },
        ]
    };
    let verified = Verified {
        header: header.map(String::from).to_vec(),
        rows: changes.iter().map(row).collect(),
        summary,
        json: json!({
            "schema": "slablab.verify.1",
            "engine": replay.outcomes[0].engine().to_string(),
            "skill_slab_bytes": skill.slabs,
            "skill_active_bytes": skill.objects,
            "caches": changes.iter().map(|change| json!({
                "cache": change.name,
                "slabs_start": change.start.0,
                "slabs_change_real": change.real.0,
                "slabs_change_predicted": change.predicted.0,
                "active_start": change.start.1,
                "active_change_real": change.real.1,
                "active_change_predicted": change.predicted.1,
                "error_bytes": change.error_bytes(),
                "why": change.cause,
            })).collect::<Vec<_>>(),
        }),
        compared: Compared::Changes(changes, skill),
    };
    Ok((verified, replay))
}

/// /proc/slabinfo of a dump, whatever form the dump has.
fn slabinfo(path: &Path) -> Result<Slabinfo> {
    let missing = || Error::new(path, "has no proc/slabinfo");
    if path.is_dir() {
        return folder::read(path)?.slabinfo.ok_or_else(missing);
    }
    let bytes = std::fs::read(path).at(path)?;
    if bytes.starts_with(b"slabinfo") {
        return Slabinfo::parse(&bytes).at(path);
    }
    if bytes.starts_with(b"name,active_objs") {
        return Slabinfo::parse_csv(&bytes).at(path);
    }
    dump_of_tar(path, &bytes)?.slabinfo.ok_or_else(missing)
}

fn changes(
    replay: &Replay,
    before: &Before,
    start: &Slabinfo,
    end: &Slabinfo,
    page_size: u64,
) -> Vec<Change> {
    let mut outcomes: HashMap<&str, &CacheOutcome> = HashMap::new();
    for cache in &replay.outcomes[0].caches {
        for name in std::iter::once(&cache.name).chain(&cache.aliases) {
            outcomes.insert(name, cache);
        }
    }
    let ends: HashMap<(&str, u32), &SlabinfoRow> =
        end.rows.iter().map(|row| ((row.name.as_str(), row.ordinal), row)).collect();
    let change = |row: &SlabinfoRow| {
        let after = ends.get(&(row.name.as_str(), row.ordinal))?;
        let directory = before.find(&row.name).map(|(_, cache)| cache.name.as_str());
        let outcome =
            directory.and_then(|name| outcomes.get(name)).or_else(|| outcomes.get(row.name.as_str()));
        let outcome = outcome.filter(|_| row.ordinal == 0);
        let real = (
            after.num_slabs as i64 - row.num_slabs as i64,
            after.active_objs as i64 - row.active_objs as i64,
        );
        let predicted = outcome.map_or((0, 0), |cache| {
            (
                cache.end.slabs as i64 - cache.start.slabs as i64,
                cache.end.active_objects() as i64 - cache.start.active_objects() as i64,
            )
        });
        Some(Change {
            name: row.name.clone(),
            start: (row.num_slabs, row.active_objs),
            real,
            predicted,
            bytes: (row.pagesperslab * page_size, row.objsize),
            cause: cause(outcome.copied(), row, real, predicted),
        })
    };
    start.rows.iter().filter_map(change).collect()
}

/// What the recording says about a difference.
fn cause(
    outcome: Option<&CacheOutcome>,
    row: &SlabinfoRow,
    real: (i64, i64),
    predicted: (i64, i64),
) -> String {
    let Some(cache) = outcome else {
        return "no event of this cache is in the recording".into();
    };
    let traffic = &cache.traffic;
    let assumed = traffic.assumed_percent();
    if assumed > 1.0 {
        return format!("{assumed:.0} % of its events are untraced (bulk, RCU)");
    }
    if cache.start.slabs != row.num_slabs {
        return format!("{} slabs at the start, {} planned", row.num_slabs, cache.start.slabs);
    }
    let net = traffic.allocs as i64 - traffic.frees as i64;
    if (real.1 - net).abs() > (real.0.abs() + 8) * row.objperslab as i64 {
        return format!("the recording's balance is {net:+} objects");
    }
    if real.0 == predicted.0 {
        "parked objects: which slabs were partial is not known"
    } else {
        "the start's partial slabs are not known one by one"
    }
    .into()
}

impl Change {
    /// Bytes of slabs by which the prediction is wrong.
    pub fn error_bytes(&self) -> u64 {
        (self.predicted.0 - self.real.0).unsigned_abs() * self.bytes.0
    }
}

/// The skill over caches.
pub fn skill(changes: &[Change]) -> Skill {
    let ratio = |of: fn(&Change) -> (i64, i64, u64)| {
        let (mut wrong, mut all) = (0.0, 0.0);
        for (real, predicted, bytes) in changes.iter().map(of) {
            wrong += ((predicted - real).unsigned_abs() * bytes) as f64;
            all += (real.unsigned_abs() * bytes) as f64;
        }
        if all == 0.0 { if wrong == 0.0 { 1.0 } else { f64::NEG_INFINITY } } else { 1.0 - wrong / all }
    };
    Skill {
        slabs: ratio(|change| (change.real.0, change.predicted.0, change.bytes.0)),
        objects: ratio(|change| (change.real.1, change.predicted.1, change.bytes.1)),
    }
}

fn summary(changes: &[Change], skill: Skill, replay: &Replay) -> Vec<String> {
    let kib = |of: fn(&Change) -> i64| {
        changes.iter().map(|change| of(change) * change.bytes.0 as i64).sum::<i64>() / 1024
    };
    let mut errors: Vec<f64> = changes
        .iter()
        .filter(|change| change.start.0 as i64 + change.real.0 > 0)
        .map(|change| {
            let real = change.start.0 as i64 + change.real.0;
            100.0 * (change.predicted.0 - change.real.0).abs() as f64 / real as f64
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    let exact = changes.iter().filter(|change| change.real.0 == change.predicted.0).count();
    vec![
        format!(
            "{}: skill {:.3} in bytes of slabs, {:.3} in bytes of active objects (1 is perfect; predicting no change is 0)",
            replay.outcomes[0].engine(),
            skill.slabs,
            skill.objects
        ),
        format!(
            "slab memory changed by {:+} K, predicted {:+} K; slabs exact in {exact} of {} caches",
            kib(|change| change.real.0),
            kib(|change| change.predicted.0),
            changes.len()
        ),
        format!(
            "by level, the median error over caches with slabs is {:.1} %",
            errors.get(errors.len() / 2).copied().unwrap_or(0.0)
        ),
    ]
}
