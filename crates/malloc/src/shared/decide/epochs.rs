//! Epochs: which free memory was idle, and how much of it stays.

use super::{KEEP_BYTES, is_little};

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
/// What becomes of the epoch at a look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shared) enum Epoch {
    GoesOn,
    /// The first one begins.
    Begins,
    /// It ends, and the next begins.
    Ends {
        /// All that is free was idle, and not only what was free all through the epoch.
        after_pause: bool,
    },
}

/// Time is cut into epochs of [`EPOCH_NS`]; `began_ns` is 0 before the first. An epoch does not end while
/// hardly any memory is free.
pub(in crate::shared) fn epoch(is_little: bool, began_ns: u64, now_ns: u64) -> Epoch {
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
pub(in crate::shared) fn begins_anew(is_little: bool, began_ns: u64, now_ns: u64) -> bool {
    is_little && now_ns.saturating_sub(began_ns) >= PAUSE * EPOCH_NS
}

/// Free memory, in frames.
#[derive(Clone, Copy, Debug)]
pub(in crate::shared) struct Stock {
    /// Free frames that are resident.
    pub(in crate::shared) free: u64,
    /// Of them, those that were not needed lately.
    pub(in crate::shared) idle: u64,
    /// Frames in use.
    pub(in crate::shared) used: u64,
    /// The most that were in use, in this epoch and in the one before.
    pub(in crate::shared) most_used: u64,
    /// Frames that requests took from kept blocks within an epoch.
    pub(in crate::shared) served: u64,
}

/// How many of the free frames stay; `None` if all do. Within an epoch, the process holds at most a part more
/// than the most it used lately: fragments would grow without a bound.
pub(in crate::shared) fn stays(of: &Stock, page_shift: u32) -> Option<u64> {
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

/// Which frames go if all but `keep` do: of kept blocks, and of the page allocator's. They go from where
/// there is more: kept blocks serve requests of blocks, the page allocator's frames slabs.
pub(in crate::shared) fn leave(blocks: u64, resident: u64, keep: u64) -> (u64, u64) {
    let excess = (blocks + resident).saturating_sub(keep);
    let of_blocks = if blocks > resident { excess.min(blocks) } else { excess.saturating_sub(resident) };
    (of_blocks, excess - of_blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::decide::tables::{SHIFT, check, check_numbers, frames, texts};

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
}
