//! The planned slabs, made in an engine.

use super::plan::{PlannedSlab, Start};
use super::run::{Note, Run, SheafMemory, World, sheaf_memory};
use slablab_model::Model;
use slablab_platform::{CpuId, Frames, NodeId, Topology};
use slablab_slabs::{Backing, Engine, Place};

impl<W: World, E: Engine<W>> Run<'_, W, E> {
    /// Makes the planned slabs; where the engine's slabs hold another number of objects, the same objects in
    /// a row.
    pub(super) fn seed(&mut self, cache: usize) {
        self.seed_slabs(cache);
        self.caches[cache].seeded(&Backing::new(&self.pages, &self.common));
    }

    fn seed_slabs(&mut self, cache: usize) {
        let planned = &self.job.plan.caches[cache];
        let objects = self.caches[cache].geometry().objects as usize;
        if planned.iter().all(|slab| slab.objects.len() == objects) {
            planned.iter().for_each(|slab| self.seed_slab(cache, slab));
            return;
        }
        for node in 0..Model::nodes() {
            let slabs: Vec<&PlannedSlab> = planned.iter().filter(|slab| slab.node == node).collect();
            let row: Vec<(Start, Place)> =
                slabs.iter().flat_map(|slab| slab.objects.iter().map(|start| (*start, slab.place))).collect();
            for part in row.chunks(objects) {
                let mut starts: Vec<Start> = part.iter().map(|(start, _)| *start).collect();
                starts.resize(objects, Start::Free(u16::MAX));
                let place = part.iter().map(|(_, place)| *place).min().expect("a chunk is not empty");
                self.seed_slab(cache, &PlannedSlab { node, address: 0, place, objects: starts });
            }
        }
    }

    /// Moves free objects into SLAB's arrays, as many as planned.
    pub(super) fn seed_arrays(&mut self, cache: usize) {
        let parked = &self.job.plan.parked[cache];
        let mut shared = parked.shared.clone();
        for cpu in (0..self.cpus).map(CpuId).filter(|cpu| Model::cpu_online(*cpu)) {
            let node = Model::cpu_memory_node(cpu).0 as usize;
            let in_array = parked.cpus.get(cpu.0 as usize).copied().unwrap_or(0);
            let in_shared = shared.get_mut(node).map_or(0, std::mem::take);
            if in_array + in_shared > 0 {
                Model::run_on(cpu);
                let sheaf = sheaf_memory!(self);
                self.caches[cache].seed_arrays(&sheaf.backing(), in_array, in_shared);
            }
        }
    }

    /// Puts objects into sheaves, as frees of their CPUs would.
    pub(super) fn seed_sheaves(&mut self) {
        for (cpu, cache, number) in &self.job.plan.sheaved {
            let Some((address, _)) = self.old.get_mut(*number as usize).and_then(Option::take) else {
                continue;
            };
            Model::run_on(CpuId(cpu % self.cpus));
            W::noted(Note::Freed(address));
            let sheaf = sheaf_memory!(self);
            let freed = self.caches[*cache as usize].free(&sheaf.backing(), address);
            debug_assert!(freed.is_ok(), "an object of the start is allocated");
        }
    }

    fn seed_slab(&mut self, cache: usize, slab: &PlannedSlab) {
        let mut free: Vec<(u16, u16)> = Vec::new();
        for (index, start) in slab.objects.iter().enumerate() {
            if let Start::Free(turn) = start {
                free.push((*turn, index as u16));
            }
        }
        free.sort_unstable();
        let order: Vec<u16> = free.iter().map(|(_, index)| *index).collect();
        let engine = &self.caches[cache];
        let has_memory = |node: &NodeId| node.0 < Model::nodes() && Model::node_frames(*node).1 > 0;
        let first = Model::cpu_memory_node(CpuId(0));
        let nearest = self.pages.nearest(first).next();
        let candidates = [Some(NodeId(slab.node)), Some(first), nearest];
        let Some(node) = candidates.into_iter().flatten().find(has_memory) else { return };
        let place = match slab.place {
            Place::Cpu(cpu) => Place::Cpu(CpuId(cpu.0 % self.cpus)),
            Place::CpuPartial(cpu) => Place::CpuPartial(CpuId(cpu.0 % self.cpus)),
            Place::Node => Place::Node,
        };
        let Some(base) = engine.seed(&Backing::new(&self.pages, &self.common), node, place, &order) else {
            return;
        };
        let objects = engine.geometry().objects;
        W::noted(Note::Seeded { base, address: slab.address, objects, free: &order });
        let size = engine.geometry().size as u64;
        let (pfn, offset) = Model::locate(base);
        for (index, start) in slab.objects.iter().enumerate() {
            if let Start::Old(number) = start {
                let address = Model::address(pfn, offset as u64 + index as u64 * size);
                self.old[*number as usize] = Some((address, cache as u16));
            }
        }
    }
}
