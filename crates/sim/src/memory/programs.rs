//! The programs of the memory's daemons.

use super::Memory;
use super::compact;
use super::host::Here;
use crate::kernel::{Task, Waiting};
use slablab_model::{Ps, Timed};
use slablab_platform::{CpuId, Topology};
use slablab_vm::{Host, Mark, mm};
use std::rc::Rc;

/// A time that no run reaches.
const NEVER: Ps = 1 << 62;
const SECOND: Ps = 1_000_000_000_000;

impl Memory {
    /// Starts the tasks that this memory's kernel has.
    pub(super) fn start_daemons(self: &Rc<Self>) {
        for node in 0..Timed::nodes() {
            self.start_daemon(format!("kswapd{node}"), move |memory, task| kswapd(memory, task, node));
            self.start_daemon(format!("kcompactd{node}"), move |memory, task| {
                compact::run(memory, task, node);
            });
        }
        if let Some(every) = self.guest.tick_every {
            self.start_daemon("kswapd's timer".into(), move |memory, task| {
                kswapd_timer(memory, task, every);
            });
        }
        if self.vm.policy.has_clean_pages() {
            self.start_daemon("kreclaimd".into(), kreclaimd);
        }
        self.start_daemon("flusher".into(), flusher);
        if self.kernel.heap.pages().tunes() {
            self.start_daemon("vmstat".into(), refresher);
        }
        if let Some(every) = self.vm.policy.sums_up_every() {
            self.start_daemon("statistics".into(), move |memory, task| {
                summer(memory, task, every * 1_000);
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
}

/// The program of a timer: from time to time the policy's periodic work is due, which kswapd does. (A time
/// limit on kswapd's sleep would be a call that lives on whenever kswapd is woken before.)
fn kswapd_timer(memory: &Rc<Memory>, task: &Task, every: Ps) {
    while !memory.daemons.are_stopping() {
        task.sleep(every);
        // A run that has failed ends here: no timer follows.
        task.preemption_point();
        let this = &memory.daemons.kswapds[0];
        this.is_due.set(true);
        this.wake(&memory.kernel);
    }
}

/// kswapd's program.
fn kswapd(memory: &Rc<Memory>, task: &Task, node: u16) {
    let this = &memory.daemons.kswapds[node as usize];
    this.begins(task.id);
    let here = Here::kswapd(memory, task);
    Timed::as_reclaimer(|| {
        loop {
            memory.unplug(task);
            this.sleeps(&memory.samples, node);
            if memory.daemons.are_stopping() {
                return;
            }
            if !this.is_due.get() {
                this.queue.wait(task, Waiting { what: "for work, kswapd of node", number: node.into() });
            }
            Timed::turn();
            if memory.daemons.are_stopping() {
                return;
            }
            this.wakes_up();
            memory.plugged(task);
            if this.is_due.take() {
                memory.vm.policy.tick(&memory.vm, &here);
                task.preemption_point();
                continue;
            }
            let (order, class) = this.asked().unwrap_or((0, 0));
            memory.vm.policy.kswapd(&memory.vm, &here, node, order, class);
        }
    });
}

/// The program of kreclaimd, the task of 2.4.8 and 2.4.9 that frees clean pages, for requests that cannot
/// take them themselves: each zone gets as many free pages as its low mark, if it has clean ones.
fn kreclaimd(memory: &Rc<Memory>, task: &Task) {
    let here = Here::new(memory, task);
    Timed::as_reclaimer(|| {
        loop {
            let waiting = Waiting { what: "for work, kreclaimd", number: 0 };
            memory.daemons.kreclaimd.queue.wait(task, waiting);
            Timed::turn();
            if memory.daemons.are_stopping() {
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

/// The flusher's program.
fn flusher(memory: &Rc<Memory>, task: &Task) {
    let this = &memory.daemons.flusher;
    this.task.set(Some(task.id));
    let here = Here::new(memory, task);
    let mut every = memory.guest.writeback_every;
    let mut next = Timed::clock() + memory.guest.writeback_first.unwrap_or(every);
    while !memory.daemons.are_stopping() {
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
        flush(memory, &here, this.is_asked.replace(false), this.pages.replace(0), is_due);
        memory.unplug(task);
        this.works.set(false);
        memory.samples.record_awake(|| "flusher".into(), since);
        // A run that has failed ends here: no timer follows.
        task.preemption_point();
        if Timed::clock() >= next {
            next = Timed::clock() + every;
        }
    }
}

/// The flusher's work: what was asked for, then what is too old.
fn flush(memory: &Memory, here: &Here, is_asked: bool, pages: u64, is_due: bool) {
    let write = |why| mm::write_back(&memory.vm, here, &memory.rules, why);
    if is_asked {
        write(if pages > 0 { mm::Why::Pages(pages) } else { mm::Why::Background });
    }
    // 2.4 has a task for old pages alone, which nobody wakes before its time.
    if is_due || memory.rules.dirty != mm::DirtyRule::Buffers {
        write(mm::Why::Old);
    }
}

/// The program of the task that makes the page lists of CPUs shorter each second (`vmstat_update`; from
/// memory: each CPU has its own).
fn refresher(memory: &Rc<Memory>, task: &Task) {
    while !memory.daemons.are_stopping() {
        let waiting = Waiting { what: "for the next second, page lists", number: 0 };
        if !memory.daemons.refresher.queue.wait_at_most(task, waiting, SECOND) {
            (0..Timed::cpus()).for_each(|cpu| memory.kernel.heap.pages().refresh(CpuId(cpu)));
        }
        // A run that has failed ends here: no timer follows.
        task.preemption_point();
    }
}

/// The program of the task that sums statistics up over memory groups: `every` picoseconds, since a boot that
/// was some time ago.
fn summer(memory: &Rc<Memory>, task: &Task, every: Ps) {
    memory.vm.policy.sum_up();
    let mut most = 1 + memory.kernel.random(every);
    while !memory.daemons.are_stopping() {
        let waiting = Waiting { what: "for the next sum, statistics", number: 0 };
        if !memory.daemons.summer.queue.wait_at_most(task, waiting, most) {
            memory.vm.policy.sum_up();
        }
        most = every;
        // A run that has failed ends here: no timer follows.
        task.preemption_point();
    }
}
