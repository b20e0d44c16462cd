//! What is counted.
//!
//! One list of events serves counters, traces, table columns and docs. Names of SLUB's and SLQB's own
//! statistics are the kernel's (`/sys/kernel/slab/<cache>/<name>`; docs/theory/slub.md 11,
//! docs/theory/slqb.md 7); the others are ours and say so.

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// Something an allocator did that is worth a counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Event { $($(#[$doc])* $name,)* }
        impl Event {
            /// Every event, in declaration order; an event's value is its index.
            pub const ALL: &'static [Event] = &[$(Event::$name,)*];
            /// How many events there are.
            pub const COUNT: usize = Event::ALL.len();
            /// Whether no kernel counts the event, and the model with clocks alone needs it: answers of
            /// `replay` leave it out.
            pub const fn is_of_model(self) -> bool {
                use Event::*;
                matches!(self, SlabNodeTry | DetachOne | DetachTwo | DetachThree | DetachMore)
            }
            /// The name in files, columns and docs.
            pub const fn name(self) -> &'static str {
                match self { $(Event::$name => $text,)* }
            }
        }
    };
}

events! {
    /// Served from the CPU's free list (SLUB), queue (SLQB) or sheaf.
    AllocFastpath = "alloc_fastpath";
    /// Not served there.
    AllocSlowpath = "alloc_slowpath";
    /// Freed to the CPU slab (SLUB), queue (SLQB) or sheaf.
    FreeFastpath = "free_fastpath";
    /// Not freed there.
    FreeSlowpath = "free_slowpath";
    /// A slow free into a slab that some CPU owns.
    FreeFrozen = "free_frozen";
    /// A free put a full slab on its node's list.
    FreeAddPartial = "free_add_partial";
    /// A free took an emptied slab off its node's list.
    FreeRemovePartial = "free_remove_partial";
    /// The CPU slab came from a node's list.
    AllocFromPartial = "alloc_from_partial";
    /// A slab came from the page allocator.
    AllocSlab = "alloc_slab";
    /// The CPU slab's own free list was taken over.
    AllocRefill = "alloc_refill";
    /// The CPU slab was dropped because the caller wanted another node.
    AllocNodeMismatch = "alloc_node_mismatch";
    /// A slab went back to the page allocator.
    FreeSlab = "free_slab";
    /// A CPU slab was flushed: shrink, hotplug, node switch.
    CpuslabFlush = "cpuslab_flush";
    /// A CPU slab was given up full.
    DeactivateFull = "deactivate_full";
    /// A CPU slab was given up empty.
    DeactivateEmpty = "deactivate_empty";
    /// A CPU slab went to the head of its node's list.
    DeactivateToHead = "deactivate_to_head";
    /// A CPU slab went to the tail of its node's list.
    DeactivateToTail = "deactivate_to_tail";
    /// A CPU slab given up held objects that others had freed.
    DeactivateRemoteFrees = "deactivate_remote_frees";
    /// A CPU slab ran out and was given up in the same step.
    DeactivateBypass = "deactivate_bypass";
    /// A slab was got at its smallest order.
    OrderFallback = "order_fallback";
    /// A retry of the slab word's compare-exchange.
    CmpxchgDoubleFail = "cmpxchg_double_fail";
    /// A retry of the per-CPU compare-exchange.
    CmpxchgDoubleCpuFail = "cmpxchg_double_cpu_fail";
    /// The CPU slab came from the CPU's partial list.
    CpuPartialAlloc = "cpu_partial_alloc";
    /// A free put a full slab on the CPU's partial list.
    CpuPartialFree = "cpu_partial_free";
    /// A slab came from the node's list to the CPU's partial list.
    CpuPartialNode = "cpu_partial_node";
    /// The CPU's partial list overflowed and was moved to the nodes.
    CpuPartialDrain = "cpu_partial_drain";

    /// Sheaves: objects flushed from a sheaf to slabs.
    SheafFlush = "sheaf_flush";
    /// Sheaves: objects put into a sheaf from slabs.
    SheafRefill = "sheaf_refill";
    /// Sheaves: a sheaf was allocated.
    SheafAlloc = "sheaf_alloc";
    /// Sheaves: a sheaf was freed.
    SheafFree = "sheaf_free";
    /// Sheaves: a full sheaf came from the barn.
    BarnGet = "barn_get";
    /// Sheaves: the barn had no full sheaf.
    BarnGetFail = "barn_get_fail";
    /// Sheaves: a full sheaf went to the barn.
    BarnPut = "barn_put";
    /// Sheaves: the barn was full.
    BarnPutFail = "barn_put_fail";
    /// Sheaves: an object waits for its readers in a sheaf.
    FreeRcuSheaf = "free_rcu_sheaf";
    /// Sheaves: no sheaf was there for an object that waits for its readers.
    FreeRcuSheafFail = "free_rcu_sheaf_fail";
    /// Sheaves: a sheaf was lent that a CPU or a barn had.
    SheafPrefillFast = "sheaf_prefill_fast";
    /// Sheaves: a sheaf was made to be lent.
    SheafPrefillSlow = "sheaf_prefill_slow";
    /// Sheaves: a sheaf was made to be lent that is larger than the cache's.
    SheafPrefillOversize = "sheaf_prefill_oversize";
    /// Sheaves: a lent sheaf became the spare.
    SheafReturnFast = "sheaf_return_fast";
    /// Sheaves: a lent sheaf went to the barn or was flushed.
    SheafReturnSlow = "sheaf_return_slow";
    /// Sheaves: a refill took one slab off a node's list.
    DetachOne = "detach_1";
    /// Sheaves: a refill took two slabs off a node's list, under one lock.
    DetachTwo = "detach_2";
    /// Sheaves: likewise three.
    DetachThree = "detach_3";
    /// Sheaves: likewise four or more.
    DetachMore = "detach_4_or_more";

    /// SLQB: an object came out of a queue, a page or a new page.
    SlqbAlloc = "alloc";
    /// SLQB: one object came from a partial page.
    SlqbAllocSlabFill = "alloc_slab_fill";
    /// SLQB: a page was allocated.
    SlqbAllocSlabNew = "alloc_slab_new";
    /// SLQB: an object went to the own queue.
    SlqbFree = "free";
    /// SLQB: an object of another node went to the remote list.
    SlqbFreeRemote = "free_remote";
    /// SLQB: a batch was flushed from a queue.
    SlqbFlushFreeList = "flush_free_list";
    /// SLQB: objects in those batches.
    SlqbFlushFreeListObjects = "flush_free_list_objects";
    /// SLQB: objects in those batches that belong to another list.
    SlqbFlushFreeListRemote = "flush_free_list_remote";
    /// SLQB: a flush made a full page partial.
    SlqbFlushSlabPartial = "flush_slab_partial";
    /// SLQB: a flush emptied a page.
    SlqbFlushSlabFree = "flush_slab_free";
    /// SLQB: the remote list was handed over.
    SlqbFlushRfreeList = "flush_rfree_list";
    /// SLQB: objects handed over.
    SlqbFlushRfreeListObjects = "flush_rfree_list_objects";
    /// SLQB: objects others handed back were claimed.
    SlqbClaimRemoteList = "claim_remote_list";
    /// SLQB: objects claimed.
    SlqbClaimRemoteListObjects = "claim_remote_list_objects";

    /// SLAB: an object came from the CPU's array (`cpustat` of /proc/slabinfo).
    SlabAllocHit = "allochit";
    /// SLAB: the CPU's array was empty.
    SlabAllocMiss = "allocmiss";
    /// SLAB: an object went to the CPU's array.
    SlabFreeHit = "freehit";
    /// SLAB: the CPU's array was full.
    SlabFreeMiss = "freemiss";
    /// SLAB: an object came from a node's slabs, past the arrays (`globalstat`).
    SlabNodeAlloc = "node_allocs";
    /// SLAB: an object of another node's memory was freed.
    SlabNodeFree = "node_frees";
    /// SLAB: the array for another node's objects was full.
    SlabNodeOverflow = "node_overflow";
    /// SLAB: a slab was made.
    SlabGrown = "grown";
    /// SLAB: a slab was given back by the reaper.
    SlabReaped = "reaped";
    /// Ours: SLAB tried to make a slab.
    SlabGrowTry = "grow_tries";
    /// Ours: SLAB looked for an object on one node, past the arrays.
    SlabNodeTry = "node_tries";
    /// Ours: SLAB looked for an object on other nodes.
    SlabFallback = "fallback_alloc";
    /// SLOB, ours: pages looked at in a search of a list.
    SlobPagesWalked = "slob_pages_walked";
    /// SLOB, ours: free blocks looked at: to find room, and to find an object's place among them.
    SlobBlocksWalked = "slob_blocks_walked";

    /// Ours: a CPU slot refused; the slotless path served.
    Slotless = "slotless";
    /// Ours: freed by a CPU other than the one that allocated. Counted by the replay, which knows both.
    FreeOtherCpu = "free_other_cpu";
    /// Ours: freed by a CPU whose memory node is not the slab's.
    FreeOtherNode = "free_other_node";

    /// Ours: `list_lock` taken.
    LockNodeList = "lock_node_list";
    /// Ours: the lock of an array for another node's objects taken.
    LockAlien = "lock_alien";
    /// Ours: `page_lock` taken.
    LockPageList = "lock_page_list";
    /// Ours: `remote_free.lock` taken.
    LockRemoteFree = "lock_remote_free";
    /// Ours: a barn's lock taken.
    LockBarn = "lock_barn";
    /// Ours: the per-slab lock of 2.6 taken.
    LockSlab = "lock_slab";
    /// Ours: SLOB's lock taken.
    LockHeap = "lock_heap";
    /// Ours: the lock of a debugged cache's quarantine and reports taken.
    LockDebug = "lock_debug";
    /// Ours: `zone->lock` taken.
    LockZone = "lock_zone";

    /// Ours: a freed object went into quarantine.
    QuarantineHold = "quarantine_hold";
    /// Ours: an object left the quarantine; the engine counts a free.
    QuarantineRelease = "quarantine_release";
    /// Ours: the engine was asked a second time, after the quarantine was emptied for it.
    QuarantineFlush = "quarantine_flush";

    /// Ours: pages came from a per-CPU page list.
    PcpAlloc = "pcp_alloc";
    /// Ours: a per-CPU page list was refilled from the buddy.
    PcpRefill = "pcp_refill";
    /// Ours: pages went to a per-CPU page list.
    PcpFree = "pcp_free";
    /// Ours: a per-CPU page list overflowed to the buddy.
    PcpDrain = "pcp_drain";
    /// Ours: a block was split.
    BuddySplit = "buddy_split";
    /// Ours: two blocks were merged.
    BuddyMerge = "buddy_merge";
    /// Ours: a block of another migrate type was used (`mm_page_alloc_extfrag`).
    BuddySteal = "buddy_steal";
    /// Ours: a request was refused at the low watermark.
    WatermarkLow = "watermark_low";
    /// Ours: kswapd was woken.
    KswapdWake = "kswapd_wake";
    /// Ours: direct reclaim ran.
    DirectReclaim = "direct_reclaim";
    /// Ours: a page allocation failed.
    PageAllocFail = "page_alloc_fail";
}
