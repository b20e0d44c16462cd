//! The checking world: [`Machine`]'s state behind the contract, over a [`Kit`].

use crate::kit::{Job, Kit};
use crate::machine::{Address, Machine, Shape};
use crate::queue::next_random;
use crate::slots::{Made, Ranked, Slots};
use crate::solo::Solo;
use slablab_platform::bytes::{find_other, put};
use slablab_platform::conformance::{Racer, Testable, Verdict};
use slablab_platform::{
    Context, CpuId, Event, Frame, Frames, Gfp, Hooks, NodeId, Pfn, Platform, Rank, Reclaim, Reclaimed, Time,
    Topology, Work, safe_memory,
};
use std::cell::Cell;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::rc::Rc;

/// The checking world with one thread.
pub type Alone = Checked<Solo>;

/// A world that reports misuse, over the primitives of a checking tool.
#[derive(Debug)]
pub struct Checked<K>(PhantomData<K>);

impl<K: Kit> Checked<K> {
    /// Runs `f` on CPU 0 of a fresh machine.
    pub fn enter<R>(shape: Shape, f: impl FnOnce() -> R) -> R {
        Machine::<K>::new(shape).enter();
        K::running(|running| (running.cpu.set(0), running.held.set(0), running.context.set(Context::Task)));
        let result = f();
        Machine::<K>::leave();
        result
    }

    /// Runs all `jobs` at once, each on its CPU. Returns when all have ended.
    pub fn together(jobs: Vec<(CpuId, Job)>) {
        let on_its_cpu = |(cpu, job): (CpuId, Job)| -> Job {
            Box::new(move || {
                Self::go_to(cpu);
                job();
            })
        };
        K::together(jobs.into_iter().map(on_its_cpu).collect());
    }

    /// Continues on another CPU.
    pub fn go_to(cpu: CpuId) {
        assert!(cpu.0 < Self::cpus(), "{cpu:?} of {}", Self::cpus());
        K::running(|running| running.cpu.set(cpu.0));
    }

    /// Continues in another context.
    pub fn set_context(context: Context) {
        K::running(|running| running.context.set(context));
    }

    pub(crate) fn machine() -> Rc<Machine<K>> {
        Machine::entered()
    }
}

impl<K: Kit> Topology for Checked<K> {
    fn cpus() -> u16 {
        Self::machine().cpus()
    }
    fn nodes() -> u16 {
        Self::machine().nodes()
    }
    fn page_shift() -> u32 {
        Self::machine().shape.page_shift
    }
    fn cpu() -> CpuId {
        CpuId(K::running(|running| running.cpu.get()))
    }
    fn cpu_node(cpu: CpuId) -> NodeId {
        NodeId(Self::machine().shape.cpu_node[cpu.0 as usize])
    }
    fn cpu_memory_node(cpu: CpuId) -> NodeId {
        Self::machine().shape.memory_node(cpu)
    }
    fn distance(from: NodeId, to: NodeId) -> u32 {
        Self::machine().shape.distance(from, to)
    }
    fn node_frames(node: NodeId) -> (Pfn, u32) {
        (Shape::first_frame(node), Self::machine().shape.node_frames[node.0 as usize])
    }
    fn cpu_online(cpu: CpuId) -> bool {
        Self::machine().online[cpu.0 as usize].get()
    }
}

impl<K: Kit> Frames for Checked<K> {
    type Ptr = Address;
    type Word = K::Word;
    type Field = K::Field;
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> T) -> T {
        f(Self::machine().frame(pfn))
    }
    fn with_map<T>(pfn: Pfn, index: u32, f: impl FnOnce(&K::Word) -> T) -> T {
        f(&Self::machine().map_word(pfn, index))
    }
    fn address(pfn: Pfn, offset: u64) -> Address {
        Self::machine().address(pfn, offset)
    }
    fn locate(object: Address) -> (Pfn, u32) {
        Self::machine().locate(object)
    }
    fn map_slab(pfn: Pfn, order: u8, _size: u32, _cache: u32) {
        Self::machine().map(pfn, order);
    }
    fn unmap_slab(pfn: Pfn, order: u8) {
        Self::machine().unmap(pfn, order);
    }
}

safe_memory! { impl[K: Kit] Checked<K>;
    fn link(object: Address, offset: u32) -> Option<Address> {
        Self::machine().read(object, offset)
    }
    fn set_link(object: Address, offset: u32, next: Option<Address>) {
        Self::machine().write(object, offset, next);
    }
    fn half(at: Address) -> u16 {
        Self::machine().read(at, 0).map_or(0, |value| value.0.get() as u16)
    }
    fn set_half(at: Address, value: u16) {
        Self::machine().write(at, 0, NonZeroU64::new(value as u64).map(Address));
    }
    fn storage_attach(object: Address, words: u32) {
        Self::machine().attach(object, words);
    }
    fn storage_load(object: Address, index: u32) -> Option<Address> {
        Self::machine().load(object, index)
    }
    fn storage_store(object: Address, index: u32, value: Option<Address>) {
        Self::machine().store(object, index, value);
    }
    fn storage_detach(object: Address) {
        Self::machine().detach(object);
    }
    fn fill(at: Address, bytes: u32, value: u8) {
        let machine = Self::machine();
        for (word, piece) in Machine::<K>::words(at, bytes) {
            // Bytes of the word outside of the range keep their values. If the range covers the whole word,
            // the word need not have been written before.
            let before = if piece.mask == u64::MAX { 0 } else { machine.written(word).unwrap_or(0) };
            machine.put(word, put(before, piece, value));
        }
    }
    fn differs(at: Address, bytes: u32, value: u8) -> Option<(u32, u8)> {
        let machine = Self::machine();
        Machine::<K>::words(at, bytes).find_map(|(word, piece)| find_other(machine.get(word), piece, value))
    }
    fn word(at: Address) -> u64 {
        Self::machine().get(at)
    }
    fn set_word(at: Address, value: u64) {
        Self::machine().put(at, value);
    }
    fn mark_live(object: Address, live: bool) -> bool {
        Self::machine().mark(object, live)
    }
}

impl<K: Kit> Time for Checked<K> {
    fn now() -> u64 {
        Self::machine().now_ns.get()
    }
    fn context() -> Context {
        K::running(|running| running.context.get())
    }
    fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
        Self::machine().defer(cpu, delay_ns, work);
    }
    fn after_grace_period(work: Work) {
        Self::machine().after_grace(Self::cpu(), work);
    }
}

impl<K: Kit> Hooks for Checked<K> {
    fn random() -> u32 {
        next_random(&Self::machine().random)
    }
    fn secret() -> u64 {
        // A constant, so that a failing run can be repeated.
        0x5EC2_E700_5EC2_E700
    }
    fn reclaim(_ask: Reclaim) -> Reclaimed {
        // The machine has no other user of pages that could free any.
        Reclaimed::NOTHING
    }
    fn permit(order: u8, _gfp: Gfp) -> bool {
        order < Self::machine().shape.fail_order
    }
    fn count(event: Event, n: u64) {
        Self::machine().count(event, n);
    }
}

impl<K: Kit> Platform for Checked<K> {
    type Ground = Self;
    type Lock<R: Rank, T> = Ranked<K, R, T>;
    type PerCpu<T: Default> = Slots<K, T>;
    type PerNode<T: Default> = Made<K, T>;
    type CpuShared<T: Default> = Made<K, T>;
}

impl<K: Kit> Testable for Checked<K> {
    fn on_cpu<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
        let before = Self::cpu();
        Self::go_to(cpu);
        let result = f();
        Self::go_to(before);
        result
    }
    fn set_online(cpu: CpuId, online: bool) {
        Self::machine().online[cpu.0 as usize].set(online);
    }
    fn still<R>(f: impl FnOnce() -> R) -> R {
        let machine = Self::machine();
        machine.still.set(true);
        let result = f();
        machine.still.set(false);
        result
    }
    fn advance(ns: u64) {
        let machine = Self::machine();
        machine.now_ns.set(machine.now_ns.get() + ns);
    }
    fn end_grace_period() {
        Self::machine().end_grace();
    }
    fn due() -> Option<(CpuId, Work)> {
        Self::machine().due()
    }
    fn counted(event: Event) -> u64 {
        Self::machine().counted(event)
    }
    fn race<S: 'static>(shared: S, first: Racer<S>, second: Racer<S>, last: fn(&S) -> Verdict) -> Verdict {
        let shared = Rc::new(shared);
        let verdicts = Rc::new(Cell::new(Ok(())));
        let job = |(cpu, body): Racer<S>| -> (CpuId, Job) {
            let (shared, verdicts) = (shared.clone(), verdicts.clone());
            let run = move || {
                let verdict = body(&shared);
                verdicts.set(verdicts.get().and(verdict));
            };
            (cpu, Box::new(run))
        };
        Self::together(vec![job(first), job(second)]);
        verdicts.get()?;
        last(&shared)
    }
}
