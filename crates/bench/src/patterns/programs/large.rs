//! Large blocks that are kept for a while: what a program with buffers of megabytes does.

use super::super::{Group, Pattern, Task};
use crate::block::AnyBlock;
use crate::clock::Sample;
use crate::process::{Done, measured};
use crate::random::Random;
use crate::subject::Subject;

/// The number of blocks that are live at once.
const SLOTS: usize = 20;
/// The sizes in bytes.
const LEAST: u64 = 5 << 20;
const MOST: u64 = 25 << 20;

/// Replaces random blocks of 5 to 25 MiB, and writes to every page.
pub(super) struct LargeSlots;

impl Pattern for LargeSlots {
    const NAME: &'static str = "large-slots";
    const ABOUT: &'static str =
        "20 blocks of 5 to 25 MiB: a random one is freed, another one allocated, every page written";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 100;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let mut random = Random::new(task.seed);
        let mut live: Vec<Option<AnyBlock<A>>> = (0..SLOTS).map(|_| None).collect();
        measured(|| {
            for step in 0..task.ops as usize {
                // The first ones fill the slots.
                let place = if step < SLOTS { step } else { random.below(SLOTS as u64) as usize };
                drop(live[place].take());
                live[place] = Some(AnyBlock::paged((LEAST + random.below(MOST - LEAST + 1)) as usize));
            }
            Done { ops: task.ops, blocks: live.into_iter().flatten().collect() }
        })
    }
}
