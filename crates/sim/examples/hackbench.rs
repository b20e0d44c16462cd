//! Runs hackbench on a modelled machine, and prints what it did and how fast the model was.
//!
//! ```text
//! cargo run --release -p slablab-sim --example hackbench -- GROUPS LOOPS [sockets|pipes] [process|thread]
//!     [PRESET] [CPUS] [NODES] [SEED]
//! ```

#[path = "../tests/it/machine.rs"]
mod machine;

use slablab_sim::process::Kind;
use slablab_sim::programs::hackbench::{self, Over, Params};
use slablab_sim::record::Recorder;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word =
        |at: usize, default: &'static str| arguments.get(at).map_or(default, String::as_str).to_owned();
    let number = |at: usize, default: &'static str| {
        word(at, default).parse::<u32>().unwrap_or_else(|error| panic!("argument {at}: {error}"))
    };
    let hackbench = Params {
        groups: number(0, "10"),
        loops: number(1, "100"),
        over: if word(2, "sockets") == "pipes" { Over::Pipes } else { Over::Sockets },
        kind: if word(3, "process") == "thread" { Kind::Thread } else { Kind::Process },
        ..Params::default()
    };
    let setup = machine::setup(&word(4, "slub@6.18"), number(5, "16") as u16, number(6, "1") as u16);
    let started = std::time::Instant::now();
    let outcome = match hackbench::run(&setup, &hackbench, number(7, "1").into(), &Recorder::default()) {
        Ok(outcome) => outcome,
        Err(failed) => {
            print!("{failed}");
            std::process::exit(1);
        }
    };
    let took = started.elapsed();
    let operations: u64 = outcome.caches.iter().map(|cache| cache.allocs + cache.frees).sum();
    println!(
        "modelled {:.4} s, {} messages, {operations} allocations and frees",
        outcome.elapsed as f64 / 1e12,
        outcome.messages
    );
    println!(
        "took {:.2} s: {:.0} messages/s, {:.0} allocator operations/s",
        took.as_secs_f64(),
        outcome.messages as f64 / took.as_secs_f64(),
        operations as f64 / took.as_secs_f64()
    );
    let of = |count: u64| count as f64 / outcome.messages.max(1) as f64;
    println!(
        "per message: {:.3} switches, {:.3} preemptions, {:.3} wake-ups, {:.4} migrations, {:.2} lines moved",
        of(outcome.switches),
        of(outcome.preemptions),
        of(outcome.wakeups),
        of(outcome.migrations),
        of(outcome.lines_moved)
    );
    let spent =
        outcome.spent.iter().fold([0; 4], |sum: [u64; 4], cpu| std::array::from_fn(|at| sum[at] + cpu[at]));
    let all = outcome.elapsed * outcome.spent.len() as u64;
    let percent = spent.map(|time| (time as f64 * 100.0 / all as f64).round());
    println!("compute, transfers, memory, lock waits: {percent:?} % of all CPUs' time");
    println!("slabs {} KiB, at most {} KiB", outcome.slab_bytes.0 >> 10, outcome.slab_bytes.1 >> 10);
    for cache in outcome.caches.iter().filter(|cache| cache.allocs > outcome.messages / 10) {
        println!(
            "{:20} {} allocations, {} frees, {:.1} % elsewhere, at most {} live, lifetimes {:?}",
            cache.name,
            cache.allocs,
            cache.frees,
            cache.freed_elsewhere as f64 * 100.0 / cache.frees.max(1) as f64,
            cache.live_max,
            [10, 50, 90].map(|percent| cache.lifetimes.quantile(percent))
        );
    }
    for (name, lock) in outcome.locks.iter().filter(|(_, lock)| lock.taken > 0) {
        println!(
            "{name:24} taken {}, waited {} for {} us, held {} us",
            lock.taken,
            lock.waited,
            lock.wait / 1_000_000,
            lock.hold / 1_000_000
        );
    }
}
