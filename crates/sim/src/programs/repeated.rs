//! What the workloads that repeat one operation have alike: rows of parameters, metrics, estimate.
//!
//! ```text
//! params! { struct Params { tasks: u32 = repeated::TASKS; .. } }
//! repeated::run(setup, &repeated::window(..), seed, recorder, &[], |kernel| what is repeated)
//! ```

use super::measures::{KERNEL, LINES, sample, with_kernel};
use super::program::{Estimate, Metric, NS, Observed, US};
use super::repeat::{self, Length, Repeat, Repeats};
use crate::heap::Named;
use crate::kernel::Kernel;
use crate::kernel::tally::Failed;
use crate::params::{self, Parameter, Typed};
use crate::process::Kind;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::MachineSpec;
use slablab_stats::table::Better;
use std::rc::Rc;

/// Tasks.
pub const TASKS: Parameter = Parameter {
    name: "tasks",
    about: "tasks that repeat the operation; task n is pinned to CPU n modulo the number of CPUs",
    source: "will-it-scale: -t or -n, 1 if not given",
    kind: params::Kind::Number { least: 1, most: 8_192, defaults: [1; 3] },
};
/// Processes or threads.
pub const KIND: Parameter = Parameter {
    name: "kind",
    about: "what the tasks are: processes share nothing, threads share one address space and its files",
    source: "will-it-scale: it runs both; the mails' figures are of processes if they do not say",
    kind: <Kind as Typed>::KIND,
};
/// Nodes of the tree of mappings.
pub const NODES: Parameter = Parameter {
    name: "nodes",
    about: "nodes that a store into the tree of mappings takes; 0: as many as the release does",
    source: "assumed: docs/theory/kernel.md",
    kind: params::Kind::Number { least: 0, most: 16, defaults: [0; 3] },
};
/// Work outside of the model.
pub const OUTSIDE: Parameter = Parameter {
    name: "outside_ns",
    about: "CPU time of an operation that nothing else of the model stands for",
    source: "assumed: an experiment fits it",
    kind: params::Kind::Number { least: 0, most: 1_000_000, defaults: [0; 3] },
};
/// Time before the window.
pub const WARM_UP: Parameter = Parameter {
    name: "warm_up_us",
    about: "time before the window",
    source: "assumed: a tenth of the window",
    kind: params::Kind::Number { least: 0, most: 100_000_000, defaults: [500, 2_000, 100_000] },
};
/// The window.
pub const WINDOW: Parameter = Parameter {
    name: "window_us",
    about: "time that is counted",
    source: "assumed; will-it-scale counts for seconds",
    kind: params::Kind::Number { least: 10, most: 100_000_000, defaults: [5_000, 20_000, 1_000_000] },
};

/// What each of these programs measures.
pub const METRICS: [Metric; 3 + KERNEL.len()] = with_kernel([
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

/// will-it-scale's programs send no messages: their data is never copied.
pub fn ignores(cost: &str) -> bool {
    cost == "copy_kib"
}

/// Tasks that repeat an operation before a window of time, and in it.
pub fn window(tasks: u32, kind: Kind, outside_ns: u64, [warm_up_us, window_us]: [u64; 2]) -> Repeat {
    let length = Length::Window { warm_up: warm_up_us * US, counted: window_us * US };
    Repeat { tasks, kind, outside: outside_ns * NS, length }
}

/// The host's time for a run whose operations take at least `least_ns` each on a CPU of the machine, and
/// `host_ns` on the host. Tasks on one CPU share its time.
pub fn estimate(machine: &MachineSpec, repeat: &Repeat, [least_ns, host_ns]: [u64; 2]) -> Estimate {
    /// A task with its stack and its objects (measured).
    const TASK_NS: u64 = 200_000;
    const TASK_BYTES: u64 = 64 << 10;
    let tasks = u64::from(repeat.tasks);
    let busy = tasks.min(machine.cpu_node.len() as u64);
    let operations = match repeat.length {
        Length::Window { warm_up, counted } => {
            busy.saturating_mul((warm_up + counted) / NS) / (least_ns + repeat.outside / NS)
        }
        Length::Rounds(rounds) => tasks.saturating_mul(rounds),
    };
    let slabs = Estimate::of_operations(machine, 0, tasks * 65_536);
    Estimate {
        host_ns: operations.saturating_mul(host_ns).saturating_add(tasks * TASK_NS),
        host_bytes: slabs.host_bytes + tasks * TASK_BYTES,
    }
}

/// Runs what `make` makes, on a kernel that has `own` caches too, and measures [`METRICS`].
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory.
pub fn run<P: Repeats>(
    setup: &Setup,
    repeat: &Repeat,
    seed: u64,
    recorder: &Recorder,
    own: &[Named],
    make: impl FnOnce(&Rc<Kernel>) -> P,
) -> Result<Observed, Failed> {
    let outcome = repeat::run(setup, repeat, seed, recorder, own, make)?;
    let per_s = u128::from(outcome.messages) * 1_000_000_000_000 / u128::from(outcome.elapsed.max(1));
    let each = outcome.elapsed.saturating_mul(repeat.tasks.into()) / outcome.messages.max(1);
    let own = [("operations_per_s", per_s as u64), ("operation_ps", each)];
    let sample = sample(&METRICS, &outcome, &own);
    Ok(Observed { sample, profile: Some(outcome.profile) })
}
