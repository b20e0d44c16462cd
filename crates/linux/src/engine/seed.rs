//! Slabs as an earlier life would have left them, made by the tree's own code.
//!
//! A slab's objects are all allocated when it is asked for, so that its addresses are known: no list has a
//! free object yet, and the next slab is a new one. When the last slab was asked for, what should be free is
//! freed. Where a slab stands within a node's list is the tree's rule for frees, not the dump's.
//!
//! | a CPU takes objects | a slab is | then |
//! |---|---|---|
//! | of one slab (SLUB without sheaves) | its next objects | freed: first the objects of slabs on nodes' lists, while CPUs may hold no partial slabs (`cpu_partial` is 0, and writing it back flushes the CPUs); then each CPU's partial slabs; then the slab that each CPU allocates from, which it takes by one allocation that is undone |
//! | of several (SLAB, SLOB, sheaves) | the first whose objects are all at hand | freed, and shrunk: what CPUs and barns hold goes to the slabs, and slabs that nobody asked for go. Of a slab without objects in use one is freed after the shrink, which would return the slab |

use super::cache::Linux;
use slablab_engines::ended;
use slablab_pages::Pages;
use slablab_platform::{Gfp, NodeId, Platform};
use slablab_slabs::{Backing, Place};

/// Most objects that CPUs and lists hold before an object of a new slab is handed out.
const LOOSE_MAX: usize = 1 << 20;

impl<P: Platform> Linux<P> {
    pub(super) fn seed_slab(
        &self,
        backing: &Backing<'_, P>,
        node: NodeId,
        place: Place,
        free: &[u16],
    ) -> Option<P::Ptr> {
        if self.gathers() {
            return self.seed_gathered(backing, node, place, free);
        }
        let arguments = [self.cache, Gfp::KERNEL.0.into(), node.0.into(), 0, 0];
        let cpu = self.cpu_of(node);
        let mut objects = Vec::new();
        for _ in 0..self.geometry.objects {
            match self.run(backing, cpu, self.shared.image.functions.alloc, arguments) {
                0 => break,
                address => objects.push(address),
            }
        }
        let base = *objects.iter().min()?;
        let size = u64::from(self.geometry.size);
        objects.iter().for_each(|address| self.held(self.object(*address), 1));
        let freed: Vec<u64> = free.iter().rev().map(|index| base + u64::from(*index) * size).collect();
        if !freed.is_empty() {
            self.seeds.borrow_mut().push((place, node, freed));
        }
        Some(self.object(base))
    }

    /// Frees what seeds left to free.
    pub(super) fn settle(&self, backing: &Backing<'_, P>) {
        if self.gathers() {
            return self.settle_gathered(backing);
        }
        let seeds = self.seeds.take();
        if seeds.is_empty() {
            return;
        }
        let free = |cpu: u16, objects: &[u64]| {
            for address in objects {
                self.held(self.object(*address), -1);
                self.run(backing, cpu, self.shared.image.functions.free, [self.cache, *address, 0, 0, 0]);
            }
        };
        let kept =
            self.shared.file(self.cache, "cpu_partial").map(|said| said.total).filter(|kept| *kept > 0);
        let set = |value: u64| {
            // A tree without such lists has no such file, and nothing to set.
            let _ = self.shared.write_file(self.cache, "cpu_partial", &value.to_string());
        };
        kept.iter().for_each(|_| set(0));
        for (_, node, objects) in seeds.iter().filter(|seed| seed.0 == Place::Node) {
            free(self.cpu_of(*node), objects);
        }
        kept.iter().for_each(|kept| set(*kept));
        for (place, node, objects) in &seeds {
            if let Place::Cpu(cpu) = place {
                free(cpu.0, objects);
                let arguments = [self.cache, Gfp::KERNEL.0.into(), node.0.into(), 0, 0];
                let object = self.run(backing, cpu.0, self.shared.image.functions.alloc, arguments);
                self.run(backing, cpu.0, self.shared.image.functions.free, [self.cache, object, 0, 0, 0]);
            }
        }
        for (place, _, objects) in &seeds {
            if let Place::CpuPartial(cpu) = place {
                free(cpu.0, objects);
            }
        }
    }

    /// Whether CPUs take objects of several slabs at once.
    fn gathers(&self) -> bool {
        !self.shared.is_slub() || self.file("sheaf_capacity").total > 0
    }

    fn seed_gathered(
        &self,
        backing: &Backing<'_, P>,
        node: NodeId,
        place: Place,
        free: &[u16],
    ) -> Option<P::Ptr> {
        let objects = self.geometry.objects as usize;
        let order = self.geometry.order;
        let cpu = self.cpu_of(node);
        let mut loose = self.loose.borrow_mut();
        // What arrays, sheaves and lists may hold comes first.
        let full = (0..objects + LOOSE_MAX).find_map(|_| {
            let address = self.allocate(backing, cpu, Gfp::KERNEL, Some(node), self.geometry.object_size)?;
            self.held(self.object(address), 1);
            let first = self.shared.image.frame_of(address).0 >> order << order;
            let list = loose.entry(first).or_default();
            list.push(address);
            (list.len() == objects).then_some(first)
        })?;
        let mut slab = loose.remove(&full)?;
        slab.sort_unstable();
        let (base, size) = (slab[0], u64::from(self.geometry.size));
        if slab.iter().enumerate().any(|(index, address)| *address != base + index as u64 * size) {
            ended(
                "the slabs that the recording starts with cannot be made: objects are not a size apart"
                    .into(),
            );
        }
        let freed: Vec<u64> = free.iter().rev().map(|index| slab[usize::from(*index)]).collect();
        if !freed.is_empty() {
            self.seeds.borrow_mut().push((place, node, freed));
        }
        Some(self.object(base))
    }

    fn settle_gathered(&self, backing: &Backing<'_, P>) {
        let free = |node: NodeId, address: u64| {
            self.held(self.object(address), -1);
            self.release(backing, self.cpu_of(node), address);
        };
        let mut last = Vec::new();
        for (_, node, mut objects) in self.seeds.take() {
            if objects.len() == self.geometry.objects as usize {
                last.extend(objects.pop().map(|address| (node, address)));
            }
            objects.into_iter().for_each(|address| free(node, address));
        }
        let mut loose: Vec<u64> = self.loose.take().into_values().flatten().collect();
        loose.sort_unstable();
        for address in loose {
            let node = Pages::<P::Ground>::block_of(self.object(address)).map_or(0, |block| block.1.node.0);
            free(NodeId(node), address);
        }
        self.run(backing, P::cpu().0, self.shared.image.functions.shrink, [self.cache, 0, 0, 0, 0]);
        last.into_iter().for_each(|(node, address)| free(node, address));
    }

    /// A CPU of the node, or CPU 0.
    pub(super) fn cpu_of(&self, node: NodeId) -> u16 {
        let found = (0..P::cpus()).find(|cpu| P::cpu_node(slablab_platform::CpuId(*cpu)) == node);
        found.unwrap_or(0)
    }
}
