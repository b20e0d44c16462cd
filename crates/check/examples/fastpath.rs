//! The fast paths of the engines over the world like the native one, each in a separate function, so that a
//! test can read its machine code.
//!
//! ```text
//! cargo test -p slablab-check --test fastpath              reads the machine code: steps, calls, panics
//! cargo run --release -p slablab-check --example fastpath  runs each path after a warm-up, for callgrind
//! ```

use slablab_check::Bare;
use slablab_check::bare::{Place, Slots};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{Event, Frames, Gfp, HotArray, HotList, Local, Memory, PerCpu, Pfn, Want};
use slablab_slabs::engines::slab::SlabEngine;
use slablab_slabs::engines::slqb::Slqb;
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Preset;
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Metadata, Misuse};
use std::hint::black_box;

/// The world does not count events on the fast paths, like a native world by default.
type World = Bare<false>;

#[inline(never)]
fn pop_if(slots: &Slots<u64, false>, want: Want) -> Option<Place> {
    slots.pop_if(want, Event::AllocFastpath)
}

#[inline(never)]
fn push_if(slots: &Slots<u64, false>, want: Want, object: Place) -> bool {
    slots.push_if(want, HotList::<Place>::COUNT_MAX, object, Event::FreeFastpath)
}

#[inline(never)]
fn pop(slots: &Slots<u64, false>) -> Option<Place> {
    slots.pop(Event::AllocFastpath)
}

#[inline(never)]
fn push(slots: &Slots<u64, false>, object: Place) -> bool {
    slots.push(object, Event::FreeFastpath)
}

#[inline(never)]
fn frame_state(object: Place) -> u64 {
    let (pfn, _) = World::locate(object);
    World::with_frame(pfn, |frame| slablab_platform::Word::load(&frame.state))
}

#[inline(never)]
fn slub_alloc(cache: &Slub<World>, backing: &Backing<'_, World>) -> Option<Place> {
    cache.alloc(backing, Gfp::KERNEL, None)
}

#[inline(never)]
fn slub_free(cache: &Slub<World>, backing: &Backing<'_, World>, object: Place) -> Result<(), Misuse> {
    cache.free(backing, object)
}

#[inline(never)]
fn slqb_alloc(cache: &Slqb<World>, backing: &Backing<'_, World>) -> Option<Place> {
    cache.alloc(backing, Gfp::KERNEL, None)
}

#[inline(never)]
fn slqb_free(cache: &Slqb<World>, backing: &Backing<'_, World>, object: Place) -> Result<(), Misuse> {
    cache.free(backing, object)
}

#[inline(never)]
fn slab_alloc(cache: &SlabEngine<World>, backing: &Backing<'_, World>) -> Option<Place> {
    cache.alloc(backing, Gfp::KERNEL, None)
}

#[inline(never)]
fn slab_free(cache: &SlabEngine<World>, backing: &Backing<'_, World>, object: Place) -> Result<(), Misuse> {
    cache.free(backing, object)
}

fn primitives() {
    let slots = Slots::<u64, false>::new(0);
    let home = World::address(Pfn(1024), 0);
    let object = World::address(Pfn(1025), 64);
    World::storage_attach(home, 32);
    let mut local = slots.local().expect("the slot is idle");
    let array = HotArray { storage: Some(home), size: 0, capacity: 28 };
    Local::<_, u64>::set_array(&mut local, array);
    drop(local);
    assert!(push_if(black_box(&slots), Want::ANY, object));
    assert_eq!(pop_if(black_box(&slots), Want::ANY), Some(object));
    assert!(push(black_box(&slots), object));
    assert_eq!(pop(black_box(&slots)), Some(object));
    assert_eq!(frame_state(black_box(object)), 0);
}

type Alloc<E> = fn(&E, &Backing<'_, World>) -> Option<Place>;
type Free<E> = fn(&E, &Backing<'_, World>, Place) -> Result<(), Misuse>;

/// The cache whose objects are the arrays of another cache. `alloc` and `free` are the paths of that cache.
/// Each has one caller, and is inlined there.
struct FromCache<'a, E> {
    cache: E,
    pages: &'a Pages<World>,
    alloc: Alloc<E>,
    free: Free<E>,
}

impl<E: Engine<World, Common = ()>> Metadata<World> for FromCache<'_, E> {
    fn alloc(&self, _bytes: u32, _gfp: Gfp) -> Option<Place> {
        (self.alloc)(&self.cache, &Backing::pages(self.pages))
    }

    fn free(&self, object: Place) {
        (self.free)(&self.cache, &Backing::pages(self.pages), object).expect("it is the cache's");
    }
}

/// The life of a cache: it allocates and frees objects a thousand times while one object stays allocated.
fn live<E: Engine<World, Common = ()>>(policy: &E::Policy, alloc: Alloc<E>, free: Free<E>) {
    let pages = Pages::<World>::new(PagesPolicy::for_release(6, 12, 0));
    let cache = E::create(CacheId(2), &CacheSpec::of_size(4096), policy);
    let arrays = FromCache { cache, pages: &pages, alloc, free };
    let backing = Backing { metadata: Some(&arrays), ..Backing::pages(&pages) };
    let cache = E::create(CacheId(1), &CacheSpec::of_size(192), policy);
    let held = alloc(&cache, &backing).expect("memory is left");
    for _ in 0..1000 {
        let object = alloc(black_box(&cache), &backing).expect("memory is left");
        free(black_box(&cache), &backing, object).expect("it is the cache's");
    }
    free(&cache, &backing, held).expect("it is the cache's");
    World::still(|| cache.destroy(&backing)).expect("nothing is live");
}

fn main() {
    World::enter(primitives);
    for preset in ["slub@6.12", "slqb@2009-09", "slab@6.1"] {
        match Preset::parse(preset).expect("a preset") {
            Preset::Slub(policy) => World::enter(|| live::<Slub<World>>(&policy, slub_alloc, slub_free)),
            Preset::Slqb(policy) => World::enter(|| live::<Slqb<World>>(&policy, slqb_alloc, slqb_free)),
            Preset::Slab(policy) => {
                World::enter(|| live::<SlabEngine<World>>(&policy, slab_alloc, slab_free));
            }
            other => unreachable!("{other} has no fast path"),
        }
    }
}
