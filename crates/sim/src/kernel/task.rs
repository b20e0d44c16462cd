//! What a task's program can do.

use super::{Kernel, Waiting};
use crate::heap::{self, CacheNumber, Kmalloc};
use crate::kernel::objects::{Held, Object};
use crate::sched::{Leave, TaskId, Why};
use slablab_model::{Access, Ps, Timed};
use slablab_platform::{CpuId, Event, Frames, Gfp, Topology};
use slablab_slabs::Sheaf;
use std::rc::Rc;

/// The longest piece of computing without a preemption point.
const PIECE: Ps = 50_000_000;
/// A task's work varies by up to this part of it, up and down.
const SPREAD: u64 = 8;

/// Objects of a cache that were allocated in advance.
pub(crate) struct Prefilled {
    cache: CacheNumber,
    sheaf: Sheaf<Timed>,
}

/// A task, as its program sees it.
pub struct Task {
    /// The kernel.
    pub kernel: Rc<Kernel>,
    /// The task's number.
    pub id: TaskId,
}

impl Task {
    /// Computes for `ps` picoseconds. May be preempted.
    pub fn compute(&self, ps: Ps) {
        let mut left = ps;
        while left > 0 {
            let to_tick = self.kernel.next_tick().saturating_sub(Timed::clock()).max(1);
            let piece = left.min(PIECE).min(to_tick);
            self.charge(piece);
            left -= piece;
            if left > 0 {
                Timed::turn();
            }
            self.preemption_point();
        }
    }

    /// Computes for `ps` picoseconds without a preemption point.
    #[inline]
    pub fn charge(&self, ps: Ps) {
        Timed::charge(ps);
        self.kernel.count_user(self.id, ps);
    }

    /// Works for about `cycles` cycles without a preemption point: an eighth more or less, at random.
    #[inline]
    pub fn work(&self, cycles: u64) {
        if cycles > 0 {
            let spread = cycles / SPREAD;
            Timed::cycles(cycles - spread + self.kernel.random(2 * spread + 1));
        }
    }

    /// A system call: it sees what other CPUs did until now, and can be preempted at its end.
    pub fn syscall<T>(&self, f: impl FnOnce() -> T) -> T {
        Timed::charge(self.kernel.prices.syscall);
        Timed::turn();
        self.kernel.tally.borrow_mut().system_calls += 1;
        let result = f();
        self.preemption_point();
        result
    }

    /// Serves interrupts, and gives up the CPU if the scheduler wants so.
    #[inline]
    pub fn preemption_point(&self) {
        self.kernel.preemption_point(self.id);
    }

    /// Sleeps for `ps` picoseconds.
    pub fn sleep(&self, ps: Ps) {
        self.kernel.wake_at(self.id, Timed::clock() + ps);
        self.kernel.tasks.borrow_mut()[self.id.0 as usize].has_timer = true;
        self.kernel.block(self.id, Waiting { what: "for its timer", number: 0 });
    }

    /// Moves to `cpu`, and stays there.
    pub fn pin(&self, cpu: CpuId) {
        let kernel = &self.kernel;
        let affinity = kernel.sched.borrow_mut().affinity(&[cpu]);
        kernel.sched.borrow_mut().set_affinity(self.id, affinity);
        if Timed::cpu() != cpu {
            kernel.move_to(self.id, cpu);
        }
    }

    /// May run on all CPUs again.
    pub fn unpin(&self) {
        let all = self.kernel.sched.borrow_mut().affinity(&[]);
        self.kernel.sched.borrow_mut().set_affinity(self.id, all);
    }

    /// Names the task in recordings.
    pub fn call_it(&self, name: impl FnOnce() -> String) {
        if let Some(watch) = &self.kernel.watch {
            watch.name(self.id, name);
        }
    }

    /// Starts a thread of this task's process.
    pub fn thread(&self, program: impl FnOnce(&Task) + 'static) -> TaskId {
        let mm = self.kernel.tasks.borrow()[self.id.0 as usize].mm;
        self.kernel.start(mm, Some(self.id), program)
    }

    /// Starts a process of one task.
    pub fn fork(&self, program: impl FnOnce(&Task) + 'static) -> TaskId {
        self.kernel.start(self.kernel.new_process(), Some(self.id), program)
    }

    /// Allocates a kernel object.
    #[inline]
    pub fn alloc(&self, object: Object) -> Held {
        self.alloc_from(self.kernel.number(object))
    }

    /// Allocates `bytes` bytes with kmalloc.
    pub fn alloc_bytes(&self, bytes: u32) -> Held {
        match self.kernel.kmalloc(bytes) {
            Kmalloc::Cache(cache) => self.alloc_from(cache),
            Kmalloc::Pages(order) => {
                heap::pass_on();
                Held { cache: Held::PASSED_ON, ..self.alloc_pages(order) }
            }
        }
    }

    pub(crate) fn alloc_from(&self, cache: CacheNumber) -> Held {
        self.try_alloc_from(cache, Gfp::KERNEL).unwrap_or_else(|| self.kernel.no_memory(self.id))
    }

    /// Allocates `bytes` bytes of a class of kmalloc with these flags. `None` without memory, or if pages
    /// serve them.
    pub(crate) fn try_alloc_bytes(&self, bytes: u32, gfp: Gfp) -> Option<Held> {
        match self.kernel.kmalloc(bytes) {
            Kmalloc::Cache(cache) => self.try_alloc_from(cache, gfp),
            Kmalloc::Pages(_) => None,
        }
    }

    /// Allocates an object of a cache with these flags. `None` without memory.
    pub(crate) fn try_alloc_from(&self, cache: CacheNumber, gfp: Gfp) -> Option<Held> {
        let cpu = Timed::cpu().0;
        let kernel = &self.kernel;
        let alloc = || kernel.heap.alloc(cache, gfp, None);
        let start = Timed::clock();
        let address = kernel.traced(self.id, cache, || kernel.watched(cache, Event::AllocSlowpath, alloc))?;
        let mut tally = kernel.tally.borrow_mut();
        tally.allocating += Timed::clock() - start;
        let born = tally.allocated(cache.0);
        Some(Held { address, cache: cache.0, cpu, born })
    }

    /// Allocates `objects` objects in advance, in a sheaf of their cache.
    pub(crate) fn prefill(&self, object: Object, objects: u32) -> Prefilled {
        let (kernel, cache) = (&self.kernel, self.kernel.number(object));
        match kernel.heap.prefill(cache, Gfp::KERNEL, objects) {
            Some(sheaf) => Prefilled { cache, sheaf },
            None => kernel.no_memory(self.id),
        }
    }

    /// Takes an object that was allocated in advance.
    ///
    /// # Panics
    /// If none is left.
    pub(crate) fn alloc_prefilled(&self, prefilled: &mut Prefilled) -> Held {
        let Prefilled { cache, sheaf } = prefilled;
        let address = self.kernel.heap.alloc_prefilled(*cache, sheaf).expect("a caller counts its objects");
        let born = self.kernel.tally.borrow_mut().allocated(cache.0);
        Held { address, cache: cache.0, cpu: Timed::cpu().0, born }
    }

    /// Gives back what was allocated in advance and is left.
    pub(crate) fn return_prefilled(&self, prefilled: Prefilled) {
        self.kernel.heap.return_prefilled(prefilled.cache, prefilled.sheaf);
    }

    /// Allocates a block of `1 << order` pages, on this CPU's node if it can be.
    pub fn alloc_pages(&self, order: u8) -> Held {
        let gfp = if order > 0 { Gfp::KERNEL | Gfp::COMP } else { Gfp::KERNEL };
        self.try_alloc_pages(order, gfp).unwrap_or_else(|| self.kernel.no_memory(self.id))
    }

    /// Allocates a block of `1 << order` pages with these flags. `None` without memory.
    pub(crate) fn try_alloc_pages(&self, order: u8, gfp: Gfp) -> Option<Held> {
        let cpu = Timed::cpu();
        let pfn = self.kernel.heap.alloc_pages(order, gfp, Timed::cpu_memory_node(cpu))?;
        Some(Held { address: Timed::address(pfn, 0), cache: Held::PAGES, cpu: cpu.0, born: 0 })
    }

    /// Frees an object.
    #[inline]
    pub fn free(&self, held: Held) {
        self.kernel.free(held);
    }

    /// Frees an object after the readers that run now have ended.
    pub fn free_after_grace(&self, held: Held) {
        self.kernel.free_after_grace(held);
    }

    /// Touches the first `bytes` bytes of an object, or of a block of pages.
    #[inline]
    pub fn touch(&self, held: &Held, bytes: u32, access: Access) {
        Timed::touch(held.address, bytes, access);
    }

    /// Copies `bytes` bytes between the program and the kernel.
    #[inline]
    pub fn copy(&self, bytes: u32) {
        Timed::charge(u64::from(bytes) * self.kernel.prices.copy_kib / 1024);
    }
}

impl Kernel {
    pub(crate) fn free(&self, held: Held) {
        if held.is_pages() {
            if held.cache == Held::PASSED_ON {
                heap::pass_on();
            }
            self.heap.free_pages(Timed::locate(held.address).0);
            return;
        }
        let elsewhere = held.cpu != Timed::cpu().0;
        self.tally.borrow_mut().freed(held.cache, elsewhere, held.born);
        let cache = CacheNumber(held.cache);
        self.watched(cache, Event::FreeSlowpath, || self.heap.free(cache, held.address));
    }

    /// The running task `me` moves to another CPU.
    fn move_to(self: &Rc<Self>, me: TaskId, cpu: CpuId) {
        let (from, now) = (Timed::cpu(), Timed::clock());
        let mut sched = self.sched.borrow_mut();
        sched.leave(from, Leave::Move, now);
        let kick = sched.enqueue(cpu, me, Why::Move, now);
        drop(sched);
        self.kick(kick, now);
        self.next_task(from);
        self.left(from, me);
        self.suspend(me);
    }
}
