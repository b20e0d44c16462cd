//! The slab caches of a simulated kernel: pages that come back under pressure.

use crate::machine::setup;
use slablab_model::TimedMachine;
use slablab_platform::Gfp;
use slablab_sim::heap::{CacheNumber, Named, heap};
use slablab_sim::paths::paths;
use slablab_slabs::CacheSpec;

/// After all objects of a cache were freed: a shrink leaves no slab of it; before it, turns of the clock
/// return 80 % of its empty slabs each under 2.4, and nothing under other engines.
fn check(preset: &str, cpus: u16, turns: &[u64]) {
    let setup = setup(preset, cpus, 1);
    let paths = paths(&setup.preset, &setup.hardware.costs);
    let mut machine = TimedMachine::new(setup.spec, setup.hardware, paths).expect("the machine is right");
    machine.enter(|| {
        let named = Named { name: "dentry".into(), spec: CacheSpec::of_size(128) };
        let heap = heap(&setup.preset, &[named]);
        let dentry = CacheNumber(0);
        let alloc = |_| heap.alloc(dentry, Gfp::KERNEL, None).expect("memory is left");
        let objects: Vec<_> = (0..3_000).map(alloc).collect();
        let full = heap.slab_bytes();
        assert!(cpus > 1 || heap.caches().len() == 20, "{} caches", heap.caches().len());
        objects.into_iter().for_each(|object| heap.free(dentry, object));
        let found: Vec<u64> = turns.iter().map(|_| heap.reap()).collect();
        assert_eq!(found, turns, "{preset} on {cpus} CPUs");
        let slabs = heap.usage(dentry).slabs;
        assert!(slabs > 0, "{preset}: a shrink has something to return");
        assert_eq!(heap.shrink(dentry), slabs, "{preset}");
        assert_eq!(heap.usage(dentry).slabs, 0, "{preset}");
        assert!(full - heap.slab_bytes() >= 3_000 * 128, "{preset}: {full} before");
        assert_eq!(heap.shrink(dentry), 0, "{preset}");
    });
}

#[test]
fn empty_slabs_come_back() {
    // 100 slabs of 30 objects each. The first turn finds that the cache grew; a turn looks at ten of the 23
    // caches, so the third one comes by again.
    check("slab@2.4", 1, &[0, 0, 80]);
    for preset in ["slab@2.6.29", "slub@2.6.29", "slub@6.18", "slub@7.0", "slqb@2009-01"] {
        check(preset, 2, &[0, 0]);
    }
}
