//! Flags of an allocation by number, of kernels that print no names of them (before 4.8).

/// `__GFP_HIGH`, in every release with these messages.
pub(super) const HIGH: u64 = 0x20;
/// `__GFP_WAIT`, before 4.4.
pub(super) const OLD_WAIT: u64 = 0x10;
/// `__GFP_DIRECT_RECLAIM` from 4.4 to 4.7, the last kernels that print no names.
pub(super) const DIRECT_RECLAIM: u64 = 0x40_0000;
/// `__GFP_KSWAPD_RECLAIM` of the same.
pub(super) const KSWAPD_RECLAIM: u64 = 0x200_0000;

/// Flags of kernels before 4.4, as far as callers of slabs use them.
const OLD_FLAGS: [(u64, &str); 13] = [
    (0x1, "__GFP_DMA"),
    (0x4, "__GFP_DMA32"),
    (0x10, "__GFP_WAIT"),
    (0x20, "__GFP_HIGH"),
    (0x40, "__GFP_IO"),
    (0x80, "__GFP_FS"),
    (0x200, "__GFP_NOWARN"),
    (0x400, "__GFP_REPEAT"),
    (0x800, "__GFP_NOFAIL"),
    (0x1000, "__GFP_NORETRY"),
    (0x4000, "__GFP_COMP"),
    (0x8000, "__GFP_ZERO"),
    (0x40000, "__GFP_THISNODE"),
];

/// `GFP_ATOMIC|__GFP_ZERO` of 0x8020.
pub(super) fn old_names(gfp: u64) -> String {
    let (compound, mut rest) = match gfp & 0xf0 {
        0x20 => (Some("GFP_ATOMIC"), gfp & !0x20),
        0xd0 => (Some("GFP_KERNEL"), gfp & !0xd0),
        0x50 => (Some("GFP_NOFS"), gfp & !0x50),
        0x10 => (Some("GFP_NOIO"), gfp & !0x10),
        0 => (Some("GFP_NOWAIT"), gfp),
        _ => (None, gfp),
    };
    let mut names: Vec<String> = compound.map(str::to_string).into_iter().collect();
    for (bit, name) in OLD_FLAGS {
        if rest & bit != 0 {
            names.push(name.to_string());
            rest &= !bit;
        }
    }
    if rest != 0 {
        names.push(format!("{rest:#x}"));
    }
    names.join("|")
}
