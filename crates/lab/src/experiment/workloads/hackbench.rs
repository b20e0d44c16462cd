//! `hackbench`: as `perf bench sched messaging`.

use super::kernel::{KERNEL, sample, with_kernel};
use crate::experiment::workload::{
    Estimate, Kind, Metric, Object, Observed, Pair, Parameter, Values, Workload,
};
use slablab_model::MachineSpec;
use slablab_sim::era::Era;
use slablab_sim::objects::Object as Kernel;
use slablab_sim::process;
use slablab_sim::programs::hackbench::{self, Over, per_message};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;

/// The workload.
pub(super) const HACKBENCH: Workload = Workload {
    name: "hackbench",
    about: "groups of 20 senders and 20 receivers that pass small messages over sockets or pipes",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores,
    check,
    estimate,
    observe,
    suite: SUITE,
};

const SUITE: &[Pair] = &[
    Pair {
        machine: "laptop",
        parameters: "over = [\"sockets\", \"pipes\"]",
        why: "small messages between processes on a small machine",
    },
    Pair { machine: "numa8", parameters: "", why: "CPUs whose node has no memory" },
    Pair { machine: "spr224", parameters: "groups = 5", why: "many CPUs, few of them busy" },
];

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "groups",
        about: "groups of senders and receivers",
        source: "sched-messaging.c: 10",
        kind: Kind::Number { least: 1, most: 10_000, defaults: [2, 10, 400] },
    },
    Parameter {
        name: "pairs",
        about: "senders of a group, and receivers: each sender writes to each receiver",
        source: "sched-messaging.c: 20",
        kind: Kind::Number { least: 1, most: 1_000, defaults: [20; 3] },
    },
    Parameter {
        name: "loops",
        about: "messages from each sender to each receiver",
        source: "sched-messaging.c: 100; the mails say 200, 2,000 and more",
        kind: Kind::Number { least: 1, most: 1_000_000, defaults: [20, 100, 200] },
    },
    Parameter {
        name: "messages",
        about: "messages of the whole run, which decide the loops, at least 1; 0: loops are given",
        source: "assumed; a mail's time that hardly changes with groups is a run of so many messages",
        kind: Kind::Number { least: 0, most: 1_000_000_000_000, defaults: [0; 3] },
    },
    Parameter {
        name: "bytes",
        about: "bytes of a message",
        source: "sched-messaging.c: 100",
        kind: Kind::Number { least: 1, most: 65_536, defaults: [100; 3] },
    },
    Parameter {
        name: "over",
        about: "what the messages go over: UNIX stream sockets or pipes",
        source: "sched-messaging.c: sockets",
        kind: Kind::Word(&["sockets", "pipes"]),
    },
    Parameter {
        name: "kind",
        about: "what senders and receivers are",
        source: "sched-messaging.c: processes",
        kind: Kind::Word(&["process", "thread"]),
    },
    Parameter {
        name: "think_cycles",
        about: "cycles of a task in its own program for each message",
        source: "assumed",
        kind: Kind::Number { least: 0, most: 1_000_000, defaults: [50; 3] },
    },
];

const METRICS: [Metric; 3 + KERNEL.len()] = with_kernel([
    Metric {
        name: "elapsed_ps",
        about: "time from the first message to the end of the last task",
        better: Some(Better::Lower),
        unit: "s",
        per_unit: 1e12,
        decimals: 4,
    },
    Metric {
        name: "message_ps",
        about: "that time over the number of messages",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 0,
    },
    Metric {
        name: "slab_bytes_end",
        about: "slab memory when the last task has ended, on a machine that began without any",
        better: Some(Better::Lower),
        unit: "MiB",
        per_unit: 1_048_576.0,
        decimals: 1,
    },
]);

/// When a kernel object is allocated.
fn when(object: Kernel) -> &'static str {
    match object {
        Kernel::SkBuff => "1 for each message over sockets, with its data from kmalloc",
        Kernel::File | Kernel::Dentry => "2 for each connection",
        Kernel::SocketInode | Kernel::UnixSock => "2 for each connection over sockets",
        Kernel::PipeInode => "1 for each connection over pipes",
        Kernel::Task | Kernel::Pid | Kernel::Cred => "1 for each task",
        Kernel::Signal | Kernel::Sighand | Kernel::Files | Kernel::Fs | Kernel::Mm => "1 for each process",
        _ => "several for each process",
    }
}

fn objects(release: Release) -> Vec<Object> {
    let used = Kernel::ALL.into_iter().filter(|object| *object <= Kernel::Cred);
    let rows = used.filter_map(|object| object.row(Era { release }));
    let object = |row: &slablab_sim::objects::Row| Object {
        cache: row.name,
        bytes: row.bytes,
        per_operation: when(row.object).into(),
        source: row.source,
    };
    rows.map(object).collect()
}

fn ignores(_cost: &str) -> bool {
    false
}

fn check(_machine: &MachineSpec, values: &Values) -> Result<(), String> {
    let tasks = values.number("groups") * values.number("pairs") * 2;
    match tasks <= 100_000 {
        true => Ok(()),
        false => Err(format!("groups and pairs make {tasks} tasks: expected at most 100000")),
    }
}

/// Loops, given or decided by the messages of the whole run.
fn loops(values: &Values) -> u64 {
    let each = values.number("groups") * values.number("pairs") * values.number("pairs");
    match values.number("messages") {
        0 => values.number("loops"),
        messages => (messages / each).clamp(1, 1_000_000),
    }
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    /// A message, and a task with its stack and its objects (measured).
    const MESSAGE_NS: u64 = 3_000;
    const TASK_NS: u64 = 200_000;
    const TASK_BYTES: u64 = 64 << 10;
    let (groups, pairs) = (values.number("groups"), values.number("pairs"));
    let tasks = groups * pairs * 2;
    let messages = groups.saturating_mul(pairs * pairs).saturating_mul(loops(values));
    let slabs = Estimate::of_operations(machine, 0, tasks * 32_768);
    Estimate {
        host_ns: messages.saturating_mul(MESSAGE_NS).saturating_add(tasks * TASK_NS),
        host_bytes: slabs.host_bytes + tasks * TASK_BYTES,
    }
}

/// A repeat draws when each task begins, and what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let load = hackbench::Hackbench {
        groups: values.number("groups") as u32,
        pairs: values.number("pairs") as u32,
        loops: loops(values) as u32,
        bytes: values.number("bytes") as u32,
        over: if values.word("over") == "pipes" { Over::Pipes } else { Over::Sockets },
        kind: match values.word("kind") {
            "thread" => process::Kind::Thread,
            _ => process::Kind::Process,
        },
        think: values.number("think_cycles"),
    };
    let outcome = hackbench::run_recorded(setup, &load, seed, recorder)?;
    let own = [
        ("elapsed_ps", outcome.elapsed),
        ("message_ps", per_message(&outcome)),
        ("slab_bytes_end", outcome.slab_bytes.0),
    ];
    Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
}
