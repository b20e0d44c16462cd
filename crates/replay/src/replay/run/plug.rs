//! What a run does when CPUs go off and on.
//!
//! A CPU that goes off: every cache's engine takes it down, as the kernel's CPU_DEAD callbacks do, and the
//! page allocator takes its page lists back. Its stand-in does both, as it does the CPU's rows and deferred
//! work from then on. Nothing is lost by it: the run's balance at the end knows nothing of hotplug.

use super::{Run, SheafMemory, World, sheaf_memory};
use crate::replay::hotplug::Step;
use crate::replay::outcome::Elsewhere;
use slablab_model::Model;
use slablab_platform::{CpuId, Topology};
use slablab_slabs::{Backing, Engine};

/// Where a run is in the schedule.
#[derive(Default)]
pub(in crate::replay) struct Plugged {
    /// The next step's time; 2^64 - 1 after the last.
    pub(in crate::replay) next_ns: u64,
    /// Steps done.
    done: usize,
    /// CPUs that are off.
    pub(in crate::replay) off: usize,
    pub(in crate::replay) elsewhere: Elsewhere,
}

impl<W: World, E: Engine<W>> Run<'_, W, E> {
    /// Does what is due, each step at its time.
    #[cold]
    pub(in crate::replay) fn plug(&mut self, now_ns: u64) {
        let steps = &self.job.hotplug.steps;
        while let Some(step) = steps.get(self.plugged.done).filter(|step| step.time_ns <= now_ns) {
            Model::advance_to(step.time_ns);
            self.timers();
            self.step(step);
            self.plugged.done += 1;
        }
        self.plugged.next_ns = steps.get(self.plugged.done).map_or(u64::MAX, |step| step.time_ns);
    }

    fn step(&mut self, step: &Step) {
        step.cpus.iter().for_each(|cpu| Model::set_online(*cpu, step.on));
        for cpu in &step.cpus {
            if step.on {
                let sheaf = sheaf_memory!(self);
                self.caches.iter().for_each(|cache| cache.cpu_up(&sheaf.backing(), *cpu));
                self.plugged.off -= 1;
            } else {
                Model::run_on(CpuId(step.stand_ins[cpu.0 as usize]));
                let sheaf = sheaf_memory!(self);
                let backing = sheaf.backing();
                self.caches.iter().for_each(|cache| cache.cpu_down(&backing, *cpu));
                self.pages.cpu_down(*cpu);
                self.plugged.off += 1;
            }
        }
    }

    /// The CPU that does the work of `cpu` now.
    pub(in crate::replay) fn stand_in(&self, cpu: u16) -> u16 {
        let last = self.plugged.done.checked_sub(1).map(|last| &self.job.hotplug.steps[last]);
        last.map_or(cpu, |step| step.stand_ins[cpu as usize])
    }

    /// As [`Run::stand_in`], for a row, which is counted.
    #[cold]
    pub(in crate::replay) fn row_elsewhere(&mut self, cpu: u16) -> u16 {
        let by = self.stand_in(cpu);
        self.plugged.elsewhere.rows += (by != cpu) as u64;
        let far = Model::cpu_node(CpuId(by)) != Model::cpu_node(CpuId(cpu));
        self.plugged.elsewhere.rows_other_node += far as u64;
        by
    }
}
