//! A scheduler driven by a text: one step a word group, the decisions as the answer.
//!
//! | step | what happens | answer |
//! |---|---|---|
//! | `a@0`, `a+0` | task `a` is made and queued on CPU 0; with `@` it also runs there | |
//! | `a@0/5`, `a@0#3`, `a@0~100` | nice 5; address space 3; a slice of 100 us | |
//! | `a@0%i`, `a@0=0,2` | the class idle (`b`: batch); CPUs 0 and 2 only | |
//! | `fork a b 0` | `a`, which runs on CPU 0, makes `b` | `b>1!` |
//! | `wake a 0`, `sync a 0` | CPU 0 wakes `a`, or says that it will sleep soon | `a>1!`: on CPU 1, which was idle |
//! | | | `a>1^`: it preempts; `a>1`: it waits |
//! | `sleep 0`, `exit 0` | the task of CPU 0 leaves, the next one is picked | `0:b`, `0:-` if idle |
//! | `pick 0` | CPU 0 schedules | `0:b` |
//! | `tick 0` | a timer interrupt | `yes` if CPU 0 has to schedule |
//! | `exec 0` | the task of CPU 0 executes a new program | `a>1! 0:b` if it moves |
//! | `ms 5`, `us 5` | time passes | |
//! | `newly 0`, `idle 0`, `busy 0` | CPU 0 balances | `a<1`: pulled from CPU 1; `none` |
//! | `at a` | | its position |

use slablab_platform::CpuId;
use slablab_sim::sched::{
    Class, Idle, Kick, Leave, MS, Machine, Policy, Ps, Scheduler, Spec, TaskId, US, Why,
};
use std::collections::BTreeMap;

/// A machine: nodes, caches in a node, cores under a cache, CPUs of a core. Siblings have adjacent numbers.
pub(crate) fn machine([nodes, llcs, cores, threads]: [u16; 4]) -> Machine {
    let cpus = nodes * llcs * cores * threads;
    let by = |share: u16| (0..cpus).map(|cpu| cpu / share).collect::<Vec<u16>>();
    let far = |a: u16, b: u16| if a == b { 10 } else { 20 };
    Machine {
        core: by(threads),
        llc: by(cores * threads),
        node: by(llcs * cores * threads),
        distances: (0..nodes).map(|a| (0..nodes).map(|b| far(a, b)).collect()).collect(),
        reclaim_distance: 30,
    }
}

pub(crate) fn scheduler(release: (u16, u16, u16), shape: [u16; 4]) -> Scheduler {
    Scheduler::new(Policy::for_release(release).expect("a release with a scheduler"), &machine(shape))
}

struct Script {
    scheduler: Scheduler,
    tasks: BTreeMap<String, TaskId>,
    now: Ps,
    answers: Vec<String>,
}

impl Script {
    fn name(&self, task: TaskId) -> &str {
        self.tasks.iter().find(|(_, id)| **id == task).map_or("?", |(name, _)| name)
    }

    fn queue(&mut self, name: &str, cpu: Option<CpuId>, why: Why) {
        let task = self.tasks[name];
        let chosen = self.scheduler.select_cpu(task, why, self.now);
        let cpu = cpu.unwrap_or(chosen.cpu);
        let kick = self.scheduler.enqueue(cpu, task, why, self.now);
        let (cpu, mark) = match kick {
            Some(Kick { cpu, idle: true }) => (cpu, "!"),
            Some(Kick { cpu, idle: false }) => (cpu, "^"),
            None => (cpu, ""),
        };
        self.answers.push(format!("{name}>{}{mark}", cpu.0));
    }

    fn pick(&mut self, cpu: CpuId) {
        let picked = self.scheduler.pick(cpu, self.now).task;
        let name = picked.map_or("-", |task| self.name(task));
        self.answers.push(format!("{}:{name}", cpu.0));
    }

    fn balance(&mut self, cpu: CpuId, idle: Idle) {
        let balance = self.scheduler.balance(cpu, idle, self.now);
        assert_eq!(balance.moved as usize, self.scheduler.moves().len());
        let moves = self.scheduler.moves().iter().map(|m| format!("{}<{}", self.name(m.task), m.from.0));
        let moves = moves.collect::<Vec<_>>().join(",");
        self.answers.push(if moves.is_empty() { "none".to_owned() } else { moves });
    }

    /// `a@0/5#3`: name, how, CPU, nice, address space.
    fn make(&mut self, text: &str) {
        let (runs, at) = text.find('@').map_or_else(|| (false, text.find('+')), |at| (true, Some(at)));
        let at = at.unwrap_or_else(|| panic!("no step {text}"));
        let (rest, slice) = text[at + 1..].split_once('~').unwrap_or((&text[at + 1..], "0"));
        let (rest, cpus) = rest.split_once('=').unwrap_or((rest, ""));
        let cpus: Vec<CpuId> = cpus.split(',').filter_map(|cpu| cpu.parse().ok().map(CpuId)).collect();
        let (rest, class) = rest.split_once('%').unwrap_or((rest, ""));
        let class = match class {
            "i" => Class::Idle,
            "b" => Class::Batch,
            _ => Class::Normal,
        };
        let (rest, mm) = rest.split_once('#').unwrap_or((rest, "0"));
        let (cpu, nice) = rest.split_once('/').unwrap_or((rest, "0"));
        let number = |text: &str| text.parse::<i32>().unwrap_or_else(|_| panic!("no number: {text}"));
        let slice = Some(number(slice) as Ps * US).filter(|slice| *slice > 0);
        let (nice, mm) = (number(nice) as i8, number(mm) as u32);
        let affinity = self.scheduler.affinity(&cpus);
        let spec = Spec { nice, class, mm, affinity, slice };
        let (task, cpu) = (self.scheduler.add(spec, None), CpuId(number(cpu) as u16));
        self.tasks.insert(text[..at].to_owned(), task);
        self.scheduler.enqueue(cpu, task, Why::Move, self.now);
        if runs {
            let picked = self.scheduler.pick(cpu, self.now).task;
            assert_eq!(picked, Some(task), "{text}: another task runs");
        }
    }

    fn step(&mut self, words: &mut dyn Iterator<Item = &str>) -> bool {
        let Some(word) = words.next() else { return false };
        let mut next = || words.next().unwrap_or_else(|| panic!("{word} needs more"));
        let cpu = |text: &str| CpuId(text.parse().unwrap_or_else(|_| panic!("no CPU: {text}")));
        match word {
            "fork" => {
                let (parent, child, from) = (self.tasks[next()], next(), cpu(next()));
                let id = self.scheduler.add(Spec::default(), Some(parent));
                self.tasks.insert(child.to_owned(), id);
                self.queue(child, None, Why::Fork { from });
            }
            "wake" | "sync" => {
                let name = next();
                self.queue(name, None, Why::Wake { from: cpu(next()), sync: word == "sync" });
            }
            "sleep" | "exit" => {
                let cpu = cpu(next());
                let how = if word == "sleep" { Leave::Sleep } else { Leave::Exit };
                self.scheduler.leave(cpu, how, self.now);
                self.pick(cpu);
            }
            "exec" => {
                let cpu = cpu(next());
                let task = self.scheduler.current(cpu).expect("a task runs there");
                if self.scheduler.select_cpu(task, Why::Exec, self.now).cpu != cpu {
                    self.scheduler.leave(cpu, Leave::Move, self.now);
                    let name = self.name(task).to_owned();
                    self.queue(&name, None, Why::Exec);
                    self.pick(cpu);
                }
            }
            "pick" => self.pick(cpu(next())),
            "tick" => {
                let preempts = self.scheduler.tick(cpu(next()), self.now);
                self.answers.push(if preempts { "yes" } else { "no" }.to_owned());
            }
            "ms" => self.now += next().parse::<Ps>().expect("milliseconds") * MS,
            "us" => self.now += next().parse::<Ps>().expect("microseconds") * US,
            "newly" => self.balance(cpu(next()), Idle::Newly),
            "idle" => self.balance(cpu(next()), Idle::Idle),
            "busy" => self.balance(cpu(next()), Idle::Busy),
            "at" => {
                let position = self.scheduler.position(self.tasks[next()]);
                self.answers.push(position.to_string());
            }
            making => self.make(making),
        }
        true
    }
}

/// Runs a script under a release's scheduler on a machine of a shape (see [`machine`]).
#[track_caller]
pub(crate) fn check(release: (u16, u16, u16), shape: [u16; 4], text: &str, expected: &str) {
    let scheduler = scheduler(release, shape);
    let mut script = Script { scheduler, tasks: BTreeMap::new(), now: 1000 * MS, answers: Vec::new() };
    let mut words = text.split_whitespace();
    while script.step(&mut words) {}
    assert_eq!(script.answers.join(" "), expected, "{release:?} {shape:?}: {text}");
}

/// Random numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
