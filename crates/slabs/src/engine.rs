//! What every engine can do.
//!
//! An engine's cache is a value of a type that implements [`Engine`]; the lab, the checks and the libraries
//! are generic over it. Pages come from a [`Pages`](slablab_pages::Pages) value that many caches share. A
//! cache gets it through [`Backing`], together with the memory that all caches of one engine share
//! ([`Engine::Common`]); the caller who creates a set of caches makes one `Common` for the set.

use crate::backing::{Backing, Common};
use crate::cache::{CacheId, CacheSpec, Geometry, LinkPlace, WORD};
use crate::damage::{damaged, kept_wrong};
use crate::lent::Sheaf;
use crate::report::{Misuse, Report, Reports};
use crate::slab::NewObjects;
use slablab_platform::{CpuId, Event, Gfp, NodeId, Platform, Work};

/// What a function of an engine's code cost so far, without the functions that it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCosts {
    /// Picoseconds, with those of its locks.
    pub ps: u64,
    /// Cache lines that came from other CPUs' caches or from memory.
    pub lines: u64,
    /// How often it took a lock.
    pub locks: u64,
    /// Picoseconds until it had them.
    pub lock_ps: u64,
}

impl core::ops::SubAssign for FunctionCosts {
    fn sub_assign(&mut self, earlier: FunctionCosts) {
        self.ps -= earlier.ps;
        self.lines -= earlier.lines;
        self.locks -= earlier.locks;
        self.lock_ps -= earlier.lock_ps;
    }
}

/// One cache of one engine.
pub trait Engine<P: Platform>: Sized {
    /// The engine's policies: a preset and what was changed in it.
    type Policy: Clone + Sync + core::fmt::Debug;
    /// What all caches of a set share; `()` for an engine whose caches have all for themselves.
    type Common: Common;
    /// Whether a cache tells its own objects from those of other caches.
    const KNOWS_OWNERS: bool = true;
    /// Whether there may be something around objects that the cache itself looks after: they are then aligned
    /// as asked and not to their size, and their holder writes to them only.
    const GUARDS: bool = false;

    /// The sizes and orders of a cache with this specification. `None`, "no layout": no block of the
    /// machine's page allocator holds an object with what the engine puts around it. The sizes of a
    /// specification that comes from a file may be any numbers; whoever creates a cache from one asks here
    /// first.
    fn layout(spec: &CacheSpec, policy: &Self::Policy) -> Option<Geometry>;
    /// A cache without slabs.
    ///
    /// # Panics
    /// If the specification has no [`Engine::layout`].
    fn create(id: CacheId, spec: &CacheSpec, policy: &Self::Policy) -> Self;
    /// Tells the cache its name, as /proc/slabinfo has it. Called before the first allocation, if it has one.
    /// Only an engine with policies of single caches cares.
    fn set_name(&mut self, _name: &str) {}
    /// Sets how the objects of every new slab are prepared. Called before the first allocation. A constructor
    /// or zones need a cache whose flags say that it has a constructor.
    fn set_new_objects(&mut self, new: NewObjects<P>);
    /// The policies of a cache that is debugged, from those of others.
    fn debugged(policy: &Self::Policy) -> Self::Policy {
        policy.clone()
    }
    /// Sets the function that is called with each violation as soon as it is found; [`Engine::reports`]
    /// counts it too. Called before the first allocation.
    fn tell(&mut self, _told: fn(&Report)) {}
    /// Where objects keep their link, when nothing says otherwise.
    fn link_place(_policy: &Self::Policy) -> LinkPlace {
        LinkPlace::Start
    }
    /// Whether there is an object of this cache at the address, allocated or not.
    ///
    /// # Errors
    /// As [`Engine::free`].
    fn owns(&self, object: P::Ptr) -> Result<(), Misuse>;
    /// Whether an object of this cache starts at `object`, and, as far as the cache knows without its free
    /// lists, whether it is allocated.
    ///
    /// # Errors
    /// As [`Engine::free`].
    fn check_live(&self, object: P::Ptr) -> Result<(), Misuse> {
        self.owns(object)
    }
    /// The cache's number.
    fn id(&self) -> CacheId;
    /// Sizes and orders.
    fn geometry(&self) -> &Geometry;
    /// The alignment in bytes of every object of this cache, a power of two: what its places in slabs have in
    /// common, so often more than the specification asks for. An engine that does not say has words.
    #[inline]
    fn object_align(&self) -> u32 {
        WORD
    }
    /// Bytes of an allocated object that are its holder's.
    #[inline]
    fn usable(&self, _object: P::Ptr) -> u32 {
        self.geometry().object_size
    }

    /// An object, from `node` if one is asked for (only from it with `THISNODE`). `None` when memory is
    /// exhausted.
    fn alloc(&self, backing: &Backing<'_, P, Self::Common>, gfp: Gfp, node: Option<NodeId>)
    -> Option<P::Ptr>;
    /// As [`Engine::alloc`], for a request of `bytes`, at most the size of the cache's objects: a kmalloc in
    /// its class. Only an engine without classes cares.
    #[inline]
    fn alloc_sized(
        &self,
        backing: &Backing<'_, P, Self::Common>,
        _bytes: u32,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        self.alloc(backing, gfp, node)
    }
    /// Gives an object back.
    ///
    /// # Errors
    /// The address is in no slab of this cache, or at no object's start; nothing happened. Where
    /// [`Engine::KNOWS_OWNERS`] does not hold, another cache's object need not be noticed.
    fn free(&self, backing: &Backing<'_, P, Self::Common>, object: P::Ptr) -> Result<(), Misuse>;
    /// Fills `out` with objects from its start, until memory is exhausted. Returns the number of objects.
    fn alloc_bulk(
        &self,
        backing: &Backing<'_, P, Self::Common>,
        gfp: Gfp,
        out: &mut [Option<P::Ptr>],
    ) -> usize {
        for (got, place) in out.iter_mut().enumerate() {
            *place = self.alloc(backing, gfp, None);
            if place.is_none() {
                return got;
            }
        }
        out.len()
    }
    /// Gives objects back.
    ///
    /// # Errors
    /// As [`Engine::free`], for the first address that starts no object of this cache. The objects before it
    /// are freed. The address itself and the objects after it stay as they were. With
    /// [`Misuse::AlreadyFree`], which an engine finds only when the object reaches its slab, the other
    /// objects are freed; where slabs have links, not those that go back to the same slab with it.
    fn free_bulk(&self, backing: &Backing<'_, P, Self::Common>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        free_each(objects, |object| self.free(backing, object))
    }

    /// Gives an object back when the readers that run now have ended (`kfree_rcu`). `false`: the engine does
    /// not collect such objects, or cannot now; the caller waits for the grace period and then calls
    /// [`Engine::free`].
    ///
    /// # Errors
    /// As [`Engine::free`], where the engine takes the object.
    fn free_rcu(&self, _backing: &Backing<'_, P, Self::Common>, _object: P::Ptr) -> Result<bool, Misuse> {
        Ok(false)
    }
    /// A sheaf with at least `objects` objects, which are the caller's from now on. `None` without memory.
    fn prefill_sheaf(
        &self,
        backing: &Backing<'_, P, Self::Common>,
        gfp: Gfp,
        objects: u32,
    ) -> Option<Sheaf<P>> {
        let mut sheaf = Sheaf::new(backing.metadata?, objects, gfp)?;
        while sheaf.size() < objects {
            match self.alloc(backing, gfp & !Gfp::ZERO, None) {
                Some(object) => sheaf.push(object),
                None => {
                    self.return_sheaf(backing, gfp, sheaf);
                    return None;
                }
            }
        }
        Some(sheaf)
    }
    /// An object of a lent sheaf; `None` only when it is used up.
    fn alloc_from_lent(&self, sheaf: &mut Sheaf<P>, gfp: Gfp) -> Option<P::Ptr> {
        let object = sheaf.pop(self.id())?;
        Some(zero_if_asked::<P>(object, self.geometry().object_size, gfp))
    }
    /// Hands a sheaf back, with the metadata memory it was lent with.
    fn return_sheaf(&self, backing: &Backing<'_, P, Self::Common>, _gfp: Gfp, mut sheaf: Sheaf<P>) {
        while let Some(object) = sheaf.pop(self.id()) {
            if let Err(misuse) = self.free(backing, object) {
                kept_wrong::<P>(self.id(), "a lent sheaf", object, misuse);
            }
        }
        let Some(metadata) = backing.metadata else {
            damaged::<P>(self.id(), format_args!("a sheaf comes back without the memory it was lent from"));
        };
        sheaf.discard(metadata);
    }

    /// Empties the slots that no thread uses, and returns empty slabs to the page allocator. Returns how many
    /// slabs went.
    fn shrink(&self, backing: &Backing<'_, P, Self::Common>) -> u64;
    /// Periodic [`Engine::shrink`]. Memory is not short, so a quarantine is kept; and so may be what was
    /// needed since the last time, unless `idle` is [`Idle::All`]. True if the call did a part of it, and
    /// another one goes on.
    fn shrink_idle(&self, backing: &Backing<'_, P, Self::Common>, _idle: Idle) -> bool {
        self.shrink(backing);
        false
    }
    /// Bytes of the objects that the cache keeps for all CPUs, in barns: about, without a lock.
    fn barn_bytes(&self) -> u64 {
        0
    }
    /// What page reclaim of 2.4 finds in the cache ([`crate::clock`]). `None`: the cache grew since the last
    /// look, or its engine returns empty slabs in other ways.
    fn look_to_reap(&self, _backing: &Backing<'_, P, Self::Common>) -> Option<Reapable> {
        None
    }
    /// Returns up to `slabs` empty slabs of a cache that [`Engine::look_to_reap`] found some in. Returns the
    /// number of their pages.
    fn reap_empty(&self, _backing: &Backing<'_, P, Self::Common>, _slabs: u32) -> u64 {
        0
    }
    /// Empties every slot and gives back every slab. No other thread may use the cache during or after this
    /// call.
    ///
    /// # Errors
    /// Objects are still allocated; they and their slabs stay.
    fn destroy(&self, backing: &Backing<'_, P, Self::Common>) -> Result<(), Busy>;
    /// Runs deferred work that this cache asked the world for.
    fn work(&self, backing: &Backing<'_, P, Self::Common>, cpu: CpuId, work: Work);
    /// Moves the objects of a CPU's slot to where other CPUs find them, after the CPU went down.
    fn cpu_down(&self, backing: &Backing<'_, P, Self::Common>, cpu: CpuId);
    /// Tells the cache that a CPU is there, or went up: readies what the engine keeps for each CPU, and
    /// starts the CPU's periodic work.
    fn cpu_up(&self, backing: &Backing<'_, P, Self::Common>, cpu: CpuId);

    /// Makes a slab as an earlier life would have left it, on `node`, at `place`: the objects with indexes in
    /// `free` are free and will be handed out in that order; the others are allocated. Returns the address of
    /// object 0. Only for a cache at rest; take counters after it as the zero of a run.
    fn seed(
        &self,
        backing: &Backing<'_, P, Self::Common>,
        node: NodeId,
        place: Place,
        free: &[u16],
    ) -> Option<P::Ptr>;

    /// The last [`Engine::seed`] was made. An engine that cannot make single slabs of an earlier life makes
    /// them all here: until then its caches may not be used.
    fn seeded(&self, _backing: &Backing<'_, P, Self::Common>) {}

    /// Moves free objects of the current CPU's node into its array, and into the array that the node's CPUs
    /// share, at most so many each: nothing where the engine has no arrays. After the last [`Engine::seed`].
    fn seed_arrays(&self, _backing: &Backing<'_, P, Self::Common>, _in_array: u32, _in_shared: u32) {}

    /// What the cache holds now, over all nodes. Exact only while no other CPU uses the cache.
    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        (0..P::nodes()).for_each(|node| usage += self.usage_on(NodeId(node)));
        usage
    }
    /// What the cache holds on one node now.
    fn usage_on(&self, node: NodeId) -> Usage;
    /// Where a viewer in another process finds the cache's counts.
    fn exposed(&self) -> Exposed {
        Exposed { geometry: address(self.geometry()), ..Exposed::default() }
    }
    /// How often an event was counted, over all CPUs.
    fn counted(&self, event: Event) -> u64 {
        (0..P::cpus()).map(|cpu| self.counted_on(CpuId(cpu), event)).sum()
    }
    /// The violations that a wrapper has found so far.
    fn reports(&self) -> Reports {
        Reports::default()
    }
    /// How often an event was counted on one CPU.
    fn counted_on(&self, cpu: CpuId, event: Event) -> u64;
    /// Calls `each` with what every function of an engine cost that reports its own code: of all caches of
    /// the machine together. No engine of this crate does.
    fn functions(&self, _each: &mut dyn FnMut(&str, FunctionCosts)) {}
}

/// Addresses and offsets of a cache's counts, for a viewer that reads the memory of another process
/// (docs/native.md). 0 for what the engine does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposed {
    /// The address of the [`Geometry`].
    pub geometry: usize,
    /// The address of the world's [`slablab_platform::PerCpu`].
    pub slots: usize,
    /// The address of 32 bits: objects of a full sheaf.
    pub sheaf_capacity: usize,
    /// In the engine's part of a slot, the offset of a sheaf's address, which is 0 without a spare sheaf.
    pub spare: usize,
    /// In the engine's part of a slot, the offset of 32 bits: objects in the spare sheaf.
    pub spare_size: usize,
    /// The address of the world's [`slablab_platform::PerNode`] with a barn for each node.
    pub barns: usize,
    /// In a barn, the offset of a word: full sheaves.
    pub full_sheaves: usize,
    /// Whether a slab's `SlabWord` is in its descriptor's `extra`, not in `slab`.
    pub is_in_extra: bool,
}

/// A value's address, as a number.
pub(crate) fn address<T>(value: &T) -> usize {
    core::ptr::from_ref(value).addr()
}

/// Fills the `bytes` bytes of a new object with zeros if the request's flags have `__GFP_ZERO`. Returns the
/// object.
#[inline(always)]
pub fn zero_if_asked<P: Platform>(object: P::Ptr, bytes: u32, gfp: Gfp) -> P::Ptr {
    if gfp.any(Gfp::ZERO) {
        P::fill(object, bytes, 0);
    }
    object
}

/// What a cache gives back in [`Engine::shrink_idle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// What was not needed since the last time.
    Since,
    /// All that no caller holds, but for a quarantine.
    All,
}

/// The empty slabs that page reclaim of 2.4 finds in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reapable {
    /// Empty slabs.
    pub slabs: u32,
    /// The order of each.
    pub order: u8,
    /// Whether the cache has a constructor.
    pub constructed: bool,
}

/// Where a seeded slab is. An engine without such a place takes its nearest equivalent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The slab a CPU allocates from.
    Cpu(CpuId),
    /// A CPU's newest partial slab.
    CpuPartial(CpuId),
    /// Its node's list; a slab without free objects is on none.
    Node,
}

/// A cache's slabs and objects: the numbers behind /proc/slabinfo and /sys/kernel/slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Slabs.
    pub slabs: u64,
    /// Page frames of those slabs.
    pub frames: u64,
    /// Objects those slabs can hold.
    pub total_objects: u64,
    /// Slabs on node lists.
    pub partial: u64,
    /// Free objects in slabs on node lists.
    pub free_in_partial: u64,
    /// Slabs a CPU allocates from.
    pub cpu_slabs: u64,
    /// Slabs on CPU partial lists.
    pub cpu_partial: u64,
    /// Free objects parked at CPUs: CPU free lists, the CPU slabs' and CPU partial slabs' own lists, queues,
    /// sheaves, barns.
    pub parked: u64,
    /// Objects that were freed and that a quarantine holds back: the engine still takes them for allocated.
    pub quarantined: u64,
    /// Objects in pages that caches share, all allocated; neither they nor those pages are in the numbers
    /// above.
    pub shared_objects: u64,
    /// Bytes of those objects, with what each costs beside itself.
    pub shared_bytes: u64,
}

impl Usage {
    /// `active_objs` of /proc/slabinfo: counts parked objects as active.
    pub fn active_objects(&self) -> u64 {
        self.total_objects - self.free_in_partial + self.shared_objects
    }

    /// Objects in the cache's own slabs that callers hold, and those in quarantine. Where caches share pages,
    /// objects in quarantine cannot be told apart: they are among the shared objects.
    pub fn held_in_slabs(&self) -> (u64, u64) {
        let allocated = self.total_objects - self.free_in_partial - self.parked;
        let quarantined = if self.shared_objects > 0 { 0 } else { self.quarantined };
        (allocated - quarantined, quarantined)
    }

    /// Objects that callers hold: parked and quarantined ones are left out.
    pub fn live_objects(&self) -> u64 {
        self.active_objects() - self.parked - self.quarantined
    }

    /// Whether the cache can be destroyed.
    ///
    /// # Errors
    /// Callers hold objects.
    pub fn all_free(&self) -> Result<(), Busy> {
        match self.live_objects() {
            0 => Ok(()),
            live_objects => Err(Busy { live_objects }),
        }
    }
}

impl core::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.slabs += other.slabs;
        self.frames += other.frames;
        self.total_objects += other.total_objects;
        self.partial += other.partial;
        self.free_in_partial += other.free_in_partial;
        self.cpu_slabs += other.cpu_slabs;
        self.cpu_partial += other.cpu_partial;
        self.parked += other.parked;
        self.quarantined += other.quarantined;
        self.shared_objects += other.shared_objects;
        self.shared_bytes += other.shared_bytes;
    }
}

/// A cache cannot go: objects are still allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Number of objects that are still allocated.
    pub live_objects: u64,
}

/// Frees objects one by one. An address that starts no object ends it. An object that is free already does
/// not.
pub(crate) fn free_each<T: Copy>(
    objects: &[T],
    mut free: impl FnMut(T) -> Result<(), Misuse>,
) -> Result<(), Misuse> {
    let mut result = Ok(());
    for object in objects {
        match free(*object) {
            Err(Misuse::AlreadyFree) => result = Err(Misuse::AlreadyFree),
            Err(misuse) => return Err(misuse),
            Ok(()) => {}
        }
    }
    result
}
