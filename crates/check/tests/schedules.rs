//! Engines under loom and shuttle.
//!
//! Loom runs two CPUs through every schedule with at most two preemptions, on the racing words alone: a few operations on
//! one prepared slab. Shuttle runs whole programs on two to four CPUs in random schedules. Loom cannot show what needs
//! three preemptions, shuttle cannot show that a schedule it did not draw is right.

use slablab_check::kit::{Job, Kit};
use slablab_check::program::Random;
use slablab_check::{Checked, Explored, Limits, Loom, Shape, Shuttle, Twisted, broken, effort, explore};
use slablab_pages::policy::{MinFree, PcpRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Event, Gfp, Platform};
use slablab_slabs::preset::Preset;
use slablab_slabs::slab_engine::{SlabEngine, SlabPolicy};
use slablab_slabs::slob::{Slob, SlobPolicy};
use slablab_slabs::slqb::{Slqb, SlqbPolicy};
use slablab_slabs::slub::{Slub, SlubPolicy};
use slablab_slabs::{Backing, CacheId, CacheSpec, Common, Engine, Held, Metadata};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One cache on one machine, and the objects its users hold.
struct Heap<P: Platform, E: Engine<P>> {
    pages: Pages<P>,
    common: E::Common,
    cache: E,
    /// What sheaves and arrays are objects of: as large as the sheaves of a cache of 1024 bytes.
    sheaves: E,
    /// Live objects by address, with the object: also what the CPUs hand to each other.
    live: RefCell<VecDeque<P::Ptr>>,
    addresses: RefCell<BTreeSet<u64>>,
    allocs: Cell<u32>,
}

impl<P: Testable, E: Engine<P>> Metadata<P> for Heap<P, E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<P::Ptr> {
        assert!(bytes <= SHEAF_BYTES, "{bytes} bytes of metadata");
        self.sheaves.alloc(&self.plain(), gfp, None)
    }
    fn free(&self, object: P::Ptr) {
        self.sheaves.free(&self.plain(), object).expect("a sheaf is an object of its cache");
    }
}

const SHEAF_BYTES: u32 = 256;

fn key<P: Platform>(object: P::Ptr) -> u64 {
    let (pfn, offset) = P::locate(object);
    ((pfn.0 as u64) << P::page_shift()) + offset as u64
}

impl<P: Testable, E: Engine<P>> Heap<P, E> {
    fn new(policy: &E::Policy, size: u32) -> Rc<Self> {
        Rc::new(Heap {
            // A few frames: no reserves, and no CPU keeps pages for itself.
            pages: Pages::new(PagesPolicy {
                min_free: MinFree::Kib(0),
                pcp: PcpRule::NONE,
                ..PagesPolicy::for_release(6, 1, 0)
            }),
            common: E::Common::default(),
            cache: E::create(CacheId(1), &CacheSpec::of_size(size), policy),
            sheaves: E::create(CacheId(2), &CacheSpec::of_size(SHEAF_BYTES), policy),
            live: RefCell::default(),
            addresses: RefCell::default(),
            allocs: Cell::new(0),
        })
    }

    fn plain(&self) -> Backing<'_, P, E::Common> {
        Backing::new(&self.pages, &self.common)
    }

    fn backing(&self) -> Backing<'_, P, E::Common> {
        Backing { metadata: Some(self), ..self.plain() }
    }

    fn alloc(&self) -> Option<P::Ptr> {
        let object = self.cache.alloc(&self.backing(), Gfp::KERNEL, None)?;
        self.allocs.set(self.allocs.get() + 1);
        assert!(self.addresses.borrow_mut().insert(key::<P>(object)), "{object:?} is live twice");
        Some(object)
    }

    fn free(&self, object: P::Ptr) {
        assert!(self.addresses.borrow_mut().remove(&key::<P>(object)), "{object:?} was not live");
        self.cache.free(&self.backing(), object).expect("the object is the cache's");
    }

    /// Frees what is left; then nothing may be left.
    fn end(&self) {
        let backing = self.backing();
        let live = std::mem::take(&mut *self.live.borrow_mut());
        assert_eq!(live.len(), self.addresses.borrow().len(), "objects were lost");
        live.into_iter().for_each(|object| self.free(object));
        P::still(|| {
            assert_eq!(self.cache.destroy(&backing), Ok(()), "objects were lost");
            assert_eq!(self.sheaves.destroy(&self.plain()), Ok(()), "sheaves were lost");
            assert_eq!(self.cache.usage().slabs, 0, "slabs were lost");
            assert_eq!(self.common.held(), Held::default(), "shared pages were lost");
            self.pages.check().expect("pages balance");
        });
    }
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

type Step<P, E> = fn(&Heap<P, E>);

/// A race of two CPUs over prepared objects: `prepare` runs first on CPU 0, the two steps at once.
struct Race<P: Platform, E: Engine<P>> {
    name: &'static str,
    prepare: Step<P, E>,
    first: Step<P, E>,
    second: Step<P, E>,
}

/// Runs a race in every schedule within the limits; at the end nothing may be lost.
fn explored<K: Kit, P: Testable, E: Engine<P> + 'static>(
    race: &Race<P, E>,
    policy: E::Policy,
    shape: Shape,
    limits: Limits,
) -> Result<Explored, String>
where
    E::Policy: Send + Sync + 'static,
{
    let Race { prepare, first, second, .. } = *race;
    explore::<K>(limits, move || {
        Checked::<K>::enter(shape, || {
            let heap = Heap::<P, E>::new(&policy, 1024);
            prepare(&heap);
            let (one, two) = (heap.clone(), heap.clone());
            let jobs: Vec<(CpuId, Job)> =
                vec![(CpuId(0), Box::new(move || first(&one))), (CpuId(1), Box::new(move || second(&two)))];
            Checked::<K>::together(jobs);
            heap.end();
        });
    })
}

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
        assert!(explored.executions > 1, "{}: nothing was explored", race.name);
    }
}

const SLUBS: [&str; 7] = [
    "slub@6.1,max_order=0,min_partial=0",
    "slub@6.12,max_order=0,min_partial=0",
    "slub@6.1,max_order=0,min_partial=0,cpu_partial=0",
    "slub@6.12,max_order=0,min_partial=2",
    "slub@2.6.32,max_order=0",
    "slub@7.0,max_order=0,min_partial=0,sheaves=off",
    "slub@7.1,max_order=0,min_partial=0",
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

/// CPU 0 allocates `n` objects, four to a slab, and keeps them for both.
fn hold<P: Testable, E: Engine<P>>(heap: &Heap<P, E>, n: usize) {
    for _ in 0..n {
        let object = heap.alloc().expect("memory is left");
        heap.live.borrow_mut().push_back(object);
    }
}

fn alloc_one<P: Testable, E: Engine<P>>(heap: &Heap<P, E>) {
    if let Some(object) = heap.alloc() {
        heap.live.borrow_mut().push_back(object);
    }
}

fn free_one<P: Testable, E: Engine<P>>(heap: &Heap<P, E>) {
    // The oldest: prepared before the race began, so that the hand-over itself needs no order.
    let object = heap.live.borrow_mut().pop_front();
    object.into_iter().for_each(|object| heap.free(object));
}

fn twice<P: Testable, E: Engine<P>>(heap: &Heap<P, E>, step: Step<P, E>) {
    step(heap);
    step(heap);
}

/// What two CPUs can do to each other's slabs.
fn races<P: Testable, E: Engine<P>>() -> [Race<P, E>; 4] {
    [
        // The CPU's own objects run out while another CPU frees to it.
        Race {
            name: "refill against free",
            prepare: |heap| hold(heap, 4),
            first: alloc_one,
            second: free_one,
        },
        // Two CPUs free to one full slab.
        Race { name: "free against free", prepare: |heap| hold(heap, 5), first: free_one, second: free_one },
        // The last objects of a partial slab go while the other CPU takes slabs off the node's list.
        Race {
            name: "empty against acquire",
            prepare: |heap| {
                hold(heap, 8);
                twice(heap, free_one);
                free_one(heap);
            },
            first: |heap| twice(heap, alloc_one),
            second: free_one,
        },
        // Slabs are given back while another CPU frees to them.
        Race {
            name: "shrink against free",
            prepare: |heap| hold(heap, 6),
            first: |heap| {
                heap.cache.shrink(&heap.backing());
            },
            second: |heap| twice(heap, free_one),
        },
    ]
}

/// Objects handed back to the list that owns their page, while its owner claims them.
fn hand_over<P: Testable, E: Engine<P>>() -> [Race<P, E>; 2] {
    [
        Race {
            name: "claim against hand-over",
            prepare: |heap| hold(heap, 4),
            first: |heap| twice(heap, alloc_one),
            second: |heap| twice(heap, free_one),
        },
        Race {
            name: "free against hand-over",
            prepare: |heap| hold(heap, 6),
            first: |heap| twice(heap, free_one),
            second: |heap| twice(heap, free_one),
        },
    ]
}

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

#[test]
fn loom_races() {
    every_race::<Loom>(Limits::QUICK);
}

#[test]
fn shuttle_races() {
    every_race::<Shuttle>(Limits { executions: effort(300) as usize, ..Limits::QUICK });
}

/// What a whole program is run on.
#[derive(Clone, Copy)]
struct Load {
    shape: Shape,
    size: u32,
    /// Steps of each CPU.
    steps: u32,
    /// An event that some execution must count.
    seen: Option<Event>,
}

impl Load {
    const fn on(shape: Shape) -> Load {
        Load { shape, size: 700, steps: 40, seen: None }
    }
}

/// Every CPU runs a random program; they free each other's objects.
fn whole<E: Engine<Checked<Shuttle>> + 'static>(name: &str, policy: &E::Policy, load: Load, limits: Limits)
where
    E::Policy: Send + Sync + 'static,
{
    let policy = policy.clone();
    let Load { shape, size, steps, seen } = load;
    let saw = Arc::new(AtomicU64::new(0));
    let counted = saw.clone();
    let body = move || {
        Checked::<Shuttle>::enter(shape, || {
            let heap = Heap::<Checked<Shuttle>, E>::new(&policy, size);
            let jobs = (0..Checked::<Shuttle>::cpus()).map(|cpu| -> (CpuId, Job) {
                let heap = heap.clone();
                (
                    CpuId(cpu),
                    Box::new(move || {
                        let mut random = Random(cpu as u64 + 17);
                        for _ in 0..steps {
                            if random.below(100) < 55 {
                                if let Some(object) = heap.alloc() {
                                    heap.live.borrow_mut().push_back(object);
                                }
                            } else {
                                let held = heap.live.borrow().len() as u64;
                                let taken = (held > 0)
                                    .then(|| {
                                        heap.live.borrow_mut().swap_remove_back(random.below(held) as usize)
                                    })
                                    .flatten();
                                taken.into_iter().for_each(|object| heap.free(object));
                            }
                        }
                    }),
                )
            });
            let jobs = jobs.collect();
            Checked::<Shuttle>::together(jobs);
            assert!(heap.allocs.get() > 20, "only {} allocations", heap.allocs.get());
            counted.fetch_add(seen.map_or(1, |event| heap.cache.counted(event)), Ordering::Relaxed);
            heap.end();
        });
    };
    let explored = explore::<Shuttle>(limits, body).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    println!("{name}: {} executions", explored.executions);
    assert_eq!(explored.executions, limits.executions as u64, "{name}");
    assert!(saw.load(Ordering::Relaxed) > 0, "{name}: no execution counted {seen:?}");
}

/// Four objects to a sheaf, so that sheaves go through the barn, are flushed and are filled while others do the same.
#[test]
fn shuttle_sheaves() {
    let limits = Limits { executions: effort(100) as usize, ..Limits::QUICK };
    let frames = |shape, node_frames| Shape { node_frames, ..shape };
    // Where each CPU has a node to itself, a barn's sheaf is seldom wanted.
    for (shape, seen) in [
        (frames(Shape::ONE_NODE, &[128]), Event::BarnGet),
        (frames(Shape::TWO_NODES, &[64, 64]), Event::SheafRefill),
        (frames(Shape::MEMORYLESS, &[64, 64, 0]), Event::BarnPut),
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

/// What finds a fault in a world: the race and the finding. A world with a fault that no race finds is a test that cannot
/// fail.
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
