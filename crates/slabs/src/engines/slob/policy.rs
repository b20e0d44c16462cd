//! SLOB's policies, and the two releases they are known for: 2.6.32 and 6.1.

use crate::knob::{Knob, Policy, knob};
use crate::release::{Release, ZoneReclaimMode};

/// The list for a full page that gets its first free block (docs/theory/slob.md 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readd {
    /// The list of small objects, whatever the size of the freed block.
    Small,
    /// The list that the freed size belongs to.
    BySize,
}

/// Where the next search begins after one that filled its page (docs/theory/slob.md 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFull {
    /// At the page behind the filled one.
    Behind,
    /// At the same page as before, if that is not the one that was filled.
    Stays,
}

/// The alignment of kmalloc objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmallocAlign {
    /// To a word.
    Word,
    /// Powers of two to their size, other sizes to a word: every kmalloc of the recorded 6.1 is aligned so.
    PowersOfTwo,
}

/// SLOB as a set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlobPolicy {
    /// The release that these policies describe.
    pub release: Release,
    /// Whether near zones are reclaimed before a farther node serves.
    pub zone_reclaim: ZoneReclaimMode,
    /// Requests of fewer bytes, including the header, use the list of small objects.
    pub small_below: u32,
    /// Requests of fewer bytes use the list of medium objects; larger ones use the list of large objects.
    pub medium_below: u32,
    /// Whether the next search begins where the last one ended; otherwise it begins at the page that was
    /// listed last.
    pub next_fit: bool,
    /// Where the next search begins after one that filled its page.
    pub after_full: AfterFull,
    /// The list for a full page that gets its first free block.
    pub readd: Readd,
    /// The alignment of kmalloc objects.
    pub kmalloc_align: KmallocAlign,
}

/// Presets as constants, for a program that parses no text. One policy of a constant is changed with
/// `SlobPolicy { .., ..SlobPolicy::V6_1 }`.
impl SlobPolicy {
    /// The policies of `slob@2.6.32`.
    pub const V2_6_32: SlobPolicy = SlobPolicy {
        release: Release::new(2, 6, 32),
        zone_reclaim: ZoneReclaimMode::Boot,
        small_below: 256,
        medium_below: 1024,
        next_fit: true,
        after_full: AfterFull::Behind,
        readd: Readd::Small,
        kmalloc_align: KmallocAlign::Word,
    };

    /// The policies of `slob@6.1`.
    pub const V6_1: SlobPolicy = SlobPolicy {
        release: Release::new(6, 1, 0),
        after_full: AfterFull::Stays,
        readd: Readd::BySize,
        kmalloc_align: KmallocAlign::PowersOfTwo,
        ..SlobPolicy::V2_6_32
    };
}

impl Policy for SlobPolicy {
    const NAME: &'static str = "slob";
    const PRESETS: &'static [SlobPolicy] = &[SlobPolicy::V2_6_32, SlobPolicy::V6_1];
    const KNOBS: &'static [Knob<SlobPolicy>] = &[
        knob!(
            "small_below", "requests below this number of bytes use the small list (docs/theory/slob.md 2)",
            small_below: number 0 to 65536
        ),
        knob!(
            "medium_below",
            "requests below this number of bytes use the medium list, if they do not use the small one; \
             with both at 65536 there is one list (docs/theory/slob.md 2)",
            medium_below: number 0 to 65536
        ),
        knob!(
            "next_fit", "whether a search begins where the previous one ended (docs/theory/slob.md 3)",
            next_fit: no or yes
        ),
        knob!(
            "after_full", "where a search begins after one that filled its page (docs/theory/slob.md 3)",
            after_full: AfterFull ["behind" = Behind, "stays" = Stays]
        ),
        knob!(
            "readd", "list that a full page joins when a block in it is freed (docs/theory/slob.md 5)",
            readd: Readd ["small" = Small, "by-size" = BySize]
        ),
        knob!(
            "kmalloc_align", "alignment of kmalloc's objects (docs/theory/slob.md 4; measured on 6.1)",
            kmalloc_align: KmallocAlign ["word" = Word, "powers-of-two" = PowersOfTwo]
        ),
        knob!(
            "zone_reclaim", "local reclaim before a farther node (docs/theory/pagealloc.md 6; zone_reclaim_mode)",
            zone_reclaim: ZoneReclaimMode ["boot" = Boot, "off" = Off, "on" = On]
        ),
    ];

    fn release(&self) -> Release {
        self.release
    }

    fn zone_reclaim(&self) -> ZoneReclaimMode {
        self.zone_reclaim
    }
}
