//! Slabs as an earlier life would have left them, made by the tree's own code.
//!
//! A slab's objects are all allocated when it is asked for, so that its addresses are known: no list has a
//! free object yet, and the next slab is a new one. When the last slab was asked for, what should be free is
//! freed: first the objects of slabs on nodes' lists, while CPUs may hold no partial slabs (`cpu_partial` is
//! 0, and writing it back flushes the CPUs); then each CPU's partial slabs; then the slab that each CPU
//! allocates from, which it takes by one allocation that is undone. Where a slab stands within a node's list
//! is the tree's rule for frees, not the dump's.

use super::cache::Linux;
use slablab_engines::ended;
use slablab_platform::{Gfp, NodeId, Platform};
use slablab_slabs::{Backing, Place};

impl<P: Platform> Linux<P> {
    pub(super) fn seed_slab(
        &self,
        backing: &Backing<'_, P>,
        node: NodeId,
        place: Place,
        free: &[u16],
    ) -> Option<P::Ptr> {
        if !self.shared.is_slub() {
            return self.seed_classic(backing, node, place, free);
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
        let beyond =
            objects.iter().any(|address| (address - base) / size >= u64::from(self.geometry.objects));
        if beyond {
            ended(
                "its CPUs take objects of several slabs at once (sheaves), so the slabs that the recording starts with \
                 cannot be made yet: expected a tree before 7.0"
                    .to_string(),
            );
        }
        objects.iter().for_each(|address| self.held(self.object(*address), 1));
        let freed: Vec<u64> = free.iter().rev().map(|index| base + u64::from(*index) * size).collect();
        if !freed.is_empty() {
            self.seeds.borrow_mut().push((place, node, freed));
        }
        Some(self.object(base))
    }

    /// Frees what seeds left to free.
    pub(super) fn settle(&self, backing: &Backing<'_, P>) {
        if !self.shared.is_slub() {
            return self.settle_classic(backing);
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
            let _ = self.shared.write_file(self.cache, "cpu_partial", value);
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

    /// A CPU of the node, or CPU 0.
    pub(super) fn cpu_of(&self, node: NodeId) -> u16 {
        let found = (0..P::cpus()).find(|cpu| P::cpu_node(slablab_platform::CpuId(*cpu)) == node);
        found.unwrap_or(0)
    }
}
