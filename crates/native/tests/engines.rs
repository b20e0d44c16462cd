//! Every preset on mapped memory, and engines with debugging and hardening around them, used by threads at
//! once.
//!
//! Threads run random programs that allocate, free, hand objects to each other and shrink caches; threads end
//! and new ones begin. Every byte of an object is stamped, so that an overlap is found. At the end all
//! objects are freed and all pages are back. This cannot show reorderings that the machine's processor does
//! not make.

mod again;

mod program;
use program::Native;
use slablab_native::{Object, system};
use slablab_pages::Pages;
use slablab_pages::policy::{MinFree, PagesPolicy, PcpRule, ZoneRule};
use slablab_platform::{CpuId, Gfp, Platform, Topology};
use slablab_slabs::engines::slab::SlabEngine;
use slablab_slabs::engines::slqb::Slqb;
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::knob::Policy;
use slablab_slabs::preset::Choice;
use slablab_slabs::wrap::{Around, Debugged, Hardened};
use slablab_slabs::{Backing, CacheId, CacheSpec, Front, Metadata, Preset};
use std::sync::Mutex;

/// The native world, or a world around it.
trait Over: Platform<Ptr = Object, Ground = Native> {}
impl<W: Platform<Ptr = Object, Ground = Native>> Over for W {}

const SIZES: [u32; 6] = [16, 64, 192, 1024, 2048, 4096];
const THREADS: u64 = 3;
const ROUNDS: u64 = 3;
const STEPS: u64 = 20_000;

struct World<W: Over, E: Front<W>> {
    pages: Pages<Native>,
    common: E::Common,
    caches: Vec<E>,
    /// Caches of the same sizes for sheaves and arrays. They have none themselves.
    metadata: Vec<E>,
    /// Objects that a thread handed over and no thread took yet, with the index of their cache.
    handed: Mutex<Vec<(usize, usize)>>,
}

impl<W: Over, E: Front<W>> Metadata<W> for World<W, E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Object> {
        let cache = SIZES.iter().position(|size| *size >= bytes)?;
        self.metadata[cache].alloc(&Backing::new(&self.pages, &self.common), gfp, None)
    }
    fn free(&self, object: Object) {
        let location = Native::location(object.as_ptr()).expect("metadata is in a slab");
        let freed = self.metadata[location.cache as usize - SIZES.len()]
            .free(&Backing::new(&self.pages, &self.common), object);
        freed.expect("metadata is an object");
    }
}

impl<W: Over, E: Front<W>> World<W, E> {
    fn backing(&self) -> Backing<'_, W, E::Common> {
        Backing { metadata: Some(self), ..Backing::new(&self.pages, &self.common) }
    }

    fn alloc(&self, cache: usize) -> Option<usize> {
        let cache_of = &self.caches[cache];
        let hot = cache_of.alloc_slow_slot();
        let object = hot.or_else(|| cache_of.alloc(&self.backing(), Gfp::KERNEL, None))?;
        Native::stamp(object, SIZES[cache], object.addr() as u64);
        Some(object.addr())
    }

    fn free(&self, cache: usize, at: usize) {
        let object = Object::at(std::ptr::with_exposed_provenance_mut(at)).expect("an address");
        let other = Native::unstamped(object, SIZES[cache], at as u64);
        assert_eq!(other, None, "object {at:#x} of {} bytes was written over", SIZES[cache]);
        let location = Native::location(object.as_ptr()).expect("an object is in a slab");
        assert_eq!(location.cache as usize, cache, "the cache of object {at:#x}");
        let cache_of = &self.caches[cache];
        if !(cache_of.starts_at(location.slab, location.offset)
            && cache_of.free_slow_slot(object, location.slab))
        {
            cache_of.free(&self.backing(), object).expect("an object of this cache");
        }
    }

    /// One thread's random program. Frees the objects that it has left.
    fn program(&self, seed: u64) {
        let mut random = seed * 2 + 1;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 11) % below
        };
        let mut live: Vec<(usize, usize)> = Vec::new();
        for _ in 0..STEPS {
            match next(20) {
                0 => self.handed.lock().expect("no thread failed").extend(live.pop()),
                1 => live.extend(self.handed.lock().expect("no thread failed").pop()),
                2 if next(200) == 0 => {
                    self.caches[next(SIZES.len() as u64) as usize].shrink(&self.backing());
                }
                3..=11 if live.len() < 400 => {
                    let cache = next(SIZES.len() as u64) as usize;
                    live.push((cache, self.alloc(cache).expect("there is memory")));
                }
                _ if live.is_empty() => {}
                _ => {
                    let (cache, at) = live.swap_remove(next(live.len() as u64) as usize);
                    self.free(cache, at);
                }
            }
        }
        live.into_iter().for_each(|(cache, at)| self.free(cache, at));
    }
}

fn pages() -> Pages<Native> {
    let mut policy = PagesPolicy::for_release(6, 18, 0);
    policy.pcp = PcpRule::NONE;
    policy.zones = Some(ZoneRule::One);
    policy.min_free = MinFree::Kib(0);
    policy.max_order = Some(Native::largest_order());
    (policy.begins_anywhere, policy.grouping) = (true, false);
    policy.pageblock_order = policy.max_order;
    Pages::new(policy)
}

/// Runs the programs on one preset.
fn check<W: Over + Sync, E: Front<W> + Sync>(name: &str, policy: &E::Policy)
where
    E::Common: Sync,
{
    Native::enter_fresh(|| {
        let cache = |index: usize| {
            let spec = CacheSpec { align: 16, ..CacheSpec::of_size(SIZES[index % SIZES.len()]) };
            E::create(CacheId(index as u32), &spec, policy)
        };
        let world = World::<W, E> {
            pages: pages(),
            common: E::Common::default(),
            caches: (0..SIZES.len()).map(cache).collect(),
            metadata: (SIZES.len()..2 * SIZES.len()).map(cache).collect(),
            handed: Mutex::default(),
        };
        let total: u64 =
            (0..Native::nodes()).map(|node| world.pages.free_frames(slablab_platform::NodeId(node))).sum();
        for round in 0..ROUNDS {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let world = &world;
                    scope.spawn(move || {
                        world.program(round * THREADS + thread);
                        // Before the thread ends: any thread may claim the slot then.
                        Native::release_slot();
                    });
                }
            });
        }
        world
            .handed
            .lock()
            .expect("no thread failed")
            .drain(..)
            .for_each(|(cache, at)| world.free(cache, at));
        for (caches, metadata) in [(&world.caches, Some(&world as &dyn Metadata<W>)), (&world.metadata, None)]
        {
            let backing = Backing { metadata, ..Backing::new(&world.pages, &world.common) };
            for cache in caches {
                assert_eq!(cache.reports().total, 0, "{name}: {:?}", cache.reports().first[0]);
                // Twice: freeing a sheaf gives this thread a slot, which may be one that was emptied before.
                for _ in 0..2 {
                    Native::release_slot();
                    (0..Native::cpus()).for_each(|cpu| cache.cpu_down(&backing, CpuId(cpu)));
                }
                assert_eq!(
                    cache.destroy(&backing),
                    Ok(()),
                    "{name}: cache {:?} is empty at the end",
                    cache.id()
                );
            }
        }
        let left: u64 =
            (0..Native::nodes()).map(|node| world.pages.free_frames(slablab_platform::NodeId(node))).sum();
        assert_eq!(left, total, "{name}: free frames at the end");
        println!(
            "{name}, {}: {} threads on pages of {} bytes",
            Native::slots(),
            ROUNDS * THREADS,
            system::page_size()
        );
    });
}

fn check_all<E: Front<Native> + Sync>()
where
    E::Common: Sync,
    E::Policy: Policy,
{
    for policy in E::Policy::PRESETS {
        check::<Native, E>(&format!("{}@{}", E::Policy::NAME, policy.release()), policy);
    }
}

/// Wrappers around an engine: all at once, and parts that take different paths.
const WRAPS: [&str; 6] = [
    "debug=FZPU,quarantine=8K,harden=random",
    "debug=F",
    "debug=ZU,init=alloc+free",
    "quarantine=4K",
    "harden=encode",
    "debug=FZPU,harden=random+encode",
];

/// Runs the programs with each wrapper around an engine's newest preset. The programs are correct, so any
/// report is a defect of the wrapper.
fn check_wrapped(engine: &str) {
    for wrap in WRAPS {
        let name = format!("{engine},{wrap}");
        let choice = Choice::parse(&name).map_err(|bad| bad.to_string()).expect("an engine");
        match choice.wrap.encoded {
            true => check_wrapped_in::<Hardened<Native>>(&name, choice),
            false => check_wrapped_in::<Native>(&name, choice),
        }
    }
}

fn check_wrapped_in<W: Over + Sync>(name: &str, choice: Choice)
where
    Debugged<W, Slub<W>>: Sync,
    Debugged<W, Slqb<W>>: Sync,
    Debugged<W, SlabEngine<W>>: Sync,
{
    fn around<T>(engine: T, choice: Choice) -> Around<T> {
        Around { engine, wrap: choice.wrap, release: choice.preset.release() }
    }
    match choice.preset {
        Preset::Slub(policy) => check::<W, Debugged<W, Slub<W>>>(name, &around(policy, choice)),
        Preset::Slqb(policy) => check::<W, Debugged<W, Slqb<W>>>(name, &around(policy, choice)),
        Preset::Slab(policy) => check::<W, Debugged<W, SlabEngine<W>>>(name, &around(policy, choice)),
        Preset::Slob(_) | Preset::Registered(_) => unreachable!("not asked for"),
    }
}

#[test]
fn wrapped() {
    ["slub@7.1", "slub@6.1", "slqb", "slab"].into_iter().for_each(check_wrapped);
}

#[test]
fn wrapped_per_cpu() {
    again::per_cpu("wrapped");
}

#[test]
fn slub() {
    check_all::<Slub<Native>>();
}

#[test]
fn slqb() {
    check_all::<Slqb<Native>>();
}

#[test]
fn slab() {
    check_all::<SlabEngine<Native>>();
}

#[test]
fn slub_per_cpu() {
    again::per_cpu("slub");
}

#[test]
fn slqb_per_cpu() {
    again::per_cpu("slqb");
}

#[test]
fn slab_per_cpu() {
    again::per_cpu("slab");
}
