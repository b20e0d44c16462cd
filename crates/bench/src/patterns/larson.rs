//! A server in the manner of Larson and Krishnan (1998): each thread replaces random blocks in a table. After
//! a while the thread ends, and another continues with its table, so a thread frees mostly blocks that
//! another thread allocated.

use super::{Group, Pattern, Task, Workload, of};
use crate::block::{AnyBlock, replace};
use crate::clock::{Sample, thread_cpu_ns};
use crate::random::Random;
use crate::subject::{Subject, Subjects, prove};
use crate::threads::{self, Part};
use std::ops::RangeInclusive;

pub(super) fn workloads<S: Subjects>() -> Vec<Workload> {
    vec![of::<Larson, S>()]
}

/// The number of blocks in a table.
const LIVE: usize = 1000;
/// The number of threads that use a table one after the other.
pub(super) const GENERATIONS: u64 = 8;
/// The length of the tables of sizes and places. The steps through them share no factor with it.
const TABLE: usize = 4096;

pub(super) struct Lane<A: Subject> {
    live: Vec<Option<AnyBlock<A>>>,
    sizes: Vec<u16>,
    places: Vec<u16>,
    ops: u64,
}

impl<A: Subject> Lane<A> {
    /// A table for `ops` replacements of blocks whose sizes are in `bytes`.
    pub(super) fn new(ops: u64, seed: u64, bytes: RangeInclusive<u64>) -> Box<Self> {
        let (least, sizes) = (*bytes.start(), bytes.end() - bytes.start() + 1);
        let mut random = Random::new(seed);
        Box::new(Lane {
            live: (0..LIVE).map(|_| None).collect(),
            sizes: (0..TABLE).map(|_| (least + random.below(sizes)) as u16).collect(),
            places: (0..TABLE).map(|_| random.below(LIVE as u64) as u16).collect(),
            ops,
        })
    }

    /// Takes some of the blocks out of the table.
    pub(super) fn some(&mut self) -> Vec<AnyBlock<A>> {
        self.live.iter_mut().filter_map(Option::take).take(16).collect()
    }

    fn serve(&mut self, from: u64, ops: u64) {
        for step in from as usize..(from + ops) as usize {
            let slot = &mut self.live[self.places[step % TABLE] as usize];
            replace(slot, self.sizes[step * 7 % TABLE] as usize);
        }
    }
}

impl<A: Subject> Part for Lane<A> {
    fn prepare(&mut self) {
        for (slot, size) in self.live.iter_mut().zip(&self.sizes) {
            *slot = Some(AnyBlock::new(*size as usize));
        }
    }

    /// Returns the CPU time of the threads that it started.
    fn work(&mut self) -> u64 {
        let ops = self.ops / GENERATIONS;
        let mut cpu_ns = 0;
        for generation in 0..GENERATIONS {
            cpu_ns += std::thread::scope(|scope| {
                let serving = scope.spawn(|| {
                    let start = thread_cpu_ns();
                    self.serve(generation * ops, ops);
                    thread_cpu_ns() - start
                });
                serving.join().expect("it does not panic")
            });
        }
        cpu_ns
    }

    fn finish(&mut self) -> Result<(), String> {
        self.live.iter().flatten().try_for_each(|block| prove::<A>(block.at()))?;
        self.live.clear();
        Ok(())
    }
}

/// The workload.
struct Larson;

impl Pattern for Larson {
    const NAME: &'static str = "larson";
    const ABOUT: &'static str =
        "threads replace blocks of 16 to 512 bytes, end, and pass their blocks to the next thread";
    const GROUP: Group = Group::Threads;
    const OPS: u64 = 1_600_000;
    const CPUS: usize = 2;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let lanes = threads::cpus().len().clamp(2, 8) as u64;
        let ops = (task.ops / lanes / GENERATIONS).max(1) * GENERATIONS;
        let part = |lane| Lane::<A>::new(ops, task.seed + lane, 16..=512) as Box<dyn Part>;
        let parts = (0..lanes).map(part).collect();
        threads::run(ops * lanes, parts)
    }
}
