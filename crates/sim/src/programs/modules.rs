//! Test modules of the kernel that lists argue with: rcuscale's kfree_rcu_test and test_vmalloc.
//!
//! | program | an operation |
//! |---|---|
//! | kfree-rcu | an object of 24 bytes (times `mult`) is allocated, and given to kfree_rcu; a round is `objects` of them |
//! | vmalloc | an area of `pages` pages is allocated, and freed |
//!
//! Of vmalloc the objects and pages are modelled, without the trees of areas and their locks. An area that
//! was freed keeps its `vmap_area` until so many pages wait that a task purges all of them.

use super::program::{Estimate, Metric, Object as Described, Observed, Pair, Program};
use super::repeat::{Length, Repeat, Repeats};
use super::repeated::{self, METRICS};
use crate::heap::Named;
use crate::kernel::Task;
use crate::kernel::objects::Held;
use crate::kernel::tally::Failed;
use crate::params::params;
use crate::process::Kind;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{LockTimes, MachineSpec, Timed};
use slablab_platform::Topology;
use slablab_slabs::{CacheSpec, Release};
use std::cell::RefCell;

/// An object of rcuscale: eight bytes and the head of two words that kfree_rcu needs.
const RCU_OBJECT: u32 = 24;
/// An area in the kernel's tree of them, a cache of its own; its size is in slabinfo of 6.1 and of 6.12.
const AREA: &str = "vmap_area";
/// What the kernel keeps of an area beside it (assumed), and a page of its list of pages.
const VM_STRUCT: u32 = 72;
const PAGE_POINTER: u32 = 8;
/// Freed areas wait until so many MiB for each doubling of the CPUs are theirs (from memory).
const LAZY_MIB: u64 = 32;

params! {
    /// The parameters of kfree-rcu.
    #[derive(Copy, Eq)]
    pub struct Frees {
        tasks: u32 = repeated::TASKS;
        objects: u32 = [500, 8_000, 8_000], 1..=1_000_000, "objects that a round allocates and frees",
            "rcuscale.kfree_alloc_num, 8,000 if not given (the kernel's parameters)";
        rounds: u64 = [3, 3, 10], 1..=100_000, "rounds of each task",
            "rcuscale.kfree_loops, 10 if not given";
        mult: u32 = [1, 1, 1], 1..=256, "an object has 24 bytes, times this", "rcuscale.kfree_mult, 1 if not given";
    }
}

params! {
    /// The parameters of vmalloc.
    #[derive(Copy, Eq)]
    pub struct Areas {
        tasks: u32 = repeated::TASKS;
        pages: u32 = [1, 1, 1], 1..=512, "pages of an area", "test_vmalloc.nr_pages, 1 if not given";
        outside_ns: u64 = repeated::OUTSIDE;
        warm_up_us: u64 = repeated::WARM_UP;
        window_us: u64 = repeated::WINDOW;
    }
}

/// rcuscale's kfree_rcu_test.
#[derive(Debug)]
pub enum KfreeRcu {}

/// test_vmalloc's fix_size_alloc_test.
#[derive(Debug)]
pub enum Vmalloc {}

impl Frees {
    fn repeat(&self) -> Repeat {
        Repeat { tasks: self.tasks, kind: Kind::Thread, outside: 0, length: Length::Rounds(self.rounds) }
    }
}

impl Areas {
    fn repeat(&self) -> Repeat {
        let window = [self.warm_up_us, self.window_us];
        repeated::window(self.tasks, Kind::Thread, self.outside_ns, window)
    }
}

impl Program for KfreeRcu {
    type Params = Frees;

    const NAME: &'static str = "kfree-rcu";
    const ABOUT: &'static str =
        "tasks that allocate objects in bursts and free each after a grace period: rcuscale's kfree_rcu_test";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[
        Pair { machine: "laptop", parameters: "tasks = 8", why: "frees after a grace period, in bursts" },
        Pair { machine: "spr224", parameters: "tasks = 56", why: "the same, on a quarter of many CPUs" },
    ];

    fn objects(_: Release) -> Vec<Described> {
        vec![Described {
            cache: "kmalloc-32",
            bytes: RCU_OBJECT,
            per_operation: "1, freed after a grace period".into(),
            source: "rcuscale: kfree_mult",
        }]
    }

    fn ignores(cost: &str) -> bool {
        repeated::ignores(cost)
    }

    fn estimate(machine: &MachineSpec, params: &Frees) -> Estimate {
        let repeat = params.repeat();
        let rounds = Length::Rounds(params.rounds.saturating_mul(params.objects.into()));
        let bytes = u64::from(params.tasks) * params.rounds * u64::from(params.objects);
        let waiting =
            Estimate::of_operations(machine, 0, bytes.saturating_mul((RCU_OBJECT * params.mult).into()));
        let estimate = repeated::estimate(machine, &Repeat { length: rounds, ..repeat }, [40, 400]);
        Estimate { host_bytes: estimate.host_bytes + waiting.host_bytes, ..estimate }
    }

    /// A repeat draws what the scheduler draws.
    fn run(setup: &Setup, params: &Frees, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        repeated::run(setup, &params.repeat(), seed, recorder, &[], |_| *params)
    }
}

impl Repeats for Frees {
    type Process = ();

    fn process(&self, _: &Task) {}

    fn operation(&self, task: &Task, (): &()) -> u64 {
        for _ in 0..self.objects {
            // A task of the kernel makes no system calls, which let CPUs with earlier clocks go on.
            Timed::turn();
            task.free_after_grace(task.alloc_bytes(RCU_OBJECT * self.mult));
            task.preemption_point();
        }
        self.objects.into()
    }

    fn end(&self, _: &Task, (): ()) {}

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        Vec::new()
    }
}

impl Program for Vmalloc {
    type Params = Areas;

    const NAME: &'static str = "vmalloc";
    const ABOUT: &'static str =
        "tasks that each allocate an area of vmalloc and free it: test_vmalloc's fix_size_alloc_test";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] =
        &[Pair { machine: "laptop", parameters: "tasks = 8", why: "areas that are freed many at once" }];

    fn objects(release: Release) -> Vec<Described> {
        let of = |cache, bytes, per_operation: &str, source| Described {
            cache,
            bytes,
            per_operation: per_operation.to_string().into(),
            source,
        };
        vec![
            of(AREA, area_bytes(release), "1, freed with many others", "slabinfo of 6.1 and of 6.12"),
            of("kmalloc", VM_STRUCT, "1", "assumed"),
            of("kmalloc", PAGE_POINTER, "as many bytes for each page, in one object", "a pointer"),
            of("page", 4096, "as many as an area has", "page size of the machine"),
        ]
    }

    fn ignores(cost: &str) -> bool {
        repeated::ignores(cost)
    }

    fn estimate(machine: &MachineSpec, params: &Areas) -> Estimate {
        let pages = u64::from(params.pages);
        repeated::estimate(machine, &params.repeat(), [300 + 50 * pages, 1_500 + 400 * pages])
    }

    /// A repeat draws what the scheduler draws.
    fn run(setup: &Setup, params: &Areas, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let spec = CacheSpec::of_size(area_bytes(setup.preset.release()));
        let own = [Named { name: AREA.into(), spec }];
        let pages = params.pages;
        let make = |_: &_| Lazy {
            pages,
            most: lazy_pages(Timed::cpus(), Timed::page_shift()),
            freed: RefCell::default(),
        };
        repeated::run(setup, &params.repeat(), seed, recorder, &own, make)
    }
}

/// Bytes of a `vmap_area`.
fn area_bytes(release: Release) -> u32 {
    if release < Release::new(6, 12, 0) { 64 } else { 72 }
}

/// Pages of `1 << page_shift` bytes of freed areas that wait at most, on so many CPUs.
fn lazy_pages(cpus: u16, page_shift: u32) -> u64 {
    let doublings = u64::from(u16::BITS - cpus.leading_zeros());
    doublings * ((LAZY_MIB << 20) >> page_shift)
}

/// Areas, and those that were freed and wait.
struct Lazy {
    pages: u32,
    most: u64,
    freed: RefCell<Vec<Held>>,
}

impl Lazy {
    /// Frees all that waits, if it is too much.
    fn purge(&self, task: &Task) {
        let waits = self.freed.borrow().len() as u64 * u64::from(self.pages);
        if waits > self.most {
            let all = self.freed.take();
            all.into_iter().for_each(|area| task.free(area));
        }
    }
}

impl Repeats for Lazy {
    type Process = ();

    fn process(&self, _: &Task) {}

    fn operation(&self, task: &Task, (): &()) -> u64 {
        Timed::turn();
        let vm_struct = task.alloc_bytes(VM_STRUCT);
        let area = task.alloc_from(task.kernel.own(0));
        let list = task.alloc_bytes(PAGE_POINTER * self.pages);
        let pages: Vec<Held> = (0..self.pages).map(|_| task.alloc_pages(0)).collect();
        pages.into_iter().for_each(|page| task.free(page));
        task.free(list);
        task.free(vm_struct);
        self.freed.borrow_mut().push(area);
        self.purge(task);
        task.preemption_point();
        1
    }

    fn end(&self, task: &Task, (): ()) {
        self.freed.take().into_iter().for_each(|area| task.free(area));
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::lazy_pages;

    #[test]
    fn freed_areas_wait_by_the_number_of_cpus() {
        let check = |cpus, page_shift, pages| assert_eq!(lazy_pages(cpus, page_shift), pages, "{cpus} CPUs");
        check(1, 12, 8_192);
        check(4, 12, 24_576);
        check(224, 12, 65_536);
        check(512, 12, 81_920);
        check(160, 16, 4_096);
    }
}
