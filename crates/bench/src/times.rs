//! How long single calls take: percentiles of all of them.

use crate::proof::thread_usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The times of a workload's calls, with one reading of the clock in each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    /// Of allocations, without the first write to the block.
    pub malloc: Times,
    /// Of frees.
    pub free: Times,
}

/// The times of the calls of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// The number of calls, without those of `left_out`.
    pub calls: u64,
    /// The mean in ns.
    pub mean_ns: f64,
    /// The median in ns.
    pub p50_ns: f64,
    /// 99 % of the calls took no longer, in ns.
    pub p99_ns: f64,
    /// 99.9 % of the calls took no longer, in ns.
    pub p99_9_ns: f64,
    /// 99.99 % of the calls took no longer, in ns.
    pub p99_99_ns: f64,
    /// 99.999 % of the calls took no longer, in ns.
    pub p99_999_ns: f64,
    /// The longest call in ns.
    pub longest_ns: f64,
    /// The number of calls that took longer than 10 us.
    pub above_10_us: u64,
    /// Calls that are left out, because the thread was off its CPU meanwhile.
    pub left_out: u64,
}

/// A figure of times: name, unit, value.
pub type TimesFigure = (&'static str, &'static str, fn(&Times) -> f64);

/// The figures of times, in the order of tables.
pub const TIMES_FIGURES: [TimesFigure; 8] = [
    ("mean", "ns", |times| times.mean_ns),
    ("p50", "ns", |times| times.p50_ns),
    ("p99", "ns", |times| times.p99_ns),
    ("p99.9", "ns", |times| times.p99_9_ns),
    ("p99.99", "ns", |times| times.p99_99_ns),
    ("p99.999", "ns", |times| times.p99_999_ns),
    ("longest", "ns", |times| times.longest_ns),
    ("above 10 us", "", |times| times.above_10_us as f64),
];

impl Calls {
    /// Both kinds of calls, by name.
    pub fn each(&self) -> [(&'static str, Times); 2] {
        [("malloc", self.malloc), ("free", self.free)]
    }

    /// The least of each figure of several samples: what else runs on a machine only adds. `None` if there
    /// are none.
    pub fn least(samples: &[Calls]) -> Option<Calls> {
        samples.iter().copied().reduce(|one, other| Calls {
            malloc: one.malloc.or_less(&other.malloc),
            free: one.free.or_less(&other.free),
        })
    }
}

impl Times {
    fn or_less(&self, other: &Times) -> Times {
        let less = |of: fn(&Times) -> f64| of(self).min(of(other));
        Times {
            calls: self.calls.min(other.calls),
            mean_ns: less(|times| times.mean_ns),
            p50_ns: less(|times| times.p50_ns),
            p99_ns: less(|times| times.p99_ns),
            p99_9_ns: less(|times| times.p99_9_ns),
            p99_99_ns: less(|times| times.p99_99_ns),
            p99_999_ns: less(|times| times.p99_999_ns),
            longest_ns: less(|times| times.longest_ns),
            above_10_us: self.above_10_us.min(other.above_10_us),
            left_out: self.left_out.min(other.left_out),
        }
    }
}

/// Buckets for each doubling of the time.
const PARTS: u64 = 16;
/// All doublings of 64 bits have a bucket.
const BUCKETS: usize = (64 * PARTS) as usize;
/// From here on a call may have been interrupted by the kernel for another thread. To ask is a system call.
const LONG_NS: u64 = 10_000;

/// Times in buckets, each a sixteenth of a doubling wide.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    calls: u64,
    sum_ns: u64,
    longest_ns: u64,
    above_10_us: u64,
    left_out: u64,
    /// How often this thread was off its CPU, when that was asked last.
    switches: u64,
}

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram {
            buckets: vec![0; BUCKETS],
            calls: 0,
            sum_ns: 0,
            longest_ns: 0,
            above_10_us: 0,
            left_out: 0,
            switches: thread_usage().switches,
        }
    }

    /// Runs `call` and notes its time.
    #[inline(always)]
    pub(crate) fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = call();
        let ns = start.elapsed().as_nanos() as u64;
        if ns <= LONG_NS || !self.was_off() {
            self.note(ns);
        }
        done
    }

    /// Whether the thread was off its CPU since this was asked last. Then the call is left out.
    #[cold]
    fn was_off(&mut self) -> bool {
        let switches = thread_usage().switches;
        let was_off = switches != self.switches;
        self.switches = switches;
        self.left_out += u64::from(was_off);
        was_off
    }

    #[inline(always)]
    fn note(&mut self, ns: u64) {
        self.buckets[bucket(ns)] += 1;
        self.calls += 1;
        self.sum_ns += ns;
        self.longest_ns = self.longest_ns.max(ns);
        self.above_10_us += u64::from(ns > LONG_NS);
    }

    /// Adds the times of another thread.
    pub(crate) fn add(&mut self, other: &Histogram) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, more)| *sum += more);
        self.calls += other.calls;
        self.sum_ns += other.sum_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.above_10_us += other.above_10_us;
        self.left_out += other.left_out;
    }

    pub(crate) fn times(&self) -> Times {
        Times {
            calls: self.calls,
            mean_ns: self.sum_ns as f64 / self.calls.max(1) as f64,
            p50_ns: self.percentile(50.0),
            p99_ns: self.percentile(99.0),
            p99_9_ns: self.percentile(99.9),
            p99_99_ns: self.percentile(99.99),
            p99_999_ns: self.percentile(99.999),
            longest_ns: self.longest_ns as f64,
            above_10_us: self.above_10_us,
            left_out: self.left_out,
        }
    }

    /// The least time of the bucket up to which `percent` of the calls are.
    fn percentile(&self, percent: f64) -> f64 {
        let wanted = self.calls as f64 * percent / 100.0;
        let mut seen = 0;
        let found = self.buckets.iter().position(|calls| {
            seen += calls;
            seen as f64 >= wanted
        });
        found.map_or(0.0, |bucket| least(bucket) as f64)
    }
}

fn bucket(ns: u64) -> usize {
    let Some(shift) = (ns / PARTS).checked_ilog2() else { return ns as usize };
    ((u64::from(shift) + 1) * PARTS + (ns >> shift) - PARTS) as usize
}

/// The least time of a bucket.
fn least(bucket: usize) -> u64 {
    match (bucket as u64).checked_sub(PARTS) {
        None => bucket as u64,
        Some(above) => (PARTS + above % PARTS) << (above / PARTS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_a_sixteenth_of_a_doubling() {
        for ns in (0..5000).chain([1 << 20, (1 << 20) + 12_345, u64::MAX >> 1, u64::MAX]) {
            let from = least(bucket(ns));
            assert!(from <= ns && ns - from <= ns / PARTS, "{ns} is in the bucket from {from} on");
            assert_eq!(bucket(from), bucket(ns), "{ns}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    /// 100,000 calls of 16 ns, of which some took longer.
    #[test]
    fn percentiles_of_known_times() {
        let mut all = Histogram::new();
        (0..100_000 - 111).for_each(|_| all.note(16));
        (0..100).for_each(|_| all.note(1024));
        (0..10).for_each(|_| all.note(8192));
        let mut other = Histogram::new();
        other.note(65_536);
        all.add(&other);
        let times = all.times();
        let figures = TIMES_FIGURES.map(|(name, _, value)| (name, value(&times)));
        let expected = [
            ("mean", (16.0 * 99_889.0 + 102_400.0 + 81_920.0 + 65_536.0) / 1e5),
            ("p50", 16.0),
            ("p99", 16.0),
            ("p99.9", 1024.0),
            ("p99.99", 8192.0),
            ("p99.999", 8192.0),
            ("longest", 65_536.0),
            ("above 10 us", 1.0),
        ];
        assert_eq!(figures, expected);
        let faster = Times { mean_ns: 1.0, above_10_us: 3, ..times };
        let least =
            Calls::least(&[Calls { malloc: times, free: times }, Calls { malloc: faster, free: times }]);
        let malloc = Times { mean_ns: 1.0, ..times };
        assert_eq!(least, Some(Calls { malloc, free: times }));
        assert_eq!(Calls::least(&[]), None);
    }
}
