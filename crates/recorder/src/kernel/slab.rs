//! The free objects of one slab.
//!
//! Each free object has the address of the next one in it, encoded in kernels that harden their lists: XOR a
//! secret of the cache XOR the byte-swapped address of the word (docs/theory/slub.md 7).

use super::bpf::PIECE;
use super::memory::Memory;
use super::words::word_at;

/// What of a cache says where its free objects are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    /// Bytes from one object to the next.
    pub(super) size: u64,
    /// Bytes in front of the first object.
    pub(super) pad: u64,
    /// Where the link is in an object.
    pub(super) at: u64,
    /// The secret; `None` for links as they are.
    pub(super) random: Option<u64>,
}

impl Links {
    fn decode(&self, stored: u64, at: u64) -> u64 {
        self.random.map_or(stored, |random| stored ^ random ^ at.swap_bytes())
    }

    /// The objects of a list that begins with the object at `first`, by their places in the slab at
    /// `address`; `None` if a link leads elsewhere or in a circle: the list changed meanwhile.
    pub(super) fn walk(
        &self,
        memory: &mut impl Memory,
        (address, objects): (u64, u16),
        first: u64,
    ) -> Option<Vec<u16>> {
        let mut found = Vec::new();
        if first == 0 {
            return Some(found);
        }
        // One read for all of the slab's objects, where they are not more than one read gives.
        let bytes = (self.pad + u64::from(objects) * self.size) as usize;
        let slab = (bytes <= PIECE).then(|| memory.bytes(address, bytes).map(<[u8]>::to_vec));
        let slab = match slab {
            Some(None) => return None,
            Some(slab) => slab,
            None => None,
        };
        let mut next = first;
        while next != 0 {
            let place = next.checked_sub(address + self.pad)?;
            let index = place / self.size;
            let is_object = place.is_multiple_of(self.size) && index < u64::from(objects);
            if !is_object || found.len() >= usize::from(objects) {
                return None;
            }
            found.push(index as u16);
            let at = next + self.at;
            let stored = match &slab {
                Some(slab) => word_at(slab, at - address),
                None => memory.word(at)?,
            };
            next = self.decode(stored, at);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::tests::Fake;
    use super::*;

    const SLAB: u64 = 0xffff_8880_0010_0000;

    /// Walks a slab of eight objects of 64 bytes whose list is `links`.
    #[track_caller]
    fn check(links: Links, list: &[u16], expected: Option<&[u16]>) {
        let mut words = vec![0u64; 8 * 8 + 8];
        let object = |index: u16| SLAB + links.pad + u64::from(index) * links.size;
        // From the end: of an object that stands twice in the list the first link counts.
        for (at, index) in list.iter().enumerate().rev() {
            let word = object(*index) + links.at;
            let next = list.get(at + 1).map_or(0, |next| object(*next));
            let slot = ((word - SLAB) / 8) as usize;
            let encoded = links.decode(next, word);
            if let Some(slot) = words.get_mut(slot) {
                *slot = encoded;
            }
        }
        let mut memory = Fake::default();
        memory.put(SLAB, &words);
        let first = list.first().map_or(0, |index| object(*index));
        assert_eq!(links.walk(&mut memory, (SLAB, 8), first).as_deref(), expected);
    }

    #[test]
    fn lists_are_walked_in_their_order() {
        let plain = Links { size: 64, pad: 0, at: 0, random: None };
        let hardened = Links { random: Some(0x1234_5678_9abc_def0), at: 32, ..plain };
        for links in [plain, hardened, Links { pad: 64, ..hardened }] {
            check(links, &[], Some(&[]));
            check(links, &[3], Some(&[3]));
            check(links, &[7, 0, 4], Some(&[7, 0, 4]));
            check(links, &[0, 1, 2, 3, 4, 5, 6, 7], Some(&[0, 1, 2, 3, 4, 5, 6, 7]));
            // An object of another slab, and a circle.
            check(links, &[3, 8], None);
            check(links, &[1, 2, 1], None);
        }
    }

    #[test]
    fn a_list_that_is_not_encoded_as_assumed_is_none() {
        let mut memory = Fake::default();
        memory.put(SLAB, &[SLAB + 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let links = Links { size: 64, pad: 0, at: 0, random: None };
        assert_eq!(links.walk(&mut memory, (SLAB, 2), SLAB), Some(vec![0, 1]));
        let other = Links { random: Some(99), ..links };
        assert_eq!(other.walk(&mut memory, (SLAB, 2), SLAB), None);
        assert_eq!(links.walk(&mut memory, (SLAB, 2), SLAB + 8), None, "no object begins there");
        assert_eq!(links.walk(&mut memory, (SLAB + 64, 2), SLAB), None, "in front of the slab");
    }
}
