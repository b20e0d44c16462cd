//! CFS: slices, placement, preemption, buddies (docs/theory/scheduler.md 3).

use super::script;

const OLD: (u16, u16, u16) = (2, 6, 29);
const NEW: (u16, u16, u16) = (5, 10, 0);

/// On machines with so many CPUs.
#[track_caller]
fn check(release: (u16, u16, u16), cpus: u16, text: &str, expected: &str) {
    script::check(release, [1, 1, cpus, 1], text, expected);
}

#[test]
fn a_slice_is_a_share_of_the_period() {
    // 20 ms for two tasks on one CPU: 10 ms each. The tick preempts above the slice, not at it.
    check(OLD, 1, "a@0 b+0 ms 10 tick 0 ms 1 tick 0", "no yes");
    // A single task is never preempted.
    check(OLD, 1, "a@0 ms 1000 tick 0", "no");
    // 16 CPUs: 100 ms, 50 each.
    check(OLD, 16, "a@0 b+0 ms 50 tick 0 ms 1 tick 0", "no yes");
    // Up to five tasks share the latency; six have 4 ms each.
    check(OLD, 1, "a@0 b+0 c+0 d+0 e+0 ms 4 tick 0 us 1 tick 0", "no yes");
    check(OLD, 1, "a@0 b+0 c+0 d+0 e+0 f+0 ms 4 tick 0 us 1 tick 0", "no yes");
    check(OLD, 1, "a@0 b+0 c+0 d+0 ms 5 tick 0 us 1 tick 0", "no yes");
    // 5.x on one CPU: 6 ms; 8 CPUs: 24 ms.
    check(NEW, 1, "a@0 b+0 ms 3 tick 0 us 1 tick 0", "no yes");
    check(NEW, 8, "a@0 b+0 ms 12 tick 0 us 1 tick 0", "no yes");
    // Nice 5 weighs 336 beside 1024: 5 ms of 20.
    check(OLD, 1, "a@0/5 b+0 ms 4 tick 0 ms 1 tick 0", "no yes");
    check(OLD, 1, "a@0 b+0/5 ms 15 tick 0 ms 1 tick 0", "no yes");
}

/// The running task goes back behind tasks with the same virtual time.
#[test]
fn equal_tasks_take_turns() {
    check(NEW, 1, "a@0 b+0 ms 6 pick 0 ms 6 pick 0 ms 1 pick 0", "0:b 0:a 0:b");
}

#[test]
fn virtual_time_is_run_time_by_weight() {
    check(OLD, 1, "a@0 ms 10 tick 0 at a", "no 10000000000");
    // Nice 5: 1024 / 336.
    check(OLD, 1, "a@0/5 ms 10 tick 0 at a", "no 30476190476");
    // Nice -5: 1024 / 3125.
    check(OLD, 1, "a@0/-5 ms 10 tick 0 at a", "no 3276800000");
}

#[test]
fn tasks_are_placed_near_the_bound() {
    // A fork starts one slice behind: 20 ms / 2 on one CPU; the child then changes with the parent.
    check(NEW, 1, "a@0 ms 2 fork a b 0 at a at b", "b>0 2000000000 5000000000");
    check(OLD, 1, "a@0 ms 2 fork a b 0 at a at b", "b>0^ 12000000000 2000000000");
    // A long sleeper is one latency behind the bound under 2.6.29, half of one since.
    check(OLD, 1, "a@0 sleep 0 b@0 ms 500 wake a 0 at a", "0:- a>0^ 480000000000");
    check(NEW, 1, "a@0 sleep 0 b@0 ms 500 wake a 0 at a", "0:- a>0^ 497000000000");
    // A short sleeper keeps its own virtual time.
    check(OLD, 1, "a@0 ms 3 sleep 0 b@0 ms 1 wake a 0 at a", "0:- a>0 3000000000");
}

#[test]
fn a_waking_task_preempts_beyond_the_granularity() {
    // 5 ms on one CPU under 2.6.29, 1 ms under 5.x.
    check(OLD, 1, "a@0 sleep 0 b@0 ms 5 wake a 0", "0:- a>0");
    check(OLD, 1, "a@0 sleep 0 b@0 ms 5 us 1 wake a 0", "0:- a>0^");
    check(NEW, 1, "a@0 sleep 0 b@0 ms 1 wake a 0", "0:- a>0");
    check(NEW, 1, "a@0 sleep 0 b@0 ms 1 us 1 wake a 0", "0:- a>0^");
    // Sync makes no difference.
    check(OLD, 1, "a@0 sleep 0 b@0 ms 5 us 1 sync a 0", "0:- a>0^");
    // 2.6.29 scales by a heavy running task: 5 ms * 1024 / 3125. b needs 5 ms of run time for that.
    check(OLD, 1, "a@0 sleep 0 b@0/-5 ms 4 wake a 0", "0:- a>0");
    check(OLD, 1, "a@0 sleep 0 b@0/-5 ms 6 wake a 0", "0:- a>0^");
    // 5.x scales by the waking task: 1 ms * 1024 / 336 for nice 5, but half the latency is all the credit.
    check(NEW, 1, "a@0/5 sleep 0 b@0 ms 3 wake a 0", "0:- a>0");
    check(NEW, 1, "a@0/5 sleep 0 b@0 ms 4 wake a 0", "0:- a>0");
    // Batch tasks do not preempt; idle tasks are preempted by all others, but not by each other.
    check(NEW, 1, "a@0%b sleep 0 b@0 ms 9 wake a 0", "0:- a>0");
    check(NEW, 1, "a@0%b sleep 0 b@0%i wake a 0", "0:- a>0^");
    check(NEW, 1, "a@0%i sleep 0 b@0%i wake a 0", "0:- a>0");
    check((6, 17, 0), 1, "a@0 sleep 0 b@0%i wake a 0", "0:- a>0^");
    // A CPU that was told to schedule is not told again.
    check(OLD, 1, "a@0 sleep 0 c@0 sleep 0 b@0 ms 9 wake a 0 wake c 0", "0:- 0:- a>0^ c>0");
}

#[test]
fn buddies_run_before_the_first_task() {
    // 2.6.29: c wakes up and is the next buddy, though d is first.
    check(OLD, 1, "c@0 sleep 0 d@0 b+0 ms 4 wake c 0 sleep 0", "0:- c>0 0:c");
    // After the next buddy ran, the preempted task is the last buddy, and goes on before b, which is behind.
    check(OLD, 1, "c@0 sleep 0 d@0 b+0 ms 4 wake c 0 pick 0 sleep 0", "0:- c>0 0:c 0:d");
    // Not if the granularity is exceeded: b is 6 ms behind.
    check(OLD, 1, "c@0 sleep 0 d@0 b+0 ms 6 wake c 0 pick 0 sleep 0", "0:- c>0^ 0:c 0:b");
    // 5.x has no next buddy: b is first; and no last buddy on a short queue.
    check(NEW, 1, "c@0 sleep 0 d@0 b+0 us 900 wake c 0 sleep 0", "0:- c>0 0:b");
    check(NEW, 1, "c@0 sleep 0 d@0 b+0 ms 2 wake c 0 pick 0 us 1 sleep 0", "0:- c>0^ 0:b 0:c");
}

#[test]
fn a_tick_preempts_a_task_that_leads_by_a_slice() {
    // c wakes up 3 ms behind a. A slice is 3 ms: after 1 ms a leads by 4 ms.
    check(NEW, 1, "c@0 sleep 0 a@0 ms 100 pick 0 wake c 0 us 740 tick 0 us 10 tick 0", "0:- 0:a c>0^ no yes");
    // 2.6.29 has no such rule: a leads by 29 ms, and its slice is 10 ms.
    check(OLD, 1, "c@0 sleep 0 a@0 ms 100 pick 0 wake c 0 ms 9 tick 0", "0:- 0:a c>0^ no");
}
