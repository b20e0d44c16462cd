//! Engines under loom and shuttle.
//!
//! Loom runs two CPUs through every schedule with at most two preemptions: one to three operations of each on
//! a few prepared slabs of one or two nodes, with at most 20,000 branches per schedule. SLUB's slabs change
//! by one word that CPUs race on, so loom finds an ordering that is too weak. SLQB, SLAB and SLOB have no
//! such word: queues, arrays, slabs and the heap change hands under locks. Their other shared words (SLAB's
//! next colour and free objects, SLOB's tallies) need not be exact. For these engines loom shows that no
//! field is accessed without its lock.
//!
//! Shuttle runs whole programs on two to four CPUs in random schedules. Loom cannot find errors that need
//! three preemptions. Shuttle cannot show that a schedule it did not draw is right, or that an ordering is
//! strong enough.

mod epochs;
mod maps;
mod zonelists;

use slablab_check::kit::Kit;
use slablab_check::schedules::{
    EXCHANGED, Load, Race, Step, exchanges, explored, hand_over, programs, races,
};
use slablab_check::twist::Twist;
use slablab_check::{Checked, Limits, Loom, Shape, Shuttle, Twisted, broken, effort};
use slablab_platform::Event;
use slablab_platform::conformance::Testable;
use slablab_slabs::Engine;
use slablab_slabs::engines::slab::{SlabEngine, SlabPolicy};
use slablab_slabs::engines::slob::{Slob, SlobPolicy};
use slablab_slabs::engines::slqb::{Slqb, SlqbPolicy};
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slablab_slabs::preset::Preset;
use std::sync::atomic::Ordering::Relaxed;

fn check<K: Kit, E: Engine<Checked<K>> + 'static>(
    what: &str,
    races: &[Race<Checked<K>, E>],
    policy: &E::Policy,
    shape: Shape,
    limits: Limits,
) where
    E::Policy: Send + Sync + 'static,
{
    for race in races {
        let explored = explored::<K, _, _>(race, policy.clone(), shape, limits)
            .unwrap_or_else(|wrong| panic!("{} ({what}): {wrong}", race.name));
        println!("{} ({what}): {} executions", race.name, explored.executions);
        assert!(explored.executions > 1, "{}: only one schedule was explored", race.name);
    }
}

fn whole<E: Engine<Checked<Shuttle>> + 'static>(name: &str, policy: &E::Policy, load: Load, limits: Limits)
where
    E::Policy: Send + Sync + 'static,
{
    whole_after::<E>(name, policy, load, limits, |_| ());
}

/// As [`whole`], after `prepare` on one CPU.
fn whole_after<E: Engine<Checked<Shuttle>> + 'static>(
    name: &str,
    policy: &E::Policy,
    load: Load,
    limits: Limits,
    prepare: Step<Checked<Shuttle>, E>,
) where
    E::Policy: Send + Sync + 'static,
{
    let (executions, saw) =
        programs::<_, E>(policy, load, limits, prepare).unwrap_or_else(|w| panic!("{name}: {w}"));
    println!("{name}: {executions} executions");
    assert_eq!(executions, limits.executions as u64, "{name}");
    assert!(saw > 0, "{name}: no execution counted {:?}", load.seen);
}

fn slub(text: &str) -> SlubPolicy {
    match Preset::parse(text).expect("a preset") {
        Preset::Slub(policy) => policy,
        other => unreachable!("{text} is {}", other.engine()),
    }
}

fn slqb(text: &str) -> SlqbPolicy {
    match Preset::parse(text).expect("a preset") {
        Preset::Slqb(policy) => policy,
        other => unreachable!("{text} is {}", other.engine()),
    }
}

fn slab(text: &str) -> SlabPolicy {
    match Preset::parse(text).expect("a preset") {
        Preset::Slab(policy) => policy,
        other => unreachable!("{text} is {}", other.engine()),
    }
}

fn slob(text: &str) -> SlobPolicy {
    match Preset::parse(text).expect("a preset") {
        Preset::Slob(policy) => policy,
        other => unreachable!("{text} is {}", other.engine()),
    }
}

const SLUBS: [&str; 10] = [
    "slub@7.1,max_order=0,min_partial=0,elastic=28",
    "slub@6.1,max_order=0,min_partial=0",
    "slub@6.12,max_order=0,min_partial=0",
    "slub@6.1,max_order=0,min_partial=0,cpu_partial=0",
    "slub@6.12,max_order=0,min_partial=2",
    "slub@2.6.32,max_order=0",
    "slub@7.0,max_order=0,min_partial=0,sheaves=off",
    "slub@7.1,max_order=0,min_partial=0",
    "slub@7.0,max_order=0,min_partial=0,sheaves=off,freelist=map",
    "slub@7.1,max_order=0,min_partial=0,freelist=map,elastic=28",
];

const SLQBS: [&str; 3] = [
    "slqb@2009-09,freebatch=1,hiwater=2",
    "slqb@2009-01,freebatch=1,hiwater=2",
    "slqb@2009-09,freebatch=2,hiwater=8",
];

const SLABS: [&str; 3] = [
    "slab@6.1,limit=2,batchcount=1,shared=1,alien_limit=1",
    "slab@2.6.29,limit=2,batchcount=1,shared=1,memoryless=nearest",
    "slab@2.6.29,limit=1,shared=0,alien=no",
];
const SLOBS: [&str; 2] = ["slob@6.1", "slob@2.6.32,next_fit=no"];

fn every_race<K: Kit>(limits: Limits) {
    for text in SLUBS {
        check(text, &races::<_, Slub<Checked<K>>>(), &slub(text), Shape::ONE_NODE, limits);
    }
    for text in SLQBS {
        check(text, &races::<_, Slqb<Checked<K>>>(), &slqb(text), Shape::ONE_NODE, limits);
        check(text, &hand_over::<_, Slqb<Checked<K>>>(), &slqb(text), Shape::TWO_NODES, limits);
    }
    for text in SLABS {
        check(text, &races::<_, SlabEngine<Checked<K>>>(), &slab(text), Shape::ONE_NODE, limits);
        check(text, &hand_over::<_, SlabEngine<Checked<K>>>(), &slab(text), Shape::TWO_NODES, limits);
    }
    for text in SLOBS {
        check(text, &races::<_, Slob<Checked<K>>>(), &slob(text), Shape::ONE_NODE, limits);
    }
}

/// The races of [`exchanges`], each of which must exchange in some schedule.
fn every_exchange<K: Kit>(limits: Limits) {
    let shape = Shape { node_frames: &[128], ..Shape::ONE_NODE };
    for text in ["slub@7.1,max_order=0,elastic=4", "slub@7.1,max_order=0,elastic=4,freelist=map"] {
        for race in exchanges::<_, Slub<Checked<K>>>() {
            let before = EXCHANGED.load(Relaxed);
            let name = race.name;
            check(text, &[race], &slub(text), shape, limits);
            assert!(EXCHANGED.load(Relaxed) > before, "{name} ({text}): no call exchanged a sheaf");
        }
    }
}

/// One test, because the exchanges of all threads are counted together.
#[test]
fn exchanges_of_sheaves() {
    every_exchange::<Loom>(Limits::QUICK);
    every_exchange::<Shuttle>(Limits { executions: effort(300) as usize, ..Limits::QUICK });
    let limits = Limits { executions: effort(100) as usize, ..Limits::QUICK };
    for (shape, node_frames) in [
        (Shape::ONE_NODE, &[128u32] as &[u32]),
        (Shape::TWO_NODES, &[64, 64]),
        (Shape::MEMORYLESS, &[64, 64, 0]),
    ] {
        let load = Load { size: 4096, steps: 120, ..Load::on(Shape { node_frames, ..shape }) };
        for text in ["slub@7.1,elastic=4", "slub@7.1,elastic=1", "slub@7.0,elastic=4,freelist=map"] {
            let before = EXCHANGED.load(Relaxed);
            whole_after::<Slub<Checked<Shuttle>>>(text, &slub(text), load, limits, |heap| heap.use_rungs());
            let exchanged = EXCHANGED.load(Relaxed) - before;
            println!("{exchanged} exchanges");
            assert!(exchanged > 0, "{text}: no call exchanged a sheaf");
        }
    }
}

#[test]
fn loom_races() {
    every_race::<Loom>(Limits::QUICK);
}

#[test]
fn shuttle_races() {
    every_race::<Shuttle>(Limits { executions: effort(300) as usize, ..Limits::QUICK });
}

/// One of two CPUs does without a slot, as a program's thread at first.
#[test]
fn loom_races_beside_a_cpu_without_a_slot() {
    fn beside<T: Twist<Checked<Loom>>>(without: &str) {
        for text in SLUBS {
            for race in races::<_, Slub<Twisted<Checked<Loom>, T>>>() {
                let explored = explored::<Loom, _, _>(&race, slub(text), Shape::ONE_NODE, Limits::QUICK)
                    .unwrap_or_else(|wrong| panic!("{} ({text}, {without}): {wrong}", race.name));
                assert!(explored.executions > 1, "{}: only one schedule was explored", race.name);
            }
        }
    }
    beside::<broken::RefuseOn<0>>("no slot on CPU 0");
    beside::<broken::RefuseOn<1>>("no slot on CPU 1");
}

/// Four objects per sheaf, so that several CPUs flush, fill and exchange sheaves with the barn at once.
#[test]
fn shuttle_sheaves() {
    let limits = Limits { executions: effort(100) as usize, ..Limits::QUICK };
    let frames = |shape, node_frames| Shape { node_frames, ..shape };
    // If no two CPUs share a node, CPUs seldom take a sheaf from a barn.
    for (shape, seen) in [
        (frames(Shape::ONE_NODE, &[128]), Event::BarnGet),
        (frames(Shape::TWO_NODES, &[64, 64]), Event::SheafRefill),
        (frames(Shape::MEMORYLESS, &[64, 64, 0]), Event::BarnPut),
        (frames(Shape::ONE_NODE, &[128]), Event::FreeRcuSheaf),
        (frames(Shape::ONE_NODE, &[128]), Event::SheafPrefillFast),
        (frames(Shape::TWO_NODES, &[64, 64]), Event::SheafPrefillOversize),
        (frames(Shape::MEMORYLESS, &[64, 64, 0]), Event::SheafReturnSlow),
    ] {
        for text in ["slub@7.0", "slub@7.1", "slub@7.1,cpu_slab=yes,cpu_partial_rule=slabs"] {
            let load = Load { size: 4096, steps: 120, seen: Some(seen), ..Load::on(shape) };
            whole::<Slub<Checked<Shuttle>>>(text, &slub(text), load, limits);
        }
    }
}

#[test]
fn shuttle_whole() {
    let limits = Limits { executions: effort(150) as usize, ..Limits::QUICK };
    for shape in [Shape::ONE_NODE, Shape::TWO_NODES, Shape::MEMORYLESS] {
        for text in SLUBS {
            whole::<Slub<Checked<Shuttle>>>(text, &slub(text), Load::on(shape), limits);
        }
        for text in SLQBS {
            whole::<Slqb<Checked<Shuttle>>>(text, &slqb(text), Load::on(shape), limits);
        }
        for text in SLABS {
            whole::<SlabEngine<Checked<Shuttle>>>(text, &slab(text), Load::on(shape), limits);
        }
        for text in SLOBS {
            whole::<Slob<Checked<Shuttle>>>(text, &slob(text), Load::on(shape), limits);
        }
    }
}

/// Unchanged presets: slabs, arrays and lists as large as the kernel's.
#[test]
fn shuttle_every_preset() {
    let limits = Limits { executions: effort(20) as usize, ..Limits::QUICK };
    let load = Load::on(Shape { node_frames: &[64, 64, 0], ..Shape::MEMORYLESS });
    for preset in Preset::all() {
        let name = preset.to_string();
        match preset {
            Preset::Slub(policy) => whole::<Slub<_>>(&name, &policy, load, limits),
            Preset::Slqb(policy) => whole::<Slqb<_>>(&name, &policy, load, limits),
            Preset::Slab(policy) => whole::<SlabEngine<_>>(&name, &policy, load, limits),
            Preset::Slob(policy) => whole::<Slob<_>>(&name, &policy, load, limits),
            Preset::Registered(_) => unreachable!("none is registered"),
        }
    }
}

/// Runs every preset through the races of two CPUs, in every schedule within loom's bounds.
#[test]
fn loom_every_preset() {
    let shape = Shape { node_frames: &[32], ..Shape::ONE_NODE };
    for preset in Preset::all() {
        let name = preset.to_string();
        match preset {
            Preset::Slub(policy) => check::<Loom, Slub<_>>(&name, &races(), &policy, shape, Limits::QUICK),
            Preset::Slqb(policy) => check::<Loom, Slqb<_>>(&name, &races(), &policy, shape, Limits::QUICK),
            Preset::Slab(policy) => {
                check::<Loom, SlabEngine<_>>(&name, &races(), &policy, shape, Limits::QUICK)
            }
            Preset::Slob(policy) => check::<Loom, Slob<_>>(&name, &races(), &policy, shape, Limits::QUICK),
            Preset::Registered(_) => unreachable!("none is registered"),
        }
    }
}

/// Checks that a race finds the fault of a world. Without this check, a race that can find no fault would
/// pass too.
fn planted<K: Kit, P: Testable>(fault: &str, limits: Limits) {
    let found = races::<P, Slub<P>>().iter().find_map(|race| {
        let policy = slub("slub@6.1,max_order=0,min_partial=0,cpu_partial=0");
        explored::<K, P, _>(race, policy, Shape::ONE_NODE, limits).err().map(|wrong| (race.name, wrong))
    });
    let (race, wrong) = found.unwrap_or_else(|| panic!("{fault}: no race found it"));
    println!("{fault}: found by \"{race}\": {}", wrong.lines().next().unwrap_or(""));
}

#[test]
fn planted_faults_are_found() {
    let limits = Limits { executions: 300, ..Limits::QUICK };
    type Unordered = Loom<broken::RelaxedExchange>;
    planted::<Unordered, Checked<Unordered>>("compare-exchange without ordering", limits);
    type Late<K> = Twisted<Checked<K>, broken::LateLink>;
    planted::<Loom, Late<Loom>>("link after publish, under loom", limits);
    planted::<Shuttle, Late<Shuttle>>("link after publish, under shuttle", limits);
    planted::<broken::TornExchange, Checked<broken::TornExchange>>("a remote free that is lost", limits);
}

/// A barn that is unlocked before its update is complete. Only another CPU that runs in between can lose
/// sheaves.
#[test]
fn a_barn_without_its_lock_is_found() {
    type Late = Twisted<Checked<Shuttle>, broken::LateHeader>;
    let limits = Limits { executions: 300, ..Limits::QUICK };
    let shape = Shape { node_frames: &[128], ..Shape::ONE_NODE };
    let load = Load { size: 4096, steps: 120, ..Load::on(shape) };
    let found = programs::<Late, Slub<Late>>(&slub("slub@7.0"), load, limits, |_| ());
    let wrong = found.expect_err("no schedule found it");
    println!("{}", wrong.lines().next().unwrap_or(""));
}
