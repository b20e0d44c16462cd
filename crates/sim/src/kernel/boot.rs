//! Boot: a machine is made and entered, and the release's scheduler and slab caches are there.

use super::{Kernel, NEVER, Prices, Processor, completions, groups, watch};
use crate::heap::paths::paths;
use crate::heap::start::start;
use crate::heap::{Heap, Named, heap, heap_with};
use crate::kernel::era::Era;
use crate::kernel::messages::Messages;
use crate::kernel::objects;
use crate::kernel::tally::{Failed, Tally};
use crate::record::Recorder;
use crate::sched::{Machine, Scheduler};
use crate::setup::Setup;
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use slablab_model::{Timed, TimedMachine};
use slablab_pages::PagesPolicy;
use slablab_platform::{NodeId, Topology};
use slablab_slabs::Preset;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Makes a machine, enters it, boots a kernel there and runs `f` on it.
///
/// # Errors
/// A machine that cannot be modelled, a release without a scheduler; what `f` returns.
pub fn with_kernel<T>(
    setup: &Setup,
    seed: u64,
    f: impl FnOnce(&Rc<Kernel>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    with_recorded_kernel(setup, seed, &Recorder::default(), f)
}

/// Makes a machine, enters it, boots a kernel there that tells `recorder` what it does, and runs `f` on it.
///
/// # Errors
/// A machine that cannot be modelled, a release without a scheduler; what `f` returns.
pub fn with_recorded_kernel<T>(
    setup: &Setup,
    seed: u64,
    recorder: &Recorder,
    f: impl FnOnce(&Rc<Kernel>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    with_caches(setup, seed, recorder, &[], f)
}

/// Makes a machine, enters it, boots a kernel there that has `own` caches too, and runs `f` on it.
///
/// # Errors
/// A machine that cannot be modelled, a release without a scheduler; what `f` returns.
pub(crate) fn with_caches<T>(
    setup: &Setup,
    seed: u64,
    recorder: &Recorder,
    own: &[Named],
    f: impl FnOnce(&Rc<Kernel>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    on_machine(setup, seed, |policy| f(&Rc::new(Kernel::boot(setup, policy, seed, recorder, own))))
}

/// Makes a machine, enters it, boots a kernel there that has `own` caches too and a page allocator with rules
/// of its own, which tells `recorder` what it does, and runs `f` on it.
pub(crate) fn with_pages<T>(
    setup: &Setup,
    seed: u64,
    recorder: &Recorder,
    own: &[Named],
    pages: PagesPolicy,
    f: impl FnOnce(&Rc<Kernel>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    let heap = move |named: &[Named]| heap_with(&setup.preset, pages, named);
    on_machine(setup, seed, |policy| f(&Rc::new(Kernel::over(setup, policy, seed, recorder, own, heap))))
}

/// Makes a machine, enters it, boots a kernel there with these cycles of sends and receives, and runs `f` on
/// it.
pub(crate) fn with_messages<T>(
    setup: &Setup,
    seed: u64,
    recorder: &Recorder,
    messages: Messages,
    f: impl FnOnce(&Rc<Kernel>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    on_machine(setup, seed, |policy| {
        f(&Rc::new(Kernel { messages, ..Kernel::boot(setup, policy, seed, recorder, &[]) }))
    })
}

/// Makes a machine, enters it, and runs `f` there with the release's scheduler.
fn on_machine<T>(
    setup: &Setup,
    seed: u64,
    f: impl FnOnce(crate::sched::Policy) -> Result<T, Failed>,
) -> Result<T, Failed> {
    let paths = paths(&setup.preset, &setup.hardware.costs);
    // A sum: the seeds of machine and run may be equal, and would cancel each other in an exclusive or.
    let spec = slablab_model::MachineSpec { seed: setup.spec.seed.wrapping_add(seed), ..setup.spec.clone() };
    let failed = |error: &dyn std::fmt::Display| Failed::Machine(error.to_string());
    setup.boot.check(&setup.preset, &setup.spec).map_err(|error| failed(&error))?;
    let mut machine =
        TimedMachine::new(spec, setup.hardware.clone(), paths).map_err(|error| failed(&error))?;
    let policy = Era::of(&setup.preset).scheduler().map_err(|error| failed(&error))?;
    machine.enter(|| f(policy))
}

impl Kernel {
    fn boot(
        setup: &Setup,
        policy: crate::sched::Policy,
        seed: u64,
        recorder: &Recorder,
        own: &[Named],
    ) -> Kernel {
        let heap = |named: &[Named]| heap(&setup.preset, named);
        Self::over(setup, policy, seed, recorder, own, heap)
    }

    /// A kernel over the slab caches that `heap` makes.
    fn over(
        setup: &Setup,
        policy: crate::sched::Policy,
        seed: u64,
        recorder: &Recorder,
        own: &[Named],
        heap: impl FnOnce(&[Named]) -> Rc<dyn Heap>,
    ) -> Kernel {
        let era = Era::of(&setup.preset);
        let (numbers, mut named) = objects::caches(era, Timed::page_shift());
        let own_first = named.len() as u16;
        named.extend_from_slice(own);
        let heap = start(setup, seed, named, heap);
        let nodes = setup.spec.nodes.len() as u16;
        let distances = (0..nodes)
            .map(|from| (0..nodes).map(|to| Timed::distance(NodeId(from), NodeId(to))).collect())
            .collect();
        let machine = Machine {
            core: setup.hardware.core.clone(),
            llc: setup.hardware.llc.clone(),
            node: setup.spec.cpu_node.clone(),
            distances,
            reclaim_distance: 30,
        };
        let tick = policy.tick;
        let costs = &setup.hardware.costs;
        let watch = watch::Watch::new(recorder, &*heap, matches!(setup.preset, Preset::Slab(_)));
        let processor = |_| Processor {
            next_tick: Cell::new(tick),
            resched_at: Cell::new(NEVER),
            idle_since: Cell::new(0),
            mm: Cell::new(u32::MAX),
            working: Cell::new(false),
            after_grace: RefCell::default(),
            works: RefCell::default(),
            due: Cell::new(NEVER),
            interrupts: completions::Interrupts::default(),
            armed: Cell::new(NEVER),
        };
        Kernel {
            era,
            tally: RefCell::new(Tally::of(&*heap)),
            booted_bytes: heap.slab_bytes(),
            heap,
            prices: Prices {
                cycle: costs.cycle,
                syscall: costs.syscall,
                copy_kib: costs.copy_kib,
                switch_mm: costs.switch_mm,
                switch_thread: costs.switch_thread,
                wake_local: costs.wake_local,
                wake_remote: costs.wake_remote,
                ipi: costs.ipi,
                ipi_send: costs.ipi_send,
                idle_exit: costs.idle_exit,
                fork: costs.fork,
                exit: costs.exit,
                tick,
            },
            messages: Messages::ASSUMED,
            numbers,
            own_first,
            sched: RefCell::new(Scheduler::new(policy, &machine)),
            tasks: RefCell::default(),
            groups: RefCell::new(vec![groups::Done::default()]),
            cpus: (0..Timed::cpus()).map(processor).collect(),
            random: RefCell::new(Pcg64Mcg::seed_from_u64(seed)),
            processes: Cell::new(0),
            failed: RefCell::new(None),
            progress: Default::default(),
            watch,
            beat: recorder.beat(),
        }
    }
}
