//! Topology: which CPUs and memory nodes the machine has, how far apart they are, and where this code runs.

/// A CPU's number, from 0 to [`Topology::cpus`] - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u16);

/// A memory node's number, from 0 to [`Topology::nodes`] - 1. A CPU's node need not have memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// A page frame's number. 32 bits: 16 TiB of 4 KiB pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pfn(pub u32);

impl Pfn {
    /// The frame `frames` after this one.
    #[inline]
    pub const fn plus(self, frames: u32) -> Pfn {
        Pfn(self.0 + frames)
    }
}

/// CPUs and nodes. Known at run time; only [`Topology::cpu`] and [`Topology::cpu_online`] change while the
/// world lasts.
pub trait Topology: Sized + 'static {
    /// How many CPUs exist, up or down. Slots are numbered below this.
    fn cpus() -> u16;
    /// How many nodes exist, with memory or without.
    fn nodes() -> u16;
    /// log2 of the page size in bytes.
    fn page_shift() -> u32;
    /// The CPU this code runs on: a hint, because the scheduler may move the caller before it uses the
    /// answer.
    fn cpu() -> CpuId;
    /// The node a CPU is on, with memory or without.
    fn cpu_node(cpu: CpuId) -> NodeId;
    /// The memory node of a CPU: the node whose objects are local to the CPU, the kernel's `cpu_to_mem()`.
    ///
    /// A kernel built with CONFIG_HAVE_MEMORYLESS_NODES (ia64, ppc64) answers the nearest node with memory.
    /// A kernel built without (x86) answers the CPU's own node, even if that node has no memory. A world
    /// answers in one of the two ways for all its CPUs. Callers must therefore expect a memory node whose
    /// frame count is 0: no object is local to such a CPU.
    fn cpu_memory_node(cpu: CpuId) -> NodeId;
    /// The memory node of the CPU this code runs on: the kernel's `numa_mem_id()`.
    #[inline]
    fn memory_node() -> NodeId {
        Self::cpu_memory_node(Self::cpu())
    }
    /// The distance between two nodes in ACPI SLIT units: 10 from a node to itself, more to any other.
    fn distance(from: NodeId, to: NodeId) -> u32;
    /// A node's page frames: the first frame and the count; count 0 for a node without memory. The frames of
    /// one node are contiguous and start at a multiple of the largest block.
    fn node_frames(node: NodeId) -> (Pfn, u32);
    /// Whether a CPU is up.
    fn cpu_online(cpu: CpuId) -> bool;
}
