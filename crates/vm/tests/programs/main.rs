//! Random programs under memory pressure, beside a plain reference: contents follow swap and files, and every
//! frame comes back. A longer run: `SLABLAB_LONG=1 cargo test -p slablab-vm --test programs`.

mod fifo;
mod machine;
mod reference;

use machine::Machine;
use slablab_vm::counters::Counter;
use slablab_vm::mm::Rules;

fn rounds(n: u64) -> u64 {
    if std::env::var_os("SLABLAB_LONG").is_some() { 50 * n } else { n }
}

/// Runs programs on machines of few frames with the rules of a release.
fn run(rules: Rules, sizes: (u32, u32)) {
    let mut swapped = 0;
    for seed in 0..rounds(12) {
        let mut machine = Machine::new(Box::new(fifo::Fifo), rules, sizes, seed);
        machine.run(1_500);
        machine.end();
        swapped += machine.vm.with(|state| state.counters.get(Counter::PswpIn));
    }
    assert!(swapped > 0, "programs read nothing from swap: no pressure");
}

#[test]
fn contents_follow_swap_and_files() {
    for (major, minor, patch) in [(2, 4, 9), (2, 4, 10), (2, 6, 29), (6, 1, 0), (6, 18, 0)] {
        run(Rules::of(major, minor, patch), (96, 400));
    }
}

#[test]
fn full_swap_and_no_memory_are_outcomes() {
    run(Rules::of(6, 1, 0), (64, 24));
}
