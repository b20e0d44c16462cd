//! Small blocks of one thread, as in glibc's simple benchmark, espresso and cfrac.

use super::super::{Group, Pattern, Task};
use super::{at, sizes, skewed};
use crate::block::{AnyBlock, free};
use crate::clock::Sample;
use crate::process::{Done, measured};
use crate::random::Random;
use crate::subject::Subject;
use std::collections::VecDeque;

/// In the manner of glibc's simple benchmark of malloc.
pub(super) struct Simple;

impl Simple {
    /// The lengths of the arrays that are filled in turn.
    const LENGTHS: [usize; 4] = [25, 100, 400, 1600];
}

impl Pattern for Simple {
    const NAME: &'static str = "simple-like";
    const ABOUT: &'static str =
        "arrays of 25 to 1,600 blocks of 8 to 1,024 bytes: filled, half freed, filled again, freed in order";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 3_000_000;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let sizes = sizes(task.seed, |random| skewed(random, 8, 1024));
        let mut arrays: Vec<Vec<AnyBlock<A>>> = Simple::LENGTHS.iter().map(|_| Vec::new()).collect();
        measured(|| {
            let mut ops = 0;
            let mut fill = |array: &mut Vec<AnyBlock<A>>, length: usize| {
                while array.len() < length {
                    array.push(AnyBlock::new(at(&sizes, ops as usize)));
                    ops += 1;
                }
                ops
            };
            loop {
                let mut done = 0;
                for (array, length) in arrays.iter_mut().zip(Simple::LENGTHS) {
                    array.clear();
                    fill(array, length);
                    array.drain(..length / 2);
                    done = fill(array, length);
                }
                if done >= task.ops {
                    let blocks = arrays.into_iter().flatten().step_by(128).collect();
                    return Done { ops: done, blocks };
                }
            }
        })
    }
}

/// In the manner of espresso.
pub(super) struct Espresso;

impl Espresso {
    /// The number of sets that are live at once, and the sizes of a set's elements in bytes.
    const SETS: usize = 64;
    const ELEMENTS: [usize; 8] = [16, 16, 24, 32, 32, 48, 80, 200];
}

impl Pattern for Espresso {
    const NAME: &'static str = "espresso-like";
    const ABOUT: &'static str = "64 sets, each an array that grows by realloc and up to 200 blocks of 16 to 200 bytes; a random one is replaced";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 2_000_000;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let mut random = Random::new(task.seed);
        let lengths = sizes(task.seed, |random| skewed(random, 4, 200));
        let mut sets: Vec<Vec<AnyBlock<A>>> = (0..Espresso::SETS).map(|_| Vec::new()).collect();
        measured(|| {
            let mut ops = 0;
            while ops < task.ops {
                let draw = random.next() as usize;
                let set = &mut sets[draw % Espresso::SETS];
                // In the order of a stack. A set that never had elements has no array to free.
                if set.is_empty() {
                    free::<A>(None);
                }
                while let Some(block) = set.pop() {
                    drop(block);
                }
                let mut array = AnyBlock::new(64);
                for element in 0..at(&lengths, draw >> 8) {
                    if (element + 1) * 8 > array.bytes() {
                        array.resize(array.bytes() * 2);
                    }
                    let bytes = Espresso::ELEMENTS[(draw >> (element % 32)) % 8];
                    set.push(AnyBlock::new(bytes));
                    ops += 1;
                }
                set.push(array);
                ops += 1;
            }
            Done { ops, blocks: sets.into_iter().filter_map(|mut set| set.pop()).take(16).collect() }
        })
    }
}

/// In the manner of cfrac.
pub(super) struct Cfrac;

impl Cfrac {
    /// The number of results that live on.
    const KEPT: usize = 4000;
    /// The number of temporary numbers that are live at once.
    const TEMPORARY: usize = 12;
}

impl Pattern for Cfrac {
    const NAME: &'static str = "cfrac-like";
    const ABOUT: &'static str =
        "numbers of 16 to 64 bytes, freed after 12 more; one of 50 is kept until 4,000 are";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 4_000_000;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let sizes = sizes(task.seed, |random| skewed(random, 16, 65));
        let mut temporary: VecDeque<AnyBlock<A>> = VecDeque::with_capacity(Cfrac::TEMPORARY + 1);
        let mut kept: VecDeque<AnyBlock<A>> = VecDeque::with_capacity(Cfrac::KEPT + 1);
        measured(|| {
            for step in 0..task.ops as usize {
                let number = AnyBlock::new(at(&sizes, step));
                if step % 50 == 0 {
                    kept.push_back(number);
                    if kept.len() > Cfrac::KEPT {
                        drop(kept.pop_front());
                    }
                    continue;
                }
                temporary.push_back(number);
                if temporary.len() > Cfrac::TEMPORARY {
                    drop(temporary.pop_front());
                }
            }
            Done { ops: task.ops, blocks: temporary.into_iter().collect() }
        })
    }
}
