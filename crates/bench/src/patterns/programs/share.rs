//! Blocks that one thread allocates and another one frees, as in mstress, rptest and xmalloc.

use super::super::{Group, Pattern, Task};
use super::{at, batch, crowd, sizes, skewed, threads_here};
use crate::block::{AnyBlock, free};
use crate::clock::Sample;
use crate::process::{Done, measured};
use crate::random::Random;
use crate::subject::Subject;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

type Slot<A> = Mutex<Option<AnyBlock<A>>>;

/// Puts a block, or none, into a slot. Returns what was there.
fn swap<A: Subject>(slot: &Slot<A>, block: Option<AnyBlock<A>>) -> Option<AnyBlock<A>> {
    std::mem::replace(&mut *slot.lock().expect("no thread panics"), block)
}

/// In the manner of mstress.
pub(super) struct Stress;

impl Stress {
    /// The number of places in which threads leave items for each other.
    const PLACES: usize = 1000;
    /// The threads end after a round, and new ones begin.
    const ROUNDS: u64 = 8;

    /// The size of an item: an array of words, most of them short, one of a hundred long.
    fn size(random: &mut Random) -> usize {
        8 * match random.below(100) {
            0 => skewed(random, 128, 4096),
            _ => skewed(random, 1, 128),
        }
    }

    /// One thread in one round: allocates, frees, and swaps. Returns every other item that it has left.
    fn round<A: Subject>(ops: u64, sizes: &[u32], places: &[Slot<A>], seed: u64) -> Vec<AnyBlock<A>> {
        let mut random = Random::new(seed);
        let mut held: Vec<Option<AnyBlock<A>>> = Vec::new();
        let mut allocated = 0;
        while allocated < ops {
            let draw = random.next();
            let place = (draw >> 32) as usize;
            if draw & 1 == 0 {
                held.push(Some(AnyBlock::filled(at(sizes, place))));
                allocated += 1;
            }
            if draw & 2 == 0 && !held.is_empty() {
                // Many of the chosen places are empty: `free(NULL)`.
                let count = held.len();
                free(held[place % count].take());
            }
            if draw & 12 == 0 && !held.is_empty() {
                let count = held.len();
                let one = &mut held[(place >> 8) % count];
                *one = swap(&places[place % Stress::PLACES], one.take());
            }
        }
        held.into_iter().flatten().step_by(2).collect()
    }
}

impl Pattern for Stress {
    const NAME: &'static str = "mstress-like";
    const ABOUT: &'static str =
        "threads fill arrays of 8 bytes to 32 KB, swap items, free(NULL) often, end, in 8 rounds";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 400_000;
    const CPUS: usize = 2;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let threads = threads_here();
        let each = (task.ops / threads / Stress::ROUNDS).max(1);
        let sizes = sizes(task.seed, Stress::size);
        let places: Vec<Slot<A>> = (0..Stress::PLACES).map(|_| Mutex::new(None)).collect();
        measured(|| {
            let mut kept = Vec::new();
            for round in 0..Stress::ROUNDS {
                let seed = |thread| task.seed + round * threads + thread;
                let of_round = crowd(threads, |thread| Stress::round(each, &sizes, &places, seed(thread)));
                // The blocks of a round outlive it by one round.
                kept = of_round;
            }
            places.iter().for_each(|place| free(swap(place, None)));
            kept.truncate(16);
            Done { ops: each * threads * Stress::ROUNDS, blocks: kept }
        })
    }
}

/// In the manner of rptest.
pub(super) struct Ring;

impl Ring {
    /// The number of blocks that a thread allocates in a turn.
    const BATCH: usize = 64;
    /// The number of batches that a thread holds.
    const HELD: usize = 16;
    /// While as many blocks wait for a thread, the others free theirs themselves. Otherwise peak memory
    /// would depend on how long the system keeps a thread from its CPU.
    const WAITING: usize = 512;
}

impl Pattern for Ring {
    const NAME: &'static str = "rptest-like";
    const ABOUT: &'static str =
        "threads hold 1,024 blocks of 16 to 16,000 bytes; half of the frees are the next thread's";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 400_000;
    const CPUS: usize = 2;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let threads = threads_here();
        let turns = (task.ops / threads / Ring::BATCH as u64).max(1);
        let sizes = sizes(task.seed, |random| 16 + random.below(15_985) as usize);
        let inboxes: Vec<Mutex<Vec<AnyBlock<A>>>> = (0..threads).map(|_| Mutex::default()).collect();
        let work = |thread: u64| {
            let mut held: VecDeque<Vec<AnyBlock<A>>> = VecDeque::new();
            let next = &inboxes[((thread + 1) % threads) as usize];
            for turn in 0..turns as usize {
                held.push_back(batch(&sizes, thread, turn, Ring::BATCH));
                if held.len() > Ring::HELD {
                    let mut oldest = held.pop_front().expect("it holds some");
                    let others = oldest.split_off(Ring::BATCH / 2);
                    let mut inbox = next.lock().expect("no thread panics");
                    if inbox.len() < Ring::WAITING {
                        inbox.extend(others);
                    }
                }
                let mine = std::mem::take(&mut *inboxes[thread as usize].lock().expect("no thread panics"));
                drop(mine);
            }
            held.pop_back().unwrap_or_default()
        };
        measured(|| {
            let mut blocks = crowd(threads, work);
            inboxes.iter().for_each(|inbox| inbox.lock().expect("no thread panics").clear());
            blocks.truncate(16);
            Done { ops: turns * threads * Ring::BATCH as u64, blocks }
        })
    }
}

/// In the manner of xmalloc.
pub(super) struct Crowds;

impl Crowds {
    /// The number of blocks in a batch.
    const BATCH: usize = 128;
    /// The number of batches that wait at most.
    const WAITING: usize = 64;
}

/// Batches that wait for a thread that frees them.
struct Queue<A: Subject> {
    waiting: Mutex<VecDeque<Vec<AnyBlock<A>>>>,
    room: Condvar,
    some: Condvar,
}

impl<A: Subject> Queue<A> {
    fn push(&self, batch: Vec<AnyBlock<A>>) {
        let mut waiting = self.waiting.lock().expect("no thread panics");
        while waiting.len() >= Crowds::WAITING {
            waiting = self.room.wait(waiting).expect("no thread panics");
        }
        waiting.push_back(batch);
        drop(waiting);
        self.some.notify_one();
    }

    fn pop(&self) -> Vec<AnyBlock<A>> {
        let mut waiting = self.waiting.lock().expect("no thread panics");
        loop {
            if let Some(batch) = waiting.pop_front() {
                drop(waiting);
                self.room.notify_one();
                return batch;
            }
            waiting = self.some.wait(waiting).expect("no thread panics");
        }
    }
}

impl Pattern for Crowds {
    const NAME: &'static str = "xmalloc-like";
    const ABOUT: &'static str =
        "half of the threads only allocate batches of 128 blocks of 8 to 512 bytes, half only free them";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 1_000_000;
    const CPUS: usize = 2;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let pairs = threads_here() / 2;
        let batches = (task.ops / pairs / Crowds::BATCH as u64).max(1);
        let sizes = sizes(task.seed, |random| skewed(random, 8, 512));
        let queue = Queue::<A> { waiting: Mutex::default(), room: Condvar::new(), some: Condvar::new() };
        let work = |thread: u64| {
            if thread >= pairs {
                (1..batches).for_each(|_| drop(queue.pop()));
                return queue.pop();
            }
            for turn in 0..batches as usize {
                queue.push(batch(&sizes, thread, turn, Crowds::BATCH));
            }
            Vec::new()
        };
        measured(|| {
            let mut blocks = crowd(2 * pairs, work);
            blocks.truncate(16);
            Done { ops: batches * pairs * Crowds::BATCH as u64, blocks }
        })
    }
}
