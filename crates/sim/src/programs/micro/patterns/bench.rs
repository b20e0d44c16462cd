//! The patterns on a machine: each CPU that takes part is a call.

use super::{Load, Pattern, Setup};
use crate::heap::start::started_heap;
use crate::heap::{CacheNumber, Heap, Kmalloc, Named, pass_on};
use crate::kernel::tally::Failed;
use crate::record::{CPUS, Holds, MEMORY, Recorder};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use slablab_model::{Addr, CallId, Paths, Ps, Timed, TimedMachine};
use slablab_platform::{CpuId, Event, Frames, Gfp, Topology};
use slablab_slabs::CacheSpec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A heap, and where the objects of the pattern are from.
pub(super) struct Bench {
    heap: Rc<dyn Heap>,
    from: Kmalloc,
    /// Time in allocations and in frees.
    times: Cell<[Ps; 2]>,
    /// Allocations and frees.
    counts: Cell<[u64; 2]>,
    failed: RefCell<Option<Failed>>,
    random: RefCell<Pcg64Mcg>,
    recorder: Recorder,
}

impl Bench {
    /// Makes the machine, enters it, and runs `f` there.
    pub(super) fn enter<T>(
        setup: &Setup,
        paths: Paths,
        load: &Load,
        recorder: &Recorder,
        f: impl FnOnce(&Rc<Bench>) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let mut machine = TimedMachine::new(setup.spec.clone(), setup.hardware.clone(), paths)?;
        machine.enter(|| {
            recorder.watch_locks();
            let spec = CacheSpec { sheaf_capacity: load.sheaf_capacity, ..CacheSpec::of_size(load.bytes) };
            let own = [Named { name: "micro".into(), spec }];
            let (named, from) = match load.sheaf_capacity {
                0 => (&own[..0], None),
                _ => (&own[..], Some(Kmalloc::Cache(CacheNumber(0)))),
            };
            let heap = started_heap(setup, load.seed, named.to_vec());
            let from = from.unwrap_or_else(|| heap.kmalloc(load.bytes));
            let random = RefCell::new(Pcg64Mcg::seed_from_u64(load.seed));
            f(&Rc::new(Bench {
                heap,
                from,
                times: Cell::default(),
                counts: Cell::default(),
                failed: RefCell::default(),
                random,
                recorder: recorder.clone(),
            }))
        })
    }

    /// Where the objects are from.
    pub(super) fn heap(&self) -> &dyn Heap {
        &*self.heap
    }

    /// Time in allocations and in frees.
    pub(super) fn times(&self) -> [Ps; 2] {
        self.times.get()
    }

    /// What was timed and recorded so far is dropped.
    pub(super) fn restart(&self) {
        self.times.set([0; 2]);
        self.recorder.restart(Timed::latest());
        self.record_memory(Timed::latest());
    }

    /// Fast allocations and frees so far.
    pub(super) fn fast(&self) -> [u64; 2] {
        [Event::AllocFastpath, Event::FreeFastpath].map(|event| match self.from {
            Kmalloc::Cache(cache) => self.heap.counted(cache, event),
            Kmalloc::Pages(_) => 0,
        })
    }

    /// Runs a pattern so many times, from now on.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn run(self: &Rc<Self>, pattern: Pattern, rounds: u64) -> Result<(), Failed> {
        let start = Timed::latest();
        let spawn = |cpu, f: fn(&Bench, u64, Pattern)| {
            let bench = self.clone();
            Timed::spawn(cpu, start, move || f(&bench, rounds, pattern));
        };
        match pattern {
            Pattern::Pair | Pattern::Batch(_) => spawn(CpuId(0), Bench::batches),
            Pattern::Shuffled(_) => spawn(CpuId(0), Bench::shuffled),
            Pattern::OneWay { to, window } => self.one_way(to, window, rounds, start),
            Pattern::Concurrent { cpus, each } => self.concurrent(cpus, each, rounds, start),
            Pattern::Crowd { of, cpus, each } => self.crowd(of, cpus, each, rounds, start),
        }
        let parked = Timed::run();
        if let Some(failed) = self.failed.borrow_mut().take() {
            return Err(failed);
        }
        assert!(parked.is_empty(), "{} calls wait for ever", parked.len());
        Ok(())
    }

    /// A random number.
    pub(super) fn draw(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    /// An object. `None` without memory: then the caller ends, and so does the run.
    pub(super) fn alloc(&self) -> Option<Addr> {
        let (heap, gfp) = (&self.heap, Gfp::KERNEL);
        let object = self.timed(0, Event::AllocSlowpath, || match self.from {
            Kmalloc::Cache(cache) => heap.alloc(cache, gfp, None),
            Kmalloc::Pages(order) => {
                pass_on();
                let near = Timed::cpu_memory_node(Timed::cpu());
                heap.alloc_pages(order, gfp | Gfp::COMP, near).map(|pfn| Timed::address(pfn, 0))
            }
        });
        if object.is_none() {
            *self.failed.borrow_mut() = Some(self.out_of_memory());
        }
        object
    }

    pub(super) fn free(&self, object: Addr) {
        self.timed(1, Event::FreeSlowpath, || match self.from {
            Kmalloc::Cache(cache) => self.heap.free(cache, object),
            Kmalloc::Pages(_) => {
                pass_on();
                self.heap.free_pages(Timed::locate(object).0);
            }
        });
    }

    #[cold]
    fn out_of_memory(&self) -> Failed {
        let [allocs, frees] = self.counts.get();
        let mut failed = Failed::out_of_memory(&*self.heap, allocs + frees);
        if let (Failed::OutOfMemory { caches, .. }, Kmalloc::Pages(order)) = (&mut failed, self.from) {
            let live = allocs - frees;
            let bytes = live << (Timed::page_shift() + u32::from(order));
            caches.push((format!("pages of order {order}"), live, bytes));
        }
        failed
    }

    /// Times and counts an operation. It is recorded if this CPU counts `slow` meanwhile.
    #[inline]
    fn timed<T>(&self, of: usize, slow: Event, operation: impl FnOnce() -> T) -> T {
        let counted = |cache| self.heap.counted_on(cache, Timed::cpu(), slow);
        let counted = || match self.from {
            Kmalloc::Cache(cache) if self.recorder.is_on() => counted(cache),
            _ => 0,
        };
        let (from, before) = (Timed::clock(), counted());
        let result = operation();
        let mut times = self.times.get();
        times[of] += Timed::clock() - from;
        self.times.set(times);
        let mut counts = self.counts.get();
        counts[of] += 1;
        self.counts.set(counts);
        if counted() > before {
            let track = self.recorder.track(CPUS, || format!("CPU {}", Timed::cpu().0));
            self.recorder.slice(track, self.recorder.name(|| slow.name().into()), from, Timed::clock());
            self.record_memory(Timed::clock());
        }
        result
    }

    fn record_memory(&self, at: Ps) {
        if self.recorder.is_on() {
            let track = self.recorder.track_of(MEMORY, || "slabs".into(), Holds::Bytes);
            self.recorder.value(track, at, self.heap.slab_bytes() as i64);
        }
    }

    /// Batches, each freed in the order of its allocations.
    fn batches(&self, rounds: u64, pattern: Pattern) {
        let batch = pattern.round();
        let mut live = Vec::with_capacity(batch as usize);
        for _ in 0..rounds {
            if !self.fill(&mut live, batch) {
                return;
            }
            live.drain(..).for_each(|object| self.free(object));
        }
    }

    /// Allocates a batch. False without memory.
    fn fill(&self, live: &mut Vec<Addr>, batch: u64) -> bool {
        live.extend((0..batch).map_while(|_| self.alloc()));
        live.len() as u64 == batch
    }

    /// Batches, each freed in an order that is drawn.
    fn shuffled(&self, rounds: u64, pattern: Pattern) {
        let batch = pattern.round();
        let mut live = Vec::with_capacity(batch as usize);
        for _ in 0..rounds {
            if !self.fill(&mut live, batch) {
                return;
            }
            for last in (1..live.len()).rev() {
                let at = self.random.borrow_mut().next_u64() % (last as u64 + 1);
                live.swap(last, at as usize);
            }
            live.drain(..).for_each(|object| self.free(object));
        }
    }

    fn one_way(self: &Rc<Self>, to: CpuId, window: u32, objects: u64, start: Ps) {
        let ring = Rc::new(Ring::default());
        let (bench, from) = (self.clone(), ring.clone());
        Timed::spawn(CpuId(0), start, move || {
            for _ in 0..objects {
                Timed::turn();
                let Some(object) = bench.alloc() else { return };
                while from.objects.borrow().len() >= window as usize {
                    from.wait();
                }
                from.objects.borrow_mut().push_back(object);
                from.wake(to);
            }
        });
        let bench = self.clone();
        Timed::spawn(to, start, move || {
            for _ in 0..objects {
                Timed::turn();
                while ring.objects.borrow().is_empty() {
                    ring.wait();
                }
                let object = ring.objects.borrow_mut().pop_front().expect("the ring has an object");
                ring.wake(CpuId(0));
                bench.free(object);
            }
        });
    }

    fn concurrent(self: &Rc<Self>, cpus: u16, each: u32, rounds: u64, start: Ps) {
        let barrier = Rc::new(Barrier::of(cpus));
        for cpu in (0..cpus).map(CpuId) {
            let (bench, barrier) = (self.clone(), barrier.clone());
            Timed::spawn(cpu, start, move || {
                let mut live = Vec::with_capacity(each as usize);
                for _ in 0..rounds {
                    for _ in 0..each {
                        Timed::turn();
                        let Some(object) = bench.alloc() else { return };
                        live.push(object);
                    }
                    barrier.wait();
                    for object in live.drain(..) {
                        Timed::turn();
                        bench.free(object);
                    }
                    barrier.wait();
                }
            });
        }
    }
}

/// Objects on their way from one CPU to another.
#[derive(Default)]
struct Ring {
    objects: RefCell<VecDeque<Addr>>,
    /// The side that waits.
    waiting: Cell<Option<CallId>>,
}

impl Ring {
    /// Waits until the other side has done something.
    fn wait(&self) {
        self.waiting.set(Timed::current());
        Timed::park();
    }

    fn wake(&self, cpu: CpuId) {
        if let Some(call) = self.waiting.take() {
            Timed::unpark(call, cpu, Timed::clock());
        }
    }
}

/// Where CPUs wait until all have come.
pub(super) struct Barrier {
    cpus: u16,
    waiting: RefCell<Vec<(CallId, CpuId)>>,
}

impl Barrier {
    pub(super) fn of(cpus: u16) -> Barrier {
        Barrier { cpus, waiting: RefCell::default() }
    }

    /// Waits until the other CPUs have come; the last goes on at once. The barrier itself costs nothing.
    pub(super) fn wait(&self) {
        let call = Timed::current().expect("a CPU of the pattern is a call");
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() + 1 < usize::from(self.cpus) {
            waiting.push((call, Timed::cpu()));
            drop(waiting);
            Timed::park();
        } else {
            let now = Timed::clock();
            waiting.drain(..).for_each(|(call, cpu)| Timed::unpark(call, cpu, now));
        }
    }
}
