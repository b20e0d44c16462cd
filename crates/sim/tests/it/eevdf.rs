//! EEVDF: eligible tasks, deadlines, protection, lag (docs/theory/scheduler.md 7).

use super::script;

const FIRST: (u16, u16, u16) = (6, 6, 0);
const DELAYED: (u16, u16, u16) = (6, 12, 0);
const SHORTER: (u16, u16, u16) = (6, 15, 0);
const SHORTEST: (u16, u16, u16) = (6, 17, 0);

/// On one CPU: slices of 0.75 ms to 6.14, 0.7 ms since.
#[track_caller]
fn check(release: (u16, u16, u16), text: &str, expected: &str) {
    script::check(release, [1, 1, 1, 1], text, expected);
}

#[test]
fn the_earliest_eligible_deadline_is_next() {
    // a ran 0.5 ms, V is 0.25 ms: a is not eligible, b is.
    check(FIRST, "a@0 b+0 us 500 pick 0", "0:b");
    // c has the earliest deadline by its slice of 0.3 ms.
    check(FIRST, "a@0 b+0 c+0~300 us 500 pick 0 sleep 0", "0:c 0:b");
    // A heavy task has an earlier deadline and moves V less: nice -5 weighs 3125.
    check(FIRST, "a@0 b+0 c+0/-5 us 500 pick 0", "0:c");
    // A single task needs no test.
    check(FIRST, "a@0 ms 50 pick 0", "0:a");
}

#[test]
fn at_its_deadline_a_task_gives_way_if_others_wait() {
    check(FIRST, "a@0 ms 5 tick 0", "no");
    check(FIRST, "a@0 b+0 us 749 tick 0 us 1 tick 0", "no yes");
    check(SHORTER, "a@0 b+0 us 699 tick 0 us 1 tick 0", "no yes");
    // 8 CPUs and more: four times that. A nice level of 5 reaches its deadline as early in run time.
    script::check(FIRST, [1, 1, 8, 1], "a@0 b+0 us 2999 tick 0 us 1 tick 0", "no yes");
    script::check(SHORTER, [1, 1, 224, 1], "a@0 b+0 us 2799 tick 0 us 1 tick 0", "no yes");
    check(FIRST, "a@0/5 b+0 us 749 tick 0 us 2 tick 0", "no yes");
    // A task may ask for 0.1 to 100 ms.
    check(FIRST, "a@0~50 b+0 us 99 tick 0 us 1 tick 0", "no yes");
}

#[test]
fn a_waking_task_waits_until_the_running_one_used_its_slice() {
    check(FIRST, "b@0 sleep 0 a@0 us 700 wake b 0", "0:- b>0");
    check(FIRST, "b@0 sleep 0 a@0 us 700 wake b 0 us 100 tick 0 pick 0", "0:- b>0 yes 0:b");
    // The running task has a later deadline and is past its protection.
    check(FIRST, "b@0~100 sleep 0 a@0 us 800 wake b 0", "0:- b>0^");
    // A shorter slice: only since 6.12 within the protection.
    let short = "b@0~100 sleep 0 c@0 ms 10 a+0 us 700 pick 0 us 300 wake b 0";
    check(FIRST, short, "0:- 0:a b>0");
    check(DELAYED, short, "0:- 0:a b>0^");
    check(DELAYED, &format!("{short} pick 0"), "0:- 0:a b>0^ 0:b");
}

#[test]
fn protection_ends_at_the_deadline_or_after_the_shortest_slice() {
    // c has 0.7 ms, a 0.3 ms. c runs again from a virtual time of 0.7 ms on.
    let text = "c@0 a+0~300 us 700 pick 0 us 900 pick 0 us 200 tick 0 us 100 tick 0";
    check(SHORTER, text, "0:a 0:c no no");
    check(SHORTEST, text, "0:a 0:c no yes");
}

#[test]
fn lag_is_kept_over_sleep() {
    // a leaves with a lag of -0.25 ms, and comes back twice that behind the only other task.
    check(FIRST, "a@0 b+0 us 500 sleep 0 ms 10 wake a 0 at a", "0:b a>0 10500000000");
    // b leaves with a lag of 0.25 ms, after V moved on: it was owed time.
    check(FIRST, "a@0 b+0 us 500 pick 0 sleep 0 ms 1 wake b 0 at b", "0:b 0:a b>0^ 1000000000");
    // Lag is at most a slice and a tick: 0.75 + 4 ms.
    check(FIRST, "a@0 b+0 ms 100 sleep 0 ms 1 wake a 0 at a", "0:b a>0 10500000000");
    // A long sleep gives no credit.
    check(FIRST, "a@0 sleep 0 b@0 ms 500 wake a 0 at a", "0:- a>0^ 500000000000");
}

#[test]
fn a_forked_task_starts_at_the_mean_with_half_a_slice() {
    check(FIRST, "a@0 us 100 fork a b 0 at b", "b>0 100000000");
    // V is 0.25 ms; with half a slice c's deadline is 0.625 ms, before b's 0.75 ms.
    check(FIRST, "a@0 b+0 us 500 fork a c 0 pick 0", "c>0^ 0:c");
    // a has a new deadline, 0.75 ms later, and no protection; b has half of that.
    check(FIRST, "a@0 ms 1 fork a b 0 pick 0", "b>0^ 0:b");
}

#[test]
fn a_sleeper_with_negative_lag_stays_queued() {
    // Woken before it was picked: its virtual time is the one it had.
    check(DELAYED, "a@0 b+0 us 500 sleep 0 ms 10 wake a 0 at a pick 0", "0:b a>0^ 500000000 0:a");
    // Picked as eligible: now it sleeps, and has no lag.
    check(DELAYED, "a@0 b+0 us 500 sleep 0 us 600 pick 0 wake a 0 at a", "0:b 0:b a>0 600000000");
    // It does not keep a CPU busy.
    check(DELAYED, "a@0 b+0 us 500 sleep 0 us 10 sleep 0", "0:b 0:-");
    // A task without negative lag sleeps at once, and keeps its lag.
    check(DELAYED, "a@0 b+0 us 500 pick 0 sleep 0 ms 1 wake b 0 at b", "0:b 0:a b>0^ 1000000000");
    // A wake-up chooses no CPU, though others are idle.
    script::check(DELAYED, [1, 1, 4, 1], "a@0 b+0 us 500 sleep 0 w@1 us 10 wake a 1", "0:b a>0");
    script::check(FIRST, [1, 1, 4, 1], "a@0 b+0 us 500 sleep 0 w@1 us 10 wake a 1", "0:b a>2!");
}
