//! What comes between a task's steps: ticks, work that engines deferred, frees after a grace period.

use super::{Held, Kernel, NEVER, Processor};
use crate::sched::{Idle, TaskId};
use slablab_model::{Access, Ps, Timed};
use slablab_platform::{CpuId, Topology};
use slablab_slabs::Release;
use std::rc::Rc;

/// Cycles to queue an object for the end of a grace period, and to call what frees it then, beside its line
/// (assumed).
const CALL_RCU: u64 = 40;
const CALLBACK: u64 = 40;
/// RCU's callbacks that a pass calls at most (`blimit`), the number of waiting ones from which on there is no
/// limit (`qhimark`), and the part of the waiting ones that a pass calls since 4.20 (`rcu_divisor`), all from
/// memory of the kernel's parameters.
const BLIMIT: usize = 10;
const QHIMARK: usize = 10_000;
const DIVISOR: u32 = 7;
/// Passes of a softirq before the rest is left to ksoftirqd, a task like others (`MAX_SOFTIRQ_RESTART`).
const RESTARTS: usize = 10;

/// Callbacks that are called before the interrupted task goes on, of `waiting` whose grace period has ended.
/// What ksoftirqd does then is taken to happen at the task's next preemption point, and so on in turn.
fn callbacks_of_a_pass(waiting: usize, release: Release) -> usize {
    let part = if release < Release::new(4, 20, 0) { 0 } else { waiting >> DIVISOR };
    match waiting {
        QHIMARK.. => waiting,
        _ => waiting.min(BLIMIT.max(part) * RESTARTS),
    }
}

/// Bytes of the list head in an object that waits for a grace period.
const RCU_HEAD: u32 = 16;

impl Kernel {
    /// Where the running task of a CPU can be preempted, and interrupts are served.
    #[inline]
    pub(super) fn preemption_point(self: &Rc<Self>, me: TaskId) {
        if self.failed.borrow().is_some() {
            self.wait_for_ever(me);
        }
        self.observe();
        let cpu = Timed::cpu();
        let processor = &self.cpus[cpu.0 as usize];
        if Timed::clock() >= processor.next_tick.get() {
            self.tick(cpu);
        }
        if Timed::next_timer_ns() <= Timed::clock() / 1000 || processor.due.get() <= Timed::clock() {
            self.deferred(cpu);
        }
        if processor.resched_at.get() <= Timed::clock() {
            self.schedule(me, None);
        }
    }

    /// Serves the interrupts that have come to this CPU, in the middle of a system call: it is not
    /// preempted.
    #[inline]
    pub(crate) fn serve_due(self: &Rc<Self>) {
        self.observe();
        let cpu = Timed::cpu();
        if self.cpus[cpu.0 as usize].due.get() <= Timed::clock() {
            self.deferred(cpu);
        }
    }

    /// When the next tick of this CPU is.
    pub(super) fn next_tick(&self) -> Ps {
        self.cpus[Timed::cpu().0 as usize].next_tick.get()
    }

    /// The timer interrupt of a busy CPU. A CPU with more than one task also lets idle CPUs pull, because
    /// those have no ticks.
    #[cold]
    fn tick(&self, cpu: CpuId) {
        let processor = &self.cpus[cpu.0 as usize];
        let now = Timed::clock();
        self.beat_at(now);
        processor.next_tick.set((now / self.prices.tick + 1) * self.prices.tick);
        let mut sched = self.sched.borrow_mut();
        let expired = sched.tick(cpu, now);
        let preempts = sched.balance(cpu, Idle::Busy, now).preempts;
        if expired || preempts {
            processor.resched_at.set(processor.resched_at.get().min(now));
        }
        let crowded = sched.runnable(cpu) > 1;
        drop(sched);
        if crowded {
            (0..Timed::cpus()).map(CpuId).for_each(|idle| self.pull_to_idle(idle, now));
        }
    }

    fn pull_to_idle(&self, cpu: CpuId, now: Ps) {
        let mut sched = self.sched.borrow_mut();
        if sched.current(cpu).is_some() || self.cpus[cpu.0 as usize].working.get() {
            return;
        }
        let at = (now + self.prices.ipi + self.prices.idle_exit).max(Timed::clock_of(cpu));
        let moved = sched.balance(cpu, Idle::Idle, at).moved;
        drop(sched);
        if moved > 0 {
            self.start_idle(cpu, at);
        }
    }

    /// Work that is due. Work for another CPU is done there if that CPU is idle, else at that CPU's next
    /// preemption point.
    #[cold]
    fn deferred(self: &Rc<Self>, cpu: CpuId) {
        while let Some((on, work)) = Timed::next_due() {
            if on == cpu {
                self.heap.work(cpu, work);
            } else {
                let processor = &self.cpus[on.0 as usize];
                processor.works.borrow_mut().push_back(work);
                processor.due.set(0);
                if self.sched.borrow().current(on).is_none() {
                    self.arm(on, Timed::clock());
                }
            }
        }
        self.after_interrupt(cpu);
    }

    /// Runs what waits for this CPU: works, and frees whose grace period has ended.
    fn after_interrupt(self: &Rc<Self>, cpu: CpuId) {
        let processor = &self.cpus[cpu.0 as usize];
        loop {
            let work = processor.works.borrow_mut().pop_front();
            let Some(work) = work else { break };
            self.heap.work(cpu, work);
        }
        self.call_back(processor);
        self.serve_interrupts(processor);
        // Another CPU may have passed work on while this one waited for a lock.
        let next = match processor.works.borrow().is_empty() {
            true => processor.after_grace.borrow().front().map_or(NEVER, |(at, _)| *at),
            false => 0,
        };
        processor.due.set(next.min(processor.interrupts.next()));
    }

    /// Frees objects whose grace period has ended, as many as one pass may: the others at the next preemption
    /// point, or at once on an idle CPU.
    fn call_back(self: &Rc<Self>, processor: &Processor) {
        let now = Timed::clock();
        let waiting = processor.after_grace.borrow().partition_point(|(at, _)| *at <= now);
        for _ in 0..callbacks_of_a_pass(waiting, self.era.release) {
            let Some((_, held)) = processor.after_grace.borrow_mut().pop_front() else { break };
            Self::rcu_head(&held, CALLBACK, Access::Read);
            self.free(held);
        }
    }

    /// Does an idle CPU's deferred work at `at`. A task that wakes up there meanwhile continues afterwards.
    /// If a task runs there by then, that task does the work at its next preemption point.
    pub(super) fn interrupt(self: &Rc<Self>, cpu: CpuId, at: Ps) {
        let kernel = self.clone();
        Timed::spawn(cpu, at, move || {
            let processor = &kernel.cpus[cpu.0 as usize];
            // A timer that was replaced by an earlier one has nothing to do.
            if processor.armed.get() != at {
                return;
            }
            processor.armed.set(NEVER);
            // An interrupt that waits for a lock here does this one's work too.
            if kernel.sched.borrow().current(cpu).is_none() && !processor.working.replace(true) {
                kernel.after_interrupt(cpu);
                processor.working.set(false);
                kernel.start_idle(cpu, Timed::clock());
                if kernel.sched.borrow().current(cpu).is_none() {
                    kernel.go_idle(cpu);
                }
            }
        });
    }

    /// Frees an object after the readers that run now have ended.
    pub(crate) fn free_after_grace(self: &Rc<Self>, held: Held) {
        if !held.is_pages() {
            let cache = crate::heap::CacheNumber(held.cache);
            if self.heap.free_rcu(cache, held.address) {
                let elsewhere = held.cpu != Timed::cpu().0;
                self.tally.borrow_mut().freed(held.cache, elsewhere, held.born);
                return;
            }
        }
        Self::rcu_head(&held, CALL_RCU, Access::Write);
        let processor = &self.cpus[Timed::cpu().0 as usize];
        let at = Timed::grace_period_end() * 1_000;
        processor.after_grace.borrow_mut().push_back((at, held));
        processor.due.set(processor.due.get().min(at));
    }

    /// An object that waits for a grace period is in a list, by a head of two words inside it.
    fn rcu_head(held: &Held, cycles: u64, access: Access) {
        Timed::cycles(cycles);
        if !held.is_pages() {
            Timed::touch(held.address, RCU_HEAD, access);
        }
    }

    /// Wakes a task at `at`, by this CPU's timer.
    pub(super) fn wake_at(self: &Rc<Self>, task: TaskId, at: Ps) {
        let kernel = self.clone();
        Timed::spawn(Timed::cpu(), at, move || kernel.wake(task, false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_calls_back_by_the_limit() {
        let (old, new) = (Release::new(2, 6, 29), Release::new(6, 18, 0));
        // Waiting callbacks, and how many a pass calls before and since 4.20.
        let rows = [(0, 0, 0), (7, 7, 7), (100, 100, 100), (101, 100, 100), (1_280, 100, 100)];
        let rows = rows.into_iter().chain([(2_560, 100, 200), (9_999, 100, 780), (10_000, 10_000, 10_000)]);
        for (waiting, before, since) in rows {
            assert_eq!(callbacks_of_a_pass(waiting, old), before, "{waiting} before 4.20");
            assert_eq!(callbacks_of_a_pass(waiting, new), since, "{waiting} since 4.20");
        }
    }
}
