//! Whether a waking task or a tick preempts the running task.

use super::super::policy::{Granularity, Queueing};
use super::super::words::{Class, Why};
use super::{Fair, NICE_0, NONE};

impl Fair {
    /// Whether a task that was just queued preempts the running one (docs/theory/scheduler.md 3.5, 7.5).
    pub(super) fn wakeup_preempts(&mut self, cpu: u16, wakee: u32, current: u32) -> bool {
        let (class, running) = (self.tasks[wakee as usize].class, self.tasks[current as usize].class);
        match (running, class) {
            (Class::Idle, Class::Idle) => {}
            (Class::Idle, _) => return true,
            (_, Class::Normal) => {}
            _ => return false,
        }
        match self.rules.queueing {
            Queueing::Cfs { eager_buddies, nr_latency, .. } => {
                let queue = &mut self.queues[usize::from(cpu)];
                if eager_buddies {
                    (queue.next_buddy, queue.last_buddy) = (wakee, current);
                }
                let many = u64::from(queue.nr) >= nr_latency;
                let behind = self.tasks[current as usize].vruntime - self.tasks[wakee as usize].vruntime;
                let preempts = self.beyond_granularity(behind, current, wakee);
                if preempts && many && !eager_buddies {
                    self.queues[usize::from(cpu)].last_buddy = current;
                }
                preempts
            }
            Queueing::Eevdf(rules) => {
                let shorter = self.tasks[wakee as usize].slice < self.tasks[current as usize].slice;
                let parity = !(rules.preempt_short && shorter);
                let preempts = self.choose_eevdf(cpu, parity) == Some(wakee);
                if preempts && !parity {
                    self.queues[usize::from(cpu)].protected_until = i64::MIN;
                }
                preempts
            }
        }
    }

    /// Whether a lead of one task in virtual time over another, which would run instead, is above the wake-up
    /// granularity.
    pub(super) fn beyond_granularity(&self, lead: i64, ahead: u32, other: u32) -> bool {
        let Queueing::Cfs { granularity, .. } = self.rules.queueing else { return false };
        let weight = match granularity {
            Granularity::Running => self.tasks[ahead as usize].weight.max(NICE_0),
            Granularity::Waking => self.tasks[other as usize].weight,
        };
        lead > (self.wakeup_granularity * NICE_0 / weight) as i64
    }

    /// Whether the running task has used its CFS slice (docs/theory/scheduler.md 3.3).
    pub(super) fn tick_preempts(&mut self, cpu: u16, current: u32) -> bool {
        let Queueing::Cfs { tick_by_lead, .. } = self.rules.queueing else { return false };
        let queue = &self.queues[usize::from(cpu)];
        let Some(first) = self.forest.first(queue.root) else { return false };
        let entry = &self.tasks[current as usize];
        let ran = entry.ran - entry.ran_at_pick;
        let slice = self.slice(cpu, entry.weight, false);
        if ran > slice {
            self.forget_buddy(cpu, current);
            return true;
        }
        let lead = entry.vruntime - self.tasks[first as usize].vruntime;
        tick_by_lead && ran >= self.min_granularity && lead > slice as i64
    }

    /// The task is no buddy any more.
    pub(super) fn forget_buddy(&mut self, cpu: u16, task: u32) {
        let queue = &mut self.queues[usize::from(cpu)];
        for buddy in [&mut queue.next_buddy, &mut queue.last_buddy] {
            if *buddy == task {
                *buddy = NONE;
            }
        }
    }

    /// The waker has woken another task: from now on its run time is overlap (docs/theory/scheduler.md 4.1).
    pub(super) fn note_waking(&mut self, why: Why) {
        if let Why::Wake { from, .. } = why
            && let Some(waker) = self.queues[usize::from(from.0)].current
        {
            let entry = &mut self.tasks[waker as usize];
            entry.ran_at_waking = entry.ran + 1;
        }
    }

    /// A child that is queued on its parent's CPU goes first: it changes virtual times with the parent
    /// (docs/theory/scheduler.md 3.6).
    pub(super) fn child_goes_first(&mut self, cpu: u16, child: u32, parent: u32) -> bool {
        let Queueing::Cfs { child_first: true, .. } = self.rules.queueing else { return false };
        let [own, parents] = [child, parent].map(|task| self.tasks[task as usize].vruntime);
        if parents < own {
            self.remove(cpu, child);
            self.tasks[child as usize].vruntime = parents;
            self.tasks[parent as usize].vruntime = own;
            self.insert(cpu, child);
        }
        true
    }
}
