//! A small simulation in virtual time: tasks that run and sleep at random, on every policy. What holds for
//! each of them is checked at every step, and fairness at the end.

use super::script::{Random, machine};
use slablab_platform::CpuId;
use slablab_sim::sched::{Class, Idle, Kick, Leave, MS, Policy, Ps, Scheduler, Spec, TaskId, US, Why};
use std::collections::BTreeMap;

const RELEASES: [(u16, u16, u16); 6] = [(2, 4, 0), (2, 6, 29), (2, 6, 32), (5, 10, 0), (6, 6, 0), (6, 17, 0)];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The running task of a CPU is done with its burst, if this pick of the CPU still holds.
    Done(u16, u64),
    Wake(u32),
    Tick(u16),
    Schedule(u16),
}

/// What a task is doing, as the simulation knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Sleeping,
    Waiting,
    Running(u16),
}

struct Micro {
    scheduler: Scheduler,
    random: Random,
    events: BTreeMap<(Ps, u64), Event>,
    sequence: u64,
    now: Ps,
    tick: Ps,
    doing: Vec<Doing>,
    /// Run time still to go in the burst, and in total so far.
    burst: Vec<Ps>,
    ran: Vec<Ps>,
    charged_at: Vec<Ps>,
    picks: Vec<u64>,
    /// Longest run and sleep; without sleep tasks run for ever.
    longest: Ps,
    sleeps: Ps,
    /// The CPUs that each task may run on, as bits; whether they change at wake-ups.
    allowed: Vec<u64>,
    moods: bool,
    switches: u64,
    pulled: u64,
    trace: u64,
}

impl Micro {
    fn new(release: (u16, u16, u16), shape: [u16; 4], tasks: usize, longest: Ps, sleeps: Ps) -> Micro {
        let policy = Policy::for_release(release).expect("a release with a scheduler");
        let machine = machine(shape);
        let cpus = machine.core.len();
        let mut micro = Micro {
            scheduler: Scheduler::new(policy, &machine),
            random: Random(1),
            events: BTreeMap::new(),
            sequence: 0,
            now: 0,
            tick: policy.tick,
            doing: Vec::new(),
            burst: Vec::new(),
            ran: Vec::new(),
            charged_at: vec![0; cpus],
            picks: vec![0; cpus],
            longest,
            sleeps,
            allowed: Vec::new(),
            moods: false,
            switches: 0,
            pulled: 0,
            trace: 0,
        };
        for _ in 0..tasks {
            let at = 1 + micro.random.below(US);
            micro.add(Spec::default(), at);
        }
        (0..cpus).for_each(|cpu| micro.at(policy.tick, Event::Tick(cpu as u16)));
        micro
    }

    /// A task that wakes up for the first time at `at`.
    fn add(&mut self, spec: Spec, at: Ps) {
        let TaskId(task) = self.scheduler.add(spec, None);
        assert_eq!(task as usize, self.doing.len());
        self.doing.push(Doing::Sleeping);
        self.burst.push(0);
        self.ran.push(0);
        self.allowed.push(u64::MAX);
        self.at(at, Event::Wake(task));
    }

    fn at(&mut self, time: Ps, event: Event) {
        self.sequence += 1;
        self.events.insert((time, self.sequence), event);
    }

    fn run(&mut self, until: Ps) {
        while let Some(next) = self.events.first_entry().filter(|next| next.key().0 < until) {
            let ((now, _), event) = next.remove_entry();
            self.now = now;
            self.step(event);
        }
        self.now = until;
        (0..self.picks.len()).for_each(|cpu| self.charge(cpu as u16));
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Wake(task) => {
                assert_eq!(self.doing[task as usize], Doing::Sleeping);
                let from = CpuId(self.random.below(self.picks.len() as u64) as u16);
                if self.moods && self.random.below(4) == 0 {
                    self.change_affinity(task);
                }
                // Only a running task says that it will sleep soon.
                let sync = self.scheduler.current(from).is_some() && self.random.below(2) == 0;
                let why = Why::Wake { from, sync };
                let cpu = self.scheduler.select_cpu(TaskId(task), why, self.now).cpu;
                self.doing[task as usize] = Doing::Waiting;
                self.burst[task as usize] = 1 + self.random.below(self.longest);
                let kick = self.scheduler.enqueue(cpu, TaskId(task), why, self.now);
                self.told(kick);
            }
            Event::Done(cpu, pick) => {
                if self.picks[usize::from(cpu)] == pick {
                    self.charge(cpu);
                    let TaskId(task) = self.scheduler.leave(CpuId(cpu), Leave::Sleep, self.now);
                    self.doing[task as usize] = Doing::Sleeping;
                    let sleep = 1 + self.random.below(self.sleeps);
                    self.at(self.now + sleep, Event::Wake(task));
                    self.schedule(cpu);
                }
            }
            Event::Tick(cpu) => {
                self.at(self.now + self.tick, Event::Tick(cpu));
                let busy = self.scheduler.current(CpuId(cpu)).is_some();
                let preempts = self.scheduler.tick(CpuId(cpu), self.now);
                let idle = if busy { Idle::Busy } else { Idle::Idle };
                let balance = self.scheduler.balance(CpuId(cpu), idle, self.now);
                self.pulled += u64::from(balance.moved);
                if preempts || balance.preempts || (!busy && balance.moved > 0) {
                    self.schedule(cpu);
                }
            }
            Event::Schedule(cpu) => self.schedule(cpu),
        }
    }

    fn change_affinity(&mut self, task: u32) {
        let cpus = self.picks.len() as u16;
        let chosen = self.random.below(1 << cpus);
        let set: Vec<CpuId> = (0..cpus).filter(|cpu| chosen >> cpu & 1 == 1).map(CpuId).collect();
        self.allowed[task as usize] = if set.is_empty() { u64::MAX } else { chosen };
        let affinity = self.scheduler.affinity(&set);
        self.scheduler.set_affinity(TaskId(task), affinity);
    }

    fn told(&mut self, kick: Option<Kick>) {
        if let Some(Kick { cpu, .. }) = kick {
            self.at(self.now + US, Event::Schedule(cpu.0));
        }
    }

    /// Charges the running task's burst.
    fn charge(&mut self, cpu: u16) {
        if let Some(TaskId(task)) = self.scheduler.current(CpuId(cpu)) {
            let ran = self.now - self.charged_at[usize::from(cpu)];
            self.ran[task as usize] += ran;
            self.burst[task as usize] = self.burst[task as usize].saturating_sub(ran);
            self.charged_at[usize::from(cpu)] = self.now;
        }
    }

    fn schedule(&mut self, cpu: u16) {
        self.charge(cpu);
        if let Some(TaskId(task)) = self.scheduler.current(CpuId(cpu)) {
            self.doing[task as usize] = Doing::Waiting;
        }
        let mut picked = self.scheduler.pick(CpuId(cpu), self.now);
        if picked.task.is_none() && self.scheduler.balance(CpuId(cpu), Idle::Newly, self.now).moved > 0 {
            picked = self.scheduler.pick(CpuId(cpu), self.now);
        }
        self.told(picked.kick);
        self.switches += 1;
        self.picks[usize::from(cpu)] = self.switches;
        let name = picked.task.map_or(u64::MAX, |task| u64::from(task.0));
        self.trace = (self.trace ^ self.now ^ name.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if let Some(TaskId(task)) = picked.task {
            assert_eq!(self.doing[task as usize], Doing::Waiting, "task {task} is picked, but does not wait");
            assert!(self.allowed[task as usize] >> cpu & 1 == 1, "task {task} may not run on CPU {cpu}");
            self.doing[task as usize] = Doing::Running(cpu);
            self.charged_at[usize::from(cpu)] = self.now;
            if self.sleeps > 0 {
                self.at(self.now + self.burst[task as usize], Event::Done(cpu, self.switches));
            }
        }
    }

    /// Tasks that wait or run are those that the scheduler counts.
    fn check_counts(&self, release: (u16, u16, u16)) {
        let runnable = self.doing.iter().filter(|doing| **doing != Doing::Sleeping).count() as u32;
        let counted: u32 = (0..self.picks.len()).map(|cpu| self.scheduler.runnable(CpuId(cpu as u16))).sum();
        // 2.4 has one queue: only running tasks are of a CPU.
        if release >= (2, 6, 0) {
            assert_eq!(counted, runnable, "{release:?}");
        }
    }
}

#[test]
fn no_task_is_lost_and_each_run_is_the_same() {
    for release in RELEASES {
        for shape in [[1, 1, 1, 1], [1, 1, 4, 1], [2, 2, 2, 2]] {
            let run = || {
                let mut micro = Micro::new(release, shape, 40, 400 * US, 900 * US);
                for until in (1..=20).map(|step| step * 20 * MS) {
                    micro.run(until);
                    micro.check_counts(release);
                }
                micro
            };
            let (a, b) = (run(), run());
            assert_eq!((a.trace, a.switches), (b.trace, b.switches), "{release:?} {shape:?}");
            let least = a.ran.iter().min().copied().unwrap_or_default();
            // 2.4 deals out 60 ms at a time.
            let bound = if release < (2, 5, 0) { 0 } else { 2 * MS };
            assert!(least > bound, "{release:?} {shape:?}: a task ran for {least} ps of 400 ms");
            assert!(a.switches > 1000, "{}", a.switches);
        }
    }
}

/// Nice levels, classes, and sets of CPUs that change while tasks sleep: all tasks run where they may, and
/// none is lost.
#[test]
fn unequal_tasks_are_not_lost_either() {
    for release in RELEASES {
        let mut micro = Micro::new(release, [2, 2, 2, 1], 0, 400 * US, 900 * US);
        micro.moods = true;
        for task in 0..60u32 {
            let class = [Class::Normal, Class::Normal, Class::Batch, Class::Idle][task as usize % 4];
            let (nice, slice) = (task as i8 % 11 - 5, [None, Some(MS / 5)][task as usize % 2]);
            let spec = Spec { nice, class, slice, mm: task % 5, ..Spec::default() };
            micro.add(spec, 1 + u64::from(task) * US);
        }
        for until in (1..=40).map(|step| step * 20 * MS) {
            micro.run(until);
            micro.check_counts(release);
        }
        assert!(micro.switches > 10_000, "{release:?}: {} switches", micro.switches);
    }
}

/// Tasks that never sleep share one CPU equally, within one slice of the longest kind.
#[test]
fn equal_tasks_get_equal_shares() {
    for (release, slice) in [
        // 2.4 deals out 60 ms at a time; each task has had all of its own or none of the next.
        ((2, 4, 0), 60 * MS),
        ((2, 6, 29), 10 * MS),
        ((5, 10, 0), 4 * MS),
        ((6, 6, 0), 4 * MS),
        ((6, 17, 0), 4 * MS),
    ] {
        for tasks in [2, 7] {
            let mut micro = Micro::new(release, [1, 1, 1, 1], tasks, MS, 0);
            let time = 4200 * MS;
            micro.run(time);
            let (least, most) = (micro.ran.iter().min().unwrap(), micro.ran.iter().max().unwrap());
            // Slices end at ticks.
            assert!(most - least <= slice + micro.tick, "{release:?}, {tasks} tasks: {least} to {most}");
            let sum: Ps = micro.ran.iter().sum();
            assert!(sum > time - 10 * MS, "{release:?}: the CPU was idle for {} ps", time - sum);
        }
    }
}

/// Tasks that never sleep share one CPU by their weights: 1.25 times as much for each nice level.
#[test]
fn shares_follow_weights() {
    for release in RELEASES.into_iter().filter(|release| *release >= (2, 6, 0)) {
        let mut micro = Micro::new(release, [1, 1, 1, 1], 0, MS, 0);
        let weights = [(-5, 3125), (0, 1024), (5, 336)];
        weights.iter().for_each(|(nice, _)| micro.add(Spec { nice: *nice, ..Spec::default() }, 1));
        let time = 60_000 * MS;
        micro.run(time);
        for ((nice, weight), ran) in weights.into_iter().zip(&micro.ran) {
            let share = time / 4485 * weight;
            // Up to one slice of the longest kind and a tick.
            assert!(ran.abs_diff(share) < 24 * MS, "{release:?}, nice {nice}: {ran} of {share}");
        }
    }
}

/// As many tasks as CPUs, which all begin on few CPUs: soon every CPU runs one, and none is idle from then
/// on.
#[test]
fn balancing_leaves_no_cpu_idle() {
    for release in RELEASES {
        let mut micro = Micro::new(release, [2, 2, 2, 1], 8, MS, 0);
        micro.run(400 * MS);
        let early: Ps = micro.ran.iter().sum();
        micro.run(800 * MS);
        let late: Ps = micro.ran.iter().sum::<Ps>() - early;
        assert!(late >= 8 * 399 * MS, "{release:?}: 8 CPUs ran for {} ms of 3200", late / MS);
    }
}
