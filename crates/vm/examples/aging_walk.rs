//! Host time of the walk that ages pages: nanoseconds for each page table entry of a space of 1 GiB.
//!
//! ```text
//! cargo run --release -p slablab-vm --example aging_walk
//! ```

use slablab_vm::instant::Instant;
use slablab_vm::spaces::Backing;
use slablab_vm::swap::SlotRule;
use slablab_vm::{Enter, Flags, Frame, Preset, Pte, State, Swap, Vm, Work, Zone};

/// Pages of 1 GiB.
const PAGES: u32 = 1 << 18;

fn main() {
    let preset = Preset::parse("vm@6.1,lru_gen").expect("a preset");
    let policy = preset.policy();
    let zone = Zone { name: "Normal", node: 0, class: 0, frames: 0..PAGES, managed: PAGES.into() };
    let state = State::new(vec![zone], Swap::new(0, SlotRule::Next), policy.lists(1, 1), preset.settings);
    let (vm, host) = (Vm::new(state, policy), Instant::new(PAGES, [0; 3], 0));
    let region = vm.with(|state| {
        let (space, family) = (state.spaces.create(), state.spaces.family());
        state.spaces.space_mut(space).flush_every = 1;
        let region = state.spaces.add(space, Backing::Anon(family), PAGES);
        for page in 0..PAGES {
            let flags = Flags::UPTODATE | Flags::ANON | Flags::SWAPBACKED | Flags::FAULT;
            state.frames.begin(Frame(page), family, page, flags);
            vm.policy.enter(state, Frame(page), Enter::Anon, None);
            state.map(region, page, Pte::map(Frame(page), true));
        }
        region
    });
    println!("one entry in  entries walked  ns an entry");
    for step in [1, 2, 4, 8] {
        let mut best = (u128::MAX, 0);
        for _ in 0..10 {
            vm.with(|state| {
                for page in 0..PAGES {
                    let pte = state.spaces.region(region).pte(page).accessed(page % step == 0);
                    state.spaces.region_mut(region).mark(page, pte);
                }
                // One access loads an entry of each table.
                (0..PAGES).step_by(512).for_each(|page| _ = state.spaces.access(region, page, false));
            });
            let (before, start) = (host.done(Work::Walk), std::time::Instant::now());
            assert!(vm.policy.age(&vm, &host, 0));
            best = best.min((start.elapsed().as_nanos(), host.done(Work::Walk) - before));
        }
        let (nanos, entries) = best;
        println!("{step:12}  {entries:14}  {:11.2}", nanos as f64 / entries as f64);
    }
}
