//! Free requests: who gets the last ones, who wakes, what is congested.

use super::MS;
use slablab_model::Ps;
use slablab_sim::block::disk::bio::{Bio, Direction, RequestId};
use slablab_sim::block::disk::elevator::Take;
use slablab_sim::block::disk::queue::{Added, Queue, QueueSpec};

fn queue(name: &str) -> Queue {
    Queue::new(QueueSpec::named(name).expect(name))
}

/// Adds scattered writes of task `owner` until none is free; how many were added.
fn fill(queue: &mut Queue, owner: u32, slept: bool, now: Ps) -> u32 {
    let mut added = 0;
    let base = (u64::from(owner) << 32) + now;
    while queue.add(&Bio::write(base + u64::from(added) * 1000, 8, owner), 0, slept && added == 0, now)
        != Added::NoRequest
    {
        added += 1;
    }
    added
}

/// Dispatches and completes `count` requests; the tasks that may wake after each.
fn serve(queue: &mut Queue, count: u32, now: Ps) -> Vec<u32> {
    let one = |_| {
        let Take::Request(id) = queue.dispatch(now) else { panic!("a request waits") };
        let id: RequestId = id;
        queue.complete(id, now).1.tasks
    };
    (0..count).map(one).collect()
}

#[test]
fn requests_of_2_4_come_back_16_at_a_time() {
    let mut queue = queue("linus@2.4.10");
    assert_eq!(fill(&mut queue, 1, false, 0), 64);
    assert!(matches!(queue.add(&Bio::read(7, 8, 1), 0, false, 0), Added::New(_)), "reads have their own");
    assert_eq!(queue.waiters(Direction::Read), queue.waiters(Direction::Write));
    queue.unplug();
    assert_eq!(serve(&mut queue, 15, 0), [0; 15]);
    assert_eq!(queue.add(&Bio::write(5, 8, 1), 0, false, 0), Added::NoRequest);
    assert_eq!(serve(&mut queue, 1, 0), [16]);
    assert_eq!(fill(&mut queue, 2, false, 0), 16);
}

#[test]
fn a_small_machine_of_2_4_has_half_the_requests() {
    assert_eq!(fill(&mut queue("linus-small@2.4.10"), 1, false, 0), 32);
}

#[test]
fn a_task_that_fills_the_queue_of_2_6_may_go_on() {
    let mut queue = queue("cfq@2.6.29");
    // 127, and as the one that took the 128th 32 more of them.
    assert_eq!(fill(&mut queue, 1, false, 0), 127 + 32);
    assert_eq!(fill(&mut queue, 2, false, 0), 0);
    // A task that has slept may take 32 too, until 192 are taken.
    assert_eq!(fill(&mut queue, 2, true, 0), 32);
    assert_eq!(fill(&mut queue, 3, true, 0), 1);
    assert_eq!(fill(&mut queue, 4, true, 0), 0);
}

#[test]
fn batching_ends_after_20_ms() {
    let mut queue = queue("cfq@2.6.29");
    let mut add = |at: u64, now| queue.add(&Bio::write(at * 1000, 8, 1), 0, false, now) != Added::NoRequest;
    assert!((0..130).all(|at| add(at, 0)));
    assert!(add(130, 19 * MS) && !add(131, 20 * MS));
}

#[test]
fn congestion_begins_at_113_and_ends_below_103() {
    let mut queue = queue("deadline@2.6.29");
    let write = |at: u64| Bio::write(at * 1000, 8, 1);
    let added = (0..200).take_while(|at| {
        queue.add(&write(*at), 0, false, 0);
        !queue.is_congested(Direction::Write)
    });
    assert_eq!(added.count() + 1, 113);
    assert!(!queue.is_congested(Direction::Read));
    queue.unplug();
    serve(&mut queue, 10, 0);
    assert!(queue.is_congested(Direction::Write), "103 are left");
    serve(&mut queue, 1, 0);
    assert!(!queue.is_congested(Direction::Write));
}

#[test]
fn async_writes_leave_a_quarter_of_the_tags() {
    let mut queue = queue("mq-deadline@6.1");
    assert_eq!(fill(&mut queue, 1, false, 0), 192);
    let sync = |at: u64| Bio { sync: true, ..Bio::write((1 << 40) + at * 1000, 8, 2) };
    let added = (0..100).take_while(|at| queue.add(&sync(*at), 0, false, 0) != Added::NoRequest).count();
    assert_eq!(added, 64);
}

/// The 17 fields after two reads of a page that merged, and one write that waits.
#[test]
fn counters_are_those_of_sysfs() {
    let mut queue = queue("noop@2.6.29");
    queue.add(&Bio::read(8, 8, 1), 0, false, 0);
    queue.add(&Bio::read(16, 8, 1), 1, false, MS);
    queue.add(&Bio::write(800, 8, 1), 2, false, 2 * MS);
    queue.unplug();
    let Take::Request(id) = queue.dispatch(3 * MS) else { panic!("a request waits") };
    let (request, _) = queue.complete(id, 5 * MS);
    assert_eq!((request.keys, request.sector, request.sectors), (vec![0, 1], 8, 16));
    assert_eq!(queue.stat().fields(), [1, 1, 16, 5, 0, 0, 0, 0, 1, 5, 8, 0, 0, 0, 0, 0, 0]);
    let (step, depth) = queue.stat().depth();
    assert_eq!((step, depth.collect::<Vec<_>>()), (10 * MS, vec![800]));
}
