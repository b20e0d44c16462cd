//! Cycles of sends and receives on a machine whose file has times of messages.
//!
//! Such a time is that of one thread alone that sends or receives 100 bytes: an anchor. The same thread
//! runs in the model, under the release and SLUB of the kernel that was measured; what the model lacks to the
//! measured time is the kernel's own code: state of sockets, security hooks, copying of headers. These cycles
//! are charged under every release and engine, so two engines differ by what they do and by nothing else.
//! Without such times, assumed cycles are charged.
//!
//! The times are of one thread: no wake-up, no switch, no line of another CPU. Hackbench on such a machine
//! remains a prediction.

use crate::kernel::messages::Messages;
use crate::kernel::tally::Failed;
use crate::kernel::{Kernel, Task, with_messages};
use crate::net::pipe::Pipe;
use crate::net::tcp::{self, loopback::Loopback};
use crate::net::udp::Receiver;
use crate::net::unix;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{Ps, Timed};
use slablab_slabs::{Preset, Release};
use std::cell::Cell;
use std::rc::Rc;

/// Bytes of a message.
const BYTES: u32 = 100;
/// Messages that are sent before the first is received, as `slablab calibrate` does.
const BATCH: u32 = 16;
/// Batches until the caches are warm, and batches whose time counts.
const WARM: u32 = 16;
const COUNTED: u32 = 64;

/// Makes a machine, enters it, boots a kernel there that tells `recorder` what it does and whose sends and
/// receives take the machine's cycles, and runs `f` on it.
///
/// # Errors
/// A machine that cannot be modelled, a release without a scheduler; what `f` returns.
pub fn with_recorded_kernel<T>(
    setup: &Setup,
    seed: u64,
    recorder: &Recorder,
    f: impl FnOnce(&Rc<Kernel>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    with_messages(setup, seed, recorder, messages(setup)?, f)
}

/// [`with_recorded_kernel`] with so many percent of the machine's cycles of TCP.
///
/// # Errors
/// A machine that cannot be modelled, a release without a scheduler; what `f` returns.
pub fn with_tcp_kernel<T>(
    setup: &Setup,
    seed: u64,
    recorder: &Recorder,
    percent: u32,
    f: impl FnOnce(&Rc<Kernel>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    with_messages(setup, seed, recorder, messages(setup)?.with_tcp(percent), f)
}

/// The cycles on a machine.
///
/// # Errors
/// A machine that cannot be modelled, a release without a scheduler.
pub fn messages(setup: &Setup) -> Result<Messages, Failed> {
    let costs = &setup.hardware.costs;
    let Some((major, minor)) = costs.messages_release else { return Ok(Messages::ASSUMED) };
    let release = Release::new(major, minor, 0);
    let bad = || Failed::Machine(format!("messages_release: SLUB has no preset as old as {release}"));
    let preset = Preset::of_kernel(release).ok_or_else(bad)?;
    let setup = Setup { preset, ..setup.clone() };
    let mut messages = Messages::ASSUMED;
    let socket = missing(&setup, Over::Socket, [costs.socket_send, costs.socket_receive])?;
    let pipe = missing(&setup, Over::Pipe, [costs.pipe_write, costs.pipe_read])?;
    let udp = missing(&setup, Over::Udp, [costs.udp_send, costs.udp_receive])?;
    let tcp = missing(&setup, Over::Tcp, [costs.tcp_send, costs.tcp_receive])?;
    let set = |place: &mut u64, missing: Option<u64>| *place = missing.unwrap_or(*place);
    set(&mut messages.socket_send, socket[0]);
    set(&mut messages.socket_receive, socket[1]);
    set(&mut messages.pipe_write, pipe[0]);
    set(&mut messages.pipe_read, pipe[1]);
    // One measured time for both halves of a send: they keep their assumed parts of it.
    let assumed = Messages::ASSUMED.udp_send + Messages::ASSUMED.udp_softirq;
    set(&mut messages.udp_send, udp[0].map(|cycles| cycles * Messages::ASSUMED.udp_send / assumed));
    set(&mut messages.udp_softirq, udp[0].map(|cycles| cycles * Messages::ASSUMED.udp_softirq / assumed));
    set(&mut messages.udp_receive, udp[1]);
    set(&mut messages.tcp_send, tcp[0]);
    set(&mut messages.tcp_receive, tcp[1]);
    Ok(messages)
}

/// What messages pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// A pair of UNIX stream sockets.
    Socket,
    /// A pipe.
    Pipe,
    /// UDP over loopback.
    Udp,
    /// TCP over loopback.
    Tcp,
}

/// The cycles that the model lacks to the measured times of a send and a receive; `None` for a time that
/// nobody measured. A time below the model's own is no lack.
fn missing(setup: &Setup, over: Over, measured: [Ps; 2]) -> Result<[Option<u64>; 2], Failed> {
    if measured == [0, 0] {
        return Ok([None; 2]);
    }
    // TCP's softirqs and acknowledgements keep their assumed cycles: both ends' system calls have them.
    let Messages { tcp_softirq, tcp_acknowledge, .. } = Messages::ASSUMED;
    let modelled = alone(setup, over, Messages { tcp_softirq, tcp_acknowledge, ..Messages::default() })?;
    let cycle = setup.hardware.costs.cycle.max(1);
    let lack = |at: usize| measured[at].saturating_sub(modelled[at]) / cycle;
    Ok([0, 1].map(|at| (measured[at] > 0).then(|| lack(at))))
}

/// The times of a send and of a receive in one thread alone.
///
/// # Errors
/// A machine that cannot be modelled, a release without a scheduler.
pub fn alone(setup: &Setup, over: Over, messages: Messages) -> Result<[Ps; 2], Failed> {
    with_messages(setup, 0, &Recorder::default(), messages, |kernel| {
        let times: Rc<Cell<[Ps; 2]>> = Rc::default();
        let result = times.clone();
        kernel.start(kernel.new_process(), None, move |task| result.set(measure(task, over)));
        kernel.run()?;
        Ok(times.get())
    })
}

fn measure(task: &Task, over: Over) -> [Ps; 2] {
    match over {
        Over::Socket => {
            let (to, from) = unix::pair(task, 0);
            let times =
                batches(task, || to.send(task, BYTES, 0), || _ = from.receive(task, BYTES, |_, _| ()));
            unix::close(task, &to);
            times
        }
        Over::Pipe => {
            let pipe = Pipe::new(task, 0);
            let times =
                batches(task, || pipe.write(task, BYTES, 0), || _ = pipe.read(task, BYTES, |_, _| ()));
            pipe.close(task);
            times
        }
        Over::Udp => {
            let receiver = Receiver::new(&task.kernel, 0, 0);
            batches(task, || _ = receiver.send(task, BYTES, 0), || _ = receiver.receive(task))
        }
        Over::Tcp => {
            let loopback = Loopback::new();
            let (to, from) = tcp::pair(task, &loopback, 0, true);
            let times = batches(task, || to.send(task, BYTES), || _ = from.receive(task, BYTES));
            tcp::close(task, &to);
            loopback.close(task);
            times
        }
    }
}

/// The times of `send` and of `receive`, each in a system call, in batches.
fn batches(task: &Task, send: impl Fn(), receive: impl Fn()) -> [Ps; 2] {
    let batch = |operation: &dyn Fn()| {
        let start = Timed::clock();
        (0..BATCH).for_each(|_| task.syscall(operation));
        Timed::clock() - start
    };
    let mut sum = [0; 2];
    for round in 0..WARM + COUNTED {
        let times = [batch(&send), batch(&receive)];
        if round >= WARM {
            sum = [sum[0] + times[0], sum[1] + times[1]];
        }
    }
    sum.map(|time| time / Ps::from(COUNTED * BATCH))
}
