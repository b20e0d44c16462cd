//! A machine for tests and examples: costs of the 2020s, nodes of CPUs that share a last-level cache.

use slablab_model::{Costs, Handover, Hardware, MachineSpec};
use slablab_sim::setup::{Boot, Setup};
use slablab_slabs::Preset;

/// Costs of a CPU of 3.5 GHz.
pub(crate) fn costs() -> Costs {
    Costs {
        cycle: 286,
        line_bytes: 64,
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
        llc_bytes: 16 << 20,
        l1: 1_200,
        l2: 4_000,
        llc: 14_000,
        transfer_core: 6_000,
        transfer_llc: 25_000,
        transfer: vec![(10, 90_000), (20, 150_000)],
        memory: vec![(10, 90_000), (20, 150_000)],
        local_exchange: 2_300,
        locked_exchange: 5_000,
        exchange16: 6_500,
        interrupts: 9_000,
        zero_kib: 20_000,
        copy_kib: 50_000,
        handover: Handover::Queued,
        syscall: 100_000,
        switch_mm: 800_000,
        switch_thread: 500_000,
        wake_local: 200_000,
        wake_remote: 500_000,
        ipi: 500_000,
        idle_exit: 2_000_000,
        page_fault: 250_000,
        fork: 30_000_000,
        exit: 20_000_000,
        ..Costs::default()
    }
}

/// `cpus` CPUs without SMT on `nodes` nodes, each with a last-level cache.
pub(crate) fn setup(preset: &str, cpus: u16, nodes: u16) -> Setup {
    let spec = MachineSpec { memoryless_nodes: false, ..MachineSpec::uniform(cpus, nodes, 8 << 30) };
    let hardware = Hardware {
        core: (0..cpus).collect(),
        llc: spec.cpu_node.clone(),
        socket: spec.cpu_node.clone(),
        costs: costs(),
    };
    let preset = Preset::parse(preset).unwrap_or_else(|error| panic!("{preset}: {error:?}"));
    Setup { spec, hardware, preset, boot: Boot::default(), placement: None }
}
