//! The calls of a recorded program, replayed.
//!
//! Each thread of the trace is a thread here, and makes its calls in their order. A block that another thread
//! frees is handed over: that thread waits until it is there. No thread is farther ahead of another one than
//! two windows of the trace, so about as much is live as in the program. Tables are filled with zeros before
//! the measurement, and not part of the peak.

use super::{Contestant, Group, Task, Workload};
use crate::block::{AnyBlock, Recorded};
use crate::calls::{Calls, Kind, Op, Place, Prepared, Thread};
use crate::clock::Sample;
use crate::process::{Done, measured};
use crate::subject::{Role, Subject, Subjects, Visitor, prove};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The trace that this process replays.
static CHOSEN: OnceLock<Chosen> = OnceLock::new();

struct Chosen {
    file: PathBuf,
    name: &'static str,
    about: &'static str,
    calls: u64,
}

/// Adds a trace to the workloads of this process, which starts the others. Returns the workload's name.
pub fn choose(prepared: &Prepared) -> &'static str {
    let leak = |text: &str| &*Box::leak(text.to_string().into_boxed_str());
    let file = prepared.path().to_path_buf();
    let (name, about) = (leak(&prepared.name), leak(&prepared.about));
    CHOSEN.get_or_init(|| Chosen { file, name, about, calls: prepared.calls }).name
}

/// Adds the file of a [`Prepared`] to the workloads of this process, a child.
pub fn choose_file(file: &Path, name: &str) {
    let name = &*Box::leak(name.to_string().into_boxed_str());
    CHOSEN.get_or_init(|| Chosen { file: file.to_path_buf(), name, about: "", calls: 1 });
}

/// The workload, if a trace was chosen.
pub(super) fn workload<S: Subjects>() -> Option<Workload> {
    struct Collect(Vec<Contestant>);
    impl Visitor for Collect {
        fn visit<A: Subject>(&mut self) {
            let contestant =
                Contestant { name: A::NAME, role: A::ROLE, evidence: A::EVIDENCE, run: run::<A> };
            self.0.push(contestant);
        }
    }
    let chosen = CHOSEN.get()?;
    let mut collect = Collect(Vec::new());
    S::each(&mut collect);
    let contestants = collect.0;
    let (name, about, ops) = (chosen.name, chosen.about, chosen.calls);
    Some(Workload { name, about, group: Group::Programs, ops, cpus: 1, contestants })
}

/// Blocks for the proof of their allocator.
const PROOFS: usize = 64;

/// A place that threads share.
type Shared<A> = Mutex<Option<Recorded<A>>>;

/// Replays the trace once.
fn run<A: Subject>(_task: Task) -> Result<Sample, String> {
    let chosen = CHOSEN.get().ok_or("no trace was chosen")?;
    let calls = Calls::read(&chosen.file)?;
    let shared: Vec<Shared<A>> = (0..calls.shared).map(|_| Mutex::new(None)).collect();
    let own = |thread: &Thread| (0..thread.places).map(|_| None).collect::<Vec<Option<Recorded<A>>>>();
    let mut tables: Vec<_> = calls.threads.iter().map(own).collect();
    let pace = Pace(calls.windows().into_iter().map(AtomicU32::new).collect());
    let sample = measured(|| {
        match (&calls.threads[..], &mut tables[..]) {
            ([thread], [table]) => replay(thread, table, &shared, None),
            (threads, tables) => std::thread::scope(|scope| {
                for (thread, table) in threads.iter().zip(tables) {
                    let (shared, pace) = (&shared, &pace);
                    scope.spawn(move || replay(thread, table, shared, Some(pace)));
                }
            }),
        }
        Done { ops: calls.calls, blocks: (1..=PROOFS).map(|size| AnyBlock::<A>::new(size * 40)).collect() }
    })?;
    // The C library serves a floor's blocks that are larger than its ring.
    let mut left = tables.iter().flatten().flatten().filter(|_| A::ROLE != Role::Floor);
    left.try_for_each(|block| prove::<A>(block.at()))?;
    Ok(sample)
}

/// Replays the calls of a thread.
fn replay<A: Subject>(
    thread: &Thread,
    table: &mut [Option<Recorded<A>>],
    shared: &[Shared<A>],
    pace: Option<&Pace>,
) {
    let (mut at, mut open) = (0, 0);
    for (window, ops) in &thread.parts {
        if let Some(pace) = pace {
            pace.wait(*window as usize, &mut open);
        }
        let end = at + *ops as usize;
        while at < end {
            let op = &thread.ops[at];
            match op.kind {
                Kind::Alloc | Kind::Zeroed => {
                    let block = Recorded::new(op.bytes as usize, op.align(), op.kind == Kind::Zeroed);
                    put(op, block, table, shared);
                }
                Kind::Free => drop(take(op, table, shared)),
                Kind::FreeNull => A::free_null(),
                Kind::Resize => {
                    at += 1;
                    let new = &thread.ops[at];
                    put(new, take(op, table, shared).resized(new.bytes as usize), table, shared);
                }
            }
            at += 1;
        }
        if let Some(pace) = pace {
            pace.done(*window as usize, *ops);
        }
    }
}

#[inline(always)]
fn put<A: Subject>(op: &Op, block: Recorded<A>, table: &mut [Option<Recorded<A>>], shared: &[Shared<A>]) {
    match op.place() {
        Place::Own(place) => table[place] = Some(block),
        Place::Shared(place) => {
            *shared[place].lock().unwrap_or_else(PoisonError::into_inner) = Some(block);
        }
    }
}

#[inline(always)]
fn take<A: Subject>(op: &Op, table: &mut [Option<Recorded<A>>], shared: &[Shared<A>]) -> Recorded<A> {
    match op.place() {
        Place::Own(place) => table[place].take().expect("a thread's own block is there before its free"),
        Place::Shared(place) => {
            let mut patience = 0;
            loop {
                if let Some(block) = shared[place].lock().unwrap_or_else(PoisonError::into_inner).take() {
                    return block;
                }
                wait(&mut patience);
            }
        }
    }
}

/// Lets other threads run: at once, and after some tries for longer, so that waiting costs little CPU time.
fn wait(patience: &mut u32) {
    *patience += 1;
    match *patience {
        ..16 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}

/// Operations of each window that are still to be done.
struct Pace(Vec<AtomicU32>);

impl Pace {
    /// Waits until all windows before the one before `window` are done. `open` is the first window that the
    /// thread has not seen done.
    fn wait(&self, window: usize, open: &mut usize) {
        let mut patience = 0;
        while *open + 1 < window {
            // Pairs with the subtraction in `done`.
            match self.0[*open].load(Acquire) {
                0 => *open += 1,
                _ => wait(&mut patience),
            }
        }
    }

    fn done(&self, window: usize, ops: u32) {
        self.0[window].fetch_sub(ops, Release);
    }
}
