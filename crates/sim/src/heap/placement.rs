//! Placement: what changes from boot to boot and stays until the next one.
//!
//! ```text
//! place(heap, seed)
//!   page blocks    on each node, of drawn orders; half of them are freed, in a drawn order
//!   objects        in each cache from CPUs of each node, so many as are drawn; a drawn part of them is freed,
//!                  in a drawn order, on drawn CPUs
//!   clocks         all CPUs go on at one time
//!   start          the program starts on a drawn CPU
//! ```
//!
//! So the runs of one placement begin with the same free blocks, partial slabs and CPU slabs, on the same
//! nodes, with the same lines in the same CPUs' caches, and on the same CPU. Objects and blocks that are not
//! freed stay: they are those of the running system.
//!
//! How much a boot leaves behind is assumed: `CACHE_BYTES` and `BLOCKS`. The addresses of frames are
//! drawn with the blocks, but a line's place in a cache (its colour) costs nothing in the model. Addresses of
//! the kernel's own variables, which change with the build, are not drawn.

use crate::heap::{CacheNumber, Heap};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use slablab_model::{Addr, Timed};
use slablab_platform::{CpuId, Gfp, NodeId, Topology};

/// The most bytes of objects that each node's CPUs allocate in each cache (assumed).
const CACHE_BYTES: u64 = 256 << 10;
/// The most such objects (assumed): the smallest classes have no more.
const CACHE_OBJECTS: u64 = 1024;
/// Page blocks of each node, and their largest order (assumed).
const BLOCKS: u64 = 64;
const BLOCK_ORDER: u64 = 3;

/// The stream that a placement is drawn from.
struct Drawn(Pcg64Mcg);

impl Drawn {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// Takes one of `items`; they lose their order.
    fn take<T>(&mut self, items: &mut Vec<T>) -> T {
        let at = self.below(items.len() as u64) as usize;
        items.swap_remove(at)
    }

    fn cpu(&mut self, cpus: &[CpuId]) -> CpuId {
        cpus[self.below(cpus.len() as u64) as usize]
    }
}

/// Brings the machine that is entered into the starting state that `seed` draws. Outside of calls.
pub(crate) fn place(heap: &dyn Heap, seed: u64) {
    let mut drawn = Drawn(Pcg64Mcg::seed_from_u64(seed));
    let cpus: Vec<CpuId> = (0..Timed::cpus()).map(CpuId).collect();
    for node in (0..Timed::nodes()).map(NodeId) {
        let near: Vec<CpuId> = cpus.iter().copied().filter(|cpu| Timed::cpu_node(*cpu) == node).collect();
        let near = if near.is_empty() { &cpus } else { &near };
        place_blocks(heap, node, near, &mut drawn);
        for cache in 0..heap.caches().len() {
            place_objects(heap, CacheNumber(cache as u16), near, &cpus, &mut drawn);
        }
    }
    Timed::advance_to(Timed::latest().div_ceil(1000));
    Timed::run_on(drawn.cpu(&cpus));
}

fn place_blocks(heap: &dyn Heap, node: NodeId, cpus: &[CpuId], drawn: &mut Drawn) {
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        Timed::run_on(drawn.cpu(cpus));
        let order = drawn.below(BLOCK_ORDER + 1) as u8;
        blocks.extend(heap.alloc_pages(order, Gfp::KERNEL, node));
    }
    for _ in 0..blocks.len() / 2 {
        let block = drawn.take(&mut blocks);
        Timed::run_on(drawn.cpu(cpus));
        heap.free_pages(block);
    }
}

fn place_objects(heap: &dyn Heap, cache: CacheNumber, near: &[CpuId], all: &[CpuId], drawn: &mut Drawn) {
    let size = u64::from(heap.caches()[cache.0 as usize].spec.object_size.max(1));
    let count = drawn.below((CACHE_BYTES / size).min(CACHE_OBJECTS) + 1);
    let mut live: Vec<Addr> = Vec::new();
    for _ in 0..count {
        Timed::run_on(drawn.cpu(near));
        live.extend(heap.alloc(cache, Gfp::KERNEL, None));
    }
    for _ in 0..drawn.below(live.len() as u64 + 1) {
        let object = drawn.take(&mut live);
        Timed::run_on(drawn.cpu(all));
        heap.free(cache, object);
    }
}
