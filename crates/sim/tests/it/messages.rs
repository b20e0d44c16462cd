//! Times of messages on a machine: one thread alone takes in the model what it took on the machine.

use super::machine::setup;
use slablab_model::{Costs, Ps, Timed};
use slablab_platform::CpuId;
use slablab_sim::kernel::{WaitQueue, Waiting, with_kernel};
use slablab_sim::messages::Messages;
use slablab_sim::programs::anchors::{Over, alone, messages as of_machine};
use slablab_sim::setup::Setup;
use std::cell::Cell;
use std::rc::Rc;

/// A machine whose times of messages were measured.
fn measured(preset: &str) -> Setup {
    let mut setup = setup(preset, 2, 1);
    setup.hardware.costs = Costs {
        socket_send: 700_000,
        socket_receive: 650_000,
        pipe_write: 300_000,
        pipe_read: 280_000,
        udp_send: 2_300_000,
        udp_receive: 600_000,
        tcp_send: 3_300_000,
        tcp_receive: 900_000,
        messages_release: Some((6, 18)),
        ..setup.hardware.costs
    };
    setup
}

/// The times of one thread are those that were measured, to a hundredth.
#[track_caller]
fn check(over: Over, expected: [Ps; 2]) {
    let setup = measured("slub@6.18");
    let messages = of_machine(&setup).expect("a machine");
    let found = alone(&setup, over, messages).expect("it ends");
    for (found, expected) in found.into_iter().zip(expected) {
        assert!(found.abs_diff(expected) <= expected / 100, "{over:?}: {found} ps, measured {expected}");
    }
}

#[test]
fn one_thread_alone_takes_what_was_measured() {
    check(Over::Socket, [700_000, 650_000]);
    check(Over::Pipe, [300_000, 280_000]);
    check(Over::Udp, [2_300_000, 600_000]);
    check(Over::Tcp, [3_300_000, 900_000]);
}

#[test]
fn the_cycles_are_the_machines_and_not_the_engines() {
    let of = |preset| of_machine(&measured(preset)).expect("a machine");
    let messages = of("slub@6.18");
    assert_eq!(of("slab@2.6.29"), messages);
    assert_eq!(of("slub@7.1"), messages);
    assert!(messages.socket_send > Messages::ASSUMED.socket_send, "{messages:?}");
}

/// The sender pays for an interrupt that wakes a CPU which sleeps.
#[test]
fn an_interrupt_costs_its_sender() {
    const SEND: Ps = 5_000_000;
    let wake = |ipi_send, sleep: Ps| {
        let mut setup = setup("slub@6.18", 2, 1);
        setup.hardware.costs.ipi_send = ipi_send;
        with_kernel(&setup, 1, |kernel| {
            let took = Rc::new(Cell::new(0));
            let result = took.clone();
            kernel.start(kernel.new_process(), None, move |task| {
                let waiters = Rc::new(WaitQueue::default());
                let theirs = waiters.clone();
                task.pin(CpuId(0));
                task.thread(move |task| {
                    task.pin(CpuId(1));
                    theirs.wait(task, Waiting { what: "for a wake-up", number: 0 });
                });
                task.compute(sleep);
                let before = Timed::clock();
                waiters.wake_one(&task.kernel, false);
                result.set(Timed::clock() - before);
            });
            kernel.run()?;
            Ok(took.get())
        })
        .expect("all tasks end")
    };
    let asleep = 100_000_000;
    assert_eq!(wake(SEND, asleep) - wake(0, asleep), SEND);
}

#[test]
fn what_was_not_measured_keeps_assumed_cycles() {
    let mut setup = measured("slub@6.18");
    setup.hardware.costs.pipe_write = 0;
    let messages = of_machine(&setup).expect("a machine");
    assert_eq!(messages.pipe_write, Messages::ASSUMED.pipe_write);
    assert_ne!(messages.pipe_read, Messages::ASSUMED.pipe_read);
    // The model alone takes longer than this.
    setup.hardware.costs.socket_send = 1;
    assert_eq!(of_machine(&setup).expect("a machine").socket_send, 0);
    setup.hardware.costs.messages_release = None;
    assert_eq!(of_machine(&setup), Ok(Messages::ASSUMED));
}
