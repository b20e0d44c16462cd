//! The workloads: tables of who runs what.
//!
//! A `Pattern` is written once for all allocators and compiled for each, so that calls are inlined as in a program that has
//! the allocator as its global one. [`all`] is the table; everything else reads it.

mod caches;
mod floors;
mod larson;
mod nine;
mod queue;

use crate::clock::Sample;
use crate::contestants::each_subject;
use crate::subject::{Role, Subject, Visitor};

/// What a run of a workload is given.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Operations.
    pub ops: u64,
    /// Seed of sizes and places.
    pub seed: u64,
}

/// Runs a workload once on a contestant; the error says whose block it got instead, or what went wrong.
pub type Run = fn(Task) -> Result<Sample, String>;

/// Somebody who runs a workload.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub role: Role,
    /// How it is known who served.
    pub evidence: &'static str,
    /// Runs the workload.
    pub run: Run,
}

/// Workloads that are compared in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// One thread.
    Single,
    /// Several threads.
    Threads,
    /// One object of one type.
    Caches,
    /// What the machine takes for less.
    Floors,
}

impl Group {
    /// All of them, in the order of tables.
    pub const ALL: [Group; 4] = [Group::Single, Group::Threads, Group::Caches, Group::Floors];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Group::Single => "single",
            Group::Threads => "threads",
            Group::Caches => "caches",
            Group::Floors => "floors",
        }
    }
}

/// A workload and everybody who runs it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Its table.
    pub group: Group,
    /// Operations of a usual run.
    pub ops: u64,
    /// CPUs without which it says nothing.
    pub cpus: usize,
    /// Who runs it.
    pub contestants: Vec<Contestant>,
}

/// A workload for any allocator.
trait Pattern {
    const NAME: &'static str;
    const ABOUT: &'static str;
    const GROUP: Group = Group::Single;
    const OPS: u64 = 1_000_000;
    const CPUS: usize = 1;

    /// Runs it once.
    fn run<A: Subject>(task: Task) -> Result<Sample, String>;
}

/// A workload with all allocators as contestants, and the first of ours a second time.
fn of<P: Pattern>() -> Workload {
    struct Collect<P>(Vec<Contestant>, std::marker::PhantomData<P>);
    impl<P: Pattern> Visitor for Collect<P> {
        fn visit<A: Subject>(&mut self) {
            let run = P::run::<A>;
            self.0.push(Contestant { name: A::NAME, role: A::ROLE, evidence: A::EVIDENCE, run });
        }
    }
    let mut collect = Collect::<P>(Vec::new(), std::marker::PhantomData);
    each_subject(&mut collect);
    let mut contestants = collect.0;
    let ours = contestants.iter().position(|one| one.role == Role::Ours).expect("ours is a subject");
    // The same machine code under another name.
    let twin = Contestant { name: "twin", role: Role::Twin, ..contestants[ours].clone() };
    contestants.push(twin);
    Workload { name: P::NAME, about: P::ABOUT, group: P::GROUP, ops: P::OPS, cpus: P::CPUS, contestants }
}

/// Every workload, in the order of tables.
pub fn all() -> Vec<Workload> {
    let mut all = nine::workloads();
    all.extend(queue::workloads());
    all.extend(larson::workloads());
    all.extend(caches::workloads());
    all.extend(floors::workloads());
    all
}
