//! How long the scheduler's decisions take on this host: a waker wakes a task, which preempts or waits, runs,
//! and sleeps. `cargo run --release -p slablab-sim --example scheduler_speed`.

use slablab_platform::CpuId;
use slablab_sim::sched::{Leave, Machine, Policy, Scheduler, Spec, TaskId, US, Why};
use std::time::Instant;

const ROUNDS: u64 = 2_000_000;

/// Nanoseconds for each wake-up with its pick and its sleep.
fn measure(release: (u16, u16, u16), nodes: u16, cpus: u16, tasks: u32) -> u64 {
    let by = |share: u16| (0..cpus).map(|cpu| cpu / share).collect::<Vec<u16>>();
    let per_node = cpus / nodes;
    let far = |a: u16, b: u16| if a == b { 10 } else { 20 };
    let machine = Machine {
        core: by(2),
        llc: by(per_node.min(16)),
        node: by(per_node),
        distances: (0..nodes).map(|a| (0..nodes).map(|b| far(a, b)).collect()).collect(),
        reclaim_distance: 30,
    };
    let policy = Policy::for_release(release).expect("a release with a scheduler");
    let mut scheduler = Scheduler::new(policy, &machine);
    let mut now = US;
    for task in 0..tasks {
        let (cpu, id) = (CpuId((task % u32::from(cpus)) as u16), scheduler.add(Spec::default(), None));
        scheduler.enqueue(cpu, id, Why::Move, now);
    }
    for cpu in 0..cpus {
        scheduler.pick(CpuId(cpu), now);
    }
    let mut sleeping: Vec<TaskId> = Vec::new();
    let mut seed = 1u64;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        now += US;
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let cpu = CpuId(((seed >> 33) % u64::from(cpus)) as u16);
        if scheduler.current(cpu).is_some() {
            sleeping.push(scheduler.leave(cpu, Leave::Sleep, now));
        }
        scheduler.pick(cpu, now);
        if sleeping.len() as u32 > tasks / 4 {
            let place = (seed >> 40) as usize % sleeping.len();
            let why = Why::Wake { from: cpu, sync: seed >> 63 == 1 };
            let task = sleeping.swap_remove(place);
            let chosen = scheduler.select_cpu(task, why, now).cpu;
            if let Some(kick) = scheduler.enqueue(chosen, task, why, now) {
                scheduler.pick(kick.cpu, now);
            }
        }
    }
    start.elapsed().as_nanos() as u64 / ROUNDS
}

fn main() {
    println!("{:>10} {:>14} {:>14} {:>14}", "release", "16/640", "16/16000", "1024/16000");
    for release in [(2, 4, 0), (2, 6, 29), (5, 10, 0), (6, 6, 0), (6, 17, 0)] {
        let cells = [(2, 16, 640), (2, 16, 16_000), (64, 1024, 16_000)];
        let times = cells.map(|(nodes, cpus, tasks)| measure(release, nodes, cpus, tasks));
        let name = format!("{}.{}.{}", release.0, release.1, release.2);
        println!("{name:>10} {:>11} ns {:>11} ns {:>11} ns", times[0], times[1], times[2]);
    }
}
