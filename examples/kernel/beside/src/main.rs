//! This heap beside `buddy-slab-allocator`, a kernel's heap with slabs per CPU: ticks of the clock for an
//! allocation and its free. `unsafe`: hands all memory to the other heap.
//!
//! ```sh
//! cd .. && cargo run --release --manifest-path beside/Cargo.toml -- -icount shift=0
//! ```
//!
//! With `-icount` QEMU runs the CPUs in turn, and its clock counts the instructions of all: a tick is an
//! instruction, and each run gives the same numbers. What waiting for other CPUs' cache lines costs is not in
//! them.
#![no_std]
#![no_main]
#![expect(unsafe_code, reason = "hands memory to another heap")]

#[path = "../../src/cpu.rs"]
#[expect(unsafe_code, reason = "talks to hardware")]
#[expect(dead_code, reason = "nothing is interrupted here")]
mod cpu;
#[path = "../../src/heap.rs"]
#[expect(unsafe_code, reason = "is a global allocator")]
#[expect(dead_code, reason = "nothing is collected here")]
mod heap;
#[path = "../../src/memory.rs"]
#[expect(unsafe_code, reason = "owns memory")]
mod memory;
#[path = "../../src/slots.rs"]
#[expect(unsafe_code, reason = "says what CPUs share")]
mod slots;
#[path = "../../src/world.rs"]
#[expect(dead_code, reason = "nothing is counted here")]
mod world;

use ax_sync::interface::{AcquireResult, ContextState, LockMetadata, SpinOps};
use buddy_slab_allocator::interface::BuddySlabIf;
use buddy_slab_allocator::{GlobalAllocator, PerCpuSlab, SlabPoolTrait, StaticSlabPool};
use core::alloc::Layout;
use core::panic::{Location, PanicInfo};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};
use cpu::{CPUS, Off, Region, log};
use heap::Heap;
use slablab_platform::Pfn;
use slablab_slabs::Engine;
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slots::AllCpus;
use world::Kernel;

/// Our heap: the example kernel's.
const POLICY: SlubPolicy = SlubPolicy { elastic: 8, ..SlubPolicy::V7_1 };

/// A heap that is measured.
trait Measured: Sync {
    fn alloc(&self, layout: Layout) -> *mut u8;
    /// Frees a block that this heap gave for this layout.
    fn free(&self, at: *mut u8, layout: Layout);
}

impl<E: Engine<Kernel>> Measured for AllCpus<Heap<E>> {
    fn alloc(&self, layout: Layout) -> *mut u8 {
        self.get().alloc(layout).map_or(ptr::null_mut(), NonNull::as_ptr)
    }
    fn free(&self, at: *mut u8, _layout: Layout) {
        self.get().free(at).unwrap_or_else(|misuse| panic!("free of {at:p}: {misuse:?}"));
    }
}

type BuddySlab = GlobalAllocator<{ memory::PAGE }>;
static BUDDY_SLAB: BuddySlab = BuddySlab::new();

impl Measured for BuddySlab {
    fn alloc(&self, layout: Layout) -> *mut u8 {
        BuddySlab::alloc(self, layout).map_or(ptr::null_mut(), NonNull::as_ptr)
    }
    fn free(&self, at: *mut u8, layout: Layout) {
        // SAFETY: this heap gave the block for this layout.
        unsafe { self.dealloc(NonNull::new(at).expect("a block"), layout) }
    }
}

static SLABS: StaticSlabPool<{ memory::PAGE }, CPUS> = StaticSlabPool::new(
    [PerCpuSlab::new(0), PerCpuSlab::new(1), PerCpuSlab::new(2), PerCpuSlab::new(3)],
    cpu::current,
);

struct Place;

#[ax_crate_interface::impl_interface]
impl BuddySlabIf for Place {
    fn virt_to_phys(address: usize) -> usize {
        address
    }
    fn slab_pool() -> &'static dyn SlabPoolTrait {
        &SLABS
    }
}

/// Its locks: nothing is preempted here, so only the contexts that ask for it keep interrupts off.
struct Spins;

/// Enters a context; the answer says whether interrupts are to be turned on again.
fn enter(context: u8) -> ContextState {
    let mut are_on = false;
    if context & ax_sync::interface::CONTEXT_IRQSAVE != 0 {
        let off = Off::new();
        are_on = off.0;
        core::mem::forget(off);
    }
    ContextState::new(0, usize::from(are_on))
}

fn leave(state: ContextState) {
    drop(Off(state.irq() != 0));
}

#[ax_crate_interface::impl_interface]
impl SpinOps for Spins {
    fn acquire(
        locked: &AtomicBool,
        _metadata: &LockMetadata,
        _at: usize,
        context: u8,
        _subclass: u32,
        _caller: &'static Location<'static>,
    ) -> ContextState {
        let state = enter(context);
        while locked.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            core::hint::spin_loop();
        }
        state
    }
    fn try_acquire(
        locked: &AtomicBool,
        _metadata: &LockMetadata,
        _at: usize,
        context: u8,
        _subclass: u32,
        _caller: &'static Location<'static>,
    ) -> AcquireResult {
        let state = enter(context);
        let acquired = locked.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        if !acquired {
            leave(state);
        }
        AcquireResult::new(acquired, state)
    }
    fn release(locked: &AtomicBool, _at: usize, _context: u8, state: ContextState) {
        locked.store(false, Release);
        leave(state);
    }
    fn force_release(locked: &AtomicBool, _at: usize, _context: u8) {
        locked.store(false, Release);
    }
    fn is_locked(locked: &AtomicBool) -> bool {
        locked.load(Relaxed)
    }
}

/// Blocks of a batch; batches of each CPU; batches before the clock is read.
const BATCH: usize = 500;
const ROUNDS: usize = 20;
const WARM: usize = 4;

/// Blocks of each CPU; the CPU before it frees them in [`Pattern::Handed`].
static BLOCKS: [[AtomicPtr<u8>; BATCH]; CPUS] =
    [const { [const { AtomicPtr::new(ptr::null_mut()) }; BATCH] }; CPUS];

/// What a CPU does with its blocks.
#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    /// Allocates one and frees it.
    Pair,
    /// Allocates all, then frees them in their order.
    Batch,
    /// Allocates all; the next CPU frees them.
    Handed,
}

/// One round of a pattern on this CPU. `frees`: the second half of a round, which begins when all CPUs have
/// ended the first.
fn round(heap: &dyn Measured, pattern: Pattern, layout: Layout, frees: bool) {
    let own = cpu::current();
    let from = if pattern == Pattern::Handed { (own + 1) % CPUS } else { own };
    for place in &BLOCKS[if frees { from } else { own }] {
        if !frees {
            let block = heap.alloc(layout);
            assert!(!block.is_null(), "there is memory for all");
            if pattern == Pattern::Pair {
                heap.free(block, layout);
            } else {
                place.store(block, Relaxed);
            }
        } else if pattern != Pattern::Pair {
            heap.free(place.load(Relaxed), layout);
        }
    }
}

/// Ticks for each allocation and its free: on the boot CPU alone, or on all at once, whose work is then
/// divided by all their allocations.
fn measure(heap: &dyn Measured, pattern: Pattern, bytes: usize, all: bool) -> u64 {
    let layout = Layout::from_size_align(bytes, 8).expect("a layout");
    let everywhere = |frees: bool| {
        if all {
            cpu::everywhere(&|| round(heap, pattern, layout, frees));
        } else {
            round(heap, pattern, layout, frees);
        }
    };
    let mut start = 0;
    for turn in 0..WARM + ROUNDS {
        if turn == WARM {
            start = cpu::ticks();
        }
        everywhere(false);
        everywhere(true);
    }
    let rounds = if all { CPUS * ROUNDS } else { ROUNDS };
    (cpu::ticks() - start) / (rounds * BATCH) as u64
}

/// What is measured: a name, a pattern, the bytes of a block, whether on all CPUs.
const MEASURED: [(&str, Pattern, usize, bool); 9] = [
    ("pair of 64 bytes, one CPU", Pattern::Pair, 64, false),
    ("pair of 64 bytes, four CPUs", Pattern::Pair, 64, true),
    ("batch of 64 bytes, one CPU", Pattern::Batch, 64, false),
    ("batch of 64 bytes, four CPUs", Pattern::Batch, 64, true),
    ("64 bytes, freed by another CPU", Pattern::Handed, 64, true),
    ("batch of 2048 bytes, one CPU", Pattern::Batch, 2048, false),
    ("batch of 2048 bytes, four CPUs", Pattern::Batch, 2048, true),
    ("pair of 4096 bytes, one CPU", Pattern::Pair, 4096, false),
    ("pair of 4096 bytes, four CPUs", Pattern::Pair, 4096, true),
];

fn of(heap: &dyn Measured) -> [u64; MEASURED.len()] {
    MEASURED.map(|(_, pattern, bytes, all)| measure(heap, pattern, bytes, all))
}

/// The boot CPU comes here. Measures both heaps, one after the other: all memory is the one's that is
/// measured.
fn main(regions: &[Region]) -> ! {
    assert!((0..CPUS).all(cpu::is_online), "expected {CPUS} CPUs: qemu-system-x86_64 -smp {CPUS}");
    assert!(memory::is_there(regions), "expected 96 MiB of memory: qemu-system-x86_64 -m 128M");
    Kernel::forget();
    let ours = AllCpus(Heap::<Slub<Kernel>>::new(&POLICY));
    let by_us = of(&ours);
    ours.get().end();
    let start = memory::address(Pfn(memory::FIRST), 0);
    let all = NonNull::slice_from_raw_parts(start, memory::FRAME_COUNT * memory::PAGE);
    // SAFETY: `is_there`: the machine has it. Our heap ended, and none is made after it: nothing else uses
    // the memory.
    unsafe { BUDDY_SLAB.init(&mut *all.as_ptr()).expect("it takes the memory") };
    let by_other = of(&BUDDY_SLAB);
    log(format_args!("ticks of an allocation and its free: slablab, buddy-slab-allocator"));
    for ((name, ..), (ours, other)) in MEASURED.iter().zip(by_us.iter().zip(by_other)) {
        log(format_args!("{name}: {ours} {other}"));
    }
    cpu::exit(16)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    log(format_args!("CPU {}: {info}", cpu::current()));
    cpu::exit(17)
}
