//! Every world keeps the contract.

use slablab_check::suite::{Outcome, conform_kit, conform_twisted};
use slablab_check::{Limits, Loom, Shape, Shuttle, Solo, broken};

/// Looks that a world kept every rule, and that checks ran at all.
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
