//! A kernel for x86-64 with four CPUs on slablab's allocators. `cargo run --release` boots it in QEMU.
//!
//! Every CPU allocates, frees what other CPUs allocated, and shrinks caches. Its timer interrupts it, and the
//! handler allocates and frees too. At the end all page frames must be free again.
//!
//! | file | contents | when you copy it |
//! |---|---|---|
//! | `main` | the program | write yours |
//! | `boot.s`, `cpu` | boot, interrupts, clock, log | you have these |
//! | `memory` | frames, descriptors, words of objects | put your memory map in |
//! | `slots` | what each CPU keeps of each cache; locks | keep; preemption goes where interrupts go |
//! | `world` | the contract, [`slablab_platform::Platform`] | keep |
//! | `heap` | size classes, large blocks, the global allocator | keep |
//! | `conform` | the contract's checks on your CPUs | keep for debug builds |
//! | `beside` | a program of its own: another heap beside this one | leave out |
#![no_std]
#![no_main]

extern crate alloc;

mod conform;
#[expect(unsafe_code, reason = "talks to hardware")]
mod cpu;
#[expect(unsafe_code, reason = "is a global allocator")]
mod heap;
#[expect(unsafe_code, reason = "owns memory")]
mod memory;
#[expect(unsafe_code, reason = "says what CPUs share")]
mod slots;
mod world;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::Cell;
use core::mem::replace;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
use cpu::{CPUS, Region, log};
use heap::{Global, Heap};
use memory::Object;
use slablab_platform::{Memory, Topology};
use slablab_slabs::Engine;
use slablab_slabs::engines::slab::{SlabEngine, SlabPolicy};
use slablab_slabs::engines::slqb::{Slqb, SlqbPolicy};
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slots::AllCpus;
use world::Kernel;

/// The kernel's allocator: SLUB of Linux 7.1, whose sheaves hold 8 objects at first.
const POLICY: SlubPolicy = SlubPolicy { elastic: 8, ..SlubPolicy::V7_1 };
#[global_allocator]
static HEAP: Global<Slub<Kernel>> = Global::new();

/// Steps of each CPU.
const STEPS: u64 = 5_000;
const TIMER_HZ: u64 = 1_000;
const SIZES: [usize; 8] = [16, 24, 100, 600, 1024, 4096, 8192, 20_000];

/// The boot CPU comes here, with interrupts on. The other CPUs wait for work.
fn main(regions: &[Region]) -> ! {
    let cpus = (0..CPUS).filter(|cpu| cpu::is_online(*cpu)).count();
    log(format_args!("{cpus} CPUs, {} regions of memory", regions.len()));
    assert!(cpus == CPUS, "expected {CPUS} CPUs: qemu-system-x86_64 -smp {CPUS}");
    assert!(memory::is_there(regions), "expected 96 MiB of memory: qemu-system-x86_64 -m 128M");
    log(format_args!("the world keeps the contract: {} checks", conform::run()));
    exercise::<Slub<Kernel>>("slub@7.1", &SlubPolicy::V7_1);
    exercise::<Slub<Kernel>>("slub@6.1", &SlubPolicy::V6_1);
    exercise::<Slqb<Kernel>>("slqb", &SlqbPolicy::V2009_09);
    exercise::<SlabEngine<Kernel>>("slab", &SlabPolicy::V6_1);
    collections();
    log(format_args!("all checks passed"));
    cpu::exit(16)
}

/// Blocks on their way between CPUs and interrupts: a CPU swaps a block in, and frees the one it gets.
static MAIL: [AtomicPtr<u8>; 256] = [const { AtomicPtr::new(ptr::null_mut()) }; 256];
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static REMOTE: AtomicU64 = AtomicU64::new(0);
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);
static SHRUNK: AtomicU64 = AtomicU64::new(0);

/// A heap of one engine under the work of all CPUs and their interrupts. All page frames must come back.
fn exercise<E: Engine<Kernel>>(name: &str, policy: &E::Policy) {
    Kernel::forget();
    let heap = AllCpus(Heap::<E>::new(policy));
    cpu::everywhere(&|| work(heap.get()));
    MAIL.iter().for_each(|place| free(heap.get(), place.swap(ptr::null_mut(), AcqRel)));
    let [blocks, remote, interrupts, shrunk] =
        [&BLOCKS, &REMOTE, &INTERRUPTS, &SHRUNK].map(|count| count.swap(0, Relaxed));
    log(format_args!(
        "{name}: {blocks} blocks, {remote} freed on another CPU; {interrupts} interrupts; {shrunk} slabs shrunk"
    ));
    assert!(remote > 1000 && interrupts > 50 && shrunk > 0, "{name}: that is too little to show anything");
    all_back(name, heap.get().end());
}

fn all_back(name: &str, free: u64) {
    log(format_args!("{name}: {free} of {} page frames are free", memory::FRAME_COUNT));
    assert!(free == memory::FRAME_COUNT as u64, "{name}: pages are lost");
}

/// What every CPU does.
fn work<E: Engine<Kernel>>(heap: &Heap<E>) {
    let mut random = Random(cpu::current() as u64 + 1);
    let interrupts = Cell::new(Random(random.0 + 100));
    let tick = || {
        INTERRUPTS.fetch_add(1, Relaxed);
        let mut random = interrupts.get();
        (0..3).for_each(|_| send(heap, &mut random));
        interrupts.set(random);
    };
    cpu::interrupted(TIMER_HZ, &tick, || {
        let mut own = [ptr::null_mut(); 64];
        for step in 0..STEPS {
            let place = &mut own[random.below(64)];
            free(heap, replace(place, ptr::null_mut()));
            *place = alloc(heap, &mut random);
            send(heap, &mut random);
            if step % 500 == 499 {
                SHRUNK.fetch_add(heap.shrink(), Relaxed);
                heap.idle();
            }
        }
        own.into_iter().for_each(|block| free(heap, block));
    });
}

/// Sends a block to whichever CPU looks next, and frees the one that was there.
fn send<E: Engine<Kernel>>(heap: &Heap<E>, random: &mut Random) {
    let block = alloc(heap, random);
    free(heap, MAIL[random.below(MAIL.len())].swap(block, AcqRel));
}

/// A block that says its size, its CPU and what its bytes are.
fn alloc<E: Engine<Kernel>>(heap: &Heap<E>, random: &mut Random) -> *mut u8 {
    let bytes = SIZES[random.below(SIZES.len())];
    let layout = Layout::from_size_align(bytes, 8).expect("a layout");
    let block = heap.alloc(layout).expect("there is memory for all");
    let filling = random.below(256) as u8;
    Kernel::fill(block, bytes as u32, filling);
    Kernel::set_word(block, (filling as u64) << 48 | (cpu::current() as u64) << 32 | bytes as u64);
    block.as_ptr()
}

fn free<E: Engine<Kernel>>(heap: &Heap<E>, block: *mut u8) {
    let Some(object) = Object::new(block) else { return };
    let word = Kernel::word(object);
    let (filling, cpu, bytes) = ((word >> 48) as u8, (word >> 32) as u16, word as u32);
    let rest = Object::new(block.wrapping_add(8)).expect("an address");
    let other = Kernel::differs(rest, bytes - 8, filling);
    assert!(other.is_none(), "{block:p} of {bytes} bytes was written over: {other:?}");
    BLOCKS.fetch_add(1, Relaxed);
    REMOTE.fetch_add(u64::from(cpu != Kernel::cpu().0), Relaxed);
    heap.free(block).unwrap_or_else(|misuse| panic!("free of {block:p}: {misuse:?}"));
}

#[derive(Clone, Copy)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

/// Rust's collections on all CPUs, over the kernel's allocator.
fn collections() {
    Kernel::forget();
    let heap = AllCpus(HEAP.boot(&POLICY));
    cpu::everywhere(&|| {
        let squares: BTreeMap<u64, Box<u64>> = (0..2000).map(|n| (n, Box::new(n * n))).collect();
        let sorted: Vec<u64> = squares.values().map(|square| **square).collect();
        assert!(sorted.is_sorted() && sorted[1999] == 1999 * 1999);
        heap.get().idle();
    });
    all_back("Box, Vec and BTreeMap", heap.get().end());
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    log(format_args!("CPU {}: {info}", cpu::current()));
    cpu::exit(17)
}
