//! Random programs over every engine, preset and world, against a dumb reference.

use slablab_check::program::{Program, Ran, Runner};
use slablab_check::{Alone, Bare, Refusing, Shape, effort};
use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::Gfp;
use slablab_platform::conformance::Testable;
use slablab_slabs::preset::{Policy, Preset};
use slablab_slabs::slab::{Constructor, NewObjects};
use slablab_slabs::slab_engine::{SlabEngine, SlabPolicy};
use slablab_slabs::slob::{Slob, SlobPolicy};
use slablab_slabs::slqb::{Slqb, SlqbPolicy};
use slablab_slabs::slub::{Slub, SlubPolicy};
use slablab_slabs::{Backing, CacheFlags, CacheId, CacheSpec, Engine};
use std::cell::Cell;

const GIB: u64 = 1 << 30;

/// Runs programs of one engine's policy in a world and prints how much they did.
fn check<P: Testable, E: Engine<P>>(
    what: &str,
    policy: &E::Policy,
    kernel: (u32, u32, u32),
    spec: &CacheSpec,
    seeds: std::ops::Range<u64>,
) -> Ran {
    let mut total = Ran::default();
    for seed in seeds {
        let program = Program::random(seed, 600);
        let ran = Runner::<P, E>::new(spec, policy, kernel)
            .run(&program)
            .unwrap_or_else(|wrong| panic!("{what}, {spec:?}, seed {seed}: {wrong}"));
        total.allocs += ran.allocs;
        total.slabs += ran.slabs;
        total.live_max = total.live_max.max(ran.live_max);
    }
    total
}

fn machines() -> Vec<(&'static str, MachineSpec)> {
    let plain = MachineSpec::uniform(4, 2, GIB);
    vec![
        ("one node", MachineSpec::uniform(2, 1, GIB)),
        ("two nodes", plain.clone()),
        ("64K pages", MachineSpec { page_shift: 16, ..plain.clone() }),
        (
            "memory on 2 of 8 nodes",
            MachineSpec {
                cpu_node: (0..8).collect(),
                nodes: (0..8).map(|node| NodeSpec { bytes: if node % 4 == 1 { GIB } else { 0 } }).collect(),
                ..plain.clone()
            },
        ),
        ("no high orders", MachineSpec { fail_order: Some(1), ..plain.clone() }),
        ("little memory", MachineSpec { nodes: vec![NodeSpec { bytes: 16 << 20 }; 2], ..plain }),
    ]
}

fn specs() -> Vec<CacheSpec> {
    let flags = CacheFlags::default();
    vec![
        CacheSpec::of_size(8),
        CacheSpec::of_size(192),
        CacheSpec { align: 64, ..CacheSpec::of_size(700) },
        CacheSpec { sheaf_capacity: 32, ..CacheSpec::of_size(256) },
        CacheSpec { flags: CacheFlags { typesafe_by_rcu: true, ..flags }, ..CacheSpec::of_size(1000) },
        CacheSpec {
            flags: CacheFlags { constructor: true, hwcache_align: true, ..flags },
            ..CacheSpec::of_size(4096)
        },
    ]
}

fn every_machine<E: Engine<Model>, R: Engine<Refusing<Model>, Policy = E::Policy>>(
    preset: Preset,
    policy: &E::Policy,
    kernel: (u32, u32, u32),
    seeds: std::ops::Range<u64>,
) {
    let mut ran = Ran::default();
    for (name, machine) in machines() {
        for spec in specs() {
            let what = format!("{preset} on {name}");
            let mut modelled = Machine::new(machine.clone()).expect("the spec is right");
            let one = modelled.enter(|| check::<Model, E>(&what, policy, kernel, &spec, seeds.clone()));
            ran.allocs += one.allocs;
            ran.slabs += one.slabs;
            let what = format!("{preset} on {name}, slots refuse");
            let mut modelled = Machine::new(machine.clone()).expect("the spec is right");
            let first = seeds.start..seeds.start + (seeds.end - seeds.start).div_ceil(2);
            modelled.enter(|| check::<Refusing<Model>, R>(&what, policy, kernel, &spec, first));
        }
    }
    println!("{preset}: {} allocations, {} slabs", ran.allocs, ran.slabs);
    assert!(ran.allocs > 10_000 && ran.slabs > 500, "{preset}: the programs did too little: {ran:?}");
}

#[test]
fn slub() {
    for policy in SlubPolicy::PRESETS {
        let release = policy.release;
        let kernel = (release.major as u32, release.minor as u32, release.patch as u32);
        every_machine::<Slub<Model>, Slub<Refusing<Model>>>(
            Preset::Slub(*policy),
            policy,
            kernel,
            0..effort(6),
        );
    }
}

#[test]
fn slqb() {
    for text in [
        "slqb@2009-01",
        "slqb@2009-01,memoryless=nearest",
        "slqb@2009-09",
        "slqb@2009-09,memoryless=as-asked",
        "slqb@2009-09,memoryless=free-as-local",
        "slqb@2009-09,memoryless=nearest",
        "slqb@2009-09,freebatch=3,hiwater=5",
    ] {
        let preset = Preset::parse(text).expect("a preset");
        let Preset::Slqb(policy) = preset else { unreachable!("{text} is SLQB") };
        every_machine::<Slqb<Model>, Slqb<Refusing<Model>>>(preset, &policy, (2, 6, 31), 0..effort(4));
    }
    assert_eq!(SlqbPolicy::PRESETS.len(), 2, "presets without a program");
}

#[test]
fn slab() {
    for text in [
        "slab@2.6.29",
        "slab@2.6.29,memoryless=nearest,fresh_slab=fills-array",
        "slab@2.6.29,alien=no",
        "slab@6.1",
        "slab@6.1,alien=no,limit=5,batchcount=2",
        "slab@6.1,memoryless=as-asked,limit=3,shared=1",
        "slab@6.1,shared=0,limit=1",
    ] {
        let preset = Preset::parse(text).expect("a preset");
        let Preset::Slab(policy) = preset else { unreachable!("{text} is SLAB") };
        every_machine::<SlabEngine<Model>, SlabEngine<Refusing<Model>>>(
            preset,
            &policy,
            (2, 6, 29),
            0..effort(4),
        );
    }
    assert_eq!(SlabPolicy::PRESETS.len(), 2, "presets without a program");
}

#[test]
fn slob() {
    for text in [
        "slob@2.6.32",
        "slob@6.1",
        "slob@6.1,readd=small",
        "slob@6.1,next_fit=no",
        "slob@6.1,small_below=65536,medium_below=65536",
    ] {
        let preset = Preset::parse(text).expect("a preset");
        let Preset::Slob(policy) = preset else { unreachable!("{text} is SLOB") };
        every_machine::<Slob<Model>, Slob<Refusing<Model>>>(preset, &policy, (6, 1, 0), 0..effort(4));
    }
    assert_eq!(SlobPolicy::PRESETS.len(), 2, "presets without a program");
}

/// The worlds that are not the model: checking memory on one thread, and static memory.
fn other_worlds<A: Engine<Alone>, B: Engine<Bare<true>, Policy = A::Policy>>(name: &str, policy: &A::Policy) {
    const SHAPE: Shape = Shape { node_frames: &[1 << 10, 1 << 10, 0], ..Shape::MEMORYLESS };
    let mut ran = Ran::default();
    for spec in specs() {
        let what = format!("{name} on checked memory");
        let one = Alone::enter(SHAPE, || check::<Alone, A>(&what, policy, (6, 1, 0), &spec, 0..2));
        let what = format!("{name} on static memory");
        let two = Bare::<true>::enter(|| check::<Bare<true>, B>(&what, policy, (6, 1, 0), &spec, 2..3));
        ran.allocs += one.allocs + two.allocs;
        ran.slabs += one.slabs + two.slabs;
    }
    println!("{name} in other worlds: {} allocations, {} slabs", ran.allocs, ran.slabs);
    assert!(ran.allocs > 3_000 && ran.slabs > 100, "{name}: the programs did too little: {ran:?}");
}

#[test]
fn every_preset_in_other_worlds() {
    for policy in SlubPolicy::PRESETS {
        other_worlds::<Slub<Alone>, Slub<Bare<true>>>(&Preset::Slub(*policy).to_string(), policy);
    }
    for policy in SlqbPolicy::PRESETS {
        other_worlds::<Slqb<Alone>, Slqb<Bare<true>>>(&Preset::Slqb(*policy).to_string(), policy);
    }
    for policy in SlabPolicy::PRESETS {
        let name = Preset::Slab(*policy).to_string();
        other_worlds::<SlabEngine<Alone>, SlabEngine<Bare<true>>>(&name, policy);
    }
    for policy in SlobPolicy::PRESETS {
        other_worlds::<Slob<Alone>, Slob<Bare<true>>>(&Preset::Slob(*policy).to_string(), policy);
    }
}

/// A constructor runs once for every object of every new slab, not for every allocation: `None`. SLOB's runs
/// for each.
fn constructs<E: Engine<Model>>(name: &str, policy: &E::Policy, runs: Option<u32>) {
    thread_local!(static CONSTRUCTED: Cell<u32> = const { Cell::new(0) });
    CONSTRUCTED.set(0);
    let mut machine = Machine::new(MachineSpec::uniform(1, 1, GIB)).expect("the spec is right");
    machine.enter(|| {
        let pages = Pages::new(PagesPolicy::for_release(6, 1, 0));
        let flags = CacheFlags { constructor: true, ..CacheFlags::default() };
        let mut cache = E::create(CacheId(1), &CacheSpec { flags, ..CacheSpec::of_size(500) }, policy);
        let construct: Constructor<Model> = |_| CONSTRUCTED.set(CONSTRUCTED.get() + 1);
        cache.set_new_objects(NewObjects { construct: Some(construct), ..NewObjects::default() });
        let common = E::Common::default();
        let backing = Backing::new(&pages, &common);
        for _ in 0..100 {
            let object = cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
            cache.free(&backing, object).expect("the cache's object");
        }
        let runs = runs.unwrap_or(cache.geometry().objects);
        assert_eq!(CONSTRUCTED.get(), runs, "{name}: 100 allocations, one slab was made");
    });
}

#[test]
fn constructors_run_when_slabs_are_made() {
    constructs::<Slub<Model>>("slub", &SlubPolicy::PRESETS[2], None);
    constructs::<Slqb<Model>>("slqb", &SlqbPolicy::PRESETS[1], None);
    constructs::<Slob<Model>>("slob", &SlobPolicy::PRESETS[1], Some(100));
    constructs::<SlabEngine<Model>>("slab", &SlabPolicy::PRESETS[1], None);
}
