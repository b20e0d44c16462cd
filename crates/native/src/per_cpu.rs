//! Slots per CPU: whether this process can have them, how they are numbered, and the kernel's fence.
//!
//! Two things are needed: an area for restartable sequences, which glibc registers for every thread from 2.35
//! on, and the kernel's membarrier that aborts sequences (5.10). If one is missing, slots are per thread, and
//! [`Served`] says why. This library registers no area itself: only one registration per thread is possible,
//! and if the user disabled glibc's (`GLIBC_TUNABLES`), that choice is respected.
//!
//! A slot's number is the *concurrency id* if the kernel provides it (6.3) and the machine has one node.
//! Threads of a process that run at the same time have different ids, and the ids are as small as possible,
//! so a program of one thread uses one slot, on whichever CPU it runs. On a machine of several nodes the
//! slot's number is the CPU's, so that a slot's objects stay on their node.

use crate::area::{self, SLOTS};
use crate::{local, system, topology};
use slablab_platform::{CpuId, NodeId};
use std::fmt;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::*};

/// What a slot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// One thread.
    Thread,
    /// One CPU.
    Cpu,
}

/// What slots belong to in this process, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Threads, as requested.
    Thread,
    /// CPUs; a slot's number is the CPU's.
    Cpu,
    /// CPUs; a slot's number is the thread's concurrency id.
    Concurrency,
    /// Threads, because the C library registered no area for restartable sequences.
    NoArea,
    /// Threads, because the kernel cannot abort sequences of other CPUs.
    NoFence,
    /// Threads, because address space is limited.
    NoRoom,
}

impl Served {
    /// Whether slots belong to CPUs.
    pub fn are_cpus(self) -> bool {
        matches!(self, Served::Cpu | Served::Concurrency)
    }
}

impl Served {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Served::Thread => "a slot per thread",
            Served::Cpu => "a slot per CPU",
            Served::Concurrency => "a slot per CPU (concurrency ids)",
            Served::NoArea => "a slot per thread (per CPU: the C library registered no rseq area)",
            Served::NoFence => "a slot per thread (per CPU: the kernel has no membarrier for rseq)",
            Served::NoRoom => "a slot per thread (per CPU: address space is limited)",
        }
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Addresses that a sequence needs. Offsets are from the thread pointer. The assembler reads this.
///
/// Invariant: where `sequence` is not 0, slots are CPUs', or one thread at a time pretends so; the two
/// offsets are of words that every thread has, and `areas` is where `area::AREAS` begins.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Places {
    /// Offset of the word in which a thread stores which sequence it is in; 0 with slots per thread.
    sequence: AtomicUsize,
    /// Offset of the word in which the kernel stores the number of the slot that a thread may use.
    number: AtomicUsize,
    /// The first area's address.
    areas: AtomicUsize,
}

impl Places {
    pub(crate) const SEQUENCE_AT: usize = offset_of!(Places, sequence);
    pub(crate) const NUMBER_AT: usize = offset_of!(Places, number);
    pub(crate) const AREAS_AT: usize = offset_of!(Places, areas);
}

static PLACES: Places =
    Places { sequence: AtomicUsize::new(0), number: AtomicUsize::new(0), areas: AtomicUsize::new(0) };
static SERVED: AtomicU8 = AtomicU8::new(Served::Thread as u8);

/// Offsets in the area that the kernel shares with a thread (`struct rseq`).
const CPU: usize = 4;
const SEQUENCE: usize = 8;
const CONCURRENCY: usize = 24;
/// Bytes of that area: up to the sequence; up to the concurrency id.
const SMALLEST: u32 = 20;
const WITH_CONCURRENCY: u32 = 28;

/// Decides what slots belong to. Called once, before a slot is used.
pub(crate) fn start(wanted: Owner) {
    let served = if wanted == Owner::Cpu { probe() } else { Served::Thread };
    SERVED.store(served as u8, Release);
}

fn probe() -> Served {
    let area = local::registered_area().filter(|(_, size)| *size >= SMALLEST);
    let Some((offset, size)) = area else { return Served::NoArea };
    let at = offset as usize;
    // A negative CPU number: the area of this thread is not registered.
    if (local::half_at(at.wrapping_add(CPU)) as i32) < 0 {
        return Served::NoArea;
    }
    if area::room() < SLOTS {
        return Served::NoRoom;
    }
    if !system::fence_sequences(None) {
        return Served::NoFence;
    }
    // Every area has at least 32 bytes, also if the C library states fewer. The kernel states how many it
    // writes.
    let told = size.max(system::area_bytes()) >= WITH_CONCURRENCY;
    let (served, number) =
        if told && topology::nodes() == 1 { (Served::Concurrency, CONCURRENCY) } else { (Served::Cpu, CPU) };
    PLACES.areas.store(area::first(), Relaxed);
    PLACES.number.store(at.wrapping_add(number), Relaxed);
    PLACES.sequence.store(at.wrapping_add(SEQUENCE), Release);
    served
}

/// What slots belong to in this process.
pub(crate) fn served() -> Served {
    const ALL: [Served; 6] =
        [Served::Thread, Served::Cpu, Served::Concurrency, Served::NoArea, Served::NoFence, Served::NoRoom];
    ALL[SERVED.load(Acquire) as usize]
}

/// What sequences need; `None` with slots per thread.
#[inline(always)]
pub(crate) fn places() -> Option<&'static Places> {
    (PLACES.sequence.load(Relaxed) != 0).then_some(&PLACES)
}

/// Whether slots belong to CPUs.
#[inline]
pub(crate) fn on() -> bool {
    places().is_some()
}

/// The slot of the CPU that this thread runs on; the thread may be moved at any time. `None` with slots per
/// thread, and for a CPU without a slot.
#[inline]
pub(crate) fn cpu() -> Option<CpuId> {
    let number = local::half_at(places()?.number.load(Relaxed)) as usize;
    (number < SLOTS).then_some(CpuId(number as u16))
}

/// The node that a slot's CPU is on; with slots per thread, the node that the thread ran on when it got the
/// slot.
#[inline]
pub(crate) fn node_of(slot: CpuId) -> NodeId {
    match served() {
        Served::Cpu => NodeId(topology::node_of_cpu(slot.0 as u32)),
        Served::Concurrency => NodeId(0),
        _ if PRETENDING.load(Relaxed) => NodeId(0),
        _ => NodeId(area::of(slot).header.node.load(Relaxed)),
    }
}

/// Aborts the sequence that a slot's CPU is running, if any. What threads wrote on that CPU before is visible
/// afterwards. `false` if the kernel refuses.
pub(crate) fn fence(slot: CpuId) -> bool {
    match served() {
        _ if PRETENDING.load(Relaxed) => true,
        Served::Cpu => system::fence_sequences(Some(slot.0 as u32)),
        _ => system::fence_sequences(None),
    }
}

/// For the contract's checks: whether each thread states its CPU itself ([`pretend`]); which CPUs are down.
static PRETENDING: AtomicBool = AtomicBool::new(false);
static DOWN: [AtomicBool; SLOTS] = [const { AtomicBool::new(false) }; SLOTS];

/// Whether a slot's CPU is up. `None` with slots per thread.
pub(crate) fn is_up(slot: CpuId) -> Option<bool> {
    on().then(|| slot.0 < area::used() && !DOWN[slot.0 as usize].load(Relaxed))
}

/// For the contract's checks: takes a CPU up or down. `false` with slots per thread.
pub(crate) fn set_up(slot: CpuId, up: bool) -> bool {
    DOWN[slot.0 as usize].store(!up, Relaxed);
    on()
}

/// For the contract's checks: from here on a thread states its CPU itself, by [`go_to`]; at first it is CPU
/// 0. The checks run one thread at a time, so sequences need no kernel and no registered area.
pub(crate) fn pretend() {
    PRETENDING.store(true, Relaxed);
    PLACES.areas.store(area::first(), Relaxed);
    PLACES.number.store(local::pretended_at(), Relaxed);
    if !on() {
        PLACES.sequence.store(local::unregistered_at(), Release);
    }
}

/// For the contract's checks: ends [`pretend`].
pub(crate) fn stop_pretending() {
    PLACES.sequence.store(0, Relaxed);
    PRETENDING.store(false, Relaxed);
    start(Owner::Cpu);
}

/// For the contract's checks: this thread states that it runs on the CPU of `slot`.
pub(crate) fn go_to(slot: CpuId) {
    local::pretend(slot.0 as usize);
    assert!(area::open(slot), "there is memory for the checks");
    area::use_slot(slot);
}

/// For the contract's checks: runs `f` as if on the CPU of `slot`, under [`pretend`].
pub(crate) fn pretending<R>(slot: CpuId, f: impl FnOnce() -> R) -> R {
    let before = local::pretended();
    go_to(slot);
    let result = f();
    local::pretend(before);
    result
}
