//! The slab map: where every object of one cache is, row of a trace by row, under one engine or several.
//!
//! ```text
//! slab_map      the engines, one after another
//!    └─ watched   a world around the model that tells where free objects are
//!       ├─ watcher   the places, and what each row of the trace changes
//!       └─ identity  which slab serves each allocation, beside the kernel's (`same_slabs`)
//! ```
//!
//! An engine is not changed for it and knows nothing of it. The result is a [`Movie`] for each engine.

mod identity;
pub(crate) mod watched;
mod watcher;

use crate::replay::outcome::{CacheOutcome, Outcome};
use crate::replay::{Options, Prepared, Replay, Variant};
pub use identity::Same;
use identity::{Identity, Real};
use slablab_model::Model;
use slablab_report::error::{Error, Result};
use slablab_report::html::movie::{Cast, Movie};
use slablab_slabs::Preset;
use slablab_slabs::wrap::Hardened;
use slablab_trace::Reader;
use std::path::Path;
use watched::{Watched, identifying, watching};
use watcher::Watcher;

/// The words of a slab map.
pub const CAST: Cast = Cast {
    row: ["slab", "slabs"],
    states: &[
        "no slab",
        "never handed out",
        "free in its slab",
        "on a CPU's list",
        "in a CPU's sheaf or array",
        "in another sheaf or array",
        "live",
    ],
    live: watcher::LIVE,
    kinds: &[
        (watcher::ALLOC, "allocation"),
        (watcher::FREED, "free"),
        (watcher::REMOTE, "of an object of another CPU"),
        (watcher::TAKEN, "slab taken"),
        (watcher::RETURNED, "slab returned"),
    ],
    jumps: &[
        (watcher::TAKEN, "slab taken"),
        (watcher::RETURNED, "slab returned"),
        (watcher::REMOTE, "free on another CPU"),
        (watcher::ALLOC, "allocation"),
        (watcher::FREED, "free"),
    ],
    other: "upkeep",
};

/// Engines side by side at most.
const ENGINES_MAX: usize = 4;

/// The movies of one cache.
#[derive(Clone, Debug)]
pub struct SlabMap {
    /// The cache.
    pub cache: String,
    /// One for each engine.
    pub movies: Vec<Movie>,
    /// When the recording starts.
    pub start_ns: u64,
    /// What of the map is not what it seems.
    pub remarks: Vec<String>,
}

/// The map of the cache called `cache`, or of the cache with most slabs, under the engines of `answer`, which
/// is of the same recording and options.
///
/// # Errors
/// No such cache; an engine whose slabs are no cache's own; more engines than a page shows, or more events.
pub fn slab_map(
    (reader, path): (&Reader, &Path),
    options: &Options,
    answer: &Replay,
    cache: Option<&str>,
    progress: &dyn Fn(u64, u64),
) -> Result<SlabMap> {
    let fail = |what: String| Error::new(path, what);
    let shown = engines(options, answer).map_err(fail)?;
    let name = match cache {
        Some(name) => name.to_owned(),
        None => largest(shown[0]).ok_or_else(|| fail("no cache has a slab".into()))?.name.clone(),
    };
    let prepared = Prepared::new(reader, path, options)?;
    let whole = reader.rows() * shown.len() as u64;
    let mut remarks = Vec::new();
    let mut movies = Vec::new();
    for (turn, outcome) in shown.iter().enumerate() {
        let of_name = |found: &&CacheOutcome| found.name == name || found.aliases.contains(&name);
        let found = outcome.caches.iter().find(of_name);
        let found = found.ok_or_else(|| fail(format!("{}: no cache is called {name}", outcome.engine())))?;
        let bytes = (outcome.page_size << found.geometry.order) / u64::from(found.geometry.size);
        let variant = Variant::from(outcome.engine());
        let before = reader.rows() * turn as u64;
        let done = std::cell::Cell::new(before);
        let tick = |rows: u64| {
            done.set(done.get() + rows);
            progress(done.get(), whole);
        };
        let watcher = Watcher::new(found.index as u32, bytes as u32);
        let (ran, mut watcher) = watching(watcher, || match variant.wrap.encoded {
            false => prepared.run_in::<Watched<Model>>(&variant, &tick),
            true => prepared.run_in::<Watched<Hardened<Model>>>(&variant, &tick),
        });
        ran?;
        watcher.end_event();
        if watcher.overflowed {
            return Err(fail(format!(
                "{name} has more than {} changes under {}: too many for a page; choose another cache with \
                 --cache",
                watcher::CHANGES_MAX,
                outcome.engine()
            )));
        }
        if matches!(outcome.preset, Preset::Slqb(_)) {
            remarks.push("slqb: objects in queues for other CPUs are shown as free in their slabs".into());
        }
        let title = format!("{name}, {}", outcome.engine());
        movies.push(watcher.movie(title));
    }
    Ok(SlabMap { cache: name, movies, start_ns: answer.metadata.statistics.first_time_ns, remarks })
}

/// How many allocations of a recording the kernel's own engine serves from the real slab, and how many of the
/// slabs that the kernel emptied it empties; `None` if the recording's addresses do not tell slabs.
///
/// # Errors
/// As a replay of the recording.
pub fn same_slabs(
    (reader, path): (&Reader, &Path),
    options: &Options,
    variant: &Variant,
    progress: &dyn Fn(u64),
) -> Result<Option<Same>> {
    let prepared = Prepared::new(reader, path, options)?;
    let Some(real) = Real::of(&prepared)? else { return Ok(None) };
    let (ran, identity) = identifying(Identity::new(real), || match variant.wrap.encoded {
        false => prepared.run_in::<Watched<Model>>(variant, progress),
        true => prepared.run_in::<Watched<Hardened<Model>>>(variant, progress),
    });
    ran?;
    Ok(Some(identity.found()))
}

/// The engines to show: those asked for; else the recording kernel's and the newest of the same family.
fn engines<'a>(options: &Options, answer: &'a Replay) -> std::result::Result<Vec<&'a Outcome>, String> {
    let shares_pages = |outcome: &&Outcome| matches!(outcome.preset, Preset::Slob(_));
    if options.engines.is_empty() {
        let (first, last) = (answer.outcomes.first(), answer.outcomes.last());
        let mut shown: Vec<&Outcome> = first.into_iter().chain(last).filter(|it| !shares_pages(it)).collect();
        shown.dedup_by_key(|outcome| outcome.preset);
        return Ok(shown);
    }
    if let Some(slob) = answer.outcomes.iter().find(shares_pages) {
        return Err(format!(
            "{}: its slabs are of no cache of their own; expected other engines",
            slob.engine()
        ));
    }
    if answer.outcomes.len() > ENGINES_MAX {
        return Err(format!(
            "{} engines: expected at most {ENGINES_MAX} beside each other; give fewer --engine",
            answer.outcomes.len()
        ));
    }
    Ok(answer.outcomes.iter().collect())
}

fn largest(outcome: &Outcome) -> Option<&CacheOutcome> {
    outcome.caches.iter().filter(|cache| cache.end.slabs > 0).max_by_key(|cache| cache.end.slabs)
}
