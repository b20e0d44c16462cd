//! The kit over loom: every schedule of a small program, and every value a load may return.
//!
//! A field is a tracked cell: loom reports two accesses that no synchronisation orders. loom has three
//! limits: it does not model sequentially consistent fences, it remembers at most 7 old values of a word, and
//! it runs at most 5 threads, of which one is the model's and one runs the body.

use crate::kit::{Explored, Job, Kit, Limits, Running};
use loom::cell::Cell;
use loom::sync::atomic::{AtomicU64, Ordering};
use slablab_platform::{Field, Lock, Word};
use std::cell::RefCell;
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Counter;

/// The stack of a thread: 512 KiB. loom's own is 32 KiB, which code without optimisation overflows.
const STACK_WORDS: usize = 0x1_0000;

/// Threads of loom. `O` can weaken the contract's orderings, for worlds with a planted fault.
#[derive(Debug)]
pub struct Loom<O = AsStated>(PhantomData<O>);

/// The orderings that the methods of [`Word`] use.
pub trait Orders: Debug + 'static {
    /// Of `load_acquire`.
    const LOAD: Ordering = Ordering::Acquire;
    /// Of `store_release`.
    const STORE: Ordering = Ordering::Release;
    /// Of a `compare_exchange` that succeeds.
    const EXCHANGE: Ordering = Ordering::AcqRel;
}

/// The orderings of the contract.
#[derive(Debug)]
pub enum AsStated {}
impl Orders for AsStated {}

impl<O: Orders> Kit for Loom<O> {
    type Word = Racing<O>;
    type Field = Tracked;
    type Mutex<T> = Mutex<T>;

    fn running<R>(f: impl FnOnce(&Running) -> R) -> R {
        loom::thread_local!(static RUNNING: Running = Running::new());
        RUNNING.with(f)
    }

    fn together(jobs: Vec<Job>) {
        let threads: Vec<_> = jobs.into_iter().map(spawn).collect();
        for thread in threads {
            thread.join().expect("loom ends the whole execution when a thread panics");
        }
    }

    fn schedules(limits: Limits, body: impl Fn() + Send + Sync + 'static) -> Explored {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(limits.preemptions);
        builder.max_branches = 20_000;
        let executions = Arc::new(Counter::new(0));
        let (counter, body) = (executions.clone(), Arc::new(body));
        builder.check(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            // The model's own thread has a small stack whose size cannot be chosen.
            let body = body.clone();
            spawn(move || body()).join().expect("loom ends the whole execution when a thread panics");
        });
        Explored { executions: executions.load(Ordering::Relaxed) }
    }
}

/// Starts a thread with a large stack. A job need not be `Send`: all threads of loom run on one system
/// thread, so it stays in that thread's storage, and only its number is passed.
fn spawn(job: impl FnOnce() + 'static) -> loom::thread::JoinHandle<()> {
    std::thread_local!(static JOBS: RefCell<Vec<Option<Job>>> = const { RefCell::new(Vec::new()) });
    let number = JOBS.with_borrow_mut(|waiting| {
        while waiting.pop_if(|last| last.is_none()).is_some() {}
        waiting.push(Some(Box::new(job)));
        waiting.len() - 1
    });
    let run = move || {
        let job = JOBS.with_borrow_mut(|waiting| waiting[number].take());
        job.expect("a job runs once")();
    };
    let started = loom::thread::Builder::new().stack_size(STACK_WORDS).spawn(run);
    started.expect("loom has room for a thread")
}

/// A word. loom tries every order of its accesses.
pub struct Racing<O>(AtomicU64, PhantomData<O>);

impl<O> Debug for Racing<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.0, f)
    }
}

impl<O: Orders> Word for Racing<O> {
    fn new(value: u64) -> Self {
        Racing(AtomicU64::new(value), PhantomData)
    }
    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn load_acquire(&self) -> u64 {
        self.0.load(O::LOAD)
    }
    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
    fn store_release(&self, value: u64) {
        self.0.store(value, O::STORE);
    }
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, O::EXCHANGE, O::LOAD)
    }
}

/// A cell whose accesses loom orders.
#[derive(Debug)]
pub struct Tracked(Cell<u64>);

impl Field for Tracked {
    fn new(value: u64) -> Self {
        Tracked(Cell::new(value))
    }
    fn get(&self) -> u64 {
        self.0.get()
    }
    fn set(&self, value: u64) {
        self.0.set(value);
    }
}

/// A lock of loom.
#[derive(Debug)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Lock<T> for Mutex<T> {
    type Guard<'a>
        = loom::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }
    fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("loom's locks are not poisoned")
    }
    fn try_lock(&self) -> Option<loom::sync::MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}
