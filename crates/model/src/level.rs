//! The level of a machine: what is kept besides counters.
//!
//! [`Count`] keeps nothing more: every hook of [`Level`] is an empty inline function and every type of it
//! has no size, so a machine of level `count` is as small and as fast as one without levels.
//! [`Cost`](crate::Cost) keeps clocks, and charges every access.

use crate::memory::Addr;
use crate::world::State;
use slablab_platform::{CpuId, Event, NodeId, Pfn, Rank, Reclaim, Reclaimed};
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

/// A level. The functions are hooks that the machine calls where memory is touched and where calls wait. The
/// trait is sealed: [`Count`] and [`Cost`](crate::Cost) are the levels.
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

    /// Calls `f` with the state of the machine that this thread has entered.
    fn with<T>(f: impl FnOnce(&State<Self>) -> T) -> T;
    /// Runs `f` with `state` entered.
    fn enter<T>(state: &State<Self>, f: impl FnOnce() -> T) -> T;

    /// When a grace period ends that begins at `now_ns` or later. At level `count` each caller has its own.
    fn grace_period_end(state: &State<Self>, now_ns: u64) -> u64 {
        now_ns + state.spec.grace_period_ns
    }
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
    /// Bytes of a cache line.
    #[inline(always)]
    fn line_bytes(_state: &State<Self>) -> u32 {
        64
    }
    /// A free object's link.
    #[inline(always)]
    fn link(state: &State<Self>, object: Addr) -> Option<Addr> {
        state.memory.link(object)
    }
    /// Writes a free object's link.
    #[inline(always)]
    fn set_link(state: &State<Self>, object: Addr, next: Option<Addr>) {
        state.memory.set_link(object, next);
    }
    /// `bytes` bytes from a place on are touched.
    #[inline(always)]
    fn object(_state: &State<Self>, _beside: &Self::Beside, _at: Place, _bytes: u32, _access: Access) {}
    /// What lies beside `words` words of storage whose memory is on node `home`.
    fn lines(words: u32, home: u16) -> Self::Lines;
    /// Word `index` of storage is touched.
    #[inline(always)]
    fn storage(_state: &State<Self>, _lines: &Self::Lines, _index: u32, _access: Access) {}
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
    /// Now, nanoseconds.
    fn now_ns(state: &State<Self>) -> u64;
    /// Time goes to `now_ns`, never back.
    fn advance_to(state: &State<Self>, now_ns: u64);
    /// The running code goes on on CPU `to`.
    #[inline(always)]
    fn moved(_state: &State<Self>, _from: CpuId, _to: CpuId) {}
    /// Bytes of what the level keeps of a machine.
    fn bytes(_state: &State<Self>) -> usize {
        0
    }
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
    /// Whether the reclaim policy keeps a block that the running call frees.
    fn keeps_freed(_pfn: Pfn, _order: u8) -> bool {
        false
    }
}

/// Level `count`: every counter exact, no clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {}

impl Level for Count {
    const TIMED: bool = false;
    type Line = ();
    type LockLines = ();
    type Beside = ();
    type Lines = ();
    type Waiters = ();
    type Held<'a> = ();
    type Clocks = ();

    #[inline]
    fn with<T>(f: impl FnOnce(&State<Self>) -> T) -> T {
        MACHINE.with(f)
    }
    fn enter<T>(state: &State<Self>, f: impl FnOnce() -> T) -> T {
        MACHINE.set(state, f)
    }
    #[inline(always)]
    fn line() {}
    #[inline(always)]
    fn lines(_words: u32, _home: u16) {}
    #[inline(always)]
    fn lock_lines() {}
    #[inline(always)]
    fn lock<R: Rank>(_waiters: &(), _lines: ()) {}
    #[inline(always)]
    fn try_lock<R: Rank>(_waiters: &(), _lines: ()) -> Option<()> {
        Some(())
    }
    #[inline]
    fn now_ns(state: &State<Self>) -> u64 {
        state.event_ns()
    }
    #[inline]
    fn advance_to(state: &State<Self>, now_ns: u64) {
        state.set_event_ns(now_ns);
    }
}

scoped_tls::scoped_thread_local!(static MACHINE: State<Count>);
