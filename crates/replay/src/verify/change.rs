//! The change between two dumps, real and predicted.
//!
//! Judged on change, not on level: most caches do not change, so that predicting nothing already looks good
//! by level. The skill is 1 - sum |predicted - real| / sum |real| over all caches, in bytes: 1 is perfect, 0
//! is no better than "nothing changes", below 0 is worse. Bytes, as another engine's slabs have another size
//! than the kernel's.

use super::guess::guesses;
use super::judged::{groups, own_balance, shares};
use super::moved::{Change, Moved, Skill, Tracing, null_skill, skill};
use super::pages::ByOrder;
use super::seeds::{Spread, judge, sentence};
use super::truth::Truth;
use super::{Compared, Dumps, SlabPages, Verified, without_page_frees};
use crate::map::{Same, same_slabs};
use crate::recorded;
use crate::replay::before::{Before, read_dump};
use crate::replay::outcome::{CacheOutcome, Outcome};
use crate::replay::{Guessed, Options, Replay, Variant, check_after, replay};
use slablab_readers::recording::{self, Moment};
use slablab_readers::slabinfo::{Slabinfo, SlabinfoRow};
use slablab_readers::slabs::Snapshot;
use slablab_report::error::{Error, Result};
use slablab_trace::{Metadata, Reader};
use std::collections::HashMap;
use std::path::Path;

/// Verifies a recording between two dumps, with the range over `seeds` draws of the start.
///
/// # Errors
/// An input that cannot be read.
pub fn verify_change(
    reader: &Reader,
    path: &Path,
    after: &Path,
    (options, seeds): (&Options, u64),
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(Verified, Replay)> {
    let Some(before) = &options.before else {
        return Err(Error::new(path, "verify needs the state before the recording: --before"));
    };
    without_page_frees(options, path)?;
    let missing = || Error::new(&before.path, "has no proc/slabinfo");
    let start = before.slabinfo.clone().ok_or_else(missing)?;
    expect_release(reader.metadata(), options, path)?;
    let (_, dump) = read_dump(after, Moment::After)?;
    let unsuited = check_after(reader.metadata(), options, path, (after, &dump))?;
    let end = match recorded::slabinfo(after, recording::END)? {
        Some(end) => end,
        None => dump.slabinfo.ok_or_else(|| Error::new(after, "has no proc/slabinfo"))?,
    };
    let (start, end) = match &before.snapshots {
        Some(snapshots) => (counted(&start, &snapshots.start), counted(&end, &snapshots.end)),
        None => (start, end),
    };
    let mut replay = replay(reader, path, options, progress)?;
    replay.warnings.splice(0..0, unsuited);
    let mut changes = changes(&replay, before, &start, &end);
    let skill = skill(&changes);
    let page_size = replay.outcomes[0].page_size;
    let balance = own_balance(&changes, page_size);
    let pages = SlabPages::of((reader, path), &replay.outcomes[0], balance, before.snapshots.as_ref())?;
    let truth = |snapshots| Truth::of(&replay.outcomes[0], snapshots, &mut changes);
    let mut truth = before.snapshots.as_ref().map(truth);
    if let Some(truth) = &mut truth {
        truth.start_guessed = guesses(&Guessed::of(reader, path, options)?, before);
    }
    let variant = Variant::from(replay.outcomes[0].engine());
    let same = same_slabs((reader, path), options, &variant, &|_| ())?;
    let spreads = match seeds {
        0 | 1 => Vec::new(),
        _ => {
            let draw = |replay: Replay| -> Result<Draw> {
                let changes = self::changes(&replay, before, &start, &end);
                Ok(Draw::of(self::skill(&changes), pages.as_ref(), &replay.outcomes[0]))
            };
            let mut draws = vec![Draw::of(skill, pages.as_ref(), &replay.outcomes[0])];
            draws.extend(judge(reader, (path, None), (options, seeds), progress, &draw)?);
            Draw::spreads(&draws, pages.as_ref())
        }
    };
    let (groups, balance) = (groups(&changes), null_skill(&changes));
    let mut summary = summary(&changes, skill, &replay);
    summary.splice(0..0, pages.as_ref().map(SlabPages::sentence));
    if !spreads.is_empty() {
        summary.insert(usize::from(pages.is_some()) + 1, sentence(&spreads));
    }
    summary.extend(truth.iter().flat_map(Truth::sentences));
    summary.extend(same.as_ref().map(Same::sentence));
    summary.extend(shares(&groups, before.snapshots.is_some()));
    summary.push("the recording's page frees are predicted: they do not set the start".into());
    changes.retain(|change| change.real != Moved::default() || change.predicted != Moved::default());
    changes.sort_by_key(|change| {
        let least_first = (change.error_bytes(), change.real.slab_bytes.abs());
        (std::cmp::Reverse(least_first), change.name.clone())
    });
    let dumps = Dumps { balance, groups, pages, spreads, same, truth };
    let compared = Compared::Changes(changes, skill, Box::new(dumps));
    Ok((Verified { compared, summary }, replay))
}

/// What one draw of the start makes.
struct Draw {
    skill: Skill,
    /// Slabs taken and returned.
    slabs: (u64, u64),
    /// By how many percent the pages are off.
    off: Option<f64>,
}

impl Draw {
    fn of(skill: Skill, pages: Option<&SlabPages>, outcome: &Outcome) -> Draw {
        let predicted = outcome.slabs_by_order();
        let off = pages.map(|pages| SlabPages { predicted, ..*pages }.error_percent());
        Draw { skill, slabs: both(&predicted), off }
    }

    fn spreads(draws: &[Draw], pages: Option<&SlabPages>) -> Vec<Spread> {
        let of = |name, real, get: fn(&Draw) -> f64| Spread::new(name, real, draws.iter().map(get).collect());
        let mut spreads = vec![
            of("skill_slab_bytes", None, |draw| draw.skill.slabs),
            of("skill_active_bytes", None, |draw| draw.skill.objects),
        ];
        if let Some(pages) = pages {
            let real = both(&pages.real);
            spreads.push(of("slabs_taken", Some(real.0), |draw| draw.slabs.0 as f64));
            spreads.push(of("slabs_returned", Some(real.1), |draw| draw.slabs.1 as f64));
            spreads.push(of("error_percent", None, |draw| draw.off.unwrap_or(0.0)));
        }
        spreads
    }
}

/// Slabs of all orders, taken and returned.
fn both(orders: &ByOrder) -> (u64, u64) {
    orders.iter().fold((0, 0), |sum, order| (sum.0 + order.0, sum.1 + order.1))
}

/// Refuses to compare with a kernel that is not known: the newest would be judged by the deeds of another.
fn expect_release(metadata: &Metadata, options: &Options, path: &Path) -> Result<()> {
    let dump = options.before.as_ref().and_then(|before| before.dump.as_ref());
    let told = metadata.release.is_some() || dump.is_some_and(|dump| dump.release.is_some());
    if told || options.release.is_some() || options.force {
        return Ok(());
    }
    let what = "neither the recording nor the dump says which kernel ran: expected --release, as in --release \
                6.18; --force takes the newest";
    Err(Error::new(path, what))
}

/// The rows of a /proc/slabinfo with the slabs that were read just after it.
fn counted(slabinfo: &Slabinfo, snapshot: &Snapshot) -> Slabinfo {
    let mut counted = slabinfo.clone();
    for row in &mut counted.rows {
        if let Some(cache) = snapshot.only(&row.name).filter(|_| row.ordinal == 0) {
            row.num_slabs = cache.slabs.len() as u64;
            row.num_objs = cache.objects();
            row.active_objs = cache.active();
        }
    }
    counted
}

fn changes(replay: &Replay, before: &Before, start: &Slabinfo, end: &Slabinfo) -> Vec<Change> {
    let outcome = &replay.outcomes[0];
    let mut outcomes: HashMap<&str, &CacheOutcome> = HashMap::new();
    for cache in &outcome.caches {
        for name in std::iter::once(&cache.name).chain(&cache.aliases) {
            outcomes.insert(name, cache);
        }
    }
    let page_size = outcome.page_size;
    let ends: HashMap<(&str, u32), &SlabinfoRow> =
        end.rows.iter().map(|row| ((row.name.as_str(), row.ordinal), row)).collect();
    let change = |row: &SlabinfoRow| {
        let after = ends.get(&(row.name.as_str(), row.ordinal))?;
        let directory = before.find(&row.name).map(|(_, cache)| cache.name.as_str());
        let cache = directory.and_then(|name| outcomes.get(name)).or_else(|| outcomes.get(row.name.as_str()));
        let cache = cache.filter(|_| row.ordinal == 0).copied();
        let slabs = after.num_slabs as i64 - row.num_slabs as i64;
        let slab_bytes = row.pagesperslab * page_size;
        let real = Moved {
            slabs,
            slab_bytes: slabs * slab_bytes as i64,
            active: after.active_objs as i64 - row.active_objs as i64,
        };
        let predicted = cache.map_or(Moved::default(), |cache| Moved::of(cache, page_size));
        Some(Change {
            name: row.name.clone(),
            start: (row.num_slabs, row.active_objs),
            real,
            predicted,
            balance: Moved::balance(cache, row, slab_bytes),
            tracing: Tracing::of(cache.map(|cache| &cache.traffic)),
            bytes: (slab_bytes, row.objsize),
            cause: cause(cache, row, real, predicted),
        })
    };
    start.rows.iter().filter_map(change).collect()
}

/// What the recording says about a difference.
fn cause(outcome: Option<&CacheOutcome>, row: &SlabinfoRow, real: Moved, predicted: Moved) -> String {
    let Some(cache) = outcome else {
        return "no event of this cache is in the recording".into();
    };
    let traffic = &cache.traffic;
    let assumed = traffic.assumed_percent();
    if assumed > 1.0 {
        return format!("{assumed:.0} % of its events are untraced (bulk, RCU)");
    }
    let (objects, kernels) = (cache.geometry.objects as u64, row.objperslab);
    if objects != kernels {
        return format!("slabs of {objects} objects, the kernel's hold {kernels}");
    }
    if cache.start.slabs != row.num_slabs {
        return format!("{} slabs at the start, {} planned", row.num_slabs, cache.start.slabs);
    }
    let net = traffic.allocs as i64 - traffic.frees as i64;
    if (real.active - net).abs() > (real.slabs.abs() + 8) * row.objperslab as i64 {
        return format!("the recording's balance is {net:+} objects");
    }
    if real.slab_bytes == predicted.slab_bytes {
        "parked objects: which slabs were partial is not known"
    } else {
        "the start's partial slabs are not known one by one"
    }
    .into()
}

fn summary(changes: &[Change], skill: Skill, replay: &Replay) -> Vec<String> {
    let kib = |of: fn(&Change) -> i64| changes.iter().map(of).sum::<i64>() / 1024;
    let level = |change: &Change| (change.start.0 * change.bytes.0) as i64 + change.real.slab_bytes;
    let held = changes.iter().filter(|change| level(change) > 0);
    let mut errors: Vec<f64> =
        held.map(|change| 100.0 * change.error_bytes() as f64 / level(change) as f64).collect();
    errors.sort_by(f64::total_cmp);
    let null = null_skill(changes);
    let exact = changes.iter().filter(|change| change.error_bytes() == 0).count();
    vec![
        format!(
            "{}: skill {:.3} in bytes of slabs, {:.3} in bytes of active objects (1 is perfect; \"nothing \
             changes\" has 0, the recording's own balance in whole slabs {:.3} and {:.3})",
            replay.outcomes[0].engine(),
            skill.slabs,
            skill.objects,
            null.slabs,
            null.objects
        ),
        "active objects are those that the kernel counts: live ones, and free ones that are parked at CPUs; so \
         they also change when objects are parked"
            .to_string(),
        format!(
            "slab memory changed by {:+} K, predicted {:+} K; slabs exact in {exact} of {} caches",
            kib(|change| change.real.slab_bytes),
            kib(|change| change.predicted.slab_bytes),
            changes.len()
        ),
        format!(
            "by level, the median error over caches with slabs is {:.1} %",
            errors.get(errors.len() / 2).copied().unwrap_or(0.0)
        ),
    ]
}
