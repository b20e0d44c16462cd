//! The workloads: tables of workloads and their contestants.
//!
//! A `Pattern` is written once for all allocators and compiled for each, so calls are inlined as in a program
//! that has the allocator as its global one. `own::workloads` is the table; all other code reads it.

mod caches;
mod floors;
mod larson;
mod latency;
pub(crate) mod nine;
mod programs;
pub(crate) mod queue;
mod service;
pub mod trace;

use crate::clock::Sample;
use crate::subject::{Role, Subject, Subjects, Visitor};

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The number of operations.
    pub ops: u64,
    /// The seed of sizes and places.
    pub seed: u64,
}

/// Runs a workload once on a contestant. The error names the allocator that served a block instead, or the
/// failure.
pub type Run = fn(Task) -> Result<Sample, String>;

/// An allocator or pool that runs a workload.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// The contestant's name.
    pub name: &'static str,
    /// The contestant's role in the comparison.
    pub role: Role,
    /// How a block proves which allocator served it.
    pub evidence: &'static str,
    /// Runs the workload.
    pub run: Run,
}

/// A group of workloads that are compared in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Workloads of one thread.
    Single,
    /// Workloads of several threads.
    Threads,
    /// The patterns of benchmark programs for allocators, each in a process of its own.
    Programs,
    /// Workloads with objects of one type.
    Caches,
    /// The time of each single call, in a process of its own.
    Latency,
    /// The memory of a service over its day, in a process of its own.
    Service,
    /// The machine's cost of single steps, such as an atomic addition.
    Floors,
}

impl Group {
    /// All groups, in the order of tables.
    pub const ALL: [Group; 7] = [
        Group::Single,
        Group::Threads,
        Group::Programs,
        Group::Latency,
        Group::Service,
        Group::Caches,
        Group::Floors,
    ];

    /// The group's name.
    pub fn name(self) -> &'static str {
        match self {
            Group::Single => "single",
            Group::Threads => "threads",
            Group::Programs => "programs",
            Group::Latency => "latency",
            Group::Service => "service",
            Group::Caches => "caches",
            Group::Floors => "floors",
        }
    }

    /// Whether each sample has a process of its own.
    pub fn is_alone(self) -> bool {
        matches!(self, Group::Programs | Group::Latency | Group::Service)
    }

    /// Whether the workloads take so long that they run only if they are named.
    pub fn is_long(self) -> bool {
        matches!(self, Group::Latency | Group::Service)
    }
}

/// A workload and its contestants.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The workload's name.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The group whose table has the workload.
    pub group: Group,
    /// The number of operations of a run at scale 1.
    pub ops: u64,
    /// The number of CPUs that the workload needs.
    pub cpus: usize,
    /// The contestants, in the order of tables.
    pub contestants: Vec<Contestant>,
}

/// A workload for every allocator.
pub(crate) trait Pattern {
    const NAME: &'static str;
    const ABOUT: &'static str;
    const GROUP: Group = Group::Single;
    const OPS: u64 = 1_000_000;
    const CPUS: usize = 1;

    /// Runs the workload once.
    fn run<A: Subject>(task: Task) -> Result<Sample, String>;
}

/// A workload with the allocators of a list as contestants.
fn of<P: Pattern, S: Subjects>() -> Workload {
    struct Collect<P>(Vec<Contestant>, std::marker::PhantomData<P>);
    impl<P: Pattern> Visitor for Collect<P> {
        fn visit<A: Subject>(&mut self) {
            let run = P::run::<A>;
            self.0.push(Contestant { name: A::NAME, role: A::ROLE, evidence: A::EVIDENCE, run });
        }
    }
    let mut collect = Collect::<P>(Vec::new(), std::marker::PhantomData);
    S::each(&mut collect);
    let contestants = collect.0;
    Workload { name: P::NAME, about: P::ABOUT, group: P::GROUP, ops: P::OPS, cpus: P::CPUS, contestants }
}

/// The workloads that every allocator can run, with those of a list as contestants, in the order of tables.
pub(crate) fn of_subjects<S: Subjects>() -> Vec<Workload> {
    let mut all = nine::workloads::<S>();
    all.extend(queue::workloads::<S>());
    all.extend(larson::workloads::<S>());
    all.extend(programs::workloads::<S>());
    all.extend(latency::workloads::<S>());
    all.extend(service::workloads::<S>());
    all.extend(trace::workload::<S>());
    all
}

/// The workloads that are of no allocator: object caches, and floors.
pub(crate) fn of_none() -> Vec<Workload> {
    let mut all = caches::workloads();
    all.extend(floors::workloads());
    all
}
