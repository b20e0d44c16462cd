//! The memory of a machine with its policy, and the two interfaces: to the machine around, and to the policy.

use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Ask, Block, Io, Mark, Place, Purpose, Shrinker, Shrunk, Throttle, Waited, Work};
use crate::ids::Frame;
use crate::replacement::{Enter, Freed, Pass, Rule, Sizes, Verdict};
use crate::state::State;
use std::cell::RefCell;

/// The memory of a machine and its policy.
pub struct Vm {
    state: RefCell<State>,
    /// The policy of replacement.
    pub policy: Box<dyn Replacement>,
}

impl Vm {
    /// Memory under a policy.
    pub fn new(state: State, policy: Box<dyn Replacement>) -> Vm {
        Vm { state: RefCell::new(state), policy }
    }

    /// Uses the state. `f` calls no host.
    #[inline]
    pub fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.borrow_mut())
    }

    /// The page of a frame is gone: it is in no mapping, mapped nowhere, and not in the swap cache. The frame
    /// is freed, by its reclaimer if it is isolated.
    pub fn release(&self, host: &dyn Host, frame: Frame) {
        let is_free = self.with(|state| {
            self.policy.leave(state, frame);
            state.end(frame)
        });
        if is_free {
            host.free(self, frame);
        }
    }

    /// Starts I/O, and counts it: pages of swap, KiB of disks.
    pub fn submit(&self, host: &dyn Host, io: Io<'_>) {
        self.with(|state| {
            let pages = io.frames.len() as u64;
            let (swap, all) = if io.write {
                (Counter::PswpOut, Counter::PgpgOut)
            } else {
                (Counter::PswpIn, Counter::PgpgIn)
            };
            if matches!(io.place, Place::Swap(_)) {
                state.counters.add(swap, pages);
            }
            state.counters.add(all, 4 * pages);
        });
        host.submit(self, io);
    }

    /// A read ended: the frames hold their pages, and are unlocked.
    pub fn read_done(&self, host: &dyn Host, io: Io<'_>) {
        for (at, frame) in io.frames.iter().enumerate() {
            self.with(|state| {
                let content = state.stored(io.place, at as u32);
                state.frames.set_content(*frame, content);
                state.frames.clear(*frame, Flags::LOCKED);
                state.frames.set(*frame, Flags::UPTODATE);
            });
            host.wake(*frame);
        }
    }

    /// A write ended. Frames that reclaim wants go to where it looks next.
    pub fn write_done(&self, host: &dyn Host, io: Io<'_>) {
        for (at, frame) in io.frames.iter().enumerate() {
            self.with(|state| {
                state.store(io.place, at as u32, state.frames.content(*frame));
                state.frames.clear(*frame, Flags::WRITEBACK);
                state.dirty.writeback -= 1;
                if matches!(io.place, Place::Mapping(..)) {
                    state.dirty.file_writeback -= 1;
                    state.dirty.speed.written.0 += 1;
                }
                state.count(Counter::Written);
                if state.frames.clear(*frame, Flags::RECLAIM).any(Flags::RECLAIM) {
                    self.policy.written(state, *frame);
                }
            });
            host.wake(*frame);
        }
    }
}

/// The machine around the memory: CPU time, the page allocator, devices, slab caches, other tasks.
///
/// **Every call may suspend the caller**, and other tasks may run before it returns; so a caller holds no
/// borrow of the state, and looks again afterwards. Times are nanoseconds.
pub trait Host {
    /// Time since the boot.
    fn now(&self) -> u64;
    /// The CPU works: `n` times.
    fn work(&self, work: Work, n: u32);
    /// Lets other tasks run if it is their turn (`cond_resched`).
    fn resched(&self);
    /// Takes a page from the page allocator, which may call [`Replacement::direct`] for it. `None`: no
    /// memory, after the OOM killer.
    fn alloc(&self, vm: &Vm, purpose: Purpose) -> Option<Frame>;
    /// Gives a page back. If it had a buffer head ([`Host::buffers_created`]), that is freed too.
    fn free(&self, vm: &Vm, frame: Frame);
    /// Starts I/O. Returns before its end. Callers use [`Vm::submit`], which counts.
    fn submit(&self, vm: &Vm, io: Io<'_>);
    /// Waits until the frame has not this state any more; another may take its page meanwhile.
    fn wait(&self, vm: &Vm, frame: Frame, waited: Waited);
    /// A frame's lock or write ended: who waits for it continues.
    fn wake(&self, frame: Frame);
    /// A reclaimer sleeps at most this long.
    fn throttle(&self, why: Throttle, most: u64);
    /// The end of a pass over lists: the writes that the task has put together start (`blk_finish_plug`).
    fn unplug(&self) {}
    /// Who sleeps for this reason goes on.
    fn unthrottle(&self, _why: Throttle) {}
    /// Wakes the tasks that write dirty pages; 0: as many as they like.
    fn wake_flushers(&self, pages: u64);
    /// Wakes kswapd of a node for an order and the highest zone.
    fn wake_kswapd(&self, node: u16, order: u8, class: u8);
    /// kswapd of a node sleeps at most this long. Returns whether it was woken before.
    fn nap(&self, _node: u16, _most: u64) -> bool {
        false
    }
    /// What was asked of kswapd of a node since it asked this last: the largest order, the highest zone.
    fn asked(&self, _node: u16) -> Option<(u8, u8)> {
        None
    }
    /// kswapd of a node goes to sleep: kcompactd makes blocks of an order.
    fn wake_kcompactd(&self, _node: u16, _order: u8, _class: u8) {}
    /// kswapd of a node begins or ends to reclaim (`ZONE_RECLAIM_ACTIVE`).
    fn reclaims(&self, _node: u16, _reclaims: bool) {}
    /// Pages of a zone's watermark, with its boost.
    fn mark(&self, zone: usize, mark: Mark) -> u64;
    /// Pages by which a zone's watermarks are raised since a block was taken for another migrate type.
    fn boost(&self, _zone: usize) -> u64 {
        0
    }
    /// Lowers a zone's boost.
    fn unboost(&self, _zone: usize, _pages: u64) {}
    /// Whether the page allocator takes clean pages of zones by itself ([`Replacement::steal_clean`]).
    fn takes_clean(&self) -> bool {
        true
    }
    /// Free pages of a zone.
    fn free_pages(&self, zone: usize) -> u64;
    /// Whether a zone has free pages above a mark for an order (`zone_watermark_ok`).
    fn is_above(&self, zone: usize, mark: Mark, order: u8, class: u8) -> bool;
    /// Whether a zone has free pages above so many times a mark for an order. A host whose test of an order
    /// looks at small blocks has its own answer.
    fn is_above_times(&self, zone: usize, times: u64, mark: Mark, order: u8, class: u8) -> bool {
        self.is_above(zone, mark, order, class) && self.free_pages(zone) > times * self.mark(zone, mark)
    }
    /// The caches that can shrink.
    fn shrinkers(&self) -> Vec<Shrinker>;
    /// Objects that a shrinker could free now.
    fn shrinkable(&self, shrinker: usize) -> u64;
    /// A shrinker looks at `n` objects.
    fn shrink(&self, vm: &Vm, shrinker: usize, n: u64) -> Shrunk;
    /// Pages of reclaimable slabs (`NR_SLAB_RECLAIMABLE`), of all nodes.
    fn reclaimable_slabs(&self) -> u64 {
        0
    }
    /// Frees empty slabs that caches keep (`kmem_cache_reap`). Returns pages that came back.
    fn reap_slabs(&self) -> u64;
    /// Frames of a pageblock.
    fn pageblock_frames(&self) -> u32 {
        512
    }
    /// The type of the pageblock that has a frame.
    fn block_of(&self, _frame: Frame) -> Block {
        Block::Movable
    }
    /// Takes the free frames of a range: each can be given back by [`Host::free`].
    fn take_free(&self, _first: Frame, _frames: u32) -> Vec<Frame> {
        Vec::new()
    }
    /// Whether a zone has a free block of this order or a higher one on the lists of a type.
    fn has_block(&self, _zone: usize, _order: u8, _block: Block) -> bool {
        true
    }
    /// Why a request of an order fails in a zone, in thousandths: near 0 for lack of memory, near 1000
    /// because memory is in pieces; -1000 if there is a block.
    fn fragmentation(&self, _zone: usize, _order: u8) -> i32 {
        0
    }
    /// Reclaim gives up: a task is killed for its memory (`out_of_memory`).
    fn out_of_memory(&self, _vm: &Vm) {}
    /// Whether the request's task is kswapd.
    fn is_kswapd(&self) -> bool;
    /// Whether the disk of a place is too busy for a write that nobody waits for.
    fn is_congested(&self, place: Place) -> bool;
    /// A locked page of a file wants a buffer head, which says where on the disk it is. Returns whether there
    /// was memory.
    fn buffers_created(&self, _vm: &Vm, _frame: Frame) -> bool {
        true
    }
    /// A page of a file lost its buffer head, and stays. [`Host::free`] frees that of a page that goes.
    fn buffers_freed(&self, _frame: Frame) {}
    /// The page of a frame moved to another one, with its buffer head.
    fn buffers_moved(&self, _from: Frame, _to: Frame) {}
}

/// A policy of page replacement.
///
/// A policy owns its lists, the meaning of [`crate::Frames::policy`], and data of its own. The rest of the
/// crate tells it what happens to pages, and the page allocator and kswapd ask it to reclaim.
///
/// Methods that take `&mut State` return at once. Methods that take a host may sleep.
pub trait Replacement {
    /// Its name and knobs, as `vm@6.1,lru_gen`.
    fn name(&self) -> String;

    /// Lists that it needs on a machine of `zones` zones and `nodes` nodes.
    fn lists(&self, zones: u16, nodes: u16) -> u16;

    /// Whether generations can be turned on and off while programs run (`lru_gen/enabled`).
    fn can_switch(&self) -> bool {
        false
    }

    /// The administrator turns generations on or off; only where [`Replacement::can_switch`].
    fn switch(&self, _state: &mut State, _generations: bool) {}

    /// A page entered a frame that is in no list. `shadow`: what [`Replacement::evict`] left of it before.
    fn enter(&self, state: &mut State, frame: Frame, how: Enter, shadow: Option<u32>);

    /// A task read or wrote the page by a system call, or a fault found it in the cache
    /// (`mark_page_accessed`).
    fn access(&self, state: &mut State, frame: Frame);

    /// A task wrote to the page by a system call, to its end if `to_end`.
    fn wrote(&self, state: &mut State, frame: Frame, _to_end: bool) {
        self.access(state, frame);
    }

    /// A lookup found the page in the page cache or in the swap cache (2.4's hash lookup).
    fn found(&self, _state: &mut State, _frame: Frame) {}

    /// A region that accessed the page of a file or of tmpfs unmaps it. From 2.6.29 on this is an access
    /// (from memory).
    fn unmapped(&self, state: &mut State, frame: Frame) {
        self.access(state, frame);
    }

    /// A fault maps a page of a file, of tmpfs or of the swap cache, whether it was read for this fault or
    /// was in its frame before.
    fn fault(&self, _state: &mut State, _frame: Frame) {}

    /// The page gave its swap slot up and stays in its frame, mapped or back in its tmpfs file. 2.4 takes an
    /// anonymous page from its list then.
    fn unswapped(&self, _state: &mut State, _frame: Frame) {}

    /// The page leaves its frame for good, or for another frame: it is in no list afterwards. Not called by
    /// reclaim.
    fn leave(&self, state: &mut State, frame: Frame);

    /// Reclaim evicts a page. Returns the shadow that stays in its place, 30 bits; `None`: nothing stays.
    fn evict(&self, state: &mut State, frame: Frame) -> Option<u32>;

    /// What reclaim does with an isolated page, by its accessed bits and its flags. `None`: the policy has no
    /// rule of its own, and the rule of the classic lists of its release applies.
    fn references(&self, _state: &mut State, _frame: Frame) -> Option<Verdict> {
        None
    }

    /// The write of a page that reclaim wants has ended.
    fn written(&self, state: &mut State, frame: Frame);

    /// Nanoseconds between two calls of [`Replacement::sum_up`]; `None`: none is needed.
    fn sums_up_every(&self) -> Option<u64> {
        None
    }

    /// The kernel sums statistics up over memory groups (`flush_memcg_stats_dwork`). Until the first time a
    /// policy goes by what is true.
    fn sum_up(&self) {}

    /// A reader's next window of read-ahead begins at this page: it is done with the pages before
    /// (2.4's drop-behind).
    fn drop_behind(&self, _state: &mut State, _frame: Frame) {}

    /// A swap slot is kept beside a page that was read from it, for a fault that writes or not.
    fn keeps_slot(&self, state: &State, write: bool) -> bool {
        !write && !state.swap.is_half_full()
    }

    /// An allocation reclaims pages.
    fn direct(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed;

    /// What the policy reclaims before another node is asked ([`crate::near`]); `None`: nothing.
    fn near(&self) -> Option<Rule> {
        None
    }

    /// Pages of files in a zone's lists.
    fn files_of(&self, _state: &State, _zone: usize) -> u64 {
        0
    }

    /// One pass of [`crate::near::reclaim`] over a zone or its node, which adds to what it freed.
    fn shrink_near(&self, _vm: &Vm, _host: &dyn Host, _ask: &Ask, _pass: &mut Pass) {}

    /// Slab caches are shrunk on their own, until so many pages are freed ([`Rule::Zone`]).
    fn shrink_slabs_near(&self, _vm: &Vm, _host: &dyn Host, _pass: &mut Pass, _wanted: u64) {}

    /// The page allocator wakes kswapd of a node. Returns whether there is work for it; if not, it stays
    /// asleep, although the order is remembered (`wakeup_kswapd`).
    fn wants_kswapd(&self, _vm: &Vm, _host: &dyn Host, _node: u16, _order: u8, _class: u8) -> bool {
        true
    }

    /// kswapd of a node was woken for an order and the highest zone. Returns when it may sleep.
    fn kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8);

    /// A second of time went by (2.4's periodic work). Most policies have none.
    fn tick(&self, _vm: &Vm, _host: &dyn Host) {}

    /// Zones have [`Replacement::clean_pages`], and kreclaimd frees them where free pages are few.
    fn has_clean_pages(&self) -> bool {
        false
    }

    /// A request for a block makes pages clean, which the page allocator then frees one by one.
    fn launder_for(&self, _vm: &Vm, _host: &dyn Host, _ask: &Ask) {}

    /// Pages that count as free for a zone beside its free ones (2.4's `inactive_clean`).
    fn clean_pages(&self, _state: &State, _zone: usize) -> u64 {
        0
    }

    /// Frees one of a zone's [`Replacement::clean_pages`], and hands it over.
    fn steal_clean(&self, _vm: &Vm, _host: &dyn Host, _zone: usize) -> Option<Frame> {
        None
    }

    /// Compaction takes a frame out of its list, to move its page ([`State::isolate`]). Returns whether that
    /// was done; not by a policy of a release without compaction.
    fn isolate(&self, _state: &mut State, _frame: Frame) -> bool {
        false
    }

    /// Compaction puts an isolated frame into the list where its page was, or goes; its page is not gone.
    fn put_back(&self, _state: &mut State, frame: Frame) {
        unreachable!("frame {} is isolated by compaction", frame.0);
    }

    /// Pages of each kind.
    fn sizes(&self, state: &State) -> Sizes;

    /// The administrator asks for a new generation of a node's pages (debugfs, `lru_gen`). Returns whether
    /// one began; not by a policy without generations.
    fn age(&self, _vm: &Vm, _host: &dyn Host, _node: u16) -> bool {
        false
    }

    /// Where a page is in the policy's lists, in words, for tests and records.
    fn whereabouts(&self, _state: &State, _frame: Frame) -> Option<String> {
        None
    }

    /// The policy's own data agree with the lists.
    ///
    /// # Errors
    /// What contradicts what.
    fn check(&self, _state: &State) -> Result<(), String> {
        Ok(())
    }

    /// Lines of debugfs or of other views of the lists, for records.
    fn describe(&self, _state: &State) -> Vec<String> {
        Vec::new()
    }

    /// The generations of each node, as debugfs has them: node, number, age in milliseconds at `now`
    /// nanoseconds, anonymous pages, pages of files. Empty without generations.
    fn generations(&self, _now: u64) -> Vec<[u64; 5]> {
        Vec::new()
    }
}
