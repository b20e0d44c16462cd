//! Nodes of the page cache's trees, for hosts that have them in a slab cache (`radix_tree_node` of 2.6.29).
//!
//! ```text
//! page n of a file ── leaf n / 64 ── inner node n / 4096 ── ...     page 0 alone: no node
//! ```
//!
//! A node is there as long as one of its 64 places is used: by a page in a frame, or by a node. The swap
//! cache is a tree by slots. Pages of tmpfs in swap, and shadows, need no node here; in 6.x they do.

use std::collections::BTreeMap;

/// Places of a node, as a power of two.
const PLACES: u32 = 6;

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// The number of the mapping; [`Trees::SWAP`]: the swap cache.
    pub tree: u32,
    /// Nodes between it and the pages.
    pub level: u8,
    /// Its number among the nodes of its level.
    pub at: u32,
}

/// The nodes of all trees, if they are kept.
#[derive(Debug, Default)]
pub struct Trees {
    is_kept: bool,
    /// Places used of each node.
    used: BTreeMap<Node, u32>,
    /// What happened since it was last asked for: a node came (`true`) or went.
    changes: Vec<(Node, bool)>,
}

impl Trees {
    /// In place of a mapping's number.
    pub const SWAP: u32 = u32::MAX;

    /// Nodes are kept from now on. No page is in a frame yet.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Nodes that came (`true`) and went since this was last called, in their order.
    pub fn take_changes(&mut self) -> Vec<(Node, bool)> {
        std::mem::take(&mut self.changes)
    }

    /// Whether something happened since [`Trees::take_changes`] was last called.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// A page is in a frame from now on.
    pub(crate) fn add(&mut self, tree: u32, index: u32) {
        let (mut level, mut at) = (0, index);
        // What begins a tree needs no node beside it above.
        while self.is_kept && at > 0 {
            at >>= PLACES;
            let node = Node { tree, level, at };
            let used = self.used.entry(node).or_default();
            *used += 1;
            if *used > 1 {
                return;
            }
            self.changes.push((node, true));
            level += 1;
        }
    }

    /// A page is in a frame no longer.
    pub(crate) fn remove(&mut self, tree: u32, index: u32) {
        let (mut level, mut at) = (0, index);
        while self.is_kept && at > 0 {
            at >>= PLACES;
            let node = Node { tree, level, at };
            let used = self.used.get_mut(&node).expect("a node has the page");
            *used -= 1;
            if *used > 0 {
                return;
            }
            self.used.remove(&node);
            self.changes.push((node, false));
            level += 1;
        }
    }

    /// Nodes of all trees.
    pub fn nodes(&self) -> usize {
        self.used.len()
    }

    /// Whether these are all pages in frames.
    pub(crate) fn check(&self, pages: impl Iterator<Item = (u32, u32)>) -> bool {
        let mut other = Trees { is_kept: self.is_kept, ..Trees::default() };
        pages.for_each(|(tree, index)| other.add(tree, index));
        other.used == self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_there_for_each_64_pages_but_the_first_page_alone() {
        let mut trees = Trees::default();
        trees.add(1, 5);
        assert_eq!((trees.nodes(), trees.has_changes()), (0, false), "nodes are not kept");
        trees.keep();
        trees.add(1, 0);
        assert_eq!(trees.nodes(), 0);
        (1..130).for_each(|index| trees.add(1, index));
        trees.add(2, 4_096);
        // 0, 64, 128 and one above; 4096 and two above.
        let of_level = |level| trees.used.keys().filter(|node| node.level == level).count();
        assert_eq!([0, 1, 2].map(of_level), [4, 2, 1]);
        let came = trees.take_changes();
        assert_eq!((came.len(), came.iter().all(|(_, came)| *came)), (7, true));
        trees.remove(2, 4_096);
        (0..130).rev().for_each(|index| trees.remove(1, index));
        let went = trees.take_changes();
        assert_eq!((went.len(), went.iter().any(|(_, came)| *came), trees.nodes()), (7, false, 0));
    }
}
