//! Turns: which caches are asked to shrink, when, and what each gives back.

use super::KEEP_BYTES;
use slablab_slabs::Idle;

/// What caches may keep in a slot beside an eighth of what the process needs, in bytes: more than the main
/// sheaves of all classes when they have grown, 3.1 MiB.
const SLOT_BYTES: u64 = 4 << 20;
/// How often the next cache is asked to shrink: all of them in two thirds of a second.
pub(in crate::shared) const TURN_EVERY_NS: u64 = 9_000_000;
/// Most turns that are due after a time without slow paths: all caches once.
const TURNS_MOST: u64 = crate::classes::COUNT as u64;

/// Why turns are due. Neither: for idleness, one every [`TURN_EVERY_NS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::shared) struct Why {
    /// The process grew.
    pub(in crate::shared) grew: bool,
    /// There was a pause, or the process uses much less than before.
    pub(in crate::shared) paused: bool,
}

impl Why {
    /// What a cache gives back in such a turn.
    pub(in crate::shared) fn idle(self) -> Idle {
        if self == Why::default() { Idle::Since } else { Idle::All }
    }

    /// Whether the frames that caches free in such a turn stay. A growing process allocates them again: given
    /// back, each would be a page fault.
    pub(in crate::shared) fn frames_stay(self) -> bool {
        self.grew
    }
}

/// The turns that are due: one word that threads race on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::shared) struct Due {
    pub(in crate::shared) turns: u32,
    pub(in crate::shared) why: Why,
}

impl Due {
    /// All caches take a turn at once, because the process grew: the objects that they keep for later may be
    /// the memory that is short now.
    pub(in crate::shared) const GROWN: Due =
        Due { turns: TURNS_MOST as u32, why: Why { grew: true, paused: false } };
    /// All caches take a turn at once, because the process uses much less than before.
    pub(in crate::shared) const FELL: Due =
        Due { turns: TURNS_MOST as u32, why: Why { grew: false, paused: true } };
    const GREW_BIT: u64 = 1 << 32;
    const PAUSED_BIT: u64 = 1 << 33;

    pub(in crate::shared) const fn pack(self) -> u64 {
        let grew = if self.why.grew { Self::GREW_BIT } else { 0 };
        let paused = if self.why.paused { Self::PAUSED_BIT } else { 0 };
        self.turns as u64 | grew | paused
    }

    pub(in crate::shared) fn unpack(word: u64) -> Due {
        let has = |bit: u64| word & bit != 0;
        Due { turns: word as u32, why: Why { grew: has(Self::GREW_BIT), paused: has(Self::PAUSED_BIT) } }
    }

    fn more(self, turns: u64, why: Why) -> Due {
        Due { turns: (u64::from(self.turns) + turns).min(TURNS_MOST) as u32, why }
    }

    /// After a look at the clock, by which `turns` more are due. If the process grew before a pause, and its
    /// turns were not all taken: it does not grow now.
    pub(in crate::shared) fn after_look(self, turns: u64) -> Due {
        let paused = Why { grew: false, paused: true };
        self.more(turns, if turns >= TURNS_MOST { paused } else { self.why })
    }

    /// After a thread took one. `None` if none is due.
    pub(in crate::shared) fn after_one(self) -> Option<Due> {
        match self.turns {
            0 => None,
            1 => Some(Due::default()),
            turns => Some(Due { turns: turns - 1, ..self }),
        }
    }

    /// After a turn that was due for a reason was left unfinished.
    pub(in crate::shared) fn after_unfinished(self, why: Why) -> Due {
        let both = Why { grew: self.why.grew || why.grew, paused: self.why.paused || why.paused };
        self.more(1, both)
    }
}

/// What a process holds, in frames.
#[derive(Clone, Copy, Debug)]
pub(in crate::shared) struct Held {
    /// Frames in use.
    pub(in crate::shared) used: u64,
    /// Frames in use or resident.
    pub(in crate::shared) held: u64,
    /// The least that was held since caches last took their turns for growth.
    pub(in crate::shared) least: u64,
    /// What the process is known to need.
    pub(in crate::shared) needed: u64,
    /// Slots that were ever used.
    pub(in crate::shared) slots: u64,
    /// What is needed is not known, while turns for growth are due.
    pub(in crate::shared) grows: bool,
}

/// Whether the process has grown: what it holds, by an eighth and at least [`KEEP_BYTES`], over the least; or
/// what is in use, by an eighth and [`SLOT_BYTES`] a slot, over what it is known to need.
///
/// By the first rule alone, each growth is counted from the one before, so that a process whose sizes change
/// grows without a bound. The second one has room for what caches fill again at once.
pub(in crate::shared) fn has_grown(of: &Held, page_shift: u32) -> bool {
    let holds_more = of.held - of.least > (of.least / 8).max(KEEP_BYTES >> page_shift);
    let of_slots = of.slots * (SLOT_BYTES >> page_shift);
    let uses_more = of.used > of.needed + of.needed / 8 + of_slots && !of.grows;
    holds_more || uses_more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::decide::tables::{SHIFT, check, check_numbers, frames, texts};

    fn reason(why: Why) -> &'static str {
        match (why.grew, why.paused) {
            (false, false) => "for idleness",
            (false, true) => "after a pause",
            (true, false) => "for growth",
            (true, true) => "for both",
        }
    }

    const WHYS: [Why; 3] = [
        Why { grew: false, paused: false },
        Why { grew: false, paused: true },
        Why { grew: true, paused: false },
    ];

    #[test]
    fn turns_are_due_as_the_page_says() {
        let most = TURNS_MOST as u32;
        let before = WHYS.map(|why| Due { turns: 5, why });
        let all = before.into_iter().chain([Due::default()]);
        let cases = all.flat_map(|before| {
            let looks = [1, TURNS_MOST - 1, TURNS_MOST, 7 * TURNS_MOST].into_iter();
            looks.flat_map(move |turns| [true, false].map(|grew| (before, turns, grew)))
        });
        let head = "| due before | due by the clock | the process grew | due then |";
        check(
            head,
            cases.map(|(before, turns, grew)| {
                let after = if grew { Due::GROWN } else { before.after_look(turns) };
                let due = if before.turns == 0 {
                    "none".to_owned()
                } else {
                    format!("some, {}", reason(before.why))
                };
                let clock = if turns >= TURNS_MOST { "all" } else { "some" };
                let then = if turns < TURNS_MOST && !grew { "more" } else { "all" };
                assert_eq!(after.turns == most, then == "all" || turns == TURNS_MOST - 1 && before.turns > 0);
                let facts = vec![due, clock.to_owned(), if grew { "yes" } else { "no" }.to_owned()];
                (facts, vec![format!("{then}, {}", reason(after.why))])
            }),
        );
    }

    #[test]
    fn caches_give_back_what_the_page_says() {
        let case = |why: Why| {
            let gives = match why.idle() {
                Idle::Since => "what was not needed since their last turn",
                Idle::All => "all that they keep",
            };
            (texts([reason(why)]), texts([gives, if why.frames_stay() { "stay" } else { "go back" }]))
        };
        check("| turns are due | caches give back | the freed frames |", WHYS.into_iter().map(case));
    }

    #[test]
    fn words_of_due_turns_are_unpacked_as_they_were() {
        let (both, most) = (Why { grew: true, paused: true }, TURNS_MOST as u32);
        for (turns, why) in [0, 1, 100].into_iter().flat_map(|turns| WHYS.map(|why| (turns, why))) {
            let due = Due { turns, why };
            assert_eq!(Due::unpack(due.pack()), due);
            let taken = due.after_one();
            assert_eq!(taken.map(|due| due.turns), turns.checked_sub(1));
            assert_eq!(taken.map(|due| due.why), (turns > 0).then(|| if turns == 1 { WHYS[0] } else { why }));
        }
        let left = Due { turns: most, why: WHYS[1] }.after_unfinished(WHYS[2]);
        assert_eq!(left, Due { turns: most, why: both }, "never more than all, for all the reasons");
    }

    #[test]
    fn a_process_grew_as_the_page_says() {
        let head = "| in use | held | least held | needed | slots | grew |";
        let of = |row: &[u64]| {
            let [used, held, least, needed] = [0, 1, 2, 3].map(|at| frames(row[at]));
            Held { used, held, least, needed, slots: row[4], grows: false }
        };
        check_numbers(head, |row| texts([if has_grown(&of(row), SHIFT) { "yes" } else { "no" }]));
        let more = of(&[117, 117, 110, 100, 1]);
        assert!(has_grown(&more, SHIFT) && !has_grown(&Held { grows: true, ..more }, SHIFT));
    }
}
