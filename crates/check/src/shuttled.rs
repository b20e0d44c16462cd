//! The kit over shuttle: random schedules of a large program.
//!
//! All threads of shuttle run on one system thread, one at a time. shuttle switches between them at words and
//! locks. Every word is sequentially consistent, so only loom finds errors that need a weaker memory model.
//! shuttle also switches in the middle of a write to a field, so that an unprotected access of another thread
//! finds the write incomplete.

use crate::kit::{Explored, Job, Kit, Limits, Running};
use shuttle::scheduler::RandomScheduler;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use slablab_platform::{Field, Lock, Word};
use std::cell::{Cell, RefCell};

/// Threads of shuttle.
#[derive(Debug)]
pub enum Shuttle {}

impl Kit for Shuttle {
    type Word = Racing;
    type Field = Halting;
    type Mutex<T> = Mutex<T>;

    fn running<R>(f: impl FnOnce(&Running) -> R) -> R {
        shuttle::thread_local!(static RUNNING: Running = Running::new());
        RUNNING.with(f)
    }

    fn together(jobs: Vec<Job>) {
        // A job need not be `Send`: it stays in the storage of the one system thread, and only its number is
        // passed to the new thread.
        thread_local!(static JOBS: RefCell<Vec<Option<Job>>> = const { RefCell::new(Vec::new()) });
        let take = |number: usize| JOBS.with_borrow_mut(|waiting| waiting[number].take());
        let put = |job| {
            JOBS.with_borrow_mut(|waiting| {
                waiting.retain(Option::is_some);
                waiting.push(Some(job));
                waiting.len() - 1
            })
        };
        JOBS.with_borrow_mut(Vec::clear);
        let numbers: Vec<usize> = jobs.into_iter().map(put).collect();
        let start = |number| shuttle::thread::spawn(move || take(number).expect("a job runs once")());
        let threads: Vec<_> = numbers.into_iter().map(start).collect();
        for thread in threads {
            thread.join().expect("shuttle ends the whole execution when a thread panics");
        }
    }

    fn schedules(limits: Limits, body: impl Fn() + Send + Sync + 'static) -> Explored {
        let mut config = shuttle::Config::new();
        config.silence_warnings = true;
        config.stack_size = 0x4_0000;
        let scheduler = RandomScheduler::new_from_seed(limits.seed, limits.executions);
        let executions = shuttle::Runner::new(scheduler, config).run(body);
        Explored { executions: executions as u64 }
    }
}

/// A word. shuttle switches threads at its accesses.
#[derive(Debug)]
pub struct Racing(AtomicU64);

impl Word for Racing {
    fn new(value: u64) -> Self {
        Racing(AtomicU64::new(value))
    }
    fn load(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
    fn store(&self, value: u64) {
        self.0.store(value, Ordering::SeqCst);
    }
    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::SeqCst);
    }
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }
}

/// A field. Other threads may run in the middle of a write to it.
#[derive(Debug)]
pub struct Halting {
    value: Cell<u64>,
    writing: Cell<bool>,
}

impl Halting {
    fn quiet(&self, access: &str) {
        assert!(
            !self.writing.get(),
            "a field is {access} while another thread writes it: nothing protects it"
        );
    }
}

impl Field for Halting {
    fn new(value: u64) -> Self {
        Halting { value: Cell::new(value), writing: Cell::new(false) }
    }
    fn get(&self) -> u64 {
        self.quiet("read");
        self.value.get()
    }
    fn set(&self, value: u64) {
        self.quiet("written");
        self.writing.set(true);
        shuttle::hint::spin_loop();
        self.writing.set(false);
        self.value.set(value);
    }
}

/// A lock of shuttle.
#[derive(Debug)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Lock<T> for Mutex<T> {
    type Guard<'a>
        = shuttle::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Mutex(shuttle::sync::Mutex::new(value))
    }
    fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
        self.0.lock().expect("shuttle ends the execution when a thread panics")
    }
    fn try_lock(&self) -> Option<shuttle::sync::MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}
