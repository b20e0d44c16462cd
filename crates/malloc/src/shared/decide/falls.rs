//! Falls: a process that uses much less than before may go to sleep, and then gives back at once. So does one
//! whose threads ended, and one that has a helper.

use super::KEEP_BYTES;

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
pub(in crate::shared) struct Tide {
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
pub(in crate::shared) struct Ebb {
    /// How many of the free frames stay; `None` if all do.
    pub(in crate::shared) keep: Option<u64>,
    /// Whether all caches give back what they keep.
    pub(in crate::shared) empties_caches: bool,
}

impl Tide {
    /// Before the first look.
    pub(in crate::shared) const START: Tide =
        Tide { used: 0, top: 0, low: 0, falls: false, fell_ns: 0, again: 0, emptied_at: 0 };

    /// Looks at the frames in use, of which there were `most` at a time since the last look, and at the
    /// `free` ones.
    pub(in crate::shared) fn look(
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
pub(in crate::shared) struct Crowd {
    /// The most since they last became few.
    most: u32,
    /// How many were left then, and when that was, in nanoseconds; 0 before the first time.
    left: u32,
    fell_ns: u64,
}

impl Crowd {
    pub(in crate::shared) const START: Crowd = Crowd { most: 0, left: 0, fell_ns: 0 };

    /// A thread ended, and `left` are left. True if caches and free memory go back: half of the threads
    /// ended. Not where as many come and end again and again, which would have to fetch it each time.
    pub(in crate::shared) fn ended(&mut self, left: u32, now_ns: impl Fn() -> u64) -> bool {
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
pub(in crate::shared) fn arms_helper(idle: u64, page_shift: u32) -> bool {
    idle > FALL_BYTES >> page_shift
}

/// Whether the helper may end when so many idle frames are left.
pub(in crate::shared) fn ends_helper(idle: u64, page_shift: u32) -> bool {
    idle <= (2 * KEEP_BYTES) >> page_shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::decide::tables::{SHIFT, check_numbers, frames, texts};

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
}
