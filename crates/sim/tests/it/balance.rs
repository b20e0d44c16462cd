//! What CPUs pull (docs/theory/scheduler.md 6).

use super::script::check;

const OLD: (u16, u16, u16) = (2, 6, 29);
const NEW: (u16, u16, u16) = (5, 10, 0);
const TWO: [u16; 4] = [1, 1, 2, 1];
const NODES: [u16; 4] = [2, 1, 1, 1];

#[test]
fn a_cpu_without_tasks_pulls_one() {
    check(OLD, TWO, "a@0 b+0 c+0 newly 1 pick 1", "b<0 1:b");
    check(NEW, TWO, "a@0 b+0 c+0 newly 1", "b<0");
    // A CPU with one heavy task hides no CPU with two.
    check(NEW, [1, 2, 2, 1], "s@0 h+0/-5 exit 0 a@1 b+1 ms 10 idle 2", "0:h b<1");
    check(OLD, [1, 1, 3, 1], "h@0/-5 a@1 b+1 c+1 newly 2", "b<1");
    // Not a task that may not run there.
    check(OLD, TWO, "a@0 b+0=0 c+0=0,1 d+0 newly 1", "c<0");
    // A running task is not pulled.
    check(OLD, TWO, "a@0 newly 1", "none");
    // From other nodes not under 2.6.29.
    check(OLD, NODES, "a@0 b+0 newly 1", "none");
    check(NEW, NODES, "a@0 b+0 newly 1", "b<0");
}

/// Since 2.6.32 a CPU that idles shorter than 0.5 ms on average does not look.
#[test]
fn a_cpu_that_is_soon_busy_again_does_not_pull() {
    let short = "us 10 wake z 1 pick 1 us 10 sleep 1 ".repeat(8);
    let answers = "z>1! 1:z 1:- ".repeat(8);
    let text = format!("z@1 sleep 1 {short} a@0 b+0 c+0 newly 1");
    check(NEW, TWO, &text, &format!("1:- {answers}none"));
    check(OLD, TWO, &text, &format!("1:- {answers}b<0"));
    // Idle times that a pull ends at once do not count.
    let tasks: String = (0..9).map(|task| format!("t{task}+0 ")).collect();
    let pulls: String = (0..8).map(|task| format!("t{task}<0 1:t{task} 1:- ")).collect();
    let text = format!("a@0 {tasks} {}", "newly 1 pick 1 exit 1 ".repeat(8));
    check(NEW, TWO, &text, pulls.trim_end());
}

#[test]
fn hot_tasks_stay_until_a_balance_failed() {
    // a ran until now, or until 1 ms ago.
    check(NEW, TWO, "a@0 b+0 ms 11 pick 0 newly 1", "0:b none");
    check(NEW, TWO, "a@0 b+0 ms 11 pick 0 ms 1 newly 1", "0:b a<0");
    // Under 2.6.29 it is still the last buddy.
    check(OLD, TWO, "a@0 b+0 ms 11 pick 0 ms 1 newly 1", "0:b none");
    // Siblings share all caches: 5.x moves it.
    check(NEW, [1, 1, 1, 2], "a@0 b+0 ms 11 pick 0 newly 1", "0:b a<0");
    // x woke up and is a buddy: the first balance fails, the second one moves it.
    check(OLD, TWO, "x@0 sleep 0 w@0 wake x 0 ms 10 idle 1 ms 1 idle 1", "0:- x>0 none x<0");
}

#[test]
fn ticks_balance_loads() {
    check(OLD, TWO, "a@0 b+0 c+0 d+0 ms 10 idle 1", "b<0,c<0");
    // One task more is moved, if there is one task of difference; none if loads are equal.
    check(OLD, TWO, "a@0 b+0 c+0 d@1 e+1 busy 1", "b<0");
    check(OLD, TWO, "a@0 b+0 d@1 e+1 busy 1", "none");
    // The only CPU with a waiting task may be of a group below the mean of all.
    let heavy = "c@2/-10 d@3/-10 e@4/-10 f@5/-10";
    check(OLD, [1, 4, 2, 1], &format!("a@0 b+0 {heavy} ms 10 idle 6 ms 100 idle 6"), "none b<0");
    // 25 percent: 5 to 4 tasks on one CPU each is that, 6 to 5 is not.
    check(OLD, TWO, "a@0 b+0 c+0 d+0 e+0 f@1 g+1 h+1 i+1 busy 1", "none");
    // Since 5.5 by numbers, if the local group has room: half of the difference, and no more than CPUs.
    check(NEW, [1, 2, 4, 1], "a@0 b+0 c+1 d+1 e+2 f+2 ms 10 idle 4", "b<0");
    // Between nodes an imbalance of 2 is ignored while the local node has few tasks.
    check(NEW, [2, 1, 16, 1], "a@0 b+0 c@1 d@2 ms 100 idle 16", "none");
    check(NEW, [2, 1, 16, 1], "a@0 b+0 c@1 d@2 e@3 f@4 ms 100 idle 16", "b<0");
}

#[test]
fn intervals_grow_and_busy_cpus_wait_longer() {
    // Found something: again after 1 ms, or 64 ms on a busy CPU.
    check(OLD, TWO, "a@0 b+0 c+0 d+0 idle 1 e+0 f+0 g+0 idle 1 ms 1 idle 1", "b<0,c<0 none d<0,e<0");
    let busy = "a@0 b+0 c+0 z@1 busy 1 e+0 f+0 g+0 ms 63 busy 1 ms 1 busy 1";
    check(OLD, TWO, busy, "b<0 none c<0,e<0");
    // Balanced: 2 ms, then 4 ms, the most.
    let grow = "a@0 z@1 idle 1 b+0 c+0 ms 1 idle 1 ms 1 idle 1";
    check(OLD, TWO, grow, "none none b<0");
}

#[test]
fn one_cpu_balances_for_its_group() {
    // d is the next buddy and stays. CPU 2 is the first idle one of its cache; CPU 3 balances nothing beyond
    // it.
    let text = "a@0 b+0 c+0 d+0 e@1 f+1 g+1 h+1";
    check(OLD, [1, 2, 2, 1], &format!("{text} idle 3"), "none");
    check(OLD, [1, 2, 2, 1], &format!("{text} idle 2"), "b<0,c<0");
}
