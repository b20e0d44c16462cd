//! How fast the host runs a machine with clocks: allocator operations per second of one host core.
//!
//! ```console
//! cargo run --release -p slablab-sim --example speed
//! ```
//!
//! Each CPU runs one call. `pair` allocates and frees one object, `batch` 32 objects at a time, `one-way`
//! allocates on one CPU and frees on the next. Calls let earlier ones go first after each pair, batch or
//! object.

use slablab_model::{Addr, CallId, Costs, Hardware, MachineSpec, Timed, TimedMachine};
use slablab_platform::{CpuId, Gfp};
use slablab_sim::heap::{Heap, heap};
use slablab_sim::paths::paths;
use slablab_slabs::Preset;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

/// Operations of each measurement, allocations and frees.
const OPERATIONS: u64 = 4_000_000;
const BYTES: u32 = 192;
const WINDOW: usize = 64;

/// Cores of two CPUs, last-level caches of 16, nodes of 32.
fn machine(cpus: u16, preset: &Preset) -> TimedMachine {
    let costs = Costs {
        cycle: 250,
        line_bytes: 64,
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
        llc_bytes: 32 << 20,
        l1: 1_000,
        l2: 3_500,
        llc: 12_000,
        transfer_core: 5_000,
        transfer_llc: 25_000,
        transfer: vec![(10, 80_000), (20, 150_000)],
        memory: vec![(10, 90_000), (20, 150_000)],
        local_exchange: 2_250,
        locked_exchange: 4_500,
        exchange16: 6_000,
        interrupts: 9_250,
        zero_kib: 20_000,
        tlb_miss: 8_000,
        tlb_entries: 2048,
        ..Costs::default()
    };
    let by = |cpus_of: u16| (0..cpus).map(|cpu| cpu / cpus_of).collect();
    let hardware = Hardware { core: by(2), llc: by(16), socket: by(32), costs };
    let paths = paths(preset, &hardware.costs);
    let spec = MachineSpec::uniform(cpus, cpus.div_ceil(32), 64 << 30);
    TimedMachine::new(spec, hardware, paths).expect("the machine is right")
}

fn alloc(heap: &Rc<dyn Heap>) -> Addr {
    heap.alloc_bytes(BYTES, Gfp::KERNEL, None).expect("memory is left")
}

/// `batch` objects are allocated and freed on each CPU, again and again.
fn batches(heap: &Rc<dyn Heap>, cpus: u16, batch: u64) {
    let rounds = OPERATIONS / (2 * batch * cpus as u64);
    for cpu in 0..cpus {
        let heap = heap.clone();
        Timed::spawn(CpuId(cpu), 0, move || {
            let mut live = Vec::with_capacity(batch as usize);
            for _ in 0..rounds {
                Timed::turn();
                live.extend((0..batch).map(|_| alloc(&heap)));
                live.drain(..).for_each(|object| heap.free_bytes(BYTES, object));
            }
        });
    }
}

/// Objects on their way from one CPU to the next, and the side that waits.
#[derive(Default)]
struct Ring {
    objects: RefCell<VecDeque<Addr>>,
    waiting: Cell<Option<CallId>>,
}

impl Ring {
    fn wait(&self) {
        self.waiting.set(Timed::current());
        Timed::park();
    }

    fn wake(&self, cpu: u16) {
        if let Some(call) = self.waiting.take() {
            Timed::unpark(call, CpuId(cpu), Timed::clock());
        }
    }
}

fn one_way(heap: &Rc<dyn Heap>, cpus: u16) {
    let objects = OPERATIONS / cpus as u64;
    for cpu in (0..cpus).step_by(2) {
        let ring = Rc::new(Ring::default());
        let (sender, to) = (heap.clone(), ring.clone());
        Timed::spawn(CpuId(cpu), 0, move || {
            for _ in 0..objects {
                Timed::turn();
                let object = alloc(&sender);
                while to.objects.borrow().len() >= WINDOW {
                    to.wait();
                }
                to.objects.borrow_mut().push_back(object);
                to.wake(cpu + 1);
            }
        });
        let heap = heap.clone();
        Timed::spawn(CpuId(cpu + 1), 0, move || {
            for _ in 0..objects {
                Timed::turn();
                while ring.objects.borrow().is_empty() {
                    ring.wait();
                }
                let object = ring.objects.borrow_mut().pop_front().expect("the ring has an object");
                ring.wake(cpu);
                heap.free_bytes(BYTES, object);
            }
        });
    }
}

type Pattern = fn(&Rc<dyn Heap>, u16);
const PATTERNS: [(&str, Pattern); 3] = [
    ("pair", |heap, cpus| batches(heap, cpus, 1)),
    ("batch", |heap, cpus| batches(heap, cpus, 32)),
    ("one-way", one_way),
];

fn main() {
    println!("{:14} {:>5} {:8} {:>10} {:>12}", "engine", "CPUs", "pattern", "M ops/s", "switches/op");
    for name in ["slub@2.6.29", "slub@6.18", "slub@7.1", "slab@2.6.29", "slqb@2009-09"] {
        let preset = Preset::parse(name).expect("a preset");
        for cpus in [2, 64, 1024] {
            for (pattern, spawn) in PATTERNS {
                machine(cpus, &preset).enter(|| {
                    let heap = heap(&preset, &[]);
                    spawn(&heap, cpus);
                    let start = Instant::now();
                    let parked = Timed::run();
                    let seconds = start.elapsed().as_secs_f64();
                    assert!(parked.is_empty(), "{} calls wait for ever", parked.len());
                    let speed = OPERATIONS as f64 / seconds / 1e6;
                    let switches = Timed::switches() as f64 / OPERATIONS as f64;
                    println!("{name:14} {cpus:5} {pattern:8} {speed:10.2} {switches:12.2}");
                });
            }
        }
    }
}
