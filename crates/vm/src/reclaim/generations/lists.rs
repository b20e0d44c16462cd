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
use crate::replacement::Sizes;
use crate::shrinker::Owed;
use crate::state::State;
use std::rc::Rc;

/// Pages that one step moves or looks at (memory: `MAX_LRU_BATCH`).
pub(crate) const MOST: u32 = 4096;

/// The list of a zone, a type, and a generation by its number modulo four.
pub(crate) fn list(zone: usize, of: Type, generation: u8) -> ListId {
    ListId(((zone * 2 + of as usize) * GENERATIONS as usize + usize::from(generation)) as u16)
}

/// A generation's number modulo four.
pub(crate) fn modulo(seq: u64) -> u8 {
    (seq % GENERATIONS) as u8
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

    /// The number of the generation that a page enters. `rotates`: its write ended, and reclaim wants it.
    pub(crate) fn seq_for(&self, state: &State, rules: &Rules, frame: Frame, rotates: bool) -> u64 {
        let flags = state.frames.flags(frame);
        let of = Type::of(state, frame);
        let oldest = self.min_seq[of as usize];
        let is_busy = flags.has(Flags::RECLAIM) && flags.any(Flags::DIRTY | Flags::WRITEBACK);
        // An anonymous page without a slot, or a page that is written: it cannot go at once.
        let waits = of == Type::Anon && !flags.has(Flags::SWAPCACHE) || is_busy;
        let is_active = flags.has(Flags::ACTIVE);
        match rules.placement {
            Placement::Oldest | Placement::SecondOldest if is_active => self.max_seq,
            Placement::Oldest if waits => oldest + 1,
            Placement::Oldest => oldest,
            Placement::SecondOldest if waits => self.max_seq - 1,
            Placement::SecondOldest if rotates || oldest + YOUNG >= self.max_seq => oldest,
            Placement::SecondOldest => oldest + 1,
            Placement::Workingset => {
                let workingset = u64::from(flags.has(Flags::WORKINGSET));
                let back = match () {
                    () if is_active => YOUNG - workingset,
                    () if rotates => GENERATIONS,
                    () if waits => YOUNG,
                    () => GENERATIONS - workingset,
                };
                (self.max_seq + 1).saturating_sub(back).max(oldest)
            }
        }
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
        let second = self.max_seq - YOUNG;
        if swappiness > 0 {
            let [anon, file] = seq;
            seq = match rules.oldest {
                Oldest::Coupled => [anon.min(file), anon.min(file).max(self.min_seq[1])],
                Oldest::Apart if anon > second && file < second => [second, file],
                Oldest::Apart if file > second && anon < second => [anon, second],
                Oldest::Apart => seq,
            };
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

    /// The pages of the oldest generation of a type get into the next one (`inc_min_seq`).
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
