//! The kit without a tool: one thread, plain cells. It reports a lock that is taken twice as a deadlock.

use crate::kit::{Explored, Job, Kit, Limits, Running};
use slablab_platform::{Field, Lock, Word};
use std::cell::{Cell, RefCell, RefMut};

/// One thread after another.
#[derive(Debug)]
pub enum Solo {}

impl Kit for Solo {
    type Word = Plain;
    type Field = Plain;
    type Mutex<T> = Mutex<T>;

    fn running<R>(f: impl FnOnce(&Running) -> R) -> R {
        thread_local!(static RUNNING: Running = const { Running::new() });
        RUNNING.with(f)
    }

    fn together(jobs: Vec<Job>) {
        // Each job starts on the caller's CPU, as on a separate thread: the CPU that a job ends on has no
        // effect on the next job.
        for job in jobs {
            let cpu = Self::running(|running| running.cpu.get());
            job();
            Self::running(|running| running.cpu.set(cpu));
        }
    }

    fn schedules(_limits: Limits, body: impl Fn() + Send + Sync + 'static) -> Explored {
        body();
        Explored { executions: 1 }
    }
}

/// A word or field: a cell.
#[derive(Debug)]
pub struct Plain(Cell<u64>);

impl Word for Plain {
    fn new(value: u64) -> Self {
        Plain(Cell::new(value))
    }
    fn load(&self) -> u64 {
        self.0.get()
    }
    fn load_acquire(&self) -> u64 {
        self.0.get()
    }
    fn store(&self, value: u64) {
        self.0.set(value);
    }
    fn store_release(&self, value: u64) {
        self.0.set(value);
    }
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        let found = self.0.get();
        if found != current {
            return Err(found);
        }
        self.0.set(new);
        Ok(found)
    }
}

impl Field for Plain {
    fn new(value: u64) -> Self {
        Plain(Cell::new(value))
    }
    fn get(&self) -> u64 {
        self.0.get()
    }
    fn set(&self, value: u64) {
        self.0.set(value);
    }
}

/// A lock of one thread.
#[derive(Debug)]
pub struct Mutex<T>(RefCell<T>);

impl<T> Lock<T> for Mutex<T> {
    type Guard<'a>
        = RefMut<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Mutex(RefCell::new(value))
    }
    fn lock(&self) -> RefMut<'_, T> {
        self.try_lock().expect("deadlock: one thread takes a lock twice")
    }
    fn try_lock(&self) -> Option<RefMut<'_, T>> {
        self.0.try_borrow_mut().ok()
    }
}
