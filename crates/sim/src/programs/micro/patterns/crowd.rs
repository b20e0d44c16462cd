//! Patterns of many threads, one on each CPU: what programs do whose threads hand objects to each other. How
//! an object gets to the other thread is not charged, as it is the program's.

use super::Crowd;
use super::bench::{Barrier, Bench};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use slablab_model::{Addr, Ps, Timed};
use slablab_platform::CpuId;
use std::cell::RefCell;
use std::rc::Rc;

/// Replacements of a table, for each of its objects, until another thread goes on with it.
const GENERATION: u32 = 4;
/// Places in which threads leave objects for each other, for each thread.
const PLACES: usize = 16;

/// Objects that threads pass to each other: tables, batches or places.
type Shared = Rc<Vec<RefCell<Vec<Addr>>>>;

/// One thread of a crowd.
struct Member {
    bench: Rc<Bench>,
    barrier: Rc<Barrier>,
    shared: Shared,
    random: RefCell<Pcg64Mcg>,
    number: usize,
    threads: usize,
    objects: u32,
}

impl Bench {
    /// Starts a thread on each of the first `threads` CPUs, which does `rounds` rounds.
    pub(super) fn crowd(self: &Rc<Self>, of: Crowd, threads: u16, objects: u32, rounds: u64, start: Ps) {
        let barrier = Rc::new(Barrier::of(threads));
        let shared = Rc::new((0..usize::from(threads) * PLACES).map(|_| RefCell::default()).collect());
        for number in 0..threads {
            let member = Member {
                bench: self.clone(),
                barrier: barrier.clone(),
                shared: Rc::clone(&shared),
                random: RefCell::new(Pcg64Mcg::seed_from_u64(self.draw() ^ u64::from(number))),
                number: number.into(),
                threads: threads.into(),
                objects,
            };
            Timed::spawn(CpuId(number), start, move || {
                // Without memory the run has failed, and this thread ends.
                let _ = match of {
                    Crowd::Churn => member.churn(rounds),
                    Crowd::Larson => member.larson(rounds),
                    Crowd::OneWay => member.one_way(rounds),
                    Crowd::Swap => member.swap(rounds),
                };
            });
        }
    }
}

impl Member {
    fn below(&self, end: usize) -> usize {
        (self.random.borrow_mut().next_u64() % end as u64) as usize
    }

    fn alloc(&self) -> Option<Addr> {
        Timed::turn();
        self.bench.alloc()
    }

    fn free(&self, object: Addr) {
        Timed::turn();
        self.bench.free(object);
    }

    fn free_all(&self, mut objects: Vec<Addr>) {
        objects.drain(..).for_each(|object| self.free(object));
    }

    /// Allocates a batch and frees it, the first first.
    fn churn(&self, rounds: u64) -> Option<()> {
        for _ in 0..rounds {
            let batch: Vec<Addr> = (0..self.objects).map_while(|_| self.alloc()).collect();
            if batch.len() < self.objects as usize {
                return None;
            }
            self.free_all(batch);
        }
        Some(())
    }

    /// Replaces random objects of a table. Then the next thread's table is this thread's.
    fn larson(&self, rounds: u64) -> Option<()> {
        for _ in 0..self.objects / GENERATION {
            let object = self.alloc()?;
            self.shared[self.number].borrow_mut().push(object);
        }
        for round in 0..rounds as usize {
            self.barrier.wait();
            let table = &self.shared[(self.number + round) % self.threads];
            let objects = table.borrow().len();
            for _ in 0..self.objects {
                let place = self.below(objects);
                let old = table.borrow()[place];
                self.free(old);
                let new = self.alloc()?;
                table.borrow_mut()[place] = new;
            }
        }
        self.barrier.wait();
        self.free_all(self.shared[self.number].take());
        Some(())
    }

    /// Half of the threads allocate batches, half free them. A batch goes to another thread each time.
    fn one_way(&self, rounds: u64) -> Option<()> {
        let pairs = (self.threads / 2).max(1);
        // The batches of this round and of the last one.
        let place = |producer: usize, round: usize| &self.shared[producer * 2 + round % 2];
        for round in 0..=rounds as usize {
            if self.number < pairs && round < rounds as usize {
                for _ in 0..self.objects * 2 {
                    let object = self.alloc()?;
                    place(self.number, round).borrow_mut().push(object);
                }
            } else if self.number >= pairs && round > 0 {
                let batch = place((self.number + round) % pairs, round - 1).take();
                self.free_all(batch);
            }
            self.barrier.wait();
        }
        Some(())
    }

    /// Allocates and frees at random, and swaps every fourth object with one in a place that all threads
    /// share.
    fn swap(&self, rounds: u64) -> Option<()> {
        for _ in 0..rounds {
            let mut held: Vec<Addr> = Vec::new();
            let mut allocated = 0;
            while allocated < self.objects {
                let draw = self.below(4);
                if draw < 2 {
                    held.push(self.alloc()?);
                    allocated += 1;
                } else if draw == 2 && !held.is_empty() {
                    let object = held.swap_remove(self.below(held.len()));
                    self.free(object);
                } else if !held.is_empty() {
                    let mine = held.swap_remove(self.below(held.len()));
                    let place = &self.shared[self.below(self.shared.len())];
                    let theirs = place.replace(vec![mine]);
                    held.extend(theirs);
                }
            }
            self.free_all(held);
        }
        self.barrier.wait();
        for place in self.shared[self.number * PLACES..][..PLACES].iter() {
            let left = place.take();
            self.free_all(left);
        }
        Some(())
    }
}
