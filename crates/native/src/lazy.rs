//! Values per node and per CPU, made at their first use.

use crate::boot_memory::Row;
use crate::{area, topology};
use slablab_platform::{CpuId, CpuShared, NodeId, PerNode};

/// One value per node.
#[derive(Debug)]
pub struct Nodes<T>(Row<T>);

impl<T: Default> PerNode<T> for Nodes<T> {
    fn new() -> Self {
        Nodes(Row::new(topology::nodes() as usize))
    }
    #[inline]
    fn get(&self, node: NodeId) -> &T {
        self.0.get(node.0)
    }
    fn peek(&self, node: NodeId) -> Option<&T> {
        self.0.peek(node.0)
    }
}

impl<T> Nodes<T> {
    /// For the directory: the offset of the address of the row.
    pub(crate) const ROW_AT: usize = std::mem::offset_of!(Self, 0) + Row::<T>::PLACES_AT;
}

/// One value per slot.
#[derive(Debug)]
pub struct Cpus<T>(Row<T>);

impl<T: Default> CpuShared<T> for Cpus<T> {
    fn new() -> Self {
        Cpus(Row::new(area::room()))
    }
    #[inline]
    fn get(&self, cpu: CpuId) -> &T {
        self.0.get(cpu.0)
    }
    fn peek(&self, cpu: CpuId) -> Option<&T> {
        self.0.peek(cpu.0)
    }
}
