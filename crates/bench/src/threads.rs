//! Threads that are bound to CPUs, and the distance between CPUs.

use crate::clock::{Sample, timed};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Instant;

/// The CPUs that this process may use, by number.
pub fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Binds this thread to one of the CPUs. If the system refuses, the thread runs unbound: figures are then
/// less steady, but not wrong.
fn bind(cpus: &[usize], index: usize) {
    if let Some(cpu) = cpus.get(index % cpus.len().max(1)) {
        let mut set = CpuSet::new();
        set.set(*cpu);
        let _ = sched_setaffinity(None, &set);
    }
}

/// Waits a little: spins, and yields the CPU if that takes too long.
#[derive(Default)]
pub(crate) struct Patience(u32);

impl Patience {
    /// The number of spins before the yield: longer than a cache line transfer, shorter than a time slice.
    const SPINS: u32 = 2000;

    #[inline]
    pub(crate) fn wait(&mut self) {
        self.0 += 1;
        if self.0 < Self::SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// One thread's part of a workload.
pub(crate) trait Part: Send {
    /// Warms up. Not timed.
    fn prepare(&mut self) {}
    /// The timed work. Returns the CPU time of threads that it started, in ns.
    fn work(&mut self) -> u64;
    /// Checks which allocator served the blocks, and cleans up. Not timed.
    fn finish(&mut self) -> Result<(), String>;
}

/// Aborts the process if its thread panics. Otherwise the other threads would wait for it for ever.
struct OrAbort;

impl Drop for OrAbort {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Runs each part on a separate thread and, if the machine has enough CPUs, on a separate CPU. Measures from
/// the moment that all threads are ready.
pub(crate) fn run(ops: u64, parts: Vec<Box<dyn Part + '_>>) -> Result<Sample, String> {
    let cpus = cpus();
    let before = pingpong(&cpus);
    let together = Barrier::new(parts.len());
    let one = |index: usize, mut part: Box<dyn Part + '_>| {
        let _or_abort = OrAbort;
        bind(&cpus, index);
        part.prepare();
        together.wait();
        let mut others = 0;
        let (start, end, cpu) = timed(|| others = part.work());
        together.wait();
        part.finish().map(|()| (start, end, cpu + others))
    };
    let times: Result<Vec<(Instant, Instant, u64)>, String> = std::thread::scope(|scope| {
        let one = &one;
        let spawn = |(index, part)| scope.spawn(move || one(index, part));
        let threads: Vec<_> = parts.into_iter().enumerate().map(spawn).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("parts do not panic");
        threads.into_iter().map(join).collect()
    });
    let times = times?;
    let start = times.iter().map(|time| time.0).min().expect("there are parts");
    let end = times.iter().map(|time| time.1).max().expect("there are parts");
    Ok(Sample {
        ops,
        cpu_ns: times.iter().map(|time| time.2).sum(),
        wall_ns: Some((end - start).as_nanos() as u64),
        pingpong_ns: before.zip(pingpong(&cpus)).map(|(before, after)| [before, after]),
        ..Sample::default()
    })
}

/// Round trip of a cache line between the first two CPUs in ns: the best of several tries. `None` if there is
/// one CPU.
pub fn pingpong(cpus: &[usize]) -> Option<f64> {
    const TRIES: u32 = 6;
    const TRIPS: u32 = 300;
    /// A counter in a separate cache line.
    #[repr(align(128))]
    struct Line(AtomicU32);
    if cpus.len() < 2 {
        return None;
    }
    let line = Line(AtomicU32::new(0));
    let until = |value: u32| {
        let mut patience = Patience::default();
        while line.0.load(Acquire) != value {
            patience.wait();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bind(cpus, 1);
            for trip in 0..TRIES * TRIPS {
                until(2 * trip + 1);
                line.0.store(2 * trip + 2, Release);
            }
        });
        let first = scope.spawn(|| {
            bind(cpus, 0);
            let one_try = |one: u32| {
                let start = Instant::now();
                for trip in one * TRIPS..(one + 1) * TRIPS {
                    line.0.store(2 * trip + 1, Release);
                    until(2 * trip + 2);
                }
                start.elapsed().as_nanos() as f64 / TRIPS as f64
            };
            (0..TRIES).map(one_try).min_by(f64::total_cmp)
        });
        first.join().ok().flatten()
    })
}
