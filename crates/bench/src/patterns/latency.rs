//! The time of each call. A table of places; each step draws one: a block there is freed, else one is
//! allocated. One block in 256 has up to 32 KiB, one in 16,384 up to 1 MiB, the others up to 1 KiB. Of two
//! threads each frees half of the other one's blocks.

use super::programs::{sizes, skewed};
use super::{Group, Pattern, Task, Workload, of};
use crate::block::AnyBlock;
use crate::clock::Sample;
use crate::process::{Done, measured};
use crate::random::Random;
use crate::subject::{Role, Subject, Subjects, prove};
use crate::times::{Calls, Histogram};
use std::sync::{Mutex, PoisonError};

pub(super) fn workloads<S: Subjects>() -> Vec<Workload> {
    vec![of::<Latency<1>, S>(), of::<Latency<2>, S>()]
}

/// The number of places of a thread.
const PLACES: usize = 65_536;
/// Blocks for the proof of their allocator.
const PROOFS: usize = 64;

/// Blocks on their way to a thread.
type Passed<A> = Vec<Mutex<Option<AnyBlock<A>>>>;

/// The workload of one or of two threads.
struct Latency<const THREADS: usize>;

impl<const THREADS: usize> Pattern for Latency<THREADS> {
    const NAME: &'static str = match THREADS {
        1 => "latency",
        _ => "latency-threads",
    };
    const ABOUT: &'static str = match THREADS {
        1 => "the time of each call: blocks of 16 bytes to 1 MiB come and go in a table of 65,536 places",
        _ => "the time of each call: two threads with such tables, which free half of each other's blocks",
    };
    const GROUP: Group = Group::Latency;
    const OPS: u64 = 100_000_000;
    const CPUS: usize = THREADS;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let steps = (task.ops / THREADS as u64).max(1);
        let mut passed: Vec<Passed<A>> = Vec::new();
        passed.resize_with(THREADS, || (0..PLACES).map(|_| Mutex::new(None)).collect());
        let mut lanes: Vec<Lane<A>> = (0..THREADS).map(|number| Lane::new(number, task.seed)).collect();
        let (mut malloc, mut free) = (Histogram::new(), Histogram::new());
        let sample = measured(|| {
            std::thread::scope(|scope| {
                let passed = &passed;
                let threads: Vec<_> =
                    lanes.iter_mut().map(|lane| scope.spawn(move || lane.run(steps, passed))).collect();
                for thread in threads {
                    let [mallocs, frees] = thread.join().expect("it does not panic");
                    malloc.add(&mallocs);
                    free.add(&frees);
                }
            });
            let blocks = (1..=PROOFS).map(|size| AnyBlock::<A>::new(size * 16)).collect();
            Done { ops: steps * THREADS as u64, blocks }
        })?;
        // The C library serves a floor's blocks that are larger than its ring.
        let mut left = lanes.iter().flat_map(|lane| &lane.own).flatten().filter(|_| A::ROLE != Role::Floor);
        left.try_for_each(|block| prove::<A>(block.at()))?;
        Ok(Sample { calls: Some(Calls { malloc: malloc.times(), free: free.times() }), ..sample })
    }
}

/// A thread's table.
struct Lane<A: Subject> {
    number: usize,
    own: Vec<Option<AnyBlock<A>>>,
    random: Random,
    /// Sizes up to 1 KiB, 32 KiB and 1 MiB.
    sizes: [Vec<u32>; 3],
}

impl<A: Subject> Lane<A> {
    fn new(number: usize, seed: u64) -> Lane<A> {
        let up_to = |most: u64| sizes(seed, |random| skewed(random, 16, most));
        Lane {
            number,
            own: (0..PLACES).map(|_| None).collect(),
            random: Random::new(seed + number as u64),
            sizes: [1 << 10, 32 << 10, 1 << 20].map(up_to),
        }
    }

    /// Makes the steps. Returns the times of allocations, and of frees.
    fn run(&mut self, steps: u64, passed: &[Passed<A>]) -> [Histogram; 2] {
        let (mut malloc, mut free) = (Histogram::new(), Histogram::new());
        let other = passed.get(1 - self.number.min(1)).filter(|_| passed.len() > 1);
        for step in 0..steps {
            let draw = self.random.next();
            let place = draw as usize % PLACES;
            match (self.own[place].take(), other) {
                (None, _) => {
                    let bytes = self.bytes();
                    let mut block = malloc.time(|| AnyBlock::untouched(bytes));
                    block.touch();
                    self.own[place] = Some(block);
                }
                (Some(block), Some(other)) if draw >> 40 & 1 == 1 => {
                    if let Some(block) = changed(&other[place], Some(block)) {
                        free.time(|| drop(block));
                    }
                }
                (Some(block), _) => free.time(|| drop(block)),
            }
            if other.is_some() && step % 4 == 0 {
                let place = self.random.next() as usize % PLACES;
                if let Some(block) = changed(&passed[self.number][place], None) {
                    free.time(|| drop(block));
                }
            }
        }
        [malloc, free]
    }

    fn bytes(&mut self) -> usize {
        let draw = self.random.next();
        let table = match draw {
            draw if draw % 16_384 == 0 => &self.sizes[2],
            draw if draw % 256 == 0 => &self.sizes[1],
            _ => &self.sizes[0],
        };
        table[(draw >> 32) as usize % table.len()] as usize
    }
}

/// Puts a block into a place, and returns the one that was there.
fn changed<A: Subject>(place: &Mutex<Option<AnyBlock<A>>>, new: Option<AnyBlock<A>>) -> Option<AnyBlock<A>> {
    std::mem::replace(&mut *place.lock().unwrap_or_else(PoisonError::into_inner), new)
}
