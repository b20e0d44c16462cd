//! The native world keeps the contract, with slots per thread and per CPU, and with encoded links.

mod again;

use slablab_check::suite::conform;
mod program;
use program::Native;
use slablab_slabs::wrap::Hardened;

#[test]
fn native() {
    let outcome = conform::<Native>(|check| {
        let verdict = Native::enter_pretending(|| check.run());
        verdict.map(|()| 1).map_err(|broken| broken.to_string())
    });
    println!("native, {}: {} checks", Native::slots(), outcome.ran);
    assert_eq!(outcome.broken, []);
    assert!(outcome.ran >= 25, "only {} checks ran", outcome.ran);
}

#[test]
fn encoded() {
    let outcome = conform::<Hardened<Native>>(|check| {
        let verdict = Native::enter_pretending(|| check.run());
        verdict.map(|()| 1).map_err(|broken| broken.to_string())
    });
    println!("native with encoded links, {}: {} checks", Native::slots(), outcome.ran);
    assert_eq!(outcome.broken, []);
    assert!(outcome.ran >= 25, "only {} checks ran", outcome.ran);
}

#[test]
fn native_per_cpu() {
    again::per_cpu("native");
}
