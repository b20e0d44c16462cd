//! The traits a world implements.
//!
//! Functions without `self`: a world is a type, not a value. Where a world has state (a modelled machine), the state is
//! per thread and entered for a scope. docs/porting.md says the same in prose, for somebody who ports.

use crate::{Event, Frame, HotArray, HotList, Rank, Want};
use core::fmt::{self, Debug};
use core::ops::{Deref, DerefMut};

/// A CPU's number, from 0 to [`Platform::cpus`] - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u16);

/// A memory node's number, from 0 to [`Platform::nodes`] - 1. A CPU's node need not have memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// A page frame's number. 32 bits: 16 TiB of 4 KiB pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pfn(pub u32);

impl Pfn {
    /// The frame `frames` after this one.
    #[inline]
    pub const fn plus(self, frames: u32) -> Pfn {
        Pfn(self.0 + frames)
    }
}

/// A world: where memory, CPUs, locks and time come from.
pub trait Platform: Sized + 'static {
    /// An object's address: `NonNull<u8>` natively, a number in the model.
    type Ptr: Copy + Eq + Debug;
    /// The world whose page allocator serves engines here: this one, or the one inside, where a world around it changes nothing
    /// of page frames. Engines of both then share their pages.
    type Ground: Platform<Ptr = Self::Ptr>;
    /// A word that other CPUs may write at the same time.
    type Word: Word;
    /// A word that a lock or an owner protects. Worlds that check report an access nothing protects.
    type Field: Field;
    /// A lock around a value, with a place in the lock order.
    type Lock<R: Rank, T>: Lock<T>;
    /// One slot per CPU.
    type PerCpu<T: Default>: PerCpu<Self, T>;
    /// One value per node, made when first asked for.
    type PerNode<T: Default>: PerNode<T>;
    /// One value per CPU that every CPU may reach, made when first asked for.
    type CpuShared<T: Default>: CpuShared<T>;

    // Topology, known at run time.

    /// CPUs that exist. Slots are numbered below this.
    fn cpus() -> u16;
    /// Nodes that exist, with memory or without.
    fn nodes() -> u16;
    /// log2 of the page size in bytes.
    fn page_shift() -> u32;
    /// The CPU this code runs on. Only a hint once the caller can move.
    fn cpu() -> CpuId;
    /// The node a CPU is on.
    fn cpu_node(cpu: CpuId) -> NodeId;
    /// The nearest node with memory, seen from a CPU: `numa_mem_id()`.
    fn cpu_memory_node(cpu: CpuId) -> NodeId;
    /// The same, seen from the CPU this code runs on.
    #[inline]
    fn memory_node() -> NodeId {
        Self::cpu_memory_node(Self::cpu())
    }
    /// Distance between nodes, 10 for the node itself (ACPI SLIT units).
    fn distance(from: NodeId, to: NodeId) -> u32;
    /// A node's page frames: first frame and count; count 0 for a node without memory. Frames of one node are contiguous
    /// and start at a multiple of the largest block.
    fn node_frames(node: NodeId) -> (Pfn, u32);
    /// Whether a CPU is up.
    fn cpu_online(cpu: CpuId) -> bool;

    // Page frames and the memory in them.

    /// Calls `f` with the descriptor of a frame.
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> T) -> T;
    /// The address `offset` bytes into the block that starts at `pfn`.
    fn address(pfn: Pfn, offset: u64) -> Self::Ptr;
    /// The frame an address is in, and the offset in that frame.
    fn locate(object: Self::Ptr) -> (Pfn, u32);
    /// Says that the block at `pfn` now holds objects of `size` bytes: links and words of them may be used from here on.
    /// `cache` is the number of the cache they belong to, 2^24 where they belong to several: a world may keep it where it
    /// finds it from an address.
    fn map_slab(pfn: Pfn, order: u8, size: u32, cache: u32);
    /// Says that the block holds no objects any more.
    fn unmap_slab(pfn: Pfn, order: u8);
    /// The link in a free object, `offset` bytes into it: an object's address or none.
    fn link(object: Self::Ptr, offset: u32) -> Option<Self::Ptr>;
    /// Writes the link in a free object.
    fn set_link(object: Self::Ptr, offset: u32, next: Option<Self::Ptr>);
    /// Reads 16 bits of free memory at an even address, in a block mapped for objects of 8 bytes: what an engine keeps
    /// there whose pieces are smaller than a link. Where links are written, halves are not, until the block is unmapped.
    fn half(at: Self::Ptr) -> u16;
    /// Writes 16 bits of free memory; those beside them stay as they are.
    fn set_half(at: Self::Ptr, value: u16);
    /// Turns an object the caller owns into storage of `words` words, all 0. The object stays allocated.
    fn storage_attach(object: Self::Ptr, words: u32);
    /// Reads a word of storage.
    fn storage_load(object: Self::Ptr, index: u32) -> Option<Self::Ptr>;
    /// Writes a word of storage.
    fn storage_store(object: Self::Ptr, index: u32, value: Option<Self::Ptr>);
    /// Ends the use as storage; the object can be freed.
    fn storage_detach(object: Self::Ptr);
    /// Fills bytes of an object with one value; 0 for `__GFP_ZERO`. The bytes may begin anywhere in a mapped block.
    fn fill(at: Self::Ptr, bytes: u32, value: u8);
    /// The first of so many bytes that is not `value`: its offset, and what it is. Only for bytes that were written since
    /// their block was mapped, and are no link, half or storage now.
    fn differs(at: Self::Ptr, bytes: u32, value: u8) -> Option<(u32, u8)>;
    /// Reads 8 bytes at a multiple of 8 that were written likewise.
    fn word(at: Self::Ptr) -> u64;
    /// Writes 8 bytes at a multiple of 8.
    fn set_word(at: Self::Ptr, value: u64);
    /// Marks the object that starts here as handed out or not, and answers what it was; of two CPUs that do it at once one
    /// is first. Kept beside memory, for debugging alone: one bit for 8 bytes, unmarked at first.
    fn mark_live(object: Self::Ptr, live: bool) -> bool;

    // Time, context, deferral.

    /// Nanoseconds since some start; never goes back.
    fn now() -> u64;
    /// Where this code runs.
    fn context() -> Context;
    /// A number nobody relies on being random: stands for the cycle counter.
    fn random() -> u32;
    /// A number that is the same for as long as the world is, and that nobody outside can know: links are encoded with it.
    fn secret() -> u64;
    /// Asks for `work` on `cpu` after `delay_ns`. The assembler of the world runs it; a work already waiting on that CPU is
    /// not queued twice.
    fn defer(cpu: CpuId, delay_ns: u64, work: Work);
    /// Asks for `work` after every reader that runs now has ended (RCU).
    fn after_grace_period(work: Work);

    // The slow path of the page allocator, and counting outside a slot.

    /// Called when no block of this order is to be had above the watermark: the world's reclaim policy. Answers whether
    /// trying again makes sense.
    fn reclaim(ask: Reclaim) -> bool;
    /// Whether a page allocation of this order may succeed at all: a world's fault injection. Usually `true`.
    fn permit(order: u8, gfp: crate::Gfp) -> bool;
    /// Makes the descriptors of `frames` frames from `first` on writable: a largest block, of which the page allocator is
    /// about to use the first frame. `false` if there is no memory for descriptors: the zone then has no block beyond its
    /// frontier, for now.
    #[inline]
    fn commit_descriptors(_first: Pfn, _frames: u32) -> bool {
        true
    }
    /// Makes the memory of `frames` frames from `first` on readable and writable, before the page allocator hands them out.
    /// `false` if there is no memory: the frames stay free, and the request fails.
    #[inline]
    fn commit_frames(_first: Pfn, _frames: u32) -> bool {
        true
    }
    /// Counts an event that belongs to no cache: pages, locks.
    fn count(event: Event, n: u64);
    /// Ends what cannot be gone on with, and says why: somebody wrote over what an engine keeps in free memory. A world that serves
    /// whoever reports a panic has its own way.
    #[cold]
    fn broken(what: fmt::Arguments<'_>) -> ! {
        panic!("{what}")
    }
}

/// Where code runs, and what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A task; it may block.
    Task,
    /// A softirq: may not block, may be interrupted.
    Softirq,
    /// A hard interrupt.
    Hardirq,
    /// A non-maskable interrupt: may come anywhere.
    Nmi,
}

/// Deferred work: what, for which cache, and an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Work {
    /// What is to be done.
    pub kind: WorkKind,
    /// The cache it is for.
    pub cache: u32,
    /// The engine's own argument.
    pub argument: u64,
}

/// Kinds of deferred work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkKind {
    /// SLQB's visit of one CPU's queues every three seconds, SLAB's of its arrays every two.
    Reap,
    /// A slab whose readers are gone goes back to the page allocator.
    FreeSlab,
    /// A sheaf of objects whose readers are gone.
    FreeSheaf,
    /// An object whose readers are gone goes back to the heap.
    FreeObject,
}

/// What the page allocator asks the reclaim policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reclaim {
    /// The node whose zonelist was tried.
    pub node: NodeId,
    /// The order asked for.
    pub order: u8,
    /// The caller's flags.
    pub gfp: crate::Gfp,
    /// How often this request asked before.
    pub attempt: u32,
    /// What is asked for.
    pub step: ReclaimStep,
}

/// The steps of the slow path a policy can take (docs/theory/pagealloc.md 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimStep {
    /// Wake the daemon for this order; nothing is freed now.
    WakeKswapd,
    /// Free pages now, shrinkers included.
    Direct,
    /// Move pages to make a block.
    Compact,
    /// Kill somebody.
    Oom,
}

/// A word that other CPUs may write at the same time. Each method names its ordering.
pub trait Word: Debug {
    /// A word holding `value`.
    fn new(value: u64) -> Self;
    /// Relaxed load.
    fn load(&self) -> u64;
    /// Acquire load: pairs with a `store_release` or a successful `compare_exchange`.
    fn load_acquire(&self) -> u64;
    /// Relaxed store.
    fn store(&self, value: u64);
    /// Release store.
    fn store_release(&self, value: u64);
    /// Acquire and release on success, acquire on failure. May fail only when the value differs.
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64>;
}

/// A word that a lock or an owner protects.
pub trait Field: Debug {
    /// A field holding `value`.
    fn new(value: u64) -> Self;
    /// Reads it.
    fn get(&self) -> u64;
    /// Writes it.
    fn set(&self, value: u64);
}

/// Mutual exclusion around a value.
pub trait Lock<T> {
    /// Holding the lock; dropping it lets go.
    type Guard<'a>: DerefMut<Target = T>
    where
        Self: 'a,
        T: 'a;
    /// An unlocked lock around `value`.
    fn new(value: T) -> Self;
    /// Takes the lock; waits if somebody holds it.
    fn lock(&self) -> Self::Guard<'_>;
    /// Takes the lock if nobody holds it.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
}

/// One value per node.
pub trait PerNode<T: Default> {
    /// Nothing made yet.
    fn new() -> Self;
    /// The node's value.
    fn get(&self, node: NodeId) -> &T;
    /// The node's value if it was ever asked for.
    fn peek(&self, node: NodeId) -> Option<&T>;
}

/// One value per CPU that every CPU may reach: what others leave for a CPU, which its slot cannot hold as nobody reaches
/// into a live slot. The value brings its own locks and words.
pub trait CpuShared<T: Default> {
    /// Nothing made yet.
    fn new() -> Self;
    /// The CPU's value.
    fn get(&self, cpu: CpuId) -> &T;
    /// The CPU's value if it was ever asked for.
    fn peek(&self, cpu: CpuId) -> Option<&T>;
}

/// One slot per CPU: a tagged list, a bounded array, an engine's cold state `T`, and counters.
///
/// The hot operations run on the current CPU's slot and fail, without effect, when their condition does not hold or
/// while somebody holds the slot by [`PerCpu::local`].
pub trait PerCpu<P: Platform, T: Default>: Sized {
    /// A slot held exclusively.
    type Local<'a>: Local<P, T>
    where
        Self: 'a,
        T: 'a;
    /// Slots with empty hot parts and `T::default()`. `link_offset` is where objects keep their link.
    fn new(link_offset: u32) -> Self;
    /// Takes the head of the current CPU's list if its tag meets `want`, and counts `event`.
    fn pop_if(&self, want: Want, event: Event) -> Option<P::Ptr>;
    /// Puts an object on the current CPU's list if its tag meets `want` and it holds fewer than `limit`; counts `event`.
    fn push_if(&self, want: Want, limit: u32, object: P::Ptr, event: Event) -> bool;
    /// Takes the last address of the current CPU's array, and counts `event`.
    fn pop(&self, event: Event) -> Option<P::Ptr>;
    /// Adds an address to the current CPU's array unless it is full, and counts `event`.
    fn push(&self, object: P::Ptr, event: Event) -> bool;
    /// What [`PerCpu::pop`] tries first, where that is less than all of it: refusing is no answer.
    #[inline(always)]
    fn pop_first(&self, event: Event) -> Option<P::Ptr> {
        self.pop(event)
    }
    /// What [`PerCpu::push`] tries first.
    #[inline(always)]
    fn push_first(&self, object: P::Ptr, event: Event) -> bool {
        self.push(object, event)
    }
    /// The current CPU's slot, exclusively; `None` when interrupted, moved or busy.
    fn local(&self) -> Option<Self::Local<'_>>;
    /// The slot of a CPU that cannot use it now (down, or the whole world stands still); `None` when it is live.
    fn claim(&self, cpu: CpuId) -> Option<Self::Local<'_>>;
    /// From now on every slot can be claimed, live ones too: nobody else uses the cache; or no longer.
    fn close(&self, _closed: bool) {}
    /// Asks the owner of a live slot to empty it at its next slow path; [`Local::asked`] tells the owner.
    fn ask(&self, cpu: CpuId);
    /// Counts an event on the current CPU without holding the slot.
    fn count(&self, event: Event, n: u64);
    /// How often an event was counted on a CPU.
    fn counted(&self, cpu: CpuId, event: Event) -> u64;
    /// Whether a CPU's slot was ever used. A slot not used is empty and has counted nothing.
    fn used(&self, cpu: CpuId) -> bool;
}

/// A slot held exclusively. Dereferences to the engine's cold state. Dropping it lets go.
pub trait Local<P: Platform, T>: Deref<Target = T> + DerefMut {
    /// Whose slot it is.
    fn cpu(&self) -> CpuId;
    /// The tagged list.
    fn list(&self) -> HotList<P::Ptr>;
    /// Replaces the tagged list.
    fn set_list(&mut self, list: HotList<P::Ptr>);
    /// The bounded array.
    fn array(&self) -> HotArray<P::Ptr>;
    /// Replaces the bounded array.
    fn set_array(&mut self, array: HotArray<P::Ptr>);
    /// Whether somebody asked for the slot to be emptied since the last call.
    fn asked(&mut self) -> bool;
    /// Counts an event in this slot.
    fn count(&mut self, event: Event, n: u64);
}
