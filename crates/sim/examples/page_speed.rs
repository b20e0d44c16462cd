//! How fast the host runs the page allocator on a machine with clocks: nanoseconds of one host core for each
//! pair of an allocation and a free of one page.
//!
//! ```console
//! cargo run --release -p slablab-sim --example page_speed
//! ```
//!
//! One call on one CPU, memory used up to half. `pair` allocates and frees one page, `batch` 256 pages at a
//! time, `fifo` frees the oldest of 32,768 pages for each new one, as page replacement does.

use slablab_model::{Costs, Hardware, MachineSpec, Timed, TimedMachine};
use slablab_pages::Pages;
use slablab_platform::{CpuId, FrameKind, Gfp, NodeId, Pfn};
use slablab_sim::paths::paths;
use slablab_slabs::Preset;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

/// Pairs of each measurement.
const PAIRS: u64 = 2_000_000;
/// Pages that are held from the start.
const HELD: usize = 32_768;

/// One CPU with 256 MiB of memory.
fn machine(preset: &Preset) -> TimedMachine {
    let costs = Costs {
        cycle: 250,
        line_bytes: 64,
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
        llc_bytes: 32 << 20,
        l1: 1_000,
        l2: 3_500,
        llc: 12_000,
        memory: vec![(10, 90_000)],
        locked_exchange: 4_500,
        ..Costs::default()
    };
    let hardware = Hardware { core: vec![0], llc: vec![0], socket: vec![0], costs };
    let paths = paths(preset, &hardware.costs);
    TimedMachine::new(MachineSpec::uniform(1, 1, 256 << 20), hardware, paths).expect("the machine is right")
}

fn alloc(pages: &Pages<Timed>) -> Pfn {
    let gfp = Gfp::KERNEL | Gfp::MOVABLE | Gfp::HIGHMEM;
    pages.alloc(gfp, 0, NodeId(0), FrameKind::Allocated).expect("memory is left")
}

/// Host nanoseconds and modelled picoseconds of each pair.
fn measure(preset: &Preset, pairs: impl Fn(&Pages<Timed>, &mut VecDeque<Pfn>) + 'static) -> (u64, u64) {
    machine(preset).enter(|| {
        let pages = Rc::new(Pages::<Timed>::new(preset.pages()));
        let mut held: VecDeque<Pfn> = (0..HELD).map(|_| alloc(&pages)).collect();
        let start = Instant::now();
        Timed::spawn(CpuId(0), 0, move || pairs(&pages, &mut held));
        assert!(Timed::run().is_empty());
        let modelled = Timed::clock_of(CpuId(0)) / PAIRS;
        (start.elapsed().as_nanos() as u64 / PAIRS, modelled)
    })
}

fn main() {
    println!("{:>12} {:>8} {:>10} {:>13}", "preset", "pattern", "host ns", "modelled ps");
    for name in ["slub@2.6.29", "slub@6.1", "slub@6.18"] {
        let preset = Preset::parse(name).expect("a preset");
        let row = |pattern, (host, modelled): (u64, u64)| {
            println!("{name:>12} {pattern:>8} {host:>10} {modelled:>13}");
        };
        row("pair", measure(&preset, |pages, _| (0..PAIRS).for_each(|_| pages.free(alloc(pages)))));
        let batch = |pages: &Pages<Timed>, _: &mut VecDeque<Pfn>| {
            let mut batch = Vec::with_capacity(256);
            for _ in 0..PAIRS / 256 {
                batch.extend((0..256).map(|_| alloc(pages)));
                batch.drain(..).for_each(|pfn| pages.free(pfn));
            }
        };
        row("batch", measure(&preset, batch));
        let fifo = |pages: &Pages<Timed>, held: &mut VecDeque<Pfn>| {
            for _ in 0..PAIRS {
                held.push_back(alloc(pages));
                pages.free(held.pop_front().expect("pages are held"));
            }
        };
        row("fifo", measure(&preset, fifo));
    }
}
