//! Seeding: slabs as an earlier run would have left them.
//!
//! A slab that another allocator held for a CPU is an ordinary slab here: its free objects are on its node's
//! lists, until `fill_arrays` moves some of them into arrays. An empty slab stays only while the node's
//! `free_limit` has room for its objects.

use super::SlabEngine;
use super::list::{Owner, set_entry};
use crate::backing::Backing;
use crate::slab::{SlabList, SlabWord};
use slablab_platform::{Gfp, HotArray, Local, NodeId, PerCpu, PerNode, Platform};

impl<P: Platform> SlabEngine<P> {
    /// Moves free objects of the current CPU's node into its array, and into the node's shared array.
    pub(super) fn fill_arrays(&self, backing: &Backing<'_, P>, in_array: u32, in_shared: u32) {
        self.make_arrays(backing);
        let Some(mut slot) = self.slots.local() else { return };
        let array = slot.array();
        let Some(storage) = array.storage else { return };
        let home = self.home(slot.cpu());
        let node = self.nodes.get(home);
        let mut lists = self.lock_node(home, node);
        let count = in_array.min(array.capacity - array.size);
        let moved = self.pull_listed(node, &mut lists, count, |index, object| {
            set_entry::<P>(storage, array.size + index, object);
        });
        slot.set_array(HotArray { size: array.size + moved, ..array });
        if let Some(shared) = lists.shared.storage {
            let size = lists.shared.size;
            let count = in_shared.min(lists.shared.capacity - size);
            let moved = self.pull_listed(node, &mut lists, count, |index, object| {
                set_entry::<P>(shared, size + index, object);
            });
            lists.shared.size += moved;
            node.shared_changed(&lists);
        }
    }

    pub(super) fn seed_slab(&self, backing: &Backing<'_, P>, id: NodeId, free: &[u16]) -> Option<P::Ptr> {
        let slab = self.grow(backing, Gfp::KERNEL | Gfp::THISNODE, id)?;
        let mut word = SlabWord::unpack(slab.extra());
        let (pfn, first) = (slab.pfn(), self.shape.first(Owner::unpack(slab.owner()).colour));
        let start = P::address(pfn, first as u64);
        let address = |index: u16| P::address(pfn, first as u64 + index as u64 * self.geometry.size as u64);
        for (place, index) in free.iter().enumerate() {
            let next = free.get(place + 1).map(|next| address(*next));
            P::set_link(address(*index), self.geometry.link_offset, next);
        }
        word.head = free.first().map(|index| slab.offset(address(*index)));
        word.inuse = word.objects - free.len() as u16;
        slab.set_extra(word.pack());
        if word.inuse == 0 {
            let node = self.nodes.get(id);
            let keeps = self.lock_node(id, node).free_limit;
            if node.free_objects() + word.free() > keeps {
                let mut doomed = SlabList::default();
                doomed.push_tail(slab);
                self.destroy_slabs(backing, doomed);
                return None;
            }
        }
        self.publish(slab);
        Some(start)
    }
}
