//! Kernel tasks of the memory: kswapd of each node, kreclaimd, the flusher, and the task that sums statistics
//! up.

use super::Memory;
use super::compact::Kcompactd;
use super::host::Here;
use super::sampler::DAEMONS;
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use slablab_platform::{CpuId, Topology};
use slablab_vm::{Host, Mark};
use std::cell::Cell;
use std::rc::Rc;

/// kswapd of a node.
#[derive(Default)]
pub(super) struct Kswapd {
    queue: WaitQueue,
    /// What was asked of it since it last looked: the largest order, the highest zone.
    asked: Cell<Option<(u8, u8)>>,
    /// Its periodic work is due.
    is_due: Cell<bool>,
    task: Cell<Option<TaskId>>,
    /// Since when it is awake; `None`: it sleeps.
    awake: Cell<Option<Ps>>,
}

impl Kswapd {
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
    pub(super) fn nap(&self, memory: &Memory, task: &Task, node: u16, most: Ps) -> bool {
        self.sleeps(memory, node);
        let waiting = Waiting { what: "for work, napping kswapd", number: 0 };
        let is_woken = self.queue.wait_at_most(task, waiting, most.max(1));
        self.awake.set(Some(Timed::clock()));
        is_woken
    }

    /// Its task, and whether it has work.
    pub(super) fn seen(&self) -> (Option<TaskId>, bool) {
        (self.task.get(), self.awake.get().is_some())
    }

    /// It falls asleep: the recording gets the time that it was awake.
    fn sleeps(&self, memory: &Memory, node: u16) {
        if let Some(since) = self.awake.take() {
            memory.record_awake(|| format!("kswapd{node}"), since);
        }
    }

    /// The program of a timer: from time to time the policy's periodic work is due, which kswapd does. (A
    /// time limit on kswapd's sleep would be a call that lives on whenever kswapd is woken before.)
    pub(super) fn run_timer(memory: &Rc<Memory>, task: &Task, every: Ps) {
        while !memory.stopping.get() {
            task.sleep(every);
            // A run that has failed ends here: no timer follows.
            task.preemption_point();
            let this = &memory.daemons[0];
            this.is_due.set(true);
            this.wake(&memory.kernel);
        }
    }

    /// kswapd's program.
    pub(super) fn run(memory: &Rc<Memory>, task: &Task, node: u16) {
        let this = &memory.daemons[node as usize];
        this.task.set(Some(task.id));
        let here = Here::kswapd(memory, task);
        Timed::as_reclaimer(|| {
            loop {
                memory.unplug(task);
                this.sleeps(memory, node);
                if memory.stopping.get() {
                    return;
                }
                if !this.is_due.get() {
                    this.queue.wait(task, Waiting { what: "for work, kswapd of node", number: node.into() });
                }
                Timed::turn();
                if memory.stopping.get() {
                    return;
                }
                this.awake.set(Some(Timed::clock()));
                memory.plugged(task);
                if this.is_due.take() {
                    memory.vm.policy.tick(&memory.vm, &here);
                    task.preemption_point();
                    continue;
                }
                let (order, class) = this.asked.take().unwrap_or((0, 0));
                memory.vm.policy.kswapd(&memory.vm, &here, node, order, class);
            }
        });
    }
}

/// The task of 2.4.8 and 2.4.9 that frees clean pages, for requests that cannot take them themselves.
#[derive(Default)]
pub(super) struct Kreclaimd {
    queue: WaitQueue,
}

impl Kreclaimd {
    pub(super) fn wake(&self, kernel: &Kernel) {
        self.queue.wake_one(kernel, false);
    }

    /// Its program: each zone gets as many free pages as its low mark, if it has clean ones.
    pub(super) fn run(memory: &Rc<Memory>, task: &Task) {
        let here = Here::new(memory, task);
        Timed::as_reclaimer(|| {
            loop {
                let waiting = Waiting { what: "for work, kreclaimd", number: 0 };
                memory.kreclaimd.queue.wait(task, waiting);
                Timed::turn();
                if memory.stopping.get() {
                    return;
                }
                for zone in 0..memory.zones.len() {
                    while here.free_pages(zone) < here.mark(zone, Mark::Low) {
                        let Some(page) = memory.vm.policy.steal_clean(&memory.vm, &here, zone) else { break };
                        here.free(&memory.vm, page);
                    }
                }
            }
        });
    }
}

/// The task that writes dirty pages.
#[derive(Default)]
pub(super) struct Flusher {
    queue: WaitQueue,
    /// Pages that were asked for; 0 beside `is_asked`: as many as it likes.
    pages: Cell<u64>,
    is_asked: Cell<bool>,
    task: Cell<Option<TaskId>>,
    works: Cell<bool>,
    /// Time between two rounds that was set since it last looked; 0: there are none.
    every: Cell<Option<Ps>>,
}

/// A time that no run reaches.
const NEVER: Ps = 1 << 62;

impl Flusher {
    pub(super) fn wake(&self, kernel: &Kernel, pages: u64) {
        self.pages.set(self.pages.get().max(pages));
        self.is_asked.set(true);
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

    /// The flusher's program.
    pub(super) fn run(memory: &Rc<Memory>, task: &Task) {
        let this = &memory.flusher;
        this.task.set(Some(task.id));
        let here = Here::new(memory, task);
        let mut every = memory.guest.writeback_every;
        let mut next = Timed::clock() + memory.guest.writeback_first.unwrap_or(every);
        while !memory.stopping.get() {
            if let Some(set) = this.every.take() {
                every = if set == 0 { NEVER } else { set };
                next = Timed::clock() + every;
            }
            if !this.is_asked.get() {
                let waiting = Waiting { what: "for work, flusher", number: 0 };
                let most = next.saturating_sub(Timed::clock()).max(1);
                this.queue.wait_at_most(task, waiting, most);
                Timed::turn();
                if this.every.get().is_some() {
                    continue;
                }
            }
            let since = Timed::clock();
            this.works.set(true);
            let is_due = since >= next;
            memory.flush(&here, this.is_asked.replace(false), this.pages.replace(0), is_due);
            memory.unplug(task);
            this.works.set(false);
            memory.record_awake(|| "flusher".into(), since);
            // A run that has failed ends here: no timer follows.
            task.preemption_point();
            if Timed::clock() >= next {
                next = Timed::clock() + every;
            }
        }
    }
}

impl Memory {
    /// Sets the time between two rounds of the flusher, from now on; 0: it works only if it is asked.
    pub fn set_writeback_every(&self, every: Ps) {
        self.flusher.every.set(Some(every));
        self.flusher.queue.wake_one(&self.kernel, false);
    }

    /// The nodes.
    pub fn nodes(&self) -> std::ops::Range<u16> {
        0..Timed::nodes()
    }

    /// Starts the tasks that this memory's kernel has.
    pub(super) fn start_daemons(self: &Rc<Self>) {
        for node in 0..Timed::nodes() {
            self.start_daemon(format!("kswapd{node}"), move |memory, task| Kswapd::run(memory, task, node));
            self.start_daemon(format!("kcompactd{node}"), move |memory, task| {
                Kcompactd::run(memory, task, node);
            });
        }
        if let Some(every) = self.guest.tick_every {
            self.start_daemon("kswapd's timer".into(), move |memory, task| {
                Kswapd::run_timer(memory, task, every);
            });
        }
        if self.vm.policy.has_clean_pages() {
            self.start_daemon("kreclaimd".into(), Kreclaimd::run);
        }
        self.start_daemon("flusher".into(), Flusher::run);
        if self.kernel.heap.pages().tunes() {
            self.start_daemon("vmstat".into(), Refresher::run);
        }
        if let Some(every) = self.vm.policy.sums_up_every() {
            self.start_daemon("statistics".into(), move |memory, task| {
                Summer::run(memory, task, every * 1_000);
            });
        }
    }

    fn start_daemon(self: &Rc<Self>, name: String, program: impl FnOnce(&Rc<Memory>, &Task) + 'static) {
        let memory = self.clone();
        self.kernel.start_daemon(move |task| {
            task.call_it(|| name);
            program(&memory, task);
        });
    }

    /// A daemon was awake since `since`. A time without work is not recorded.
    fn record_awake(&self, name: impl Fn() -> String, since: Ps) {
        if self.recorder.is_on() && Timed::clock() > since {
            let track = self.recorder.track(DAEMONS, &name);
            self.recorder.slice(track, self.recorder.name(name), since, Timed::clock());
        }
    }
}

/// The task that makes the page lists of CPUs shorter each second (`vmstat_update`; from memory: each CPU has
/// its own).
#[derive(Default)]
pub(super) struct Refresher {
    queue: WaitQueue,
}

impl Refresher {
    /// It ends.
    pub(super) fn stop(&self, kernel: &Kernel) {
        self.queue.wake_one(kernel, false);
    }

    /// Its program.
    pub(super) fn run(memory: &Rc<Memory>, task: &Task) {
        const SECOND: Ps = 1_000_000_000_000;
        while !memory.stopping.get() {
            let waiting = Waiting { what: "for the next second, page lists", number: 0 };
            if !memory.refresher.queue.wait_at_most(task, waiting, SECOND) {
                (0..Timed::cpus()).for_each(|cpu| memory.kernel.heap.pages().refresh(CpuId(cpu)));
            }
            // A run that has failed ends here: no timer follows.
            task.preemption_point();
        }
    }
}

/// The task that sums statistics up over memory groups.
#[derive(Default)]
pub(super) struct Summer {
    queue: WaitQueue,
}

impl Summer {
    /// It ends.
    pub(super) fn stop(&self, kernel: &Kernel) {
        self.queue.wake_one(kernel, false);
    }

    /// Its program: `every` picoseconds, since a boot that was some time ago.
    pub(super) fn run(memory: &Rc<Memory>, task: &Task, every: Ps) {
        memory.vm.policy.sum_up();
        let mut most = 1 + memory.kernel.random(every);
        while !memory.stopping.get() {
            let waiting = Waiting { what: "for the next sum, statistics", number: 0 };
            if !memory.summer.queue.wait_at_most(task, waiting, most) {
                memory.vm.policy.sum_up();
            }
            most = every;
            // A run that has failed ends here: no timer follows.
            task.preemption_point();
        }
    }
}
