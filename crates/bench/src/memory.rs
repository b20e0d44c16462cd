//! What a process holds: threads with a few objects, much live memory, and what is left when most of it and all of it was freed.
//!
//! Resident memory is the process's, so every allocator has a process of its own: the program runs itself again, as
//! [`Child`] says, and the child ends in [`serve`].
//!
//! ```text
//! threads     64 of them hold 100 small objects each                  thread_kb
//! live        blocks of all sizes until so much is live               bytes_per_byte
//! churn       one by chance makes place for another, as often         churn_peak_per_byte, churn_ns
//! most freed  nine of ten, by chance; 2.5 s of little activity        kept_most, kept_most_later
//! all freed   and 2.5 s of little activity                            kept, kept_later
//! ```

use crate::block::AnyBlock;
use crate::clock::{resident, resident_soon, thread_cpu_ns};
use crate::contestants::{each_subject, identify};
use crate::random::Random;
use crate::subject::{Role, Subject, Visitor, prove};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::Duration;

/// What a process held. All bytes are resident memory above that of the start.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Footprint {
    /// Resident bytes before anything was allocated.
    pub start_bytes: f64,
    /// Per thread, of 64 that live.
    pub thread_bytes: f64,
    /// Resident per byte asked for, when all is live.
    pub bytes_per_byte: f64,
    /// The most of it while blocks came and went.
    pub churn_peak_per_byte: f64,
    /// CPU time in ns of a block that came and one that went.
    pub churn_ns: f64,
    /// Kept when nine of ten blocks are freed.
    pub kept_most_bytes: f64,
    /// The same after 2.5 s of little activity.
    pub kept_most_later_bytes: f64,
    /// Kept when all blocks are freed.
    pub kept_bytes: f64,
    /// The same after 2.5 s of little activity.
    pub kept_later_bytes: f64,
}

/// A figure of a footprint: its name, its unit, its value.
pub type Figure = (&'static str, &'static str, fn(&Footprint) -> f64);

/// The figures of a footprint, in the order of tables: name, unit, value in that unit.
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

/// How the program runs itself for one allocator: its arguments, before the allocator's name, the bytes and the seed.
#[derive(Clone, Debug)]
pub struct Child {
    /// The program.
    pub program: PathBuf,
    /// What makes it call [`serve`] with the arguments that follow.
    pub args: Vec<String>,
    /// Variables for it.
    pub env: Vec<(String, String)>,
}

impl Child {
    /// Runs the child and reads its answer, the last line that it printed.
    pub(crate) fn run(&self, name: &str, bytes: u64, seed: u64) -> Result<Footprint, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).args([name, &bytes.to_string(), &seed.to_string()]);
        command.envs(self.env.iter().cloned()).stdin(Stdio::null()).stderr(Stdio::piped());
        let output = command.output().map_err(|error| format!("{}: {error}", self.program.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let footprint = said.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        footprint.filter(|_| output.status.success()).ok_or_else(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            format!("memory of {name}: {}: {}", output.status, error.trim())
        })
    }
}

/// Whose memory.
#[derive(Clone, Debug)]
pub struct Held {
    /// Name of the allocator.
    pub name: &'static str,
    /// What it is.
    pub role: Role,
}

/// The allocators whose memory is measured: all but what is no allocator.
pub(crate) fn subjects() -> Vec<Held> {
    struct Names(Vec<Held>);
    impl Visitor for Names {
        fn visit<A: Subject>(&mut self) {
            if A::ROLE != Role::Floor {
                self.0.push(Held { name: A::NAME, role: A::ROLE });
            }
        }
    }
    let mut names = Names(Vec::new());
    each_subject(&mut names);
    names.0
}

/// What a child does: the memory of an allocator with so many live bytes, as a line of JSON.
///
/// # Errors
/// An unknown allocator; a block that another one served.
pub fn serve(name: &str, bytes: u64, seed: u64) -> Result<String, String> {
    struct Serve<'a>(&'a str, u64, u64, Option<Result<Footprint, String>>);
    impl Visitor for Serve<'_> {
        fn visit<A: Subject>(&mut self) {
            if A::NAME == self.0 && A::ROLE != Role::Floor {
                self.3 = Some(footprint::<A>(self.1, self.2));
            }
        }
    }
    let mut serve = Serve(name, bytes, seed, None);
    each_subject(&mut serve);
    let footprint = serve.3.ok_or_else(|| format!("no allocator is called {name}"))??;
    Ok(serde_json::to_string(&footprint).expect("numbers"))
}

/// Threads that live at once.
const THREADS: usize = 64;
/// Pause before the activity, within which memory can be given back.
const PAUSE: Duration = Duration::from_millis(2500);
/// Below so many live bytes nobody waits: such a run is a test.
const PAUSE_FROM: u64 = 10_000_000;

/// Most are small, one of ten is up to 8 KB, one of a hundred up to 100 KB.
fn any_size(random: &mut Random) -> usize {
    match random.below(100) {
        0..90 => 16 + random.below(500) as usize,
        90..99 => 500 + random.below(8000) as usize,
        _ => 8000 + random.below(92_000) as usize,
    }
}

/// What a program does while it waits.
fn activity<A: Subject>() {
    (0..300_000).for_each(|turn: usize| drop(AnyBlock::<A>::new(16 + turn * 37 % 500)));
}

fn footprint<A: Subject>(bytes: u64, seed: u64) -> Result<Footprint, String> {
    identify::<A>()?;
    let mut random = Random::new(seed);
    // The table of blocks is the C library's, and all of it is resident from the start.
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

/// Bytes per thread, while all of them live.
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

/// Replaces blocks of chance by others, as many as there are, with about as much live. Answers the most that was resident,
/// and the CPU time of one in ns.
fn churn<A: Subject>(blocks: &mut [Option<AnyBlock<A>>], random: &mut Random, wanted: u64) -> (f64, f64) {
    let count = blocks.len();
    let mut live = wanted;
    let (mut peak, mut cpu_ns) = (resident() as f64, 0);
    let turns = 64.min(count);
    let each = count / turns;
    for _ in 0..turns {
        // Chance is drawn before, and the peak looked at after what is timed.
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
