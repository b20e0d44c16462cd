//! The start as it is guessed of recordings without snapshots, beside what the snapshot says: the snapshots
//! of a recording are labels of the occupancy model (docs/theory/occupancy.md).
//!
//! Two errors, both in objects in use of a slab:
//!
//! - *By distribution*: the slabs of a cache, guessed and real, each sorted by their objects in use; the
//!   mean difference. Which slab is how full does not count.
//! - *By address*: of slabs of which the recording sees frees and no allocation, so that nothing but the
//!   model says how full they were.
//!
//! Beside them stands the guess of no model: each partial slab is as full as the dump's mean.

use crate::replay::Guessed;
use crate::replay::before::Before;
use crate::replay::plan::{PlannedSlab, Start};
use crate::replay::survey::{CacheSurvey, SlabSurvey};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::slabs::{CacheSlabs, SlabState, Snapshot};
use std::cmp::Reverse;

/// Caches that the sentence names.
const NAMED: usize = 3;

/// How far the guessed start of one cache is off.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Guess {
    /// The cache.
    pub cache: String,
    /// Objects of a slab.
    pub objects_per_slab: u64,
    /// Slabs that were read.
    pub slabs: u64,
    /// Slabs that are guessed.
    pub slabs_guessed: u64,
    /// Mean error of a slab's objects in use, slabs sorted by them.
    pub error_objects: f64,
    /// The same, if each partial slab is as full as their mean.
    pub error_objects_mean: f64,
    /// Slabs of which only frees are seen, and that were read.
    pub slabs_freed: u64,
    /// Mean error of the objects in use of those, by address.
    pub error_objects_freed: f64,
    /// The same, if each is full.
    pub error_objects_freed_full: f64,
}

/// The guess of each cache that the recording has and whose slabs were read, the largest error first.
pub(super) fn guesses(guessed: &Guessed, before: &Before) -> Vec<Guess> {
    let Guessed { table, survey, plan } = guessed;
    let caches = table.entries.iter().zip(plan.caches.iter().zip(&survey.caches));
    let guesses = caches.filter_map(|(entry, planned)| {
        Guess::of((&entry.name, entry.objects.into()), planned, before.slabs_of(entry.names())?)
    });
    let mut guesses: Vec<Guess> = guesses.collect();
    guesses.sort_by(|one, other| other.sum().total_cmp(&one.sum()).then_with(|| one.cache.cmp(&other.cache)));
    guesses
}

/// The sentence with the sums.
pub(super) fn sentence(guesses: &[Guess]) -> Option<String> {
    let slabs: u64 = guesses.iter().map(|guess| guess.slabs).sum();
    let freed: u64 = guesses.iter().map(|guess| guess.slabs_freed).sum();
    let percent = |of: fn(&Guess) -> f64, weight: fn(&Guess) -> u64| {
        let sum = |each: &dyn Fn(&Guess) -> f64| guesses.iter().map(each).sum::<f64>();
        let parts = sum(&|guess| weight(guess) as f64 * of(guess) / guess.objects_per_slab.max(1) as f64);
        100.0 * parts / sum(&|guess| weight(guess) as f64).max(1.0)
    };
    let all = |of| percent(of, |guess| guess.slabs);
    let by_address = |of| percent(of, |guess| guess.slabs_freed);
    let mut worst: Vec<&Guess> = guesses.iter().filter(|guess| guess.slabs_freed > 0).collect();
    worst.sort_by_key(|guess| Reverse((guess.slabs_freed as f64 * guess.error_objects_freed) as u64));
    let named: Vec<String> = worst
        .iter()
        .take(NAMED)
        .map(|guess| {
            let Guess { cache, error_objects_freed, objects_per_slab, slabs_freed, .. } = guess;
            format!("{cache} {error_objects_freed:.1} of {objects_per_slab} in {slabs_freed}")
        })
        .collect();
    (slabs > 0).then(|| {
        format!(
            "without the snapshots the start would be guessed: of {} caches with {slabs} slabs a slab's objects \
             in use are off by {:.2} % of a slab ({:.2} % if each partial one were as full as the mean); of \
             {freed} slabs of which only frees are seen, by address, by {:.1} % ({:.1} % if each were full){}{}",
            guesses.len(),
            all(|guess| guess.error_objects),
            all(|guess| guess.error_objects_mean),
            by_address(|guess| guess.error_objects_freed),
            by_address(|guess| guess.error_objects_freed_full),
            if named.is_empty() { "" } else { ": " },
            named.join(", ")
        )
    })
}

/// Objects of a slab that are not free in it.
fn in_use(slab: &SlabState) -> u64 {
    (u64::from(slab.objects)).saturating_sub(slab.free.len() as u64)
}

fn in_use_planned(slab: &PlannedSlab) -> u64 {
    slab.objects.iter().filter(|start| !matches!(start, Start::Free(_))).count() as u64
}

/// Whether frees of it are seen, and no allocation of an object that was free: then the model says how many
/// of the others were.
fn is_drawn(slab: &PlannedSlab, seen: &CacheSurvey) -> bool {
    let gave = |slab: &SlabSurvey| !slab.free.is_empty();
    seen.slabs.get(&slab.address).is_some_and(|seen| !gave(seen))
        && slab.objects.iter().any(|start| matches!(start, Start::Old(_)))
}

/// Mean difference of two lists, each sorted, the shorter one stretched.
fn apart(mut real: Vec<u64>, mut guessed: Vec<u64>) -> f64 {
    if real.is_empty() || guessed.is_empty() {
        return 0.0;
    }
    real.sort_unstable();
    guessed.sort_unstable();
    let of = |at: usize| guessed[at * guessed.len() / real.len()];
    let sum: u64 = real.iter().enumerate().map(|(at, real)| real.abs_diff(of(at))).sum();
    sum as f64 / real.len() as f64
}

impl Guess {
    fn of(
        (cache, objects): (&str, u64),
        (planned, seen): (&Vec<PlannedSlab>, &CacheSurvey),
        (snapshot, read): (&Snapshot, &CacheSlabs),
    ) -> Option<Guess> {
        // A slab that fell back to a lower order has fewer objects than the plan knows.
        let usual = || read.slabs.iter().filter(|slab| u64::from(slab.objects) == objects);
        let real: Vec<u64> = usual().map(in_use).collect();
        let guessed: Vec<u64> = planned.iter().map(in_use_planned).collect();
        if real.is_empty() || guessed.is_empty() {
            return None;
        }
        let partial: Vec<u64> = real.iter().copied().filter(|used| *used < objects).collect();
        let mean = partial.iter().sum::<u64>() / (partial.len() as u64).max(1);
        let flat = real.iter().map(|used| if *used < objects { mean } else { *used }).collect();
        let by_address: FxHashMap<u64, u64> =
            usual().map(|slab| (snapshot.address(slab), in_use(slab))).collect();
        let drawn: Vec<(u64, u64)> = planned
            .iter()
            .filter(|slab| is_drawn(slab, seen))
            .filter_map(|slab| Some((in_use_planned(slab), *by_address.get(&slab.address)?)))
            .collect();
        let off = |guess: &dyn Fn(u64) -> u64| {
            let sum: u64 = drawn.iter().map(|(guessed, real)| guess(*guessed).abs_diff(*real)).sum();
            sum as f64 / drawn.len().max(1) as f64
        };
        Some(Guess {
            cache: cache.into(),
            objects_per_slab: objects,
            slabs: real.len() as u64,
            slabs_guessed: guessed.len() as u64,
            slabs_freed: drawn.len() as u64,
            error_objects_freed: off(&|guessed| guessed),
            error_objects_freed_full: off(&|_| objects),
            error_objects_mean: apart(real.clone(), flat),
            error_objects: apart(real, guessed),
        })
    }

    /// Objects by which all slabs of the cache are off.
    fn sum(&self) -> f64 {
        self.slabs as f64 * self.error_objects
    }
}
