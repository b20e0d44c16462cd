//! One cache on one machine, used by several CPUs, and the objects that they hold.

use slablab_pages::policy::{MinFree, PcpRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{Gfp, NodeId, Pfn, Platform, Work, WorkKind};
use slablab_slabs::{Backing, CacheId, CacheSpec, Common, Engine, Front, Held, Metadata, Sheaf};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One cache on one machine, and its allocated objects.
pub struct Heap<P: Platform, E: Engine<P>> {
    pages: Pages<P::Ground>,
    common: E::Common,
    /// The cache that is checked.
    pub cache: E,
    /// The cache that holds sheaves and arrays.
    sheaves: E,
    /// Live objects in the order of allocation. CPUs also pass objects to each other through this queue.
    pub live: RefCell<VecDeque<P::Ptr>>,
    /// Addresses of live objects, and of objects that wait for a grace period; no others.
    addresses: RefCell<BTreeSet<u64>>,
    lent: RefCell<VecDeque<Sheaf<P>>>,
    /// Allocations that succeeded.
    pub allocs: Cell<u32>,
    rungs: Cell<Option<Rungs<P, E>>>,
    /// Whether several CPUs run.
    pub racing: Cell<bool>,
}

/// Calls that a malloc's rungs served after an exchange of the main sheaf while several CPUs ran, in all
/// tests of the process.
pub static EXCHANGED: AtomicU64 = AtomicU64::new(0);

type Alloc<P, E> = fn(&E) -> Option<<P as slablab_platform::Frames>::Ptr>;
type Free<P, E> = fn(&E, <P as slablab_platform::Frames>::Ptr, Pfn) -> bool;

/// What a malloc tries before the engine's own functions.
struct Rungs<P: Platform, E> {
    /// The array alone; then with an exchange.
    alloc: [Alloc<P, E>; 2],
    free: [Free<P, E>; 2],
}

impl<P: Platform, E> Clone for Rungs<P, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform, E> Copy for Rungs<P, E> {}

/// The number of the cache in the deferred work of its engine.
const CACHE: CacheId = CacheId(1);
const SHEAVES: CacheId = CacheId(2);
/// Work for an object whose grace period has ended: the object may be allocated again.
const READERS: CacheId = CacheId(3);
/// Work for an object whose grace period has ended, and that the engine did not collect: the test frees it.
const LATER: CacheId = CacheId(4);

impl<P: Testable, E: Engine<P>> Metadata<P> for Heap<P, E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<P::Ptr> {
        // An engine whose arrays are larger runs without them, as it does when memory is short.
        if bytes > self.sheaves.geometry().object_size {
            return None;
        }
        self.sheaves.alloc(&self.plain(), gfp, None)
    }
    fn free(&self, object: P::Ptr) {
        self.sheaves.free(&self.plain(), object).expect("a sheaf is an object of its cache");
    }
}

fn key<P: Platform>(object: P::Ptr) -> u64 {
    let (pfn, offset) = P::locate(object);
    ((pfn.0 as u64) << P::page_shift()) + offset as u64
}

impl<P: Testable, E: Engine<P>> Heap<P, E> {
    /// A cache of objects of `size` bytes.
    pub fn new(policy: &E::Policy, size: u32) -> Rc<Self> {
        // On a machine of a few frames, use short arrays and the sheaves of a cache of 1024 bytes.
        let sheaf_bytes = if P::node_frames(NodeId(0)).1 < 32 { 256 } else { 2048 };
        Rc::new(Heap {
            // With few frames, use no reserves and no per-CPU page lists.
            pages: Pages::new(PagesPolicy {
                min_free: MinFree::Kib(0),
                pcp: PcpRule::NONE,
                ..PagesPolicy::for_release(6, 1, 0)
            }),
            common: E::Common::default(),
            cache: E::create(CACHE, &CacheSpec::of_size(size), policy),
            sheaves: E::create(SHEAVES, &CacheSpec::of_size(sheaf_bytes), policy),
            live: RefCell::default(),
            addresses: RefCell::default(),
            lent: RefCell::default(),
            allocs: Cell::new(0),
            rungs: Cell::new(None),
            racing: Cell::new(false),
        })
    }

    fn plain(&self) -> Backing<'_, P, E::Common> {
        Backing::new(&self.pages, &self.common)
    }

    /// What the cache uses.
    pub fn backing(&self) -> Backing<'_, P, E::Common> {
        Backing { metadata: Some(self), ..self.plain() }
    }

    /// Allocates an object; `None` without memory.
    pub fn alloc(&self) -> Option<P::Ptr> {
        let object = self.rungs.get().and_then(|rungs| self.alloc_by(rungs));
        let object = object.or_else(|| self.cache.alloc(&self.backing(), Gfp::KERNEL, None));
        object.inspect(|object| self.handed_out(*object))
    }

    fn alloc_by(&self, Rungs { alloc: [fast, slow], .. }: Rungs<P, E>) -> Option<P::Ptr> {
        fast(&self.cache).or_else(|| slow(&self.cache).inspect(|_| self.note_exchange()))
    }

    fn free_by(&self, Rungs { free: [fast, slow], .. }: Rungs<P, E>, object: P::Ptr) -> bool {
        let Some((slab, state)) = Pages::<P>::block_of(object) else { return false };
        // The fast rung is for objects of the CPU's own node.
        let fast = state.node == P::memory_node() && fast(&self.cache, object, slab);
        if fast {
            return true;
        }
        let slow = slow(&self.cache, object, slab);
        if slow {
            self.note_exchange();
        }
        slow
    }

    fn note_exchange(&self) {
        EXCHANGED.fetch_add(u64::from(self.racing.get()), Ordering::Relaxed);
    }

    fn handed_out(&self, object: P::Ptr) {
        self.allocs.set(self.allocs.get() + 1);
        assert!(self.addresses.borrow_mut().insert(key::<P>(object)), "{object:?} is live twice");
    }

    /// Frees a live object.
    pub fn free(&self, object: P::Ptr) {
        assert!(self.addresses.borrow_mut().remove(&key::<P>(object)), "{object:?} was not live");
        if !self.rungs.get().is_some_and(|rungs| self.free_by(rungs, object)) {
            self.cache.free(&self.backing(), object).expect("the object is the cache's");
        }
    }

    /// Frees a live object when the readers that run now have ended.
    pub fn free_rcu(&self, object: P::Ptr) {
        let after = |cache: CacheId| {
            let work = Work { kind: WorkKind::FreeObject, cache: cache.0, argument: key::<P>(object) };
            P::after_grace_period(work);
        };
        // Register this callback first: the engine's own grace period may end before a later one begins.
        after(READERS);
        if !self.cache.free_rcu(&self.backing(), object).expect("the object is the cache's") {
            after(LATER);
        }
    }

    /// Ends all grace periods, and frees the objects that waited for them.
    pub fn end_grace_period(&self) {
        P::end_grace_period();
        while let Some((cpu, work)) = P::due() {
            match CacheId(work.cache) {
                CACHE => self.cache.work(&self.backing(), cpu, work),
                SHEAVES => self.sheaves.work(&self.plain(), cpu, work),
                READERS => {
                    let live = self.addresses.borrow_mut().remove(&work.argument);
                    assert!(live, "{:#x} was handed out before its readers had ended", work.argument);
                }
                _ => {
                    let frame = Pfn((work.argument >> P::page_shift()) as u32);
                    let object = P::address(frame, work.argument & ((1 << P::page_shift()) - 1));
                    self.cache.free(&self.backing(), object).expect("the object is the cache's");
                }
            }
        }
    }

    /// Asks for a sheaf with this many objects.
    pub fn lend(&self, objects: u32) {
        let sheaf = self.cache.prefill_sheaf(&self.backing(), Gfp::KERNEL, objects);
        self.lent.borrow_mut().extend(sheaf);
    }

    /// Uses half of a lent sheaf's objects, or returns the sheaf with the rest.
    pub fn use_lent(&self, hand_back: bool) {
        let lent = self.lent.borrow_mut().pop_front();
        let Some(mut sheaf) = lent else { return };
        if hand_back {
            return self.cache.return_sheaf(&self.backing(), Gfp::KERNEL, sheaf);
        }
        for _ in 0..sheaf.size().div_ceil(2) {
            let object = self.cache.alloc_from_lent(&mut sheaf, Gfp::KERNEL).expect("not used up");
            self.handed_out(object);
            self.live.borrow_mut().push_back(object);
        }
        self.lent.borrow_mut().push_back(sheaf);
    }

    /// Frees the remaining objects. Then no slab may be left.
    pub fn end(&self) {
        let backing = self.backing();
        while !self.lent.borrow().is_empty() {
            self.use_lent(true);
        }
        P::still(|| self.cache.shrink(&backing));
        self.end_grace_period();
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

impl<P: Testable, E: Front<P>> Heap<P, E> {
    /// From now on all calls try the rungs of a malloc first.
    pub fn use_rungs(&self) {
        self.rungs.set(Some(Rungs {
            alloc: [E::alloc_fast, E::alloc_slow_slot],
            free: [E::free_fast, E::free_slow_slot],
        }));
    }
}
