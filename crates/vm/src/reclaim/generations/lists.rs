//! The generations of one node: their numbers, their pages, and how pages move between them.
//!
//! A page's word names its generation; its list is that of the generation it had when it was last moved.
//! Aging changes only the word, and eviction moves the page when it meets it. So the pages of a generation
//! are counted by words, and a list may hold pages of younger generations.

use super::balance::Control;
use super::policy::{Oldest, Placement, Rules};
use super::walker::Walker;
use super::word::{GENERATIONS, Type, Word, YOUNG, accesses, forget};
use crate::frames::Flags;
use crate::ids::Frame;
use crate::lists::ListId;
use crate::reclaimers::Only;
use crate::replacement::Sizes;
use crate::shrinker::Owed;
use crate::state::State;
use std::rc::Rc;

/// The list of a zone, a type, and a generation by its number modulo four.
pub(crate) fn list(zone: usize, of: Type, generation: u8) -> ListId {
    ListId(((zone * 2 + of as usize) * GENERATIONS as usize + usize::from(generation)) as u16)
}

/// A generation's number modulo four.
pub(crate) fn modulo(seq: u64) -> u8 {
    (seq % GENERATIONS) as u8
}

/// What decides which generation a page enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entering {
    /// A fault brings it, or it was in one of the youngest two.
    is_active: bool,
    /// It is of the working set.
    workingset: bool,
    /// It cannot go at once: it is anonymous without a slot, or is being written.
    waits: bool,
    /// Its write ended, and reclaim wants it.
    rotates: bool,
}

impl Entering {
    /// The number of the generation.
    fn seq(self, placement: Placement, oldest: u64, youngest: u64) -> u64 {
        let Entering { is_active, workingset, waits, rotates } = self;
        match placement {
            Placement::Oldest | Placement::SecondOldest if is_active => youngest,
            Placement::Oldest if waits => oldest + 1,
            Placement::Oldest => oldest,
            Placement::SecondOldest if waits => youngest - 1,
            Placement::SecondOldest if rotates || oldest + YOUNG >= youngest => oldest,
            Placement::SecondOldest => oldest + 1,
            Placement::Workingset => {
                let workingset = u64::from(workingset);
                let back = match () {
                    () if is_active => YOUNG - workingset,
                    () if rotates => GENERATIONS,
                    () if waits => YOUNG,
                    () => GENERATIONS - workingset,
                };
                (youngest + 1).saturating_sub(back).max(oldest)
            }
        }
    }
}

/// A node (`struct lru_gen_folio`).
#[derive(Debug)]
pub(crate) struct Node {
    /// The number of the youngest generation.
    pub(crate) max_seq: u64,
    /// The number of the oldest one of each type.
    pub(crate) min_seq: [u64; 2],
    /// When each began, in nanoseconds, by its number modulo four.
    pub(crate) born: [u64; 4],
    /// Pages of each, by type.
    pub(crate) pages: [[u64; 4]; 2],
    pub(crate) control: Control,
    pub(crate) walker: Walker,
    /// What kswapd met.
    pub(crate) only: Only,
    /// Runs of kswapd without a page, in a row.
    pub(crate) failures: u32,
    /// What slab caches owe.
    pub(crate) owed: Rc<Owed>,
    /// The node's zones: places in [`State::zones`], by rising class.
    pub(crate) zones: Vec<usize>,
}

impl Node {
    pub(crate) fn new(zones: Vec<usize>) -> Node {
        Node {
            max_seq: YOUNG + 1,
            min_seq: [0; 2],
            born: [0; 4],
            pages: [[0; 4]; 2],
            control: Control::default(),
            walker: Walker::default(),
            only: Only::default(),
            failures: 0,
            owed: Rc::default(),
            zones,
        }
    }

    /// Generations of a type.
    pub(crate) fn count(&self, of: Type) -> u64 {
        self.max_seq - self.min_seq[of as usize] + 1
    }

    /// Pages of a generation.
    pub(crate) fn size(&self, of: Type, seq: u64) -> u64 {
        self.pages[of as usize][usize::from(modulo(seq))]
    }

    /// Pages of each kind: those of the youngest two generations are active.
    pub(crate) fn sizes(&self) -> Sizes {
        let sum = |of: Type, young: bool| {
            let numbers = self.min_seq[of as usize]..=self.max_seq;
            numbers.filter(|seq| (seq + 1 >= self.max_seq) == young).map(|seq| self.size(of, seq)).sum()
        };
        Sizes {
            inactive_anon: sum(Type::Anon, false),
            active_anon: sum(Type::Anon, true),
            inactive_file: sum(Type::File, false),
            active_file: sum(Type::File, true),
        }
    }

    /// Whether a generation is one of the youngest two: its pages count as active.
    pub(crate) fn is_young(&self, generation: u8) -> bool {
        generation == modulo(self.max_seq) || generation == modulo(self.max_seq - 1)
    }

    /// The number of the generation that a page enters. `rotates`: its write ended, and reclaim wants it
    /// (docs/theory/vm.md 4.2).
    pub(crate) fn seq_for(&self, state: &State, rules: &Rules, frame: Frame, rotates: bool) -> u64 {
        let flags = state.frames.flags(frame);
        let of = Type::of(state, frame);
        let is_busy = flags.has(Flags::RECLAIM) && flags.any(Flags::DIRTY | Flags::WRITEBACK);
        let entering = Entering {
            is_active: flags.has(Flags::ACTIVE),
            workingset: flags.has(Flags::WORKINGSET),
            waits: of == Type::Anon && !flags.has(Flags::SWAPCACHE) || is_busy,
            rotates,
        };
        entering.seq(rules.placement, self.min_seq[of as usize], self.max_seq)
    }

    /// Puts a page into its generation.
    pub(crate) fn put(&mut self, state: &mut State, rules: &Rules, frame: Frame, rotates: bool) {
        let generation = modulo(self.seq_for(state, rules, frame, rotates));
        let of = Type::of(state, frame);
        Word { generation: Some(generation), ..Word::of(state, frame) }.store(state, frame);
        state.frames.clear(frame, Flags::ACTIVE);
        self.pages[of as usize][usize::from(generation)] += 1;
        let list = list(state.zone_of(frame), of, generation);
        if rotates {
            state.push_tail(list, frame);
        } else {
            state.push_head(list, frame);
        }
    }

    /// Takes a page out of its generation, but not out of its list. Returns the generation.
    pub(crate) fn take(&mut self, state: &mut State, frame: Frame) -> Option<u8> {
        let word = Word::of(state, frame);
        let generation = word.generation?;
        self.pages[Type::of(state, frame) as usize][usize::from(generation)] -= 1;
        Word { generation: None, ..word }.store(state, frame);
        Some(generation)
    }

    /// Changes a page's generation.
    pub(crate) fn change(&mut self, state: &mut State, frame: Frame, generation: u8) {
        let word = Word::of(state, frame);
        let old = word.generation.expect("a listed page has a generation");
        let pages = &mut self.pages[Type::of(state, frame) as usize];
        pages[usize::from(old)] -= 1;
        pages[usize::from(generation)] += 1;
        Word { generation: Some(generation), ..word }.store(state, frame);
    }

    /// A page of the oldest generation gets into the next one, and its accesses are forgotten. A page that
    /// was promoted meanwhile stays in its own. Returns the generation.
    pub(crate) fn advance(&mut self, state: &mut State, rules: &Rules, frame: Frame) -> u8 {
        let oldest = self.min_seq[Type::of(state, frame) as usize];
        let is = Word::of(state, frame).generation.expect("a listed page has a generation");
        if is != modulo(oldest) {
            return is;
        }
        forget(state, rules, frame);
        self.change(state, frame, modulo(oldest + 1));
        modulo(oldest + 1)
    }

    /// The number of the oldest generation of the types that may be evicted.
    pub(crate) fn evictable(&self, rules: &Rules, swappiness: u32) -> u64 {
        let [anon, file] = self.min_seq;
        match rules.oldest {
            Oldest::Coupled if swappiness == 0 => file,
            Oldest::Coupled => anon,
            Oldest::Apart if swappiness == 0 => file,
            Oldest::Apart => anon.min(file),
        }
    }

    /// Oldest generations whose lists are empty go. Returns whether one went (`try_to_inc_min_seq`).
    pub(crate) fn drop_empty(&mut self, state: &State, rules: &Rules, swappiness: u32) -> bool {
        let types = if swappiness == 0 { &Type::ALL[1..] } else { &Type::ALL[..] };
        let mut seq = self.min_seq;
        for of in types {
            let seq = &mut seq[*of as usize];
            let is_empty =
                |seq| self.zones.iter().all(|at| state.lists.is_empty(list(*at, *of, modulo(seq))));
            while *seq + YOUNG <= self.max_seq && is_empty(*seq) {
                *seq += 1;
            }
        }
        if swappiness > 0 {
            seq = moved(rules.oldest, seq, self.min_seq[1], self.max_seq);
        }
        let mut went = false;
        for of in types {
            if seq[*of as usize] != self.min_seq[*of as usize] {
                self.control.carry(*of);
                self.min_seq[*of as usize] = seq[*of as usize];
                went = true;
            }
        }
        went
    }

    /// A new generation begins; a type that has four already loses its oldest one (`inc_max_seq`).
    pub(crate) fn begin(&mut self, state: &mut State, rules: &Rules, swappiness: u32, now: u64) {
        for of in [Type::File, Type::Anon] {
            if self.count(of) == GENERATIONS {
                self.merge_oldest(state, rules, of, swappiness);
            }
        }
        self.max_seq += 1;
        self.born[usize::from(modulo(self.max_seq))] = now;
    }

    /// The pages of the oldest generation of a type get into the next one (`inc_min_seq`;
    /// docs/theory/vm.md 4.6).
    fn merge_oldest(&mut self, state: &mut State, rules: &Rules, of: Type, swappiness: u32) {
        let oldest = modulo(self.min_seq[of as usize]);
        let may_move = of == Type::File || swappiness > 0;
        for zone in self.zones.clone().into_iter().filter(|_| may_move) {
            while let Some(frame) = state.lists.tail(list(zone, of, oldest)) {
                let had = accesses(state, rules, frame);
                let generation = self.advance(state, rules, frame);
                state.unlist(frame);
                state.push_tail(list(zone, of, generation), frame);
                // Since 6.14 these count as protected.
                if rules.placement == Placement::Workingset && !had.is_full {
                    self.control.tier_mut(of, had.tier).protected += 1;
                }
            }
        }
        self.control.carry(of);
        self.min_seq[of as usize] += 1;
    }

    /// Words, lists and counts agree.
    pub(crate) fn check(&self, state: &State) -> Result<(), String> {
        let mut counted = [[0; GENERATIONS as usize]; 2];
        let lists = |zone: usize| {
            Type::ALL
                .into_iter()
                .flat_map(move |of| (0..GENERATIONS as u8).map(move |at| (of, list(zone, of, at))))
        };
        for (of, list) in self.zones.iter().flat_map(|zone| lists(*zone)) {
            for frame in state.lists.from_tail(list) {
                let is = Word::of(state, frame).generation;
                let is = is.ok_or_else(|| format!("{frame:?} is listed, of no generation"))?;
                if state.frames.flags(frame).any(Flags::ISOLATED | Flags::ACTIVE) {
                    return Err(format!("{frame:?} is listed: {:?}", state.frames.flags(frame)));
                }
                counted[of as usize][usize::from(is)] += 1;
            }
        }
        let same = counted == self.pages;
        same.then_some(()).ok_or_else(|| format!("{counted:?} pages are listed, {:?} counted", self.pages))
    }
}

/// The oldest generations of both types, where those before `empty` are empty: none of a type's that has to
/// wait for the other one. `file`: the oldest of files until now (docs/theory/vm.md 4.8).
fn moved(oldest: Oldest, empty: [u64; 2], file: u64, youngest: u64) -> [u64; 2] {
    let ([anon_empty, file_empty], second) = (empty, youngest - YOUNG);
    match oldest {
        Oldest::Coupled => {
            let both = anon_empty.min(file_empty);
            [both, both.max(file)]
        }
        Oldest::Apart if anon_empty > second && file_empty < second => [second, file_empty],
        Oldest::Apart if file_empty > second && anon_empty < second => [anon_empty, second],
        Oldest::Apart => empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::with_knobs;

    #[test]
    fn a_page_enters_the_generation_of_its_release() {
        let other = Entering::default();
        let faulted = Entering { is_active: true, ..other };
        let (waits, rotates) = (Entering { waits: true, ..other }, Entering { rotates: true, ..other });
        let of_set = Entering { workingset: true, ..other };
        // Placement; what comes; the generation where 4 to 7 are there, where 5 to 7 are, where 6 and 7 are.
        for (knobs, entering, expected) in [
            ("placement=oldest", faulted, [7, 7, 7]),
            ("placement=oldest", waits, [5, 6, 7]),
            ("placement=oldest", other, [4, 5, 6]),
            ("placement=oldest", rotates, [4, 5, 6]),
            ("placement=second", faulted, [7, 7, 7]),
            ("placement=second", waits, [6, 6, 6]),
            ("placement=second", other, [5, 5, 6]),
            ("placement=second", of_set, [5, 5, 6]),
            ("placement=second", rotates, [4, 5, 6]),
            ("placement=workingset", faulted, [6, 6, 6]),
            ("placement=workingset", Entering { workingset: true, ..faulted }, [7, 7, 7]),
            ("placement=workingset", waits, [6, 6, 6]),
            ("placement=workingset", other, [4, 5, 6]),
            ("placement=workingset", of_set, [5, 5, 6]),
            ("placement=workingset", rotates, [4, 5, 6]),
            ("placement=workingset", Entering { workingset: true, ..rotates }, [4, 5, 6]),
            ("placement=workingset", Entering { waits: true, ..rotates }, [4, 5, 6]),
        ] {
            let rules = with_knobs::<Rules>("6.1", knobs);
            let seq = [4, 5, 6].map(|oldest| entering.seq(rules.placement, oldest, 7));
            assert_eq!(seq, expected, "{knobs} {entering:?}");
        }
    }

    #[test]
    fn the_oldest_generations_move_together_or_apart() {
        // Where generations before these are empty, of anonymous pages and of files; the youngest is 7.
        for (knobs, empty, file, expected) in [
            ("oldest=coupled", [5, 6], 4, [5, 5]),
            ("oldest=coupled", [6, 5], 4, [5, 5]),
            // Files may be ahead, since they can move when anonymous pages stay; they do not go back.
            ("oldest=coupled", [4, 6], 5, [4, 5]),
            ("oldest=apart", [4, 5], 4, [4, 5]),
            ("oldest=apart", [5, 4], 4, [5, 4]),
            // A type with only its youngest two waits for one that has four.
            ("oldest=apart", [6, 4], 4, [5, 4]),
            ("oldest=apart", [4, 6], 4, [4, 5]),
            ("oldest=apart", [6, 5], 4, [6, 5]),
            ("oldest=apart", [5, 6], 4, [5, 6]),
            ("oldest=apart", [6, 6], 4, [6, 6]),
        ] {
            let rules = with_knobs::<Rules>("6.18", knobs);
            assert_eq!(moved(rules.oldest, empty, file, 7), expected, "{knobs} {empty:?} {file}");
        }
    }
}
