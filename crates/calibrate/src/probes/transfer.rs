//! Lines that pass between CPUs.
//!
//! A *transfer* is measured by one thread that moves: on the first CPU it writes lines, on the second it
//! loads them along a chain. No thread spins, so a busy machine disturbs it little. The *ping-pong* of two
//! threads on one line is measured beside it: half a round trip is a transfer, a write to a line that the
//! other CPU reads, and the reads between.

use super::caches::FarLines;
use super::{Place, move_to, timed};
use crate::series::{Samples, Series};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

const TRIPS: u64 = 200;
/// The longest that pairs take in one round of all probes.
const ROUND: Duration = Duration::from_millis(500);

/// A line of its own, away from the lines that are fetched together with it.
#[repr(align(256))]
struct Line(AtomicU64);

/// All pairs of CPUs.
pub(crate) struct Pairs {
    clock_ns: f64,
    home: u16,
    pairs: Vec<(u16, u16)>,
    next: usize,
    lines: FarLines,
}

impl Pairs {
    pub(crate) fn new(place: &Place) -> io::Result<Pairs> {
        let cpus = &place.host.allowed;
        let pair = |at: usize| cpus[at + 1..].iter().map(move |other| (cpus[at], *other));
        let mut pairs: Vec<_> = (0..cpus.len()).flat_map(pair).collect();
        // If a run is too short for all pairs, those that it measures are a fair choice.
        super::Random(1).shuffle(&mut pairs);
        let (clock_ns, home) = (place.clock_ns, place.home);
        Ok(Pairs { clock_ns, home, pairs, next: 0, lines: FarLines::new(clock_ns)? })
    }

    /// Pairs that were not measured yet.
    pub(crate) fn left(&self) -> usize {
        self.pairs.len().saturating_sub(self.next)
    }

    /// Measures pairs in turn: each once, or as many as fit into a round.
    pub(crate) fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        let start = Instant::now();
        for _ in 0..self.pairs.len() {
            let (one, other) = self.pairs[self.next % self.pairs.len()];
            self.next += 1;
            for (from, to) in [(one, other), (other, one)] {
                into.push(Series::Transfer(from, to), self.transfer(from, to)?);
            }
            if let Some(ns) = self.ping_pong(one, other)? {
                into.push(Series::PingPong(one, other), ns);
            }
            if start.elapsed() > ROUND {
                break;
            }
        }
        move_to(self.home)
    }

    fn transfer(&mut self, from: u16, to: u16) -> io::Result<f64> {
        move_to(from)?;
        self.lines.write();
        move_to(to)?;
        Ok(self.lines.load_ns())
    }

    /// Half a round trip in ns; `None` if the other thread could not be placed.
    fn ping_pong(&self, one: u16, other: u16) -> io::Result<Option<f64>> {
        move_to(one)?;
        let (line, ready, failed) = (Line(AtomicU64::new(0)), AtomicBool::new(false), AtomicBool::new(false));
        let ns = thread::scope(|scope| {
            scope.spawn(|| {
                failed.store(move_to(other).is_err(), Relaxed);
                ready.store(true, Release);
                for trip in 0..if failed.load(Relaxed) { 0 } else { TRIPS } {
                    while line.0.load(Acquire) != 2 * trip + 1 {}
                    line.0.store(2 * trip + 2, Release);
                }
            });
            while !ready.load(Acquire) {
                thread::yield_now();
            }
            if failed.load(Relaxed) {
                return None;
            }
            let (ns, ()) = timed(self.clock_ns, || {
                for trip in 0..TRIPS {
                    line.0.store(2 * trip + 1, Release);
                    while line.0.load(Acquire) != 2 * trip + 2 {}
                }
            });
            Some(ns / (2 * TRIPS) as f64)
        });
        Ok(ns)
    }
}
