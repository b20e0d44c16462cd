//! A machine without tasks and without time, to run a policy alone.
//!
//! One zone, a list of free frames; slab caches whose objects can all be freed, and free no page.
//! kswapd runs whenever an allocation finds no more free pages than the low mark. An allocation that
//! finds no more than the minimum takes one of the policy's clean pages before it reclaims. A device
//! takes requests. It ends the oldest when it holds more than its depth, and all of them when somebody
//! waits: so reads and writes are under way for a while, in an order that a test knows.

use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Ask, Block, Io, Mark, Place, Purpose, Shrinker, Shrunk, Throttle, Waited, Work};
use crate::ids::Frame;
use crate::mm::Rules;
use crate::preset::Preset;
use crate::settings::Settings;
use crate::state::{State, Zone};
use crate::swap::{SlotRule, Swap};
use crate::vm::{Host, Vm};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};

/// The host.
pub struct Instant {
    free: RefCell<Vec<Frame>>,
    /// Watermarks: min, low, high.
    marks: [u64; 3],
    /// Requests of the device, oldest first.
    requests: RefCell<VecDeque<Request>>,
    depth: usize,
    /// Frames of a pageblock; all are movable.
    pageblock: u32,
    now: Cell<u64>,
    kswapd: Cell<bool>,
    reclaims: Cell<bool>,
    /// While a frame is freed, another task reclaims.
    contended: Cell<bool>,
    /// Frames whose pages have a buffer head.
    buffers: RefCell<BTreeSet<u32>>,
    /// Slab caches: what they are, and their objects.
    caches: RefCell<Vec<(Shrinker, u64)>>,
    /// Work done, by kind.
    work: [Cell<u64>; 7],
    /// Times that reclaim gave up.
    gave_up: Cell<u32>,
    /// Times that flushers were woken.
    flushers: Cell<u32>,
}

struct Request {
    place: Place,
    frames: Vec<Frame>,
    write: bool,
}

impl Instant {
    /// A machine of one zone with so many frames under the preset `vm`, and swap of so many slots; also the
    /// rules of the preset's release.
    ///
    /// # Panics
    /// If there is no such preset.
    pub fn machine(vm: &str, frames: u32, slots: u32) -> (Vm, Instant, Rules) {
        let preset = Preset::parse(vm).expect("a preset");
        let [major, minor, patch] = preset.kernel;
        let zone = Zone { name: "Normal", node: 0, class: 0, frames: 0..frames, managed: frames.into() };
        let policy = preset.policy();
        let swap = Swap::new(slots, SlotRule::Clusters);
        let state = State::new(vec![zone], swap, policy.lists(1, 1), Settings::USUAL);
        let host = Instant::new(frames, [8, 16, 24], 4);
        (Vm::new(state, policy), host, Rules::of(major, minor, patch))
    }

    /// A host of `frames` free frames with these watermarks, and a device that holds `depth` requests.
    pub fn new(frames: u32, marks: [u64; 3], depth: usize) -> Instant {
        Instant {
            free: RefCell::new((0..frames).rev().map(Frame).collect()),
            marks,
            requests: RefCell::default(),
            depth,
            pageblock: 64,
            now: Cell::new(0),
            kswapd: Cell::new(false),
            reclaims: Cell::new(false),
            contended: Cell::new(false),
            buffers: RefCell::default(),
            caches: RefCell::default(),
            work: Default::default(),
            gave_up: Cell::new(0),
            flushers: Cell::new(0),
        }
    }

    /// Adds a slab cache with so many objects.
    pub fn add_cache(&self, cache: Shrinker, objects: u64) {
        self.caches.borrow_mut().push((cache, objects));
    }

    /// From now on another task reclaims while a frame is freed: what a CPU beside would do at any call.
    pub fn contend(&self) {
        self.contended.set(true);
    }

    /// Free frames.
    pub fn free_frames(&self) -> usize {
        self.free.borrow().len()
    }

    /// Every page with [`Flags::BUFFERS`] has a buffer head here, and no other one.
    ///
    /// # Errors
    /// A frame of which that is not so.
    pub fn check_buffers(&self, vm: &Vm) -> Result<(), String> {
        let buffers = self.buffers.borrow();
        vm.with(|state| {
            let has = |frame: &u32| state.frames.has(Frame(*frame), Flags::BUFFERS);
            let wrong = (0..state.frames.count()).find(|frame| has(frame) != buffers.contains(frame));
            wrong.map_or(Ok(()), |frame| Err(format!("frame {frame}: flag {}", has(&frame))))
        })
    }

    /// How often work of a kind was done.
    pub fn done(&self, work: Work) -> u64 {
        self.work[work as usize].get()
    }

    /// Times that flushers were woken; they write nothing.
    pub fn flushers_woken(&self) -> u32 {
        self.flushers.get()
    }

    /// How often reclaim gave up, so that a task would be killed.
    pub fn gave_up(&self) -> u32 {
        self.gave_up.get()
    }

    /// Ends the oldest request. Returns whether there was one.
    fn end_oldest(&self, vm: &Vm) -> bool {
        let oldest = self.requests.borrow_mut().pop_front();
        let Some(Request { place, frames, write }) = oldest else { return false };
        let io = Io { place, frames: &frames, write, sync: false, reclaim: false };
        if write {
            vm.write_done(self, io)
        } else {
            vm.read_done(self, io)
        }
        true
    }

    /// Ends all requests.
    pub fn settle(&self, vm: &Vm) {
        while self.end_oldest(vm) {}
    }

    fn run_kswapd(&self, vm: &Vm) {
        self.kswapd.set(true);
        vm.policy.kswapd(vm, self, 0, 0, 0);
        self.kswapd.set(false);
    }

    fn reclaim(&self, vm: &Vm, purpose: Purpose) -> Option<Frame> {
        if let Some(page) = vm.policy.steal_clean(vm, self, 0) {
            return Some(page);
        }
        self.reclaims.set(true);
        let fs = purpose != Purpose::ReadAhead;
        let ask = Ask { node: 0, class: 0, order: 0, io: true, fs, space: None, group: false };
        // Until a round gives nothing twice: then there is no memory.
        let mut page = None;
        for _ in 0..64 {
            let freed = vm.policy.direct(vm, self, &ask);
            page = freed.page.or_else(|| vm.policy.steal_clean(vm, self, 0));
            if page.is_some() || self.free_frames() as u64 > self.marks[0] {
                break;
            }
            self.settle(vm);
        }
        self.reclaims.set(false);
        page
    }
}

impl Host for Instant {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn work(&self, work: Work, n: u32) {
        self.now.set(self.now.get() + 100 * u64::from(n));
        let done = &self.work[work as usize];
        done.set(done.get() + u64::from(n));
    }

    fn resched(&self) {}

    fn alloc(&self, vm: &Vm, purpose: Purpose) -> Option<Frame> {
        let is_reclaiming = self.reclaims.get() || self.kswapd.get();
        let mut page = None;
        if !is_reclaiming && (self.free_frames() as u64) <= self.marks[1] {
            self.run_kswapd(vm);
            // Allocations wait for kswapd below half of the minimum, until it gives up (16 runs).
            for _ in 0..32 {
                if self.free_frames() as u64 > self.marks[0] / 2 {
                    break;
                }
                self.settle(vm);
                self.run_kswapd(vm);
            }
            if self.free_frames() as u64 <= self.marks[0] {
                page = self.reclaim(vm, purpose);
            }
        }
        let page = page.or_else(|| self.free.borrow_mut().pop());
        vm.with(|state| state.counters.add(Counter::PgAlloc, page.is_some().into()));
        page
    }

    fn free(&self, vm: &Vm, frame: Frame) {
        vm.with(|state| state.count(Counter::PgFree));
        self.buffers.borrow_mut().remove(&frame.0);
        self.free.borrow_mut().push(frame);
        if self.contended.take() {
            let page = self.reclaim(vm, Purpose::Anon);
            self.free.borrow_mut().extend(page);
            self.contended.set(true);
        }
    }

    fn submit(&self, vm: &Vm, io: Io<'_>) {
        let Io { place, frames, write, .. } = io;
        self.requests.borrow_mut().push_back(Request { place, frames: frames.to_vec(), write });
        if self.requests.borrow().len() > self.depth {
            self.end_oldest(vm);
        }
    }

    fn wait(&self, vm: &Vm, _frame: Frame, _waited: Waited) {
        self.settle(vm);
    }

    fn wake(&self, _frame: Frame) {}

    fn throttle(&self, _why: Throttle, most: u64) {
        self.now.set(self.now.get() + most);
    }

    fn wake_flushers(&self, _pages: u64) {
        self.flushers.set(self.flushers.get() + 1);
    }

    fn wake_kswapd(&self, _node: u16, _order: u8, _class: u8) {}

    fn mark(&self, _zone: usize, mark: Mark) -> u64 {
        self.marks[mark as usize]
    }

    fn free_pages(&self, _zone: usize) -> u64 {
        self.free_frames() as u64
    }

    fn is_above(&self, zone: usize, mark: Mark, order: u8, _class: u8) -> bool {
        let has_block = order == 0 || self.has_block(zone, order, Block::Movable);
        self.free_pages(zone) > self.marks[mark as usize] && has_block
    }

    fn shrinkers(&self) -> Vec<Shrinker> {
        self.caches.borrow().iter().map(|(cache, _)| *cache).collect()
    }

    fn shrinkable(&self, shrinker: usize) -> u64 {
        self.caches.borrow()[shrinker].1
    }

    fn shrink(&self, _vm: &Vm, shrinker: usize, n: u64) -> Shrunk {
        let objects = &mut self.caches.borrow_mut()[shrinker].1;
        let freed = n.min(*objects);
        *objects -= freed;
        Shrunk { scanned: n, freed, pages: 0 }
    }

    fn reap_slabs(&self) -> u64 {
        0
    }

    fn pageblock_frames(&self) -> u32 {
        self.pageblock
    }

    fn take_free(&self, first: Frame, frames: u32) -> Vec<Frame> {
        let range = first.0..first.0 + frames;
        let mut taken: Vec<Frame> =
            self.free.borrow_mut().extract_if(.., |frame| range.contains(&frame.0)).collect();
        taken.sort_unstable();
        taken
    }

    fn has_block(&self, _zone: usize, order: u8, block: Block) -> bool {
        let mut free: Vec<u32> = self.free.borrow().iter().map(|frame| frame.0 >> order).collect();
        free.sort_unstable();
        block == Block::Movable && free.chunk_by(|a, b| a == b).any(|run| run.len() == 1 << order)
    }

    fn buffers_created(&self, _vm: &Vm, frame: Frame) -> bool {
        assert!(self.buffers.borrow_mut().insert(frame.0), "frame {} has a buffer head", frame.0);
        true
    }

    fn buffers_freed(&self, frame: Frame) {
        assert!(self.buffers.borrow_mut().remove(&frame.0), "frame {} has no buffer head", frame.0);
    }

    fn buffers_moved(&self, from: Frame, to: Frame) {
        self.buffers_freed(from);
        self.buffers.borrow_mut().insert(to.0);
    }

    fn out_of_memory(&self, _vm: &Vm) {
        self.gave_up.set(self.gave_up.get() + 1);
    }

    fn is_kswapd(&self) -> bool {
        self.kswapd.get()
    }

    fn is_congested(&self, _place: Place) -> bool {
        false
    }
}
