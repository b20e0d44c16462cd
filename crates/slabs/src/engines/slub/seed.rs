//! Slabs as an earlier life would have left them.

use super::{NewSlab, Slub};
use crate::backing::Backing;
use crate::engine::Place;
use crate::slab::{Slab, SlabWord};
use slablab_platform::{Gfp, NodeId, PerCpu, Platform};

impl<P: Platform> Slub<P> {
    pub(super) fn seed_slab(
        &self,
        backing: &Backing<'_, P>,
        node: NodeId,
        place: Place,
        free: &[u16],
    ) -> Option<P::Ptr> {
        let NewSlab { slab, objects, .. } = self.allocate_slab(backing, Gfp::KERNEL | Gfp::THISNODE, node)?;
        let address = |index: u16| P::address(slab.pfn(), index as u64 * self.geometry.size as u64);
        if self.has_map() {
            let bit = |index: &u16| 1u64 << (index % 64);
            let of = |word: u32| free.iter().filter(move |index| u32::from(**index) / 64 == word);
            self.make_map(slab, objects, |word| of(word).fold(0, |bits, index| bits | bit(index)));
        }
        for (place, index) in free.iter().enumerate().filter(|_| !self.has_map()) {
            let next = free.get(place + 1).map(|next| address(*next));
            P::set_link(address(*index), self.geometry.link_offset, next);
        }
        let head = free.first().map(|first| address(*first));
        let full = SlabWord::all_out(objects as u16);
        let offset = |head| if self.has_map() { 0 } else { slab.offset(head) };
        let pushed = head.and_then(|head| full.pushed(offset(head), free.len() as u32));
        let word = pushed.unwrap_or(full);
        slab.init_word(word);
        match place {
            Place::Cpu(cpu) if self.policy.cpu_slab => {
                let mut slot = self.slots.claim(cpu)?;
                self.deactivate(backing, &mut slot);
                slab.init_word(full.frozen());
                self.install(&mut slot, slab, head, free.len() as u32);
            }
            Place::CpuPartial(cpu) if self.cpu_partial > 0 && !free.is_empty() => {
                let mut slot = self.slots.claim(cpu)?;
                slab.init_word(if self.policy.partial_frozen { word.frozen() } else { word });
                self.chain(&mut slot, slab);
            }
            Place::Cpu(_) | Place::CpuPartial(_) | Place::Node => self.seed_node(slab, free.len()),
        }
        Some(address(0))
    }

    fn seed_node(&self, slab: Slab<P>, free: usize) {
        if free > 0 {
            let node = slab.node();
            let mut list = self.lock_node_unslotted(node);
            self.list_tail(&mut list, node, slab);
        }
    }
}
