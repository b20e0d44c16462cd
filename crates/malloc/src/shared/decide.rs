//! When caches shrink, and which free memory goes back to the system: the tables of "States of upkeep" in
//! docs/native.md.
//!
//! Nothing is read, locked or written here: what a thread saw goes in, what it does comes out.
//! [`super::upkeep`] looks, and carries the decisions out. Amounts of memory are page frames.

use slablab_slabs::Idle;

/// Free memory that stays for the next request, in bytes.
pub(super) const KEEP_BYTES: u64 = 2 << 20;
/// What caches may keep in a slot beside an eighth of what the process needs, in bytes: as much as the main
/// sheaves of all classes when they have grown.
pub(super) const SLOT_BYTES: u64 = 4 << 20;
/// The length of an epoch.
const EPOCH_NS: u64 = 64_000_000;
/// After so many epochs without a look, all that is free goes back.
const PAUSE: u64 = 10;
/// The free memory that stays is at most this part of the most that was used lately, or what
/// [`SERVED_FRACTION`] says if that is more.
const STOCK_FRACTION: u64 = 16;
/// Of this part of it, as much may stay as requests took from kept blocks within an epoch: they take such
/// memory again and again.
const SERVED_FRACTION: u64 = 4;
/// How often the next cache is asked to shrink: all of them in two thirds of a second.
pub(super) const TURN_EVERY_NS: u64 = 5_000_000;
/// Most turns that are due after a time without slow paths: all caches once.
const TURNS_MOST: u64 = crate::classes::COUNT as u64;

/// Why turns are due. Neither: for idleness, one every [`TURN_EVERY_NS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Why {
    /// The process grew.
    pub(super) grew: bool,
    /// There was a pause, or the process uses much less than before.
    pub(super) paused: bool,
}

impl Why {
    /// What a cache gives back in such a turn.
    pub(super) fn idle(self) -> Idle {
        if self == Why::default() { Idle::Since } else { Idle::All }
    }

    /// Whether the frames that caches free in such a turn stay. A growing process allocates them again: given
    /// back, each would be a page fault.
    pub(super) fn frames_stay(self) -> bool {
        self.grew
    }
}

/// The turns that are due: one word that threads race on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) turns: u32,
    pub(super) why: Why,
}

impl Due {
    /// All caches take a turn at once, because the process grew: the objects that they keep for later may be
    /// the memory that is short now.
    pub(super) const GROWN: Due = Due { turns: TURNS_MOST as u32, why: Why { grew: true, paused: false } };
    /// All caches take a turn at once, because the process uses much less than before.
    pub(super) const FELL: Due = Due { turns: TURNS_MOST as u32, why: Why { grew: false, paused: true } };
    const GREW_BIT: u64 = 1 << 32;
    const PAUSED_BIT: u64 = 1 << 33;

    pub(super) const fn pack(self) -> u64 {
        let grew = if self.why.grew { Self::GREW_BIT } else { 0 };
        let paused = if self.why.paused { Self::PAUSED_BIT } else { 0 };
        self.turns as u64 | grew | paused
    }

    pub(super) fn unpack(word: u64) -> Due {
        let has = |bit: u64| word & bit != 0;
        Due { turns: word as u32, why: Why { grew: has(Self::GREW_BIT), paused: has(Self::PAUSED_BIT) } }
    }

    fn more(self, turns: u64, why: Why) -> Due {
        Due { turns: (u64::from(self.turns) + turns).min(TURNS_MOST) as u32, why }
    }

    /// After a look at the clock, by which `turns` more are due. If the process grew before a pause, and its
    /// turns were not all taken: it does not grow now.
    pub(super) fn after_look(self, turns: u64) -> Due {
        let paused = Why { grew: false, paused: true };
        self.more(turns, if turns >= TURNS_MOST { paused } else { self.why })
    }

    /// After a thread took one. `None` if none is due.
    pub(super) fn after_one(self) -> Option<Due> {
        match self.turns {
            0 => None,
            1 => Some(Due::default()),
            turns => Some(Due { turns: turns - 1, ..self }),
        }
    }

    /// After a turn that was due for a reason was left unfinished.
    pub(super) fn after_unfinished(self, why: Why) -> Due {
        let both = Why { grew: self.why.grew || why.grew, paused: self.why.paused || why.paused };
        self.more(1, both)
    }
}

/// What a process holds, in frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// Frames in use.
    pub(super) used: u64,
    /// Frames in use or resident.
    pub(super) held: u64,
    /// The least that was held since caches last took their turns for growth.
    pub(super) least: u64,
    /// What the process is known to need.
    pub(super) needed: u64,
    /// Slots that were ever used.
    pub(super) slots: u64,
    /// What is needed is not known, while turns for growth are due.
    pub(super) grows: bool,
}

/// Whether the process has grown: what it holds, by an eighth and at least [`KEEP_BYTES`], over the least; or
/// what is in use, by an eighth and [`SLOT_BYTES`] a slot, over what it is known to need.
///
/// By the first rule alone, each growth is counted from the one before, so that a process whose sizes change
/// grows without a bound. The second one has room for what caches fill again at once.
pub(super) fn has_grown(of: &Held, page_shift: u32) -> bool {
    let holds_more = of.held - of.least > (of.least / 8).max(KEEP_BYTES >> page_shift);
    let of_slots = of.slots * (SLOT_BYTES >> page_shift);
    let uses_more = of.used > of.needed + of.needed / 8 + of_slots && !of.grows;
    holds_more || uses_more
}

/// What becomes of the epoch at a look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Epoch {
    GoesOn,
    /// The first one begins.
    Begins,
    /// It ends, and the next begins.
    Ends {
        /// All that is free was idle, and not only what was free all through the epoch.
        after_pause: bool,
    },
}

/// Whether `free` frames are hardly any.
pub(super) fn is_little(free: u64, page_shift: u32) -> bool {
    free <= KEEP_BYTES >> page_shift
}

/// Time is cut into epochs of [`EPOCH_NS`]; `began_ns` is 0 before the first. An epoch does not end while
/// hardly any memory is free.
pub(super) fn epoch(is_little: bool, began_ns: u64, now_ns: u64) -> Epoch {
    if is_little {
        return Epoch::GoesOn;
    }
    if began_ns == 0 {
        return Epoch::Begins;
    }
    match now_ns.saturating_sub(began_ns) / EPOCH_NS {
        0 => Epoch::GoesOn,
        epochs => Epoch::Ends { after_pause: epochs >= PAUSE },
    }
}

/// Whether the epoch begins anew when a block becomes free: nothing was idle in an epoch that lasted through
/// a pause, if hardly any memory was free.
pub(super) fn begins_anew(is_little: bool, began_ns: u64, now_ns: u64) -> bool {
    is_little && now_ns.saturating_sub(began_ns) >= PAUSE * EPOCH_NS
}

/// Free memory, in frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stock {
    /// Free frames that are resident.
    pub(super) free: u64,
    /// Of them, those that were not needed lately.
    pub(super) idle: u64,
    /// Frames in use.
    pub(super) used: u64,
    /// The most that were in use, in this epoch and in the one before.
    pub(super) most_used: u64,
    /// Frames that requests took from kept blocks within an epoch.
    pub(super) served: u64,
}

/// How many of the free frames stay; `None` if all do. Within an epoch, the process holds at most a part more
/// than the most it used lately: fragments would grow without a bound.
pub(super) fn stays(of: &Stock, page_shift: u32) -> Option<u64> {
    if is_little(of.free, page_shift) {
        return None;
    }
    let least = KEEP_BYTES >> page_shift;
    let served = of.served.min(of.most_used / SERVED_FRACTION);
    let share = (of.most_used / STOCK_FRACTION).max(served).max(least);
    let bound = (of.most_used + share).saturating_sub(of.used);
    let keep = of.free.saturating_sub(of.idle).min(bound).max(least);
    (keep < of.free).then_some(keep)
}

/// A fall begins when the process uses so much less than before, in bytes, and ends when it uses so much more
/// again. As much stays free after a fall.
const FALL_BYTES: u64 = 16 << 20;
/// A process that used a lot may keep this part of it after a fall.
const TOP_FRACTION: u64 = 64;
/// The time of a page fault that brings a page of zeros.
const FAULT_NS: u64 = 1000;
/// Memory that a process takes again after its falls stays, as long as the page faults for it would take more
/// than this part of the time.
const FAULTS_FRACTION: u64 = 64;
/// What one look gives back at least, in bytes; twice of what the process uses less since the last look, if
/// that is more.
const STEP_BYTES: u64 = 4 << 20;

/// The rises and falls of the frames in use.
///
/// In a fall the free frames go, because the process may go to sleep: no later call would give them back.
/// Where it took the memory of the falls before again, they stay: each page would be a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tide {
    /// Frames in use at the last look.
    used: u64,
    /// The most since the last rise began.
    top: u64,
    /// The least since the last fall began.
    low: u64,
    /// The last turn was to a fall.
    falls: bool,
    /// When the last fall began, in nanoseconds; 0 before the first.
    fell_ns: u64,
    /// What the process took again after the falls before.
    again: u64,
    /// How many frames were in use when caches last gave back all that they keep, in this fall.
    emptied_at: u64,
}

/// What a fall has a thread do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ebb {
    /// How many of the free frames stay; `None` if all do.
    pub(super) keep: Option<u64>,
    /// Whether all caches give back what they keep.
    pub(super) empties_caches: bool,
}

impl Tide {
    /// Before the first look.
    pub(super) const START: Tide =
        Tide { used: 0, top: 0, low: 0, falls: false, fell_ns: 0, again: 0, emptied_at: 0 };

    /// Looks at the frames in use, of which there were `most` at a time since the last look, and at the
    /// `free` ones.
    pub(super) fn look(
        &mut self,
        most: u64,
        used: u64,
        free: u64,
        now_ns: impl Fn() -> u64,
        page_shift: u32,
    ) -> Ebb {
        let fall = FALL_BYTES >> page_shift;
        let fallen = self.used.max(most).saturating_sub(used);
        for used in [most, used] {
            self.used = used;
            self.turn(fall, &now_ns);
        }
        if !self.falls || self.top - self.low < fall.max(2 * self.again) {
            return Ebb::default();
        }
        let least = fall.max(self.top / TOP_FRACTION).max(self.again);
        let step = (STEP_BYTES >> page_shift).max(2 * fallen);
        let keep = Some(least.max(free.saturating_sub(step))).filter(|keep| *keep < free);
        let empties_caches = used <= self.emptied_at / 2;
        if empties_caches {
            self.emptied_at = used;
        }
        Ebb { keep, empties_caches }
    }

    /// A fall or a rise of `fall` frames is a turn.
    fn turn(&mut self, fall: u64, now_ns: impl Fn() -> u64) {
        if self.falls {
            self.low = self.low.min(self.used);
            if self.used - self.low >= fall {
                (self.falls, self.top) = (false, self.used);
            }
            return;
        }
        self.top = self.top.max(self.used);
        if self.top - self.used < fall {
            return;
        }
        let now = now_ns();
        let taken = if self.fell_ns == 0 { 0 } else { self.top - self.low };
        self.again = taken.max(self.again);
        if self.again * FAULT_NS * FAULTS_FRACTION < now.saturating_sub(self.fell_ns) {
            self.again = 0;
        }
        // So that a deep fall begins with it.
        self.emptied_at = u64::MAX;
        (self.falls, self.low, self.fell_ns) = (true, self.used, now);
    }
}

/// Fewer threads leave little.
const THREADS_LEAST: u32 = 4;
/// Threads that came again so soon after others ended will do so once more.
const THREADS_AGAIN_NS: u64 = 1_000_000_000;

/// How many threads there are. What those that ended used is in slabs and free frames, and stays there as
/// long as nobody comes to a slow path: the others may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crowd {
    /// The most since they last became few.
    most: u32,
    /// How many were left then, and when that was, in nanoseconds; 0 before the first time.
    left: u32,
    fell_ns: u64,
}

impl Crowd {
    pub(super) const START: Crowd = Crowd { most: 0, left: 0, fell_ns: 0 };

    /// A thread ended, and `left` are left. True if caches and free memory go back: half of the threads
    /// ended. Not where as many come and end again and again, which would have to fetch it each time.
    pub(super) fn ended(&mut self, left: u32, now_ns: impl Fn() -> u64) -> bool {
        self.most = self.most.max(left + 1);
        if self.most < THREADS_LEAST || left > self.most / 2 {
            return false;
        }
        let now = now_ns();
        let came = self.fell_ns > 0 && self.most > self.left;
        let is_again = came && now.saturating_sub(self.fell_ns) < THREADS_AGAIN_NS;
        *self = Crowd { most: left, left, fell_ns: now };
        !is_again
    }
}

/// Whether so many idle frames start the helper.
pub(super) fn arms_helper(idle: u64, page_shift: u32) -> bool {
    idle > FALL_BYTES >> page_shift
}

/// Whether the helper may end when so many idle frames are left.
pub(super) fn ends_helper(idle: u64, page_shift: u32) -> bool {
    idle <= (2 * KEEP_BYTES) >> page_shift
}

/// A process is near its limit when this part of it is left.
const NEAR_FRACTION: u64 = 16;
/// Near the limit, caches give back all that they keep again after so long,
const PURGE_EVERY_NS: u64 = 1_000_000_000;
/// or when the process uses this part of the limit more than they left.
const PURGE_FRACTION: u64 = 64;
/// Less idle memory is not worth a purge, in bytes.
const WORTH_BYTES: u64 = 1 << 20;
/// Tasks wait for memory if some did for this part of the time.
const WAITS_FRACTION: u64 = 50;

/// What a process with a limit uses, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limited {
    pub(super) limit: u64,
    /// With the request that is at hand.
    pub(super) used: u64,
    /// What the process keeps for later.
    pub(super) idle: u64,
    /// What was used after the last purge, and how long ago that was.
    pub(super) left: u64,
    pub(super) since_ns: u64,
    /// Whether tasks of the cgroup wait for memory.
    pub(super) waits: bool,
}

/// Whether a process is near its limit.
pub(super) fn is_near(of: &Limited) -> bool {
    of.used >= of.limit - of.limit / NEAR_FRACTION
}

/// Whether a process gives back all that it keeps.
pub(super) fn purges(of: &Limited) -> bool {
    let again = of.since_ns >= PURGE_EVERY_NS || of.used >= of.left + of.limit / PURGE_FRACTION;
    (is_near(of) || of.waits) && of.idle >= WORTH_BYTES && again
}

/// Whether tasks that waited so long for memory, in so much time, count as waiting.
pub(super) fn waits(waited_us: u64, elapsed_ns: u64) -> bool {
    waited_us.saturating_mul(1000 * WAITS_FRACTION) > elapsed_ns
}

/// Which frames go if all but `keep` do: of kept blocks, and of the page allocator's. They go from where
/// there is more: kept blocks serve requests of blocks, the page allocator's frames slabs.
pub(super) fn leave(blocks: u64, resident: u64, keep: u64) -> (u64, u64) {
    let excess = (blocks + resident).saturating_sub(keep);
    let of_blocks = if blocks > resident { excess.min(blocks) } else { excess.saturating_sub(resident) };
    (of_blocks, excess - of_blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// log2 of the bytes of a page.
    const SHIFT: u32 = 12;

    /// The cells of the rows of the page's table that has this head.
    fn rows(head: &str) -> Vec<Vec<String>> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/native.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        let table = page.lines().skip_while(|line| *line != head).skip(2);
        let cells =
            |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let rows: Vec<_> = table.take_while(|line| line.starts_with('|')).map(cells).collect();
        assert!(!rows.is_empty(), "{head}: no such table");
        rows
    }

    /// Each case gets what the first row that fits it says, and each row is the first for some case. `any`
    /// fits all.
    fn check(head: &str, cases: impl Iterator<Item = (Vec<String>, Vec<String>)>) {
        let rows = rows(head);
        let mut used = vec![false; rows.len()];
        for (facts, decision) in cases {
            let fits =
                |row: &Vec<String>| row.iter().zip(&facts).all(|(cell, fact)| cell == "any" || cell == fact);
            let at = rows.iter().position(fits).unwrap_or_else(|| panic!("{head}: no row for {facts:?}"));
            assert_eq!(rows[at][facts.len()..], decision, "{head}: {facts:?}");
            used[at] = true;
        }
        assert!(used.iter().all(|used| *used), "{head}: a row is for no case: {used:?}");
    }

    /// Each row of numbers, in MiB, gives what its last cells say.
    fn check_numbers(head: &str, decide: impl Fn(&[u64]) -> Vec<String>) {
        for row in rows(head) {
            let facts: Vec<u64> = row.iter().map_while(|cell| cell.parse().ok()).collect();
            let decision = decide(&facts);
            assert_eq!(row[row.len() - decision.len()..], decision, "{head}: {row:?}");
        }
    }

    fn texts<const N: usize>(cells: [&str; N]) -> Vec<String> {
        cells.map(str::to_owned).into()
    }

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
    fn an_epoch_ends_as_the_page_says() {
        const NOW: u64 = 1 << 40;
        const MS_64: u64 = 64_000_000;
        let facts = [true, false].into_iter().flat_map(|little| {
            [None, Some(0), Some(1), Some(9), Some(10), Some(1000)].map(|passed| (little, passed))
        });
        let case = |(little, passed): (bool, Option<u64>)| {
            let began = passed.map_or(0, |passed| NOW - passed * MS_64);
            let (becomes, idle) = match epoch(little, began, NOW) {
                Epoch::GoesOn => ("goes on", "none"),
                Epoch::Begins => ("begins", "none"),
                Epoch::Ends { after_pause: false } => ("ends", "those that were free all through it"),
                Epoch::Ends { after_pause: true } => ("ends", "all that are free"),
            };
            let passed = match passed {
                None => "no epoch yet",
                Some(0) => "0",
                Some(1..10) => "1 to 9",
                Some(_) => "10 or more",
            };
            let free = if little { "at most 2 MiB" } else { "more" };
            (texts([free, passed]), texts([becomes, idle]))
        };
        check("| free frames | epochs passed | the epoch | idle frames |", facts.map(case));
        let pause = 10 * MS_64;
        assert!(begins_anew(true, NOW - pause, NOW) && !begins_anew(true, NOW - pause + 1, NOW));
        assert!(!begins_anew(false, NOW - pause, NOW), "there was more that could be idle");
    }

    fn frames(mib: u64) -> u64 {
        mib << (20 - SHIFT)
    }

    #[test]
    fn free_frames_stay_as_the_page_says() {
        let head = "| free | idle | in use | most in use | served by kept blocks | stay |";
        check_numbers(head, |row| {
            let [free, idle, used, most_used, served] = [0, 1, 2, 3, 4].map(|at| frames(row[at]));
            let of = Stock { free, idle, used, most_used, served };
            vec![(stays(&of, SHIFT).unwrap_or(free) >> (20 - SHIFT)).to_string()]
        });
        check_numbers("| kept blocks | free frames | may stay | blocks go | frames go |", |row| {
            let (blocks, frames) = leave(row[0], row[1], row[2]);
            vec![blocks.to_string(), frames.to_string()]
        });
    }

    #[test]
    fn a_fall_gives_back_what_the_page_says() {
        const MS: u64 = 1_000_000;
        let head = "| used | fell to | used again, fell ms later | last look | now | free | stay | caches |";
        check_numbers(head, |row| {
            let mut tide = Tide::START;
            let mut look =
                |used, free, ms: u64| tide.look(frames(used), frames(used), frames(free), || ms * MS, SHIFT);
            for (used, ms) in [(row[0], 1000), (row[1], 1000), (row[0], 1000), (row[3], 1000 + row[2])] {
                look(used, 0, ms);
            }
            let ebb = look(row[4], row[5], 1000 + row[2]);
            let stays = ebb.keep.map_or(row[5], |keep| keep >> (20 - SHIFT));
            vec![stays.to_string(), if ebb.empties_caches { "give back" } else { "keep" }.to_owned()]
        });
    }

    #[test]
    fn a_helper_starts_and_ends_as_the_page_says() {
        check_numbers("| most | left | left before | ms since then | caches |", |row| {
            let [most, left, before, ms] = row[..] else { panic!("{row:?}") };
            let fell_ns = if ms == 0 { 0 } else { 1 };
            let mut crowd = Crowd { most: most as u32, left: before as u32, fell_ns };
            let goes = crowd.ended(left as u32, || ms * 1_000_000);
            texts([if goes { "give back" } else { "keep" }])
        });
        check_numbers("| idle | a helper starts | a helper ends |", |row| {
            let answer = |yes| if yes { "yes" } else { "no" };
            texts([answer(arms_helper(frames(row[0]), SHIFT)), answer(ends_helper(frames(row[0]), SHIFT))])
        });
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

    #[test]
    fn a_process_near_its_limit_purges_as_the_page_says() {
        let head = "| limit | used | idle | left by the last purge | seconds since | waits | purge |";
        check_numbers(head, |facts| {
            let [limit, used, idle, left, seconds, waits] = facts[..] else { panic!("{facts:?}") };
            let [limit, used, idle, left] = [limit, used, idle, left].map(|mib| mib << 20);
            let since_ns = seconds * PURGE_EVERY_NS;
            let of = Limited { limit, used, idle, left, since_ns, waits: waits == 1 };
            vec![if purges(&of) { "yes" } else { "no" }.to_owned()]
        });
        assert!(waits(401, 20_000_000) && !waits(400, 20_000_000) && !waits(0, 0));
    }
}
