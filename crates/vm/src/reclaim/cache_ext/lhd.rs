//! LHD, the least hit density (Beckmann, Chen, Cidon: "LHD: Improving Cache Hit Rate by Maximizing Hit
//! Density", NSDI 2018).
//!
//! A page's hit density is the hits that it can expect over the time that it will be in memory. It is known
//! by the page's age (accesses of all pages since its last one) and by its class (its age at that access): of
//! how many pages of this class and age, or older, were hit, and how many were evicted. Of a sample of pages
//! the one with the lowest density goes.
//!
//! ```text
//! access ── hit at this age: counted ── class: by this age; age 0
//! next ─── 32 pages at random ── lowest density ── evicted at this age: counted
//! each so many accesses: densities from the counts, which then count nine tenths
//! ```
//!
//! A few pages explore: they stay until they are hit. Without them no hit is seen at an age that no page gets
//! to. Ages are counted in sixteenths of the number of pages. Until the first densities are known the oldest
//! page of the sample goes.

use super::{BATCH, Order, Ordered, counts, presets};
use crate::ids::Frame;
use crate::knob::{Knob, Policy, Preset, knob};
use crate::lists::ListId;
use crate::state::State;
use crate::vm::Replacement;

/// Holds every page, in no order.
const LIST: ListId = ListId(0);
/// Ages that are told apart; an older page has the last one.
const AGES: usize = 128;
/// Classes, by the logarithm of the last age; the first is of pages that were not hit.
const CLASSES: usize = 8;
/// Accesses between two computations of the densities, for each page in memory.
const EVERY: u64 = 4;
/// One page in so many explores, and at most one in a hundred of those in memory.
const EXPLORES: u64 = 32;
/// What counts weigh after a computation.
const DECAY: f64 = 0.9;

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Pages of a sample.
    pub sample: u32,
}

impl Policy for Choices {
    const WORD: &'static str = "lhd";
    const PRESETS: &'static [Preset<Choices>] =
        presets!("LHD: of a sample of pages the one with the least hit density goes", Choices { sample: 32 });
    const KNOBS: &'static [Knob<Choices>] =
        &[knob!("sample", "pages of which one goes", sample: number 1 to 256)];

    fn build(self, name: String) -> Box<dyn Replacement> {
        Box::new(Ordered::new(name, Density::new(self)))
    }
}

/// What is known of a page in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Which one it is: owner and index of its frame.
    of: (u32, u32),
    /// Its place among all pages.
    place: u32,
    /// When it was accessed last, and its class.
    last: u64,
    class: u8,
    /// Its write ended: it is the next to go.
    is_next: bool,
    /// It stays until it is hit, or as old as ages go: to learn of ages at which no other page is left.
    explores: bool,
}

/// Counts and densities of one class.
#[derive(Clone, Debug)]
struct Class {
    hits: [f64; AGES],
    evictions: [f64; AGES],
    density: [f64; AGES],
}

impl Class {
    /// Nothing is known: the older a page, the less it is worth.
    fn new() -> Class {
        let density = std::array::from_fn(|age| 1.0 / (age + 1) as f64);
        Class { hits: [0.0; AGES], evictions: [0.0; AGES], density }
    }

    /// The densities by what was counted; without a count an age keeps its own. Counts weigh less from then
    /// on.
    fn compute(&mut self) {
        let (mut hits, mut events, mut lifetime) = (0.0, 0.0, 0.0);
        for age in (0..AGES).rev() {
            hits += self.hits[age];
            events += self.hits[age] + self.evictions[age];
            lifetime += events;
            if events > 0.0 {
                self.density[age] = hits / lifetime;
            }
        }
        self.hits.iter_mut().chain(&mut self.evictions).for_each(|count| *count *= DECAY);
    }
}

struct Density {
    choices: Choices,
    /// Accesses so far, and when the densities are computed next.
    now: u64,
    next: u64,
    /// Pages in memory, and what is known of each, by its frame.
    pages: Vec<Frame>,
    known: Vec<Page>,
    classes: Vec<Class>,
    /// Pages that explore.
    explorers: u64,
    /// The state of the generator of samples.
    random: u64,
}

impl Density {
    fn new(choices: Choices) -> Density {
        let classes = vec![Class::new(); CLASSES];
        let (pages, known) = (Vec::new(), Vec::new());
        Density { choices, now: 0, next: 256, pages, known, classes, explorers: 0, random: 1 }
    }

    fn page(&mut self, frame: Frame) -> &mut Page {
        let at = frame.0 as usize;
        if at >= self.known.len() {
            self.known.resize(at + 1, Page::default());
        }
        &mut self.known[at]
    }

    /// A page's age in the unit of counts.
    fn age(&self, page: &Page) -> usize {
        let unit = (self.pages.len() as u64 / 16).max(1);
        ((self.now - page.last) / unit).min(AGES as u64 - 1) as usize
    }

    /// A page was just read.
    fn begin(&mut self, state: &State, frame: Frame) {
        // The page before may have been unlinked while it explored.
        self.explores_no_more(frame);
        let page = Page { of: id(state, frame), last: self.now, ..Page::default() };
        *self.page(frame) = page;
        self.explore(frame);
    }

    /// A page that was just accessed may explore from then on.
    fn explore(&mut self, frame: Frame) {
        let explores =
            self.draw().is_multiple_of(EXPLORES) && self.explorers * 100 <= self.pages.len() as u64;
        self.explorers += u64::from(explores);
        self.page(frame).explores = explores;
    }

    fn explores_no_more(&mut self, frame: Frame) {
        self.explorers -= u64::from(std::mem::take(&mut self.page(frame).explores));
    }

    fn add(&mut self, state: &mut State, frame: Frame) {
        let place = self.pages.len() as u32;
        self.page(frame).place = place;
        self.pages.push(frame);
        state.push_head(LIST, frame);
    }

    /// Steele, Lea, Flood 2014 (splitmix64).
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A page's worth: that of one whose write ended is none.
    fn density(&self, frame: Frame) -> f64 {
        let page = &self.known[frame.0 as usize];
        let age = self.age(page);
        match () {
            () if page.is_next => -1.0,
            () if page.explores && age < AGES - 1 => 1.0,
            () => self.classes[usize::from(page.class)].density[age],
        }
    }
}

/// Which page a frame has.
fn id(state: &State, frame: Frame) -> (u32, u32) {
    (state.frames.owner(frame), state.frames.index(frame))
}

/// The class of a page that was hit at an age.
fn class_of(age: usize) -> u8 {
    1 + age.max(1).ilog2() as u8
}

impl Order for Density {
    const LISTS: u16 = 1;

    fn enter(&mut self, state: &mut State, frame: Frame, _shadow: Option<u32>) {
        self.begin(state, frame);
        self.add(state, frame);
    }

    fn access(&mut self, state: &mut State, frame: Frame) {
        self.now += 1;
        if self.now >= self.next {
            self.next = self.now + EVERY * self.pages.len() as u64;
            self.classes.iter_mut().for_each(Class::compute);
        }
        if counts(state, frame) {
            let page = *self.page(frame);
            let age = self.age(&page);
            self.classes[usize::from(page.class)].hits[age] += 1.0;
            *self.page(frame) = Page { last: self.now, class: class_of(age), is_next: false, ..page };
            self.explores_no_more(frame);
            self.explore(frame);
        }
    }

    fn next(&mut self, state: &mut State, fits: &dyn Fn(&State, Frame) -> bool) -> Vec<Frame> {
        let mut batch: Vec<Frame> = Vec::new();
        for _ in 0..BATCH.min(self.pages.len()) {
            let mut lowest: Option<(f64, Frame)> = None;
            for _ in 0..self.choices.sample {
                let at = (self.draw() % self.pages.len() as u64) as usize;
                let frame = self.pages[at];
                let density = self.density(frame);
                let is_lower = lowest.is_none_or(|(other, _)| density < other);
                if is_lower && fits(state, frame) && !batch.contains(&frame) {
                    lowest = Some((density, frame));
                }
            }
            batch.extend(lowest.map(|(_, frame)| frame));
        }
        batch
    }

    fn leaves(&mut self, _state: &mut State, frame: Frame) {
        let place = self.page(frame).place as usize;
        self.pages.swap_remove(place);
        if let Some(moved) = self.pages.get(place).copied() {
            self.page(moved).place = place as u32;
        }
    }

    fn evict(&mut self, _state: &mut State, frame: Frame) -> u32 {
        let page = *self.page(frame);
        let age = self.age(&page);
        self.classes[usize::from(page.class)].evictions[age] += 1.0;
        self.explores_no_more(frame);
        0
    }

    /// A page that compaction moved to this frame counts as just read.
    fn put_back(&mut self, state: &mut State, frame: Frame, is_next: bool) {
        if self.page(frame).of != id(state, frame) {
            self.begin(state, frame);
        }
        self.page(frame).is_next = is_next;
        self.add(state, frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_density_is_the_hits_to_come_over_the_time_to_come() {
        // Counts at ages: hits and evictions; the densities at ages 0, 1 and 2.
        for (hits, evictions, expected) in [
            // One page, hit at age 0: one hit in one unit of time.
            ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.5, 1.0 / 3.0]),
            // It is hit at age 2: one hit, in three, two, one.
            ([0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0 / 3.0, 0.5, 1.0]),
            // One is hit at once, another is evicted at age 2.
            ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.25, 0.0, 0.0]),
        ] {
            let mut class = Class::new();
            class.hits[..3].copy_from_slice(&hits);
            class.evictions[..3].copy_from_slice(&evictions);
            class.compute();
            assert_eq!(class.density[..3], expected, "{hits:?} {evictions:?}");
            assert_eq!(class.hits[0], hits[0] * DECAY);
        }
    }

    #[test]
    fn pages_are_of_a_class_by_the_age_at_which_they_were_hit() {
        for (age, expected) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (127, 7)] {
            assert_eq!(class_of(age), expected, "{age}");
            assert!(usize::from(class_of(age)) < CLASSES);
        }
    }
}
