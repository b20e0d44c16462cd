//! The modelled machine: what would a workload do on a computer you do not have?
//!
//! Eight CPUs on two nodes. One CPU of the first node allocates network packets, one of the second frees
//! them: the engines are asked how much of that went past their fast paths. Deterministic: the same figures
//! on every machine.

use slablab_model::{Machine, MachineSpec, Model};
use slablab_pages::policy::PcpRule;
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, Gfp, NodeId};
use slablab_slabs::engines::slqb::Slqb;
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Preset;
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine};

const PACKETS: usize = 10_000;
const IN_FLIGHT: usize = 64;

/// Runs the workload, and prints what the engine counted.
fn run<E: Engine<Model>>(name: &str, policy: &E::Policy, events: &[Event]) {
    let spec = MachineSpec::uniform(8, 2, 1 << 30);
    let mut machine = Machine::new(spec).expect("8 CPUs on 2 nodes are a machine");
    machine.enter(|| {
        // Without page lists per CPU, so that pages that come back are seen.
        let rules = PagesPolicy { pcp: PcpRule::NONE, ..PagesPolicy::for_release(6, 12, 0) };
        let pages = Pages::<Model>::new(rules);
        let common = E::Common::default();
        let backing = Backing::new(&pages, &common);
        let cache = E::create(CacheId(1), &CacheSpec::of_size(256), policy);
        let free_frames = pages.free_frames(NodeId(0)) + pages.free_frames(NodeId(1));
        let mut in_flight = std::collections::VecDeque::new();
        for _ in 0..PACKETS {
            Model::run_on(CpuId(0));
            in_flight.push_back(cache.alloc(&backing, Gfp::ATOMIC, None).expect("there is memory"));
            if in_flight.len() > IN_FLIGHT {
                Model::run_on(CpuId(4));
                let oldest = in_flight.pop_front().expect("some are in flight");
                cache.free(&backing, oldest).expect("it was allocated");
            }
        }
        let counts = events.iter().map(|event| format!("{} {}", event.name(), cache.counted(*event)));
        println!("{name}: {}", counts.collect::<Vec<_>>().join(", "));
        in_flight.into_iter().for_each(|object| cache.free(&backing, object).expect("it was allocated"));
        (0..8).map(CpuId).for_each(|cpu| cache.cpu_down(&backing, cpu));
        cache.shrink(&backing);
        let left = pages.free_frames(NodeId(0)) + pages.free_frames(NodeId(1));
        println!("    {} page frames of {free_frames} are out after all was freed", free_frames - left);
    });
}

fn main() {
    for name in ["slub@6.1", "slub@2.6.29", "slqb"] {
        match Preset::parse(name).expect("an engine") {
            Preset::Slub(policy) => run::<Slub<Model>>(
                name,
                &policy,
                &[Event::AllocFastpath, Event::AllocSlowpath, Event::FreeFastpath, Event::FreeSlowpath],
            ),
            Preset::Slqb(policy) => run::<Slqb<Model>>(
                name,
                &policy,
                &[
                    Event::SlqbAlloc,
                    Event::SlqbAllocSlabNew,
                    Event::SlqbFreeRemote,
                    Event::SlqbFlushRfreeList,
                ],
            ),
            other => unreachable!("{name} is {}", other.engine()),
        }
    }
}
