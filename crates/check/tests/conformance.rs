//! Every world passes the conformance suite of the contract.

use slablab_check::suite::{Outcome, conform, conform_kit, conform_twisted};
use slablab_check::{Bare, Limits, Loom, Refusing, Shape, Shuttle, Solo, broken};
use slablab_model::{Costs, Hardware, Machine, MachineSpec, Model, NodeSpec, Paths, Timed, TimedMachine};
use slablab_platform::conformance::Testable;
use slablab_slabs::wrap::Hardened;

/// Checks that a world broke no rule, and that at least one check ran.
fn check(world: &str, outcome: Outcome) {
    println!("{world}: {} checks, {} executions", outcome.ran, outcome.executions);
    assert_eq!(outcome.broken, [], "{world}");
    assert!(outcome.ran >= 25, "{world}: only {} checks ran", outcome.ran);
}

#[test]
fn solo() {
    for shape in [Shape::ONE_NODE, Shape::TWO_NODES, Shape::MEMORYLESS] {
        check("solo", conform_kit::<Solo>(shape, Limits::QUICK));
    }
    for page_shift in [14, 16] {
        check(
            "solo, large pages",
            conform_kit::<Solo>(Shape { page_shift, ..Shape::TWO_NODES }, Limits::QUICK),
        );
    }
    let one_cpu = Shape { cpu_node: &[0], ..Shape::ONE_NODE };
    check("solo, one CPU", conform_kit::<Solo>(one_cpu, Limits::QUICK));
}

#[test]
fn loomed() {
    check("loom", conform_kit::<Loom>(Shape::TWO_NODES, Limits::QUICK));
}

#[test]
fn shuttled() {
    check("shuttle", conform_kit::<Shuttle>(Shape::MEMORYLESS, Limits::QUICK));
}

#[test]
fn refusing() {
    check("refusing", conform_twisted::<broken::Refuse>(Shape::TWO_NODES));
}

#[test]
fn bare() {
    fn run<P: Testable, const COUNT: bool>() -> Outcome {
        conform::<P>(|check| {
            let verdict = Bare::<COUNT>::enter(|| check.run());
            verdict.map(|()| 1).map_err(|broken| broken.to_string())
        })
    }
    check("bare, counting", run::<Bare<true>, true>());
    check("bare", run::<Bare<false>, false>());
    check("bare that refuses", run::<Refusing<Bare<true>>, true>());
    check("bare with encoded links", run::<Hardened<Bare<true>>, true>());
}

/// Runs the suite on the modelled machine, each check on a new machine.
fn modelled<P: Testable>(spec: &MachineSpec) -> Outcome {
    conform::<P>(|check| {
        let mut machine = Machine::new(spec.clone()).expect("the spec is right");
        machine.enter(|| check.run()).map(|()| 1).map_err(|broken| broken.to_string())
    })
}

/// Runs the suite on the modelled machine with clocks, each check on a new machine.
fn timed(spec: &MachineSpec) -> Outcome {
    let cpus = spec.cpu_node.len() as u16;
    let hardware = Hardware {
        core: (0..cpus).map(|cpu| cpu / 2).collect(),
        llc: spec.cpu_node.clone(),
        socket: spec.cpu_node.clone(),
        costs: Costs {
            l1: 1_000,
            transfer: vec![(10, 50_000)],
            memory: vec![(10, 80_000)],
            ..Costs::default()
        },
    };
    conform::<Timed>(|check| {
        let (spec, hardware) = (spec.clone(), hardware.clone());
        let mut machine = TimedMachine::new(spec, hardware, Paths::default()).expect("the spec is right");
        machine.enter(|| check.run()).map(|()| 1).map_err(|broken| broken.to_string())
    })
}

#[test]
fn model() {
    const GIB: u64 = 1 << 30;
    let plain = MachineSpec::uniform(4, 2, GIB);
    let large_pages = MachineSpec { page_shift: 16, ..plain.clone() };
    let nodes = [GIB, 0, GIB].map(|bytes| NodeSpec { bytes }).to_vec();
    let distance = vec![vec![10, 20, 40], vec![40, 10, 15], vec![30, 15, 10]];
    let memoryless = MachineSpec { nodes, distance, cpu_node: vec![0, 1, 1, 2], ..plain.clone() };
    let own_nodes = MachineSpec { memoryless_nodes: false, ..memoryless.clone() };
    let huge = MachineSpec::uniform(1024, 64, 16 * GIB);
    let tiny = MachineSpec::uniform(1, 1, GIB / 64);
    for spec in [plain, large_pages, memoryless, own_nodes, huge, tiny] {
        check("model", modelled::<Model>(&spec));
        check("model with clocks", timed(&spec));
        check("model that refuses", modelled::<Refusing<Model>>(&spec));
        check("model with encoded links", modelled::<Hardened<Model>>(&spec));
    }
}
