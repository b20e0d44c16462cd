//! `oltp`: two databases.

use super::kernel::rows;
use super::repeat::{self, METRICS, TASKS, WARM_UP, WINDOW};

const SUITE: &[Pair] = &[Pair {
    machine: "laptop",
    parameters: "form = [\"direct\", \"cached\"]\ntasks = 64\nwarm_up_us = 50000\nwindow_us = 100000",
    why: "block I/O that other CPUs complete; queries over sockets",
}];
use crate::workload::{Estimate, Kind, Object, Observed, Pair, Parameter, Values, Workload, ps};
use slablab_model::MachineSpec;
use slablab_sim::objects::Object as Kernel;
use slablab_sim::process;
use slablab_sim::programs::oltp::{self, Form, Oltp};
use slablab_sim::programs::repeat::{Length, Repeat};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;

/// The workload.
pub(super) const OLTP: Workload = Workload {
    name: "oltp",
    about: "a database: processes with asynchronous direct reads of many disks, or clients and a server",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores: |_| false,
    check: |_, _| Ok(()),
    estimate,
    observe,
    suite: SUITE,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "form",
        about: "direct: Intel's, reads from disks, interrupts on every CPU in its turn; cached: sysbench's, \
                queries over UNIX sockets, all pages in memory, one write of the log for each transaction",
        source: "N. Piggin, 16 January 2009, and Zhang Yanmin, 9 March 2009, name them; forms from memory",
        kind: Kind::Word(&["direct", "cached"]),
    },
    Parameter {
        about: "processes of the database, or clients; not pinned",
        source: "direct: assumed, enough to keep 8 CPUs busy; sysbench: 8 to 128 (Zhang Yanmin)",
        kind: Kind::Number { least: 1, most: 10_000, defaults: [384; 3] },
        ..TASKS
    },
    Parameter {
        name: "steps",
        about: "reads of a transaction, or its queries",
        source: "assumed; sysbench's complex transactions have 18 to 20",
        kind: Kind::Number { least: 1, most: 1_000, defaults: [10; 3] },
    },
    Parameter {
        name: "user_us",
        about: "CPU time of the database for a read or a query",
        source: "assumed: tens of thousands of reads a second and socket, 75 % of the CPU's time in user mode",
        kind: Kind::Number { least: 0, most: 1_000_000, defaults: [150; 3] },
    },
    Parameter {
        name: "latency_us",
        about: "time of a disk's request",
        source: "disks of 2009: 5 to 10 ms",
        kind: Kind::Number { least: 1, most: 1_000_000, defaults: [7_000; 3] },
    },
    Parameter {
        source: "assumed: several transactions",
        kind: Kind::Number { least: 0, most: 100_000_000, defaults: [100_000, 200_000, 1_000_000] },
        ..WARM_UP
    },
    Parameter {
        source: "assumed; the real ones run for minutes",
        kind: Kind::Number { least: 10, most: 100_000_000, defaults: [200_000, 1_000_000, 60_000_000] },
        ..WINDOW
    },
];

fn objects(release: Release) -> Vec<Object> {
    const READ: &str = "direct: 1 for each read; the submitter allocates it, the interrupt's CPU frees it";
    let objects = [
        (Kernel::Kiocb, READ),
        (Kernel::Dio, READ),
        (Kernel::Bio, READ),
        (Kernel::Request, READ),
        (Kernel::ScsiCommand, READ),
        (Kernel::ScatterList, READ),
        (Kernel::SkBuff, "cached: 2 for each query, with data from kmalloc"),
        (Kernel::JournalHandle, "cached: 1 for each transaction"),
    ];
    rows(release, &objects)
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    let steps = values.number("steps");
    let least_ns = steps * (values.number("user_us") * 1_000 + 5_000);
    let busy = values.number("tasks").min(machine.cpu_node.len() as u64);
    let us = values.number("warm_up_us") + values.number("window_us");
    let transactions = busy.saturating_mul(us * 1_000) / least_ns;
    let slabs = Estimate::of_operations(machine, 0, 16 << 20);
    // A read or a query takes 15 us, and its computing a hundredth of its time (measured).
    let host_ns = transactions.saturating_mul(steps * (15_000 + values.number("user_us") * 10));
    Estimate { host_ns, host_bytes: slabs.host_bytes + values.number("tasks") * (64 << 10) }
}

/// A repeat draws the lengths of pieces of work, and what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let us = |name: &str| ps(values.number(name) * 1_000);
    let length = Length::Window { warm_up: us("warm_up_us"), counted: us("window_us") };
    let load = Oltp {
        repeat: Repeat {
            tasks: values.number("tasks") as u32,
            kind: process::Kind::Process,
            outside: 0,
            length,
        },
        form: if values.word("form") == "cached" { Form::Cached } else { Form::Direct },
        steps: values.number("steps") as u32,
        user: us("user_us"),
        latency: us("latency_us"),
    };
    Ok(repeat::observed(oltp::run_recorded(setup, &load, seed, recorder)?, values))
}
