//! The policy's word of a frame: its generation, and its accesses beyond the first ones.

use super::policy::{Placement, Rules};
use crate::frames::Flags;
use crate::ids::Frame;
use crate::state::State;

/// Generations that there can be (model).
pub const GENERATIONS: u64 = 4;
/// Generations that stay: eviction takes no page from the youngest two (model).
pub const YOUNG: u64 = 2;
/// Tiers of a generation (model: 4).
pub const TIERS: usize = 4;
/// Accesses that the word counts (from memory: two bits).
const REFS: u8 = 3;

/// The two types of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Anonymous and tmpfs pages: they go to swap.
    Anon,
    /// Pages of files.
    File,
}

impl Type {
    /// Both.
    pub const ALL: [Type; 2] = [Type::Anon, Type::File];

    /// The other one.
    pub fn other(self) -> Type {
        if self == Type::Anon { Type::File } else { Type::Anon }
    }

    /// The type of a frame's page.
    pub fn of(state: &State, frame: Frame) -> Type {
        if state.frames.has(frame, Flags::SWAPBACKED) { Type::Anon } else { Type::File }
    }
}

/// A frame's word: bits 0 to 2 hold the generation plus one, bits 3 and 4 the accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its generation modulo four; `None` while it is in no list.
    pub(crate) generation: Option<u8>,
    /// Accesses by system calls after those that flags hold.
    pub(crate) refs: u8,
}

impl Word {
    pub(crate) fn of(state: &State, frame: Frame) -> Word {
        let word = state.frames.policy(frame);
        Word { generation: ((word & 7) as u8).checked_sub(1), refs: (word >> 3 & 3) as u8 }
    }

    pub(crate) fn store(self, state: &mut State, frame: Frame) {
        let generation = self.generation.map_or(0, |generation| u32::from(generation) + 1);
        state.frames.set_policy(frame, generation | u32::from(self.refs) << 3);
    }
}

/// What a page's accesses by system calls amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accesses {
    /// How many, less one in 6.1: 0 to 4.
    pub(crate) refs: u8,
    /// Its tier.
    pub(crate) tier: usize,
    /// There were as many as can be counted: it moves to the next generation when its own is evicted.
    pub(crate) is_full: bool,
}

/// The accesses that a page's flags and word tell (from memory). Until 6.13 the flag of the working set is
/// the second access; since 6.14 it is the fifth, or says that the page came back (docs/theory/vm.md 4.3).
pub(crate) fn accesses(state: &State, rules: &Rules, frame: Frame) -> Accesses {
    let flags = state.frames.flags(frame);
    let (counted, workingset) = (Word::of(state, frame).refs, flags.has(Flags::WORKINGSET));
    if rules.placement == Placement::Workingset {
        let refs = if flags.has(Flags::REFERENCED) { counted + 1 } else { 0 };
        let tier = if workingset { TIERS - 1 } else { tier_of(refs) };
        return Accesses { refs, tier, is_full: workingset && refs == REFS + 1 };
    }
    let refs = counted + u8::from(workingset);
    let is_full = refs == REFS + 1 && rules.placement == Placement::SecondOldest;
    Accesses { refs, tier: tier_of(refs + 1), is_full }
}

/// The tier of a number of accesses: its logarithm, rounded up (model; docs/theory/vm.md 4.3).
pub(crate) fn tier_of(accesses: u8) -> usize {
    accesses.max(1).next_power_of_two().trailing_zeros() as usize
}

/// Forgets a page's accesses. The mark of the working set goes with them until 6.13.
pub(crate) fn forget(state: &mut State, rules: &Rules, frame: Frame) {
    let keeps = rules.placement == Placement::Workingset;
    let flags = if keeps { Flags::REFERENCED } else { Flags::REFERENCED | Flags::WORKINGSET };
    state.frames.clear(frame, flags);
    Word { refs: 0, ..Word::of(state, frame) }.store(state, frame);
}

/// A system call accesses a page (from memory; docs/theory/vm.md 4.3).
pub(crate) fn count_access(state: &mut State, rules: &Rules, frame: Frame) {
    let flags = state.frames.flags(frame);
    let word = Word::of(state, frame);
    let is_new = rules.placement == Placement::Workingset;
    if flags.has(Flags::UNEVICTABLE) {
    } else if !flags.has(Flags::REFERENCED) {
        state.frames.set(frame, Flags::REFERENCED);
        if is_new {
            Word { refs: 0, ..word }.store(state, frame);
        }
    } else if !is_new && !flags.has(Flags::WORKINGSET) || word.refs == REFS {
        state.frames.set(frame, Flags::WORKINGSET);
    } else {
        Word { refs: word.refs + 1, ..word }.store(state, frame);
    }
}

/// The accesses that a refault restores: those at the eviction.
pub(crate) fn restore(state: &mut State, rules: &Rules, frame: Frame, refs: u8, workingset: bool) {
    if rules.placement == Placement::Workingset && !workingset {
        Word { refs, ..Word::of(state, frame) }.store(state, frame);
        return;
    }
    state.frames.set(frame, Flags::WORKINGSET);
    if rules.placement == Placement::SecondOldest {
        Word { refs: REFS, ..Word::of(state, frame) }.store(state, frame);
    }
}
