//! The lock order, as types.
//!
//! A CPU that holds a lock may take only locks of a higher level. Worlds that check (model, loom, shuttle,
//! debug builds) keep the levels held and report the pair that breaks the order.

/// A lock's place in the order.
pub trait Rank: 'static {
    /// Locks are taken in ascending level; two locks of one level are never held together.
    const LEVEL: u8;
    /// The lock's name in reports, as the field says it.
    const NAME: &'static str;
    /// The event that counts its acquisitions.
    const EVENT: crate::Event;
}

macro_rules! ranks {
    ($($(#[$doc:meta])* $name:ident = $level:literal, $text:literal, $event:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}
        impl Rank for $name {
            const LEVEL: u8 = $level;
            const NAME: &'static str = $text;
            const EVENT: crate::Event = crate::Event::$event;
        }
    )*};
}

ranks! {
    /// SLAB's alien array: a node's objects of one other node.
    Alien = 10, "alien->lock", LockAlien;
    /// A node's list of partial slabs: SLUB's and SLQB's `list_lock`. Taken before a transition that empties
    /// a slab.
    NodeList = 20, "list_lock", LockNodeList;
    /// SLOB's only lock: all lists, the pages on them, and the free pieces in those pages.
    Heap = 25, "slob_lock", LockHeap;
    /// SLQB's `page_lock`: a list's partial pages and those pages' free lists.
    PageList = 30, "page_lock", LockPageList;
    /// SLQB's `remote_free.lock`: objects that other CPUs handed back.
    RemoteFree = 40, "remote_free.lock", LockRemoteFree;
    /// A node's barn of full and empty sheaves.
    Barn = 50, "barn.lock", LockBarn;
    /// A zone's free lists: `zone->lock`, the innermost of allocators.
    Zone = 70, "zone->lock", LockZone;
    /// The debugging state of a cache: objects in quarantine, records of their users, reports. No lock is
    /// taken under it.
    Debug = 80, "debug_lock", LockDebug;
}
