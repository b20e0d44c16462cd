//! Objects with a reserve (`mempool_t`): an allocation for I/O that frees memory does not ask reclaim for
//! memory, and does not fail.

use crate::heap::{CacheNumber, Kmalloc};
use crate::kernel::objects::{Held, Object};
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use slablab_model::Timed;
use slablab_platform::Gfp;
use std::cell::{Cell, RefCell};

/// Objects of one cache, some of them kept for when there is no memory.
pub(super) struct Mempool {
    cache: CacheNumber,
    least: usize,
    reserve: RefCell<Vec<Held>>,
    waiters: WaitQueue,
    /// How often the reserve was used.
    used: Cell<u64>,
}

impl Mempool {
    /// A pool of this kind of object with a reserve of `least`.
    pub(super) fn of(task: &Task, object: Object, least: usize) -> Mempool {
        Mempool::new(task, task.kernel.number(object), least)
    }

    /// A pool of kmalloc's objects of this size; `None` if pages serve that.
    pub(super) fn of_bytes(task: &Task, bytes: u32, least: usize) -> Option<Mempool> {
        match task.kernel.kmalloc(bytes) {
            Kmalloc::Cache(cache) => Some(Mempool::new(task, cache, least)),
            Kmalloc::Pages(_) => None,
        }
    }

    fn new(task: &Task, cache: CacheNumber, least: usize) -> Mempool {
        let reserve = (0..least).map(|_| task.alloc_from(cache)).collect();
        let (waiters, used) = (WaitQueue::default(), Cell::new(0));
        Mempool { cache, least, reserve: RefCell::new(reserve), waiters, used }
    }

    /// An object: from the cache without reclaim, else from the reserve, else the task waits for one that is
    /// freed. `before_wait` runs before it does.
    pub(super) fn alloc(&self, task: &Task, before_wait: impl Fn()) -> Held {
        loop {
            if let Some(held) = task.try_alloc_from(self.cache, Gfp::NOWAIT | Gfp::NORETRY) {
                return held;
            }
            let kept = self.reserve.borrow_mut().pop();
            if let Some(held) = kept {
                self.used.set(self.used.get() + 1);
                return held;
            }
            before_wait();
            // What was freed meanwhile may have filled the reserve.
            if self.reserve.borrow().is_empty() {
                let number = u32::from(self.cache.0);
                self.waiters.wait(task, Waiting { what: "for an object of the reserve of cache", number });
                Timed::turn();
            }
        }
    }

    /// Frees an object: the reserve comes first. It may be one of another cache, which is just freed.
    pub(super) fn free(&self, kernel: &Kernel, held: Held) {
        let mut reserve = self.reserve.borrow_mut();
        if held.cache == self.cache.0 && reserve.len() < self.least {
            reserve.push(held);
            drop(reserve);
            self.waiters.wake_one(kernel, false);
        } else {
            drop(reserve);
            kernel.free(held);
        }
    }

    /// How often the reserve was used.
    pub(super) fn used(&self) -> u64 {
        self.used.get()
    }

    /// Frees the reserve.
    pub(super) fn empty(&self, kernel: &Kernel) {
        let reserve = std::mem::take(&mut *self.reserve.borrow_mut());
        reserve.into_iter().for_each(|held| kernel.free(held));
    }
}
