//! SLOB's policies and their presets: 2.6.32 and 6.1.

use crate::knob::{Knob, Policy, Values};
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
        Knob {
            name: "small_below",
            what: "bytes from which requests leave the small list (docs/theory/slob.md 2)",
            values: Values::Number(0, 65536),
            get: |p| p.small_below as u64,
            set: |p, v| p.small_below = v as u32,
        },
        Knob {
            name: "medium_below",
            what: "bytes from which requests leave the medium list; both 65536: one list (docs/theory/slob.md 2)",
            values: Values::Number(0, 65536),
            get: |p| p.medium_below as u64,
            set: |p, v| p.medium_below = v as u32,
        },
        Knob {
            name: "next_fit",
            what: "a search begins where the last one ended (docs/theory/slob.md 3)",
            values: Values::Words(&["no", "yes"]),
            get: |p| p.next_fit as u64,
            set: |p, v| p.next_fit = v == 1,
        },
        Knob {
            name: "readd",
            what: "list of a full page that gets a free block (docs/theory/slob.md 5)",
            values: Values::Words(&["small", "by-size"]),
            get: |p| p.readd as u64,
            set: |p, v| p.readd = if v == 0 { Readd::Small } else { Readd::BySize },
        },
        Knob {
            name: "kmalloc_align",
            what: "alignment of kmalloc's objects (docs/theory/slob.md 4; recorded 6.1)",
            values: Values::Words(&["word", "powers-of-two"]),
            get: |p| p.kmalloc_align as u64,
            set: |p, v| p.kmalloc_align = if v == 0 { KmallocAlign::Word } else { KmallocAlign::PowersOfTwo },
        },
    ];

    fn release(&self) -> Release {
        self.release
    }
}
