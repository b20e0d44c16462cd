//! What the kernel tells a recorder: which task each CPU runs, who woke it, slow paths of the allocator, slab
//! memory.

use super::sampling::Sampling;
use super::{Kernel, Waiting};
use crate::heap::{CacheNumber, Heap};
use crate::record::{CPUS, Holds, MEMORY, NameId, Recorder, TrackId};
use crate::sched::TaskId;
use slablab_model::{Addr, Ps, Timed};
use slablab_platform::{CpuId, Event, Topology};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A kernel's recorder that is on.
pub(super) struct Watch {
    recorder: Recorder,
    pub(super) sampling: Sampling,
    cpus: Vec<TrackId>,
    /// Since when each CPU runs its task.
    pub(super) since: Vec<Cell<Ps>>,
    /// The flow that led to what each CPU runs; 0 for none.
    led_by: Vec<Cell<u64>>,
    /// The name of each task, and that of its wake-up.
    tasks: RefCell<Vec<[NameId; 2]>>,
    /// The last wake-up of each task that waits for a CPU: the flow, 0 for none, and the time.
    woken: RefCell<Vec<(u64, Ps)>>,
    flows: Cell<u64>,
    preempted: NameId,
    memory: TrackId,
    slab_bytes: Cell<u64>,
    /// Allocations are traced.
    traces: bool,
}

impl Watch {
    /// The run has ended with these caches.
    pub(super) fn ended(&self, heap: &dyn Heap) {
        self.recorder.ended(heap);
    }

    /// `None` if the recorder is off. The machine is entered.
    pub(super) fn new(recorder: &Recorder, heap: &dyn Heap, is_slab: bool) -> Option<Watch> {
        if !recorder.is_on() {
            return None;
        }
        recorder.watch_locks();
        let names = || heap.caches().iter().map(|cache| cache.name.clone()).collect();
        let traces = recorder.tracer(|tracer| tracer.begin_machine(is_slab, Timed::cpus(), names()));
        if traces.is_some() {
            let (of_events, of_nested) = (recorder.clone(), recorder.clone());
            Timed::watch_events(move |event| {
                of_events.tracer(|tracer| tracer.event(Timed::cpu(), event, Timed::clock()));
            });
            heap.watch_nested(Rc::new(move |begins| {
                of_nested.tracer(|tracer| tracer.nested(Timed::cpu(), begins, Timed::clock()));
            }));
        }
        let track = |cpu| recorder.track(CPUS, || format!("CPU {cpu}"));
        Some(Watch {
            cpus: (0..Timed::cpus()).map(track).collect(),
            since: (0..Timed::cpus()).map(|_| Cell::new(0)).collect(),
            led_by: (0..Timed::cpus()).map(|_| Cell::new(0)).collect(),
            tasks: RefCell::default(),
            woken: RefCell::default(),
            flows: Cell::new(0),
            preempted: recorder.name(|| "preempted".into()),
            memory: recorder.track_of(MEMORY, || "slabs".into(), Holds::Bytes),
            slab_bytes: Cell::new(u64::MAX),
            traces: traces.is_some(),
            sampling: Sampling::new(),
            recorder: recorder.clone(),
        })
    }

    /// Names a task.
    pub(super) fn name(&self, task: TaskId, name: impl FnOnce() -> String) {
        let mut tasks = self.tasks.borrow_mut();
        let at = task.0 as usize;
        if tasks.len() <= at {
            tasks.resize(at + 1, [NameId::default(); 2]);
            self.woken.borrow_mut().resize(at + 1, (0, 0));
        }
        let name = name();
        let wakes = self.recorder.name(|| format!("wakes {name}"));
        tasks[at] = [self.recorder.name(|| name), wakes];
        self.woken.borrow_mut()[at] = (0, 0);
    }

    /// The CPU of the call wakes a task that waited for this.
    pub(super) fn wakes(&self, task: TaskId, waiting: &Waiting) {
        self.sampling.wakes(waiting);
        let (at, flow) = (task.0 as usize, self.flows.get() + 1);
        self.flows.set(flow);
        self.woken.borrow_mut()[at] = (flow, Timed::clock());
        let [_, wakes] = self.tasks.borrow()[at];
        self.recorder.flow_from(self.cpus[Timed::cpu().0 as usize], wakes, Timed::clock(), flow);
    }

    /// The task of the call's CPU is preempted.
    pub(super) fn preempts(&self) {
        self.recorder.instant(self.cpus[Timed::cpu().0 as usize], self.preempted, Timed::clock());
    }

    /// The CPU of the call begins to run a task.
    pub(super) fn resumed(&self, task: TaskId) {
        let cpu = Timed::cpu().0 as usize;
        self.sampling.resumed(Timed::cpu());
        self.since[cpu].set(Timed::clock());
        let (flow, woken) = std::mem::take(&mut self.woken.borrow_mut()[task.0 as usize]);
        // The waker's clock may be ahead by a part of its system call: no arrow leads back in time.
        self.led_by[cpu].set(if woken <= Timed::clock() { flow } else { 0 });
    }

    /// `cpu` does not run `task` any more.
    pub(super) fn left(&self, cpu: CpuId, task: TaskId, slab_bytes: u64) {
        let (at, now) = (cpu.0 as usize, Timed::clock());
        let [name, _] = self.tasks.borrow()[task.0 as usize];
        let flow = self.led_by[at].take();
        self.recorder.flow_to(self.cpus[at], name, self.since[at].get(), now, flow);
        self.sampling.left(cpu, task, self.since[at].get());
        self.memory(slab_bytes);
    }

    fn memory(&self, slab_bytes: u64) {
        if self.slab_bytes.replace(slab_bytes) != slab_bytes {
            self.recorder.value(self.memory, Timed::clock(), slab_bytes as i64);
        }
    }
}

impl Kernel {
    /// The recording, if there is one, begins now: what was recorded so far is dropped.
    pub(super) fn restart_recording(&self) {
        if let Some(watch) = &self.watch {
            watch.recorder.restart(Timed::clock());
            watch.slab_bytes.set(u64::MAX);
            watch.memory(self.heap.slab_bytes());
        }
    }

    /// Runs an allocation of a task. It is traced if the recorder traces.
    #[inline]
    pub(super) fn traced(
        &self,
        task: TaskId,
        cache: CacheNumber,
        alloc: impl FnOnce() -> Option<Addr>,
    ) -> Option<Addr> {
        let watch = self.watch.as_ref().filter(|watch| watch.traces);
        let Some(Watch { recorder, .. }) = watch else { return alloc() };
        let cpu = Timed::cpu();
        recorder.tracer(|tracer| tracer.begin(cpu, task, cache.0, Timed::clock(), Timed::cpu_node(cpu)));
        let object = alloc()?;
        let node = Timed::home_of(object);
        recorder.tracer(|tracer| tracer.end(cpu, Timed::clock(), node));
        Some(object)
    }

    /// Runs an operation of a cache. It is recorded if this CPU counts `slow` meanwhile.
    #[inline]
    pub(super) fn watched<T>(&self, cache: CacheNumber, slow: Event, operation: impl FnOnce() -> T) -> T {
        match &self.watch {
            None => operation(),
            Some(watch) => self.recorded(watch, cache, slow, operation),
        }
    }

    #[cold]
    fn recorded<T>(
        &self,
        watch: &Watch,
        cache: CacheNumber,
        slow: Event,
        operation: impl FnOnce() -> T,
    ) -> T {
        let (cpu, from) = (Timed::cpu(), Timed::clock());
        let before = self.heap.counted_on(cache, cpu, slow);
        let result = operation();
        if self.heap.counted_on(cache, cpu, slow) > before {
            let of = || format!("{} {}", slow.name(), self.heap.caches()[cache.0 as usize].name);
            let name = watch.recorder.name(of);
            watch.recorder.slice(watch.cpus[cpu.0 as usize], name, from, Timed::clock());
            watch.memory(self.heap.slab_bytes());
        }
        result
    }
}
