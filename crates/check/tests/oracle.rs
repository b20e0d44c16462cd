//! Random programs over every engine, preset and world, against a plain reference.

use slablab_check::broken::{CutList, ForgetfulArray, FullArray, LateHeader, NoGrowth};
use slablab_check::duties::duties;
use slablab_check::explore::guard;
use slablab_check::oracle::{self, machines, specs};
use slablab_check::program::{Program, Ran, Runner};
use slablab_check::twist::Twist;
use slablab_check::{Alone, Bare, Refusing, Shape, Twisted, effort};
use slablab_model::{Costs, Hardware, Machine, MachineSpec, Model, Paths, Timed, TimedMachine};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{Event, Gfp};
use slablab_slabs::engines::slab::{SlabEngine, SlabPolicy};
use slablab_slabs::engines::slob::{Slob, SlobPolicy};
use slablab_slabs::engines::slqb::{Slqb, SlqbPolicy};
use slablab_slabs::engines::slub::{Sheaves, Slub, SlubPolicy};
use slablab_slabs::knob::Policy;
use slablab_slabs::preset::Preset;
use slablab_slabs::slab::{Constructor, NewObjects};
use slablab_slabs::{Backing, CacheFlags, CacheId, CacheSpec, Engine};
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

const GIB: u64 = 1 << 30;

/// Runs programs of one engine's policy in a world. Returns what they did.
fn check<P: Testable, E: Engine<P>>(
    what: &str,
    policy: &E::Policy,
    kernel: (u32, u32, u32),
    spec: &CacheSpec,
    seeds: std::ops::Range<u64>,
) -> Ran {
    oracle::run::<P, E>(what, policy, kernel, spec, seeds).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// Presets with one changed policy, to run code that no preset runs.
const VARIANTS: [&str; 20] = [
    "slub@7.1,freelist=map",
    "slub@7.1,freelist=map,elastic=12",
    "slub@7.0,freelist=map,sheaves=off,min_partial=0",
    "slub@7.1,elastic=1",
    "slub@7.1,elastic=12",
    "slub@6.1,first_try=nowait-nokswapd-nopage",
    "slqb@2009-01,memoryless=nearest",
    "slqb@2009-09,memoryless=as-asked",
    "slqb@2009-09,memoryless=free-as-local",
    "slqb@2009-09,memoryless=nearest",
    "slqb@2009-09,freebatch=3,hiwater=5",
    "slab@2.6.29,memoryless=nearest,fresh_slab=fills-array",
    "slab@2.6.29,alien=no",
    "slab@6.1,alien=no,limit=5,batchcount=2",
    "slab@6.1,memoryless=as-asked,limit=3,shared=1",
    "slab@2.6.29,memoryless=alloc-nearest,limit=3",
    "slab@6.1,shared=0,limit=1",
    "slob@6.1,readd=small",
    "slob@6.1,next_fit=no",
    "slob@6.1,small_below=65536,medium_below=65536",
];

/// The release of the page allocator for a preset.
fn kernel_of(preset: Preset) -> (u32, u32, u32) {
    match preset {
        // SLQB was posted between two releases.
        Preset::Slqb(_) => (2, 6, 31),
        _ => {
            let release = preset.release();
            (release.major as u32, release.minor as u32, release.patch as u32)
        }
    }
}

/// Runs `f` for every preset and variant, on threads: each world belongs to one thread.
fn every_preset(f: impl Fn(Preset) + Sync) {
    let variants = VARIANTS.map(|text| Preset::parse(text).expect("a preset"));
    let presets: Vec<Preset> = Preset::all().chain(variants).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(preset) = presets.get(next.fetch_add(1, Ordering::Relaxed)) {
            f(*preset);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap_or_else(|wrong| resume_unwind(wrong)));
    });
}

/// A preset's engine in two worlds, for a function that is generic over the engine.
macro_rules! with_engine {
    ($preset:expr, $function:ident, $($world:ty),+) => {
        match $preset {
            Preset::Slub(policy) => $function::<$(Slub<$world>),+>($preset, &policy),
            Preset::Slqb(policy) => $function::<$(Slqb<$world>),+>($preset, &policy),
            Preset::Slab(policy) => $function::<$(SlabEngine<$world>),+>($preset, &policy),
            Preset::Slob(policy) => $function::<$(Slob<$world>),+>($preset, &policy),
            Preset::Registered(_) => unreachable!("none is registered"),
        }
    };
}

/// Checks that the programs used the features that they test.
fn enough(preset: Preset, ran: Ran, allocs: u64, slabs: u64) {
    println!("{preset}: {ran:?}");
    assert!(ran.allocs > allocs && ran.slabs > slabs, "{preset}: the programs did too little: {ran:?}");
    assert!(ran.lent > allocs / 20, "{preset}: too few objects came from prefilled sheaves: {ran:?}");
    // In 6.18 only one cache of six has sheaves.
    let sheaves = matches!(preset, Preset::Slub(policy) if policy.sheaves != Sheaves::Off);
    assert_eq!(ran.collected > allocs / 200, sheaves, "{preset}: RCU frees that sheaves collected: {ran:?}");
}

/// The model on every machine, with slots that serve and with slots that are always unavailable.
fn model<E: Engine<Model>, R: Engine<Refusing<Model>, Policy = E::Policy>>(
    preset: Preset,
    policy: &E::Policy,
) {
    let ran = oracle::model::<E, R>(&preset.to_string(), policy, kernel_of(preset), effort(4));
    enough(preset, ran.unwrap_or_else(|wrong| panic!("{wrong}")), 10_000, 500);
}

#[test]
fn every_preset_in_the_model() {
    every_preset(|preset| with_engine!(preset, model, Model, Refusing<Model>));
}

/// A CPU's exit, a shrink and a grace period do what they promise.
fn does_its_duties<E: Engine<Model>>(preset: Preset, policy: &E::Policy) {
    let done = duties::<E>(policy, kernel_of(preset));
    if matches!(preset, Preset::Slqb(_)) {
        // SLQB moves nothing: the CPU still owns its pages. It is the last duty.
        assert!(done.as_ref().is_err_and(|wrong| wrong.starts_with("cpu_down: ")), "{preset}: {done:?}");
        return;
    }
    assert_eq!(done, Ok(()), "{preset}");
}

#[test]
fn every_preset_does_its_duties() {
    every_preset(|preset| with_engine!(preset, does_its_duties, Model));
}

/// The machine with clocks does and counts what the machine without them does.
fn clocks<E: Engine<Timed>, M: Engine<Model, Policy = E::Policy>>(preset: Preset, policy: &E::Policy) {
    let kernel = kernel_of(preset);
    for (name, machine) in machines() {
        for spec in specs() {
            let cpus = machine.cpu_node.len() as u16;
            let hardware = Hardware {
                core: (0..cpus).collect(),
                llc: machine.cpu_node.clone(),
                socket: machine.cpu_node.clone(),
                costs: Costs { l1: 1_000, transfer: vec![(10, 50_000)], ..Costs::default() },
            };
            let mut timed =
                TimedMachine::new(machine.clone(), hardware, Paths::default()).expect("the spec is right");
            let mut counted = Machine::new(machine.clone()).expect("the spec is right");
            let what = format!("{preset} on {name}, with clocks");
            let with_clocks = timed.enter(|| {
                let ran = check::<Timed, E>(&what, policy, kernel, &spec, 0..2);
                (ran, Event::ALL.iter().map(|event| Timed::counted(*event)).collect::<Vec<_>>())
            });
            let without = counted.enter(|| {
                let ran = check::<Model, M>(&what, policy, kernel, &spec, 0..2);
                (ran, Event::ALL.iter().map(|event| Model::counted(*event)).collect::<Vec<_>>())
            });
            assert_eq!(with_clocks, without, "{what}");
        }
    }
}

#[test]
fn every_preset_on_a_machine_with_clocks() {
    every_preset(|preset| with_engine!(preset, clocks, Timed, Model));
}

/// The worlds other than the model: checked memory on one thread, and static memory.
fn other_worlds<A: Engine<Alone>, B: Engine<Bare<true>, Policy = A::Policy>>(
    preset: Preset,
    policy: &A::Policy,
) {
    const SHAPE: Shape = Shape { node_frames: &[1 << 10, 1 << 10, 0], ..Shape::MEMORYLESS };
    let kernel = kernel_of(preset);
    let mut ran = Ran::default();
    for spec in specs() {
        let what = format!("{preset} on checked memory");
        ran += Alone::enter(SHAPE, || check::<Alone, A>(&what, policy, kernel, &spec, 0..2));
        let what = format!("{preset} on static memory");
        ran += Bare::<true>::enter(|| check::<Bare<true>, B>(&what, policy, kernel, &spec, 2..3));
    }
    enough(preset, ran, 3_000, 100);
}

#[test]
fn every_preset_in_other_worlds() {
    every_preset(|preset| with_engine!(preset, other_worlds, Alone, Bare<true>));
}

/// A constructor runs once for every object of every new slab, not at every allocation. With `None`, as for
/// SLOB, it runs at every allocation.
fn constructs<E: Engine<Model>>(name: &str, policy: &E::Policy, runs: Option<u32>) {
    thread_local!(static CONSTRUCTED: Cell<u32> = const { Cell::new(0) });
    CONSTRUCTED.set(0);
    let mut machine = Machine::new(MachineSpec::uniform(1, 1, GIB)).expect("the spec is right");
    machine.enter(|| {
        let pages = Pages::new(PagesPolicy::for_release(6, 1, 0));
        let flags = CacheFlags::CONSTRUCTOR;
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
    constructs::<SlabEngine<Model>>("slab", &SlabPolicy::PRESETS[2], None);
    constructs::<SlabEngine<Model>>("slab@2.4", &SlabPolicy::PRESETS[0], None);
}

/// Whether a program of an engine finds the planted fault of a world.
fn finds<T: Twist<Alone>, E: Engine<Twisted<Alone, T>>>(fault: &str, policy: &E::Policy) -> bool {
    const SHAPE: Shape = Shape { node_frames: &[1 << 10, 1 << 10, 0], ..Shape::MEMORYLESS };
    let spec = CacheSpec::of_size(512);
    let wrong = (0..8).find_map(|seed| {
        let run = || {
            let runner = Runner::<Twisted<Alone, T>, E>::new(&spec, policy, (6, 1, 0));
            runner.run(&Program::random(seed, 600)).err()
        };
        // A panic of the engine (a broken invariant) counts as finding the fault.
        guard(|| Alone::enter(SHAPE, run)).unwrap_or_else(Some)
    });
    println!("{fault}: {}", wrong.as_deref().unwrap_or("not found"));
    wrong.is_some()
}

/// Programs find a planted fault in each engine's own structure. They cannot find a fault that needs two CPUs
/// at once.
#[test]
fn planted_faults_are_found() {
    fn policy<T>(text: &str, of: fn(Preset) -> Option<T>) -> T {
        Preset::parse(text).ok().and_then(of).expect("a preset of this engine")
    }
    let slub =
        |text| policy(text, |preset| if let Preset::Slub(policy) = preset { Some(policy) } else { None });
    let slqb = policy("slqb", |preset| if let Preset::Slqb(policy) = preset { Some(policy) } else { None });
    let slob = policy("slob", |preset| if let Preset::Slob(policy) = preset { Some(policy) } else { None });
    // Without shared arrays, only alien arrays hold objects of other nodes.
    let slab =
        policy("slab,shared=0", |preset| if let Preset::Slab(policy) = preset { Some(policy) } else { None });
    for (found, as_expected) in [
        (finds::<CutList, Slub<_>>("a list is cut, SLUB", &slub("slub@6.1")), true),
        (finds::<CutList, Slqb<_>>("a list is cut, SLQB", &slqb), true),
        (finds::<ForgetfulArray, SlabEngine<_>>("an alien array forgets one, SLAB", &slab), true),
        (finds::<NoGrowth, Slob<_>>("a freed block does not grow, SLOB", &slob), true),
        (finds::<FullArray, Slub<_>>("a full sheaf takes one more", &slub("slub@7.0")), true),
        (finds::<LateHeader, Slub<_>>("a barn without its lock", &slub("slub@7.0")), false),
    ] {
        assert_eq!(found, as_expected);
    }
}
