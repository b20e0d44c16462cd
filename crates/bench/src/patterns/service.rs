//! A service over its day: how much memory does it hold, beside what is live? Two threads serve the same
//! requests under every allocator, in steps that begin at the same time under each.
//!
//! A request takes 8 to 24 blocks that it frees at its end, and a buffer that grows by `realloc`. One in four
//! leaves an entry in a cache, one in 64 a session, one in 512 a large buffer.
//!
//! ```text
//! 0.00 to 0.30  the load rises
//! 0.30 to 0.60  three times the load, other sizes
//! 0.60          nine of ten entries of the cache are flushed, and all sessions end
//! 0.60 to 0.75  nearly idle: a request in each step
//! 0.75 to 1.00  work again, other sizes
//! ```

use super::programs::{sizes, skewed};
use super::{Group, Pattern, Task, Workload, of};
use crate::block::AnyBlock;
use crate::clock::{Sample, resident_for_good};
use crate::day::{Day, Moment, PARTS};
use crate::process::{Done, measured};
use crate::random::Random;
use crate::subject::{Role, Subject, Subjects, prove};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

pub(super) fn workloads<S: Subjects>() -> Vec<Workload> {
    let mut day = of::<Service, S>();
    // Blocks of its ring overlap, so they cannot be copied.
    day.contestants.retain(|one| one.role != Role::Floor);
    vec![day]
}

const THREADS: usize = 2;
/// Places of a thread for entries, sessions and large buffers.
const PLACES: [usize; 3] = [1 << 18, 1 << 13, 1 << 5];
/// Requests of a thread in a step at full load.
const LOAD: u64 = 600;
/// From the beginning of a step to that of the next one.
const STEP: Duration = Duration::from_millis(50);
/// Blocks for the proof of their allocator.
const PROOFS: usize = 64;

struct Service;

impl Pattern for Service {
    const NAME: &'static str = "service";
    const ABOUT: &'static str =
        "two threads serve requests: a ramp, a peak, a flush of the cache, near idleness, work";
    const GROUP: Group = Group::Service;
    /// Steps: half a minute.
    const OPS: u64 = 600;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let steps = task.ops.next_multiple_of(PARTS as u64);
        let (live, calls) = (AtomicU64::new(0), AtomicU64::new(0));
        let part_ends = Barrier::new(THREADS + 1);
        let mut servers: Vec<Server<A>> = (0..THREADS as u64).map(|at| Server::new(task.seed + at)).collect();
        let mut day = Day::default();
        let base = resident_for_good();
        let shared =
            Shared { steps, live: &live, calls: &calls, part_ends: &part_ends, began: Instant::now() };
        let sample = measured(|| {
            std::thread::scope(|scope| {
                for server in &mut servers {
                    let shared = &shared;
                    scope.spawn(move || server.serve(shared));
                }
                for (part, moment) in day.moments.iter_mut().enumerate() {
                    part_ends.wait();
                    *moment = Moment {
                        at: (part + 1) as f64 / PARTS as f64,
                        live_mb: live.load(Relaxed) as f64 / 1e6,
                        resident_mb: resident_for_good().saturating_sub(base) as f64 / 1e6,
                    };
                    part_ends.wait();
                }
            });
            let blocks = (1..=PROOFS).map(|size| AnyBlock::<A>::new(size * 40)).collect();
            Done { ops: calls.load(Relaxed).max(1), blocks }
        })?;
        let mut kept = servers.iter().flat_map(|server| server.kept.iter().flatten().flatten());
        kept.try_for_each(|block| prove::<A>(block.at()))?;
        Ok(Sample { day: Some(day), ..sample })
    }
}

/// What the threads share.
struct Shared<'a> {
    steps: u64,
    /// Live bytes of everything that is kept.
    live: &'a AtomicU64,
    /// Allocations and changes of size.
    calls: &'a AtomicU64,
    part_ends: &'a Barrier,
    began: Instant,
}

/// The sizes of a time of the day.
struct Sizes {
    temporary: Vec<u32>,
    entry: Vec<u32>,
}

/// A thread of the service.
struct Server<A: Subject> {
    random: Random,
    /// Entries, sessions, large buffers.
    kept: [Vec<Option<AnyBlock<A>>>; 3],
    /// Morning, peak, evening.
    times: [Sizes; 3],
    session: Vec<u32>,
    large: Vec<u32>,
    /// How large a request's buffer becomes.
    buffer: Vec<u32>,
}

fn drawn(random: &mut Random, table: &[u32]) -> usize {
    table[random.below(table.len() as u64) as usize] as usize
}

impl<A: Subject> Server<A> {
    fn new(seed: u64) -> Server<A> {
        let between = |least: u64, most: u64| sizes(seed, |random| skewed(random, least, most));
        let time = |far: u32| Sizes { temporary: between(16, 2048 << far), entry: between(64, 2048 << far) };
        Server {
            random: Random::new(seed),
            kept: PLACES.map(|places| (0..places).map(|_| None).collect()),
            times: [0, 1, 2].map(time),
            session: between(1 << 10, 1 << 13),
            large: between(1 << 17, 1 << 21),
            buffer: between(1 << 9, 1 << 15),
        }
    }

    fn serve(&mut self, shared: &Shared<'_>) {
        for step in 0..shared.steps {
            let due = shared.began + STEP * step as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let share = step as f64 / shared.steps as f64;
            let (requests, time) = match share {
                ..0.3 => ((LOAD as f64 * share / 0.3) as u64, 0),
                ..0.6 => (3 * LOAD, 1),
                ..0.75 => (1, 1),
                _ => (LOAD, 2),
            };
            if step == shared.steps * 6 / 10 {
                self.flush(shared);
            }
            let calls: u64 = (0..requests).map(|_| self.request(time, shared)).sum();
            shared.calls.fetch_add(calls, Relaxed);
            if (step + 1) % (shared.steps / PARTS as u64) == 0 {
                shared.part_ends.wait();
                shared.part_ends.wait();
            }
        }
    }

    /// Serves a request; returns the number of its calls that allocate.
    fn request(&mut self, time: usize, shared: &Shared<'_>) -> u64 {
        let Server { random, times, buffer, .. } = self;
        let count = 8 + random.below(17) as usize;
        let mut temporary: [Option<AnyBlock<A>>; 24] = [const { None }; 24];
        for place in &mut temporary[..count] {
            *place = Some(AnyBlock::filled(drawn(random, &times[time].temporary)));
        }
        let most = drawn(random, buffer);
        let mut grown = AnyBlock::<A>::filled(200);
        let mut calls = count as u64 + 1;
        while grown.bytes() < most {
            grown.resize(grown.bytes() * 2);
            grown.fill();
            calls += 1;
        }
        let draw = random.next();
        for (kind, one_in, nth) in [(0, 4, 0), (1, 64, 1), (2, 512, 2)] {
            if draw % one_in == nth {
                let place = (draw >> 16) as usize % PLACES[kind];
                self.put(kind, place, time, shared);
                calls += 1;
            }
        }
        calls
    }

    /// Keeps a new block in place of an older one.
    fn put(&mut self, kind: usize, place: usize, time: usize, shared: &Shared<'_>) {
        let table = [&self.times[time].entry, &self.session, &self.large][kind];
        let bytes = drawn(&mut self.random, table);
        let place = &mut self.kept[kind][place];
        gone(place, shared);
        *place = Some(AnyBlock::filled(bytes));
        shared.live.fetch_add(bytes as u64, Relaxed);
    }

    fn flush(&mut self, shared: &Shared<'_>) {
        let Server { random, kept: [entries, sessions, buffers], .. } = self;
        entries.iter_mut().filter(|_| random.below(10) > 0).for_each(|place| gone(place, shared));
        sessions.iter_mut().chain(buffers).for_each(|place| gone(place, shared));
    }
}

/// Frees what a place has.
fn gone<A: Subject>(place: &mut Option<AnyBlock<A>>, shared: &Shared<'_>) {
    if let Some(block) = place.take() {
        shared.live.fetch_sub(block.bytes() as u64, Relaxed);
    }
}
