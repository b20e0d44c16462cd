//! Kernel tasks of the memory, as others see them: what was asked of kswapd and kcompactd of each node, of
//! kreclaimd, of the flusher and of the tasks that refresh page lists and sum statistics up. Their programs
//! are in [`super::programs`].

use super::samples::Samples;
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use slablab_platform::Topology;
use std::cell::Cell;

/// The tasks.
pub(super) struct Daemons {
    /// kswapd of each node.
    pub(super) kswapds: Vec<Kswapd>,
    /// kcompactd of each node.
    pub(super) compactors: Vec<Kcompactd>,
    pub(super) kreclaimd: Idler,
    pub(super) flusher: Flusher,
    pub(super) refresher: Idler,
    pub(super) summer: Idler,
    /// What kswapd's looks at pages and entries cost so far.
    work: Cell<Ps>,
    stopping: Cell<bool>,
}

impl Daemons {
    pub(super) fn new() -> Daemons {
        Daemons {
            kswapds: (0..Timed::nodes()).map(|_| Kswapd::default()).collect(),
            compactors: (0..Timed::nodes()).map(|_| Kcompactd::default()).collect(),
            kreclaimd: Idler::default(),
            flusher: Flusher::default(),
            refresher: Idler::default(),
            summer: Idler::default(),
            work: Cell::new(0),
            stopping: Cell::new(false),
        }
    }

    /// Whether no program is left: each task ends when it looks next.
    pub(super) fn are_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// No program is left: the tasks end.
    pub(super) fn stop(&self, kernel: &Kernel) {
        self.stopping.set(true);
        self.kswapds.iter().for_each(|kswapd| kswapd.wake(kernel));
        self.compactors.iter().for_each(|kcompactd| kcompactd.stop(kernel));
        self.kreclaimd.wake(kernel);
        self.flusher.stop(kernel);
    }

    /// The tasks with periods end.
    pub(super) fn stop_timers(&self, kernel: &Kernel) {
        self.summer.wake(kernel);
        self.refresher.wake(kernel);
    }

    /// kswapd worked for `time`.
    pub(super) fn works(&self, time: Ps) {
        self.work.set(self.work.get() + time);
    }

    /// CPU time of all kswapds: pages and entries that they looked at, pages that they freed and wrote.
    pub(super) fn kswapd_work(&self) -> Ps {
        self.work.get()
    }
}

/// A task that has nothing to remember while it waits.
#[derive(Default)]
pub(super) struct Idler {
    pub(super) queue: WaitQueue,
}

impl Idler {
    pub(super) fn wake(&self, kernel: &Kernel) {
        self.queue.wake_one(kernel, false);
    }
}

/// kcompactd of a node.
#[derive(Default)]
pub(super) struct Kcompactd {
    pub(super) queue: WaitQueue,
    /// What was asked of it: the largest order, the highest zone.
    asked: Cell<Option<(u8, u8)>>,
}

impl Kcompactd {
    pub(super) fn wake(&self, kernel: &Kernel, order: u8, class: u8) {
        let (largest, highest) = self.asked.get().unwrap_or((0, 0));
        self.asked.set(Some((largest.max(order), highest.max(class))));
        self.queue.wake_one(kernel, false);
    }

    pub(super) fn stop(&self, kernel: &Kernel) {
        self.queue.wake_one(kernel, false);
    }

    /// What was asked since this was last called.
    pub(super) fn asked(&self) -> Option<(u8, u8)> {
        self.asked.take()
    }
}

/// kswapd of a node.
#[derive(Default)]
pub(super) struct Kswapd {
    pub(super) queue: WaitQueue,
    /// What was asked of it since it last looked: the largest order, the highest zone.
    asked: Cell<Option<(u8, u8)>>,
    /// Its periodic work is due.
    pub(super) is_due: Cell<bool>,
    task: Cell<Option<TaskId>>,
    /// Since when it is awake; `None`: it sleeps.
    awake: Cell<Option<Ps>>,
}

impl Kswapd {
    /// Its task is this.
    pub(super) fn begins(&self, task: TaskId) {
        self.task.set(Some(task));
    }

    /// Remembers a request. Returns whether kswapd sleeps.
    pub(super) fn ask(&self, order: u8, class: u8) -> bool {
        let (largest, highest) = self.asked.get().unwrap_or((0, 0));
        self.asked.set(Some((largest.max(order), highest.max(class))));
        !self.queue.is_empty()
    }

    /// What was asked since this was last called.
    pub(super) fn asked(&self) -> Option<(u8, u8)> {
        self.asked.take()
    }

    pub(super) fn wake(&self, kernel: &Kernel) {
        self.queue.wake_one(kernel, false);
    }

    /// Sleeps at most this long. Returns whether it was woken before.
    pub(super) fn nap(&self, samples: &Samples, task: &Task, node: u16, most: Ps) -> bool {
        self.sleeps(samples, node);
        let waiting = Waiting { what: "for work, napping kswapd", number: 0 };
        let is_woken = self.queue.wait_at_most(task, waiting, most.max(1));
        self.wakes_up();
        is_woken
    }

    /// It is awake from now on.
    pub(super) fn wakes_up(&self) {
        self.awake.set(Some(Timed::clock()));
    }

    /// Its task, and whether it has work.
    pub(super) fn seen(&self) -> (Option<TaskId>, bool) {
        (self.task.get(), self.awake.get().is_some())
    }

    /// It falls asleep: the recording gets the time that it was awake.
    pub(super) fn sleeps(&self, samples: &Samples, node: u16) {
        if let Some(since) = self.awake.take() {
            samples.record_awake(|| format!("kswapd{node}"), since);
        }
    }
}

/// The task that writes dirty pages.
#[derive(Default)]
pub(super) struct Flusher {
    pub(super) queue: WaitQueue,
    /// Pages that were asked for; 0 beside `is_asked`: as many as it likes.
    pub(super) pages: Cell<u64>,
    pub(super) is_asked: Cell<bool>,
    pub(super) task: Cell<Option<TaskId>>,
    pub(super) works: Cell<bool>,
    /// Time between two rounds that was set since it last looked; 0: there are none.
    pub(super) every: Cell<Option<Ps>>,
}

impl Flusher {
    pub(super) fn wake(&self, kernel: &Kernel, pages: u64) {
        self.pages.set(self.pages.get().max(pages));
        self.is_asked.set(true);
        self.queue.wake_one(kernel, false);
    }

    /// Sets the time between two rounds, from now on; 0: it works only if it is asked.
    pub(super) fn set_every(&self, kernel: &Kernel, every: Ps) {
        self.every.set(Some(every));
        self.queue.wake_one(kernel, false);
    }

    /// Its task, and whether it has work.
    pub(super) fn seen(&self) -> (Option<TaskId>, bool) {
        (self.task.get(), self.works.get())
    }

    /// The flusher ends.
    pub(super) fn stop(&self, kernel: &Kernel) {
        self.queue.wake_one(kernel, false);
    }
}
