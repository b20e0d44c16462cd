//! Bytes of objects, kept for the frames into which bytes were written. Only debugging writes bytes.
//!
//! A frame has contents from the first write on that is not of zeros; until then, and until its slab goes, it
//! reads as 0.

/// What was written into one frame. Empty until it is needed.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The frame's bytes.
    words: Vec<u64>,
    /// A bit for each word: whether the object that starts there is handed out.
    live: Vec<u64>,
}

impl Contents {
    /// The number of bytes that the written contents take.
    pub(crate) fn bytes(&self) -> usize {
        (self.words.len() + self.live.len()) * 8
    }

    /// The frame's words, all of them.
    pub(crate) fn whole(&mut self, page_shift: u32) -> &mut [u64] {
        self.words.resize(1 << (page_shift - 3), 0);
        &mut self.words
    }

    /// Sets the bit of an object, and returns what it was.
    pub(crate) fn mark(&mut self, page_shift: u32, (word, bit): (usize, u64), live: bool) -> bool {
        self.live.resize(1 << (page_shift - 9), 0);
        let before = self.live[word];
        self.live[word] = if live { before | bit } else { before & !bit };
        before & bit != 0
    }
}
