//! Interrupts of devices: a function that runs on a CPU at a time.

use super::{Kernel, NEVER, Processor};
use slablab_model::{Ps, Timed};
use slablab_platform::CpuId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What an interrupt does.
pub(crate) type Handler = Box<dyn FnOnce(&Rc<Kernel>)>;

/// The interrupts of devices that come to one CPU, by their time and their number.
#[derive(Default)]
pub(super) struct Interrupts {
    pending: RefCell<BTreeMap<(Ps, u64), Handler>>,
    number: Cell<u64>,
}

impl Interrupts {
    /// When the first of them comes.
    pub(super) fn next(&self) -> Ps {
        self.pending.borrow().first_key_value().map_or(NEVER, |((at, _), _)| *at)
    }

    fn add(&self, at: Ps, handler: Handler) {
        self.number.set(self.number.get() + 1);
        self.pending.borrow_mut().insert((at, self.number.get()), handler);
    }

    /// Takes the first one that has come by `now`.
    fn pop(&self, now: Ps) -> Option<Handler> {
        let mut pending = self.pending.borrow_mut();
        let first = pending.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}

impl Kernel {
    /// A device interrupts `cpu` at `at`. A busy CPU serves the interrupt at its next preemption point, so
    /// never while it holds a lock.
    pub(crate) fn interrupt_at(self: &Rc<Self>, cpu: CpuId, at: Ps, handler: Handler) {
        let processor = &self.cpus[cpu.0 as usize];
        processor.interrupts.add(at, handler);
        processor.due.set(processor.due.get().min(at));
        if self.sched.borrow().current(cpu).is_none() {
            self.arm(cpu, processor.due.get());
        }
    }

    /// An idle CPU gets a timer for what is due at `at`, if it has none that is earlier.
    pub(super) fn arm(self: &Rc<Self>, cpu: CpuId, at: Ps) {
        let armed = &self.cpus[cpu.0 as usize].armed;
        if at < armed.get() {
            armed.set(at);
            self.interrupt(cpu, at);
        }
    }

    /// Serves the interrupts that have come.
    pub(super) fn serve_interrupts(self: &Rc<Self>, processor: &Processor) {
        while let Some(handler) = processor.interrupts.pop(Timed::clock()) {
            self.progress.device();
            handler(self);
        }
    }
}
