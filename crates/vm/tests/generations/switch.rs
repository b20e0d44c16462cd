//! Generations turned on and off while programs run: no page is lost, and each gets where it belongs.

use crate::machine::Machine;
use slablab_vm::swap::SlotRule;
use slablab_vm::{Flags, Frame, Preset, State, Swap, Vm, Zone};

/// A machine whose policy can be switched.
fn machine(preset: &str, frames: u32) -> Machine {
    let preset = Preset::parse(preset).expect("a preset");
    let policy = preset.switchable().expect("its kernel has both policies");
    let zone = Zone { name: "Normal", node: 0, class: 0, frames: 0..frames, managed: frames.into() };
    let state = State::new(vec![zone], Swap::new(512, SlotRule::Next), policy.lists(1, 1), preset.settings);
    Machine { vm: Vm::new(state, policy), ..Machine::new("vm@6.1", frames, 512) }
}

fn switch(machine: &Machine, generations: bool) {
    machine.vm.with(|state| machine.vm.policy.switch(state, generations));
}

fn check(machine: &Machine) {
    machine.vm.with(|state| {
        state.check().and_then(|()| machine.vm.policy.check(state)).expect("nothing is lost");
    });
}

fn is_active(machine: &Machine, frame: Frame) -> bool {
    machine.vm.with(|state| state.frames.has(frame, Flags::ACTIVE))
}

#[test]
fn kernels_that_have_both_policies_can_switch() {
    for (preset, expected) in [
        ("vm@6.1", true),
        ("vm@6.1,lru_gen", true),
        ("vm@7.2,lru_gen,walks=no", true),
        ("vm@2.6.29", false),
        ("vm@2.4.10", false),
        ("vm@6.18,s3fifo", false),
    ] {
        let preset = Preset::parse(preset).expect("a preset");
        let policy = preset.switchable();
        assert_eq!(policy.is_some(), expected, "{preset}");
        assert!(policy.is_none_or(|policy| policy.can_switch() && policy.name() == preset.to_string()));
        assert!(!preset.policy().can_switch());
    }
}

#[test]
fn active_pages_become_young_and_young_ones_active() {
    // Of four generations; since 6.14 an active page enters the second youngest.
    for (preset, generations) in
        [("vm@6.1", "1 3"), ("vm@6.12", "1 3"), ("vm@6.18", "0 2"), ("vm@7.2", "0 2")]
    {
        let machine = machine(preset, 64);
        let file = machine.file(8);
        // Read once: inactive; read twice and once more: active.
        let (cold, hot) = (machine.read(file, 0), machine.read(file, 1));
        machine.read(file, 1);
        assert_eq!([cold, hot].map(|frame| is_active(&machine, frame)), [false, true], "{preset}");
        let sizes = |machine: &Machine| {
            let sizes = machine.vm.with(|state| machine.vm.policy.sizes(state));
            (sizes.inactive_file, sizes.active_file)
        };
        assert_eq!(sizes(&machine), (1, 1), "{preset}");
        switch(&machine, true);
        check(&machine);
        let generation = |frame| machine.place(frame).split(' ').next().expect("a word").to_string();
        assert_eq!([generation(cold), generation(hot)].join(" "), generations, "{preset}");
        assert_eq!(sizes(&machine), (1, 1), "{preset}");
        switch(&machine, false);
        check(&machine);
        assert_eq!([cold, hot].map(|frame| is_active(&machine, frame)), [false, true], "{preset}");
        assert!(machine.vm.policy.generations(0).is_empty(), "{preset}");
        assert_eq!(machine.vm.with(|state| state.frames.policy(hot)), 0, "{preset}");
    }
}

#[test]
fn a_page_that_the_other_policy_evicted_comes_back_as_an_old_one() {
    use slablab_vm::Counter::{ActivateFile, RefaultFile};
    for (preset, then) in [("vm@6.12", true), ("vm@6.12,lru_gen", false)] {
        let count = |switches: bool| {
            let machine = machine(preset, 256);
            let file = machine.file(200);
            (0..200).for_each(|page| _ = machine.read(file, page));
            (100..200).for_each(|page| _ = machine.read(file, page));
            while machine.resident(file).contains(&0) {
                assert!(machine.reclaim().pages > 0, "{preset}");
            }
            if switches {
                switch(&machine, then);
            }
            machine.read(file, 0);
            check(&machine);
            machine.vm.with(|state| [RefaultFile, ActivateFile].map(|counter| state.counters.get(counter)))
        };
        assert_eq!((count(false), count(true)), ([1, 1], [1, 0]), "{preset}");
    }
}

/// Files and memory, reads, stores and reclaim in a fixed disorder, with a switch now and then.
#[test]
fn no_page_is_lost_in_ten_thousand_steps() {
    for preset in ["vm@6.1", "vm@6.18,lru_gen", "vm@7.2"] {
        let machine = machine(preset, 200);
        let (file, mapped) = (machine.file(150), machine.file(60));
        let (region, anon) = (machine.region(Some(mapped), 60), machine.region(None, 90));
        let (mut dice, mut is_on) = (7_u64, preset.contains("lru_gen"));
        for step in 0..10_000 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (what, page) = (dice >> 33 & 63, (dice >> 40) as u32);
            if machine.host.free_frames() < 40 {
                machine.reclaim();
                machine.host.settle(&machine.vm);
            }
            match what {
                0 => {
                    is_on = !is_on;
                    switch(&machine, is_on);
                }
                1..=30 => _ = machine.read(file, page % 150),
                31..=45 => _ = machine.load(region, page % 60),
                _ => _ = machine.store(anon, page % 90),
            }
            if step % 100 == 0 {
                check(&machine);
            }
        }
        let resident = machine.resident(file).len() + machine.resident(mapped).len();
        assert!(resident > 20, "{preset}: {resident}");
    }
}
