//! Waiting for another task, or at most for a time: who woke the task, and no wake-up is lost or doubled.

use crate::machine::setup;
use slablab_model::{Ps, Timed};
use slablab_sim::kernel::{Task, WaitQueue, Waiting, with_kernel};
use std::cell::RefCell;
use std::rc::Rc;

const MS: Ps = 1_000_000_000;
const WAITING: Waiting = Waiting { what: "in a test", number: 0 };

/// What each waiter saw: its number, whether another task woke it, and after how many milliseconds.
type Seen = Vec<(usize, bool, Ps)>;

/// Tasks wait at one place, the n-th of them at most `limits[n]` milliseconds, in this order. The queue is
/// woken at each time of `wakes`, one task at a time.
#[track_caller]
fn check(cpus: u16, limits: &'static [Ps], wakes: &'static [Ps], expected: &[(usize, bool, Ps)]) {
    let seen: Rc<RefCell<Seen>> = Rc::default();
    let of_run = seen.clone();
    let ended = with_kernel(&setup("slub@2.6.29", cpus, 1), 1, |kernel| {
        kernel.start(kernel.new_process(), None, move |task| {
            let queue = Rc::new(WaitQueue::default());
            let start = Timed::clock();
            for (number, limit) in limits.iter().enumerate() {
                let (queue, seen) = (queue.clone(), of_run.clone());
                task.thread(move |task| {
                    let woken = queue.wait_at_most(task, WAITING, limit * MS);
                    seen.borrow_mut().push((number, woken, (Timed::clock() - start) / MS));
                    // A timer that was overtaken does not wake the task from its next sleep.
                    sleeps_whole(task, limit * MS * 2);
                });
                // So that the waiters come in their order, also on two CPUs.
                task.sleep(MS / 100);
            }
            for at in wakes {
                task.sleep((start + at * MS).saturating_sub(Timed::clock()));
                queue.wake_one(&task.kernel, false);
            }
        });
        kernel.run()
    });
    ended.expect("every task ends");
    seen.borrow_mut().sort_unstable();
    assert_eq!(*seen.borrow(), expected, "{limits:?} {wakes:?}");
}

fn sleeps_whole(task: &Task, time: Ps) {
    let (start, nobody) = (Timed::clock(), WaitQueue::default());
    assert!(!nobody.wait_at_most(task, WAITING, time));
    assert!(Timed::clock() - start >= time, "slept {} of {time} ps", Timed::clock() - start);
    assert!(nobody.is_empty());
}

#[test]
fn a_task_waits_for_a_wake_up_or_for_a_time() {
    for cpus in [1, 2] {
        check(cpus, &[10], &[], &[(0, false, 10)]);
        check(cpus, &[10], &[4], &[(0, true, 4)]);
        check(cpus, &[10], &[14], &[(0, false, 10)]);
        check(cpus, &[10, 20, 30], &[4, 8], &[(0, true, 4), (1, true, 8), (2, false, 30)]);
        // The first task's time has passed when the queue is woken: the wake-up is the second one's.
        check(cpus, &[10, 40], &[15], &[(0, false, 10), (1, true, 15)]);
        check(cpus, &[10, 10, 10], &[3, 4, 5], &[(0, true, 3), (1, true, 4), (2, true, 5)]);
    }
}

/// A waker on a busy CPU meets a task whose time has passed and that has not run since.
#[test]
fn a_wake_up_passes_a_task_over_whose_time_has_passed() {
    let order: Rc<RefCell<Vec<(usize, bool)>>> = Rc::default();
    let of_run = order.clone();
    let ended = with_kernel(&setup("slub@2.6.29", 1, 1), 1, |kernel| {
        kernel.start(kernel.new_process(), None, move |task| {
            let queue = Rc::new(WaitQueue::default());
            for (number, limit) in [5, 500].into_iter().enumerate() {
                let (queue, order) = (queue.clone(), of_run.clone());
                task.thread(move |task| {
                    let woken = queue.wait_at_most(task, WAITING, limit * MS);
                    order.borrow_mut().push((number, woken));
                });
            }
            task.sleep(MS);
            // Longer than the first task's limit, without a point where the CPU is given up.
            Timed::charge(8 * MS);
            Timed::turn();
            assert!(queue.wake_one(&task.kernel, false), "the second task waits");
            assert!(!queue.wake_one(&task.kernel, false), "no third task waits");
        });
        kernel.run()
    });
    ended.expect("every task ends");
    order.borrow_mut().sort_unstable();
    assert_eq!(*order.borrow(), [(0, false), (1, true)]);
}
