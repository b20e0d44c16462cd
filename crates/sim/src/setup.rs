//! What every run takes: a machine, and the engine on it.

use slablab_model::{Hardware, MachineSpec};
use slablab_slabs::Preset;

pub use crate::heap::boot::Boot;

/// A machine and the engine on it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// CPUs, nodes, memory.
    pub spec: MachineSpec,
    /// What they cost.
    pub hardware: Hardware,
    /// The engine.
    pub preset: Preset,
    /// What its slab caches hold before the program starts.
    pub boot: Boot,
    /// What is drawn of the starting state ([`crate::heap::placement`]); `None`: the machine as it is made.
    pub placement: Option<u64>,
}
