//! Scripts of page accesses (`trace::script`) on the simulated kernel: each process a task with an
//! address space, and what the counters said in each phase.
//!
//! ```text
//! run ── with_memory ── the main process's task ── commands
//!          acc, inter  ── batches of pages ── mm::touch, mm::read, mm::write
//!          spawn       ── another task; until, go, join: it wakes and is waited for
//!          phase       ── Phase: differences of all counters, residency of each object
//! the last process ends ── the daemons stop ── Kernel::run returns
//! ```
//!
//! A touch that hits is charged with others, 64 at a time; between two such pieces the task can be preempted
//! and interrupts are served.

mod access;
mod family;
mod objects;
mod own;
mod plan;
mod process;
mod record;
mod settings;
mod shared;

pub use record::{ObjectUse, Pages, Phase, Record, Usage};
pub use settings::is_setting;

use crate::kernel::era::Era;
use crate::kernel::tally::Failed;
use crate::memory::caches::Tree;
use crate::memory::sampler::Sample;
use crate::memory::{Guest, Killed, with_recorded_memory};
use crate::record::Recorder;
use crate::setup::Setup;
use plan::Plan;
use process::Process;
use settings::Known;
use shared::Shared;
use slablab_model::{Ps, Timed};
use slablab_trace::script;
use slablab_vm::mm::Rules;
use slablab_vm::{Preset, Replacement};
use std::sync::Arc;

/// What a script did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Records, the main process's first, then the others in the order in which they were spawned.
    pub records: Vec<Record>,
    /// Processes that were killed because no page was free.
    pub killed: Vec<Killed>,
    /// Accesses of pages.
    pub accesses: u64,
    /// The clock at the end.
    pub elapsed: Ps,
    /// Samples of the memory, if the recorder keeps them.
    pub samples: Vec<Sample>,
}

/// The policy of a preset for a script: one whose generations can be turned on and off, if the script does.
pub fn policy_for(vm: &Preset, script: &script::Script) -> Box<dyn Replacement> {
    let switches = plan::writes(script, settings::GENERATIONS).then(|| vm.switchable()).flatten();
    switches.unwrap_or_else(|| vm.policy())
}

/// Runs a script under a policy.
///
/// # Errors
/// A machine that cannot be modelled; a setting that is not modelled; tasks that wait for ever; a livelock;
/// no memory and no process to kill.
pub fn run(
    setup: &Setup,
    seed: u64,
    guest: &Guest,
    policy: Box<dyn Replacement>,
    rules: Rules,
    script: &Arc<script::Script>,
) -> Result<Answer, Failed> {
    run_recorded(setup, seed, &Recorder::default(), guest, policy, rules, script)
}

/// Runs a script under a policy, and tells `recorder` what happens.
///
/// # Errors
/// Those of [`run`].
pub fn run_recorded(
    setup: &Setup,
    seed: u64,
    recorder: &Recorder,
    guest: &Guest,
    policy: Box<dyn Replacement>,
    rules: Rules,
    script: &Arc<script::Script>,
) -> Result<Answer, Failed> {
    let known = Known {
        era: Era::of(&setup.preset),
        memory_kib: setup.spec.nodes.iter().map(|node| node.bytes >> 10).sum(),
        has_generations: policy.name().contains(",lru_gen"),
        can_switch: policy.can_switch(),
    };
    let plan = Plan::of(script, &known)?;
    let mut guest = guest.clone();
    let caches = guest.caches.len() as u16;
    guest.caches.extend(Tree::caches(Era::of(&setup.preset)));
    with_recorded_memory(setup, seed, recorder, &guest, policy, rules, |memory| {
        settings::boot(memory, &known)?;
        let shared = Shared::new(memory, plan, caches);
        let walk = script::Process::new(script);
        Process::start(&shared, None, "", script, walk, None);
        memory.kernel.run()?;
        memory.check().map_err(Failed::Broken)?;
        let records = shared.records.take();
        Ok(Answer {
            records,
            killed: memory.processes.killed(),
            accesses: shared.accesses.get(),
            elapsed: Timed::latest(),
            samples: memory.take_samples(),
        })
    })
}
