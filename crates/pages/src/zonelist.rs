//! Zonelists: which node is asked next (reference/pagealloc.md 6).
//!
//! A node's list begins with the node itself, if it has memory, and goes on by distance. Between equally distant
//! nodes: those with a higher number than the local node first, those without CPUs first, then the one that fewer
//! lists already favour (`node_load`), then the lower number.
//!
//! A list is made when somebody first looks beyond its first node, and kept one word per entry in a [`PerNode`]: no
//! array needs to know how many nodes there can be. Making node L's list needs the loads that the lists of nodes
//! 0..L left behind, so those are made too. Several CPUs may do it at once: they store the same words.

use crate::Pages;
use crate::machine::Machine;
use slablab_platform::{NodeId, PerNode, Platform, Word};

/// A node's zonelist.
pub(crate) struct Zonelist<P: Platform> {
    entries: P::PerNode<Entry<P>>,
    /// Entries, plus one once made.
    len: P::Word,
    /// CPUs on the node, plus one once counted.
    cpus: P::Word,
}

/// One word of a list, and one of the loads before it was made.
struct Entry<P: Platform> {
    /// The node at this place.
    node: P::Word,
    /// `node_load` of the node with this number, before this list.
    load: P::Word,
}

impl<P: Platform> Default for Entry<P> {
    fn default() -> Self {
        Entry { node: P::Word::new(0), load: P::Word::new(0) }
    }
}

impl<P: Platform> Default for Zonelist<P> {
    fn default() -> Self {
        Zonelist { entries: P::PerNode::new(), len: P::Word::new(0), cpus: P::Word::new(0) }
    }
}

impl<P: Platform> Pages<P> {
    /// The nodes with memory, nearest to `local` first.
    pub fn nearest(&self, local: NodeId) -> Nearest<'_, P> {
        Nearest { pages: self, local, at_home: P::node_frames(local).1 > 0, next: 0 }
    }

    /// CPUs on a node, for the sizes of per-CPU lists.
    pub(crate) fn local_cpus(&self, node: NodeId) -> u32 {
        let cached = &self.zonelist(node).cpus;
        match cached.load() {
            0 => {
                let cpus = Machine::cpus_on::<P>(node);
                cached.store(cpus as u64 + 1);
                cpus
            }
            word => word as u32 - 1,
        }
    }

    fn zonelist(&self, node: NodeId) -> &Zonelist<P> {
        &self.nodes.get(node).zonelist
    }

    /// Entries of a node's list, made now if need be.
    fn made(&self, node: NodeId) -> u16 {
        if let len @ 1.. = self.zonelist(node).len.load_acquire() {
            return len as u16 - 1;
        }
        for earlier in (0..=node.0).map(NodeId) {
            if self.zonelist(earlier).len.load_acquire() == 0 {
                self.make(earlier);
            }
        }
        self.zonelist(node).len.load_acquire() as u16 - 1
    }

    /// Makes one list; those of all nodes before are made.
    #[cold]
    fn make(&self, local: NodeId) {
        let list = self.zonelist(local);
        self.carry_loads(local);
        let mut last = None;
        let mut len = 0;
        while let Some((key, node)) = self.after(local, last) {
            list.entries.get(NodeId(len)).node.store(node.0 as u64);
            last = Some((key, node));
            len += 1;
        }
        // Pairs with the acquire loads of `len`: whoever sees it sees the entries.
        list.len.store_release(len as u64 + 1);
    }

    /// The loads before `local`'s list: those before the previous node's, and what that list adds. In a list, the
    /// first node of each distance is favoured; the nearer, the more.
    fn carry_loads(&self, local: NodeId) {
        let Some(before) = local.0.checked_sub(1).map(NodeId) else { return };
        let (from, to) = (self.zonelist(before), self.zonelist(local));
        for node in (0..P::nodes()).map(NodeId) {
            to.entries.get(node).load.store(from.entries.get(node).load.load());
        }
        let at_home = P::node_frames(before).1 > 0;
        let mut weight = P::nodes() as u64 - !at_home as u64;
        let mut distance = P::distance(before, before);
        for place in 0..from.len.load_acquire() as u16 - 1 {
            let node = NodeId(from.entries.get(NodeId(place)).node.load() as u16);
            if P::distance(before, node) != distance {
                let load = &to.entries.get(node).load;
                load.store(load.load() + weight);
                distance = P::distance(before, node);
            }
            weight -= 1;
        }
    }

    /// The nearest node with memory after `last`.
    fn after(&self, local: NodeId, last: Option<(u64, NodeId)>) -> Option<(u64, NodeId)> {
        let nodes = (0..P::nodes()).map(NodeId).filter(|node| P::node_frames(*node).1 > 0);
        let keyed = nodes.map(|node| (self.key(local, node), node));
        keyed.filter(|entry| last.is_none_or(|last| *entry > last)).min()
    }

    /// How far a node is: load decides only between nodes of equal distance.
    fn key(&self, local: NodeId, node: NodeId) -> u64 {
        if node == local {
            return 0;
        }
        let mut far = P::distance(local, node) as u64;
        far += (node < local) as u64;
        far += (self.local_cpus(node) > 0) as u64;
        (far << 32) + self.zonelist(local).entries.get(node).load.load()
    }
}

/// The nodes with memory, nearest first: see [`Pages::nearest`].
pub struct Nearest<'a, P: Platform> {
    pages: &'a Pages<P>,
    local: NodeId,
    at_home: bool,
    next: u16,
}

impl<P: Platform> Iterator for Nearest<'_, P> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let place = self.next;
        self.next += 1;
        // The usual answer needs no list.
        if place == 0 && self.at_home {
            return Some(self.local);
        }
        if place >= self.pages.made(self.local) {
            return None;
        }
        let entries = &self.pages.zonelist(self.local).entries;
        Some(NodeId(entries.get(NodeId(place)).node.load() as u16))
    }
}
