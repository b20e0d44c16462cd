//! A slab as the plan of a start has it.

use slablab_slabs::Place;

/// A slab to begin with.
#[derive(Clone, Debug)]
pub struct PlannedSlab {
    /// The node its memory is on.
    pub node: u16,
    /// The address that the kernel has it at; 0 if that is not known.
    pub address: u64,
    /// Where it is.
    pub place: Place,
    /// Each object: free with its turn, or allocated, and then perhaps one that is freed later.
    pub objects: Vec<Start>,
}

/// An object at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Free; the number says in which turn it is handed out.
    Free(u16),
    /// Allocated and never freed in the recording.
    Kept,
    /// Allocated, and freed in the recording: its number.
    Old(u32),
}

pub(super) fn free_objects(slab: &PlannedSlab) -> u64 {
    slab.objects.iter().filter(|start| matches!(start, Start::Free(_))).count() as u64
}
