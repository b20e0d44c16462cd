//! Resident memory of a process: threads with a few objects, many live blocks, and the rest after most and
//! after all blocks are freed.
//!
//! Resident memory belongs to a process, so each allocator runs in a separate process: the program starts
//! itself again ([`crate::child`]).
//!
//! ```text
//! threads     64 of them hold 100 small objects each                  thread_kb
//! live        blocks of all sizes until enough bytes are live         bytes_per_byte
//! churn       a random block is replaced, once per block              churn_peak_per_byte, churn_ns
//! most freed  nine of ten at random; then 2.5 s of little activity    kept_most, kept_most_later
//! all freed   every block; then 2.5 s of little activity              kept, kept_later
//! ```

use crate::block::AnyBlock;
use crate::clock::{resident, resident_soon, thread_cpu_ns};
use crate::contestants::identify;
use crate::random::Random;
use crate::subject::{Role, Subject, prove};
use std::sync::Barrier;
use std::time::Duration;

/// Memory of one process. All bytes are resident memory above `start_bytes`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Footprint {
    /// Resident bytes before the first allocation.
    pub start_bytes: f64,
    /// Bytes per thread, with 64 live threads.
    pub thread_bytes: f64,
    /// Resident bytes per requested byte, with all blocks live.
    pub bytes_per_byte: f64,
    /// The largest resident bytes per requested byte during the churn.
    pub churn_peak_per_byte: f64,
    /// CPU time in ns of one free and one allocation during the churn.
    pub churn_ns: f64,
    /// Resident bytes after nine of ten blocks were freed.
    pub kept_most_bytes: f64,
    /// Resident bytes after nine of ten blocks were freed, and 2.5 s of little activity.
    pub kept_most_later_bytes: f64,
    /// Resident bytes after all blocks were freed.
    pub kept_bytes: f64,
    /// Resident bytes after all blocks were freed, and 2.5 s of little activity.
    pub kept_later_bytes: f64,
}

/// A figure of a footprint: name, unit, and value in that unit.
pub type Figure = (&'static str, &'static str, fn(&Footprint) -> f64);

/// The figures of a footprint, in the order of tables.
pub const FIGURES: [Figure; 8] = [
    ("thread", "KB", |one| one.thread_bytes / 1e3),
    ("live", "B/B", |one| one.bytes_per_byte),
    ("churn peak", "B/B", |one| one.churn_peak_per_byte),
    ("churn", "ns", |one| one.churn_ns),
    ("90 % freed", "MB", |one| one.kept_most_bytes / 1e6),
    ("later", "MB", |one| one.kept_most_later_bytes / 1e6),
    ("all freed", "MB", |one| one.kept_bytes / 1e6),
    ("later still", "MB", |one| one.kept_later_bytes / 1e6),
];

/// The allocator of a footprint.
#[derive(Clone, Debug)]
pub struct Held {
    /// Name of the allocator.
    pub name: &'static str,
    /// The allocator's role.
    pub role: Role,
}

/// The number of threads that live at once.
const THREADS: usize = 64;
/// The pause before the activity. Allocators can return memory during it.
const PAUSE: Duration = Duration::from_millis(2500);
/// Below this number of live bytes there is no pause: such a run is a test.
const PAUSE_FROM: u64 = 10_000_000;

/// A random size. Nine of ten are small, one of ten is up to 8 KB, one of a hundred up to 100 KB.
fn any_size(random: &mut Random) -> usize {
    match random.below(100) {
        0..90 => 16 + random.below(500) as usize,
        90..99 => 500 + random.below(8000) as usize,
        _ => 8000 + random.below(92_000) as usize,
    }
}

/// Simulates a program with little activity.
fn activity<A: Subject>() {
    (0..300_000).for_each(|turn: usize| drop(AnyBlock::<A>::new(16 + turn * 37 % 500)));
}

/// Measures the memory of `A` with `bytes` live bytes.
pub(crate) fn footprint<A: Subject>(bytes: u64, seed: u64) -> Result<Footprint, String> {
    identify::<A>()?;
    let mut random = Random::new(seed);
    // The C library allocates the table of blocks, and all of it is resident before `start` is measured.
    let most = (bytes / 250) as usize + 1000;
    let mut blocks: Vec<Option<AnyBlock<A>>> = Vec::with_capacity(most);
    blocks.resize_with(most, || None);
    let start = resident() as f64;
    let above = || resident() as f64 - start;
    let thread_bytes = threads::<A>(start)?;
    let before = above();
    let (mut live, mut count) = (0u64, 0);
    while live < bytes && count < most {
        let block = AnyBlock::filled(any_size(&mut random));
        live += block.bytes() as u64;
        blocks[count] = Some(block);
        count += 1;
    }
    blocks.truncate(count);
    let samples = blocks.iter().flatten().step_by(count / 100 + 1);
    samples.into_iter().try_for_each(|block| prove::<A>(block.at()))?;
    let bytes_per_byte = (above() - before) / live as f64;
    let (churn_peak, churn_ns) = churn(&mut blocks, &mut random, live);
    let churn_peak_per_byte = (churn_peak - start - before) / live as f64;
    let quiet = || {
        if bytes >= PAUSE_FROM {
            std::thread::sleep(PAUSE);
        }
        activity::<A>();
        above()
    };
    blocks.iter_mut().for_each(|block| {
        if random.below(10) > 0 {
            drop(block.take());
        }
    });
    let kept_most_bytes = above();
    let kept_most_later_bytes = quiet();
    blocks.iter_mut().for_each(|block| drop(block.take()));
    let kept_bytes = above();
    let kept_later_bytes = quiet();
    Ok(Footprint {
        start_bytes: start,
        thread_bytes,
        bytes_per_byte,
        churn_peak_per_byte,
        churn_ns,
        kept_most_bytes,
        kept_most_later_bytes,
        kept_bytes,
        kept_later_bytes,
    })
}

/// Resident bytes per thread, with all threads live.
fn threads<A: Subject>(start: f64) -> Result<f64, String> {
    let (all_hold, seen) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    std::thread::scope(|scope| {
        let one = || {
            let held: Vec<AnyBlock<A>> = (0..100).map(|one| AnyBlock::new(16 + one * 13 % 240)).collect();
            all_hold.wait();
            seen.wait();
            held.iter().try_for_each(|block| prove::<A>(block.at()))
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        all_hold.wait();
        let bytes = resident() as f64 - start;
        seen.wait();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))?;
        Ok(bytes / THREADS as f64)
    })
}

/// Replaces random blocks by new ones, as many times as there are blocks, with about `wanted` live bytes.
/// Returns the largest resident memory, and the CPU time of one replacement in ns.
fn churn<A: Subject>(blocks: &mut [Option<AnyBlock<A>>], random: &mut Random, wanted: u64) -> (f64, f64) {
    let count = blocks.len();
    let mut live = wanted;
    let (mut peak, mut cpu_ns) = (resident() as f64, 0);
    let turns = 64.min(count);
    let each = count / turns;
    for _ in 0..turns {
        // The random numbers are drawn before, and the peak is read after, the timed part.
        let steps: Vec<(usize, usize)> =
            (0..each).map(|_| (random.below(count as u64) as usize, any_size(random))).collect();
        let start = thread_cpu_ns();
        for (place, bytes) in steps {
            if let Some(gone) = blocks[place].take() {
                live -= gone.bytes() as u64;
            }
            if live < wanted {
                let block = AnyBlock::filled(bytes);
                live += block.bytes() as u64;
                blocks[place] = Some(block);
            }
        }
        cpu_ns += thread_cpu_ns() - start;
        peak = peak.max(resident_soon() as f64);
    }
    (peak, cpu_ns as f64 / (turns * each).max(1) as f64)
}
