//! Published figures that need no clock, each from a run of the engine. docs/published.md lists all of them,
//! and the figures that other tests check.
//!
//! Every case is data for [`check`]. These tests cannot show times, or figures that depend on the load of a
//! whole system.

use slablab_model::{Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, Gfp};
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Preset;
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine};

/// The load on every CPU.
#[derive(Clone, Copy)]
enum Load {
    /// Allocates and frees one object, this many times.
    Alternate(u64),
    /// Allocates one object and does not free it.
    KeepOne,
}

struct Case {
    preset: &'static str,
    page_shift: u32,
    cpus: u16,
    /// Bytes per object in its cache.
    size: u32,
    load: Load,
    /// Order and objects of a slab.
    slab: (u8, u32),
    /// The number of objects as /proc/slabinfo and `slabinfo -AD` count them.
    objects: u64,
    /// Pages in all slabs.
    pages: u64,
}

fn check(name: &str, case: &Case) {
    let spec = MachineSpec { page_shift: case.page_shift, ..MachineSpec::uniform(case.cpus, 1, 8 << 30) };
    Machine::new(spec).expect("the spec is right").enter(|| {
        let Ok(Preset::Slub(policy)) = Preset::parse(case.preset) else { panic!("{}", case.preset) };
        let pages = Pages::<Model>::new(PagesPolicy::for_release(2, 6, 29));
        let backing = Backing::pages(&pages);
        let cache: Slub<Model> = Slub::create(CacheId(1), &CacheSpec::of_size(case.size), &policy);
        let one = || cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
        let free = |object| cache.free(&backing, object).expect("the cache's object");
        let mut kept = Vec::new();
        for cpu in 0..case.cpus {
            Model::run_on(CpuId(cpu));
            match case.load {
                Load::Alternate(times) => (0..times).for_each(|_| free(one())),
                Load::KeepOne => kept.push(one()),
            }
        }
        let (geometry, usage) = (cache.geometry(), cache.usage());
        let found = ((geometry.order, geometry.objects), usage.active_objects(), usage.frames);
        assert_eq!(found, (case.slab, case.objects, case.pages), "{name}, {}", case.preset);
        if let Load::Alternate(times) = case.load {
            assert_eq!(usage.live_objects(), 0, "{name}: none is really in use");
            let all = times * case.cpus as u64;
            for (fast, slow) in
                [(Event::AllocFastpath, Event::AllocSlowpath), (Event::FreeFastpath, Event::FreeSlowpath)]
            {
                let (fast, slow) = (cache.counted(fast), cache.counted(slow));
                assert_eq!(
                    (fast + slow, 100 * fast / all),
                    (all, 99 + (slow == 0) as u64),
                    "{name}: percent fast"
                );
            }
        }
        kept.into_iter().for_each(free);
        assert_eq!(cache.destroy(&backing), Ok(()));
    });
}

/// Zhang Yanmin's `slabinfo -AD` of 5 February 2009: names_cache had 64 objects in use and one free more than
/// allocations; journal_handle had 1360 objects in use; 99 % of both calls were fast. The objects in use are
/// those of the CPU slabs: 8 CPUs times 8 objects, and 8 times 170.
#[test]
fn objects_of_alternating_caches_are_whole_cpu_slabs() {
    let run = |preset, size, slab: (u8, u32), objects| {
        let pages = 8 << slab.0;
        let load = Load::Alternate(1000);
        check("2009", &Case { preset, page_shift: 12, cpus: 8, size, load, slab, objects, pages });
    };
    for preset in ["slub@2.6.29", "slub@2.6.32", "slub@6.1"] {
        run(preset, 4096, (3, 8), 64);
        run(preset, 24, (0, 170), 1360);
    }
    // With the boot parameters that the mail compares; their slabs have fewer objects.
    run("slub@2.6.29,max_order=1", 4096, (1, 2), 16);
    run("slub@2.6.29,max_order=0", 4096, (0, 1), 8);
    // filp and vm_area_struct in the same table: order 0.
    run("slub@2.6.29", 192, (0, 21), 8 * 21);
    run("slub@2.6.29", 168, (0, 24), 8 * 24);
}

/// Bharata B Rao's table of November 2020, ppc64 with 64K pages: objects and pages of a slab whose order is
/// computed for 64 possible CPUs, and for the CPUs online at creation: 16 for TCPv6, 1 for the two caches
/// that boot creates early. 16 CPUs that hold one object each use that many pages.
#[test]
fn slabs_sized_for_possible_and_for_online_cpus() {
    let run = |preset, size, slab: (u8, u32)| {
        let (objects, pages) = (16 * u64::from(slab.1), 16 << slab.0);
        let load = Load::KeepOne;
        check("2020", &Case { preset, page_shift: 16, cpus: 16, size, load, slab, objects, pages });
    };
    run("slub@5.10,order_cpus=64", 2432, (1, 53));
    run("slub@5.10,order_cpus=64", 9856, (3, 53));
    run("slub@5.10,order_cpus=64", 8192, (2, 32));
    run("slub@5.10", 2432, (0, 26));
    run("slub@5.10,order_cpus=1", 9856, (1, 13));
    run("slub@5.10,order_cpus=1", 8192, (0, 8));
}
