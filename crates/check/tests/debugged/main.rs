//! Every engine with debugging and hardening: random programs against a plain reference, in every world, must
//! cause no report; one planted fault of each kind must be reported with the right object.

mod faults;
mod races;

use slablab_check::program::{Program, Ran, Runner};
use slablab_check::{Alone, Bare, Refusing, Shape, effort};
use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_platform::conformance::Testable;
use slablab_slabs::engines::slab::{SlabEngine, SlabPolicy};
use slablab_slabs::engines::slob::{Slob, SlobPolicy};
use slablab_slabs::engines::slqb::{Slqb, SlqbPolicy};
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slablab_slabs::knob::Policy;
use slablab_slabs::preset::Preset;
use slablab_slabs::wrap::{Around, Debugged, Hardened, Wrap};
use slablab_slabs::zones::Letters;
use slablab_slabs::{CacheFlags, CacheSpec, Engine};

/// The wrappers to test: all at once, and combinations that take different paths.
fn wraps() -> Vec<Wrap> {
    let letters = |text| Letters::parse(text).expect("letters");
    let plain = Wrap::default();
    vec![
        Wrap { letters: letters("FZPU"), quarantine_bytes: 8192, shuffled: true, ..plain },
        Wrap { letters: letters("F"), ..plain },
        Wrap { letters: letters("Z"), zero_on_alloc: true, ..plain },
        Wrap { letters: letters("ZU"), quarantine_bytes: 4096, ..plain },
        Wrap { letters: letters("FP"), zero_on_free: true, ..plain },
        Wrap { letters: letters("FZPUO"), ..plain },
        Wrap { quarantine_bytes: 4096, shuffled: true, zero_on_free: true, ..plain },
    ]
}

fn specs() -> Vec<CacheSpec> {
    vec![
        CacheSpec::of_size(1),
        CacheSpec::of_size(192),
        CacheSpec { align: 64, ..CacheSpec::of_size(700) },
        CacheSpec { sheaf_capacity: 32, ..CacheSpec::of_size(256) },
        CacheSpec { flags: CacheFlags::TYPESAFE_BY_RCU, ..CacheSpec::of_size(1000) },
        CacheSpec { flags: CacheFlags::CONSTRUCTOR | CacheFlags::HWCACHE_ALIGN, ..CacheSpec::of_size(4096) },
        CacheSpec { flags: CacheFlags::KMALLOC, ..CacheSpec::of_size(64) },
    ]
}

/// Runs programs of one wrapped engine. It must report exactly the mistakes that the programs make.
fn check<P: Testable, E: Engine<P>>(
    what: &str,
    around: &Around<E::Policy>,
    spec: &CacheSpec,
    seeds: std::ops::Range<u64>,
) -> Ran {
    let mut total = Ran::default();
    for seed in seeds {
        let program = Program::random(seed, 400);
        let told = || format!("{what}, {:?}, {spec:?}, seed {seed}", around.wrap);
        let runner = Runner::<P, Debugged<P, E>>::new(spec, around, (6, 1, 0));
        let ran = runner.run(&program).unwrap_or_else(|wrong| panic!("{}: {wrong}", told()));
        assert_eq!(ran.reports, ran.misuses, "{}: reports", told());
        total.allocs += ran.allocs;
        total.slabs += ran.slabs;
        total.misuses += ran.misuses;
    }
    total
}

/// One engine in the model, with slots that are always unavailable, on checked memory and in static memory.
fn every_world<A, B, C, D, H>(preset: Preset, engine: A::Policy)
where
    A: Engine<Model>,
    B: Engine<Refusing<Model>, Policy = A::Policy>,
    C: Engine<Alone, Policy = A::Policy>,
    D: Engine<Bare<true>, Policy = A::Policy>,
    H: Engine<Hardened<Alone>, Policy = A::Policy>,
{
    const SHAPE: Shape = Shape { node_frames: &[1 << 10, 1 << 10, 0], ..Shape::MEMORYLESS };
    let plain = MachineSpec::uniform(4, 2, 1 << 30);
    let machines = [
        plain.clone(),
        MachineSpec { page_shift: 16, ..plain.clone() },
        MachineSpec { nodes: vec![NodeSpec { bytes: 16 << 20 }; 2], ..plain },
    ];
    let mut total = Ran::default();
    for (turn, wrap) in wraps().into_iter().enumerate() {
        let around = Around { engine: engine.clone(), wrap, release: preset.release() };
        for spec in specs() {
            let turn = turn as u64;
            let machine = machines[turn as usize % machines.len()].clone();
            let mut machine = Machine::new(machine).expect("the spec is right");
            let what = format!("{preset} in the model");
            let ran = machine.enter(|| check::<Model, A>(&what, &around, &spec, turn..turn + effort(1)));
            total.allocs += ran.allocs;
            total.slabs += ran.slabs;
            total.misuses += ran.misuses;
            let what = format!("{preset}, slots refuse");
            machine.enter(|| check::<Refusing<Model>, B>(&what, &around, &spec, turn..turn + 1));
            let what = format!("{preset} on checked memory");
            Alone::enter(SHAPE, || check::<Alone, C>(&what, &around, &spec, turn..turn + 1));
            let what = format!("{preset} with encoded links");
            Alone::enter(SHAPE, || check::<Hardened<Alone>, H>(&what, &around, &spec, turn..turn + 1));
            let what = format!("{preset} on static memory");
            Bare::<true>::enter(|| check::<Bare<true>, D>(&what, &around, &spec, turn..turn + 1));
        }
    }
    println!("{preset}: {} allocations, {} slabs, {} misuses", total.allocs, total.slabs, total.misuses);
    assert!(total.allocs > 5_000 && total.slabs > 500, "{preset}: the programs did too little: {total:?}");
}

/// Runs the programs under each of the engines.
fn programs(engines: impl IntoIterator<Item = String>) {
    for text in engines {
        let preset = Preset::parse(&text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
        match preset {
            Preset::Slub(policy) => {
                every_world::<Slub<_>, Slub<_>, Slub<_>, Slub<_>, Slub<_>>(preset, policy)
            }
            Preset::Slqb(policy) => {
                every_world::<Slqb<_>, Slqb<_>, Slqb<_>, Slqb<_>, Slqb<_>>(preset, policy)
            }
            Preset::Slab(policy) => {
                every_world::<SlabEngine<_>, SlabEngine<_>, SlabEngine<_>, SlabEngine<_>, SlabEngine<_>>(
                    preset, policy,
                )
            }
            Preset::Slob(policy) => {
                every_world::<Slob<_>, Slob<_>, Slob<_>, Slob<_>, Slob<_>>(preset, policy)
            }
            Preset::Registered(_) => unreachable!("none is registered"),
        }
    }
}

/// Every preset of an engine, by name.
fn presets<Q: Policy>() -> impl Iterator<Item = String> {
    Q::PRESETS.iter().map(|preset| format!("{}@{}", Q::NAME, preset.release()))
}

#[test]
fn slub() {
    programs(presets::<SlubPolicy>());
}

/// No kernel has maps.
#[test]
fn slub_with_maps() {
    programs([
        "slub@7.1,freelist=map".into(),
        "slub@7.1,freelist=map,elastic=12".into(),
        "slub@7.0,freelist=map,sheaves=off,min_partial=0".into(),
    ]);
}

#[test]
fn slqb() {
    programs(presets::<SlqbPolicy>());
}

#[test]
fn slab() {
    programs(presets::<SlabPolicy>());
}

#[test]
fn slob() {
    programs(presets::<SlobPolicy>());
}
