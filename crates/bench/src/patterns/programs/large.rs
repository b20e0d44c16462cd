//! Blocks of page frames that are kept for a while: what a program with large buffers does.

use super::super::{Group, Pattern, Task};
use crate::block::AnyBlock;
use crate::clock::Sample;
use crate::process::{Done, measured};
use crate::random::Random;
use crate::subject::Subject;

/// Replaces random blocks of 5 to 25 MiB, and writes to every page.
pub(super) struct LargeSlots;

impl Pattern for LargeSlots {
    const NAME: &'static str = "large-slots";
    const ABOUT: &'static str =
        "20 blocks of 5 to 25 MiB: a random one is freed, another one allocated, every page written";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 100;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        replace::<A>(task, 20, (5 << 20, 25 << 20))
    }
}

/// As [`LargeSlots`], with blocks of 64 to 264 KiB.
pub(super) struct MediumSlots;

impl Pattern for MediumSlots {
    const NAME: &'static str = "medium-slots";
    const ABOUT: &'static str =
        "200 blocks of 64 to 264 KiB: a random one is freed, another one allocated, every page written";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 20_000;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        replace::<A>(task, 200, (64 << 10, 264 << 10))
    }
}

/// Fills `slots` places with blocks of `least` to `most` bytes, then replaces random ones.
fn replace<A: Subject>(task: Task, slots: usize, (least, most): (u64, u64)) -> Result<Sample, String> {
    let mut random = Random::new(task.seed);
    let mut live: Vec<Option<AnyBlock<A>>> = (0..slots).map(|_| None).collect();
    measured(|| {
        for step in 0..task.ops as usize {
            let place = if step < slots { step } else { random.below(slots as u64) as usize };
            drop(live[place].take());
            live[place] = Some(AnyBlock::paged((least + random.below(most - least + 1)) as usize));
        }
        Done { ops: task.ops, blocks: live.into_iter().flatten().collect() }
    })
}
