//! Which pages of an object are in memory: two bits a page.
//!
//! A map is text in one of two codes. `rle:`: lengths of runs, each followed by `P` (present), `S` (swapped)
//! or `-` (absent). `b64:`: three pages in a character of base64's alphabet, two bits each from the low end,
//! 0 absent, 1 present, 2 swapped. The recording program writes the shorter one.

use std::fmt::Write;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nowhere, or in a file only.
    Absent = 0,
    /// In memory. Anonymous memory: mapped; files and tmpfs: in the page cache.
    Present = 1,
    /// Swapped out.
    Swapped = 2,
}

impl State {
    /// The states in the order of their codes.
    pub const ALL: [State; 3] = [State::Absent, State::Present, State::Swapped];

    /// Its letter in a run-length code.
    pub fn letter(self) -> char {
        ['-', 'P', 'S'][self as usize]
    }
}

/// The states of an object's pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// 32 pages a word, the first one in the lowest bits. Bits behind the last page are zero.
    words: Vec<u64>,
    pages: u32,
}

/// Why a map cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ResidencyError(pub(super) &'static str);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const IN_WORD: u32 = 32;
/// The low bit of each page.
const LOW: u64 = 0x5555_5555_5555_5555;

impl Residency {
    /// A map of `pages` pages, all absent.
    pub fn absent(pages: u32) -> Residency {
        Residency { words: vec![0; pages.div_ceil(IN_WORD) as usize], pages }
    }

    /// The map of these states.
    pub fn of(states: impl IntoIterator<Item = State>) -> Residency {
        let mut map = Residency::default();
        states.into_iter().for_each(|state| map.push(state, 1));
        map
    }

    /// The number of pages.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The state of page `page`; absent behind the end.
    pub fn get(&self, page: u32) -> State {
        let word = self.words.get((page / IN_WORD) as usize).copied().unwrap_or(0);
        match word >> (page % IN_WORD * 2) & 3 {
            1 => State::Present,
            2 => State::Swapped,
            _ => State::Absent,
        }
    }

    /// Sets the state of page `page`, below [`Residency::pages`].
    pub fn set(&mut self, page: u32, state: State) {
        assert!(page < self.pages, "page {page} of a map of {} pages", self.pages);
        let (word, shift) = (&mut self.words[(page / IN_WORD) as usize], page % IN_WORD * 2);
        *word = *word & !(3 << shift) | (state as u64) << shift;
    }

    /// The states in the order of the pages.
    pub fn states(&self) -> impl Iterator<Item = State> {
        (0..self.pages).map(|page| self.get(page))
    }

    /// How many pages have this state.
    pub fn count(&self, state: State) -> u32 {
        let ones = |bit: u32| self.words.iter().map(|word| (word >> bit & LOW).count_ones()).sum::<u32>();
        match state {
            State::Absent => self.pages - ones(0) - ones(1),
            State::Present => ones(0),
            State::Swapped => ones(1),
        }
    }

    /// How many pages have the same state in both maps. Pages that only one map has do not agree.
    pub fn agreement(&self, other: &Residency) -> u32 {
        let shared = self.pages.min(other.pages);
        let words = self.words.iter().zip(&other.words).zip(0..);
        let differ = words.map(|((one, other), index)| {
            let bits = one ^ other;
            let pages = (shared - (index * IN_WORD).min(shared)).min(IN_WORD);
            let inside = if pages == IN_WORD { u64::MAX } else { (1 << (2 * pages)) - 1 };
            ((bits | bits >> 1) & LOW & inside).count_ones()
        });
        shared - differ.sum::<u32>()
    }

    /// Adds `count` pages at the end. The caller keeps the number of pages below 2^32.
    fn push(&mut self, state: State, count: u32) {
        let fill = [0, LOW, LOW << 1][state as usize];
        let mut left = count;
        while left > 0 {
            let at = self.pages % IN_WORD;
            if at == 0 {
                self.words.push(0);
            }
            let pages = left.min(IN_WORD - at);
            let mask = if pages == IN_WORD { u64::MAX } else { (1 << (2 * pages)) - 1 };
            *self.words.last_mut().expect("a word was pushed") |= (fill & mask) << (2 * at);
            self.pages += pages;
            left -= pages;
        }
    }

    /// Reads a map of `pages` pages.
    ///
    /// # Errors
    /// A code that is neither of the two, or is not of `pages` pages.
    pub fn decode(code: &str, pages: u32) -> Result<Residency, ResidencyError> {
        let map = match code.split_once(':') {
            Some(("rle", runs)) => Self::decode_runs(runs, pages)?,
            Some(("b64", characters)) => Self::decode_base64(characters, pages)?,
            _ => return Err(ResidencyError("`rle:` or `b64:` and a map")),
        };
        if map.pages < pages { Err(ResidencyError("as many pages in the map as `pages=`")) } else { Ok(map) }
    }

    fn decode_runs(runs: &str, pages: u32) -> Result<Residency, ResidencyError> {
        let mut map = Residency::default();
        for run in runs.split_inclusive(['-', 'P', 'S']) {
            let (count, letter) = run.split_at(run.len() - run.chars().next_back().map_or(0, char::len_utf8));
            let state = State::ALL.into_iter().find(|state| letter.starts_with(state.letter()));
            let count: Option<u32> = crate::text::number(count);
            let (state, count) = state.zip(count).ok_or(ResidencyError("runs such as `12P`, `3S`, `5-`"))?;
            if count > pages - map.pages {
                return Err(ResidencyError("as many pages in the map as `pages=`"));
            }
            map.push(state, count);
        }
        Ok(map)
    }

    fn decode_base64(characters: &str, pages: u32) -> Result<Residency, ResidencyError> {
        if characters.len() as u64 != u64::from(pages.div_ceil(3)) {
            return Err(ResidencyError("a character of base64 for each three pages"));
        }
        let mut map = Residency::default();
        for &character in characters.as_bytes() {
            let value = ALPHABET.iter().position(|&known| known == character);
            let value = value.ok_or(ResidencyError("characters of base64"))?;
            for code in [value & 3, value >> 2 & 3, value >> 4] {
                match State::ALL.get(code) {
                    Some(_) if map.pages == pages && code > 0 => {
                        return Err(ResidencyError("zeros behind the last page"));
                    }
                    Some(_) if map.pages == pages => {}
                    Some(state) => map.push(*state, 1),
                    None => return Err(ResidencyError("the states 0, 1 and 2")),
                }
            }
        }
        Ok(map)
    }

    /// The map as text, in the shorter code.
    pub fn encode(&self) -> String {
        let mut runs = String::from("rle:");
        let mut page = 0;
        while page < self.pages {
            let state = self.get(page);
            let end = (page..self.pages).find(|&next| self.get(next) != state).unwrap_or(self.pages);
            write!(runs, "{}{}", end - page, state.letter()).expect("a string takes all text");
            page = end;
        }
        let characters = self.pages.div_ceil(3) as usize;
        if runs.len() - "rle:".len() < characters {
            return runs;
        }
        let character = |first: u32| {
            let code = |page: u32| self.get(page) as usize;
            char::from(ALPHABET[code(first) | code(first + 1) << 2 | code(first + 2) << 4])
        };
        "b64:".chars().chain((0..self.pages).step_by(3).map(character)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(pages: u32, seed: u64, change_every: u64) -> Residency {
        let (mut state, mut random) = (State::Absent, seed);
        Residency::of((0..pages).map(|_| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if (random >> 33) % change_every == 0 {
                state = State::ALL[(random >> 50) as usize % 3];
            }
            state
        }))
    }

    #[test]
    fn a_map_is_read_as_it_was_written() {
        for pages in [1, 2, 3, 31, 32, 33, 64, 95, 1000] {
            for (seed, every) in [(1, 1), (2, 3), (3, 50), (4, 1 << 20)] {
                let map = drawn(pages, seed, every);
                assert_eq!(Residency::decode(&map.encode(), pages), Ok(map.clone()), "{}", map.encode());
                let states: Vec<State> = map.states().collect();
                for state in State::ALL {
                    let count = states.iter().filter(|&&other| other == state).count();
                    assert_eq!(map.count(state) as usize, count, "{state:?} of {}", map.encode());
                }
            }
        }
    }

    #[test]
    fn agreement_counts_equal_pages() {
        for (pages, others) in [(1, 1), (33, 33), (100, 70), (70, 100), (64, 96)] {
            let (one, other) = (drawn(pages, 5, 2), drawn(others, 6, 2));
            let equal = one.states().zip(other.states()).filter(|(one, other)| one == other).count();
            assert_eq!(one.agreement(&other) as usize, equal, "{pages} and {others} pages");
            assert_eq!(one.agreement(&one), pages);
        }
    }

    #[test]
    fn codes() {
        #[track_caller]
        fn check(code: &str, pages: u32, expected: Result<&str, &str>) {
            let found = Residency::decode(code, pages);
            let found = found.map(|map| map.states().map(State::letter).collect::<String>());
            assert_eq!(found, expected.map(str::to_string).map_err(|_| found.clone().unwrap_err()), "{code}");
            if let (Err(error), Err(why)) = (found, expected) {
                assert!(error.0.contains(why), "{code}: {error}");
            }
        }
        check("rle:2P1S1-", 4, Ok("PPS-"));
        check("rle:2P1S", 4, Err("as many pages"));
        check("rle:4000000000P", 4, Err("as many pages"));
        check("rle:2X", 2, Err("runs such as"));
        check("rle:P", 2, Err("runs such as"));
        check("rle:2P2", 4, Err("runs such as"));
        check("rle:2é", 2, Err("runs such as"));
        check("b64:JB", 4, Ok("PS-P"));
        check("b64:JE", 4, Err("zeros behind"));
        check("b64:D", 1, Err("the states"));
        check("b64:J", 4, Err("a character of base64"));
        check("b64:=", 1, Err("characters of base64"));
        check("P", 1, Err("`rle:`"));
    }
}
