//! The slab caches as a program finds them: made, then as after boot, then as a placement draws them.

use crate::heap::boot::boot;
use crate::heap::placement::place;
use crate::heap::{Heap, Named, class_names, heap};
use crate::setup::Setup;
use slablab_slabs::CacheSpec;
use std::rc::Rc;

/// The slab caches of a setup's kernel on the machine that is entered. `seed` draws what a boot leaves open.
pub(crate) fn started_heap(setup: &Setup, seed: u64, named: Vec<Named>) -> Rc<dyn Heap> {
    start(setup, seed, named, |named| heap(&setup.preset, named))
}

/// [`started_heap`] of caches that `make` makes.
pub(crate) fn start(
    setup: &Setup,
    seed: u64,
    mut named: Vec<Named>,
    make: impl FnOnce(&[Named]) -> Rc<dyn Heap>,
) -> Rc<dyn Heap> {
    let caches = setup.boot.caches(&setup.preset, &setup.spec);
    let classes = if caches.is_empty() { Vec::new() } else { class_names(&setup.preset) };
    for booted in caches.iter().filter(|booted| !classes.contains(&booted.named().name)) {
        match booted.find(&named) {
            Some(at) => {
                let sheaf_capacity = named[at].spec.sheaf_capacity;
                named[at].spec = CacheSpec { sheaf_capacity, ..booted.spec };
            }
            None => named.push(booted.named()),
        }
    }
    let heap = make(&named);
    if !caches.is_empty() {
        boot(&*heap, &caches, seed);
    }
    if let Some(seed) = setup.placement {
        place(&*heap, seed);
    }
    heap
}
