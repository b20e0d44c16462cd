//! What a run counts: objects by cache, where they were freed, how long they lived.

use crate::heap::{CacheNumber, Heap, Named};
use crate::record::profile::Profile;
use slablab_model::{BadSpec, LockTimes, Ps, Spent, Timed};
use slablab_platform::{Event, Topology};
use std::fmt;

/// Steps of a power of two in which lifetimes are counted: quantiles are exact to 1/16.
const STEPS: u64 = 16;
/// Buckets for lifetimes up to 2^32 events.
const BUCKETS: usize = 16 * 30;

/// Lifetimes, counted in events: allocations and frees of all caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Lifetimes { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Lifetimes {
    pub(crate) fn add(&mut self, events: u64) {
        self.counts[Self::bucket(events)] += 1;
        self.total += 1;
    }

    /// Lifetimes below 16 have a bucket each; then 16 for each power of two.
    fn bucket(events: u64) -> usize {
        if events < STEPS {
            return events as usize;
        }
        let power = events.ilog2();
        let step = events >> (power - 4) & (STEPS - 1);
        ((power as usize - 3) * STEPS as usize + step as usize).min(BUCKETS - 1)
    }

    fn floor(bucket: usize) -> u64 {
        let (power, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
        if power == 0 { step } else { (STEPS + step) << (power - 1) }
    }

    /// The lifetime that `percent` of the objects do not reach; 0 without objects.
    pub fn quantile(&self, percent: u64) -> u64 {
        let wanted = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Self::floor(bucket);
            }
        }
        0
    }
}

/// What one cache's objects did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheTally {
    /// The cache's name.
    pub name: String,
    /// Allocations.
    pub allocs: u64,
    /// Frees.
    pub frees: u64,
    /// Frees on another CPU than that of the allocation.
    pub freed_elsewhere: u64,
    /// The most objects at a time.
    pub live_max: u64,
    /// How long the freed objects lived.
    pub lifetimes: Lifetimes,
    /// The engine's counters, over all CPUs; those that are 0 are left out.
    pub events: Vec<(Event, u64)>,
}

/// Counts of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) caches: Vec<CacheTally>,
    pub(crate) events: u32,
    pub(crate) switches: u64,
    pub(crate) wakeups: u64,
    pub(crate) migrations: u64,
    pub(crate) preemptions: u64,
    pub(crate) system_calls: u64,
    pub(crate) messages: u64,
    pub(crate) allocating: Ps,
}

impl Tally {
    pub(crate) fn of(heap: &dyn Heap) -> Tally {
        let caches = heap.caches().iter();
        let caches = caches.map(|cache| CacheTally { name: cache.name.clone(), ..CacheTally::default() });
        Tally { caches: caches.collect(), ..Tally::default() }
    }

    /// Counts an allocation. Returns its number.
    #[inline]
    pub(crate) fn allocated(&mut self, cache: u16) -> u32 {
        let cache = &mut self.caches[cache as usize];
        cache.allocs += 1;
        cache.live_max = cache.live_max.max(cache.allocs - cache.frees);
        self.events += 1;
        self.events
    }

    #[inline]
    pub(crate) fn freed(&mut self, cache: u16, elsewhere: bool, born: u32) {
        self.events += 1;
        let age = self.events.wrapping_sub(born);
        let cache = &mut self.caches[cache as usize];
        cache.frees += 1;
        cache.freed_elsewhere += u64::from(elsewhere);
        cache.lifetimes.add(age.into());
    }
}

/// What a run did. Times and counts are those of the timed part, counts of caches those of the whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How long the timed part took.
    pub elapsed: Ps,
    /// How each CPU spent the timed part, by [`Spent`]; what is missing to `elapsed` is idle time.
    pub spent: Vec<[Ps; Spent::COUNT]>,
    /// Where the time of the timed part went, by CPU and lock.
    pub profile: Profile,
    /// Switches from one task to another.
    pub switches: u64,
    /// Switches of a task that could have gone on.
    pub preemptions: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// How often a task began to run on another CPU than before.
    pub migrations: u64,
    /// System calls.
    pub system_calls: u64,
    /// Messages that were read; in programs without messages, operations that were completed.
    pub messages: u64,
    /// Time of all tasks inside allocations of objects, from the start.
    pub allocating: Ps,
    /// Cache lines that came from other CPUs' caches or from memory.
    pub lines_moved: u64,
    /// Caches with allocations.
    pub caches: Vec<CacheTally>,
    /// Locks: rank, and what its locks did.
    pub locks: Vec<(&'static str, LockTimes)>,
    /// Bytes of slabs after boot.
    pub slab_bytes_booted: u64,
    /// Bytes of slabs at the end, and the most.
    pub slab_bytes: (u64, u64),
}

impl Outcome {
    /// The cache of this name.
    pub fn cache(&self, name: &str) -> Option<&CacheTally> {
        self.caches.iter().find(|cache| cache.name == name)
    }

    /// Frees on another CPU than that of the allocation, and all frees.
    pub fn frees(&self) -> (u64, u64) {
        let sum = |of: fn(&CacheTally) -> u64| self.caches.iter().map(of).sum();
        (sum(|cache| cache.freed_elsewhere), sum(|cache| cache.frees))
    }
}

/// Why a run has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The machine cannot be modelled, or has no scheduler of the release.
    Machine(String),
    /// The run ended with a panic, a bug of this program: what the panic said.
    Broken(String),
    /// Tasks wait for ever: the number of tasks that wait, and the first of them with what each waits for.
    Stuck(Vec<String>),
    /// Reclaim goes on and on and frees no page.
    Livelock {
        /// Simulated seconds since a page was freed last.
        seconds: u64,
        /// The tasks.
        tasks: Vec<String>,
    },
    /// No page was found. How much each cache holds.
    OutOfMemory {
        /// Operations of all caches until then.
        events: u64,
        /// Name, objects, bytes of slabs.
        caches: Vec<(String, u64, u64)>,
    },
}

impl Failed {
    /// What a heap's caches hold when no page is found, after `events` allocations and frees. Objects are
    /// those in use, the engine's own too.
    pub(crate) fn out_of_memory(heap: &dyn Heap, events: u64) -> Failed {
        let of = |(number, cache): (usize, &Named)| {
            let usage = heap.usage(CacheNumber(number as u16));
            let objects = usage.held_in_slabs().0 + usage.shared_objects;
            (cache.name.clone(), objects, (usage.frames << Timed::page_shift()) + usage.shared_bytes)
        };
        let caches = heap.caches().iter().enumerate().map(of).filter(|(_, _, bytes)| *bytes > 0).collect();
        Failed::OutOfMemory { events, caches }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Machine(text) => f.write_str(text),
            Failed::Broken(text) => write!(f, "the run failed: {text}"),
            Failed::Stuck(tasks) => {
                writeln!(f, "{} tasks wait for ever:", tasks.len())?;
                tasks.iter().take(20).try_for_each(|task| writeln!(f, "  {task}"))
            }
            Failed::Livelock { seconds, tasks } => {
                writeln!(f, "livelock: reclaim freed no page for {seconds} seconds; {} tasks:", tasks.len())?;
                tasks.iter().take(20).try_for_each(|task| writeln!(f, "  {task}"))
            }
            Failed::OutOfMemory { events, caches } => {
                writeln!(f, "out of memory after {events} allocations and frees:")?;
                caches.iter().try_for_each(|(name, objects, bytes)| {
                    writeln!(f, "  {name:24} {objects:>10} objects {:>10} KiB", bytes >> 10)
                })
            }
        }
    }
}

impl std::error::Error for Failed {}

impl From<BadSpec> for Failed {
    fn from(bad: BadSpec) -> Failed {
        Failed::Machine(bad.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_a_sixteenth() {
        for value in [0, 1, 15, 16, 17, 31, 33, 1000, 123_456, u64::from(u32::MAX)] {
            let mut lifetimes = Lifetimes::default();
            lifetimes.add(value);
            let found = lifetimes.quantile(50);
            assert!(found <= value && value - found <= value / 16, "{value}: {found}");
        }
        let mut lifetimes = Lifetimes::default();
        (1..=10).for_each(|value| lifetimes.add(value));
        assert_eq!([10, 50, 90].map(|percent| lifetimes.quantile(percent)), [1, 5, 9]);
    }
}
