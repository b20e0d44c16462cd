//! What the programs that repeat one operation have in common: parameters, metrics, estimate.

use super::kernel::{KERNEL, LINES, sample, with_kernel};
use crate::workload::{Estimate, Kind, Metric, Object, Observed, Parameter, Values, ps};
use slablab_model::MachineSpec;
use slablab_sim::process;
use slablab_sim::programs::repeat::{Described, Length, Repeat};
use slablab_sim::tally::Outcome;
use slablab_stats::table::Better;

/// Tasks.
pub(super) const TASKS: Parameter = Parameter {
    name: "tasks",
    about: "tasks that repeat the operation; task n is pinned to CPU n modulo the number of CPUs",
    source: "will-it-scale: -t or -n, 1 if not given",
    kind: Kind::Number { least: 1, most: 8_192, defaults: [1; 3] },
};
/// Processes or threads.
pub(super) const KIND: Parameter = Parameter {
    name: "kind",
    about: "what the tasks are: processes share nothing, threads share one address space and its files",
    source: "will-it-scale: it runs both; the mails' figures are of processes if they do not say",
    kind: Kind::Word(&["process", "thread"]),
};
/// Nodes of the tree of mappings.
pub(super) const NODES: Parameter = Parameter {
    name: "nodes",
    about: "nodes that a store into the tree of mappings takes; 0: as many as the release does",
    source: "assumed: docs/theory/kernel.md",
    kind: Kind::Number { least: 0, most: 16, defaults: [0; 3] },
};
/// Work outside of the model.
pub(super) const OUTSIDE: Parameter = Parameter {
    name: "outside_ns",
    about: "CPU time of an operation that nothing else of the model stands for",
    source: "assumed: an experiment fits it",
    kind: Kind::Number { least: 0, most: 1_000_000, defaults: [0; 3] },
};
/// Time before the window.
pub(super) const WARM_UP: Parameter = Parameter {
    name: "warm_up_us",
    about: "time before the window",
    source: "assumed: a tenth of the window",
    kind: Kind::Number { least: 0, most: 100_000_000, defaults: [500, 2_000, 100_000] },
};
/// The window.
pub(super) const WINDOW: Parameter = Parameter {
    name: "window_us",
    about: "time that is counted",
    source: "assumed; will-it-scale counts for seconds",
    kind: Kind::Number { least: 10, most: 100_000_000, defaults: [5_000, 20_000, 1_000_000] },
};

/// What each of these programs measures.
pub(super) const METRICS: [Metric; 3 + KERNEL.len()] = with_kernel([
    Metric {
        name: "operations_per_s",
        about: "operations in a second, all tasks together",
        better: Some(Better::Higher),
        unit: "1/s",
        per_unit: 1.0,
        decimals: 0,
    },
    Metric {
        name: "operation_ps",
        about: "time of one operation and task",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 0,
    },
    LINES,
]);

/// The programs send no messages: their data is never copied.
pub(super) fn ignores(cost: &str) -> bool {
    cost == "copy_kib"
}

/// The parameters that all these programs have.
pub(super) fn repeat(values: &Values) -> Repeat {
    Repeat {
        tasks: values.number("tasks") as u32,
        kind: match values.word("kind") {
            "thread" => process::Kind::Thread,
            _ => process::Kind::Process,
        },
        outside: ps(values.number("outside_ns")),
        length: Length::Window {
            warm_up: ps(values.number("warm_up_us") * 1_000),
            counted: ps(values.number("window_us") * 1_000),
        },
    }
}

/// A run of `tasks` tasks.
pub(super) fn observed(outcome: Outcome, values: &Values) -> Observed {
    let per_s = u128::from(outcome.messages) * 1_000_000_000_000 / u128::from(outcome.elapsed.max(1));
    let each = outcome.elapsed.saturating_mul(values.number("tasks")) / outcome.messages.max(1);
    let own = [("operations_per_s", per_s as u64), ("operation_ps", each)];
    Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) }
}

/// The objects of an operation.
pub(super) fn objects(described: Vec<Described>) -> Vec<Object> {
    let object = |Described { cache, bytes, count, operations, source }| {
        let per_operation = match operations {
            1 => format!("{count}"),
            _ => format!("{count} for {operations} operations"),
        };
        Object { cache, bytes, per_operation: per_operation.into(), source }
    };
    described.into_iter().map(object).collect()
}

/// The host's time for a run whose operations take at least `least_ns` each on a CPU of the machine, and
/// `host_ns` on the host. Tasks on one CPU share its time.
pub(super) fn estimate(machine: &MachineSpec, values: &Values, [least_ns, host_ns]: [u64; 2]) -> Estimate {
    /// A task with its stack and its objects (measured).
    const TASK_NS: u64 = 200_000;
    const TASK_BYTES: u64 = 64 << 10;
    let tasks = values.number("tasks");
    let busy = tasks.min(machine.cpu_node.len() as u64);
    let ns = (values.number("warm_up_us") + values.number("window_us")) * 1_000;
    let operations = busy.saturating_mul(ns) / (least_ns + values.number("outside_ns"));
    let slabs = Estimate::of_operations(machine, 0, tasks * 65_536);
    Estimate {
        host_ns: operations.saturating_mul(host_ns).saturating_add(tasks * TASK_NS),
        host_bytes: slabs.host_bytes + tasks * TASK_BYTES,
    }
}
