//! A kernel's slab caches on the machine with clocks: named caches and the classes of kmalloc, of any engine.
//!
//! Workloads reach the engine through [`Heap`], so they are written once for all engines. Caches are not
//! merged here: each name has its own.

pub mod boot;
pub mod paths;
pub mod placement;
pub(crate) mod start;

use slablab_model::{Addr, Timed};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, FrameKind, Frames, Gfp, NodeId, Pfn, Topology, Work};
use slablab_slabs::clock::Clock;
use slablab_slabs::engines::{slab::SlabEngine, slob::Slob, slqb::Slqb, slub::Slub};
use slablab_slabs::kmalloc::{Class, KmallocRule, KmallocType};
use slablab_slabs::registered::{Cycles, Registered};
use slablab_slabs::{
    Backing, CacheId, CacheSpec, Engine, Family, FunctionCosts, Geometry, Metadata, Place, Preset, Release,
    Sheaf, Usage, slab::Slab,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A cache's number within its heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheNumber(pub u16);

/// Where a request of kmalloc is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kmalloc {
    /// A class's cache.
    Cache(CacheNumber),
    /// Pages of this order, from the page allocator.
    Pages(u8),
}

/// A named cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name, as in /proc/slabinfo.
    pub name: String,
    /// What its objects are.
    pub spec: CacheSpec,
}

/// The slab caches of a simulated kernel.
pub trait Heap {
    /// The named caches in the order in which they were given, then the classes of kmalloc.
    fn caches(&self) -> &[Named];
    /// The cache or the pages that serve a kmalloc of `bytes` bytes.
    fn kmalloc(&self, bytes: u32) -> Kmalloc;
    /// An object, from `node` if one is asked for. `None` without memory.
    fn alloc(&self, cache: CacheNumber, gfp: Gfp, node: Option<NodeId>) -> Option<Addr>;
    /// Frees an object of `cache`.
    ///
    /// # Panics
    /// If no allocated object of the cache starts there.
    fn free(&self, cache: CacheNumber, object: Addr);
    /// Frees an object after the readers that run now have ended. `false`: the engine does not collect such
    /// objects; the caller waits for the grace period and then frees it.
    fn free_rcu(&self, cache: CacheNumber, object: Addr) -> bool;
    /// A sheaf with at least `objects` objects, which are the caller's (`kmem_cache_prefill_sheaf`). `None`
    /// without memory.
    fn prefill(&self, cache: CacheNumber, gfp: Gfp, objects: u32) -> Option<Sheaf<Timed>>;
    /// An object of a prefilled sheaf; `None` if it is used up.
    fn alloc_prefilled(&self, cache: CacheNumber, sheaf: &mut Sheaf<Timed>) -> Option<Addr>;
    /// Hands a prefilled sheaf back (`kmem_cache_return_sheaf`).
    fn return_prefilled(&self, cache: CacheNumber, sheaf: Sheaf<Timed>);
    /// Returns the empty slabs of a cache to the page allocator, as after a shrinker freed its objects
    /// (`kmem_cache_shrink`). Returns the number of slabs.
    fn shrink(&self, cache: CacheNumber) -> u64;
    /// One turn of page reclaim's clock over the caches (`kmem_cache_reap` of 2.4). Returns the pages that
    /// went; 0 for engines that return empty slabs in other ways.
    fn reap(&self) -> u64;
    /// Makes a slab of a cache as an earlier life would have left it ([`Engine::seed`]).
    fn seed(&self, cache: CacheNumber, node: NodeId, place: Place, free: &[u16]);
    /// The last [`Heap::seed`] was made.
    fn seeded(&self);
    /// A block of pages for the caller itself, near `node`.
    fn alloc_pages(&self, order: u8, gfp: Gfp, node: NodeId) -> Option<Pfn>;
    /// The page allocator below the caches.
    fn pages(&self) -> &Pages<Timed>;
    /// Frees a block of pages.
    fn free_pages(&self, pfn: Pfn);
    /// Runs work that an engine deferred.
    fn work(&self, cpu: CpuId, work: Work);
    /// How often a cache counted an event, over all CPUs.
    fn counted(&self, cache: CacheNumber, event: Event) -> u64;
    /// How often a cache counted an event on one CPU.
    fn counted_on(&self, cache: CacheNumber, cpu: CpuId, event: Event) -> u64;
    /// Calls `each` with what every function of the engine cost so far that reports its own code
    /// ([`Engine::functions`]).
    fn functions(&self, each: &mut dyn FnMut(&str, FunctionCosts));
    /// The layout of a cache's slabs.
    fn geometry(&self, cache: CacheNumber) -> Geometry;
    /// What a cache holds.
    fn usage(&self, cache: CacheNumber) -> Usage;
    /// Bytes of all caches' slabs.
    fn slab_bytes(&self) -> u64;
    /// Calls `watch` at the begin (`true`) and the end of each allocation inside another one.
    fn watch_nested(&self, watch: Rc<dyn Fn(bool)>);
}

impl dyn Heap {
    /// The number of the cache with this name.
    pub fn named(&self, name: &str) -> Option<CacheNumber> {
        self.caches().iter().position(|cache| cache.name == name).map(|at| CacheNumber(at as u16))
    }

    /// Allocates `bytes` bytes with kmalloc.
    pub fn alloc_bytes(&self, bytes: u32, gfp: Gfp, node: Option<NodeId>) -> Option<Addr> {
        match self.kmalloc(bytes) {
            Kmalloc::Cache(cache) => self.alloc(cache, gfp, node),
            Kmalloc::Pages(order) => {
                pass_on();
                let near = node.unwrap_or_else(|| Timed::cpu_node(Timed::cpu()));
                self.alloc_pages(order, gfp | Gfp::COMP, near).map(|pfn| Timed::address(pfn, 0))
            }
        }
    }

    /// Frees what `alloc_bytes` returned for a request of `bytes` bytes.
    pub fn free_bytes(&self, bytes: u32, object: Addr) {
        match self.kmalloc(bytes) {
            Kmalloc::Cache(cache) => self.free(cache, object),
            Kmalloc::Pages(_) => {
                pass_on();
                self.free_pages(Timed::locate(object).0);
            }
        }
    }
}

/// The slab caches of a kernel with this preset, on the machine that is entered.
pub fn heap(preset: &Preset, named: &[Named]) -> Rc<dyn Heap> {
    heap_with(preset, preset.pages(), named)
}

/// [`heap`] with a page allocator of other rules than the preset's kernel has: for the zones and watermarks
/// of one machine, or for worlds where waiting for reclaim costs time.
pub fn heap_with(preset: &Preset, pages: PagesPolicy, named: &[Named]) -> Rc<dyn Heap> {
    match preset {
        Preset::Slub(policy) => heap_of::<Slub<Timed>>(preset, policy, pages, named),
        Preset::Slqb(policy) => heap_of::<Slqb<Timed>>(preset, policy, pages, named),
        Preset::Slab(policy) => heap_of::<SlabEngine<Timed>>(preset, policy, pages, named),
        Preset::Slob(policy) => heap_of::<Slob<Timed>>(preset, policy, pages, named),
        Preset::Registered(own) => (own.table::<Simulated>().heap)(own, pages, named),
    }
}

/// The caches of this engine.
fn heap_of<E: Engine<Timed> + 'static>(
    preset: &Preset,
    policy: &E::Policy,
    pages: PagesPolicy,
    named: &[Named],
) -> Rc<dyn Heap> {
    Rc::new(Caches::<E>::new(preset, policy, pages, named))
}

/// A registered engine in the simulated kernel: a table of its
/// [`Registration`](slablab_slabs::registered::Registration).
#[derive(Debug)]
pub struct Simulated {
    heap: fn(&Registered, PagesPolicy, &[Named]) -> Rc<dyn Heap>,
    /// What its paths cost; `None`: what those of its release's SLUB do.
    cycles: Option<Cycles>,
}

impl Simulated {
    /// The functions of `F`.
    pub const fn of<F: Family>() -> Simulated {
        Simulated {
            heap: |own, pages, named| {
                heap_of::<F::On<Timed>>(&Preset::Registered(*own), &own.policy(), pages, named)
            },
            cycles: F::CYCLES,
        }
    }
}

/// The caches of one engine.
struct Caches<E: Engine<Timed>> {
    pages: Pages<Timed>,
    common: E::Common,
    caches: Vec<E>,
    names: Vec<Named>,
    /// Where the classes of kmalloc begin.
    classes: u16,
    rule: KmallocRule,
    nested: RefCell<Option<Nested>>,
    clock: Cell<Clock>,
}

/// What hears of the begin (`true`) and the end of each allocation inside another one: of sheaves, arrays
/// and lists that lie outside of their slabs.
type Nested = Rc<dyn Fn(bool)>;

/// Cycles of kmalloc's way into the page allocator, and of kfree's, beside lines and locks (assumed): with
/// these a block takes 100 ns on barcelona without contention, the least of the 100 to 300 that are known
/// (from memory). Other blocks are of faults, forks and TCP, whose own prices have them, or of slabs.
const PASSED_ON: u64 = 110;

/// Charges that kmalloc passes a request on to the page allocator, or kfree a block.
pub(crate) fn pass_on() {
    Timed::cycles(PASSED_ON);
}

/// The classes of a preset. Until 2.6.29 SLUB passed what is larger than a page to the page allocator.
fn rule(preset: &Preset) -> KmallocRule {
    let rule = KmallocRule::of(preset, Timed::page_shift());
    match preset {
        Preset::Slub(policy) if policy.release < Release::new(2, 6, 30) => {
            rule.with_max_size(1 << Timed::page_shift())
        }
        _ => rule,
    }
}

/// The names of a preset's classes of kmalloc, on the machine that is entered.
fn class_names(preset: &Preset) -> Vec<String> {
    let rule = rule(preset);
    (0..rule.class_count()).map(|index| rule.name(KmallocType::Normal, index).to_string()).collect()
}

impl<E: Engine<Timed>> Caches<E> {
    fn new(preset: &Preset, policy: &E::Policy, pages: PagesPolicy, named: &[Named]) -> Self {
        let rule = rule(preset);
        let class = |index: u8| Named {
            name: rule.name(KmallocType::Normal, index).to_string(),
            spec: rule.spec(KmallocType::Normal, index),
        };
        let names: Vec<Named> = named.iter().cloned().chain((0..rule.class_count()).map(class)).collect();
        let create = |(id, named): (usize, &Named)| {
            let mut cache = E::create(CacheId(id as u32), &named.spec, policy);
            cache.set_name(&named.name);
            cache
        };
        let caches: Vec<E> = names.iter().enumerate().map(create).collect();
        let caches = Caches {
            pages: Pages::new(pages),
            common: E::Common::default(),
            caches,
            names,
            classes: named.len() as u16,
            rule,
            nested: RefCell::default(),
            clock: Cell::default(),
        };
        for cpu in (0..Timed::cpus()).map(CpuId) {
            caches.with_backing(|backing| caches.caches.iter().for_each(|cache| cache.cpu_up(backing, cpu)));
        }
        caches
    }

    fn plain(&self) -> Backing<'_, Timed, E::Common> {
        Backing::new(&self.pages, &self.common)
    }

    fn nest(&self, begins: bool) {
        let nested = self.nested.borrow().clone();
        if let Some(nested) = nested {
            nested(begins);
        }
    }

    fn cache(&self, CacheNumber(cache): CacheNumber) -> &E {
        &self.caches[cache as usize]
    }

    #[inline]
    fn with_backing<T>(&self, f: impl FnOnce(&Backing<'_, Timed, E::Common>) -> T) -> T {
        f(&Backing { metadata: Some(self), ..self.plain() })
    }
}

/// Sheaves and arrays are objects of the classes of kmalloc.
impl<E: Engine<Timed>> Metadata<Timed> for Caches<E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Addr> {
        let Class::Small(class) = self.rule.class_of(bytes.into()) else { return None };
        self.nest(true);
        let object = self.caches[(self.classes + class as u16) as usize].alloc(&self.plain(), gfp, None);
        self.nest(false);
        object
    }

    fn free(&self, object: Addr) {
        let (slab, _) = Slab::<Timed>::of(object).expect("a sheaf is in a slab");
        // The cache is in the low 24 bits, whatever else an engine keeps there.
        let cache = (slab.owner() & 0xFF_FFFF) as usize;
        self.caches[cache].free(&self.plain(), object).expect("a sheaf is an object of its cache");
    }
}

impl<E: Engine<Timed>> Heap for Caches<E> {
    fn caches(&self) -> &[Named] {
        &self.names
    }

    fn kmalloc(&self, bytes: u32) -> Kmalloc {
        match self.rule.class_of(bytes.max(1).into()) {
            Class::Small(class) => Kmalloc::Cache(CacheNumber(self.classes + class as u16)),
            Class::Large(order) => Kmalloc::Pages(order),
            Class::Zero => unreachable!("a request has at least a byte"),
        }
    }

    fn alloc(&self, cache: CacheNumber, gfp: Gfp, node: Option<NodeId>) -> Option<Addr> {
        self.with_backing(|backing| self.cache(cache).alloc(backing, gfp, node))
    }

    fn free(&self, cache: CacheNumber, object: Addr) {
        let freed = self.with_backing(|backing| self.cache(cache).free(backing, object));
        if let Err(misuse) = freed {
            panic!("free of {object:?} in {}: {misuse}", self.names[cache.0 as usize].name);
        }
    }

    fn free_rcu(&self, cache: CacheNumber, object: Addr) -> bool {
        let taken = self.with_backing(|backing| self.cache(cache).free_rcu(backing, object));
        taken.unwrap_or_else(|misuse| panic!("free of {object:?}: {misuse}"))
    }

    fn prefill(&self, cache: CacheNumber, gfp: Gfp, objects: u32) -> Option<Sheaf<Timed>> {
        self.with_backing(|backing| self.cache(cache).prefill_sheaf(backing, gfp, objects))
    }

    fn alloc_prefilled(&self, cache: CacheNumber, sheaf: &mut Sheaf<Timed>) -> Option<Addr> {
        self.cache(cache).alloc_from_lent(sheaf, Gfp::KERNEL)
    }

    fn return_prefilled(&self, cache: CacheNumber, sheaf: Sheaf<Timed>) {
        self.with_backing(|backing| self.cache(cache).return_sheaf(backing, Gfp::KERNEL, sheaf));
    }

    fn shrink(&self, cache: CacheNumber) -> u64 {
        self.with_backing(|backing| self.cache(cache).shrink(backing))
    }

    fn reap(&self) -> u64 {
        let mut clock = self.clock.get();
        let pages = self.with_backing(|backing| clock.reap(&self.caches, backing));
        self.clock.set(clock);
        pages
    }

    fn seed(&self, cache: CacheNumber, node: NodeId, place: Place, free: &[u16]) {
        self.with_backing(|backing| self.cache(cache).seed(backing, node, place, free));
    }

    fn seeded(&self) {
        self.with_backing(|backing| self.caches.iter().for_each(|cache| cache.seeded(backing)));
    }

    fn alloc_pages(&self, order: u8, gfp: Gfp, node: NodeId) -> Option<Pfn> {
        let kind = if gfp.has(Gfp::COMP) { FrameKind::Large } else { FrameKind::Allocated };
        self.pages.alloc(gfp, order, node, kind)
    }

    fn pages(&self) -> &Pages<Timed> {
        &self.pages
    }

    fn free_pages(&self, pfn: Pfn) {
        self.pages.free(pfn);
    }

    fn work(&self, cpu: CpuId, work: Work) {
        self.with_backing(|backing| self.caches[work.cache as usize].work(backing, cpu, work));
    }

    fn counted(&self, cache: CacheNumber, event: Event) -> u64 {
        self.cache(cache).counted(event)
    }

    fn counted_on(&self, cache: CacheNumber, cpu: CpuId, event: Event) -> u64 {
        self.cache(cache).counted_on(cpu, event)
    }

    fn functions(&self, each: &mut dyn FnMut(&str, FunctionCosts)) {
        if let Some(cache) = self.caches.first() {
            cache.functions(each);
        }
    }

    fn geometry(&self, cache: CacheNumber) -> Geometry {
        *self.cache(cache).geometry()
    }

    fn usage(&self, cache: CacheNumber) -> Usage {
        self.cache(cache).usage()
    }

    fn slab_bytes(&self) -> u64 {
        Timed::mapped_frames().0 << Timed::page_shift()
    }

    fn watch_nested(&self, watch: Rc<dyn Fn(bool)>) {
        *self.nested.borrow_mut() = Some(watch);
    }
}
