//! State of a debugged cache that CPUs share, under loom and shuttle: the quarantine, marks, records and
//! reports.

use slablab_check::kit::{Job, Kit};
use slablab_check::{Checked, Explored, Limits, Loom, Shape, Shuttle, effort, explore};
use slablab_pages::policy::{MinFree, PcpRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Gfp, Platform};
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Preset;
use slablab_slabs::report::Fault;
use slablab_slabs::wrap::{Around, Debugged, Wrap};
use slablab_slabs::zones::Letters;
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Misuse, Release};
use std::cell::Cell;
use std::rc::Rc;

/// A debugged cache whose quarantine holds one object, and its allocated objects.
struct Fixture<P: Platform> {
    pages: Pages<P::Ground>,
    cache: Debugged<P, Slub<P>>,
    objects: [P::Ptr; 3],
    refused: Cell<u32>,
}

impl<P: Testable> Fixture<P> {
    fn new() -> Rc<Self> {
        let Ok(Preset::Slub(engine)) = Preset::parse("slub@6.1") else { unreachable!("6.1 has a preset") };
        let letters = Letters::parse("FZPU").expect("letters");
        let wrap = Wrap { letters, quarantine_bytes: 150, ..Wrap::default() };
        let around = Around { engine, wrap, release: Release::new(6, 1, 0) };
        let cache = Debugged::<P, Slub<P>>::create(CacheId(1), &CacheSpec::of_size(16), &around);
        let policy = PagesPolicy {
            min_free: MinFree::Kib(0),
            pcp: PcpRule::NONE,
            ..PagesPolicy::for_release(6, 1, 0)
        };
        let pages = Pages::new(policy);
        let backing = Backing::pages(&pages);
        let objects = [1, 2, 3].map(|site| {
            cache.alloc(&Backing { site, ..backing }, Gfp::KERNEL, None).expect("memory is left")
        });
        Rc::new(Fixture { pages, cache, objects, refused: Cell::new(0) })
    }

    fn free(&self, index: usize) {
        let backing = Backing { site: 10 + P::cpu().0 as u64, ..Backing::pages(&self.pages) };
        if self.cache.free(&backing, self.objects[index]) == Err(Misuse::AlreadyFree) {
            self.refused.set(self.refused.get() + 1);
        }
    }

    /// Checks that no object was lost, and that only the planted faults were reported.
    fn end(&self, refused: u32) {
        let reports = self.cache.reports();
        assert_eq!((self.refused.get(), reports.total), (refused, refused as u64), "{reports:?}");
        for report in reports.first.iter().flatten() {
            assert_eq!(report.fault, Fault::Misuse(Misuse::AlreadyFree));
            assert_eq!(report.allocated.map(|user| user.site), Some(1), "the call site that allocated it");
            let other = 21 - report.by.site;
            assert_eq!(report.freed.map(|user| user.site), Some(other), "the call site that freed it first");
        }
        P::still(|| {
            assert_eq!(self.cache.destroy(&Backing::pages(&self.pages)), Ok(()), "objects were lost");
            assert_eq!(self.cache.usage().slabs, 0, "slabs were lost");
            self.pages.check().expect("pages balance");
        });
    }
}

type Step<P> = fn(&Fixture<P>);

/// Runs two steps at once on two CPUs, over three allocated objects, in every schedule within the limits.
/// `refused` frees must be refused.
fn check<K: Kit>(name: &str, limits: Limits, steps: [Step<Checked<K>>; 2], refused: u32) {
    let explored: Result<Explored, String> = explore::<K>(limits, move || {
        Checked::<K>::enter(Shape::ONE_NODE, || {
            let fixture = Fixture::<Checked<K>>::new();
            let jobs = [0, 1].map(|cpu| {
                let (fixture, step) = (fixture.clone(), steps[cpu as usize]);
                let job: Job = Box::new(move || step(&fixture));
                (CpuId(cpu), job)
            });
            Checked::<K>::together(jobs.into());
            fixture.end(refused);
        });
    });
    let explored = explored.unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    println!("{name}: {} executions", explored.executions);
    assert!(explored.executions > 1, "{name}: only one schedule was explored");
}

fn every_race<K: Kit>(limits: Limits) {
    // Two objects enter the quarantine. The second free takes one out.
    check::<K>(
        "two frees into quarantine",
        limits,
        [
            |fixture| {
                fixture.free(0);
                fixture.free(1);
            },
            |fixture| fixture.free(2),
        ],
        0,
    );
    check::<K>(
        "a double free on two CPUs",
        limits,
        [
            |fixture| fixture.free(0),
            |fixture| {
                fixture.free(0);
                fixture.free(1);
                fixture.free(2);
            },
        ],
        1,
    );
}

#[test]
fn loom() {
    every_race::<Loom>(Limits { preemptions: 1, ..Limits::QUICK });
}

#[test]
fn shuttle() {
    every_race::<Shuttle>(Limits { executions: 300 * effort(1) as usize, ..Limits::QUICK });
}
