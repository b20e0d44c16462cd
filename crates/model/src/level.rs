//! The level of a machine: what is kept besides counters.
//!
//! [`Count`](crate::Count) keeps nothing more: every hook of [`Level`] is an empty inline function and every
//! type of it has no size, so a machine of level `count` is as small and as fast as one without levels.
//! [`Cost`](crate::Cost) keeps clocks, and charges every access.

use slablab_platform::{Charged, Event, NodeId, Pfn, Rank, Reclaim, Reclaimed, Site, Step, Touch};
use std::fmt::Debug;

/// How memory is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The line is read.
    Read,
    /// The line is written.
    Write,
    /// The line is exchanged by one locked instruction.
    Exchange,
    /// The bytes become zeros, by the instructions that the machine has for that.
    Zero,
}

/// Operations of a slot and of locks that have a price of their own, by the engine's release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// `pop_if` that found an object.
    ListPop,
    /// `push_if` that found room.
    ListPush,
    /// `pop` that found an object.
    ArrayPop,
    /// `push` that found room.
    ArrayPush,
    /// A slot is held: the way into a slow path.
    Hold,
}

/// An address, and the node of its memory.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The address.
    pub address: u64,
    /// The node.
    pub home: u16,
}

/// A level: what it keeps, and the hooks that words, slots and locks call where memory is touched and where
/// calls wait. [`Entered`](crate::Entered) has the hooks that take a machine's state. The trait is sealed:
/// [`Count`](crate::Count) and [`Cost`](crate::Cost) are the levels.
pub trait Level: Copy + Eq + Debug + Sized + 'static {
    /// Whether memory that is touched is charged.
    const TIMED: bool;
    /// What a word knows of its cache line.
    type Line: Copy + Debug;
    /// What a lock knows of its word's line and of the line of what it protects.
    type LockLines: Copy + Debug;
    /// What lies beside each link.
    type Beside: Default + Debug;
    /// What lies beside the words of an object that is storage.
    type Lines: Debug;
    /// What a lock keeps of the calls that wait for it.
    type Waiters: Default + Debug;
    /// What a holder keeps to give a lock back.
    type Held<'a>: Copy;
    /// What the machine keeps.
    type Clocks: Debug;

    /// The line of a word that is made now.
    fn line() -> Self::Line;
    /// Makes values whose words lie together, on lines of their own.
    #[inline(always)]
    fn together<T>(_home: Option<NodeId>, make: impl FnOnce() -> T) -> T {
        make()
    }
    /// A word of a line is touched.
    #[inline(always)]
    fn word(_line: Self::Line, _access: Access) {}
    /// What lies beside `words` words of storage whose memory is on node `home`.
    fn lines(words: u32, home: u16) -> Self::Lines;
    /// An operation with a price of its own was done on a slot whose words are in a line.
    #[inline(always)]
    fn path(_path: Path, _line: Self::Line) {}
    /// An engine counted an event.
    #[inline(always)]
    fn counted(_event: Event) {}
    /// The lines of a lock that is made now.
    fn lock_lines() -> Self::LockLines;
    /// The running call takes the lock when its turn comes; returns then. A level with clocks checks and
    /// counts the rank, too.
    fn lock<R: Rank>(waiters: &Self::Waiters, lines: Self::LockLines) -> Self::Held<'_>;
    /// Takes the lock when the running call's turn comes, if that needs no waiting.
    fn try_lock<R: Rank>(waiters: &Self::Waiters, lines: Self::LockLines) -> Option<Self::Held<'_>>;
    /// The running call gives the lock and its rank back.
    #[inline(always)]
    fn unlock<R: Rank>(_held: Self::Held<'_>) {}
    /// The reclaim policy.
    fn reclaim(_ask: Reclaim) -> Reclaimed {
        // The policy "none": nothing is ever freed for a page allocation.
        Reclaimed::NOTHING
    }
    /// A block of this order is requested.
    #[inline(always)]
    fn requested(_order: u8) {}
    /// The reclaim policy's clean pages.
    fn clean_frames(_node: NodeId, _zone: u8) -> u64 {
        0
    }
    /// [`slablab_platform::Hooks::touched`].
    #[inline(always)]
    fn touched(_site: Site, _bytes: u32, _touch: Touch) -> Charged {
        Charged::default()
    }
    /// [`slablab_platform::Hooks::ran`].
    #[inline(always)]
    fn ran(_step: Step, _times: u64) -> Charged {
        Charged::default()
    }
    /// [`slablab_platform::Hooks::made_at`].
    #[inline(always)]
    fn made_at<T>(_site: Site, make: impl FnOnce() -> T) -> T {
        make()
    }
    /// [`slablab_platform::Hooks::aside`].
    #[inline(always)]
    fn aside<T>(f: impl FnOnce() -> T) -> T {
        f()
    }
    /// [`slablab_platform::Hooks::walk`].
    #[inline(always)]
    fn walk<T>(f: impl FnOnce() -> T) -> T {
        f()
    }
    /// [`slablab_platform::Hooks::visits`].
    #[inline(always)]
    fn visits() {}
    /// Whether the reclaim policy keeps a block that the running call frees.
    fn keeps_freed(_pfn: Pfn, _order: u8) -> bool {
        false
    }
}
