//! What two snapshots of every slab add to a verification: how much had no event, and levels beside changes.

use super::Both;
use super::guess::{Guess, sentence};
use super::moved::{Change, Tracing};
use crate::recorded::Snapshots;
use crate::replay::outcome::{CacheOutcome, Outcome, Traffic};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::slabs::{CacheSlabs, Snapshot};

/// Caches that are named in a sentence, at most.
const NAMED: usize = 3;

/// What had no event, and levels at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Truth {
    /// Objects by which caches changed without an event, the most bytes first.
    pub untraced: Vec<Untraced>,
    /// Slabs at the end.
    pub slabs: Both,
    /// Slabs on nodes' lists at the end.
    pub listed_slabs: Both,
    /// Free objects of those.
    pub listed_free_objects: Both,
    /// Caches whose number of slabs on nodes' lists is exact at the end.
    pub caches_exact: usize,
    /// Caches that were read at the start and at the end, and are in the recording.
    pub caches: usize,
    /// How far the start would be off if it were guessed, the largest error first.
    pub start_guessed: Vec<Guess>,
}

/// Objects by which a cache changed without an event: allocations less frees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Untraced {
    /// The cache.
    pub cache: String,
    /// More objects in use than the recording's events say.
    pub objects: i64,
    /// The bytes of those.
    pub bytes: i64,
}

fn add(level: &mut Both, real: u64, predicted: u64) {
    level.real += real as i64;
    level.predicted += predicted as i64;
}

/// Objects that callers hold.
fn in_use(cache: &CacheSlabs) -> i64 {
    let free: usize = cache.slabs.iter().map(|slab| slab.free.len()).sum();
    let parked: usize = cache.parked.iter().map(|parked| parked.objects.len()).sum();
    cache.objects() as i64 - (free + parked) as i64
}

/// Objects by which a cache changed between its two readings, less those of its events.
fn untraced(traffic: &Traffic, (start, end): (&CacheSlabs, &CacheSlabs)) -> i64 {
    let traced = (traffic.allocs - traffic.bulk) as i64 - (traffic.frees - traffic.implied) as i64;
    in_use(end) - in_use(start) - traced
}

/// Whether a cache is traced, of which `untraced` objects more are in use than its events say: if these, and
/// the events that are assumed, are at most a hundredth of its events.
fn tracing(traffic: &Traffic, untraced: i64) -> Tracing {
    let missing = untraced.unsigned_abs() + traffic.bulk + traffic.implied;
    match traffic.allocs + traffic.frees {
        0 => Tracing::None,
        events if 100 * missing <= events => Tracing::All,
        _ => Tracing::Some,
    }
}

fn both<'a>(cache: &CacheOutcome, snapshots: &'a Snapshots) -> Option<(&'a CacheSlabs, &'a CacheSlabs)> {
    let mut names = std::iter::once(&cache.name).chain(&cache.aliases);
    let of = |snapshot: &'a Snapshot, name: &str| snapshot.only(name);
    names.find_map(|name| of(&snapshots.start, name).zip(of(&snapshots.end, name)))
}

impl Truth {
    /// Of a run, and the snapshots around it, by which `changes` learn how much of them was traced.
    pub(super) fn of(outcome: &Outcome, snapshots: &Snapshots, changes: &mut [Change]) -> Truth {
        let mut truth = Truth::default();
        for cache in &outcome.caches {
            let Some((start, end)) = both(cache, snapshots) else { continue };
            let (listed, free) = end.listed();
            truth.caches += 1;
            add(&mut truth.slabs, end.slabs.len() as u64, cache.end.slabs);
            add(&mut truth.listed_slabs, listed, cache.end.partial);
            add(&mut truth.listed_free_objects, free, cache.end.free_in_partial);
            truth.caches_exact += usize::from(listed == cache.end.partial);
            let objects = untraced(&cache.traffic, (start, end));
            let names = || std::iter::once(&cache.name).chain(&cache.aliases);
            let change = changes.iter_mut().find(|change| names().any(|name| *name == change.name));
            let name = change.as_ref().map_or(&cache.name, |change| &change.name).clone();
            if let Some(change) = change {
                change.tracing = tracing(&cache.traffic, objects);
            }
            if objects == 0 {
                continue;
            }
            truth.untraced.push(Untraced { cache: name, objects, bytes: objects * end.size as i64 });
        }
        truth.untraced.sort_by_key(|one| (std::cmp::Reverse(one.bytes.unsigned_abs()), one.cache.clone()));
        truth
    }

    /// Sentences with the numbers.
    pub(super) fn sentences(&self) -> Vec<String> {
        let Both { real, predicted } = self.slabs;
        let mut said = vec![format!(
            "level at the end, {} caches: {real} slabs, predicted {predicted}; on nodes' lists {}, predicted {}, \
             with {} free objects, predicted {}; slabs on lists exact in {} caches",
            self.caches,
            self.listed_slabs.real,
            self.listed_slabs.predicted,
            self.listed_free_objects.real,
            self.listed_free_objects.predicted,
            self.caches_exact
        )];
        if let [first, ..] = &self.untraced[..] {
            let kib = self.untraced.iter().map(|one| one.bytes.unsigned_abs()).sum::<u64>() / 1024;
            let named = self.untraced.iter().take(NAMED);
            let named: Vec<String> = named.map(|one| format!("{} {:+}", one.cache, one.objects)).collect();
            let more = if self.untraced.len() > NAMED { ", .." } else { "" };
            let what = if first.objects.abs() == 1 { "object" } else { "objects" };
            said.push(format!(
                "{} caches changed by {kib} K of objects without an event: {} {what}{more}",
                self.untraced.len(),
                named.join(", ")
            ));
        }
        said.extend(sentence(&self.start_guessed));
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_readers::slabs::{Parked, Sheaf, SlabPlace, SlabState};

    fn cache(slabs: u64, free: &[u16], parked: usize) -> CacheSlabs {
        let slab = |frame| SlabState {
            place: SlabPlace::List,
            node: 0,
            frame,
            order: 0,
            objects: 8,
            free: free.to_vec(),
        };
        let parked = Parked { sheaf: Sheaf::Main(0), objects: vec![0; parked] };
        CacheSlabs {
            name: "filp".into(),
            size: 512,
            slabs: (0..slabs).map(slab).collect(),
            parked: vec![parked],
            ..CacheSlabs::default()
        }
    }

    #[test]
    fn a_hundredth_may_be_missing() {
        #[track_caller]
        fn check(allocs: u64, bulk: u64, untraced: i64, expected: Tracing) {
            let traffic = Traffic { allocs, frees: 50, bulk, ..Traffic::default() };
            assert_eq!(tracing(&traffic, untraced), expected);
        }
        check(150, 0, 0, Tracing::All);
        check(150, 1, -1, Tracing::All);
        check(150, 1, 2, Tracing::Some);
        check(0, 0, 1, Tracing::Some);
        assert_eq!(tracing(&Traffic::default(), 9), Tracing::None);
    }

    #[test]
    fn what_events_do_not_explain_is_untraced() {
        /// From 16 objects in use to those of two slabs with `free` free and `parked` parked.
        #[track_caller]
        fn check((free, parked): (&[u16], usize), traffic: Traffic, expected: i64) {
            let (start, end) = (cache(2, &[], 0), cache(2, free, parked));
            assert_eq!(untraced(&traffic, (&start, &end)), expected);
        }
        let traffic = |allocs, frees| Traffic { allocs, frees, ..Traffic::default() };
        check((&[], 0), traffic(3, 3), 0);
        check((&[0], 1), traffic(0, 3), 0);
        check((&[0], 0), traffic(5, 3), -4);
        // Neither what is assumed to be allocated nor what is implied to be freed has an event.
        check((&[], 0), Traffic { bulk: 1, ..traffic(1, 1) }, 1);
        check((&[0], 0), Traffic { implied: 2, ..traffic(1, 3) }, -2);
    }
}
