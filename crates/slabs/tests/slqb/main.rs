//! SLQB against reference/slqb.md, on the modelled machine: what it does, counted.
//!
//! Every case is data for [`check`]: a preset, steps, and what the counters say then. What this cannot show: races (the
//! schedules in crates/check), and whether a kernel did the same, as no recording of one exists.

#[path = "../common/mod.rs"]
mod common;
mod life;
mod nodes;
mod programs;
mod queues;
mod sizes;

use common::Expected::{Counted, FreeInSlabs, Live, Parked, PartialSlabs, Slabs};
use common::Step::{Alloc, AllocOn, Churn, Down, Feed, Free, PingPong, Reap, Shrink, Up};
use common::{Case, Expected, MIB, Step, Tested, two_nodes};
use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_platform::{CpuId, Event, Gfp, NodeId, Pfn, Platform};
use slablab_slabs::preset::Preset;
use slablab_slabs::slqb::{Slqb, SlqbPolicy};
use slablab_slabs::{Busy, CacheFlags, CacheId, CacheSpec, Engine, Misuse, Place, Usage};
use std::collections::VecDeque;

const REAP_NS: u64 = 3_000_000_000;
const JANUARY: &str = "slqb@2009-01";
const SEPTEMBER: &str = "slqb@2009-09";

type Heap = common::Heap<Slqb<Model>>;

impl Tested for Slqb<Model> {
    const REAP_NS: u64 = REAP_NS;
    const METADATA_BYTES: Option<u32> = None;

    fn policy(preset: &str) -> SlqbPolicy {
        policy(preset)
    }
}

fn policy(preset: &str) -> SlqbPolicy {
    match Preset::parse(preset) {
        Ok(Preset::Slqb(policy)) => policy,
        other => panic!("{preset}: {other:?}"),
    }
}

/// 64-byte objects, 64 to a slab, in batches of 256 and queues of 1024.
fn case(
    name: &'static str,
    machine: MachineSpec,
    presets: &'static [&'static str],
    steps: &'static [Step],
    expected: &'static [Expected],
) -> Case {
    Case { name, machine, presets, size: 64, steps, expected }
}

fn check(case: &Case) {
    common::check::<Slqb<Model>>(case);
}

/// The two nodes; the first has no memory.
fn memoryless() -> MachineSpec {
    MachineSpec { nodes: vec![NodeSpec { bytes: 0 }, NodeSpec { bytes: 256 * MIB }], ..two_nodes() }
}
