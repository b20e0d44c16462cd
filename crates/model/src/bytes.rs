//! The bytes of a machine's objects, read and written over the frames that they are in.

use crate::contents::Contents;
use crate::level::Level;
use crate::memory::{Addr, Memory};
use slablab_platform::Pfn;
use slablab_platform::bytes::{find_other, pieces, put};

impl<L: Level> Memory<L> {
    /// Calls `f` with a frame's contents, made if there are none and `make` says so.
    fn with_contents<T>(&self, pfn: Pfn, make: bool, f: impl FnOnce(&mut Contents) -> T) -> Option<T> {
        let cell = self.contents(pfn);
        let mut contents = match cell.take() {
            Some(contents) => contents,
            None if make => Box::default(),
            None => return None,
        };
        let before = contents.bytes();
        let result = f(&mut contents);
        self.count_contents(contents.bytes() as isize - before as isize);
        cell.set(Some(contents));
        Some(result)
    }

    /// A range of bytes by frames: the frame, the first byte in it, bytes in it, and how many of the range
    /// came before.
    fn by_frame(&self, at: Addr, bytes: u32) -> impl Iterator<Item = (Pfn, u32, u32, u32)> {
        let (mut pfn, mut offset) = self.locate(at);
        let mut before = 0;
        std::iter::from_fn(move || {
            let here = (bytes - before).min((1 << self.page_shift()) - offset);
            let part = (pfn, offset, here, before);
            (pfn, offset, before) = (pfn.plus(1), 0, before + here);
            (here > 0).then_some(part)
        })
    }

    pub(crate) fn fill(&self, at: Addr, bytes: u32, value: u8) {
        for (pfn, offset, bytes, _) in self.by_frame(at, bytes) {
            self.with_contents(pfn, value != 0, |contents| {
                let words = &mut contents.whole(self.page_shift())[offset as usize / 8..];
                for (word, piece) in words.iter_mut().zip(pieces(offset & 7, bytes)) {
                    *word = put(*word, piece, value);
                }
            });
        }
    }

    pub(crate) fn differs(&self, at: Addr, bytes: u32, value: u8) -> Option<(u32, u8)> {
        self.by_frame(at, bytes).find_map(|(pfn, offset, bytes, before)| {
            let find = |contents: &mut Contents| {
                let words = &contents.whole(self.page_shift())[offset as usize / 8..];
                let mut pairs = words.iter().zip(pieces(offset & 7, bytes));
                pairs.find_map(|(word, piece)| find_other(*word, piece, value))
            };
            let untouched = || (value != 0).then_some((0, 0));
            let (at, found) = self.with_contents(pfn, false, find).unwrap_or_else(untouched)?;
            Some((before + at, found))
        })
    }

    pub(crate) fn word(&self, at: Addr) -> u64 {
        let (pfn, offset) = self.locate(at);
        let read = |contents: &mut Contents| contents.whole(self.page_shift())[offset as usize / 8];
        self.with_contents(pfn, false, read).unwrap_or(0)
    }

    pub(crate) fn set_word(&self, at: Addr, value: u64) {
        let (pfn, offset) = self.locate(at);
        self.with_contents(pfn, value != 0, |contents| {
            contents.whole(self.page_shift())[offset as usize / 8] = value
        });
    }

    pub(crate) fn mark(&self, object: Addr, live: bool) -> bool {
        let (pfn, offset) = self.locate(object);
        let (word, bit) = (offset as usize / 512, 1 << (offset / 8 % 64));
        let marked =
            self.with_contents(pfn, live, |contents| contents.mark(self.page_shift(), (word, bit), live));
        marked.unwrap_or(false)
    }
}
