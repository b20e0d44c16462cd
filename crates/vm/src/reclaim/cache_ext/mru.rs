//! MRU: the page that was used last goes first. It is the best there is for a loop over more pages than
//! memory has (Chou and DeWitt, "An Evaluation of Buffer Management Strategies for Relational Database
//! Systems", VLDB 1985), and the worst for most other programs.
//!
//! The pages used last of all are a reader's read-ahead: `skip` of them stay.

use super::{Order, Ordered, counts, from_tail, presets};
use crate::ids::Frame;
use crate::knob::{Knob, Policy, Preset, knob};
use crate::lists::ListId;
use crate::state::State;
use crate::vm::Replacement;

/// The list; the page used last is at its tail.
const LIST: ListId = ListId(0);

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Pages used last that stay.
    pub skip: u32,
}

impl Policy for Choices {
    const WORD: &'static str = "mru";
    const PRESETS: &'static [Preset<Choices>] =
        presets!("the page that was used last goes, but for a window of read-ahead", Choices { skip: 64 });
    const KNOBS: &'static [Knob<Choices>] =
        &[knob!("skip", "pages used last that stay", skip: number 0 to 4096)];

    fn build(self, name: String) -> Box<dyn Replacement> {
        Box::new(Ordered::new(name, Last { choices: self }))
    }
}

struct Last {
    choices: Choices,
}

impl Order for Last {
    const LISTS: u16 = 1;

    fn enter(&mut self, state: &mut State, frame: Frame, _shadow: Option<u32>) {
        state.push_tail(LIST, frame);
    }

    fn access(&mut self, state: &mut State, frame: Frame) {
        if counts(state, frame) {
            state.unlist(frame);
            state.push_tail(LIST, frame);
        }
    }

    /// If only pages that would stay are left, they go all the same.
    fn next(&mut self, state: &mut State, fits: &dyn Fn(&State, Frame) -> bool) -> Vec<Frame> {
        let batch = from_tail(state, LIST, self.choices.skip as usize, fits);
        if batch.is_empty() { from_tail(state, LIST, 0, fits) } else { batch }
    }

    fn evict(&mut self, _state: &mut State, _frame: Frame) -> u32 {
        0
    }

    /// A page that could not go is not met again at once. One whose write ended is the next.
    fn put_back(&mut self, state: &mut State, frame: Frame, is_next: bool) {
        if is_next { state.push_tail(LIST, frame) } else { state.push_head(LIST, frame) }
    }
}
