//! Engines under loom and shuttle.
//!
//! Loom runs two CPUs through every schedule with at most two preemptions, on the racing words alone: a few operations on
//! one prepared slab. Shuttle runs whole programs on two to four CPUs in random schedules. Loom cannot show what needs
//! three preemptions, shuttle cannot show that a schedule it did not draw is right.

use slablab_check::kit::{Job, Kit};
use slablab_check::program::Random;
use slablab_check::{Checked, Limits, Loom, Shape, Shuttle, explore};
use slablab_pages::policy::{MinFree, PcpRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Gfp, Platform};
use slablab_slabs::preset::Preset;
use slablab_slabs::slub::Slub;
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// One cache on one machine, and the objects its users hold.
struct Heap<P: Platform, E> {
    pages: Pages<P>,
    cache: E,
    /// Live objects by address, with the object: also what the CPUs hand to each other.
    live: RefCell<VecDeque<P::Ptr>>,
    addresses: RefCell<BTreeSet<u64>>,
    allocs: Cell<u32>,
}

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
            cache: E::create(CacheId(1), &CacheSpec::of_size(size), policy),
            live: RefCell::default(),
            addresses: RefCell::default(),
            allocs: Cell::new(0),
        })
    }

    fn alloc(&self) -> Option<P::Ptr> {
        let object = self.cache.alloc(&Backing::pages(&self.pages), Gfp::KERNEL, None)?;
        self.allocs.set(self.allocs.get() + 1);
        assert!(self.addresses.borrow_mut().insert(key::<P>(object)), "{object:?} is live twice");
        Some(object)
    }

    fn free(&self, object: P::Ptr) {
        assert!(self.addresses.borrow_mut().remove(&key::<P>(object)), "{object:?} was not live");
        self.cache.free(&Backing::pages(&self.pages), object).expect("the object is the cache's");
    }

    /// Frees what is left; then nothing may be left.
    fn end(&self) {
        let backing = Backing::pages(&self.pages);
        let live = std::mem::take(&mut *self.live.borrow_mut());
        assert_eq!(live.len(), self.addresses.borrow().len(), "objects were lost");
        live.into_iter().for_each(|object| self.free(object));
        P::still(|| {
            assert_eq!(self.cache.destroy(&backing), Ok(()), "objects were lost");
            assert_eq!(self.cache.usage().slabs, 0, "slabs were lost");
            self.pages.check().expect("pages balance");
        });
    }
}

fn policy(text: &str) -> slablab_slabs::slub::SlubPolicy {
    match Preset::parse(text).expect("a preset") {
        Preset::Slub(policy) => policy,
        Preset::Slqb(_) => unreachable!("{text} is SLQB"),
    }
}

type Step<P> = fn(&Heap<P, Slub<P>>);

/// A race of two CPUs over prepared objects: `prepare` runs first on CPU 0, the two steps at once.
struct Race<P: Platform> {
    name: &'static str,
    preset: &'static str,
    prepare: Step<P>,
    first: Step<P>,
    second: Step<P>,
}

/// Runs a race in every schedule within the limits; at the end nothing may be lost.
fn check<K: Kit>(race: Race<Checked<K>>, limits: Limits) {
    let Race { name, preset, prepare, first, second } = race;
    let body = move || {
        Checked::<K>::enter(Shape::ONE_NODE, || {
            let heap = Heap::<Checked<K>, Slub<Checked<K>>>::new(&policy(preset), 1024);
            prepare(&heap);
            let (one, two) = (heap.clone(), heap.clone());
            let jobs: Vec<(CpuId, Job)> =
                vec![(CpuId(0), Box::new(move || first(&one))), (CpuId(1), Box::new(move || second(&two)))];
            Checked::<K>::together(jobs);
            heap.end();
        });
    };
    let explored = explore::<K>(limits, body).unwrap_or_else(|wrong| panic!("{name} ({preset}): {wrong}"));
    println!("{name} ({preset}): {} executions", explored.executions);
    assert!(explored.executions > 1, "{name}: nothing was explored");
}

const PRESETS: [&str; 5] = [
    "slub@6.1,max_order=0,min_partial=0",
    "slub@6.12,max_order=0,min_partial=0",
    "slub@6.1,max_order=0,min_partial=0,cpu_partial=0",
    "slub@6.12,max_order=0,min_partial=2",
    "slub@2.6.32,max_order=0",
];

/// CPU 0 allocates `n` objects, four to a slab, and keeps them for both.
fn hold<P: Testable>(heap: &Heap<P, Slub<P>>, n: usize) {
    for _ in 0..n {
        let object = heap.alloc().expect("memory is left");
        heap.live.borrow_mut().push_back(object);
    }
}

fn alloc_one<P: Testable>(heap: &Heap<P, Slub<P>>) {
    if let Some(object) = heap.alloc() {
        heap.live.borrow_mut().push_back(object);
    }
}

fn free_one<P: Testable>(heap: &Heap<P, Slub<P>>) {
    // The oldest: prepared before the race began, so that the hand-over itself needs no order.
    let object = heap.live.borrow_mut().pop_front();
    object.into_iter().for_each(|object| heap.free(object));
}

fn races<K: Kit>(limits: Limits) {
    for preset in PRESETS {
        let race =
            |name, prepare: Step<Checked<K>>, first, second| Race { name, preset, prepare, first, second };
        // The CPU slab runs out while another CPU frees to it.
        check(race("refill against free", |heap| hold(heap, 4), alloc_one, free_one), limits);
        // Two CPUs free to one full slab.
        check(race("free against free", |heap| hold(heap, 5), free_one, free_one), limits);
        // The last objects of a partial slab go while the other CPU takes slabs off the node's list.
        check(
            race(
                "empty against acquire",
                |heap| {
                    hold(heap, 8);
                    for _ in 0..3 {
                        free_one(heap);
                    }
                },
                |heap| {
                    alloc_one(heap);
                    alloc_one(heap);
                },
                free_one,
            ),
            limits,
        );
        // Slabs are given back while another CPU frees to them.
        check(
            race(
                "shrink against free",
                |heap| hold(heap, 6),
                |heap| {
                    heap.cache.shrink(&Backing::pages(&heap.pages));
                },
                |heap| {
                    free_one(heap);
                    free_one(heap);
                },
            ),
            limits,
        );
    }
}

#[test]
fn loom_races() {
    races::<Loom>(Limits::QUICK);
}

#[test]
fn shuttle_races() {
    races::<Shuttle>(Limits { executions: 300, ..Limits::QUICK });
}

/// Every CPU runs a random program; they free each other's objects.
fn whole<E: Engine<Checked<Shuttle>> + 'static>(name: &str, policy: &E::Policy, shape: Shape, limits: Limits)
where
    E::Policy: Send + Sync + 'static,
{
    let policy = policy.clone();
    let body = move || {
        Checked::<Shuttle>::enter(shape, || {
            let heap = Heap::<Checked<Shuttle>, E>::new(&policy, 700);
            let jobs = (0..Checked::<Shuttle>::cpus()).map(|cpu| -> (CpuId, Job) {
                let heap = heap.clone();
                (
                    CpuId(cpu),
                    Box::new(move || {
                        let mut random = Random(cpu as u64 + 17);
                        for _ in 0..40 {
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
            heap.end();
        });
    };
    let explored = explore::<Shuttle>(limits, body).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    println!("{name}: {} executions", explored.executions);
    assert_eq!(explored.executions, limits.executions as u64, "{name}");
}

#[test]
fn shuttle_whole_slub() {
    let limits = Limits { executions: 150, ..Limits::QUICK };
    for preset in PRESETS {
        for shape in [Shape::ONE_NODE, Shape::TWO_NODES, Shape::MEMORYLESS] {
            whole::<Slub<Checked<Shuttle>>>(preset, &policy(preset), shape, limits);
        }
    }
}
