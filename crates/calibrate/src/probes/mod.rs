//! The probes: each measures one block of some series at a time, so that a run can take them in turn.

mod caches;
mod exchange;
mod faults;
mod forks;
mod messages;
mod streams;
mod switches;
mod transfer;
mod wakeups;

pub(crate) use transfer::Pairs;

use crate::host::{Host, Relation};
use crate::series::Samples;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::black_box;
use std::io;
use std::time::Instant;

/// Something that is measured in blocks.
pub(crate) trait Probe {
    /// Measures one block.
    fn block(&mut self, into: &mut Samples) -> io::Result<()>;
}

/// Where probes run.
pub(crate) struct Place<'a> {
    pub(crate) host: &'a Host,
    /// The CPU of the measuring thread.
    pub(crate) home: u16,
    /// A CPU near to it that is not of its core, if this process may use one.
    pub(crate) other: Option<u16>,
    /// What reading the clock costs, in ns.
    pub(crate) clock_ns: f64,
}

impl<'a> Place<'a> {
    pub(crate) fn new(host: &'a Host) -> Place<'a> {
        // CPU 0 often serves the interrupts of devices.
        let home = host.allowed.last().copied().unwrap_or(0);
        let others = host.allowed.iter().copied().filter(|cpu| *cpu != home);
        let other = others.min_by_key(|cpu| match host.relation(home, *cpu) {
            Relation::Llc => (0, 0),
            Relation::Distance(distance) => (1, distance),
            Relation::Core => (2, 0),
        });
        Place { host, home, other, clock_ns: clock_ns() }
    }
}

/// A probe's name, and how it is made.
type Maker = (&'static str, fn(&Place) -> io::Result<Box<dyn Probe>>);

/// All probes but those of pairs of CPUs. Those that fork are the first: a child that was forked later would
/// share the memory of the others, and their writes would fault.
pub(crate) const MAKERS: &[Maker] = &[
    ("forks", forks::make),
    ("switches", switches::make),
    ("wake-ups", wakeups::make),
    ("barrier", wakeups::make_barrier),
    ("exchanges", exchange::make),
    ("system call", faults::make_call),
    ("page faults", faults::make),
    ("caches", caches::make),
    ("memory", caches::make_memory),
    ("TLB", caches::make_tlb),
    ("streams", streams::make),
    ("socketpair", messages::make_socket_pair),
    ("pipe", messages::make_pipe),
    ("UDP", messages::make_udp),
    ("TCP", messages::make_tcp),
];

/// Runs `work`, and returns what it took in ns, without the cost of reading the clock.
pub(crate) fn timed<T>(place_clock_ns: f64, work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = black_box(work());
    let ns = start.elapsed().as_nanos() as f64;
    (ns - place_clock_ns, result)
}

/// The smallest difference between two readings of the clock that follow each other.
fn clock_ns() -> f64 {
    (0..1000).map(|_| Instant::now().elapsed().as_nanos() as f64).fold(f64::INFINITY, f64::min)
}

/// Keeps the calling thread on one CPU until it is dropped.
pub(crate) struct Pinned(CpuSet);

impl Pinned {
    pub(crate) fn to(cpu: u16) -> io::Result<Pinned> {
        let before = sched_getaffinity(None)?;
        move_to(cpu)?;
        Ok(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// Moves the calling thread to a CPU.
pub(crate) fn move_to(cpu: u16) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    Ok(sched_setaffinity(None, &set)?)
}

/// A stream of numbers for orders of visits: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Puts values in random order.
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            values.swap(end, (self.next() % (end as u64 + 1)) as usize);
        }
    }
}
