//! Whole programs, one per CPU.

use super::heap::Heap;
use super::races::{Step, alloc_one};
use crate::kit::Job;
use crate::program::Random;
use crate::{Checked, Limits, Shape, Shuttle, explore};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Event};
use slablab_slabs::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The machine and the length of a whole program.
#[derive(Clone, Copy)]
pub struct Load {
    /// The machine.
    pub shape: Shape,
    /// Bytes of an object.
    pub size: u32,
    /// The number of steps of each CPU.
    pub steps: u32,
    /// An event that at least one execution must count.
    pub seen: Option<Event>,
}

impl Load {
    /// A short program of objects of 700 bytes.
    pub const fn on(shape: Shape) -> Load {
        Load { shape, size: 700, steps: 40, seen: None }
    }
}

/// Runs one CPU's part of a whole program.
fn run<P: Testable, E: Engine<P>>(heap: &Heap<P, E>, seed: u64, steps: u32) {
    let mut random = Random(seed);
    let take = |random: &mut Random| {
        let held = heap.live.borrow().len() as u64;
        let index = (held > 0).then(|| random.below(held) as usize)?;
        heap.live.borrow_mut().swap_remove_back(index)
    };
    for _ in 0..steps {
        match random.below(100) {
            0..48 => alloc_one(heap),
            48..78 => take(&mut random).into_iter().for_each(|object| heap.free(object)),
            78..88 => take(&mut random).into_iter().for_each(|object| heap.free_rcu(object)),
            88..91 => heap.lend(random.below(10) as u32),
            91..94 => heap.use_lent(false),
            94..97 => heap.use_lent(true),
            _ => heap.end_grace_period(),
        }
    }
}

/// Runs a random program on every CPU, after `prepare` on one; the CPUs also free each other's objects.
/// Returns the number of executions and how often they counted `load.seen`.
///
/// # Errors
/// The text of the panic that a schedule ended with.
pub fn programs<P: Testable, E: Engine<P> + 'static>(
    policy: &E::Policy,
    load: Load,
    limits: Limits,
    prepare: Step<P, E>,
) -> Result<(u64, u64), String>
where
    E::Policy: Send + Sync + 'static,
{
    let policy = policy.clone();
    let saw = Arc::new(AtomicU64::new(0));
    let counted = saw.clone();
    let explored = explore::<Shuttle>(limits, move || {
        Checked::<Shuttle>::enter(load.shape, || {
            let heap = Heap::<P, E>::new(&policy, load.size);
            prepare(&heap);
            heap.racing.set(true);
            let jobs = (0..P::cpus()).map(|cpu| -> (CpuId, Job) {
                let heap = heap.clone();
                (CpuId(cpu), Box::new(move || run(&heap, cpu as u64 + 17, load.steps)))
            });
            Checked::<Shuttle>::together(jobs.collect());
            heap.racing.set(false);
            assert!(heap.allocs.get() > 20, "only {} allocations", heap.allocs.get());
            counted.fetch_add(load.seen.map_or(1, |event| heap.cache.counted(event)), Ordering::Relaxed);
            heap.end();
        });
    })?;
    Ok((explored.executions, saw.load(Ordering::Relaxed)))
}
