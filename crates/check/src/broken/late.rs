//! Writes that are delayed until after a later operation. Only another CPU that runs in between can see this.

use crate::twist::Twist;
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Platform};
use std::cell::RefCell;

/// A link written after the exchange that publishes its object.
#[derive(Debug)]
pub enum LateLink {}

/// A sheaf in a barn is linked to the next sheaf only after the barn's lock was released.
#[derive(Debug)]
pub enum LateHeader {}

/// A CPU, and a write that this CPU has delayed.
type Late = (CpuId, Box<dyn FnOnce()>);
thread_local!(static LATE: RefCell<Vec<Late>> = const { RefCell::new(Vec::new()) });

/// Delays a write of the running CPU until that CPU calls [`settle`].
fn put_off<P: Platform>(write: impl FnOnce() + 'static) {
    LATE.with_borrow_mut(|late| late.push((P::cpu(), Box::new(write))));
}

/// Does all delayed writes of the running CPU.
fn settle<P: Platform>() {
    let cpu = P::cpu();
    while let Some(write) = LATE.with_borrow_mut(|late| {
        let first = late.iter().position(|(of, _)| *of == cpu)?;
        Some(late.remove(first).1)
    }) {
        write();
    }
}

impl<P: Testable> Twist<P> for LateLink {
    fn set_link(object: P::Ptr, offset: u32, next: Option<P::Ptr>) {
        put_off::<P>(move || P::set_link(object, offset, next));
    }
    fn settle() {
        settle::<P>();
    }
}

impl<P: Testable> Twist<P> for LateHeader {
    fn storage_store(object: P::Ptr, index: u32, value: Option<P::Ptr>) {
        match index {
            0 => put_off::<P>(move || P::storage_store(object, index, value)),
            _ => P::storage_store(object, index, value),
        }
    }
    fn settle() {
        settle::<P>();
    }
}
