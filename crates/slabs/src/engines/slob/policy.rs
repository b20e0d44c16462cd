//! SLOB's policies and their presets: 2.6.32 and 6.1.

use crate::knob::{Knob, Policy, Values, knob};
use crate::release::Release;

/// The list of a full page that gets its first free block (docs/theory/slob.md 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readd {
    /// The small objects' list, whatever was freed.
    Small,
    /// The list of the freed size.
    BySize,
}

/// How a kmalloc's object is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmallocAlign {
    /// To a word.
    Word,
    /// A power of two to itself, all else to a word: every kmalloc of the recorded 6.1.
    PowersOfTwo,
}

/// SLOB as a set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlobPolicy {
    /// The release these policies are of.
    pub release: Release,
    /// Requests of fewer bytes, with the header, are on the small objects' list.
    pub small_below: u32,
    /// Requests of fewer bytes are on the medium objects' list, all others on the large ones'.
    pub medium_below: u32,
    /// Whether the next search begins where this one ended; else at the page that was listed last.
    pub next_fit: bool,
    /// Where a full page is listed again.
    pub readd: Readd,
    /// Alignment of kmalloc's objects.
    pub kmalloc_align: KmallocAlign,
}

const V2_6_32: SlobPolicy = SlobPolicy {
    release: Release::new(2, 6, 32),
    small_below: 256,
    medium_below: 1024,
    next_fit: true,
    readd: Readd::Small,
    kmalloc_align: KmallocAlign::Word,
};

const V6_1: SlobPolicy = SlobPolicy {
    release: Release::new(6, 1, 0),
    readd: Readd::BySize,
    kmalloc_align: KmallocAlign::PowersOfTwo,
    ..V2_6_32
};

impl Policy for SlobPolicy {
    const ENGINE: &'static str = "slob";
    const PRESETS: &'static [SlobPolicy] = &[V2_6_32, V6_1];
    const KNOBS: &'static [Knob<SlobPolicy>] = &[
        knob!(
            "small_below", "bytes from which requests leave the small list (docs/theory/slob.md 2)",
            small_below: number 0 to 65536
        ),
        knob!(
            "medium_below",
            "bytes from which requests leave the medium list; both 65536: one list (docs/theory/slob.md 2)",
            medium_below: number 0 to 65536
        ),
        knob!(
            "next_fit", "a search begins where the last one ended (docs/theory/slob.md 3)",
            next_fit: no or yes
        ),
        knob!(
            "readd", "list of a full page that gets a free block (docs/theory/slob.md 5)",
            readd: Readd ["small" = Small, "by-size" = BySize]
        ),
        knob!(
            "kmalloc_align", "alignment of kmalloc's objects (docs/theory/slob.md 4; recorded 6.1)",
            kmalloc_align: KmallocAlign ["word" = Word, "powers-of-two" = PowersOfTwo]
        ),
    ];

    fn release(&self) -> Release {
        self.release
    }
}
