//! What an evicted page leaves behind, and what is made of it when the page comes back.
//!
//! A shadow holds the number of the oldest generation at the eviction and the page's accesses (model:
//! `min_seq << refs | refs - 1`).

use super::lists::Node;
use super::policy::{Counted, Placement, Recent, Rules};
use super::word::{GENERATIONS, TIERS, Type, accesses, restore, tier_of};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::ids::Frame;
use crate::state::State;

/// Bits of the generation's number.
const SEQ_BITS: u32 = 21;

/// A shadow of 30 bits: accesses (2), working set (1), generation (21), node (6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shadow {
    pub(crate) node: u16,
    seq: u64,
    /// Accesses less one.
    refs: u8,
    /// Until 6.13: there was more than one access. Since 6.14: the flag of the working set.
    workingset: bool,
}

impl Shadow {
    /// One as far before a generation as shadows can tell, of one access.
    pub(crate) fn long_before(node: u16, seq: u64) -> Shadow {
        Shadow { node, seq: seq.wrapping_sub(1 << (SEQ_BITS - 1)), refs: 0, workingset: false }
    }

    pub(crate) fn pack(self) -> u32 {
        let seq = (self.seq & ((1 << SEQ_BITS) - 1)) as u32;
        let node = u32::from(self.node & 63);
        u32::from(self.refs) | u32::from(self.workingset) << 2 | seq << 3 | node << (3 + SEQ_BITS)
    }

    pub(crate) fn unpack(word: u32) -> Shadow {
        Shadow {
            node: (word >> (3 + SEQ_BITS) & 63) as u16,
            seq: u64::from(word >> 3) & ((1 << SEQ_BITS) - 1),
            refs: (word & 3) as u8,
            workingset: word & 4 != 0,
        }
    }
}

/// A page is evicted. Returns its shadow (`lru_gen_eviction`).
pub(crate) fn leave(node: &mut Node, state: &State, rules: &Rules, number: u16, frame: Frame) -> Shadow {
    let (of, had) = (Type::of(state, frame), accesses(state, rules, frame));
    node.control.tier_mut(of, had.tier).evicted += 1;
    let workingset = match rules.placement {
        Placement::Workingset => state.frames.has(frame, Flags::WORKINGSET),
        Placement::Oldest | Placement::SecondOldest => had.refs > 0,
    };
    Shadow { node: number, seq: node.min_seq[of as usize], refs: had.refs.saturating_sub(1), workingset }
}

/// An evicted page came back: counts it, and restores what it was (`lru_gen_refault`;
/// docs/theory/vm.md 4.12).
pub(crate) fn come_back(node: &mut Node, state: &mut State, rules: &Rules, frame: Frame, shadow: Shadow) {
    let of = Type::of(state, frame);
    let is_recent = is_recent(rules.recent, node.min_seq[of as usize], node.max_seq, shadow.seq);
    if is_recent || rules.counted != Counted::Recent {
        state.count_by_type(frame, Counter::RefaultAnon, Counter::RefaultFile);
    }
    if !is_recent {
        return;
    }
    let by_fault = state.frames.has(frame, Flags::ACTIVE);
    if rules.counted == Counted::All || rules.counted == Counted::Faults && by_fault {
        state.count_by_type(frame, Counter::ActivateAnon, Counter::ActivateFile);
    }
    let is_new = rules.placement == Placement::Workingset;
    let (tier, restores) = if is_new {
        let tier = if shadow.workingset { TIERS - 1 } else { tier_of(shadow.refs + 1) };
        (tier, shadow.workingset)
    } else {
        let refs = shadow.refs + u8::from(shadow.workingset);
        // Since 6.1.70, pages of four accesses too: the count may have stopped short.
        let most = if rules.placement == Placement::Oldest { 4 } else { 3 };
        (tier_of(refs + 1), by_fault || refs >= most)
    };
    node.control.tier_mut(of, tier).refaulted += 1;
    if restores {
        state.count_by_type(frame, Counter::RestoreAnon, Counter::RestoreFile);
    }
    if restores || is_new {
        restore(state, rules, frame, shadow.refs, shadow.workingset || !is_new);
    }
}

/// Whether a page was evicted lately: its refault teaches the controller. `seq`: the oldest generation at its
/// eviction, without the bits that a shadow has no room for (docs/theory/vm.md 4.12).
fn is_recent(recent: Recent, oldest: u64, youngest: u64, seq: u64) -> bool {
    let mask = (1 << SEQ_BITS) - 1;
    match recent {
        Recent::Oldest => oldest & mask == seq,
        Recent::Window => (youngest & mask).abs_diff(seq) < GENERATIONS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::with_knobs;

    #[test]
    fn shadows_keep_generation_accesses_and_node() {
        for (seq, refs, workingset, node) in
            [(0, 0, false, 0), (12_345, 3, true, 63), ((1 << 21) - 1, 1, false, 5)]
        {
            let shadow = Shadow { node, seq, refs, workingset };
            let word = shadow.pack();
            assert!(word < 1 << 30, "{shadow:?}");
            assert_eq!(Shadow::unpack(word), shadow);
        }
    }

    #[test]
    fn a_refault_is_recent_by_the_generations_that_began_since() {
        // The oldest generation and the youngest one now; the oldest one at the eviction.
        for (knobs, oldest, youngest, seq, expected) in [
            ("recent=oldest", 5, 8, 5, true),
            ("recent=oldest", 6, 8, 5, false),
            ("recent=window", 6, 8, 5, true),
            ("recent=window", 6, 9, 5, false),
            ("recent=window", 5, 8, 8, true),
            // Shadows keep 21 bits of the number.
            ("recent=oldest", (1 << 21) + 5, (1 << 21) + 8, 5, true),
            ("recent=window", (1 << 21) + 5, (1 << 21) + 8, 5, true),
        ] {
            let rules = with_knobs::<Rules>("6.1", knobs);
            let is = is_recent(rules.recent, oldest, youngest, seq);
            assert_eq!(is, expected, "{knobs} {oldest} to {youngest}, {seq}");
        }
    }
}
