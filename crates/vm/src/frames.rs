//! Page frames: one array, indexed by the frame's number, of the words that a frame has.
//!
//! The words of a frame lie together, as a step on a page reads most of them: half a cache line each. The
//! array is zero at first and never walked as a whole, so frames that nothing touches cost address space and
//! no memory.

use crate::ids::Frame;
use std::ops::{BitAnd, BitOr, Not};

/// Facts about a frame. Names are those of the kernel's page flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// The frame holds a page of this crate: of a file, of tmpfs, or anonymous.
    pub const USED: Flags = Flags(1);
    /// Somebody reads into it or takes it apart; others wait.
    pub const LOCKED: Flags = Flags(1 << 1);
    /// Its contents are those of its page.
    pub const UPTODATE: Flags = Flags(1 << 2);
    /// Its contents are newer than those on the disk.
    pub const DIRTY: Flags = Flags(1 << 3);
    /// A write of it is under way.
    pub const WRITEBACK: Flags = Flags(1 << 4);
    /// It was accessed since the policy last looked (`PG_referenced`).
    pub const REFERENCED: Flags = Flags(1 << 5);
    /// It is on, or belongs on, an active list.
    pub const ACTIVE: Flags = Flags(1 << 6);
    /// It is in a list of the policy; not while it is isolated.
    pub const LISTED: Flags = Flags(1 << 7);
    /// Its page goes to swap: anonymous or tmpfs (`PG_swapbacked`).
    pub const SWAPBACKED: Flags = Flags(1 << 8);
    /// It is in the swap cache: [`Frames::slot`] is its slot.
    pub const SWAPCACHE: Flags = Flags(1 << 9);
    /// Its page was part of the working set (`PG_workingset`).
    pub const WORKINGSET: Flags = Flags(1 << 10);
    /// Reclaim wants it when its write ends (`PG_reclaim`).
    pub const RECLAIM: Flags = Flags(1 << 11);
    /// A read of it starts the next window of read-ahead (`PG_readahead`).
    pub const READAHEAD: Flags = Flags(1 << 12);
    /// It cannot be evicted (`mlock`, ramfs).
    pub const UNEVICTABLE: Flags = Flags(1 << 13);
    /// It has buffer heads.
    pub const BUFFERS: Flags = Flags(1 << 14);
    /// Its page is anonymous: its owner is a family of regions.
    pub const ANON: Flags = Flags(1 << 15);
    /// Read-ahead brought it, and nobody has asked for it.
    pub const SPECULATIVE: Flags = Flags(1 << 16);
    /// The frame failed to read or write.
    pub const ERROR: Flags = Flags(1 << 17);
    /// One reclaimer has taken it from its list and holds it: nobody else frees the frame.
    pub const ISOLATED: Flags = Flags(1 << 18);
    /// Its page is gone while a reclaimer held the frame: the reclaimer frees it.
    pub const GONE: Flags = Flags(1 << 19);
    /// A page fault brings the page, be it by read-ahead; the code that serves the fault sets it before
    /// [`crate::Replacement::enter`].
    pub const FAULT: Flags = Flags(1 << 20);
    /// First flag that belongs to the policy alone.
    pub const POLICY: Flags = Flags(1 << 24);

    /// Whether all of `flags` are set.
    #[inline]
    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether one of `flags` is set.
    #[inline]
    pub const fn any(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitAnd for Flags {
    type Output = Flags;
    fn bitand(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
}

impl Not for Flags {
    type Output = Flags;
    fn not(self) -> Flags {
        Flags(!self.0)
    }
}

/// The frames of a machine.
#[derive(Debug, Default)]
pub struct Frames {
    words: Vec<[u32; WORDS]>,
    /// Frames that hold a page.
    used: u32,
}

/// Words of a frame. Arrays of numbers are zero without being written; a struct of them would be written.
const WORDS: usize = 8;
const FLAGS: usize = 0;
/// The mapping (a file, tmpfs) or the family of regions (anonymous) of its page.
const OWNER: usize = 1;
/// Where its page is in the owner.
const INDEX: usize = 2;
/// Its swap slot, while it is in the swap cache.
const SLOT: usize = 3;
/// Page table entries that map it.
const MAPPED: usize = 4;
/// The policy's: an age, a generation and its references.
const POLICY: usize = 5;
/// The contents of its page, for checks: a number that a write changes and that I/O carries along.
const CONTENT: usize = 6;

impl Frames {
    /// Frames of a machine of `count` frames, all unused.
    pub fn new(count: u32) -> Frames {
        Frames { words: vec![[0; WORDS]; count as usize], used: 0 }
    }

    /// Frames that hold a page.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Frames of the machine.
    pub fn count(&self) -> u32 {
        self.words.len() as u32
    }

    /// Makes a frame hold a page. Everything that an earlier page left is forgotten.
    pub fn begin(&mut self, frame: Frame, owner: u32, index: u32, flags: Flags) {
        let words = &mut self.words[frame.0 as usize];
        assert!(words[FLAGS] == 0, "frame {} is used: {:#x}", frame.0, words[FLAGS]);
        *words = [0; WORDS];
        (words[FLAGS], words[OWNER], words[INDEX]) = ((flags | Flags::USED).0, owner, index);
        self.used += 1;
    }

    /// The frame holds no page any more. It is mapped nowhere and in no list.
    pub fn end(&mut self, frame: Frame) {
        let flags = self.flags(frame);
        assert!(
            !flags.any(Flags::LISTED | Flags::ISOLATED | Flags::SWAPCACHE | Flags::WRITEBACK),
            "frame {frame:?}: {flags:?}"
        );
        assert!(self.mapped(frame) == 0, "frame {frame:?} is mapped");
        self.words[frame.0 as usize][FLAGS] = 0;
        self.used -= 1;
    }

    /// Its flags; none if it holds no page.
    #[inline]
    pub fn flags(&self, frame: Frame) -> Flags {
        Flags(self.words[frame.0 as usize][FLAGS])
    }

    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(&self, frame: Frame, flags: Flags) -> bool {
        self.flags(frame).has(flags)
    }

    /// Sets `flags`.
    #[inline]
    pub fn set(&mut self, frame: Frame, flags: Flags) {
        self.words[frame.0 as usize][FLAGS] |= flags.0;
    }

    /// Clears `flags`. Returns those that were set.
    #[inline]
    pub fn clear(&mut self, frame: Frame, flags: Flags) -> Flags {
        let word = &mut self.words[frame.0 as usize][FLAGS];
        let were = Flags(*word & flags.0);
        *word &= !flags.0;
        were
    }

    /// The owner's number: of a mapping, or of a family of regions if the page is anonymous.
    pub fn owner(&self, frame: Frame) -> u32 {
        self.words[frame.0 as usize][OWNER]
    }

    /// The page's index in its owner.
    pub fn index(&self, frame: Frame) -> u32 {
        self.words[frame.0 as usize][INDEX]
    }

    /// Gives the frame's page to another owner: tmpfs hands a page to the swap cache, and takes it back.
    pub fn give(&mut self, frame: Frame, owner: u32, index: u32) {
        let words = &mut self.words[frame.0 as usize];
        (words[OWNER], words[INDEX]) = (owner, index);
    }

    /// The swap slot of a frame in the swap cache.
    pub fn slot(&self, frame: Frame) -> Option<u32> {
        self.has(frame, Flags::SWAPCACHE).then(|| self.words[frame.0 as usize][SLOT])
    }

    /// Sets the swap slot.
    pub(crate) fn set_slot(&mut self, frame: Frame, slot: u32) {
        self.words[frame.0 as usize][SLOT] = slot;
    }

    /// Page table entries that map it.
    #[inline]
    pub fn mapped(&self, frame: Frame) -> u32 {
        self.words[frame.0 as usize][MAPPED]
    }

    /// One more or one fewer page table entry maps it.
    pub(crate) fn map(&mut self, frame: Frame, more: bool) {
        let mapped = &mut self.words[frame.0 as usize][MAPPED];
        *mapped = if more { *mapped + 1 } else { *mapped - 1 };
    }

    /// The policy's word.
    #[inline]
    pub fn policy(&self, frame: Frame) -> u32 {
        self.words[frame.0 as usize][POLICY]
    }

    /// Sets the policy's word.
    #[inline]
    pub fn set_policy(&mut self, frame: Frame, word: u32) {
        self.words[frame.0 as usize][POLICY] = word;
    }

    /// The contents of its page.
    #[inline]
    pub fn content(&self, frame: Frame) -> u32 {
        self.words[frame.0 as usize][CONTENT]
    }

    /// Changes the contents of its page.
    #[inline]
    pub fn set_content(&mut self, frame: Frame, content: u32) {
        self.words[frame.0 as usize][CONTENT] = content;
    }
}
