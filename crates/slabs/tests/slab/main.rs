//! SLAB against reference/slab.md, on the modelled machine: what it does, counted.
//!
//! Every case is data for [`check`]: a preset, steps, and what the counters say then. What this cannot show: races (the
//! schedules in crates/check), and whether a kernel did the same (crates/lab/tests/real.rs).

mod arrays;
#[path = "../common/mod.rs"]
mod common;
mod nodes;
mod sizes;

use common::Expected::{Counted, FreeInSlabs, Live, Parked, PartialSlabs, Slabs};
use common::Step::{Alloc, AllocOn, Churn, Down, Feed, Free, FreeNewest, Reap, Shrink, Up};
use common::{Case, MIB, Tested, two_nodes};
use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_platform::{Event, NodeId};
use slablab_slabs::preset::Preset;
use slablab_slabs::slab_engine::{SlabEngine, SlabPolicy};
use slablab_slabs::{CacheId, CacheSpec, Engine};

const OLD: &str = "slab@2.6.29";
const NEW: &str = "slab@6.1";

type Heap = common::Heap<SlabEngine<Model>>;

impl Tested for SlabEngine<Model> {
    const REAP_NS: u64 = 2_000_000_000;
    /// Arrays, and lists beside a slab.
    const METADATA_BYTES: Option<u32> = Some(4096);

    fn policy(preset: &str) -> SlabPolicy {
        policy(preset)
    }
}

fn policy(preset: &str) -> SlabPolicy {
    match Preset::parse(preset) {
        Ok(Preset::Slab(policy)) => policy,
        other => panic!("{preset}: {other:?}"),
    }
}

fn check(case: &Case) {
    common::check::<SlabEngine<Model>>(case);
}

/// CPU 0 on node 0 without memory, CPU 1 on node 1 with all of it.
fn memoryless() -> MachineSpec {
    let nodes = [0, 512 * MIB].map(|bytes| NodeSpec { bytes }).to_vec();
    MachineSpec { cpu_node: vec![0, 1], nodes, ..MachineSpec::uniform(2, 2, 512 * MIB) }
}
