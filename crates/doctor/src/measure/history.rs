//! What changed against earlier snapshots: growth, its rate, and how well a straight line says it.
//!
//! A cache is followed by name and ordinal. Ordinals are given in the order of the kernel's list, so that of
//! several caches of one name, one that came or went moves the others: such names are followed as one sum.
//! A cache that an earlier snapshot lacks grew from nothing, unless that snapshot has a part of the caches.

use super::comparable;
use super::partial::{Partial, Parts};
use crate::state::{Cache, State};
use slablab_report::error::{Error, Result};
use std::collections::BTreeMap;

/// How a cache grew since the first snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// Bytes of slabs now, less those of the first snapshot.
    pub bytes: i64,
    /// Active objects now, less those of the first snapshot.
    pub objects: i64,
    /// Bytes per hour and how far that can be believed; `None` where no time is known, or too little passed.
    pub fit: Option<Fit>,
    /// Bytes of slabs in each snapshot, oldest first.
    pub points: Vec<u64>,
    /// Whether several caches of this name are taken together, as their number changed.
    pub together: bool,
    /// Whether the first snapshot lacks it.
    pub is_new: bool,
}

/// A straight line through bytes of slabs over time, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Bytes per hour.
    pub bytes_per_hour: f64,
    /// Standard error of that; `None` with two points, which every line fits.
    pub error: Option<f64>,
    /// The part of the variance that the line explains, 0 to 1; `None` with two points or without any
    /// variance.
    pub r2: Option<f64>,
    /// Points.
    pub points: usize,
}

/// All snapshots, oldest first, the examined state last.
#[derive(Clone, Debug)]
pub struct History<'a> {
    states: Vec<&'a State>,
    /// Hours since the first snapshot; `None` where no time is known.
    pub hours: Option<Vec<f64>>,
    /// How the times are known, or why not.
    pub times_from: String,
    /// Snapshots that have a part of the caches.
    parts: Parts<'a>,
}

/// The snapshot with fewest caches, of those that have a part of them.
#[derive(Clone, Copy, Debug)]
pub struct Least<'a> {
    /// The snapshot.
    pub state: &'a State,
    /// How it is known.
    pub partial: Partial,
    /// Caches of the examined state whose growth is known.
    pub compared: usize,
    /// Caches of the snapshot that has most.
    pub of: usize,
}

/// The least time between first and last snapshot from which growth an hour is said: less would be multiplied
/// by more than six.
const RATE_FROM_H: f64 = 1.0 / 6.0;

impl<'a> History<'a> {
    /// Puts snapshots in the order of time: the newest is the one to examine. `hours`, from the first
    /// snapshot to `now`, is used where the snapshots do not tell; more than one snapshot is then taken to be
    /// spread evenly, in the order given, with `now` last. With `force`, snapshots of other boots, kernels
    /// and machines are taken too.
    ///
    /// # Errors
    /// Snapshots that do not belong together, hours that are none, and machines with another page size.
    pub fn new(now: &'a State, since: &'a [State], hours: Option<f64>, force: bool) -> Result<History<'a>> {
        since.iter().try_for_each(|other| comparable::check(other, now, force))?;
        let mut states: Vec<&State> = since.iter().collect();
        states.push(now);
        if let Some(hours) = hours {
            if !(hours.is_finite() && hours > 0.0) {
                return Err(Error::new("--hours", format!("expected a number above 0, found {hours}")));
            }
            let step = hours / since.len().max(1) as f64;
            let times = (0..states.len()).map(|at| at as f64 * step).collect();
            let evenly = if since.len() > 1 { ", snapshots spread evenly" } else { "" };
            return Ok(History::of(states, Some(times), format!("--hours{evenly}")));
        }
        let one_boot = since.iter().all(|other| comparable::one_boot(other, now));
        let taken = |state: &State| state.taken_s.map(|seconds| seconds as f64);
        let up = |state: &State| state.up_s.filter(|_| one_boot);
        for (of, from) in [
            (&up as &dyn Fn(&State) -> Option<f64>, "the time the machine was up"),
            (&taken, "the time each snapshot was taken"),
        ] {
            let Some(times) = states.iter().map(|state| of(state)).collect::<Option<Vec<f64>>>() else {
                continue;
            };
            let mut order: Vec<usize> = (0..states.len()).collect();
            order.sort_by(|a, b| times[*a].total_cmp(&times[*b]));
            // Equal times are of files that were copied: no times at all.
            if order.windows(2).any(|pair| times[pair[0]] == times[pair[1]]) {
                continue;
            }
            let first = times[order[0]];
            let hours = order.iter().map(|at| (times[*at] - first) / 3600.0).collect();
            let states = order.into_iter().map(|at| states[at]).collect();
            return Ok(History::of(states, Some(hours), from.into()));
        }
        let times_from = "the snapshots have no time; give the hours between them with --hours".to_string();
        Ok(History::of(states, None, times_from))
    }

    fn of(states: Vec<&'a State>, hours: Option<Vec<f64>>, times_from: String) -> History<'a> {
        History { parts: Parts::of(&states), states, hours, times_from }
    }

    /// The snapshot with fewest caches, if any has a part of them and caches are left out for it.
    pub fn least(&self) -> Option<Least<'a>> {
        let (state, partial) = self.parts.least()?;
        let compared = self.last().caches.iter().filter(|cache| self.parts.have(cache)).count();
        let of = self.states.iter().map(|state| state.caches.len()).max().unwrap_or(0);
        Some(Least { state, partial, compared, of })
    }

    /// Bytes that the caches whose growth is known have now.
    pub(crate) fn compared_bytes(&self) -> u64 {
        self.bytes(self.last())
    }

    fn bytes(&self, state: &State) -> u64 {
        let known = state.caches.iter().filter(|cache| self.parts.have(cache));
        known.fold(0, |sum, cache| sum.saturating_add(cache.bytes(state.page_size)))
    }

    /// A counter of /proc/meminfo in bytes, in the oldest and in the newest snapshot, if both have it.
    pub fn counter(&self, name: &str) -> Option<(u64, u64)> {
        let of = |state: &State| state.dump.meminfo.get(name).map(|kb| kb.saturating_mul(1024));
        of(self.first()).zip(of(self.last()))
    }

    /// The newest state.
    pub fn last(&self) -> &'a State {
        self.states[self.states.len() - 1]
    }

    /// The oldest state.
    pub fn first(&self) -> &'a State {
        self.states[0]
    }

    /// Every state, oldest first.
    pub fn states(&self) -> &[&'a State] {
        &self.states
    }

    /// Hours from the first to the last snapshot, if they are known.
    pub fn span_hours(&self) -> Option<f64> {
        self.hours.as_ref().map(|hours| hours[hours.len() - 1])
    }

    /// Whether growth an hour says something: the snapshots are far enough apart.
    pub fn has_rates(&self) -> bool {
        self.span_hours().is_some_and(|hours| hours >= RATE_FROM_H)
    }

    /// The line through points of the snapshots, if growth an hour says something.
    fn fit(&self, bytes: impl Iterator<Item = u64>) -> Option<Fit> {
        let hours = self.hours.as_ref().filter(|_| self.has_rates())?;
        Fit::of(&hours.iter().zip(bytes).map(|(at, bytes)| (*at, bytes as f64)).collect::<Vec<_>>())
    }

    /// The time between the snapshots in words: "in 42 s", "in 3.5 hours"; empty if it is not known.
    pub fn span_words(&self) -> String {
        match self.span_hours() {
            None => String::new(),
            Some(hours) if hours < 1.0 / 30.0 => format!(" in {:.0} s", hours * 3600.0),
            Some(hours) if hours < 2.0 => format!(" in {:.0} minutes", hours * 60.0),
            Some(hours) if hours < 48.0 => format!(" in {hours:.1} hours"),
            Some(hours) => format!(" in {:.1} days", hours / 24.0),
        }
    }

    /// How many snapshots there are, the examined state included.
    pub fn points(&self) -> usize {
        self.states.len()
    }

    /// Growth of every cache of the examined state, in its order; `None` for a cache that a snapshot with a
    /// part of the caches lacks.
    pub fn growth(&self) -> Vec<Option<Growth>> {
        let now = self.states[self.states.len() - 1];
        let rows: Vec<Followed> = self.states.iter().map(|state| Followed::of(state)).collect();
        let follow = |cache: &Cache| {
            let same =
                rows.iter().all(|row| row.caches_called(&cache.name) == rows[0].caches_called(&cache.name));
            let key = (cache.name.as_str(), if same { Some(cache.ordinal) } else { None });
            let points: Vec<(u64, u64)> = rows.iter().map(|row| row.of_key(key)).collect();
            let (first, last) = (points[0], points[points.len() - 1]);
            let change = |from: u64, to: u64| (i128::from(to) - i128::from(from)) as i64;
            Growth {
                bytes: change(first.0, last.0),
                objects: change(first.1, last.1),
                fit: self.fit(points.iter().map(|point| point.0)),
                points: points.iter().map(|point| point.0).collect(),
                together: !same,
                is_new: !rows[0].together.contains_key(cache.name.as_str()),
            }
        };
        now.caches.iter().map(|cache| self.parts.have(cache).then(|| follow(cache))).collect()
    }

    /// Growth of all caches together whose growth is known.
    pub fn total(&self) -> Growth {
        let bytes: Vec<u64> = self.states.iter().map(|state| self.bytes(state)).collect();
        let objects = |state: &State| {
            let known = state.caches.iter().filter(|cache| self.parts.have(cache));
            known.map(|cache| cache.active_objects).sum::<u64>()
        };
        let (first, last) = (self.states[0], self.states[self.states.len() - 1]);
        Growth {
            bytes: bytes[bytes.len() - 1] as i64 - bytes[0] as i64,
            objects: objects(last) as i64 - objects(first) as i64,
            fit: self.fit(bytes.iter().copied()),
            points: bytes,
            together: true,
            is_new: false,
        }
    }
}

/// The caches of a snapshot by key.
struct Followed<'a> {
    each: BTreeMap<(&'a str, u32), (u64, u64)>,
    together: BTreeMap<&'a str, (usize, u64, u64)>,
}

impl<'a> Followed<'a> {
    fn of(state: &'a State) -> Followed<'a> {
        let (mut each, mut together) = (BTreeMap::new(), BTreeMap::new());
        for cache in &state.caches {
            let (bytes, objects) = (cache.bytes(state.page_size), cache.active_objects);
            each.insert((cache.name.as_str(), cache.ordinal), (bytes, objects));
            let sum: &mut (usize, u64, u64) = together.entry(cache.name.as_str()).or_default();
            *sum = (sum.0 + 1, sum.1.saturating_add(bytes), sum.2.saturating_add(objects));
        }
        Followed { each, together }
    }

    fn caches_called(&self, name: &str) -> usize {
        // A cache that did not exist yet grew from nothing: one of a name and none of it are the same to
        // follow.
        self.together.get(name).map_or(1, |sum| sum.0)
    }

    fn of_key(&self, key: (&str, Option<u32>)) -> (u64, u64) {
        match key.1 {
            Some(ordinal) => self.each.get(&(key.0, ordinal)).copied().unwrap_or_default(),
            None => self.together.get(key.0).map_or((0, 0), |sum| (sum.1, sum.2)),
        }
    }
}

impl Fit {
    /// The line through `(hours, bytes)`; `None` with fewer than two points, or all at one time.
    pub fn of(points: &[(f64, f64)]) -> Option<Fit> {
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| {
            points.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum::<f64>()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        if points.len() < 2 || xx <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        let rest = (yy - slope * xy).max(0.0);
        let free = n - 2.0;
        Some(Fit {
            bytes_per_hour: slope,
            error: (free > 0.0).then(|| (rest / free / xx).sqrt()),
            r2: (free > 0.0 && yy > 0.0).then(|| 1.0 - rest / yy),
            points: points.len(),
        })
    }
}
