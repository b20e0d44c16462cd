//! Slots per CPU: whether there are, by which numbers, and the kernel's fence.
//!
//! Two things must be there: an area for restartable sequences, which glibc registers for every thread from
//! 2.35 on, and the kernel's membarrier that aborts sequences (5.10). Where one lacks, slots are threads',
//! and [`Served`] says why. Nothing is registered here: two that register do not get along, and where the C
//! library was told not to, somebody wanted that.
//!
//! A slot's number is the *concurrency id* where the kernel tells it (6.3) and the machine has one node:
//! threads of this process that run at the same time have different ones, and they are as small as can be, so
//! that a program of one thread uses one slot wherever it runs. On a machine of several nodes it is the CPU's
//! own number, so that a slot's objects stay near.

use crate::area::{self, SLOTS};
use crate::{local, system, topology};
use slablab_platform::{CpuId, NodeId};
use std::fmt;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::*};

/// Whose a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A thread's.
    Thread,
    /// A CPU's.
    Cpu,
}

/// Whose slots are, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Threads', as asked.
    Thread,
    /// CPUs', by their numbers.
    Cpu,
    /// CPUs', by concurrency ids.
    Concurrency,
    /// Threads', as the C library registered no area.
    NoArea,
    /// Threads', as the kernel cannot abort sequences of other CPUs.
    NoFence,
    /// Threads', as address space is limited.
    NoRoom,
}

impl Served {
    /// Whether they are CPUs'.
    pub fn are_cpus(self) -> bool {
        matches!(self, Served::Cpu | Served::Concurrency)
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Served::Thread => "a slot per thread",
            Served::Cpu => "a slot per CPU",
            Served::Concurrency => "a slot per CPU (concurrency ids)",
            Served::NoArea => "a slot per thread (per CPU: the C library registered no rseq area)",
            Served::NoFence => "a slot per thread (per CPU: the kernel has no membarrier for rseq)",
            Served::NoRoom => "a slot per thread (per CPU: address space is limited)",
        })
    }
}

/// What a sequence needs to know; offsets are from the thread pointer. The assembler reads it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Places {
    /// Where a thread says which sequence it is in; 0 while slots are threads'.
    sequence: AtomicUsize,
    /// Where the kernel says which slot a thread may use.
    number: AtomicUsize,
    /// Where the first area is.
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

/// Offsets in a thread's area that the kernel writes (`struct rseq`).
const CPU: usize = 4;
const SEQUENCE: usize = 8;
const CONCURRENCY: usize = 24;
/// Bytes of it: with the sequence; with the concurrency id.
const SMALLEST: u32 = 20;
const WITH_CONCURRENCY: u32 = 28;

/// Decides, once, before there is any slot.
pub(crate) fn start(wanted: Owner) {
    let served = if wanted == Owner::Cpu { probe() } else { Served::Thread };
    SERVED.store(served as u8, Release);
}

fn probe() -> Served {
    let area = local::registered_area().filter(|(_, size)| *size >= SMALLEST);
    let Some((offset, size)) = area else { return Served::NoArea };
    let at = offset as usize;
    // A negative number: this thread is not registered.
    if (local::half_at(at.wrapping_add(CPU)) as i32) < 0 {
        return Served::NoArea;
    }
    if area::room() < SLOTS {
        return Served::NoRoom;
    }
    if !system::fence_sequences(None) {
        return Served::NoFence;
    }
    // Every area has 32 bytes at least, whatever the C library makes known of it: the kernel says how many it
    // writes.
    let told = size.max(system::area_bytes()) >= WITH_CONCURRENCY;
    let (served, number) =
        if told && topology::nodes() == 1 { (Served::Concurrency, CONCURRENCY) } else { (Served::Cpu, CPU) };
    PLACES.areas.store(area::first(), Relaxed);
    PLACES.number.store(at.wrapping_add(number), Relaxed);
    PLACES.sequence.store(at.wrapping_add(SEQUENCE), Release);
    served
}

/// Whose slots are.
pub(crate) fn served() -> Served {
    const ALL: [Served; 6] =
        [Served::Thread, Served::Cpu, Served::Concurrency, Served::NoArea, Served::NoFence, Served::NoRoom];
    ALL[SERVED.load(Acquire) as usize]
}

/// What sequences need, where slots are CPUs'.
#[inline(always)]
pub(crate) fn places() -> Option<&'static Places> {
    (PLACES.sequence.load(Relaxed) != 0).then_some(&PLACES)
}

/// Whether slots are CPUs'.
#[inline]
pub(crate) fn on() -> bool {
    places().is_some()
}

/// The slot this thread may use, a moment ago. `None` where slots are threads', or this CPU has none.
#[inline]
pub(crate) fn cpu() -> Option<CpuId> {
    let number = local::half_at(places()?.number.load(Relaxed)) as usize;
    (number < SLOTS).then_some(CpuId(number as u16))
}

/// The node a slot's CPU is on. `None` where slots are threads'.
pub(crate) fn node_of(slot: CpuId) -> Option<NodeId> {
    match served() {
        Served::Cpu => Some(NodeId(topology::node_of_cpu(slot.0 as u32))),
        Served::Concurrency => Some(NodeId(0)),
        _ if PRETENDING.load(Relaxed) => Some(NodeId(0)),
        _ => None,
    }
}

/// Aborts the sequence that a slot's CPU is in, if it is in one; what its threads wrote before can be seen.
/// `false` if the kernel would not.
pub(crate) fn fence(slot: CpuId) -> bool {
    match served() {
        _ if PRETENDING.load(Relaxed) => true,
        Served::Cpu => system::fence_sequences(Some(slot.0 as u32)),
        _ => system::fence_sequences(None),
    }
}

/// Whether CPUs are what threads say, for the contract's checks; and which of them are down.
static PRETENDING: AtomicBool = AtomicBool::new(false);
static DOWN: [AtomicBool; SLOTS] = [const { AtomicBool::new(false) }; SLOTS];

/// Whether a slot's CPU is up. `None` where slots are threads'.
pub(crate) fn is_up(slot: CpuId) -> Option<bool> {
    on().then(|| slot.0 < area::used() && !DOWN[slot.0 as usize].load(Relaxed))
}

/// For the contract's checks: a CPU goes up or down. `false` where slots are threads'.
pub(crate) fn set_up(slot: CpuId, up: bool) -> bool {
    DOWN[slot.0 as usize].store(!up, Relaxed);
    on()
}

/// For the contract's checks: from here on a thread's CPU is what the thread says, the first if it says
/// nothing. One thread at a time needs no kernel for it: where no area is registered, sequences run too.
pub(crate) fn pretend() {
    PRETENDING.store(true, Relaxed);
    PLACES.areas.store(area::first(), Relaxed);
    PLACES.number.store(local::pretended_at(), Relaxed);
    if !on() {
        PLACES.sequence.store(local::unregistered_at(), Release);
    }
}

/// For the contract's checks: no more.
pub(crate) fn stop_pretending() {
    PLACES.sequence.store(0, Relaxed);
    PRETENDING.store(false, Relaxed);
    start(Owner::Cpu);
}

/// For the contract's checks: this thread says that it is on another CPU.
pub(crate) fn go_to(slot: CpuId) {
    local::pretend(slot.0 as usize);
    assert!(area::open(slot), "there is memory for the checks");
    area::use_slot(slot);
}

/// For the contract's checks: `f` as if on another CPU, if threads say which they are on.
pub(crate) fn pretending<R>(slot: CpuId, f: impl FnOnce() -> R) -> R {
    let before = local::pretended();
    go_to(slot);
    let result = f();
    local::pretend(before);
    result
}
