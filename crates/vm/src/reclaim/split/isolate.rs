//! Which pages a bite takes: from the tail of a list, and for a block the neighbours of each
//! (`isolate_lru_pages`).

use super::policy::Lumpy;
use super::{ANON, FILE, Split, id, kind_of};
use crate::frames::Flags;
use crate::ids::Frame;
use crate::state::State;

/// A bite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bite {
    pub zone: usize,
    pub list: usize,
    /// The order of the wanted block: neighbours in its aligned block come along.
    pub order: u8,
    /// Active neighbours come along too, not only those of this list.
    pub every: bool,
    /// Pages to look at.
    pub most: u64,
}

/// Pages taken, and looked at.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub pages: Vec<Frame>,
    pub scanned: u64,
    /// Pages of each type.
    pub kinds: [u64; 2],
}

impl Split {
    /// Takes pages for a bite. The neighbours count as looked at only if they are taken.
    pub(super) fn isolate_bite(&self, state: &mut State, bite: &Bite) -> Taken {
        let mut taken = Taken::default();
        let order = if self.choices.lumpy == Lumpy::No { 0 } else { bite.order };
        while taken.scanned < bite.most {
            let Some(frame) = state.lists.tail(id(bite.zone, bite.list)) else { break };
            taken.take(state, frame);
            taken.scanned += 1;
            let first = frame.0 >> order << order;
            for neighbour in (first..first + (1 << order)).map(Frame) {
                if self.joins(state, bite, neighbour) {
                    taken.take(state, neighbour);
                    taken.scanned += 1;
                }
            }
        }
        taken
    }

    /// Whether a neighbour is a page in a list of the zone that this bite may take (docs/theory/vm.md 6.4).
    fn joins(&self, state: &State, bite: &Bite, frame: Frame) -> bool {
        if !state.zones[bite.zone].frames.contains(&frame.0) {
            return false;
        }
        let Some(list) = state.lists.of(frame) else { return false };
        let flags = state.frames.flags(frame);
        let is_evictable = flags.has(Flags::LISTED) && !flags.has(Flags::UNEVICTABLE);
        let any_type = self.choices.lumpy == Lumpy::All;
        let is_alike = any_type || kind_of(state, frame) == kind_of_list(bite.list);
        is_evictable && (list == id(bite.zone, bite.list) || bite.every && is_alike)
    }
}

impl Taken {
    fn take(&mut self, state: &mut State, frame: Frame) {
        state.isolate(frame);
        self.kinds[kind_of(state, frame)] += 1;
        self.pages.push(frame);
    }
}

/// The type of a list.
pub(super) fn kind_of_list(list: usize) -> usize {
    if list / 2 == FILE { FILE } else { ANON }
}
