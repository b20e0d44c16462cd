//! The patterns of well-known benchmark programs for allocators, from descriptions of what the programs do.
//! None of them is the program: sizes, counts and proportions are chosen here.
//!
//! Each sample runs in a process of its own, from the first allocation on: CPU time, page faults and peak
//! memory then belong to one workload and one allocator ([`crate::process`]). Lists and queues that hold the
//! blocks are the C library's under every allocator. An operation is an allocation and the free of its block.
//!
//! ```text
//! large    large-slots, medium-slots                     blocks of page frames
//! share    mstress-like, rptest-like, xmalloc-like       blocks that other threads free
//! slots    larson-sized, simple-threads, alloc-test-like blocks that are replaced in tables
//! lists    simple-like, espresso-like, cfrac-like        small blocks of one thread
//! ```

mod large;
mod lists;
mod share;
mod slots;

use super::{Pattern, Workload, of};
use crate::block::AnyBlock;
use crate::random::Random;
use crate::subject::{Role, Subject, Subjects};
use crate::threads;

pub(super) fn workloads<S: Subjects>() -> Vec<Workload> {
    let all = [
        of::<large::LargeSlots, S>(),
        of::<large::MediumSlots, S>(),
        of::<share::Stress, S>(),
        of::<share::Ring, S>(),
        of::<share::Crowds, S>(),
        of::<slots::LarsonSized, S>(),
        of::<lists::Simple, S>(),
        of::<slots::SimpleThreads, S>(),
        of::<slots::AllocTest, S>(),
        of::<lists::Espresso, S>(),
        of::<lists::Cfrac, S>(),
    ];
    all.into_iter().map(without_large_floor).collect()
}

/// Leaves the floor out where blocks are larger than its ring has: the C library would serve them.
fn without_large_floor(mut workload: Workload) -> Workload {
    if [large::LargeSlots::NAME, large::MediumSlots::NAME].contains(&workload.name) {
        workload.contestants.retain(|one| one.role != Role::Floor);
    }
    workload
}

/// The number of threads of a workload with several.
fn threads_here() -> u64 {
    threads::cpus().len().clamp(2, 8) as u64
}

/// A random size from `least` to `most` bytes of which small ones are likelier: each doubling is as likely as
/// the next one.
pub(super) fn skewed(random: &mut Random, least: u64, most: u64) -> usize {
    (least as f64 * (most as f64 / least as f64).powf(random.unit())) as usize
}

/// A table of random sizes, drawn by `draw`. Its length is a power of two.
pub(super) fn sizes(seed: u64, mut draw: impl FnMut(&mut Random) -> usize) -> Vec<u32> {
    const TABLE: usize = 4096;
    let mut random = Random::new(seed);
    (0..TABLE).map(|_| draw(&mut random) as u32).collect()
}

/// The size at a step of a table of sizes.
fn at(sizes: &[u32], step: usize) -> usize {
    sizes[step % sizes.len()] as usize
}

/// The blocks that a thread allocates in a turn. Threads begin at different places in the table.
fn batch<A: Subject>(sizes: &[u32], thread: u64, turn: usize, blocks: usize) -> Vec<AnyBlock<A>> {
    let first = turn * blocks + thread as usize * 1021;
    (first..first + blocks).map(|step| AnyBlock::new(at(sizes, step))).collect()
}

/// Runs `work` on each of some threads. Returns their blocks.
fn crowd<A: Subject>(threads: u64, work: impl Fn(u64) -> Vec<AnyBlock<A>> + Sync) -> Vec<AnyBlock<A>> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each doubling from 8 to 2048 bytes has an eighth of the sizes.
    #[test]
    fn small_sizes_are_likelier() {
        let table = sizes(1, |random| skewed(random, 8, 2048));
        assert!(table.iter().all(|bytes| (8..2048).contains(bytes)));
        for power in 3..11 {
            let inside = table.iter().filter(|bytes| bytes.ilog2() == power).count();
            let eighth = table.len() / 8;
            assert!(inside.abs_diff(eighth) < eighth / 4, "{inside} from {} bytes on", 1 << power);
        }
    }
}
