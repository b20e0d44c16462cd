//! Stride: the pages behind a reader of constant stride go first.
//!
//! SEQ (Glass and Cao, "Adaptive Page Replacement Based on Memory Reference Behavior", SIGMETRICS 1997) finds
//! long runs of consecutive pages and evicts in each the most recent page but a few; elsewhere it is LRU.
//! Here the pages of a run may be any constant distance apart, as in a scan of one column of a table. The
//! reader needs the pages behind it last: not before it has gone through the file once more.
//!
//! ```text
//! access: as far from the file's last one as that from the one before, `run` times ──► run ── goes, but for
//!            │ else                                                                           the last `skip`
//!            └► used (LRU, a second chance) ─────────────── goes when no run has pages to give
//! ```
//!
//! A file has one reader: two that take turns hide each other's stride. A page that left its run by another
//! access is as any other one.

use super::{Order, Ordered, counts, from_tail, presets};
use crate::frames::Flags;
use crate::ids::Frame;
use crate::knob::{Knob, Policy, Preset, knob};
use crate::lists::ListId;
use crate::state::State;
use crate::vm::Replacement;
use std::collections::BTreeMap;

/// Pages of runs; those that the reader passed last are at the tail.
const RUN: ListId = ListId(0);
/// Other pages; those used longest ago are at the tail.
const USED: ListId = ListId(1);
/// Files whose readers are known: the one that was read first is forgotten beyond this.
const FILES: usize = 1024;

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Accesses of one stride that make a run.
    pub run: u32,
    /// Pages that readers passed last, which stay.
    pub skip: u32,
}

impl Policy for Choices {
    const WORD: &'static str = "stride";
    const PRESETS: &'static [Preset<Choices>] =
        presets!("pages behind a reader of constant stride go first", Choices { run: 20, skip: 64 });
    const KNOBS: &'static [Knob<Choices>] = &[
        knob!("run", "accesses of one stride that make a run", run: number 2 to 4096),
        knob!("skip", "pages that readers passed last, which stay", skip: number 0 to 4096),
    ];

    fn build(self, name: String) -> Box<dyn Replacement> {
        Box::new(Ordered::new(name, Strides { choices: self, readers: BTreeMap::new() }))
    }
}

struct Strides {
    choices: Choices,
    /// The reader of each file, by its mapping.
    readers: BTreeMap<u32, Reader>,
}

/// Where a reader is, and how it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reader {
    page: u32,
    stride: i64,
    /// Accesses of this stride, in a row.
    accesses: u32,
}

impl Reader {
    /// The reader after an access. One of the same page changes nothing; from a file's end it may go on at
    /// the begin: a step back to where no stride led breaks the row once.
    fn goes(self, page: u32) -> Reader {
        let stride = i64::from(page) - i64::from(self.page);
        match stride {
            0 => self,
            _ if stride == self.stride => Reader { page, accesses: self.accesses + 1, ..self },
            _ => Reader { page, stride, accesses: 1 },
        }
    }
}

impl Strides {
    /// Whether an access of a page is one of a run.
    fn is_run(&mut self, state: &State, frame: Frame) -> bool {
        if state.frames.has(frame, Flags::SWAPBACKED) {
            return false;
        }
        let file = state.frames.owner(frame);
        if self.readers.len() == FILES && !self.readers.contains_key(&file) {
            self.readers.pop_first();
        }
        let reader = self.readers.entry(file).or_default();
        *reader = reader.goes(state.frames.index(frame));
        reader.accesses >= self.choices.run
    }
}

impl Order for Strides {
    const LISTS: u16 = 2;

    fn enter(&mut self, state: &mut State, frame: Frame, _shadow: Option<u32>) {
        state.push_head(USED, frame);
    }

    fn access(&mut self, state: &mut State, frame: Frame) {
        let (is_run, counts) = (self.is_run(state, frame), counts(state, frame));
        if !is_run && !counts {
            return;
        }
        state.unlist(frame);
        if is_run {
            state.push_tail(RUN, frame);
        } else {
            state.push_head(USED, frame);
        }
    }

    fn next(&mut self, state: &mut State, fits: &dyn Fn(&State, Frame) -> bool) -> Vec<Frame> {
        let batch = from_tail(state, RUN, self.choices.skip as usize, fits);
        if !batch.is_empty() {
            return batch;
        }
        let batch = from_tail(state, USED, 0, fits);
        if batch.is_empty() { from_tail(state, RUN, 0, fits) } else { batch }
    }

    fn evict(&mut self, _state: &mut State, _frame: Frame) -> u32 {
        0
    }

    fn put_back(&mut self, state: &mut State, frame: Frame, is_next: bool) {
        if is_next { state.push_tail(USED, frame) } else { state.push_head(USED, frame) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stride of a reader that read these pages, and the accesses of it in a row.
    #[track_caller]
    fn check(pages: &[u32], expected: (i64, u32)) {
        let reader = pages.iter().fold(Reader::default(), |reader, page| reader.goes(*page));
        assert_eq!((reader.stride, reader.accesses), expected, "{pages:?}");
    }

    #[test]
    fn a_reader_of_constant_stride_is_known_by_its_accesses_in_a_row() {
        check(&[1, 2, 3, 4], (1, 4));
        check(&[8, 16, 24], (8, 3));
        check(&[8, 16, 16, 24], (8, 3));
        check(&[9, 7, 5], (-2, 2));
        check(&[1, 2, 3, 9, 10], (1, 1));
        check(&[5, 2, 7], (5, 1));
        check(&[], (0, 0));
    }
}
