//! S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: "FIFO Queues are All You Need for Cache Eviction", SOSP 2023).
//!
//! ```text
//! read ─── small (a tenth) ── two accesses ──► main ── accessed: once more round, one access less
//!              │ fewer                           └ not: gone
//!              └ gone, but known for as many evictions as main has pages: comes back into main
//! ```
//!
//! A page's accesses are counted up to three. The number of evictions from the small queue stands for the
//! queue of names of evicted pages.

use super::{BATCH, LOOK, Order, Ordered, counts, presets};
use crate::ids::Frame;
use crate::knob::{Knob, Policy, Preset, knob};
use crate::lists::ListId;
use crate::state::State;
use crate::vm::Replacement;

const SMALL: ListId = ListId(0);
const MAIN: ListId = ListId(1);
/// Accesses that are counted, in the lowest bits of a page's word.
const COUNTED: u32 = 3;
/// Of the word: the page is of the main queue, also while it is in none.
const IS_MAIN: u32 = 1 << 2;
/// Bits of a shadow that hold the number of evictions.
const BITS: u32 = 28;
/// Of a shadow: the page left the small queue.
const LEFT_SMALL: u32 = 1 << BITS;

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Percent of the pages that the small queue keeps.
    pub small: u32,
    /// Accesses beyond the first with which a page gets from the small queue into the main one.
    pub promotes: u32,
}

impl Policy for Choices {
    const WORD: &'static str = "s3fifo";
    const PRESETS: &'static [Preset<Choices>] = presets!(
        "S3-FIFO: a small queue, a main one, names of evicted pages",
        Choices { small: 10, promotes: 2 }
    );
    const KNOBS: &'static [Knob<Choices>] = &[
        knob!("small", "percent of the pages that the small queue keeps", small: number 0 to 100),
        knob!("promotes", "accesses that bring a page into the main queue", promotes: number 1 to 3),
    ];

    fn build(self, name: String) -> Box<dyn Replacement> {
        Box::new(Ordered::new(name, Queues { choices: self, evicted: 0 }))
    }
}

struct Queues {
    choices: Choices,
    /// Pages evicted from the small queue.
    evicted: u32,
}

/// What becomes of the page at a queue's tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Goes,
    /// It gets to the head of the main queue, with so many accesses.
    Main(u32),
}

impl Choices {
    fn fate(self, is_main: bool, accesses: u32) -> Fate {
        match is_main {
            true if accesses > 0 => Fate::Main(accesses - 1),
            false if accesses >= self.promotes => Fate::Main(0),
            _ => Fate::Goes,
        }
    }

    /// Whether the next page is of the small queue: it has its share, or the main one is empty.
    fn takes_small(self, small: u32, main: u32) -> bool {
        main == 0 || small > 0 && u64::from(small) * 100 >= u64::from(self.small) * u64::from(small + main)
    }
}

/// Whether a page that came back is known still: fewer pages left the small queue since than main has.
fn is_known(shadow: u32, evicted: u32, main: u32) -> bool {
    let mask = LEFT_SMALL - 1;
    shadow & LEFT_SMALL != 0 && evicted.wrapping_sub(shadow) & mask <= main
}

impl Order for Queues {
    const LISTS: u16 = 2;

    fn enter(&mut self, state: &mut State, frame: Frame, shadow: Option<u32>) {
        let main = state.lists.len(MAIN);
        let is_main = shadow.is_some_and(|shadow| is_known(shadow, self.evicted, main));
        let word = state.frames.policy(frame);
        state.frames.set_policy(frame, word | if is_main { IS_MAIN } else { 0 });
        state.push_head(if is_main { MAIN } else { SMALL }, frame);
    }

    fn access(&mut self, state: &mut State, frame: Frame) {
        if counts(state, frame) {
            let word = state.frames.policy(frame);
            state.frames.set_policy(frame, (word & !COUNTED) | ((word & COUNTED).min(COUNTED - 1) + 1));
        }
    }

    fn next(&mut self, state: &mut State, fits: &dyn Fn(&State, Frame) -> bool) -> Vec<Frame> {
        let (mut batch, mut passed) = (Vec::new(), Vec::new());
        for _ in 0..LOOK {
            let (small, main) = (state.lists.len(SMALL), state.lists.len(MAIN));
            let list = if self.choices.takes_small(small, main) { SMALL } else { MAIN };
            let Some(frame) = state.lists.tail(list) else { break };
            state.unlist(frame);
            let word = state.frames.policy(frame);
            match self.choices.fate(list == MAIN, word & COUNTED) {
                Fate::Main(accesses) => {
                    state.frames.set_policy(frame, word & !COUNTED | IS_MAIN | accesses);
                    state.push_head(MAIN, frame);
                }
                Fate::Goes if fits(state, frame) => batch.push((list, frame)),
                Fate::Goes => passed.push((list, frame)),
            }
            if batch.len() == BATCH {
                break;
            }
        }
        // Pages that the reclaimer may not take have had their turn; the caller takes the others.
        passed.into_iter().for_each(|(list, frame)| state.push_head(list, frame));
        batch.iter().rev().for_each(|(list, frame)| state.push_tail(*list, *frame));
        batch.into_iter().map(|(_, frame)| frame).collect()
    }

    fn evict(&mut self, state: &mut State, frame: Frame) -> u32 {
        if state.frames.policy(frame) & IS_MAIN != 0 {
            return 0;
        }
        self.evicted = self.evicted.wrapping_add(1);
        LEFT_SMALL | self.evicted & (LEFT_SMALL - 1)
    }

    fn put_back(&mut self, state: &mut State, frame: Frame, is_next: bool) {
        let word = state.frames.policy(frame);
        let list = if word & IS_MAIN != 0 { MAIN } else { SMALL };
        if is_next {
            state.frames.set_policy(frame, word & !COUNTED);
            state.push_tail(list, frame);
        } else {
            state.push_head(list, frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Choices = Choices { small: 10, promotes: 2 };

    #[test]
    fn the_tail_of_a_queue_goes_or_gets_into_main() {
        for (promotes, is_main, accesses, expected) in [
            (2, false, 0, Fate::Goes),
            (2, false, 1, Fate::Goes),
            (2, false, 2, Fate::Main(0)),
            (2, false, 3, Fate::Main(0)),
            (1, false, 1, Fate::Main(0)),
            (2, true, 0, Fate::Goes),
            (2, true, 1, Fate::Main(0)),
            (2, true, 3, Fate::Main(2)),
        ] {
            let fate = Choices { promotes, ..USUAL }.fate(is_main, accesses);
            assert_eq!(fate, expected, "promotes={promotes}, main {is_main}, {accesses}");
        }
    }

    #[test]
    fn the_small_queue_gives_pages_while_it_has_its_share() {
        for (small, pages, expected) in [
            (10, [10, 90], true),
            (10, [9, 90], false),
            (10, [1, 0], true),
            (10, [0, 1], false),
            (0, [1, 90], true),
            (100, [99, 1], false),
        ] {
            let is = Choices { small, ..USUAL }.takes_small(pages[0], pages[1]);
            assert_eq!(is, expected, "small={small}, {pages:?}");
        }
    }

    #[test]
    fn a_page_is_known_for_as_many_evictions_as_main_has_pages() {
        for (shadow, evicted, main, expected) in [
            (LEFT_SMALL | 5, 5, 0, true),
            (LEFT_SMALL | 5, 15, 10, true),
            (LEFT_SMALL | 5, 16, 10, false),
            // It left the main queue.
            (0, 0, 10, false),
            // The number is kept in 28 bits.
            (LEFT_SMALL | (LEFT_SMALL - 1), LEFT_SMALL + 3, 10, true),
        ] {
            assert_eq!(is_known(shadow, evicted, main), expected, "{shadow:#x} {evicted} {main}");
        }
    }
}
