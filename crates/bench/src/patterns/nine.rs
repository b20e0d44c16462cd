//! Nine patterns of one thread, with the names that published measurements of allocators use. An operation is
//! an allocation, a write of eight bytes, and a free.

use super::{Pattern, Task, Workload, of};
use crate::block::{AnyBlock, Block};
use crate::clock::{Sample, measured};
use crate::random::Random;
use crate::subject::{Subject, Subjects, prove};

pub(super) fn workloads<S: Subjects>() -> Vec<Workload> {
    vec![
        of::<Pair<64>, S>(),
        of::<Fifo<64, 1000>, S>(),
        of::<Lifo<64, 1000>, S>(),
        of::<Shuffled, S>(),
        of::<Mixed, S>(),
        of::<Pair<4096>, S>(),
        of::<Fifo<4096, 64>, S>(),
        of::<Lifo<64, 4>, S>(),
        of::<Zeroed, S>(),
    ]
}

/// Allocates a block and frees it at once.
pub(crate) struct Pair<const BYTES: usize>;

impl<const BYTES: usize> Pattern for Pair<BYTES> {
    const NAME: &'static str = if BYTES == 64 { "pair64" } else { "pair4096" };
    const ABOUT: &'static str =
        if BYTES == 64 { "64 bytes, freed at once" } else { "4096 bytes, freed at once" };

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let sample = measured(task.ops, |ops| (0..ops).for_each(|_| drop(Block::<A, BYTES>::new())));
        prove::<A>(Block::<A, BYTES>::new().at())?;
        Ok(sample)
    }
}

/// Allocates many blocks and frees them in the order of allocation.
pub(crate) struct Fifo<const BYTES: usize, const COUNT: usize>;

impl<const BYTES: usize, const COUNT: usize> Pattern for Fifo<BYTES, COUNT> {
    const NAME: &'static str = if BYTES == 64 { "batch64-fifo" } else { "batch4096x64" };
    const ABOUT: &'static str = if BYTES == 64 {
        "1000 blocks of 64 bytes, freed in the same order"
    } else {
        "64 blocks of 4096 bytes, freed in the same order"
    };

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let mut blocks: Vec<Block<A, BYTES>> = Vec::with_capacity(COUNT);
        let sample = measured(rounded(task.ops, COUNT), |ops| {
            for _ in 0..ops / COUNT as u64 {
                (0..COUNT).for_each(|_| blocks.push(Block::new()));
                blocks.clear();
            }
        });
        (0..COUNT).for_each(|_| blocks.push(Block::new()));
        blocks.iter().try_for_each(|block| prove::<A>(block.at()))?;
        Ok(sample)
    }
}

/// Allocates many blocks and frees them in reverse order.
struct Lifo<const BYTES: usize, const COUNT: usize>;

impl<const BYTES: usize, const COUNT: usize> Pattern for Lifo<BYTES, COUNT> {
    const NAME: &'static str = if COUNT == 4 { "pair64x4-lifo" } else { "batch64-lifo" };
    const ABOUT: &'static str = if COUNT == 4 {
        "4 blocks of 64 bytes, freed in reverse order"
    } else {
        "1000 blocks of 64 bytes, freed in reverse order"
    };

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let mut blocks: Vec<Block<A, BYTES>> = Vec::with_capacity(COUNT);
        let sample = measured(rounded(task.ops, COUNT), |ops| {
            for _ in 0..ops / COUNT as u64 {
                (0..COUNT).for_each(|_| blocks.push(Block::new()));
                while let Some(block) = blocks.pop() {
                    drop(block);
                }
            }
        });
        (0..COUNT).for_each(|_| blocks.push(Block::new()));
        blocks.iter().try_for_each(|block| prove::<A>(block.at()))?;
        Ok(sample)
    }
}

/// Allocates many blocks and frees them in random order.
struct Shuffled;

impl Pattern for Shuffled {
    const NAME: &'static str = "batch64-rand";
    const ABOUT: &'static str = "1000 blocks of 64 bytes, freed in random order";

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        const COUNT: usize = 1000;
        let mut places: Vec<u16> = (0..COUNT as u16).collect();
        Random::new(task.seed).shuffle(&mut places);
        let mut blocks: Vec<Option<Block<A, 64>>> = (0..COUNT).map(|_| None).collect();
        let sample = measured(rounded(task.ops, COUNT), |ops| {
            for _ in 0..ops / COUNT as u64 {
                places.iter().for_each(|place| blocks[*place as usize] = Some(Block::new()));
                blocks.iter_mut().for_each(|block| drop(block.take()));
            }
        });
        blocks.fill_with(|| Some(Block::new()));
        blocks.iter().flatten().try_for_each(|block| prove::<A>(block.at()))?;
        Ok(sample)
    }
}

/// Frees a random one of 1024 live blocks, and allocates another of another size in its place.
struct Mixed;

impl Pattern for Mixed {
    const NAME: &'static str = "mixed16-1024";
    const ABOUT: &'static str =
        "16 to 1024 bytes: a random one of 1024 live blocks is freed, and another one allocated";

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        const LIVE: usize = 1024;
        /// The length of the tables of sizes and places. The steps through them share no factor with it.
        const TABLE: usize = 4096;
        let mut random = Random::new(task.seed);
        let sizes: Vec<u16> = (0..TABLE).map(|_| 16 + random.below(1009) as u16).collect();
        let places: Vec<u16> = (0..TABLE).map(|_| random.below(LIVE as u64) as u16).collect();
        let mut live: Vec<Option<AnyBlock<A>>> =
            sizes[..LIVE].iter().map(|size| Some(AnyBlock::new(*size as usize))).collect();
        let sample = measured(task.ops, |ops| {
            for step in 0..ops as usize {
                let slot = &mut live[places[step % TABLE] as usize];
                drop(slot.take());
                *slot = Some(AnyBlock::new(sizes[step * 7 % TABLE] as usize));
            }
        });
        live.iter().flatten().try_for_each(|block| prove::<A>(block.at()))?;
        Ok(sample)
    }
}

/// Allocates a zeroed block and frees it at once.
struct Zeroed;

impl Pattern for Zeroed {
    const NAME: &'static str = "zeroed256";
    const ABOUT: &'static str = "256 bytes of zeros, freed at once";

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let sample = measured(task.ops, |ops| (0..ops).for_each(|_| drop(Block::<A, 256>::zeroed())));
        prove::<A>(Block::<A, 256>::zeroed().at())?;
        Ok(sample)
    }
}

/// Rounds the number of operations to whole batches, at least eight, so that the warm-up has one batch.
fn rounded(ops: u64, batch: usize) -> u64 {
    (ops / batch as u64).max(8) * batch as u64
}
