//! Nodes of the page cache's trees as slab objects (`radix_tree_node` of 2.6.29).
//!
//! ```text
//! a page is allocated ── the CPU's stock is filled to 7, with the request's right to wait
//! it enters its tree  ── a node from the stock          it leaves ── the node is freed after a grace period
//! a page gets a slot  ── a node from the stock, which is filled without waiting: reclaim asks
//! ```
//!
//! The stock is filled by `radix_tree_preload`. A node that cannot be had is not there; the kernel keeps the
//! page out of the cache then. From memory.

use crate::kernel::Task;
use crate::kernel::objects::{Held, Object};
use slablab_model::{Access, Timed};
use slablab_platform::{Gfp, Topology};
use slablab_vm::Vm;
use slablab_vm::trees::{Node, Trees};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Nodes of a CPU's stock (assumed: 11 levels of 64 places have all 64-bit indexes, 7 those of 40 bits).
const STOCK: usize = 7;
/// Bytes of a node that its first page touches.
const TOUCHED: u32 = 64;

/// The nodes.
#[derive(Default)]
pub(super) struct TreeNodes {
    /// Whether nodes are slab objects on this machine.
    is_on: bool,
    /// `None`: the node has no object yet, or none was to be had.
    held: RefCell<BTreeMap<Node, Option<Held>>>,
    /// The stock of each CPU.
    stock: RefCell<BTreeMap<u16, Vec<Held>>>,
}

impl TreeNodes {
    pub(super) fn new(is_on: bool) -> TreeNodes {
        TreeNodes { is_on, ..TreeNodes::default() }
    }

    fn take(&self) -> Option<Held> {
        self.stock.borrow_mut().entry(Timed::cpu().0).or_default().pop()
    }
}

impl TreeNodes {
    /// A page was allocated with these flags, and will enter a tree.
    pub(super) fn fill_stock(&self, task: &Task, gfp: Gfp) {
        if !self.is_on {
            return;
        }
        let gfp = gfp.without(Gfp::HIGHMEM | Gfp::MOVABLE | Gfp::HARDWALL | Gfp::WRITE);
        let stock = || self.stock.borrow().get(&Timed::cpu().0).map_or(0, Vec::len);
        while stock() < STOCK {
            let Some(node) = task.try_alloc_from(task.kernel.number(Object::TreeNode), gfp) else { return };
            self.stock.borrow_mut().entry(Timed::cpu().0).or_default().push(node);
        }
    }

    /// Nodes that came and went since this was last called get an object, and lose it.
    pub(super) fn settle(&self, vm: &Vm, task: &Task) {
        if !vm.with(|state| state.trees.has_changes()) {
            return;
        }
        let changes = vm.with(|state| state.trees.take_changes());
        let (mut came, mut gone, mut in_reclaim) = (Vec::new(), Vec::new(), false);
        for (node, comes) in changes {
            let mut held = self.held.borrow_mut();
            if comes {
                let object = self.take();
                object.iter().for_each(|object| task.touch(object, TOUCHED, Access::Write));
                came.extend(object.is_none().then_some(node));
                held.insert(node, object);
                in_reclaim |= node.tree == Trees::SWAP;
            } else {
                gone.extend(held.remove(&node).flatten());
            }
        }
        // From here on other tasks may run.
        for node in came {
            let none_left = Gfp::ATOMIC | Gfp::NOMEMALLOC | Gfp::NOWARN;
            let object = task.try_alloc_from(task.kernel.number(Object::TreeNode), none_left);
            let mut held = self.held.borrow_mut();
            match (held.get_mut(&node), object) {
                (Some(place @ None), object) => *place = object,
                (_, object) => gone.extend(object),
            }
        }
        gone.into_iter().for_each(|node| task.free_after_grace(node));
        if in_reclaim {
            self.fill_stock(task, Gfp::ATOMIC | Gfp::NOMEMALLOC | Gfp::NOWARN);
        }
    }

    /// Each node has one object or waits for one.
    pub(super) fn check(&self, vm: &Vm) -> Result<(), String> {
        let (nodes, settled) = vm.with(|state| (state.trees.nodes(), !state.trees.has_changes()));
        let held = self.held.borrow().len();
        let agree = !settled || nodes == held;
        agree.then_some(()).ok_or_else(|| format!("{nodes} nodes of the page cache, {held} objects"))
    }
}
