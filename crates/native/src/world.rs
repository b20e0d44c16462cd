//! The contract, over mapped memory. `unsafe`: promises that the mapped memory is memory.

use crate::fixed_slots::{self, FixedSlots};
use crate::fork::Pass;
use crate::lazy::{Cpus, Nodes};
use crate::lock::Futex;
use crate::memory::{self, PagemapEntry};
use crate::object::{Object, Real};
use crate::per_cpu::Served;
use crate::place::Place;
use crate::region::{HeapAccess, Trusted};
use crate::slots::Slots;
use crate::start::{self, Start, Wishes};
use crate::{area, current, fork, per_cpu, report, slot_space, space, thread, timers, topology};
use slablab_platform::{
    Context, CpuId, Descriptor, Event, Frame, Frames, Gfp, Hooks, Memory, NodeId, Pfn, Platform, Rank,
    Reclaim, ReclaimStep, Reclaimed, Time, Topology, Work, WorkKind,
};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::*;

/// The world of mapped memory. What the contract calls a CPU is a slot here: one per thread, or one per CPU.
///
/// The world's functions are safe to call and write real memory, so a program needs an `unsafe` of its own to
/// use them: `A` is a type of the program that implements [`Trusted`]. Without one, nothing of the world can
/// be called:
///
/// ```compile_fail,E0277
/// #![forbid(unsafe_code)]
/// use slablab_native::{Native, Object};
/// use slablab_platform::Memory;
///
/// struct Program;
/// let secret = String::from("borrowed, and never lent to a world");
/// let object = Object::at(secret.as_ptr().cast_mut()).unwrap();
/// Native::<Program>::set_word(object, 0x2121_2121_2121_2121);
/// ```
///
/// ```compile_fail,E0277
/// #![forbid(unsafe_code)]
/// use slablab_native::Native;
/// use slablab_platform::{Frames, Pfn};
///
/// struct Program;
/// Native::<Program>::with_frame(Pfn(u32::MAX), |frame| frame.node());
/// ```
///
/// A call of the world with the promise made:
///
/// ```
/// use slablab_native::{Native, Trusted};
/// use slablab_platform::Topology;
///
/// struct Program;
/// // SAFETY: this program assembles no engine: it asks the world for its page size, and touches no memory.
/// unsafe impl Trusted for Program {}
/// Native::<Program>::start();
/// assert!(Native::<Program>::page_shift() >= 12);
/// ```
pub struct Native<A>(PhantomData<A>);

impl<A: Trusted> Native<A> {
    /// Caches with lower numbers have slots at fixed places: cache n has place n + 1.
    pub const FIXED_CACHES: usize = area::FIXED_CACHES;

    /// Access to the heap's memory.
    pub(crate) const HEAP: HeapAccess = HeapAccess::of::<A>();

    /// Reserves address space, once per process, with the default [`Wishes`]. No other function may be called
    /// before.
    pub fn start() -> Start {
        start::start(Wishes::default())
    }

    /// Reserves address space, once per process. [`Native::slots`] and [`Native::has_huge_pages`] say which
    /// wishes were granted.
    pub fn start_with(wanted: Wishes) -> Start {
        start::start(wanted)
    }

    /// Whether huge pages may back the heap.
    pub fn has_huge_pages() -> bool {
        start::has_huge_pages()
    }

    /// Page frames of the heap that were given back to the kernel since the start. A frame counts each time.
    pub fn given_back_frames() -> u64 {
        memory::GIVEN_BACK.load(Relaxed)
    }

    /// How many slots were ever used.
    pub fn slots_used() -> u16 {
        // With slots per thread, number 0 is never given out.
        area::used() - u16::from(!per_cpu::on())
    }

    /// What slots belong to, and why.
    pub fn slots() -> Served {
        per_cpu::served()
    }

    /// Makes it safe to fork while other threads allocate. Called once, after the heap started: the C library
    /// may allocate in it.
    pub fn watch_forks() {
        fork::watch_forks();
    }

    /// Has every fork's child call `hook`. The forking thread is the only one there.
    pub fn on_child(hook: fn()) {
        fork::on_child(hook);
    }

    /// Has `hook` called at the end of each thread that used the world: with the slot of one that ended
    /// before, if no thread took it in between. The hook may claim the slot.
    pub fn on_thread_exit(hook: fn(Option<CpuId>)) {
        thread::on_exit(hook);
    }

    /// Has threads do without a slot for so many of their first slow paths, which [`Native::tick`] counts: a
    /// thread that allocates little and sleeps then keeps nothing. The first thread of the process, and one
    /// that finds the slot of a thread that ended, has a slot at once. At the start it is none.
    pub fn spare_slots(slow_paths: u32) {
        thread::spare_slots(slow_paths);
    }

    /// How many threads use the world: they called it, and did not end.
    pub fn threads() -> u32 {
        thread::live()
    }

    /// Has `hook` called when the page allocator has no memory for a request. The hook gives it the page
    /// frames that the program keeps for later, and returns how many.
    pub fn on_reclaim(hook: fn() -> u32) {
        // A process has one hook: a second call passes the same function.
        let _ = ON_RECLAIM.set(hook);
    }

    /// Takes the earliest deferred work that is due. Called on slow paths.
    pub fn due() -> Option<(CpuId, Work)> {
        timers::due()
    }

    /// Whether deferred work waits.
    #[inline]
    pub fn work_waits() -> bool {
        timers::any_waits()
    }

    /// Takes deferred work of one cache and kind, due or not.
    pub fn work_of(cache: u32, kind: WorkKind) -> Option<(CpuId, Work)> {
        timers::take_of(cache, kind)
    }

    /// Whether slots have room for `bytes` more bytes.
    pub fn has_room(bytes: usize) -> bool {
        slot_space::has_room(bytes)
    }

    /// The order of the largest block that the heap can have: 512 MiB at most on pages of 4 KiB.
    pub fn largest_order() -> u8 {
        memory::largest_order()
    }

    /// Bytes of the largest block that the heap can have; 0 before the start.
    pub fn largest_block() -> usize {
        if memory::frames() == 0 { 0 } else { (1 << memory::largest_order()) << memory::page_shift() }
    }

    /// Whether this code is a signal handler that interrupted its thread while the thread held a lock or a
    /// slot, or ran a hot operation. A request from outside of the library finds `true` in no other place,
    /// except in the forking thread during a fork.
    #[inline]
    pub fn interrupted() -> bool {
        fork::is_interrupted()
    }

    /// Permission to serve one request. Until the pass is dropped, no lock that this thread takes waits for a
    /// fork. `None` for a signal handler that interrupted a request ([`Native::interrupted`]), and if a fork
    /// takes longer than 5 ms: then the caller must not take a lock.
    #[inline]
    pub fn pass() -> Option<Pass> {
        Pass::enter()
    }

    /// As [`Native::pass`], without waiting: `None` also if another thread forks now.
    pub fn pass_now() -> Option<Pass> {
        Pass::now()
    }

    /// Counts a slow path of this thread; `true` once in eight, and if the thread's credit is spent.
    pub fn tick() -> bool {
        thread::tick()
    }

    /// Sets how many objects a slot gives from its arrays before it refuses one, from the next time on:
    /// `pops`, or as many as usual.
    pub fn set_credit(pops: Option<u16>) {
        current::set_credit(pops);
    }

    /// If this thread's arrays refused an object for want of credit: renews the credit, and returns how many
    /// objects were asked for since it was renewed last, the refused one with them. `None` also with slots
    /// per CPU.
    pub fn take_spent() -> Option<u32> {
        current::take_spent()
    }

    /// Asks every thread to empty its slot, as [`Native::asked`] tells it. This thread counts as one that
    /// did. Nothing with slots per CPU, which any thread can claim.
    pub fn ask_all() {
        thread::ask_all();
    }

    /// Whether all threads were asked to empty their slots, and this one has not done so. `true` once for
    /// each time: the caller empties the slot.
    pub fn asked() -> bool {
        thread::asked()
    }

    /// How many threads have not emptied their slots since all were asked to.
    pub fn asked_left() -> u32 {
        thread::asked_left()
    }

    /// Gives the memory of a free block back to the kernel; the block reads as zeros then. `false` if the
    /// kernel refused.
    pub fn discard(pfn: Pfn, order: u8) -> bool {
        memory::discard(Self::HEAP, pfn, order)
    }

    /// Allows the kernel to back whole huge pages among the caller's `count` frames with huge pages.
    pub fn allow_huge_pages(pfn: Pfn, count: u32) {
        memory::allow_huge_pages(pfn, count);
    }

    /// Makes the caller's page frames inaccessible, so that a read or a write of them ends the process, and
    /// gives their memory back to the kernel. `false` if the kernel refused.
    pub fn forbid(pfn: Pfn, count: u32) -> bool {
        memory::protect(Self::HEAP, pfn, count, false)
    }

    /// Makes the caller's page frames inaccessible, and leaves their memory as it is. `false` if the kernel
    /// refused.
    pub fn hide(pfn: Pfn, count: u32) -> bool {
        memory::set_access(pfn, count, false)
    }

    /// Makes page frames accessible again. `false` if the kernel refused.
    pub fn permit(pfn: Pfn, count: u32) -> bool {
        memory::protect(Self::HEAP, pfn, count, true)
    }

    /// From now on every slab that is unmapped is filled with zeros, except those of the caches with these
    /// numbers, whose owner hands back zeros. For one heap of the process that relies on it.
    pub fn zero_unmapped(except: Range<u32>) {
        memory::zero_unmapped(except);
    }

    /// The slab that any address is in; `None` if it is in none.
    #[inline]
    pub fn location(at: *const u8) -> Option<memory::Location> {
        memory::location(Self::HEAP, at.addr())
    }

    /// The pagemap's entry of an address in memory of this thread's node; `None` elsewhere, and for threads
    /// without slots of their own.
    #[inline(always)]
    pub fn pagemap_local(at: *const u8) -> Option<PagemapEntry> {
        PagemapEntry::local(Self::HEAP, at.addr()).map(|(entry, _)| entry)
    }

    /// The process's random number for the keys of free objects. It never changes once the world started.
    #[inline]
    pub fn object_secret() -> u64 {
        memory::object_secret()
    }

    /// Takes an object from the array of this thread's slot of a cache with a fixed place. `None` if the
    /// array is empty, and wherever a slower way is needed.
    #[inline(always)]
    pub fn pop_fixed(place: Place) -> Option<Object> {
        fixed_slots::pop_fixed(Self::HEAP, place)
    }

    /// Adds an object to the array of this thread's slot of its cache, which has this place. `false` if the
    /// array is full, and wherever a slower way is needed.
    #[inline(always)]
    pub fn push_fixed(place: Place, object: Object) -> bool {
        fixed_slots::push_fixed(Self::HEAP, place, object)
    }

    /// [`Native::pagemap_local`], and this thread's slots at fixed places.
    #[inline(always)]
    pub fn pagemap_and_slots(at: *const u8) -> Option<(PagemapEntry, FixedSlots<A>)> {
        PagemapEntry::local(Self::HEAP, at.addr()).map(|(entry, area)| (entry, FixedSlots::of(area)))
    }

    /// The pagemap's entry of any address; `None` outside the heap.
    #[inline(always)]
    pub fn pagemap(at: *const u8) -> Option<PagemapEntry> {
        PagemapEntry::at(Self::HEAP, at.addr())
    }
}

impl<A: Trusted> Topology for Native<A> {
    #[inline]
    fn cpus() -> u16 {
        area::used()
    }
    #[inline]
    fn nodes() -> u16 {
        topology::nodes()
    }
    #[inline]
    fn page_shift() -> u32 {
        memory::page_shift()
    }
    #[inline]
    fn cpu() -> CpuId {
        current::slot()
    }
    #[inline]
    fn cpu_node(cpu: CpuId) -> NodeId {
        if topology::nodes() == 1 { NodeId(0) } else { per_cpu::node_of(cpu) }
    }
    #[inline]
    fn memory_node() -> NodeId {
        if topology::nodes() == 1 { NodeId(0) } else { Self::cpu_memory_node(Self::cpu()) }
    }
    #[inline]
    fn cpu_memory_node(cpu: CpuId) -> NodeId {
        if topology::nodes() == 1 {
            NodeId(0)
        } else {
            NodeId(topology::memory_node(per_cpu::node_of(cpu).0))
        }
    }
    fn distance(from: NodeId, to: NodeId) -> u32 {
        topology::distance(from.0, to.0)
    }
    fn node_frames(node: NodeId) -> (Pfn, u32) {
        memory::node_frames(node.0)
    }
    fn cpu_online(cpu: CpuId) -> bool {
        thread::is_live(cpu)
    }
}

impl<A: Trusted> Frames for Native<A> {
    type Ptr = Object;
    type Word = Real;
    type Field = Real;
    #[inline]
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> T) -> T {
        let frame: &Descriptor<Real, Real> = Self::HEAP.frame(pfn);
        f(frame)
    }
    #[inline]
    fn with_map<T>(pfn: Pfn, index: u32, f: impl FnOnce(&Real) -> T) -> T {
        f(Self::HEAP.map_word(pfn, index))
    }
    #[inline]
    fn address(pfn: Pfn, offset: u64) -> Object {
        memory::address(pfn, offset)
    }
    #[inline]
    fn locate(object: Object) -> (Pfn, u32) {
        memory::locate(object)
    }
    fn commit_descriptors(first: Pfn, frames: u32) -> bool {
        memory::commit_descriptors(first, frames)
    }
    #[inline]
    fn commit_frames(first: Pfn, frames: u32) -> bool {
        space::commit_frames(first, frames)
    }
    fn has_memory(first: Pfn, frames: u32) -> bool {
        space::is_committed(first, frames)
    }
    fn map_slab(pfn: Pfn, order: u8, size: u32, cache: u32) {
        memory::map(pfn, order, size, cache);
    }
    fn unmap_slab(pfn: Pfn, order: u8) {
        memory::unmap(Self::HEAP, pfn, order);
    }
}

// SAFETY: the reserved address space is memory that nothing but this world maps (`Space::reserve`); frames
// lie one after another in it, so no two share a byte; and `Trusted` keeps code without an `unsafe` of its
// own away.
unsafe impl<A: Trusted> Memory for Native<A> {
    #[inline]
    fn link(object: Object, offset: u32) -> Option<Object> {
        Object::from_raw(Self::HEAP.word(object, offset).load(Relaxed))
    }
    #[inline]
    fn set_link(object: Object, offset: u32, next: Option<Object>) {
        Self::HEAP.word(object, offset).store(Object::to_raw(next), Relaxed);
    }
    #[inline]
    fn half(at: Object) -> u16 {
        Self::HEAP.half(at).load(Relaxed)
    }
    #[inline]
    fn set_half(at: Object, value: u16) {
        Self::HEAP.half(at).store(value, Relaxed);
    }
    fn storage_attach(object: Object, words: u32) {
        Self::HEAP.fill(object, words * 8, 0);
    }
    #[inline]
    fn storage_load(object: Object, index: u32) -> Option<Object> {
        Self::link(object, index * 8)
    }
    #[inline]
    fn storage_store(object: Object, index: u32, value: Option<Object>) {
        Self::set_link(object, index * 8, value);
    }
    fn storage_detach(_object: Object) {}
    #[inline]
    fn fill(at: Object, bytes: u32, value: u8) {
        Self::HEAP.fill(at, bytes, value);
    }
    fn differs(at: Object, bytes: u32, value: u8) -> Option<(u32, u8)> {
        // In pieces, each compared to its end: the compiler makes wide comparisons of that.
        const PIECE: usize = 32;
        let all = Self::HEAP.bytes(at, bytes);
        let other = |piece: &[u8]| piece.iter().fold(0, |other, byte| other | (byte ^ value)) != 0;
        let piece = all.chunks(PIECE).position(other)? * PIECE;
        let index = piece + all[piece..].iter().position(|byte| *byte != value)?;
        Some((index as u32, all[index]))
    }
    fn word(at: Object) -> u64 {
        Self::HEAP.word(at, 0).load(Relaxed)
    }
    fn set_word(at: Object, value: u64) {
        Self::HEAP.word(at, 0).store(value, Relaxed);
    }
    fn mark_live(object: Object, live: bool) -> bool {
        memory::mark_live(object, live)
    }
}

impl<A: Trusted> Time for Native<A> {
    fn now() -> u64 {
        timers::now_ns()
    }
    fn context() -> Context {
        Context::Task
    }
    fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
        timers::defer(cpu, delay_ns, work);
    }
    fn after_grace_period(work: Work) {
        timers::defer(current::slot(), timers::GRACE_NS, work);
    }
}

/// [`Native::on_reclaim`].
static ON_RECLAIM: OnceLock<fn() -> u32> = OnceLock::new();

impl<A: Trusted> Hooks for Native<A> {
    fn random() -> u32 {
        thread::random()
    }
    fn secret() -> u64 {
        memory::secret()
    }
    #[cold]
    fn reclaim(ask: Reclaim) -> Reclaimed {
        match (ask.step, ON_RECLAIM.get()) {
            (ReclaimStep::Direct, Some(hook)) => Reclaimed::freed(hook()),
            _ => Reclaimed::NOTHING,
        }
    }
    fn permit(_order: u8, _gfp: Gfp) -> bool {
        true
    }
    #[inline]
    fn count(_event: Event, _n: u64) {}
    fn broken(cache: Option<u32>, what: fmt::Arguments<'_>) -> ! {
        report::damage(cache, what)
    }
}

impl<A: Trusted> Platform for Native<A> {
    type Ground = Self;
    type Lock<R: Rank, T> = Futex<R, T>;
    type PerCpu<T: Default> = Slots<A, T>;
    type PerNode<T: Default> = Nodes<T>;
    type CpuShared<T: Default> = Cpus<T>;
}
