//! Random programs under memory pressure, beside a plain reference: contents follow swap and files, and every
//! frame comes back. Longer runs: `SLABLAB_LONG=50 cargo test -p slablab-vm --test programs`; with
//! `SLABLAB_PRESET=vm@6.12,lru_gen` under one preset.

mod fifo;
mod machine;
mod reference;
mod tasks;

use machine::{Machine, account, memory};
use slablab_vm::Replacement;
use slablab_vm::counters::Counter;
use slablab_vm::instant::Instant;
use slablab_vm::mm::Rules;
use slablab_vm::preset::Preset;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

fn rounds(n: u64) -> u64 {
    let times = std::env::var("SLABLAB_LONG").ok().and_then(|times| times.parse().ok());
    n * times.unwrap_or(1)
}

/// Runs programs on machines of few frames: so many frames and slots. Returns pages read from swap.
fn run(
    name: &str,
    policy: impl Fn() -> Box<dyn Replacement>,
    rules: Rules,
    sizes: (u32, u32),
    n: u64,
) -> u64 {
    let seeds = (0..rounds(n)).map(|seed| {
        let (vm, host) = (memory(policy(), sizes), Instant::new(sizes.0, [2, 4, 8], 6));
        let mut machine = Machine::new(&vm, &host, rules, seed);
        let steps = || {
            machine.run(800);
            machine.end();
            account(&vm, &host, sizes.0);
            vm.with(|state| state.counters.get(Counter::PswpIn))
        };
        catch_unwind(AssertUnwindSafe(steps)).unwrap_or_else(|error| {
            eprintln!("{name}, seed {seed}");
            resume_unwind(error)
        })
    });
    seeds.sum()
}

#[test]
fn contents_follow_swap_and_files() {
    for (major, minor, patch) in [(2, 4, 9), (2, 4, 10), (2, 6, 29), (6, 1, 0), (6, 18, 0)] {
        let swapped = run("fifo", || Box::new(fifo::Fifo), Rules::of(major, minor, patch), (96, 400), 8);
        assert!(swapped > 0, "programs read nothing from swap: no pressure");
    }
}

#[test]
fn full_swap_and_no_memory_are_outcomes() {
    assert!(run("fifo", || Box::new(fifo::Fifo), Rules::of(6, 1, 0), (64, 24), 12) > 0);
}

/// The presets to test.
fn presets() -> impl Iterator<Item = Preset> {
    let only = std::env::var("SLABLAB_PRESET").ok();
    Preset::all()
        .into_iter()
        .filter(move |preset| only.as_ref().is_none_or(|only| *only == preset.to_string()))
}

#[test]
fn every_preset_keeps_contents() {
    for preset in presets() {
        let [major, minor, patch] = preset.kernel;
        let rules = Rules::of(major, minor, patch);
        for sizes in [(128, 600), (128, 48)] {
            run(&preset.to_string(), || preset.policy(), rules, sizes, 1);
        }
    }
}

/// Several programs, kswapd and a flusher: wherever a task may sleep, another one can run.
#[test]
fn tasks_that_sleep_anywhere_keep_contents() {
    for preset in presets() {
        let [major, minor, patch] = preset.kernel;
        for (sizes, programs) in [((160, 900), 3), ((160, 64), 3)] {
            for seed in 0..rounds(2) {
                let run =
                    || tasks::run(preset.policy(), Rules::of(major, minor, patch), sizes, programs, seed);
                let name = format!("{preset} {sizes:?}, seed {seed}");
                let first = catch_unwind(run).unwrap_or_else(|error| {
                    eprintln!("{name}");
                    resume_unwind(error)
                });
                assert_eq!(first, run(), "{name}: two runs differ");
            }
        }
    }
}
