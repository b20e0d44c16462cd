//! Where waking and new tasks are queued (docs/theory/scheduler.md 4, 5).

use super::script::{check, scheduler};
use slablab_platform::CpuId;

const OLD: (u16, u16, u16) = (2, 6, 29);
const NEW: (u16, u16, u16) = (5, 10, 0);
const IDLE: (u16, u16, u16) = (5, 11, 0);
const PASS: (u16, u16, u16) = (5, 12, 0);

/// Four CPUs under one cache.
const FLAT: [u16; 4] = [1, 1, 4, 1];
/// CPUs 0 and 1 under one cache, 2 and 3 under another.
const CACHES: [u16; 4] = [1, 2, 2, 1];
/// CPUs 0 and 1 on one node, 2 and 3 on another.
const NODES: [u16; 4] = [2, 1, 2, 1];
/// CPUs 0 and 1 are siblings, 2 and 3 too.
const SMT: [u16; 4] = [1, 1, 2, 2];

#[test]
fn wakers_of_2_6_29_pull_by_load() {
    // Sync: the waker's load does not count. An idle previous CPU does not help.
    check(OLD, FLAT, "w@0 a@1 sleep 1 sync a 0", "1:- a>0");
    check(OLD, FLAT, "w@0 a@1 sleep 1 wake a 0", "1:- a>1!");
    check(OLD, FLAT, "w@0 a@1 sleep 1 b@1 sync a 0", "1:- a>0");
    check(OLD, FLAT, "w@0 a@1 sleep 1 b@1 wake a 0", "1:- a>1");
    // Two tasks there and two here after the wake-up: 200 <= 112 * 2.
    check(OLD, FLAT, "w@0 a@1 sleep 1 b@1 c+1 wake a 0", "1:- a>0");
    // Nice 5 is 336: two of these are not 112 percent of 1024 + 1024.
    check(OLD, FLAT, "w@0 a@1 sleep 1 b@1/5 c+1/5 wake a 0", "1:- a>1");
    // Not across nodes.
    check(OLD, NODES, "w@0 a@2 sleep 2 sync a 0", "2:- a>2!");
}

#[test]
fn a_waker_that_goes_on_running_is_not_believed() {
    let text = |overlap: &str| {
        format!("x@2 sleep 2 a@1 sleep 1 w@0 wake x 0 {overlap} sleep 0 wake w 0 pick 0 sync a 0")
    };
    // The average takes an eighth: 8 ms after a wake-up are 1 ms, above 0.5 ms.
    check(OLD, FLAT, &text("ms 8"), "2:- 1:- x>2! 0:- w>0! 0:w a>1!");
    check(OLD, FLAT, &text("ms 4"), "2:- 1:- x>2! 0:- w>0! 0:w a>0");
}

#[test]
fn only_smt_siblings_are_searched_under_2_6_29() {
    check(OLD, SMT, "w@2 a@0 sleep 0 b@0 wake a 2", "0:- a>1!");
    check(OLD, FLAT, "w@2 a@0 sleep 0 b@0 wake a 2", "0:- a>0");
    // With two tasks on the previous CPU the sibling is not looked at; w makes the waker's CPU too loaded.
    check(OLD, SMT, "w@2 x+2 y+2 a@0 sleep 0 b@0 c+0 wake a 2", "0:- a>0");
}

#[test]
fn wake_affine_chooses_the_target() {
    // Loads of new tasks are 0: the previous CPU. After 100 ms w's and b's are equal: the waker's.
    check(NEW, CACHES, "a@2 sleep 2 w@0 b@2 wake a 0", "2:- a>3!");
    check(NEW, CACHES, "a@2 sleep 2 w@0 b@2 ms 100 wake a 0", "2:- a>1!");
    // Sync, and the waker is alone: its CPU's cache.
    check(NEW, CACHES, "a@2 sleep 2 w@0 b@2 sync a 0", "2:- a>1!");
    check(NEW, CACHES, "a@2 sleep 2 w@0 x@1 b@2 sync a 0", "2:- a>0");
    check(NEW, CACHES, "a@2 sleep 2 w@0 v+0 b@2 sync a 0", "2:- a>3!");
    // An interrupt on an idle CPU.
    check(NEW, CACHES, "a@2 sleep 2 wake a 3", "2:- a>2!");
    check(NEW, CACHES, "a@2 sleep 2 b@2 wake a 3", "2:- a>3!");
    // Loads before idle CPUs until 5.10: the previous CPU was busy until now.
    check(NEW, CACHES, "a@2 sleep 2 b@2 ms 100 sleep 2 w@0 wake a 0", "2:- 2:- a>1!");
    check(IDLE, CACHES, "a@2 sleep 2 b@2 ms 100 sleep 2 w@0 wake a 0", "2:- 2:- a>2!");
}

#[test]
fn tasks_that_wake_many_others_do_not_pull() {
    let caches = [1, 4, 1, 1];
    check(NEW, caches, "x@2 sleep 2 a@1 sleep 1 b@1 w@0 sync a 0", "2:- 1:- a>0");
    // a woke another task once, and so did w: enough for caches of one CPU.
    check(NEW, caches, "x@2 sleep 2 a@1 wake x 1 sleep 1 b@1 w@0 sync a 0", "2:- x>2! 1:- a>1");
}

#[test]
fn an_idle_sibling_is_looked_for() {
    check(NEW, FLAT, "a@1 sleep 1 w@0 wake a 0", "1:- a>1!");
    // The search goes from the target on and around.
    check(NEW, FLAT, "a@1 sleep 1 w@0 b@1 wake a 0", "1:- a>2!");
    check(NEW, FLAT, "a@1 sleep 1 w@0 b@1 c@2 wake a 0", "1:- a>3!");
    check(NEW, FLAT, "a@3 sleep 3 x@0 w@2 b@3 wake a 2", "3:- a>1!");
    check(NEW, FLAT, "a@1 sleep 1 w@0 b@1 c@2 d@3 wake a 0", "1:- a>1");
    // The CPU before the previous one is looked at first: tasks begin on CPU 0.
    check(NEW, FLAT, "a@1 sleep 1 w@3 b@1 wake a 3", "1:- a>0!");
    // Never in another cache.
    check(NEW, CACHES, "a@2 sleep 2 w@2 b@3 wake a 2", "2:- a>2");
}

#[test]
fn idle_cores_come_first() {
    check(NEW, SMT, "a@1 sleep 1 w@0 b@1 wake a 0", "1:- a>2!");
    check(NEW, SMT, "a@1 sleep 1 w@0 b@1 c@2 wake a 0", "1:- a>3!");
    // CPU 3's sibling is busy; CPUs 4 and 5 are an idle core.
    check(NEW, [1, 1, 3, 2], "a@1 sleep 1 w@0 b@1 c@2 wake a 0", "1:- a>4!");
    // Without an idle core: the first search clears the hint. The second one, from CPU 5 on, finds CPU 7, or
    // in one pass the idle sibling of CPU 5.
    let text = "a@1 sleep 1 z@5 sleep 5 w@0 b@1 c@2 d@5 e@6 wake a 0 wake z 0";
    check(NEW, [1, 1, 4, 2], text, "1:- 5:- a>3! z>7!");
    check(PASS, [1, 1, 4, 2], text, "1:- 5:- a>3! z>4!");
}

/// 3.0 and later, unless the CPUs share their last-level cache.
#[test]
fn other_caches_queue_by_interrupt() {
    let asked = |release| {
        let scheduler = scheduler(release, CACHES);
        [1, 2].map(|cpu| scheduler.queues_by_interrupt(CpuId(0), CpuId(cpu)))
    };
    assert_eq!(asked(OLD), [false, false]);
    assert_eq!(asked((3, 0, 0)), [false, true]);
    assert_eq!(asked((2, 4, 0)), [false, false]);
}

/// SIS_PROP: CPUs 94 and 95 of 96 are idle. All are looked at while the waker's CPU idles for long, 4 when it
/// idles for 10 us at a time and the last search was long. SIS_UTIL looks at all that utilisation allows.
#[test]
fn short_idle_times_shorten_the_search() {
    let busy: String = (1..94).map(|cpu| format!("t{cpu}@{cpu} ")).collect();
    let run = |release, idles: usize, last: &str| {
        let rounds = "sleep 0 us 10 wake w 0 pick 0 ".repeat(idles);
        let wakes = "wake a 0 pick 94 exit 94 wake b 0";
        let text = format!("a@1 sleep 1 b@1 sleep 1 w@0 {busy} {rounds} {wakes}");
        let expected = format!("1:- 1:- {}a>94! 94:a 94:- {last}", "0:- w>0! 0:w ".repeat(idles));
        check(release, [1, 1, 96, 1], &text, &expected);
    };
    run(NEW, 0, "b>94!");
    run(NEW, 40, "b>0");
    run((6, 1, 0), 40, "b>94!");
}

/// A task with a set of CPUs stays in it.
#[test]
fn only_allowed_cpus_are_chosen() {
    for release in [OLD, NEW, PASS, (6, 17, 0)] {
        check(release, FLAT, "w@0 a@1=1,3 sleep 1 sync a 0", "1:- a>1!");
    }
    check(NEW, FLAT, "w@0 a@1=1,3 sleep 1 b@1 wake a 0", "1:- a>3!");
    check(NEW, CACHES, "w@0 a@2=0,2 sleep 2 b@2 ms 100 wake a 0", "2:- a>0");
    // CPU 2 is not allowed any more: the first allowed CPU, idle or not.
    for release in [OLD, NEW, PASS, (6, 17, 0)] {
        check(release, FLAT, "a@2=1 sleep 2 w@2 x@1 wake a 2", "2:- a>1");
    }
    check(OLD, FLAT, "a@0 b+0=2 exit 0 exec 0", "0:b b>2! 0:-");
    check((2, 4, 0), FLAT, "w@0 a@1=1,3 sleep 1 b@1 wake a 0", "1:- a>3!");
}

#[test]
fn a_fork_goes_to_the_least_loaded_group() {
    check(OLD, FLAT, "a@0 fork a b 0 fork a c 0 fork a d 0 fork a e 0", "b>1! c>2! d>3! e>0^");
    check(OLD, NODES, "a@0 fork a b 0 fork a c 0 fork a d 0", "b>2! c>1! d>3!");
    check(NEW, NODES, "a@0 fork a b 0 fork a c 0 fork a d 0", "b>2! c>1! d>3!");
    check(NEW, SMT, "a@0 fork a b 0 fork a c 0 fork a d 0", "b>2! c>1! d>3!");
    // A node of 16 CPUs keeps its first two tasks since 5.5.
    check(OLD, [2, 1, 16, 1], "a@0 fork a b 0", "b>16!");
    check(NEW, [2, 1, 16, 1], "a@0 fork a b 0 fork a c 0", "b>1! c>16!");
    check(OLD, FLAT, "a@0 b+0 exec 0", "a>1! 0:b");
    check(OLD, FLAT, "a@0 b@1 c@2 d@3 exec 0", "");
}
