//! Random programs under memory pressure, beside a plain reference: contents follow swap and files, and every
//! frame comes back. A longer run: `SLABLAB_LONG=1 cargo test -p slablab-vm --test programs`.

mod fifo;
mod machine;
mod reference;

use machine::Machine;
use slablab_vm::Replacement;
use slablab_vm::counters::Counter;
use slablab_vm::mm::Rules;
use slablab_vm::preset::Preset;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

fn rounds(n: u64) -> u64 {
    if std::env::var_os("SLABLAB_LONG").is_some() { 50 * n } else { n }
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
        let mut machine = Machine::new(policy(), rules, sizes, seed);
        let steps = || {
            machine.run(800);
            machine.end();
            machine.vm.with(|state| state.counters.get(Counter::PswpIn))
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

#[test]
fn every_preset_keeps_contents() {
    for preset in Preset::all() {
        let [major, minor, patch] = preset.kernel;
        let rules = Rules::of(major, minor, patch);
        for sizes in [(128, 600), (128, 48)] {
            run(&preset.to_string(), || preset.policy(), rules, sizes, 1);
        }
    }
}
