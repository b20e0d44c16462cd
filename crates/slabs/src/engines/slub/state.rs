//! Where a slab goes when a free or its CPU's leaving changes its word: the two tables of "States" in
//! docs/engines/slub.md.
//!
//! Nothing is read, locked or written here: words and facts go in, a [`Destination`] comes out. The releases
//! differ here and in [`SlubPolicy`] only; [`super::free`] carries the decision out.

use super::{EmptySlab, SlabUpdate, SlubPolicy};
use crate::slab::SlabWord;
use slablab_platform::Event;

/// Where a slab is after its word has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// With the CPU that froze it: its CPU slab, or a slab of its chain until 6.7.
    Frozen,
    /// The front of the freeing CPU's chain of partial slabs.
    CpuChain,
    /// Where it was: on its node's list, or since 6.8 on some CPU's chain.
    Stays,
    /// The head of its node's list.
    NodeHead,
    /// The tail of its node's list.
    NodeTail,
    /// On no list: it has no free object.
    Unlisted,
    /// Back to the page allocator.
    Pages,
}

/// What a free knows besides the slab's word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// CPUs keep partial slabs, and the freeing CPU's slot is held.
    pub(super) has_chain: bool,
    /// The slab is on its node's list, whose lock is held.
    pub(super) listed: bool,
    /// `min_partial` slabs or more are on that list.
    pub(super) at_limit: bool,
}

/// Whether a free takes `list_lock` before it changes the word: whoever finds the slab empty or partial finds
/// it listed.
#[inline]
pub(super) fn needs_list(before: SlabWord, after: SlabWord, has_chain: bool) -> bool {
    let was_full = before.head.is_none();
    let stays = before.frozen || was_full && has_chain;
    !stays && (was_full || after.inuse == 0)
}

/// Where a free leaves a slab.
pub(super) fn after_free(
    policy: &SlubPolicy,
    before: SlabWord,
    after: SlabWord,
    facts: Facts,
) -> Destination {
    let was_full = before.head.is_none();
    let goes = after.inuse == 0 && (policy.empty == EmptySlab::AtOnce || facts.at_limit);
    if before.frozen {
        Destination::Frozen
    } else if was_full && facts.has_chain {
        Destination::CpuChain
    } else if goes && (was_full || facts.listed) {
        Destination::Pages
    } else if was_full {
        Destination::NodeTail
    } else {
        Destination::Stays
    }
}

/// Where a slab goes that its CPU gives up, and what is counted. `had_list`: the CPU had objects of it left.
/// `at_limit` as in [`Facts`].
pub(super) fn after_leaving(
    policy: &SlubPolicy,
    before: SlabWord,
    after: SlabWord,
    had_list: bool,
    at_limit: bool,
) -> (Destination, [Option<Event>; 2]) {
    let (empty, remote) = (after.inuse == 0, before.head.is_some());
    if after.head.is_none() {
        return (Destination::Unlisted, [Some(Event::DeactivateFull), None]);
    }
    if empty && at_limit {
        let remote = (policy.update == SlabUpdate::Word && remote).then_some(Event::DeactivateRemoteFrees);
        return (Destination::Pages, [remote, Some(Event::DeactivateEmpty)]);
    }
    match policy.update {
        SlabUpdate::BitLock if empty => (Destination::NodeTail, [Some(Event::DeactivateEmpty), None]),
        // The objects of the CPU are cache hot, so the slab goes first.
        SlabUpdate::BitLock if had_list => (Destination::NodeHead, [Some(Event::DeactivateToHead), None]),
        SlabUpdate::BitLock => (Destination::NodeTail, [Some(Event::DeactivateToTail), None]),
        SlabUpdate::Word if remote => {
            (Destination::NodeTail, [Some(Event::DeactivateRemoteFrees), Some(Event::DeactivateToTail)])
        }
        SlabUpdate::Word => (Destination::NodeHead, [Some(Event::DeactivateToHead), None]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::Policy;

    const PAGE: &str = include_str!("../../../docs/slub.md");
    /// Objects in the slabs of these tests.
    const OBJECTS: u16 = 4;

    /// The cells of the rows of the page's table that has this head.
    fn rows(head: &'static str) -> impl Iterator<Item = [&'static str; 7]> {
        let table = PAGE.lines().skip_while(move |line| *line != head).skip(2);
        table.take_while(|line| line.starts_with('|')).map(|line| {
            let mut cells = [""; 7];
            for (cell, text) in cells.iter_mut().zip(line.trim_matches('|').split('|')) {
                *cell = text.trim();
            }
            cells
        })
    }

    fn destination(cell: &str) -> Destination {
        match cell {
            "stays its CPU's" => Destination::Frozen,
            "the CPU's chain" => Destination::CpuChain,
            "stays where it is" => Destination::Stays,
            "head of its node's list" => Destination::NodeHead,
            "tail of its node's list" => Destination::NodeTail,
            "no list" => Destination::Unlisted,
            "the page allocator" => Destination::Pages,
            _ => panic!("{cell:?} is no destination"),
        }
    }

    /// Whether a row is about this case. `any` in a cell fits all.
    fn fits<const N: usize>(row: [&str; 7], case: [&str; N]) -> bool {
        row.iter().zip(case).all(|(cell, fact)| *cell == "any" || *cell == fact)
    }

    fn releases() -> [(&'static str, &'static SlubPolicy); 2] {
        let of = |release: &str| {
            SlubPolicy::PRESETS
                .iter()
                .find(|preset| (preset.update == SlabUpdate::BitLock) == (release == "2.6"))
        };
        ["2.6", "3.2 on"].map(|release| (release, of(release).unwrap()))
    }

    fn yes(fact: bool) -> &'static str {
        if fact { "yes" } else { "no" }
    }

    /// The first row that fits says where the slab goes, and each row is the first for some case.
    #[test]
    fn a_free_leaves_slabs_where_the_page_says() {
        const HEAD: &str = "| release | before | chain | all free | listed | at limit | goes to |";
        let mut used = 0u32;
        for (release, policy) in releases() {
            for bits in 0..16 {
                let fact = |bit: u32| bits >> bit & 1 == 1;
                let (empty, facts) =
                    (fact(0), Facts { has_chain: fact(1), listed: fact(2), at_limit: fact(3) });
                for before in ["frozen", "full", "partial"] {
                    let full = SlabWord::all_out(OBJECTS);
                    // The free brings all objects that are out, or one of several.
                    let word = match (before, empty) {
                        ("full", _) => full,
                        (_, true) => SlabWord { inuse: 1, head: Some(0), ..full },
                        (_, false) => SlabWord { inuse: 3, head: Some(0), ..full },
                    };
                    let word = if before == "frozen" { word.frozen() } else { word };
                    let count = if empty { word.inuse as u32 } else { 1 };
                    let after = word.pushed(8, count).expect("so many are out");
                    let case = [
                        release,
                        before,
                        yes(facts.has_chain),
                        yes(empty),
                        yes(facts.listed),
                        yes(facts.at_limit),
                    ];
                    let (index, row) =
                        rows(HEAD).enumerate().find(|(_, row)| fits(*row, case)).expect("some row fits");
                    used |= 1 << index;
                    let to = after_free(policy, word, after, facts);
                    assert_eq!(to, destination(row[6]), "{case:?}, row {row:?}");
                    let locked = matches!(to, Destination::NodeTail | Destination::Pages);
                    let needed = needs_list(word, after, facts.has_chain);
                    assert!(needed || !locked, "{case:?}: {to:?} without list_lock");
                }
            }
        }
        assert_eq!(used, (1 << rows(HEAD).count()) - 1, "rows that no case comes to");
    }

    #[test]
    fn a_slab_given_up_goes_where_the_page_says() {
        const HEAD: &str = "| release | CPU's list | own list | all free | at limit | goes to | counted |";
        let mut used = 0u32;
        for (release, policy) in releases() {
            for bits in 0..16 {
                let fact = |bit: u32| bits >> bit & 1 == 1;
                let (had_list, remote, empty, at_limit) = (fact(0), fact(1), fact(2), fact(3));
                if empty && !had_list && !remote {
                    continue;
                }
                let full = SlabWord::all_out(OBJECTS).frozen();
                let own = if empty && !had_list { OBJECTS } else { 1 };
                let before = if remote { full.pushed(0, own.into()).expect("all are out") } else { full };
                let count = if empty { before.inuse as u32 } else { 1 };
                let after = if had_list { before.pushed(8, count).expect("so many are out") } else { before }
                    .thawed();
                let some = |fact: bool| if fact { "some" } else { "none" };
                let case = [release, some(had_list), some(remote), yes(empty), yes(at_limit)];
                let (index, row) =
                    rows(HEAD).enumerate().find(|(_, row)| fits(*row, case)).expect("some row fits");
                used |= 1 << index;
                let (to, events) = after_leaving(policy, before, after, had_list, at_limit);
                assert_eq!(to, destination(row[5]), "{case:?}, row {row:?}");
                let counted = row[6].split(", ").map(|name| name.trim_matches('`'));
                assert!(
                    counted.eq(events.iter().flatten().map(|event| event.name())),
                    "{case:?}: {events:?}"
                );
            }
        }
        assert_eq!(used, (1 << rows(HEAD).count()) - 1, "rows that no case comes to");
    }
}
