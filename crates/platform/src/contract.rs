//! The contract: [`Platform`], the one parameter of every engine, and the traits it is made of.
//!
//! A world is a type with associated functions, not a value. Where a world has state (a modelled machine),
//! the state is per thread and entered for a scope. docs/porting.md says the same in prose, for a reader who
//! ports.
//!
//! Two rules keep the place for worlds that suspend a running call (calls as stackful coroutines) and that
//! charge time where memory is touched:
//!
//! - A call may be suspended in [`Lock::lock`] and in [`Hooks::reclaim`], and nowhere else. An engine keeps
//!   the state of a running call on the stack; a world keeps what belongs to a call (the CPU, the context,
//!   the ranks of held locks) together, so that it can switch it with the call.
//! - Engines touch objects through [`Memory`], descriptors through [`Frames::with_frame`], and shared data
//!   through [`Word`](crate::Word), [`Field`](crate::Field) and [`Lock`]: each access is one call that a
//!   world can charge.

use crate::{CpuShared, Frames, Hooks, Lock, Memory, PerCpu, PerNode, Rank, Time, Topology};

/// A world: where memory, CPUs, locks and time come from. The five traits say what a world does; the types
/// here say what its CPUs share.
pub trait Platform: Topology + Frames + Memory + Time + Hooks {
    /// The world that owns the page frames: `Self`, or the inner world for a wrapper that changes no page
    /// frames. Engines over the wrapper and engines over the inner world then share one page allocator.
    type Ground: Platform<Ptr = Self::Ptr>;
    /// A lock around a value, with a place in the lock order.
    type Lock<R: Rank, T>: Lock<T>;
    /// One slot per CPU.
    type PerCpu<T: Default>: PerCpu<Self::Ptr, T>;
    /// One value per node, made when first asked for.
    type PerNode<T: Default>: PerNode<T>;
    /// One value per CPU that every CPU may reach, made when first asked for.
    type CpuShared<T: Default>: CpuShared<T>;
}

/// A slot of world `P` with the cold state `T`, held: what [`PerCpu::local`] and [`PerCpu::claim`] give.
pub type SlotOf<'a, P, T> = <<P as Platform>::PerCpu<T> as PerCpu<<P as Frames>::Ptr, T>>::Local<'a>;
