//! Free memory that goes back when an epoch ends.
//!
//! *Levels*: a CPU takes a page frame and frees it again while another one ends the epoch and gives back
//! what was free all through it. No frame that is out goes back, a frame that the page allocator calls
//! untouched reads as zeros, and the frame that was needed within the epoch is not counted as free all
//! through it. An end of the epoch that reads the level of that moment gives the frame back.
//!
//! *Ends*: the protocol of malloc's epochs by itself. Two CPUs find that an epoch is over. One of them ends
//! it, and what was used most in the epoch is known until the end of the next. If both end it, the second
//! end forgets it.

use slablab_check::kit::{Job, Kit};
use slablab_check::{Checked, Limits, Loom, Shape, Shuttle, effort, explore};
use slablab_pages::policy::{MinFree, PcpRule, ZoneRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Gfp, NodeId, Pfn, Platform, Word};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// What the end of an epoch takes for the frames that nobody needed.
#[derive(Clone, Copy)]
enum Idle {
    LeastLevel,
    /// Wrong: the frame that was needed is free again.
    LevelNow,
}

/// How a CPU ends an epoch that is over.
#[derive(Clone, Copy)]
enum End {
    Once,
    /// Wrong: the CPUs do not exchange the time of the epoch's begin.
    ByBoth,
}

/// As malloc's pages are.
fn policy() -> PagesPolicy {
    let mut policy = PagesPolicy::for_release(6, 18, 0);
    policy.zones = Some(ZoneRule::One);
    policy.pcp = PcpRule::NONE;
    policy.min_free = MinFree::Kib(0);
    policy.resident_first = true;
    policy
}

struct Levels<P: Platform> {
    pages: Pages<P>,
    /// Frames that are out; frames that may hold something.
    out: RefCell<BTreeSet<u32>>,
    written: RefCell<BTreeSet<u32>>,
    /// Whether the frame was taken within the epoch.
    was_needed: Cell<bool>,
    /// Stands for the memory: written by who takes a frame, and by the kernel that gets one back. Loom runs
    /// the CPUs in both orders there.
    memory: P::Word,
}

impl<P: Platform> Levels<P> {
    /// `None` while all memory is on its way back.
    fn take(&self) -> Option<Pfn> {
        let (pfn, untouched) = self.pages.alloc_exact(Gfp::KERNEL, 1, 0, NodeId(0))?;
        assert!(self.out.borrow_mut().insert(pfn.0), "{pfn:?} is out already");
        self.memory.store(1);
        let is_new = self.written.borrow_mut().insert(pfn.0);
        assert!(is_new || !untouched, "{pfn:?} holds something and is called untouched");
        Some(pfn)
    }

    fn free(&self, pfn: Pfn) {
        self.out.borrow_mut().remove(&pfn.0);
        self.pages.free_exact(pfn);
    }

    /// Ends the epoch; returns the frames that went back.
    fn end_epoch(&self, idle: Idle, free: u64) -> u64 {
        let was_needed = self.was_needed.get();
        let idle = match idle {
            Idle::LeastLevel => self.pages.least_resident(),
            Idle::LevelNow => self.pages.resident_free_frames(),
        };
        assert!(!was_needed || idle < free, "a frame that was needed counts as idle: {idle} of {free} do");
        let keep = self.pages.resident_free_frames().saturating_sub(idle);
        self.pages.report_free(0, keep, |pfn, order| {
            self.memory.store(0);
            for frame in pfn.0..pfn.0 + (1 << order) {
                assert!(!self.out.borrow().contains(&frame), "frame {frame} is out and goes back");
                self.written.borrow_mut().remove(&frame);
            }
            true
        })
    }
}

/// The CPU that ends the epoch reads the level `delay` times before. Random schedules run both CPUs about
/// equally fast, so without a delay the epoch ends before the other CPU took its frame.
fn levels<K: Kit>(idle: Idle, delay: u32, limits: Limits) -> Result<u64, String> {
    let explored = explore::<K>(limits, move || {
        Checked::<K>::enter(Shape::ONE_NODE, || {
            let levels = Rc::new(Levels::<Checked<K>> {
                pages: Pages::new(policy()),
                out: RefCell::default(),
                written: RefCell::default(),
                was_needed: Cell::new(false),
                memory: Word::new(0),
            });
            let frames = [levels.take(), levels.take()];
            frames.into_iter().for_each(|frame| levels.free(frame.expect("memory is left")));
            // Another epoch begins.
            levels.pages.least_resident();
            let free = levels.pages.resident_free_frames();
            let (user, keeper) = (levels.clone(), levels.clone());
            let needs = move || {
                if let Some(frame) = user.take() {
                    user.was_needed.set(true);
                    user.free(frame);
                }
            };
            let ends = move || {
                for _ in 0..delay {
                    keeper.pages.resident_free_frames();
                }
                keeper.end_epoch(idle, free);
            };
            let jobs: Vec<(CpuId, Job)> = vec![(CpuId(0), Box::new(needs)), (CpuId(1), Box::new(ends))];
            Checked::<K>::together(jobs);
            // Two more epochs in which nobody needs anything.
            levels.was_needed.set(false);
            levels.end_epoch(Idle::LeastLevel, u64::MAX);
            levels.end_epoch(Idle::LeastLevel, u64::MAX);
            assert_eq!(levels.pages.resident_free_frames(), 0, "idle memory stays");
            assert!(levels.written.borrow().is_empty(), "frames that hold something stay");
        });
    });
    explored.map(|explored| explored.executions)
}

/// Changes a word until no other CPU did at the same time; returns what it was.
fn change(word: &impl Word, to: impl Fn(u64) -> u64) -> u64 {
    let mut before = word.load();
    while let Err(found) = word.compare_exchange(before, to(before)) {
        before = found;
    }
    before
}

/// The words of malloc's `shared::upkeep`.
struct Epoch<W> {
    began: W,
    most: W,
    most_before: W,
}

impl<W: Word> Epoch<W> {
    fn note(&self, used: u64) {
        change(&self.most, |most| most.max(used));
    }

    /// Ends the epoch if it is over.
    fn look(&self, now: u64, used: u64, end: End) {
        let began = self.began.load();
        self.note(used);
        let is_over = began < now;
        let ends = match end {
            End::Once => is_over && self.began.compare_exchange(began, now).is_ok(),
            End::ByBoth => {
                self.began.store(now);
                is_over
            }
        };
        if ends {
            self.most_before.store(change(&self.most, |_| used));
        }
    }
}

fn ends<K: Kit>(end: End, limits: Limits) -> Result<u64, String> {
    /// Frames in use: the most within the epoch, and at its end.
    const MOST: u64 = 9;
    const NOW: u64 = 2;
    let explored = explore::<K>(limits, move || {
        Checked::<K>::enter(Shape::ONE_NODE, || {
            let word = <Checked<K> as slablab_platform::Frames>::Word::new;
            let epoch = Rc::new(Epoch { began: word(0), most: word(0), most_before: word(0) });
            epoch.note(MOST);
            let look = |epoch: Rc<Epoch<_>>| -> Job { Box::new(move || epoch.look(1, NOW, end)) };
            let jobs = vec![(CpuId(0), look(epoch.clone())), (CpuId(1), look(epoch.clone()))];
            Checked::<K>::together(jobs);
            let known = epoch.most.load().max(epoch.most_before.load());
            assert_eq!(known, MOST, "the most that was used in the last epoch is forgotten");
        });
    });
    explored.map(|explored| explored.executions)
}

fn check(explored: Result<u64, String>, expected: Option<&str>) {
    match (explored, expected) {
        (Ok(executions), None) => assert!(executions > 1, "only one schedule was explored"),
        (Err(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
        (Ok(executions), Some(_)) => panic!("{executions} schedules found nothing"),
        (Err(found), None) => panic!("{found}"),
    }
}

const DELAY: u32 = 60;
const NEEDED: &str = "a frame that was needed counts as idle";
const FORGOTTEN: &str = "the most that was used in the last epoch is forgotten";

#[test]
fn loom_epochs() {
    check(levels::<Loom>(Idle::LeastLevel, 0, Limits::QUICK), None);
    check(levels::<Loom>(Idle::LevelNow, 0, Limits::QUICK), Some(NEEDED));
    check(ends::<Loom>(End::Once, Limits::QUICK), None);
    check(ends::<Loom>(End::ByBoth, Limits::QUICK), Some(FORGOTTEN));
}

#[test]
fn shuttle_epochs() {
    let limits = Limits { executions: effort(1_000) as usize, ..Limits::QUICK };
    check(levels::<Shuttle>(Idle::LeastLevel, DELAY, limits), None);
    check(levels::<Shuttle>(Idle::LevelNow, DELAY, limits), Some(NEEDED));
    check(ends::<Shuttle>(End::Once, limits), None);
    check(ends::<Shuttle>(End::ByBoth, limits), Some(FORGOTTEN));
}
