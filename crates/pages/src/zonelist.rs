//! Zonelists: the order in which a request that names one node asks the nodes for memory
//! (docs/theory/pagealloc.md 6).
//!
//! A node's list begins with the node itself, if it has memory, and goes on by distance. Between equally
//! distant nodes: those with a higher number than the local node first, those without CPUs first, then the
//! node that fewer earlier lists favour (`node_load`), then the lower number.
//!
//! [`crate::Pages::new`] makes the lists of all nodes, in the order of the nodes' numbers, before any other
//! CPU can reach them; they never change afterwards, so reading them needs no order and no lock. The lists
//! are kept one field per entry in [`PerNode`]s: no array needs to know how many nodes there can be.

use slablab_platform::{CpuId, Field, NodeId, PerNode, Platform};

/// A number per node, or per place in a list, that is 0 at first.
struct Number<P: Platform>(P::Field);

impl<P: Platform> Default for Number<P> {
    fn default() -> Self {
        Number(P::Field::new(0))
    }
}

/// The zonelist of one node: entry `place` is the number of the node that is asked at that place.
struct List<P: Platform>(P::PerNode<Number<P>>);

impl<P: Platform> Default for List<P> {
    fn default() -> Self {
        List(P::PerNode::new())
    }
}

impl<P: Platform> List<P> {
    fn node(&self, place: u16) -> NodeId {
        NodeId(self.0.get(NodeId(place)).0.get() as u16)
    }

    fn set_node(&self, place: u16, node: NodeId) {
        self.0.get(NodeId(place)).0.set(node.0 as u64);
    }

    /// Sorts the first `len` entries by `key`, in place (Shell, 1959): a machine may have 1,024 nodes, and
    /// there is no memory for a copy.
    fn sort<K: Ord>(&self, len: u16, key: impl Fn(NodeId) -> K) {
        let mut gap = len / 2;
        while gap > 0 {
            for end in gap..len {
                let node = self.node(end);
                let mut place = end;
                while place >= gap && key(self.node(place - gap)) > key(node) {
                    self.set_node(place, self.node(place - gap));
                    place -= gap;
                }
                self.set_node(place, node);
            }
            gap /= 2;
        }
    }
}

/// The zonelists of all nodes.
pub(crate) struct Zonelists<P: Platform> {
    lists: P::PerNode<List<P>>,
    /// Entries of every list: the nodes with memory.
    len: u16,
}

/// The state that the lists' order depends on besides distances, while the lists are made.
struct Loads<P: Platform> {
    /// 1 for a node that has CPUs.
    has_cpus: P::PerNode<Number<P>>,
    /// `node_load`: how much the lists made so far favour a node.
    load: P::PerNode<Number<P>>,
}

impl<P: Platform> Zonelists<P> {
    /// Makes all lists. Reads the topology from `P`: CPUs that appear later do not change the order.
    pub(crate) fn new() -> Self {
        let loads = Loads::<P> { has_cpus: P::PerNode::new(), load: P::PerNode::new() };
        for cpu in (0..P::cpus()).map(CpuId) {
            loads.has_cpus.get(P::cpu_node(cpu)).0.set(1);
        }
        let has_memory = |node: &NodeId| P::node_frames(*node).1 > 0;
        let nodes = || (0..P::nodes()).map(NodeId);
        let lists = P::PerNode::<List<P>>::new();
        let len = nodes().filter(has_memory).count() as u16;
        for local in nodes() {
            let list = lists.get(local);
            (0..len).zip(nodes().filter(has_memory)).for_each(|(place, node)| list.set_node(place, node));
            list.sort(len, |node| loads.key(local, node));
            loads.add(local, list, len);
        }
        Zonelists { lists, len }
    }

    /// The nodes with memory, nearest to `local` first.
    pub(crate) fn nearest(&self, local: NodeId) -> Nearest<'_, P> {
        Nearest { zonelists: self, local, at_home: P::node_frames(local).1 > 0, next: 0 }
    }
}

impl<P: Platform> Loads<P> {
    /// A node's place in `local`'s list: the lowest key comes first. The load decides only between nodes of
    /// equal distance.
    fn key(&self, local: NodeId, node: NodeId) -> (u64, NodeId) {
        if node == local {
            return (0, node);
        }
        let mut far = P::distance(local, node) as u64;
        far += (node < local) as u64;
        far += self.has_cpus.get(node).0.get();
        ((far << 32) + self.load.get(node).0.get(), node)
    }

    /// Adds what a new list favours: the first node of each distance, the nearer the more.
    fn add(&self, local: NodeId, list: &List<P>, len: u16) {
        let at_home = P::node_frames(local).1 > 0;
        let mut weight = P::nodes() as u64 - !at_home as u64;
        let mut distance = P::distance(local, local);
        for node in (0..len).map(|place| list.node(place)) {
            if P::distance(local, node) != distance {
                let load = &self.load.get(node).0;
                load.set(load.get() + weight);
                distance = P::distance(local, node);
            }
            weight -= 1;
        }
    }
}

/// The nodes with memory, nearest first: see [`crate::Pages::nearest`].
pub struct Nearest<'a, P: Platform> {
    zonelists: &'a Zonelists<P>,
    local: NodeId,
    at_home: bool,
    next: u16,
}

impl<P: Platform> Iterator for Nearest<'_, P> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let place = self.next;
        self.next += 1;
        // The usual request ends here and reads no list.
        if place == 0 && self.at_home {
            return Some(self.local);
        }
        (place < self.zonelists.len).then(|| self.zonelists.lists.get(self.local).node(place))
    }
}
