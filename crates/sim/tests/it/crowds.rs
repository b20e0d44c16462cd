//! Programs with a thread on each CPU: what their patterns do to locks and lines.

use crate::machine::setup;
use slablab_sim::paths;
use slablab_sim::programs::micro::{Crowd, Load, Measured, Pattern, measure};
use slablab_sim::record::Recorder;

/// Runs a pattern on eight CPUs, with objects of 64 bytes.
fn run(preset: &str, of: Crowd, each: u32) -> Measured {
    let load = Load {
        pattern: Pattern::Crowd { of, cpus: 8, each },
        bytes: 64,
        sheaf_capacity: 0,
        objects: u64::from(each) * 8 * 10,
        seed: 1,
    };
    let setup = setup(preset, 8, 2);
    let paths = paths::paths(&setup.preset, &setup.hardware.costs);
    measure(&setup, paths, &load, &Recorder::default()).expect("there is memory")
}

fn locks(found: &Measured) -> u64 {
    found.locks.iter().map(|(_, times)| times.taken).sum()
}

const ALL: [Crowd; 4] = [Crowd::Churn, Crowd::Larson, Crowd::OneWay, Crowd::Swap];

/// The same run has the same numbers, and waits are a part of the locks that were taken.
#[test]
fn runs_repeat() {
    for of in ALL {
        let found = run("slub@6.1", of, 200);
        assert_eq!(found, run("slub@6.1", of, 200), "{of:?}");
        assert!(found.locks.iter().all(|(_, times)| times.waited <= times.taken), "{of:?}: {found:?}");
        // The objects of `Churn` fit into the CPU's partial slabs.
        assert!(matches!(of, Crowd::Churn) || locks(&found) > 0, "{of:?}");
    }
}

/// A batch that fits into a CPU's sheaves takes no lock; objects that go to other CPUs move lines.
#[test]
fn what_stays_on_a_cpu_takes_no_lock() {
    let (here, there) = (run("slub@7.1", Crowd::Churn, 20), run("slub@7.1", Crowd::OneWay, 20));
    assert_eq!(locks(&here), 0, "{here:?}");
    assert!(locks(&there) > 0 && there.lines > here.lines, "{here:?}, {there:?}");
    let larger = run("slub@7.1", Crowd::Churn, 500);
    assert!(locks(&larger) > 0, "{larger:?}");
}
