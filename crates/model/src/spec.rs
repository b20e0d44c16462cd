//! What machine to model: topology as data.

/// A machine: page size, CPUs, nodes, distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// log2 of the page size in bytes: 12, 14 or 16.
    pub page_shift: u32,
    /// The node of each CPU.
    pub cpu_node: Vec<u16>,
    /// Whether each CPU is online; empty means all are.
    pub cpu_online: Vec<bool>,
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
    /// Distances, row by row; empty means 10 at home and 20 elsewhere.
    pub distance: Vec<Vec<u32>>,
    /// Whether the kernel is built with CONFIG_HAVE_MEMORYLESS_NODES (ia64 and ppc64 are, x86 is not). If it
    /// is, the memory node of a CPU whose own node has no memory is the nearest node with memory; if it is
    /// not, every CPU's memory node is its own node.
    pub memoryless_nodes: bool,
    /// How long a grace period takes, nanoseconds of event time.
    pub grace_period_ns: u64,
    /// Page allocations of this order or above fail: a policy for tests and what-ifs.
    pub fail_order: Option<u8>,
    /// Seed of [`Hooks::random`](slablab_platform::Hooks::random).
    pub seed: u64,
}

/// A memory node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// Bytes of memory, 0 for a node without.
    pub bytes: u64,
}

/// Why a machine cannot be modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSpec(pub String);

impl std::fmt::Display for BadSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadSpec {}

impl MachineSpec {
    /// A machine of `cpus` CPUs spread in blocks over `nodes` nodes of `bytes` each, 4 KiB pages.
    pub fn uniform(cpus: u16, nodes: u16, bytes: u64) -> MachineSpec {
        let per_node = cpus.div_ceil(nodes).max(1);
        MachineSpec {
            page_shift: 12,
            cpu_node: (0..cpus).map(|cpu| cpu / per_node).collect(),
            cpu_online: Vec::new(),
            nodes: vec![NodeSpec { bytes }; nodes as usize],
            distance: Vec::new(),
            memoryless_nodes: true,
            grace_period_ns: 10_000_000,
            fail_order: None,
            seed: 1,
        }
    }

    /// The distance between two nodes.
    pub(crate) fn distance(&self, from: usize, to: usize) -> u32 {
        match self.distance.get(from) {
            Some(row) => row[to],
            None if from == to => 10,
            None => 20,
        }
    }

    /// The nearest node that has memory.
    pub(crate) fn nearest_memory(&self, node: u16) -> u16 {
        let with_memory = (0..self.nodes.len()).filter(|to| self.nodes[*to].bytes >> self.page_shift > 0);
        with_memory.min_by_key(|to| (self.distance(node as usize, *to), *to)).expect("some node has memory")
            as u16
    }

    /// Checks the numbers against each other.
    pub fn check(&self) -> Result<(), BadSpec> {
        let bad = |text: String| Err(BadSpec(text));
        if ![12, 14, 16].contains(&self.page_shift) {
            return bad(format!("page size 2^{} bytes: expected 4096, 16384 or 65536", self.page_shift));
        }
        if self.cpu_node.is_empty() || self.nodes.is_empty() {
            return bad("a machine needs at least one CPU and one node".into());
        }
        if self.cpu_node.len() > u16::MAX as usize || self.nodes.len() > 1024 {
            return bad("at most 65535 CPUs and 1024 nodes".into());
        }
        if let Some(node) = self.cpu_node.iter().find(|node| **node as usize >= self.nodes.len()) {
            return bad(format!("a CPU is on node {node}, but there are {} nodes", self.nodes.len()));
        }
        if !self.cpu_online.is_empty() && self.cpu_online.len() != self.cpu_node.len() {
            return bad(format!("{} CPUs but {} online flags", self.cpu_node.len(), self.cpu_online.len()));
        }
        if self.nodes.iter().all(|node| node.bytes >> self.page_shift == 0) {
            return bad("no node has memory".into());
        }
        if !self.distance.is_empty()
            && (self.distance.len() != self.nodes.len()
                || self.distance.iter().any(|row| row.len() != self.nodes.len()))
        {
            return bad(format!("distances: expected {0} rows of {0} numbers", self.nodes.len()));
        }
        let frames: u64 = self.nodes.iter().map(|node| (node.bytes >> self.page_shift) + 1024).sum();
        if frames >= u32::MAX as u64 {
            return bad(format!("{frames} page frames: at most {} can be numbered", u32::MAX));
        }
        Ok(())
    }
}
