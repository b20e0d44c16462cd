//! What a microbenchmark would measure on a machine: pairs, batches, frees on another CPU, all CPUs at once.

mod bench;
mod crowd;

use crate::kernel::tally::Failed;
use crate::record::Recorder;
use crate::record::profile::{Profile, lock_times};
use crate::setup::Setup;
use bench::Bench;
use slablab_model::{LockTimes, Paths, Ps, Timed};
use slablab_platform::CpuId;
use std::rc::Rc;

/// A pattern of allocations and frees of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// An object is allocated and freed, again and again.
    Pair,
    /// So many objects are allocated, then all are freed, the first first.
    Batch(u32),
    /// So many objects are allocated, then all are freed, in an order that is drawn for each batch.
    Shuffled(u32),
    /// One CPU allocates and another frees; at most so many objects are between them. Each free touches
    /// nothing but what the engine touches: how the address gets to the other CPU is not charged.
    OneWay {
        /// The CPU that frees.
        to: CpuId,
        /// Objects between the two.
        window: u32,
    },
    /// The first `cpus` CPUs at once allocate `each` objects. When the last is done, each frees its own, the
    /// first first.
    Concurrent {
        /// CPUs.
        cpus: u16,
        /// Objects of each CPU.
        each: u32,
    },
    /// A program with a thread on each of the first `cpus` CPUs.
    Crowd {
        /// What the threads do.
        of: Crowd,
        /// CPUs: an even number where half of them frees.
        cpus: u16,
        /// Objects that a thread allocates in a round.
        each: u32,
    },
}

/// What the threads of a program do. Each round allocates, and frees, `each` objects a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// Each thread frees what it allocated, the first first.
    Churn,
    /// As larson: random objects of a table of a quarter as many are replaced, and tables go to other threads
    /// after each round.
    Larson,
    /// As xmalloc: half of the threads allocate batches of twice as many, half free them.
    OneWay,
    /// As mstress: threads allocate and free at random, and swap objects at random.
    Swap,
}

impl Pattern {
    /// The CPUs that take part.
    fn cpus(self) -> Vec<CpuId> {
        match self {
            Pattern::Pair | Pattern::Batch(_) | Pattern::Shuffled(_) => vec![CpuId(0)],
            Pattern::OneWay { to, .. } => vec![CpuId(0), to],
            Pattern::Concurrent { cpus, .. } | Pattern::Crowd { cpus, .. } => (0..cpus).map(CpuId).collect(),
        }
    }

    /// Objects of the pattern before it begins again.
    fn round(self) -> u64 {
        match self {
            Pattern::Pair | Pattern::OneWay { .. } => 1,
            Pattern::Batch(batch) | Pattern::Shuffled(batch) => batch.into(),
            Pattern::Concurrent { cpus, each } | Pattern::Crowd { cpus, each, .. } => {
                u64::from(cpus) * u64::from(each)
            }
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The pattern.
    pub pattern: Pattern,
    /// Bytes of an object.
    pub bytes: u32,
    /// 0: the objects are of kmalloc's class. Else they have a cache of their own, which asks for sheaves of
    /// this capacity; only releases that let caches opt in give it what it asks for.
    pub sheaf_capacity: u32,
    /// Objects that are counted, in whole rounds of the pattern.
    pub objects: u64,
    /// Draws the order of shuffled frees.
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Objects allocated and freed.
    pub objects: u64,
    /// CPU time for each object, allocation and free together, on all CPUs.
    pub cpu: Ps,
    /// Time from the start to the end, for each object.
    pub wall: Ps,
    /// How long an allocation took, waits for locks included.
    pub alloc: Ps,
    /// How long a free took, waits for locks included.
    pub free: Ps,
    /// Allocations that took the fast path, of 1,000.
    pub fast_allocs: u64,
    /// Frees that took the fast path, of 1,000.
    pub fast_frees: u64,
    /// Where the time of the CPUs went.
    pub profile: Profile,
    /// What the locks of each rank did, by the rank's name.
    pub locks: Vec<(&'static str, LockTimes)>,
    /// Cache lines that came from other CPUs' caches or from memory.
    pub lines: u64,
}

/// Objects of the warm-up, unless fewer are counted.
const WARM_UP: u64 = 20_000;

/// Runs a pattern with these prices of the engine's operations: first once to warm up, then for the objects
/// that count, which is recorded: slow operations, waits for locks, memory of slabs.
///
/// # Errors
/// A machine that cannot be modelled, or that has no memory for the pattern.
pub fn measure(setup: &Setup, paths: Paths, load: &Load, recorder: &Recorder) -> Result<Measured, Failed> {
    let rounds = |objects: u64| objects.div_ceil(load.pattern.round()).max(1);
    Bench::enter(setup, paths, load, recorder, |bench: &Rc<Bench>| {
        let warm_up = match load.pattern {
            // Sheaves and lists of many CPUs grow for longer.
            Pattern::Crowd { .. } => load.objects,
            _ => load.objects.min(WARM_UP),
        };
        bench.run(load.pattern, rounds(warm_up))?;
        bench.restart();
        let (locks, lines) = (lock_times(), Timed::lines_moved());
        let now = || Profile::until(Timed::latest(), load.pattern.cpus(), bench.heap());
        let (start, fast) = (now(), bench.fast());
        bench.run(load.pattern, rounds(load.objects))?;
        let profile = now().since(&start);
        let objects = rounds(load.objects) * load.pattern.round();
        let fast_after = bench.fast();
        let of_all = |at: usize| (fast_after[at] - fast[at]) * 1000 / objects;
        let [alloc, free] = bench.times().map(|time| time / objects);
        Ok(Measured {
            objects,
            cpu: profile.spent.iter().flatten().sum::<Ps>() / objects,
            wall: profile.elapsed / objects,
            alloc,
            free,
            fast_allocs: of_all(0),
            fast_frees: of_all(1),
            profile,
            locks: lock_times().into_iter().zip(locks).map(|(now, then)| (now.0, now.1 - then.1)).collect(),
            lines: Timed::lines_moved() - lines,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::paths::paths;
    use slablab_model::{Costs, Handover, Hardware, MachineSpec, Spent};
    use slablab_slabs::Preset;

    /// A laptop-like machine of two CPUs.
    fn setup(preset: &str) -> Setup {
        let costs = Costs {
            cycle: 250,
            line_bytes: 64,
            l1_bytes: 32 << 10,
            l2_bytes: 512 << 10,
            llc_bytes: 16 << 20,
            l1: 1_000,
            l2: 3_500,
            llc: 12_000,
            transfer_core: 5_000,
            transfer_llc: 25_000,
            transfer: vec![(10, 80_000)],
            memory: vec![(10, 90_000)],
            local_exchange: 2_250,
            locked_exchange: 4_500,
            exchange16: 6_000,
            interrupts: 9_250,
            zero_kib: 20_000,
            handover: Handover::Queued,
            ..Costs::default()
        };
        let hardware = Hardware { core: vec![0, 1], llc: vec![0, 0], socket: vec![0, 0], costs };
        Setup {
            spec: MachineSpec::uniform(2, 1, 1 << 30),
            hardware,
            preset: Preset::parse(preset).expect("a preset"),
            boot: Default::default(),
            placement: None,
        }
    }

    /// A run with the kernel's prices.
    fn measured(setup: &Setup, load: &Load, recorder: &Recorder) -> Result<Measured, Failed> {
        measure(setup, paths(&setup.preset, &setup.hardware.costs), load, recorder)
    }

    /// A run of kmalloc's class.
    fn run(preset: &str, pattern: Pattern, bytes: u32, objects: u64) -> Measured {
        let load = Load { pattern, bytes, sheaf_capacity: 0, objects, seed: 1 };
        measured(&setup(preset), &load, &Recorder::default()).expect("a machine")
    }

    /// The pair that J. D. Brouer measured on a machine of 4 GHz: SLUB 42 to 47 cycles, SLAB 87.
    #[test]
    fn pairs_cost_what_was_measured() {
        let check = |preset: &str, cycles: std::ops::RangeInclusive<Ps>| {
            let found = run(preset, Pattern::Pair, 64, 10_000);
            assert_eq!((found.fast_allocs, found.fast_frees), (1000, 1000), "{preset}");
            let found = found.cpu / 250;
            assert!(cycles.contains(&found), "{preset}: {found} cycles, expected {cycles:?}");
        };
        check("slub@5.10", 42..=47);
        check("slub@6.1", 42..=47);
        check("slab@6.1", 83..=91);
    }

    /// What another CPU frees costs more than what the same CPU frees, but for sheaves, whose CPU keeps what
    /// it frees.
    #[test]
    fn frees_on_another_cpu_cost_more() {
        let check = |preset: &str, at_least: Ps| {
            let cost = |pattern| run(preset, pattern, 64, 20_000).cpu;
            let (here, there) = (cost(Pattern::Pair), cost(Pattern::OneWay { to: CpuId(1), window: 256 }));
            assert!(there >= here * at_least / 10, "{preset}: {here} ps here, {there} ps there");
        };
        check("slub@2.6.29", 20);
        check("slub@6.1", 50);
        check("slqb@2009-09", 20);
        check("slab@2.6.29", 15);
        check("slub@7.1", 12);
    }

    /// A program's slots need no interrupts off and no exchange of 16 bytes: their prices change nothing.
    #[test]
    fn native_prices_are_those_of_a_program() {
        let load =
            Load { pattern: Pattern::Batch(1000), bytes: 64, sheaf_capacity: 0, objects: 10_000, seed: 1 };
        let cost = |preset: &str, change: fn(&mut Costs)| {
            let mut setup = setup(preset);
            change(&mut setup.hardware.costs);
            let paths = crate::heap::paths::native(&setup.preset, &setup.hardware.costs, 50_000);
            measure(&setup, paths, &load, &Recorder::default()).expect("a machine").cpu
        };
        for preset in ["slub@6.1", "slqb@2009-09", "slab@6.1"] {
            let plain = cost(preset, |_| ());
            assert_eq!(cost(preset, |costs| costs.interrupts *= 10), plain, "{preset}");
            assert_eq!(cost(preset, |costs| costs.exchange16 *= 10), plain, "{preset}");
        }
        let slub = |change| cost("slub@6.1", change);
        assert!(slub(|costs| costs.locked_exchange *= 10) > slub(|_| ()), "a slab's word is exchanged");
    }

    /// The same run costs the same to the picosecond.
    #[test]
    fn a_measurement_repeats() {
        let run = || run("slub@6.1", Pattern::OneWay { to: CpuId(1), window: 64 }, 192, 30_000);
        assert_eq!(run(), run());
    }

    /// Allocations and frees are timed apart, and nothing else takes time: together they are the CPU time
    /// and the waits for locks, whole rounds are counted, and a CPU that waits for the other is idle.
    #[test]
    fn times_of_allocations_and_frees_add_up() {
        for pattern in [Pattern::Shuffled(300), Pattern::Concurrent { cpus: 2, each: 3_000 }] {
            let found = run("slab@6.1", pattern, 1024, 1_000);
            let whole: Ps = found.profile.spent.iter().flatten().sum();
            let round = pattern.round();
            assert_eq!(found.objects, 1_000u64.div_ceil(round) * round, "{pattern:?}");
            assert!(whole / found.objects - (found.alloc + found.free) <= 2, "{pattern:?}: {found:?}");
            let waits = found.profile.sum(Spent::LockWait);
            assert_eq!(waits > 0, pattern.cpus().len() > 1, "{pattern:?}");
        }
    }

    /// A sheaf that is flushed frees neighbours together. Freed in a shuffled order, they are in many slabs.
    #[test]
    fn sheaves_flush_neighbours_together() {
        let of = |pattern| {
            let load = Load { pattern, bytes: 64, sheaf_capacity: 32, objects: 20_000, seed: 1 };
            measured(&setup("slub@6.18"), &load, &Recorder::default()).expect("a machine").free
        };
        let (in_order, shuffled) = (of(Pattern::Batch(1_000)), of(Pattern::Shuffled(1_000)));
        assert!(shuffled > in_order * 3 / 2, "{in_order} ps, {shuffled} ps");
    }

    /// A cache of 6.18 has sheaves if it asks for them; then a batch of their capacity is fast.
    #[test]
    fn a_cache_of_its_own_asks_for_sheaves() {
        let fast = |preset: &str, sheaf_capacity| {
            let load =
                Load { pattern: Pattern::Batch(32), bytes: 256, sheaf_capacity, objects: 32_000, seed: 1 };
            let found = measured(&setup(preset), &load, &Recorder::default()).expect("a machine");
            (found.fast_allocs == 1000, found.fast_frees == 1000)
        };
        assert_eq!(fast("slub@6.1", 32), fast("slub@6.1", 0));
        assert_eq!(fast("slub@6.18", 0), (false, false));
        assert_eq!(fast("slub@6.18", 32), (true, true));
    }

    /// Recording a run changes none of its numbers; slow operations and memory are in it.
    #[test]
    fn a_recording_changes_nothing() {
        let load =
            Load { pattern: Pattern::Batch(100), bytes: 64, sheaf_capacity: 0, objects: 2_000, seed: 1 };
        let recorder = Recorder::new(crate::record::Limits::default());
        let recorded = measured(&setup("slub@6.1"), &load, &recorder).expect("a machine");
        assert_eq!(recorded, measured(&setup("slub@6.1"), &load, &Recorder::default()).expect("a machine"));
        let found = recorder.take();
        assert!(found.names.iter().any(|name| name == "free_slowpath"), "{:?}", found.names);
        assert!(!found.slices.is_empty() && !found.values.is_empty());
    }

    /// A machine without memory for the pattern has no figures, but a table of what holds its memory.
    #[test]
    fn no_memory_is_an_answer() {
        let check = |pattern: Pattern, bytes: u32, cache: &str| {
            let mut setup = setup("slub@6.18");
            setup.spec = MachineSpec::uniform(2, 1, 4 << 20);
            let load = Load { pattern, bytes, sheaf_capacity: 0, objects: 20_000, seed: 1 };
            let failed = measured(&setup, &load, &Recorder::default()).expect_err("4 MiB are full");
            let Failed::OutOfMemory { events, caches } = failed else { panic!("{failed}") };
            let (_, objects, held) = caches.iter().max_by_key(|cache| cache.2).expect("a cache");
            assert_eq!(caches.iter().max_by_key(|cache| cache.2).map(|cache| &*cache.0), Some(cache));
            assert!(objects * u64::from(bytes) <= *held && *held <= 4 << 20, "{caches:?}");
            assert!(*held > 3 << 20 && events >= held / u64::from(bytes) * 9 / 10, "{events}: {caches:?}");
        };
        check(Pattern::Batch(20_000), 1024, "kmalloc-1k");
        check(Pattern::Batch(20_000), 4096, "kmalloc-4k");
        check(Pattern::Batch(20_000), 64 << 10, "pages of order 4");
        check(Pattern::Concurrent { cpus: 2, each: 10_000 }, 1024, "kmalloc-1k");
    }
}
