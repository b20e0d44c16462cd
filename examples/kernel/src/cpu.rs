//! The processors: boot, interrupts, the clock, the log, the end. `unsafe`: talks to hardware.
//!
//! The kernel has no scheduler: code stays on its CPU, and only interrupts come in between. A kernel with
//! preemption turns that off together with interrupts.

use core::arch::{asm, global_asm};
use core::fmt::{self, Write};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::*};

/// CPUs that the kernel has slots and stacks for.
pub const CPUS: usize = 4;
const STACK: usize = 512 << 10;
/// Where a CPU starts that another CPU wakes: below 1 MiB, at a multiple of a page.
const AP_START: usize = 0x8000;

global_asm!(
    ".set CPUS, {cpus}\n.set STACK, {stack}\n.set AP_START, {ap}\n",
    include_str!("boot.s"),
    cpus = const CPUS, stack = const STACK, ap = const AP_START,
    options(att_syntax)
);

unsafe extern "C" {
    static ap16: u8;
    static ap16_end: u8;
    fn timer_entry();
    fn fault_entry();
}

#[repr(C, align(4096))]
struct Stacks([[u8; STACK]; CPUS]);
// SAFETY: boot.s names it; each CPU uses its own stack, and nothing else touches them.
#[unsafe(no_mangle)]
static mut stacks: Stacks = Stacks([[0; STACK]; CPUS]);

static STARTED: AtomicU32 = AtomicU32::new(0);
static ONLINE: AtomicU32 = AtomicU32::new(0);
static IN_INTERRUPT: [AtomicBool; CPUS] = [const { AtomicBool::new(false) }; CPUS];
static TICKS_PER_MS: AtomicU64 = AtomicU64::new(0);
static LAST_NS: AtomicU64 = AtomicU64::new(0);
static FROZEN_NS: AtomicU64 = AtomicU64::new(0);
static HANDLERS: [AtomicPtr<&dyn Fn()>; CPUS] = [const { AtomicPtr::new(ptr::null_mut()) }; CPUS];
static JOBS: [AtomicPtr<Job<'static>>; CPUS] = [const { AtomicPtr::new(ptr::null_mut()) }; CPUS];

/// A function for another CPU, and whether it has returned.
struct Job<'a>(&'a (dyn Fn() + Sync), AtomicBool);

/// Interrupts are off while one of these lives; then they are as they were before: on, if this is true.
#[derive(Debug)]
pub struct Off(pub bool);

impl Off {
    #[inline]
    pub fn new() -> Off {
        let flags: u64;
        // SAFETY: reads the flags and turns interrupts off. Without `nomem`: what follows stays behind it.
        unsafe { asm!("pushfq", "pop {}", "cli", out(reg) flags) };
        Off(flags & 1 << 9 != 0)
    }
}

impl Drop for Off {
    #[inline]
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: interrupts were on. Without `nomem`: what precedes stays before it.
            unsafe { asm!("sti") };
        }
    }
}

/// This CPU's number, which `cpu_start` put where the segment register GS points.
#[inline]
pub fn current() -> usize {
    let cpu: usize;
    // SAFETY: GS points to the CPU's entry of `NUMBERS` from `cpu_start` on.
    unsafe { asm!("mov {}, gs:[0]", out(reg) cpu, options(nomem, nostack, preserves_flags, pure)) };
    cpu
}
static NUMBERS: [usize; CPUS] = [0, 1, 2, 3];

/// Whether a CPU is up.
pub fn is_online(cpu: usize) -> bool {
    ONLINE.load(Acquire) & 1 << cpu != 0
}

/// Takes a CPU up or down. A CPU that is down allocates nothing until it is up again.
pub fn set_online(cpu: usize, online: bool) {
    if online {
        ONLINE.fetch_or(1 << cpu, AcqRel)
    } else {
        ONLINE.fetch_and(!(1 << cpu), AcqRel)
    };
}

/// Whether this code is an interrupt's handler.
pub fn in_interrupt() -> bool {
    IN_INTERRUPT[current()].load(Relaxed)
}

/// The CPU's cycle counter.
pub fn ticks() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Nanoseconds since boot; never goes back, on whatever CPU.
pub fn now_ns() -> u64 {
    match FROZEN_NS.load(Relaxed) {
        0 => {
            let ns = (ticks() as u128 * 1_000_000 / TICKS_PER_MS.load(Relaxed) as u128) as u64;
            LAST_NS.fetch_max(ns, Relaxed).max(ns)
        }
        frozen => frozen,
    }
}

/// Stops the clock at this time, for the checks of time; 0 lets it go on.
pub fn freeze_ns(ns: u64) {
    FROZEN_NS.store(ns, Relaxed);
}

/// Runs `f` on a CPU that is up, perhaps this one, and waits until it returns.
pub fn on(cpu: usize, f: &(dyn Fn() + Sync)) {
    run_on(1 << cpu, f);
}

/// Runs `f` on every CPU that is up, at the same time, and waits until all have returned.
pub fn everywhere(f: &(dyn Fn() + Sync)) {
    run_on(ONLINE.load(Acquire), f);
}

fn run_on(cpus: u32, f: &(dyn Fn() + Sync)) {
    let here = current();
    let jobs: [Job<'_>; CPUS] = core::array::from_fn(|_| Job(f, AtomicBool::new(false)));
    let others = || (0..CPUS).filter(|cpu| cpus & 1 << cpu != 0 && *cpu != here);
    for cpu in others() {
        let job = ptr::from_ref(&jobs[cpu]).cast_mut().cast();
        while JOBS[cpu].compare_exchange(ptr::null_mut(), job, AcqRel, Relaxed).is_err() {
            serve();
        }
    }
    if cpus & 1 << here != 0 {
        f();
    }
    others().for_each(|cpu| {
        while !jobs[cpu].1.load(Acquire) {
            serve()
        }
    });
}

/// Does what another CPU wants of this one.
fn serve() {
    let job = JOBS[current()].swap(ptr::null_mut(), AcqRel);
    // SAFETY: the CPU that stored the pointer waits until `done`.
    if let Some(Job(f, done)) = unsafe { job.as_ref() } {
        f();
        done.store(true, Release);
    }
    core::hint::spin_loop();
}

/// Runs `f` while this CPU's timer interrupts it so many times a second, for `handler`.
pub fn interrupted(hz: u64, handler: &dyn Fn(), f: impl FnOnce()) {
    let own = &HANDLERS[current()];
    own.store(ptr::from_ref(&handler).cast_mut().cast(), Release);
    apic(0x3e0, 0b1011); // the timer counts every cycle
    apic(0x320, 1 << 17 | TIMER_VECTOR as u32); // again and again
    apic(0x380, (APIC_HZ / hz) as u32);
    f();
    apic(0x320, 1 << 16); // masked
    own.store(ptr::null_mut(), Release);
}
const TIMER_VECTOR: u8 = 32;
/// The rate of QEMU's timer. A kernel for real machines measures it as `measure_clock` does.
const APIC_HZ: u64 = 1_000_000_000;

#[unsafe(no_mangle)]
extern "C" fn timer_interrupt() {
    let cpu = current();
    IN_INTERRUPT[cpu].store(true, Relaxed);
    // SAFETY: the handler lives until `interrupted` stores null; only this CPU does, which is here.
    if let Some(handler) = unsafe { HANDLERS[cpu].load(Acquire).as_ref() } {
        handler();
    }
    IN_INTERRUPT[cpu].store(false, Relaxed);
    apic(0xb0, 0); // end of interrupt
}

#[unsafe(no_mangle)]
extern "C" fn fault(stack: &[u64; 4]) -> ! {
    panic!("an exception; its stack: {stack:#x?}")
}

/// Every CPU's first Rust.
#[unsafe(no_mangle)]
extern "C" fn cpu_start(cpu: usize, start_info: *const StartInfo) {
    // SAFETY: sets GS to this CPU's number and loads the interrupt table, which lives for ever.
    unsafe {
        let number = ptr::from_ref(&NUMBERS[cpu]) as u64;
        asm!("wrmsr", in("ecx") 0xc000_0101u32, in("eax") number as u32, in("edx") (number >> 32) as u32);
        if cpu == 0 {
            for vector in 0..=TIMER_VECTOR {
                let entry = if vector < TIMER_VECTOR { fault_entry as Entry } else { timer_entry as Entry };
                let at = entry as usize as u64;
                let low = at & 0xffff | 8 << 16 | 0x8e << 40 | (at >> 16 & 0xffff) << 48;
                (&raw mut IDT[vector as usize]).write([low, at >> 32]);
            }
        }
        let table = Table { limit: size_of::<[[u64; 2]; 33]>() as u16 - 1, base: (&raw const IDT) as u64 };
        asm!("lidt [{}]", in(reg) &table);
    }
    apic(0xf0, 0x1ff); // the local interrupt controller is on
    set_online(cpu, true);
    STARTED.fetch_add(1, AcqRel);
    if cpu > 0 {
        // SAFETY: the interrupt table is loaded.
        unsafe { asm!("sti") };
        loop {
            serve();
        }
    }
    // SAFETY: QEMU passes the start info by the PVH protocol.
    let regions = unsafe { (*start_info).regions() };
    [0x21, 0xa1].into_iter().for_each(|port| out(port, 0xff)); // the old interrupt controller is off
    measure_clock();
    // SAFETY: free memory below 1 MiB.
    unsafe {
        let bytes = (&raw const ap16_end).addr() - (&raw const ap16).addr();
        ptr::copy_nonoverlapping(&raw const ap16, ptr::with_exposed_provenance_mut(AP_START), bytes);
    }
    for (command, wait_ms) in [(0x000c_4500, 10), (0x000c_4600 | AP_START as u32 >> 12, 100)] {
        apic(0x310, 0);
        apic(0x300, command); // INIT, then "start", to all but this CPU
        let until = now_ns() + wait_ms * 1_000_000;
        while now_ns() < until && STARTED.load(Acquire) < CPUS as u32 {}
    }
    // SAFETY: the interrupt table is loaded.
    unsafe { asm!("sti") };
    crate::main(regions);
}
type Entry = unsafe extern "C" fn();
static mut IDT: [[u64; 2]; 33] = [[0; 2]; 33];

#[repr(C, packed)]
struct Table {
    limit: u16,
    base: u64,
}

/// What the PVH protocol tells: `hvm_start_info`.
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    others: [u64; 4],
    regions: *const Region,
    region_count: u32,
}

/// A region of physical memory; kind 1 is usable.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub start: u64,
    pub bytes: u64,
    pub kind: u32,
    _reserved: u32,
}

impl StartInfo {
    unsafe fn regions(&self) -> &'static [Region] {
        assert!(self.magic == 0x336e_c578 && self.version >= 1, "no start info by the PVH protocol");
        // SAFETY: the protocol says so.
        unsafe { core::slice::from_raw_parts(self.regions, self.region_count as usize) }
    }
}

/// Counts the CPU's ticks while the old timer counts 10 ms.
fn measure_clock() {
    const COUNT: u16 = 11_932; // of 1,193,182 a second
    out(0x61, input(0x61) & !2 | 1);
    out(0x43, 0b1011_0000);
    COUNT.to_le_bytes().into_iter().for_each(|byte| out(0x42, byte));
    let start = ticks();
    while input(0x61) & 1 << 5 == 0 {}
    TICKS_PER_MS.store((ticks() - start) / 10, Relaxed);
}

fn out(port: u16, byte: u8) {
    // SAFETY: the ports of this file's devices.
    unsafe { asm!("out dx, al", in("dx") port, in("al") byte) };
}

fn input(port: u16) -> u8 {
    let byte: u8;
    // SAFETY: the ports of this file's devices.
    unsafe { asm!("in al, dx", in("dx") port, out("al") byte) };
    byte
}

/// Writes a register of this CPU's interrupt controller.
fn apic(register: usize, value: u32) {
    // SAFETY: the controller's registers are at this address, which boot.s mapped.
    unsafe { ptr::with_exposed_provenance_mut::<u32>(0xfee0_0000 + register).write_volatile(value) };
}

struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while input(0x3fd) & 1 << 5 == 0 {}
            out(0x3f8, byte);
        }
        Ok(())
    }
}

/// Writes a line to the serial port.
pub fn log(line: fmt::Arguments<'_>) {
    static BUSY: AtomicU8 = AtomicU8::new(0);
    let _off = Off::new();
    while BUSY.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
        core::hint::spin_loop();
    }
    let _ = writeln!(Serial, "{line}");
    BUSY.store(0, Release);
}

/// Ends QEMU with a number.
pub fn exit(number: u32) -> ! {
    loop {
        // SAFETY: the port of the device isa-debug-exit.
        unsafe { asm!("out dx, eax", in("dx") 0xf4u16, in("eax") number) };
    }
}
