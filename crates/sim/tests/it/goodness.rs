//! 2.4 (docs/theory/scheduler.md 2).

use super::script;
use slablab_platform::CpuId;
use slablab_sim::sched::{Leave, Ps, Scheduler, Spec, TaskId, Why};

#[track_caller]
fn check(cpus: u16, text: &str, expected: &str) {
    script::check((2, 4, 0), [1, 1, cpus, 1], text, expected);
}

#[test]
fn goodness_is_time_left_nice_and_bonuses() {
    // 6 ticks of 10 ms at nice 0, 11 at nice -20, 1 at nice 19.
    check(1, "a+0 b+0/-20 c+0/19 at a at b at c", "26 51 2");
    check(1, "a+0 b+0/-20 c+0/19 pick 0 sleep 0 sleep 0", "0:b 0:a 0:c");
    // The last tick of a slice makes the CPU schedule, and a task without time left has no goodness.
    check(1, "a@0 tick 0 tick 0 tick 0 tick 0 tick 0 at a tick 0 at a", "no no no no no 21 yes 0");
    // Ties go to the task that was queued last: new tasks are put at the head.
    check(1, "a@0 b+0 c+0 sleep 0", "0:c");
    // The running task keeps the CPU in a tie.
    check(1, "a@0 b+0 pick 0", "0:a");
    // One address space more is one point: b has the one that ran last.
    check(1, "a@0#1 b+0#1 c+0#2 sleep 0", "0:b");
    // The CPU where it ran last is 15 points: c waits for CPU 1, though it was queued later.
    check(2, "a@0 z@1 b+0 c+1 sleep 0 sleep 1", "0:b 1:c");
    check(2, "a@0 z@1 c+1/-20 b+0 sleep 0", "0:c");
}

#[test]
fn all_tasks_get_time_when_no_runnable_one_has_any() {
    let spend = "tick 0 tick 0 tick 0 tick 0 tick 0 tick 0";
    // a sleeps with 6 ticks: 6/2 + 6 = 9 then, 10 after the next recalculation.
    let text = format!("a@0 sleep 0 b@0 {spend} pick 0 at b at a {spend} pick 0 at a");
    check(1, &text, "0:- no no no no no yes 0:b 26 29 no no no no no yes 0:b 30");
    // A sleeper's time converges below 12 ticks.
    let mut text = String::from("a@0 sleep 0 b@0");
    (0..20).for_each(|_| text.push_str(&format!(" {spend} pick 0")));
    let spends = " no no no no no yes 0:b".repeat(20);
    check(1, &(text + " at a"), &format!("0:-{spends} 31"));
}

#[test]
fn a_woken_task_goes_to_its_idle_cpu_then_to_the_longest_idle_one() {
    check(4, "w@0 a@3 sleep 3 wake a 0", "3:- a>3!");
    // CPU 3 is busy; 1 and 2 are idle, 2 since longer.
    check(4, "w@0 a@3 b@1 c@2 sleep 2 ms 1 sleep 1 ms 1 sleep 3 d@3 wake a 0", "2:- 1:- 3:- a>2!");
    // No CPU is idle: the one whose task loses most, if by more than one point.
    check(2, "w@0 a@1 sleep 1 b@1 tick 1 wake a 0", "1:- no a>1");
    check(2, "w@0 a@1 sleep 1 b@1 tick 1 tick 1 wake a 0", "1:- no no a>1^");
    // On the waker's CPU it lacks the 15 points.
    check(2, "w@0 a@1 sleep 1 b@1 tick 0 tick 0 tick 0 wake a 0", "1:- no no no a>1");
    // A sync wake-up queues only.
    check(2, "w@0 a@1 sleep 1 sync a 0 pick 1", "1:- a>1 1:a");
    // The preempted task looks for another CPU.
    check(1, "a@0 sleep 0 b@0 tick 0 tick 0 wake a 0 pick 0", "0:- no no a>0^ 0:a");
}

#[test]
fn a_child_takes_half_of_its_parents_time() {
    check(1, "a@0 fork a b 0 at a at b", "b>0 23 23");
    check(1, "a@0 tick 0 fork a b 0 at a at b", "no b>0 22 23");
}

/// The list of 2.4, walked as the kernel walks it.
#[derive(Default)]
struct List {
    /// Counter, nice, mm, last CPU, running on.
    tasks: Vec<(i64, i64, u32, u16, Option<u16>)>,
    /// Runnable tasks, the head first.
    list: Vec<usize>,
    mm: Vec<u32>,
}

impl List {
    fn goodness(&self, task: usize, cpu: u16) -> i64 {
        let (counter, nice, mm, last, _) = self.tasks[task];
        if counter == 0 {
            return 0;
        }
        counter + 20 - nice + 15 * i64::from(last == cpu) + i64::from(mm == self.mm[usize::from(cpu)])
    }

    fn pick(&mut self, cpu: u16) -> Option<usize> {
        let prev = self.list.iter().copied().find(|task| self.tasks[*task].4 == Some(cpu));
        loop {
            let mut best = prev.map(|prev| (self.goodness(prev, cpu), prev));
            for task in self.list.iter().copied().filter(|task| self.tasks[*task].4.is_none()) {
                let goodness = self.goodness(task, cpu);
                if best.is_none_or(|(most, _)| goodness > most) {
                    best = Some((goodness, task));
                }
            }
            let (goodness, task) = best?;
            if goodness > 0 {
                if let Some(prev) = prev {
                    self.tasks[prev].4 = None;
                }
                (self.tasks[task].3, self.tasks[task].4) = (cpu, Some(cpu));
                self.mm[usize::from(cpu)] = self.tasks[task].2;
                return Some(task);
            }
            self.tasks.iter_mut().for_each(|task| task.0 = task.0 / 2 + (20 - task.1) / 4 + 1);
        }
    }
}

/// Random wake-ups, sleeps, ticks and schedules: the trees find the task that a walk over the list finds.
#[test]
fn trees_find_the_task_that_the_walk_finds() {
    const CPUS: u16 = 4;
    let mut scheduler: Scheduler = script::scheduler((2, 4, 0), [1, 1, CPUS, 1]);
    let mut list = List { mm: vec![0; CPUS.into()], ..List::default() };
    let mut random = script::Random(7);
    for _ in 0..60 {
        let (nice, mm) = (random.below(40) as i64 - 20, random.below(3) as u32);
        scheduler.add(Spec { nice: nice as i8, mm, ..Spec::default() }, None);
        list.tasks.push(((20 - nice) / 4 + 1, nice, mm, 0, None));
    }
    let mut picked = 0;
    for step in 0..200_000u64 {
        let (task, cpu) = (random.below(60) as usize, random.below(CPUS.into()) as u16);
        let now: Ps = step * 1_000_000;
        let running = list.list.iter().copied().find(|task| list.tasks[*task].4 == Some(cpu));
        match random.below(8) {
            0..3 if !list.list.contains(&task) => {
                let why = Why::Wake { from: CpuId(cpu), sync: true };
                scheduler.enqueue(CpuId(list.tasks[task].3), TaskId(task as u32), why, now);
                list.list.insert(0, task);
            }
            3..5 if running.is_some() => {
                scheduler.tick(CpuId(cpu), now);
                let counter = &mut list.tasks[running.expect("it runs")].0;
                *counter = (*counter - 1).max(0);
            }
            5 if running.is_some() => {
                let left = scheduler.leave(CpuId(cpu), Leave::Sleep, now).0 as usize;
                assert_eq!(Some(left), running);
                list.list.retain(|other| *other != left);
                list.tasks[left].4 = None;
                let found = scheduler.pick(CpuId(cpu), now).task.map(|task| task.0 as usize);
                assert_eq!(found, list.pick(cpu), "step {step}");
            }
            6.. => {
                let found = scheduler.pick(CpuId(cpu), now);
                assert_eq!(found.scanned as usize, list.list.len());
                assert_eq!(found.task.map(|task| task.0 as usize), list.pick(cpu), "step {step}");
                picked += 1;
            }
            _ => {}
        }
    }
    assert!(picked > 40_000, "{picked}");
}
