//! A world for the page allocator's tests: what it calls is scripted, the rest is the model's.
//!
//! A test says what reclaim frees, refuses slots at random, and reads the reclaim requests back. A frame
//! outside the machine's memory panics. So does a function that is the model's, because no test enters a
//! modelled machine: pages touch no objects and read no clock.

use slablab_model::{Addr, Model};
use slablab_pages::Pages;
use slablab_platform::{
    CpuId, Event, Frame, FrameState, Frames, Gfp, Hooks, HotArray, HotList, Local, Lock, NodeId, PerCpu,
    PerNode, Pfn, Platform, Rank, Reclaim, ReclaimStep, Reclaimed, Topology, Want, Word, delegate,
};
use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// What machine the test runs on.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) page_shift: u32,
    /// Frames per node.
    pub(crate) nodes: Vec<u32>,
    /// Node per CPU.
    pub(crate) cpus: Vec<u16>,
    /// Distances; empty means 10 at home and 20 elsewhere.
    pub(crate) distance: Vec<Vec<u32>>,
    /// Refuse every n-th `local()`; 0: never.
    pub(crate) refuse_every: u32,
    /// First frame of node 0.
    pub(crate) first: u32,
}

impl Spec {
    pub(crate) fn uniform(nodes: u16, frames: u32) -> Spec {
        let cpus = (0..nodes * 2).map(|cpu| cpu / 2).collect();
        Spec {
            page_shift: 12,
            nodes: vec![frames; nodes as usize],
            cpus,
            distance: vec![],
            refuse_every: 0,
            first: 0,
        }
    }
}

/// Makes addresses of frame 0 addresses, which are never 0.
const BASE: NonZeroU64 = NonZeroU64::new(1 << 63).unwrap();

type Freed = Box<dyn FnMut(Reclaim) -> Reclaimed>;

struct State {
    spec: Spec,
    starts: Vec<u32>,
    cpu: Cell<u16>,
    frames: RefCell<HashMap<u32, Rc<Frame<World>>>>,
    counts: RefCell<HashMap<Event, u64>>,
    asked: RefCell<Vec<Reclaim>>,
    reclaim: RefCell<Option<Freed>>,
    permit: Cell<bool>,
    /// Frames from this one on have no memory.
    memory_end: Cell<u32>,
    reclaimer: Cell<bool>,
    /// `inactive_clean` pages, next one last.
    clean: RefCell<Vec<Pfn>>,
    /// Blocks that the running task freed and keeps; `None`: it keeps none.
    kept: RefCell<Option<Vec<Pfn>>>,
    locals: Cell<u32>,
    zone_locks_held: Cell<u32>,
}

thread_local!(static STATE: RefCell<Option<Rc<State>>> = const { RefCell::new(None) });

fn state() -> Rc<State> {
    STATE.with(|state| state.borrow().clone().expect("inside World::enter"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {}

impl World {
    /// Runs a test on a machine.
    pub(crate) fn enter<T>(spec: Spec, f: impl FnOnce() -> T) -> T {
        let mut next = spec.first;
        let mut starts = vec![];
        for frames in &spec.nodes {
            starts.push(next);
            // One largest block of nothing between nodes, so that merging across would be seen.
            next = (next + frames).next_multiple_of(1 << 13) + (1 << 13);
        }
        let fresh = State {
            spec,
            starts,
            cpu: Cell::new(0),
            frames: RefCell::default(),
            counts: RefCell::default(),
            asked: RefCell::default(),
            reclaim: RefCell::new(None),
            permit: Cell::new(true),
            memory_end: Cell::new(u32::MAX),
            reclaimer: Cell::new(false),
            clean: RefCell::default(),
            kept: RefCell::default(),
            locals: Cell::new(0),
            zone_locks_held: Cell::new(0),
        };
        STATE.with(|state| *state.borrow_mut() = Some(Rc::new(fresh)));
        let result = f();
        STATE.with(|state| *state.borrow_mut() = None);
        result
    }

    pub(crate) fn run_on(cpu: u16) {
        state().cpu.set(cpu);
    }

    pub(crate) fn counted(event: Event) -> u64 {
        state().counts.borrow().get(&event).copied().unwrap_or(0)
    }

    /// Descriptors that exist.
    pub(crate) fn frames_touched() -> usize {
        state().frames.borrow().len()
    }

    pub(crate) fn on_reclaim<R: Into<Reclaimed>>(mut f: impl FnMut(Reclaim) -> R + 'static) {
        *state().reclaim.borrow_mut() = Some(Box::new(move |ask| f(ask).into()));
    }

    /// The reclaim requests since the last call.
    pub(crate) fn asked() -> Vec<Reclaim> {
        state().asked.take()
    }

    /// Their steps.
    pub(crate) fn steps() -> Vec<ReclaimStep> {
        Self::asked().iter().map(|ask| ask.step).collect()
    }

    /// Whether the running task is a reclaimer from now on.
    pub(crate) fn set_reclaimer(reclaimer: bool) {
        state().reclaimer.set(reclaimer);
    }

    /// The `inactive_clean` pages, of any zone.
    pub(crate) fn clean<T>(f: impl FnOnce(&mut Vec<Pfn>) -> T) -> T {
        f(&mut state().clean.borrow_mut())
    }

    /// The running task keeps the blocks that it frees in `f`, which are returned.
    pub(crate) fn keeping(f: impl FnOnce()) -> Vec<Pfn> {
        *state().kept.borrow_mut() = Some(vec![]);
        f();
        state().kept.take().expect("kept since")
    }

    /// Says that `commit_frames` fails for frames from `end` on.
    pub(crate) fn set_memory_end(end: u32) {
        state().memory_end.set(end);
    }

    pub(crate) fn set_permit(permit: bool) {
        state().permit.set(permit);
    }
}

pub(crate) struct Ranked<R, T>(RefCell<T>, PhantomData<R>);

pub(crate) struct Guard<'a, T>(RefMut<'a, T>);

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        let state = state();
        state.zone_locks_held.set(state.zone_locks_held.get() - 1);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<R: Rank, T> Lock<T> for Ranked<R, T> {
    type Guard<'a>
        = Guard<'a, T>
    where
        Self: 'a,
        T: 'a;
    fn new(value: T) -> Self {
        Ranked(RefCell::new(value), PhantomData)
    }
    fn lock(&self) -> Guard<'_, T> {
        let state = state();
        assert_eq!(state.zone_locks_held.replace(1), 0, "{} taken while another is held", R::NAME);
        World::count(R::EVENT, 1);
        Guard(self.0.borrow_mut())
    }
    fn try_lock(&self) -> Option<Guard<'_, T>> {
        Some(self.lock())
    }
}

pub(crate) struct Nodes<T>(Vec<OnceCell<T>>);

impl<T: Default> PerNode<T> for Nodes<T> {
    fn new() -> Self {
        Nodes((0..World::nodes()).map(|_| OnceCell::new()).collect())
    }
    fn get(&self, node: NodeId) -> &T {
        self.0[node.0 as usize].get_or_init(T::default)
    }
    fn peek(&self, node: NodeId) -> Option<&T> {
        self.0[node.0 as usize].get()
    }
}

pub(crate) struct Slots<T>(Vec<OnceCell<Slot<T>>>);

#[derive(Default)]
struct Slot<T> {
    cold: RefCell<T>,
    asked: Cell<bool>,
}

pub(crate) struct Here<'a, T>(RefMut<'a, T>, &'a Cell<bool>, u16);

impl<T> Deref for Here<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Here<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Local<Addr, T> for Here<'_, T> {
    fn cpu(&self) -> CpuId {
        CpuId(self.2)
    }
    fn list(&self) -> HotList<Addr> {
        HotList::EMPTY
    }
    fn set_list(&mut self, _list: HotList<Addr>) {
        unreachable!("pages use no hot list")
    }
    fn array(&self) -> HotArray<Addr> {
        HotArray::NONE
    }
    fn set_array(&mut self, _array: HotArray<Addr>) {
        unreachable!("pages use no hot array")
    }
    fn asked(&mut self) -> bool {
        self.1.replace(false)
    }
    fn count(&mut self, event: Event, n: u64) {
        World::count(event, n);
    }
}

impl<T: Default> PerCpu<Addr, T> for Slots<T> {
    type Local<'a>
        = Here<'a, T>
    where
        T: 'a;
    fn new(_link_offset: u32) -> Self {
        Slots((0..World::cpus()).map(|_| OnceCell::new()).collect())
    }
    fn pop_if(&self, _want: Want, _event: Event) -> Option<Addr> {
        None
    }
    fn push_if(&self, _want: Want, _limit: u32, _object: Addr, _event: Event) -> bool {
        false
    }
    fn pop(&self, _event: Event) -> Option<Addr> {
        None
    }
    fn push(&self, _object: Addr, _event: Event) -> bool {
        false
    }
    fn local(&self) -> Option<Here<'_, T>> {
        let state = state();
        let n = state.locals.get() + 1;
        state.locals.set(n);
        if state.spec.refuse_every > 0 && n.is_multiple_of(state.spec.refuse_every) {
            return None;
        }
        self.hold(state.cpu.get())
    }
    fn claim(&self, cpu: CpuId) -> Option<Here<'_, T>> {
        self.hold(cpu.0)
    }
    fn ask(&self, cpu: CpuId) {
        self.0[cpu.0 as usize].get_or_init(Slot::default).asked.set(true);
    }
    fn count(&self, event: Event, n: u64) {
        World::count(event, n);
    }
    fn counted(&self, _cpu: CpuId, event: Event) -> u64 {
        World::counted(event)
    }
    fn used(&self, cpu: CpuId) -> bool {
        self.0[cpu.0 as usize].get().is_some()
    }
}

impl<T: Default> Slots<T> {
    fn hold(&self, cpu: u16) -> Option<Here<'_, T>> {
        let slot = self.0[cpu as usize].get_or_init(Slot::default);
        Some(Here(slot.cold.try_borrow_mut().ok()?, &slot.asked, cpu))
    }
}

impl Topology for World {
    fn cpus() -> u16 {
        state().spec.cpus.len() as u16
    }
    fn nodes() -> u16 {
        state().spec.nodes.len() as u16
    }
    fn page_shift() -> u32 {
        state().spec.page_shift
    }
    fn cpu() -> CpuId {
        CpuId(state().cpu.get())
    }
    fn cpu_node(cpu: CpuId) -> NodeId {
        NodeId(state().spec.cpus[cpu.0 as usize])
    }
    fn cpu_memory_node(cpu: CpuId) -> NodeId {
        Self::cpu_node(cpu)
    }
    fn distance(from: NodeId, to: NodeId) -> u32 {
        match state().spec.distance.get(from.0 as usize) {
            Some(row) => row[to.0 as usize],
            None => 10 + 10 * (from != to) as u32,
        }
    }
    fn node_frames(node: NodeId) -> (Pfn, u32) {
        let state = state();
        (Pfn(state.starts[node.0 as usize]), state.spec.nodes[node.0 as usize])
    }
    fn cpu_online(_cpu: CpuId) -> bool {
        true
    }
}

impl Frames for World {
    type Ptr = Addr;
    type Word = <Model as Frames>::Word;
    type Field = <Model as Frames>::Field;
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<World>) -> T) -> T {
        let state = state();
        let mut nodes = state.starts.iter().zip(&state.spec.nodes);
        let exists = nodes.any(|(start, frames)| (*start..start + frames).contains(&pfn.0));
        assert!(exists, "frame {} is in no node", pfn.0);
        let frame = state.frames.borrow_mut().entry(pfn.0).or_default().clone();
        f(&frame)
    }
    fn with_map<T>(pfn: Pfn, index: u32, _: impl FnOnce(&Self::Word) -> T) -> T {
        unreachable!("the page allocator has no map: word {index} of {pfn:?}")
    }
    fn address(pfn: Pfn, offset: u64) -> Addr {
        Addr(BASE | (((pfn.0 as u64) << state().spec.page_shift) + offset))
    }
    fn locate(object: Addr) -> (Pfn, u32) {
        let (shift, address) = (state().spec.page_shift, object.0.get() ^ BASE.get());
        (Pfn((address >> shift) as u32), (address & ((1 << shift) - 1)) as u32)
    }
    fn commit_frames(first: Pfn, frames: u32) -> bool {
        first.0 + frames <= state().memory_end.get()
    }
    fn has_memory(first: Pfn, frames: u32) -> bool {
        first.0 + frames <= state().memory_end.get()
    }
    fn map_slab(_pfn: Pfn, _order: u8, _size: u32, _cache: u32) {}
    fn unmap_slab(_pfn: Pfn, _order: u8) {}
}

delegate! { impl[] Memory for World => Model }
delegate! { impl[] Time for World => Model }
delegate! { impl[] Hooks for World => Model: random secret;
    fn reclaim(ask: Reclaim) -> Reclaimed {
        let state = state();
        assert_eq!(state.zone_locks_held.get(), 0, "reclaim asked for under zone->lock");
        state.asked.borrow_mut().push(ask);
        let Some(mut answer) = state.reclaim.borrow_mut().take() else { return Reclaimed::NOTHING };
        let progress = answer(ask);
        state.reclaim.borrow_mut().get_or_insert(answer);
        progress
    }
    fn is_reclaimer() -> bool {
        state().reclaimer.get()
    }
    fn clean_frames(node: NodeId, zone: u8) -> u64 {
        let of_zone = |pfn: &&Pfn| {
            let state = World::with_frame(**pfn, |frame| FrameState::unpack(frame.state.load()));
            (state.node, state.zone) == (node, zone)
        };
        state().clean.borrow().iter().filter(of_zone).count() as u64
    }
    fn keeps_freed(pfn: Pfn, _order: u8) -> bool {
        let state = state();
        let mut kept = state.kept.borrow_mut();
        kept.as_mut().map(|kept| kept.push(pfn)).is_some()
    }
    fn permit(_order: u8, _gfp: Gfp) -> bool {
        state().permit.get()
    }
    fn broken(_cache: Option<u32>, what: std::fmt::Arguments<'_>) -> ! {
        panic!("broken: {what}")
    }
    fn count(event: Event, n: u64) {
        *state().counts.borrow_mut().entry(event).or_default() += n;
    }
}

impl Platform for World {
    type Ground = Self;
    type Lock<R: Rank, T> = Ranked<R, T>;
    type PerCpu<T: Default> = Slots<T>;
    type PerNode<T: Default> = Nodes<T>;
    type CpuShared<T: Default> = <Model as Platform>::CpuShared<T>;
}

/// A small deterministic generator (xorshift64*), so that a test's seed is its whole story.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }
}

/// Panics with the imbalance if a frame is unaccounted for.
#[track_caller]
pub(crate) fn assert_balanced(pages: &Pages<World>) {
    if let Err(imbalance) = pages.check() {
        panic!("{imbalance}");
    }
}
