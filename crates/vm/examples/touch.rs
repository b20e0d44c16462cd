//! Touches of present pages a second, on one core: `cargo run --release -p slablab-vm --example touch`.

use slablab_vm::instant::Instant;
use slablab_vm::mm::{Rules, Touched, anon, touch};
use slablab_vm::preset::Preset;
use slablab_vm::swap::SlotRule;
use slablab_vm::{Settings, State, Swap, Vm, Zone};
use std::time;

fn main() {
    const PAGES: u32 = 20_480;
    const TOUCHES: u32 = 50_000_000;
    let policy = Preset::parse("vm@6.1").expect("a preset").policy();
    let zone = Zone { name: "DMA32", node: 0, class: 0, frames: 0..32_768, managed: 32_768 };
    let lists = policy.lists(1, 1);
    let state = State::new(vec![zone], Swap::new(1024, SlotRule::Clusters), lists, Settings::default());
    let (vm, host, rules) =
        (Vm::new(state, policy), Instant::new(32_768, [374, 467, 560], 16), Rules::of(6, 1, 0));
    let space = vm.with(|state| state.spaces.create());
    let region = anon(&vm, space, PAGES);
    for page in 0..PAGES {
        assert_eq!(touch(&vm, &host, &rules, region, page, true), Some(Touched::Minor));
    }
    let (start, mut page, mut hits) = (time::Instant::now(), 1_u32, 0_u32);
    for _ in 0..TOUCHES {
        // A generator, so that the processor cannot foresee the page.
        page = page.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let at = ((u64::from(page) * u64::from(PAGES)) >> 32) as u32;
        let touched = touch(&vm, &host, &rules, region, at, page & 64 == 0);
        hits += u32::from(touched == Some(Touched::Hit));
    }
    assert_eq!(hits, TOUCHES);
    println!("{:.1} M touches a second", f64::from(TOUCHES) / start.elapsed().as_secs_f64() / 1e6);
}
