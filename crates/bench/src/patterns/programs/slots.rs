//! Tables of blocks that are replaced at random, as in larson, in glibc's benchmark with threads and in
//! alloc-test.

use super::super::larson::{GENERATIONS, Lane};
use super::super::{Group, Pattern, Task};
use super::{at, crowd, sizes, skewed, threads_here};
use crate::block::{AnyBlock, replace};
use crate::clock::Sample;
use crate::process::{Done, measured};
use crate::random::Random;
use crate::subject::Subject;
use crate::threads::Part;

/// In the manner of larson, with frees that say the block's size.
///
/// `GlobalAlloc::dealloc` gets the size: slablab's process heap, jemalloc (`sdallocx`) and snmalloc use it.
/// The bindings of mimalloc and rpmalloc call the free without a size, as glibc, which has no other.
pub(super) struct LarsonSized;

impl Pattern for LarsonSized {
    const NAME: &'static str = "larson-sized";
    const ABOUT: &'static str =
        "as larson, blocks of 8 to 1,000 bytes, frees with the size where there are such";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 1_600_000;
    const CPUS: usize = 2;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let threads = threads_here();
        let ops = (task.ops / threads / GENERATIONS).max(1) * GENERATIONS;
        let lane = |thread| Lane::<A>::new(ops, task.seed + thread, 8..=1000);
        let mut lanes: Vec<Box<Lane<A>>> = (0..threads).map(lane).collect();
        measured(|| {
            std::thread::scope(|scope| {
                for lane in &mut lanes {
                    scope.spawn(|| {
                        lane.prepare();
                        lane.work();
                    });
                }
            });
            let blocks = lanes.iter_mut().flat_map(|lane| lane.some()).collect();
            drop(lanes);
            Done { ops: ops * threads, blocks }
        })
    }
}

/// In the manner of glibc's benchmark of malloc with threads.
pub(super) struct SimpleThreads;

impl SimpleThreads {
    /// The number of blocks in the table of a thread.
    const LIVE: usize = 1024;

    fn work<A: Subject>(ops: u64, sizes: &[u32], seed: u64) -> Vec<AnyBlock<A>> {
        let mut random = Random::new(seed);
        let mut live: Vec<Option<AnyBlock<A>>> = (0..SimpleThreads::LIVE).map(|_| None).collect();
        for _ in 0..ops {
            let draw = random.next() as usize;
            replace(&mut live[draw % SimpleThreads::LIVE], at(sizes, draw >> 32));
        }
        live.into_iter().flatten().step_by(64).collect()
    }
}

impl Pattern for SimpleThreads {
    const NAME: &'static str = "simple-threads";
    const ABOUT: &'static str =
        "threads each replace random ones of 1,024 blocks of 4 bytes to 32 KB, most of them small";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 2_000_000;
    const CPUS: usize = 2;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let threads = threads_here();
        let each = (task.ops / threads).max(1);
        let sizes = sizes(task.seed, |random| skewed(random, 4, 32_768));
        measured(|| {
            let blocks = crowd(threads, |thread| SimpleThreads::work::<A>(each, &sizes, task.seed + thread));
            Done { ops: each * threads, blocks }
        })
    }
}

/// In the manner of alloc-test.
pub(super) struct AllocTest;

impl AllocTest {
    /// The number of places in the table.
    const PLACES: usize = 1 << 16;
}

impl Pattern for AllocTest {
    const NAME: &'static str = "alloc-test-like";
    const ABOUT: &'static str =
        "a random one of 65,536 places, some much likelier than others, is filled or freed; 8 to 1,024 bytes";
    const GROUP: Group = Group::Programs;
    const OPS: u64 = 800_000;

    fn run<A: Subject>(task: Task) -> Result<Sample, String> {
        let mut random = Random::new(task.seed);
        let sizes = sizes(task.seed, |random| skewed(random, 8, 1024));
        let mut table: Vec<Option<AnyBlock<A>>> = (0..AllocTest::PLACES).map(|_| None).collect();
        measured(|| {
            let mut ops = 0;
            while ops < task.ops {
                let draw = random.next();
                // The cube of a uniform number: the first tenth of the places gets nearly half of the draws.
                let part = (draw >> 11) as f64 / (1u64 << 53) as f64;
                let slot = &mut table[(part * part * part * AllocTest::PLACES as f64) as usize];
                match slot.take() {
                    Some(block) => drop(block),
                    None => {
                        *slot = Some(AnyBlock::filled(at(&sizes, draw as usize)));
                        ops += 1;
                    }
                }
            }
            Done { ops, blocks: table.into_iter().flatten().step_by(4096).collect() }
        })
    }
}
