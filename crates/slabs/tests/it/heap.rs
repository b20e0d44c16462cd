//! What the tests of the engines share: a cache on the modelled machine, the cache of its metadata, and the
//! objects that a case holds. Each engine's tests add their own steps.

use slablab_model::Model;
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, Frames, Gfp, NodeId};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Metadata};
use std::collections::VecDeque;

pub(crate) type Ptr = <Model as Frames>::Ptr;

const CACHE: CacheId = CacheId(3);
const METADATA: CacheId = CacheId(4);

/// A cache on a machine, the cache that holds its arrays or sheaves, and the allocated objects. `own` is what
/// the tests of one engine need besides.
pub(crate) struct Heap<E, Own = ()> {
    pub(crate) pages: Pages<Model>,
    pub(crate) cache: E,
    pub(crate) metadata: E,
    /// Allocated objects, oldest first.
    pub(crate) held: VecDeque<Ptr>,
    /// Every object that a single call ever returned.
    pub(crate) ever: Vec<Ptr>,
    pub(crate) own: Own,
}

/// Memory for metadata: the objects of a cache.
pub(crate) struct FromCache<'a, E>(pub(crate) &'a E, pub(crate) &'a Pages<Model>);

impl<E: Engine<Model, Common = ()>> Metadata<Model> for FromCache<'_, E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Ptr> {
        assert!(bytes <= self.0.geometry().object_size, "{bytes} bytes of metadata");
        self.0.alloc(&Backing::pages(self.1), gfp, None)
    }
    fn free(&self, object: Ptr) {
        self.0.free(&Backing::pages(self.1), object).expect("metadata is an object of its cache");
    }
}

impl<E: Engine<Model, Common = ()>, Own: Default> Heap<E, Own> {
    pub(crate) fn of(policy: &E::Policy, pages: PagesPolicy, spec: &CacheSpec) -> Self {
        Heap {
            pages: Pages::new(pages),
            cache: E::create(CACHE, spec, policy),
            metadata: E::create(METADATA, &CacheSpec::of_size(4096), policy),
            held: VecDeque::new(),
            ever: Vec::new(),
            own: Own::default(),
        }
    }

    /// Calls `f` with the cache and a backing that has memory for metadata.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&E, &Backing<'_, Model>) -> T) -> T {
        let metadata = FromCache(&self.metadata, &self.pages);
        f(&self.cache, &Backing { metadata: Some(&metadata), ..Backing::pages(&self.pages) })
    }

    /// Allocates an object on a CPU, and holds it.
    pub(crate) fn request(&mut self, cpu: u16, gfp: Gfp, node: Option<u16>) -> Option<Ptr> {
        Model::run_on(CpuId(cpu));
        let object = self.with(|cache, backing| cache.alloc(backing, gfp, node.map(NodeId)))?;
        self.held.push_back(object);
        self.ever.push(object);
        Some(object)
    }

    /// Allocates `n` objects on a CPU, and holds them.
    pub(crate) fn requests(&mut self, cpu: u16, gfp: Gfp, node: Option<u16>, n: u32) {
        (0..n).for_each(|_| assert!(self.request(cpu, gfp, node).is_some(), "memory is left"));
    }

    /// Frees an object on a CPU.
    pub(crate) fn free(&mut self, cpu: u16, object: Option<Ptr>) {
        Model::run_on(CpuId(cpu));
        let object = object.expect("the case holds enough objects");
        self.with(|cache, backing| cache.free(backing, object)).expect("the object is the cache's");
    }

    /// Frees the `n` oldest objects on a CPU.
    pub(crate) fn free_oldest(&mut self, cpu: u16, n: u32) {
        for _ in 0..n {
            let oldest = self.held.pop_front();
            self.free(cpu, oldest);
        }
    }

    /// Frees the `n` newest objects on a CPU.
    pub(crate) fn free_newest(&mut self, cpu: u16, n: u32) {
        for _ in 0..n {
            let newest = self.held.pop_back();
            self.free(cpu, newest);
        }
    }

    /// Takes a CPU offline.
    pub(crate) fn down(&self, cpu: u16) {
        Model::set_online(CpuId(cpu), false);
        self.with(|cache, backing| cache.cpu_down(backing, CpuId(cpu)));
    }

    /// Brings a CPU online.
    pub(crate) fn up(&self, cpu: u16) {
        Model::set_online(CpuId(cpu), true);
        self.with(|cache, backing| cache.cpu_up(backing, CpuId(cpu)));
    }

    /// Runs the work that is due, each item on its CPU.
    pub(crate) fn due(&self) {
        while let Some((cpu, work)) = Model::next_due() {
            Model::run_on(cpu);
            if work.cache == CACHE.0 {
                self.with(|cache, backing| cache.work(backing, cpu, work));
            } else {
                self.metadata.work(&Backing::pages(&self.pages), cpu, work);
            }
        }
    }

    /// Frees all allocated objects and destroys both caches. `settle` runs between the destruction and the
    /// checks. Then every page and all metadata must be back.
    pub(crate) fn finish(mut self, settle: impl FnOnce(&Self)) {
        let held = self.held.len() as u32;
        self.free_oldest(0, held);
        assert_eq!(self.with(|cache, backing| cache.destroy(backing)), Ok(()));
        settle(&self);
        assert_eq!(self.metadata.destroy(&Backing::pages(&self.pages)), Ok(()), "metadata is left");
        assert_eq!((self.cache.usage().slabs, self.metadata.usage().slabs), (0, 0), "slabs are left");
        self.pages.check().expect("pages balance");
        // A shrink of SLUB counts no slab that it returns.
        let [taken, returned] = [Event::AllocSlab, Event::FreeSlab].map(|event| self.cache.counted(event));
        assert!(returned <= taken, "{taken} slabs taken, {returned} returned");
    }
}
