//! A compare-exchange that is not atomic, for the shuttle kit.

use crate::kit::{Explored, Job, Kit, Limits, Running};
use crate::shuttled::Shuttle;
use slablab_platform::Word;

/// The kit over shuttle with a compare-exchange in two steps. A write of another thread in between is lost.
#[derive(Debug)]
pub enum TornExchange {}

impl Kit for TornExchange {
    type Word = Torn;
    type Field = <Shuttle as Kit>::Field;
    type Mutex<T> = <Shuttle as Kit>::Mutex<T>;

    fn running<R>(f: impl FnOnce(&Running) -> R) -> R {
        Shuttle::running(f)
    }
    fn together(jobs: Vec<Job>) {
        Shuttle::together(jobs);
    }
    fn schedules(limits: Limits, body: impl Fn() + Send + Sync + 'static) -> Explored {
        Shuttle::schedules(limits, body)
    }
}

/// A word that is exchanged in two steps.
#[derive(Debug)]
pub struct Torn(<Shuttle as Kit>::Word);

impl Word for Torn {
    fn new(value: u64) -> Self {
        Torn(Word::new(value))
    }
    fn load(&self) -> u64 {
        self.0.load()
    }
    fn load_acquire(&self) -> u64 {
        self.0.load_acquire()
    }
    fn store(&self, value: u64) {
        self.0.store(value);
    }
    fn store_release(&self, value: u64) {
        self.0.store_release(value);
    }
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        let found = self.0.load_acquire();
        if found == current {
            self.0.store_release(new);
            Ok(found)
        } else {
            Err(found)
        }
    }
}
