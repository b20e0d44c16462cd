//! Wake-ups: what they cost the waker, and when the woken thread runs. Barriers, which interrupt other CPUs.

use super::{Place, Probe, move_to, timed};
use crate::raw::never_preempt;
use crate::series::{Samples, Series};
use rustix::thread::{MembarrierCommand, membarrier};
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

const WAKES: u32 = 20;
const LONG_WAKES: u32 = 3;
/// Threads that are woken together.
const WAITERS: usize = 4;
/// Long enough for a waiter to sleep again.
const SHORT: Duration = Duration::from_micros(100);
const LONG: Duration = Duration::from_millis(2);
const BARRIERS: u32 = 50;
const END: [u8; 1] = [0];
const GO: [u8; 1] = [1];

/// A thread that waits at a pipe and stores when it ran, in ns since `start`.
struct Waiter {
    to: PipeWriter,
    start: Instant,
    ran: Arc<AtomicU64>,
}

impl Waiter {
    fn new(cpu: u16, batch: bool) -> io::Result<Waiter> {
        let (mut from, to) = pipe()?;
        let (start, ran) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let (ready, theirs) = (Arc::new(AtomicBool::new(false)), ran.clone());
        let (failed, is_ready) = (Arc::new(AtomicBool::new(false)), ready.clone());
        let has_failed = failed.clone();
        thread::spawn(move || {
            let placed = move_to(cpu).and_then(|()| if batch { never_preempt() } else { Ok(()) });
            failed.store(placed.is_err(), Relaxed);
            ready.store(true, Release);
            let mut byte = END;
            while from.read_exact(&mut byte).is_ok() && byte != END {
                theirs.store(start.elapsed().as_nanos() as u64, Release);
            }
        });
        while !is_ready.load(Acquire) {
            thread::sleep(SHORT);
        }
        if has_failed.load(Relaxed) {
            return Err(io::Error::other("a thread could not be placed"));
        }
        Ok(Waiter { to, start, ran })
    }

    /// Wakes the thread, and calls `after` when it is woken. Returns the time of the write, and the time from
    /// before the write until the thread ran.
    fn wake(&mut self, clock_ns: f64, after: impl FnOnce()) -> io::Result<(f64, f64)> {
        let before = self.start.elapsed().as_nanos() as u64;
        let (ns, result) = timed(clock_ns, || self.to.write_all(&GO));
        after();
        result?;
        self.wait_for_run(before);
        Ok((ns, (self.ran.load(Acquire) - before) as f64 - 2.0 * clock_ns))
    }

    fn wait_for_run(&self, after: u64) {
        while self.ran.load(Acquire) < after {
            thread::sleep(SHORT);
        }
    }

    /// Threads of a CPU that do not preempt.
    fn several(cpu: u16) -> io::Result<Vec<Waiter>> {
        (0..WAITERS).map(|_| Waiter::new(cpu, true)).collect()
    }
}

/// Wakes threads one after the other, and calls `after` when all are woken. The first bring the kernel's code
/// into the caches. Returns the time of the last write.
fn wake_all(waiters: &mut [Waiter], clock_ns: f64, after: impl FnOnce()) -> io::Result<f64> {
    let before: Vec<u64> = waiters.iter().map(|one| one.start.elapsed().as_nanos() as u64).collect();
    let mut last = 0.0;
    for waiter in &mut *waiters {
        let (ns, result) = timed(clock_ns, || waiter.to.write_all(&GO));
        result?;
        last = ns;
    }
    after();
    waiters.iter().zip(before).for_each(|(waiter, before)| waiter.wait_for_run(before));
    Ok(last)
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let _ = self.to.write_all(&END);
    }
}

struct Wakeups {
    clock_ns: f64,
    /// One: of several, the kernel lets one run before the last is woken.
    same: Waiter,
    other: Option<Other>,
    alone: (PipeReader, PipeWriter),
}

/// Threads of another CPU.
struct Other {
    /// Preempts what runs there.
    waiter: Waiter,
    /// Wait until the CPU is free.
    patient: Vec<Waiter>,
    spinner: Spinner,
}

pub(super) fn make(place: &Place) -> io::Result<Box<dyn Probe>> {
    let other = |cpu| -> io::Result<Other> {
        let (waiter, patient) = (Waiter::new(cpu, false)?, Waiter::several(cpu)?);
        Ok(Other { waiter, patient, spinner: Spinner::new(cpu) })
    };
    Ok(Box::new(Wakeups {
        clock_ns: place.clock_ns,
        same: Waiter::new(place.home, true)?,
        other: place.other.map(other).transpose()?,
        alone: pipe()?,
    }))
}

impl Wakeups {
    /// A pause, after which waiters sleep; then writes that wake no thread, which bring the kernel's code
    /// back into the caches. Returns the time of the last.
    fn pause(&mut self, pause: Duration) -> io::Result<f64> {
        thread::sleep(pause);
        let mut ns = 0.0;
        for _ in 0..8 {
            let (took, result) = timed(self.clock_ns, || self.alone.1.write_all(&GO));
            result?;
            self.alone.0.read_exact(&mut [0])?;
            ns = took;
        }
        Ok(ns)
    }
}

impl Probe for Wakeups {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        let clock_ns = self.clock_ns;
        for _ in 0..WAKES {
            into.push(Series::WriteAlone, self.pause(SHORT)?);
            into.push(Series::WakeSame, self.same.wake(clock_ns, || ())?.0);
            if self.other.is_none() {
                continue;
            }
            self.pause(SHORT)?;
            if let Some(other) = &mut self.other {
                let (ns, latency) = other.waiter.wake(clock_ns, || ())?;
                into.push(Series::WakeOther, ns);
                into.push(Series::LatencyShort, latency);
                other.spinner.spin();
            }
            self.pause(SHORT)?;
            if let Some(Other { patient, spinner, .. }) = &mut self.other {
                into.push(Series::WakeBusy, wake_all(patient, clock_ns, || spinner.stop())?);
            }
        }
        for _ in 0..LONG_WAKES {
            self.pause(LONG)?;
            if let Some(other) = &mut self.other {
                into.push(Series::LatencyLong, other.waiter.wake(clock_ns, || ())?.1);
            }
        }
        Ok(())
    }
}

/// A thread that keeps a CPU busy on request. It ends when this value is dropped.
struct Spinner(Arc<AtomicU8>, thread::Thread);

const STOPPED: u8 = 0;
const SPINNING: u8 = 1;
const ENDED: u8 = 2;

impl Spinner {
    fn new(cpu: u16) -> Spinner {
        let state = Arc::new(AtomicU8::new(STOPPED));
        let theirs = state.clone();
        let spinning = thread::spawn(move || {
            let placed = move_to(cpu);
            while placed.is_ok() {
                match theirs.load(Relaxed) {
                    SPINNING => std::hint::spin_loop(),
                    STOPPED => thread::park(),
                    _ => break,
                }
            }
        });
        Spinner(state, spinning.thread().clone())
    }

    fn spin(&self) {
        self.0.store(SPINNING, Relaxed);
        self.1.unpark();
    }

    fn stop(&self) {
        self.0.store(STOPPED, Relaxed);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.store(ENDED, Relaxed);
        self.1.unpark();
    }
}

struct Barriers {
    clock_ns: f64,
    other: u16,
}

pub(super) fn make_barrier(place: &Place) -> io::Result<Box<dyn Probe>> {
    let other = place.other.ok_or_else(|| io::Error::other("one CPU alone"))?;
    membarrier(MembarrierCommand::RegisterPrivateExpedited)?;
    Ok(Box::new(Barriers { clock_ns: place.clock_ns, other }))
}

impl Barriers {
    fn barriers(&self) -> io::Result<f64> {
        let (ns, result) = timed(self.clock_ns, || {
            (0..BARRIERS).try_for_each(|_| membarrier(MembarrierCommand::PrivateExpedited))
        });
        result?;
        Ok(ns / f64::from(BARRIERS))
    }
}

impl Probe for Barriers {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        into.push(Series::BarrierAlone, self.barriers()?);
        let (running, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                let placed = move_to(self.other);
                running.store(true, Release);
                while placed.is_ok() && !stop.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
            while !running.load(Acquire) {
                thread::sleep(SHORT);
            }
            let result = self.barriers();
            stop.store(true, Relaxed);
            result
        });
        into.push(Series::BarrierOther, result?);
        Ok(())
    }
}
