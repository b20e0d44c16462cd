//! One planted fault of each kind. It must be reported once, with the right object and the call sites that
//! allocated and freed it.

use slablab_check::explore::guard;
use slablab_check::{Alone, Bare, Shape};
use slablab_model::{Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, FrameKind, Gfp, NodeId, Platform};
use slablab_slabs::engines::slab::SlabEngine;
use slablab_slabs::engines::slob::Slob;
use slablab_slabs::engines::slqb::Slqb;
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Preset;
use slablab_slabs::report::{Fault, Report};
use slablab_slabs::report::{Overwritten, Zone};
use slablab_slabs::wrap::{Around, Debugged, Hardened, Wrap};
use slablab_slabs::zones::{Letters, ahead};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Misuse};

const BYTES: u32 = 64;

/// Two debugged caches and their backing.
struct Fixture<P: Platform, E: Engine<P>> {
    pages: Pages<P::Ground>,
    common: E::Common,
    cache: Debugged<P, E>,
    other: Debugged<P, E>,
}

impl<P: Testable, E: Engine<P>> Fixture<P, E> {
    fn new(around: &Around<E::Policy>) -> Self {
        let cache = |id| Debugged::create(CacheId(id), &CacheSpec::of_size(BYTES), around);
        let pages = Pages::new(PagesPolicy::for_release(6, 1, 0));
        Fixture { pages, common: E::Common::default(), cache: cache(1), other: cache(2) }
    }

    /// The backing for a call from call site `site`.
    fn backing(&self, site: u64) -> Backing<'_, P, E::Common> {
        Backing { site, ..Backing::new(&self.pages, &self.common) }
    }

    fn alloc(&self, site: u64) -> P::Ptr {
        self.cache.alloc(&self.backing(site), Gfp::KERNEL, None).expect("memory is left")
    }

    fn free(&self, object: P::Ptr, site: u64) -> Result<(), Misuse> {
        self.cache.free(&self.backing(site), object)
    }

    /// Allocates and frees until a fault is reported.
    fn use_until_found(&self) {
        for _ in 0..200 {
            if self.cache.reports().total > 0 {
                return;
            }
            let objects: Vec<_> = (0..80).map(|_| self.alloc(8)).collect();
            objects.into_iter().for_each(|object| self.free(object, 9).expect("just allocated"));
        }
    }
}

/// The fault that a case plants in an object that call site 1 allocated, and the expected report: the offset
/// of its address in the object, and the call sites that allocated and freed the object.
struct Case<P: Testable, E: Engine<P>> {
    name: &'static str,
    plant: fn(&Fixture<P, E>, P::Ptr),
    fault: Fault,
    sites: (Option<u64>, Option<u64>),
}

fn write<P: Platform>(object: P::Ptr, offset: i32) {
    let (pfn, at) = P::locate(object);
    P::fill(P::address(pfn, at.checked_add_signed(offset).expect("in the page") as u64), 1, 0x41);
}

fn over(zone: Zone, offset: i32, expected: u8) -> Fault {
    Fault::Overwritten(Overwritten { zone, offset, found: 0x41, expected })
}

fn freed<P: Testable, E: Engine<P>>(fixture: &Fixture<P, E>, object: P::Ptr) {
    fixture.free(object, 2).expect("the object is allocated");
}

fn cases<P: Testable, E: Engine<P>>() -> Vec<Case<P, E>> {
    let case = |name, plant, fault, sites| Case { name, plant, fault, sites };
    let users = (Some(1), Some(2));
    let mut cases = vec![
        case(
            "a byte before the object",
            |fixture, object| {
                write::<P>(object, -1);
                freed(fixture, object);
            },
            over(Zone::LeftRedZone, -1, 0xcc),
            users,
        ),
        case(
            "a byte after the object",
            |fixture, object| {
                write::<P>(object, BYTES as i32);
                freed(fixture, object);
            },
            over(Zone::RightRedZone, BYTES as i32, 0xcc),
            users,
        ),
        case(
            "a byte far after the object",
            |fixture, object| {
                write::<P>(object, BYTES as i32 + 8 + 8 + 64 + 3);
                freed(fixture, object);
            },
            over(Zone::Padding, BYTES as i32 + 8 + 8 + 64 + 3, 0x5a),
            users,
        ),
        case(
            "a write after the free",
            |fixture, object| {
                freed(fixture, object);
                write::<P>(object, 5);
                fixture.use_until_found();
            },
            over(Zone::Poison, 5, 0x6b),
            users,
        ),
        case(
            "a write to the last byte after the free",
            |fixture, object| {
                freed(fixture, object);
                write::<P>(object, BYTES as i32 - 1);
                fixture.use_until_found();
            },
            over(Zone::Poison, BYTES as i32 - 1, 0xa5),
            users,
        ),
        case(
            "two frees",
            |fixture, object| {
                freed(fixture, object);
                assert_eq!(fixture.free(object, 3), Err(Misuse::AlreadyFree));
            },
            Fault::Misuse(Misuse::AlreadyFree),
            if E::KNOWS_OWNERS { users } else { (None, None) },
        ),
        case(
            "an address in no slab",
            |fixture, _| {
                let block =
                    fixture.pages.alloc(Gfp::KERNEL, 0, NodeId(0), FrameKind::Allocated).expect("a page");
                assert_eq!(fixture.free(P::address(block, 256), 3), Err(Misuse::NotInSlab));
                fixture.pages.free(block);
            },
            Fault::Misuse(Misuse::NotInSlab),
            (None, None),
        ),
    ];
    if E::KNOWS_OWNERS {
        cases.push(case(
            "an object of another cache",
            |fixture, _| {
                let (backing, gfp) = (fixture.backing(3), Gfp::KERNEL);
                let object = fixture.other.alloc(&backing, gfp, None).expect("memory is left");
                assert_eq!(fixture.free(object, 3), Err(Misuse::WrongCache(CacheId(2))));
                fixture.other.free(&backing, object).expect("the other's object");
            },
            Fault::Misuse(Misuse::WrongCache(CacheId(2))),
            (None, None),
        ));
        cases.push(case(
            "an address inside the object",
            |fixture, object| assert_eq!(fixture.free(ahead::<P>(object, 8), 3), Err(Misuse::NotAnObject)),
            Fault::Misuse(Misuse::NotAnObject),
            (None, None),
        ));
    }
    cases
}

/// Plants each fault in a new world: with free objects in quarantine and, if the engine does not write to
/// free objects, without.
fn check<P: Testable, E: Engine<P>>(name: &str, policy: &E::Policy, release: slablab_slabs::Release) {
    let letters = Letters::parse("FZPU").expect("letters");
    let quarantines: &[u64] = if E::KNOWS_OWNERS { &[0, 4096] } else { &[4096] };
    for (case, bytes) in
        cases::<P, E>().iter().flat_map(|case| quarantines.iter().map(move |bytes| (case, *bytes)))
    {
        let wrap = Wrap { letters, quarantine_bytes: bytes, ..Wrap::default() };
        let fixture = Fixture::<P, E>::new(&Around { engine: policy.clone(), wrap, release });
        // This object retains the slab, and with it the planted fault.
        let neighbour = fixture.alloc(7);
        let object = fixture.alloc(1);
        (case.plant)(&fixture, object);
        let reports = fixture.cache.reports();
        let what = format!("{name}, quarantine of {bytes}: {}", case.name);
        let found = reports.first[0].unwrap_or_else(|| panic!("{what}: nothing was found"));
        assert_eq!(reports.total, 1, "{what}: {reports:?}");
        let Report { fault, cache, object: at, by, allocated, freed } = found;
        assert_eq!((fault, cache), (case.fault, CacheId(1)), "{what}");
        let number = |object: P::Ptr| {
            let (pfn, offset) = P::locate(object);
            ((pfn.0 as u64) << P::page_shift()) + offset as u64
        };
        if case.sites.0.is_some() {
            assert_eq!(at, number(object), "{what}: the object's address");
        }
        assert_eq!(
            (allocated.map(|user| user.site), freed.map(|user| user.site)),
            case.sites,
            "{what}: users"
        );
        assert!(by.cpu == CpuId(0) && by.site > 0, "{what}: {by:?}");
        // The fault did no damage: the cache still works, and can be destroyed.
        fixture.free(neighbour, 4).unwrap_or_else(|misuse| panic!("{what}: {misuse}"));
        if fixture.cache.usage().live_objects() > 0 {
            fixture.free(object, 5).unwrap_or_else(|misuse| panic!("{what}: {misuse}"));
        }
        assert_eq!(fixture.cache.reports().total, 1, "{what}: afterwards");
        for cache in [&fixture.cache, &fixture.other] {
            cache.destroy(&fixture.backing(6)).unwrap_or_else(|busy| panic!("{what}: {busy:?}"));
        }
    }
}

fn every_engine<P: Testable>(name: &str, enter: &dyn Fn(&dyn Fn())) {
    for engine in ["slub@2.6.32", "slub@6.1", "slub@7.0", "slqb", "slab@2.6.29", "slab@6.1", "slob"] {
        let preset = Preset::parse(engine).expect("a preset");
        // Zones before objects, and small records, for every engine's release.
        let release = slablab_slabs::Release::new(6, 1, 0);
        let what = format!("{preset} {name}");
        enter(&|| match &preset {
            Preset::Slub(policy) => check::<P, Slub<P>>(&what, policy, release),
            Preset::Slqb(policy) => check::<P, Slqb<P>>(&what, policy, release),
            Preset::Slab(policy) => check::<P, SlabEngine<P>>(&what, policy, release),
            Preset::Slob(policy) => check::<P, Slob<P>>(&what, policy, release),
            Preset::Registered(_) => unreachable!("none is registered"),
        });
    }
}

#[test]
fn each_is_found_in_the_model() {
    every_engine::<Model>("in the model", &|body| {
        let mut machine = Machine::new(MachineSpec::uniform(2, 1, 1 << 30)).expect("the spec is right");
        machine.enter(body);
    });
}

#[test]
fn each_is_found_in_checked_memory() {
    const SHAPE: Shape = Shape { node_frames: &[1 << 10, 1 << 10], ..Shape::TWO_NODES };
    every_engine::<Alone>("in checked memory", &|body| Alone::enter(SHAPE, body));
}

#[test]
fn each_is_found_in_static_memory() {
    every_engine::<Bare<true>>("in static memory", &|body| Bare::<true>::enter(body));
}

/// A byte of a free object's link is overwritten. The next call that follows the link reports the object.
fn broken_link<P: Testable, E: Engine<P>>(name: &str, policy: &E::Policy) {
    let pages = Pages::<P::Ground>::new(PagesPolicy::for_release(6, 1, 0));
    let common = E::Common::default();
    let backing = Backing::new(&pages, &common);
    let cache = E::create(CacheId(1), &CacheSpec::of_size(BYTES), policy);
    let objects: Vec<_> =
        (0..200).map(|_| cache.alloc(&backing, Gfp::KERNEL, None).expect("memory")).collect();
    // One object next to the victim is not freed, so that the slab stays.
    let freed = objects.iter().enumerate().filter(|(index, _)| *index != 101);
    { freed }.for_each(|(_, object)| cache.free(&backing, *object).expect("just allocated"));
    let victim = objects[100];
    write::<P>(victim, cache.geometry().link_offset as i32 + 5);
    let told = guard(|| {
        let got = (0..200).filter_map(|_| cache.alloc(&backing, Gfp::KERNEL, None)).count();
        assert_eq!(got, 200, "memory is left");
        cache.destroy(&backing)
    });
    let expected = format!("cache 1: BUG: Freechain corrupt: the link of the object at {victim:?} leads to");
    let told = told.expect_err(name);
    assert!(told.starts_with(&expected), "{name}: {told}");
}

#[test]
fn a_broken_link_is_found() {
    const SHAPE: Shape = Shape { node_frames: &[1 << 10, 1 << 10], ..Shape::TWO_NODES };
    type World = Hardened<Alone>;
    for engine in ["slub@2.6.32", "slub@6.1", "slub@7.0", "slqb", "slab@2.6.29", "slab@6.1"] {
        let preset = Preset::parse(engine).expect("a preset");
        let name = preset.to_string();
        Alone::enter(SHAPE, || match &preset {
            Preset::Slub(policy) => broken_link::<World, Slub<World>>(&name, policy),
            Preset::Slqb(policy) => broken_link::<World, Slqb<World>>(&name, policy),
            Preset::Slab(policy) => broken_link::<World, SlabEngine<World>>(&name, policy),
            Preset::Slob(_) => unreachable!("SLOB keeps no links"),
            Preset::Registered(_) => unreachable!("none is registered"),
        });
    }
}
