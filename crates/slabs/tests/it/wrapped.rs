//! The wrapper in worlds whose callers may be wrong: requested sizes, checks on every free, the report
//! function, and the quarantine.

use slablab_model::{Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{Gfp, Memory};
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Choice;
use slablab_slabs::report::{Fault, Report};
use slablab_slabs::report::{Overwritten, Zone};
use slablab_slabs::wrap::{Around, Debugged};
use slablab_slabs::zones::ahead;
use slablab_slabs::{Backing, CacheFlags, CacheId, CacheSpec, Engine, Idle, Misuse, Preset};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type Cache = Debugged<Model, Slub<Model>>;

/// Calls `f` with a kmalloc class of 112 bytes and the wrapper knobs in `around`.
fn with<R>(around: &str, checked: bool, f: impl FnOnce(&mut Cache, &Backing<'_, Model>) -> R) -> R {
    let text = format!("slub@7.1{around}");
    let mut choice = Choice::parse(&text).map_err(|bad| bad.to_string()).expect("an engine");
    choice.wrap.checked = checked;
    let Preset::Slub(engine) = choice.preset else { unreachable!("SLUB was asked for") };
    let around = Around { engine, wrap: choice.wrap, release: choice.preset.release() };
    let flags = CacheFlags::KMALLOC;
    let mut machine = Machine::new(MachineSpec::uniform(2, 1, 1 << 30)).expect("the spec is right");
    machine.enter(|| {
        let pages = Pages::new(PagesPolicy::for_release(7, 0, 0));
        let mut cache = Cache::create(CacheId(1), &CacheSpec { flags, ..CacheSpec::of_size(112) }, &around);
        let backing = Backing::pages(&pages);
        let result = f(&mut cache, &backing);
        assert_eq!(cache.destroy(&backing), Ok(()));
        result
    })
}

#[test]
fn the_red_zone_begins_behind_the_requested_bytes() {
    // The wrapper records the requested size, for which it needs the records (U).
    for (letters, asked, usable) in
        [("ZU", 100, 100), ("FZPU", 1, 1), ("ZU", 112, 112), ("Z", 100, 112), ("U", 100, 100)]
    {
        with(&format!(",debug={letters}"), false, |cache, backing| {
            let what = format!("{letters}, {asked} bytes");
            let alloc = |cache: &Cache| {
                cache.alloc_sized(backing, asked, Gfp::KERNEL | Gfp::ZERO, None).expect("memory")
            };
            let object = alloc(cache);
            assert_eq!(cache.usable(object), usable, "{what}");
            assert_eq!(Model::differs(object, usable, 0), None, "{what}: zeros");
            cache.free(backing, object).expect("an object");
            assert_eq!(cache.reports().total, 0, "{what}: nothing was written");
            let object = alloc(cache);
            Model::fill(ahead::<Model>(object, usable), 1, 0x41);
            cache.free(backing, object).expect("an object");
            let over =
                Overwritten { zone: Zone::RightRedZone, offset: usable as i32, found: 0x41, expected: 0xcc };
            let found = cache.reports().first[0].map(|report| report.fault);
            assert_eq!(found, (letters != "U").then_some(Fault::Overwritten(over)), "{what}");
        });
    }
}

#[test]
fn a_double_free_is_found_with_any_letters() {
    for around in ["", ",debug=Z", ",debug=FO", ",quarantine=4K", ",init=free", ",harden=random"] {
        with(around, true, |cache, backing| {
            let stays = cache.alloc(backing, Gfp::KERNEL, None).expect("memory");
            let object = cache.alloc(backing, Gfp::KERNEL, None).expect("memory");
            cache.free(backing, object).expect("an object");
            assert_eq!(cache.free(backing, object), Err(Misuse::AlreadyFree), "{around}");
            cache.free(backing, stays).expect("an object");
        });
    }
}

#[test]
fn the_tell_function_receives_every_report() {
    static TOLD: AtomicU64 = AtomicU64::new(0);
    fn told(report: &Report) {
        assert_eq!((report.fault, report.cache), (Fault::Misuse(Misuse::AlreadyFree), CacheId(1)));
        TOLD.fetch_add(1, Relaxed);
    }
    with(",debug=F", false, |cache, backing| {
        cache.tell(told);
        let object = cache.alloc(backing, Gfp::KERNEL, None).expect("memory");
        let stays = cache.alloc(backing, Gfp::KERNEL, None).expect("memory");
        cache.free(backing, object).expect("an object");
        // More frees than the cache stores reports for.
        for n in 1..=20 {
            assert_eq!(cache.free(backing, object), Err(Misuse::AlreadyFree));
            assert_eq!((TOLD.load(Relaxed), cache.reports().total), (n, n));
        }
        cache.free(backing, stays).expect("an object");
    });
}

#[test]
fn shrink_idle_leaves_the_quarantine() {
    with(",quarantine=4K", false, |cache, backing| {
        let all: Vec<_> = (0..10).map(|_| cache.alloc(backing, Gfp::KERNEL, None).expect("memory")).collect();
        all.iter().for_each(|object| cache.free(backing, *object).expect("an object"));
        cache.shrink_idle(backing, Idle::All);
        assert_eq!(cache.usage().quarantined, 10);
        cache.shrink(backing);
        assert_eq!(cache.usage().quarantined, 0);
    });
}
