//! What an iteration of two builds is measured by.

use crate::kernel::CpuTime;
use crate::memory::volume::Volume;
use crate::memory::{Memory, ORDERS, Reader};
use slablab_model::Ps;
use slablab_vm::Counter;

/// What one build did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// From the common start to its end.
    pub elapsed: Ps,
    /// CPU time of its programs in themselves, and in the kernel.
    pub cpu: CpuTime,
    /// Objects that it compiled.
    pub objects: u32,
    /// Blocks of each order that it requested of the page allocator.
    pub requests: [u64; ORDERS],
    /// Pages read from swap for it, by [`Cause`](crate::memory::Cause); the second build's with loop0's.
    pub swap_ins: [u64; 3],
}

/// What the machine counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages read from swap, by [`Reader`].
    pub swap_ins: [u64; 3],
    /// Pages written to swap.
    pub swap_outs: u64,
    /// Wake-ups of kswapd, by order.
    pub wakes: [u64; ORDERS],
    /// Requests of each order that found no block above the low mark.
    pub low: [u64; ORDERS],
    /// Rounds of direct reclaim, by order.
    pub direct: [u64; ORDERS],
    /// Pages reclaimed by kswapd, and by allocations.
    pub stolen: [u64; 2],
    /// Slabs of names that were asked for.
    pub name_slabs: u64,
    /// Pages written through the loop device, and read.
    pub transfers: (u64, u64),
    /// KiB of programs read from their disk.
    pub text_kib: u64,
}

/// One iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iteration {
    /// The two builds.
    pub builds: [Built; 2],
    /// When the first build ended, the second one still unpacked.
    pub is_unpacking: bool,
    /// From the start of the run to the iteration's end.
    pub total: Ps,
    /// What was counted during the iteration.
    pub counts: Counts,
}

impl Built {
    pub(super) fn since(self, before: Built, elapsed: Ps) -> Built {
        let CpuTime { user, system } = self.cpu;
        Built {
            elapsed,
            cpu: CpuTime { user: user - before.cpu.user, system: system - before.cpu.system },
            objects: self.objects,
            requests: std::array::from_fn(|order| self.requests[order] - before.requests[order]),
            swap_ins: std::array::from_fn(|cause| self.swap_ins[cause] - before.swap_ins[cause]),
        }
    }
}

impl Counts {
    pub(super) fn now(memory: &Memory, volume: &Volume) -> Counts {
        let (heap, asks) = (&memory.kernel.heap, &memory.accounts.asks);
        let names = heap.named("names_cache");
        Counts {
            swap_ins: [Reader::Program, Reader::LoopRead, Reader::LoopWrite]
                .map(|reader| asks.swap_ins(reader)),
            swap_outs: memory.vm.with(|state| state.counters.get(Counter::PswpOut)),
            wakes: std::array::from_fn(|order| asks.kswapd_wakes(order as u8)),
            low: std::array::from_fn(|order| asks.short_requests(order as u8).0),
            direct: std::array::from_fn(|order| asks.short_requests(order as u8).1),
            stolen: [Counter::PgStealKswapd, Counter::PgStealDirect]
                .map(|counter| memory.vm.with(|state| state.counters.get(counter))),
            name_slabs: names.map_or(0, |names| heap.counted(names, slablab_platform::Event::AllocSlab)),
            transfers: volume.device().map_or((0, 0), |device| device.transfers()),
            text_kib: memory.disks.file_reads(),
        }
    }

    pub(super) fn since(self, before: Counts) -> Counts {
        Counts {
            swap_ins: std::array::from_fn(|at| self.swap_ins[at] - before.swap_ins[at]),
            swap_outs: self.swap_outs - before.swap_outs,
            wakes: std::array::from_fn(|at| self.wakes[at] - before.wakes[at]),
            low: std::array::from_fn(|order| self.low[order] - before.low[order]),
            direct: std::array::from_fn(|order| self.direct[order] - before.direct[order]),
            stolen: std::array::from_fn(|at| self.stolen[at] - before.stolen[at]),
            name_slabs: self.name_slabs - before.name_slabs,
            transfers: (self.transfers.0 - before.transfers.0, self.transfers.1 - before.transfers.1),
            text_kib: self.text_kib - before.text_kib,
        }
    }
}
