//! Allocation flags, independent of any kernel's bit numbers.
//!
//! The bit numbers of `__GFP_*` moved between kernels; recordings are translated by name. The bits here are
//! ours and are part of the trace format (column `gfp`): they are never renumbered, only added to.

use core::ops::{BitAnd, BitOr, Not};

/// A set of allocation flags. Source of the meanings: docs/theory/pagealloc.md 4.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Gfp(pub u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $($text:literal)|+;)*) => {
        impl Gfp {
            $($(#[$doc])* pub const $name: Gfp = Gfp(1 << $bit);)*
            /// Every single flag with the kernel's name for it, the current name first.
            pub const NAMES: &'static [(Gfp, &'static str)] = &[$($((Gfp::$name, $text),)+)*];
        }
    };
}

flags! {
    /// Memory below 16 MiB.
    DMA = 0, "__GFP_DMA";
    /// Highmem is allowed (no effect on 64 bits).
    HIGHMEM = 1, "__GFP_HIGHMEM";
    /// Memory below 4 GiB.
    DMA32 = 2, "__GFP_DMA32";
    /// Pages that can be migrated.
    MOVABLE = 3, "__GFP_MOVABLE";
    /// Pages a shrinker can free.
    RECLAIMABLE = 4, "__GFP_RECLAIMABLE";
    /// High priority: may use half of the minimum watermark.
    HIGH = 5, "__GFP_HIGH";
    /// May start I/O.
    IO = 6, "__GFP_IO";
    /// May enter the filesystem.
    FS = 7, "__GFP_FS";
    /// Return zeroed memory.
    ZERO = 8, "__GFP_ZERO";
    /// May sleep for direct reclaim: `__GFP_WAIT` until 4.3.
    DIRECT_RECLAIM = 9, "__GFP_DIRECT_RECLAIM" | "__GFP_WAIT";
    /// May wake kswapd (implied before 4.4).
    KSWAPD_RECLAIM = 10, "__GFP_KSWAPD_RECLAIM";
    /// The caller will write the page soon.
    WRITE = 11, "__GFP_WRITE";
    /// No failure report.
    NOWARN = 12, "__GFP_NOWARN";
    /// Retry as long as progress is made.
    RETRY_MAYFAIL = 13, "__GFP_RETRY_MAYFAIL" | "__GFP_REPEAT";
    /// Never fail.
    NOFAIL = 14, "__GFP_NOFAIL";
    /// One round of reclaim, no OOM kill.
    NORETRY = 15, "__GFP_NORETRY";
    /// May use all reserves.
    MEMALLOC = 16, "__GFP_MEMALLOC";
    /// A compound page.
    COMP = 17, "__GFP_COMP";
    /// Must not use reserves.
    NOMEMALLOC = 18, "__GFP_NOMEMALLOC";
    /// Respect the cpuset.
    HARDWALL = 19, "__GFP_HARDWALL";
    /// This node or nothing.
    THISNODE = 20, "__GFP_THISNODE";
    /// Charge to the memory cgroup.
    ACCOUNT = 21, "__GFP_ACCOUNT" | "__GFP_KMEMCG";
    /// An atomic caller (4.4 to 6.2).
    ATOMIC_CALLER = 22, "__GFP_ATOMIC";
    /// Skip zeroing of tags.
    ZEROTAGS = 23, "__GFP_ZEROTAGS";
    /// Do not allocate object extensions.
    NO_OBJ_EXT = 24, "__GFP_NO_OBJ_EXT";
    /// Skip KASAN handling (three kernel flags folded).
    SKIP_KASAN = 25, "__GFP_SKIP_KASAN" | "__GFP_SKIP_ZERO" | "__GFP_SKIP_KASAN_UNPOISON" | "__GFP_SKIP_KASAN_POISON";
    /// Not tracked by debugging.
    NOTRACK = 26, "__GFP_NOTRACK" | "__GFP_NOLOCKDEP" | "__GFP_COLD" | "__GFP_OTHER_NODE";
}

impl Gfp {
    /// No flags.
    pub const NONE: Gfp = Gfp(0);
    /// Both kinds of reclaim.
    pub const RECLAIM: Gfp = Gfp(Gfp::DIRECT_RECLAIM.0 | Gfp::KSWAPD_RECLAIM.0);
    /// `GFP_KERNEL`: an ordinary caller that may sleep.
    pub const KERNEL: Gfp = Gfp(Gfp::RECLAIM.0 | Gfp::IO.0 | Gfp::FS.0);
    /// `GFP_ATOMIC`: a caller that may not sleep.
    pub const ATOMIC: Gfp = Gfp(Gfp::HIGH.0 | Gfp::KSWAPD_RECLAIM.0);
    /// `GFP_NOWAIT`.
    pub const NOWAIT: Gfp = Gfp(Gfp::KSWAPD_RECLAIM.0 | Gfp::NOWARN.0);

    /// The kernel's combined names. `GFP_ATOMIC` carried `__GFP_ATOMIC` from 4.4 to 6.2: same meaning here.
    pub const COMBINED: &'static [(Gfp, &'static str)] = &[
        (Gfp(Gfp::KERNEL.0 | Gfp::HARDWALL.0 | Gfp::HIGHMEM.0 | Gfp::MOVABLE.0), "GFP_HIGHUSER_MOVABLE"),
        (Gfp(Gfp::KERNEL.0 | Gfp::HARDWALL.0 | Gfp::HIGHMEM.0), "GFP_HIGHUSER"),
        (Gfp(Gfp::KERNEL.0 | Gfp::HARDWALL.0), "GFP_USER"),
        (Gfp(Gfp::KERNEL.0 | Gfp::ACCOUNT.0), "GFP_KERNEL_ACCOUNT"),
        (Gfp::KERNEL, "GFP_KERNEL"),
        (Gfp(Gfp::RECLAIM.0 | Gfp::IO.0 | Gfp::RECLAIMABLE.0), "GFP_TEMPORARY"),
        (Gfp(Gfp::RECLAIM.0 | Gfp::IO.0), "GFP_NOFS"),
        (Gfp::ATOMIC, "GFP_ATOMIC"),
        (Gfp::RECLAIM, "GFP_NOIO"),
        (Gfp::RECLAIM, "__GFP_RECLAIM"),
        (Gfp::NOWAIT, "GFP_NOWAIT"),
        (Gfp::DMA, "GFP_DMA"),
        (Gfp::DMA32, "GFP_DMA32"),
        (
            Gfp(Gfp::IO.0
                | Gfp::FS.0
                | Gfp::HARDWALL.0
                | Gfp::HIGHMEM.0
                | Gfp::MOVABLE.0
                | Gfp::COMP.0
                | Gfp::NOMEMALLOC.0
                | Gfp::NOWARN.0),
            "GFP_TRANSHUGE_LIGHT",
        ),
        (
            Gfp(Gfp::DIRECT_RECLAIM.0
                | Gfp::IO.0
                | Gfp::FS.0
                | Gfp::HARDWALL.0
                | Gfp::HIGHMEM.0
                | Gfp::MOVABLE.0
                | Gfp::COMP.0
                | Gfp::NOMEMALLOC.0
                | Gfp::NOWARN.0),
            "GFP_TRANSHUGE",
        ),
    ];

    /// True when the caller may take the last page: it frees memory, and did not say that it does without.
    #[inline]
    pub const fn takes_reserves(self) -> bool {
        self.has(Gfp::MEMALLOC) && !self.has(Gfp::NOMEMALLOC)
    }

    /// True when every flag of `other` is set.
    #[inline]
    pub const fn has(self, other: Gfp) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags, but none of `other`.
    #[inline]
    pub const fn without(self, other: Gfp) -> Gfp {
        Gfp(self.0 & !other.0)
    }

    /// True when any flag of `other` is set.
    #[inline]
    pub const fn any(self, other: Gfp) -> bool {
        self.0 & other.0 != 0
    }

    /// The flags of one name, single (`__GFP_IO`) or combined (`GFP_KERNEL`); `None` for a name no kernel
    /// had.
    pub fn from_name(name: &str) -> Option<Gfp> {
        let known = Gfp::NAMES.iter().chain(Gfp::COMBINED);
        known.into_iter().find(|(_, text)| *text == name).map(|(flags, _)| *flags)
    }
}

impl BitOr for Gfp {
    type Output = Gfp;
    #[inline]
    fn bitor(self, other: Gfp) -> Gfp {
        Gfp(self.0 | other.0)
    }
}

impl BitAnd for Gfp {
    type Output = Gfp;
    #[inline]
    fn bitand(self, other: Gfp) -> Gfp {
        Gfp(self.0 & other.0)
    }
}

impl Not for Gfp {
    type Output = Gfp;
    #[inline]
    fn not(self) -> Gfp {
        Gfp(!self.0)
    }
}

impl core::fmt::Debug for Gfp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut first = true;
        let mut shown = 0;
        for (flag, name) in Gfp::NAMES {
            if self.has(*flag) && shown & flag.0 == 0 {
                write!(f, "{}{name}", if first { "" } else { "|" })?;
                (first, shown) = (false, shown | flag.0);
            }
        }
        if first { f.write_str("0") } else { Ok(()) }
    }
}
