//! Allocation flags by name: the bits move between kernels, the names mostly do not.
//!
//! A [`GfpTable`] maps the recording kernel's bits to names; a [`GfpSet`] is our own, fixed numbering of the
//! names, so that flags of two recordings compare. A table comes from the `__print_flags` list of a recorded
//! format text. For text recordings, which carry only names, compound names (`GFP_KERNEL`) are expanded by
//! the table if it has them, else by the definitions of 6.1.

/// One flag of the kernel's `gfp_t`, in our numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // The names are the kernel's; include/linux/gfp_types.h explains them.
pub enum GfpFlag {
    Dma,
    Highmem,
    Dma32,
    Movable,
    Reclaimable,
    High,
    Atomic,
    Io,
    Fs,
    Zero,
    DirectReclaim,
    KswapdReclaim,
    Write,
    Nowarn,
    RetryMayfail,
    Nofail,
    Noretry,
    Memalloc,
    Comp,
    Nomemalloc,
    Hardwall,
    Thisnode,
    Account,
    Zerotags,
    SkipZero,
    SkipKasan,
    Nolockdep,
    NoObjExt,
    Cold,
    Notrack,
    OtherNode,
    Wait,
}

use GfpFlag::*;

impl GfpFlag {
    /// Every flag with its name in the kernel. Names that changed share a flag: `__GFP_REPEAT` (to 4.12)
    /// became `__GFP_RETRY_MAYFAIL`, the two KASAN flags of 5.18 became one in 6.4. `__GFP_WAIT` (to 4.3)
    /// stays apart, as it meant direct reclaim and sleeping at once.
    pub const ALL: [(GfpFlag, &'static str); 32] = [
        (Dma, "__GFP_DMA"),
        (Highmem, "__GFP_HIGHMEM"),
        (Dma32, "__GFP_DMA32"),
        (Movable, "__GFP_MOVABLE"),
        (Reclaimable, "__GFP_RECLAIMABLE"),
        (High, "__GFP_HIGH"),
        (Atomic, "__GFP_ATOMIC"),
        (Io, "__GFP_IO"),
        (Fs, "__GFP_FS"),
        (Zero, "__GFP_ZERO"),
        (DirectReclaim, "__GFP_DIRECT_RECLAIM"),
        (KswapdReclaim, "__GFP_KSWAPD_RECLAIM"),
        (Write, "__GFP_WRITE"),
        (Nowarn, "__GFP_NOWARN"),
        (RetryMayfail, "__GFP_RETRY_MAYFAIL"),
        (Nofail, "__GFP_NOFAIL"),
        (Noretry, "__GFP_NORETRY"),
        (Memalloc, "__GFP_MEMALLOC"),
        (Comp, "__GFP_COMP"),
        (Nomemalloc, "__GFP_NOMEMALLOC"),
        (Hardwall, "__GFP_HARDWALL"),
        (Thisnode, "__GFP_THISNODE"),
        (Account, "__GFP_ACCOUNT"),
        (Zerotags, "__GFP_ZEROTAGS"),
        (SkipZero, "__GFP_SKIP_ZERO"),
        (SkipKasan, "__GFP_SKIP_KASAN"),
        (Nolockdep, "__GFP_NOLOCKDEP"),
        (NoObjExt, "__GFP_NO_OBJ_EXT"),
        (Cold, "__GFP_COLD"),
        (Notrack, "__GFP_NOTRACK"),
        (OtherNode, "__GFP_OTHER_NODE"),
        (Wait, "__GFP_WAIT"),
    ];
}

/// A set of [`GfpFlag`]s; bit `n` is the flag with that number.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct GfpSet(pub u32);

impl GfpSet {
    /// No flag: `GFP_NOWAIT` of old kernels prints like this.
    pub const EMPTY: GfpSet = GfpSet(0);

    /// The set with these flags.
    pub const fn of(flags: &[GfpFlag]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < flags.len() {
            bits |= 1 << flags[index] as u32;
            index += 1;
        }
        GfpSet(bits)
    }

    /// Whether `flag` is in it.
    pub fn has(self, flag: GfpFlag) -> bool {
        self.0 >> flag as u32 & 1 == 1
    }

    /// Flags of either.
    pub fn union(self, other: GfpSet) -> GfpSet {
        GfpSet(self.0 | other.0)
    }

    /// The flags in it.
    pub fn flags(self) -> impl Iterator<Item = GfpFlag> {
        GfpFlag::ALL.into_iter().map(|(flag, _)| flag).filter(move |&flag| self.has(flag))
    }
}

/// Prints the names joined by `|`, or `none`; [`GfpTable::parse`] reads it back.
impl std::fmt::Display for GfpSet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut separator = "";
        for (flag, name) in GfpFlag::ALL {
            if self.has(flag) {
                write!(out, "{separator}{name}")?;
                separator = "|";
            }
        }
        if separator.is_empty() { out.write_str("none") } else { Ok(()) }
    }
}

impl std::fmt::Debug for GfpSet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{self}")
    }
}

const RECLAIM: GfpSet = GfpSet::of(&[DirectReclaim, KswapdReclaim]);
const NOFS: GfpSet = RECLAIM.with(&[Io]);
const KERNEL: GfpSet = NOFS.with(&[Fs]);
const USER: GfpSet = KERNEL.with(&[Hardwall]);
const HIGHUSER: GfpSet = USER.with(&[Highmem]);
const HIGHUSER_MOVABLE: GfpSet = HIGHUSER.with(&[Movable]);
const TRANSHUGE_LIGHT: GfpSet = GfpSet(HIGHUSER_MOVABLE.with(&[Comp, Nomemalloc, Nowarn]).0 & !RECLAIM.0);

/// Compound names as 6.1 defines them, and older spellings; for recordings that carry names only.
const COMPOUNDS: [(&str, GfpSet); 18] = [
    ("GFP_TRANSHUGE", TRANSHUGE_LIGHT.with(&[DirectReclaim])),
    ("GFP_TRANSHUGE_LIGHT", TRANSHUGE_LIGHT),
    ("GFP_HIGHUSER_MOVABLE", HIGHUSER_MOVABLE),
    ("GFP_HIGHUSER", HIGHUSER),
    ("GFP_USER", USER),
    ("GFP_KERNEL_ACCOUNT", KERNEL.with(&[Account])),
    ("GFP_KERNEL", KERNEL),
    ("GFP_NOFS", NOFS),
    ("GFP_NOIO", RECLAIM),
    ("GFP_ATOMIC", GfpSet::of(&[High, KswapdReclaim])),
    ("GFP_NOWAIT", GfpSet::of(&[KswapdReclaim])),
    ("GFP_DMA", GfpSet::of(&[Dma])),
    ("GFP_DMA32", GfpSet::of(&[Dma32])),
    ("GFP_TEMPORARY", KERNEL.with(&[Reclaimable])),
    ("__GFP_RECLAIM", RECLAIM),
    ("__GFP_REPEAT", GfpSet::of(&[RetryMayfail])),
    ("__GFP_SKIP_KASAN_POISON", GfpSet::of(&[SkipKasan])),
    ("__GFP_SKIP_KASAN_UNPOISON", GfpSet::of(&[SkipKasan])),
];

impl GfpSet {
    const fn with(self, flags: &[GfpFlag]) -> GfpSet {
        GfpSet(self.0 | GfpSet::of(flags).0)
    }
}

/// The recording kernel's flags: number and name of each entry of `__print_flags`, in the kernel's order
/// (compounds before their parts).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GfpTable {
    entries: Vec<(u64, String)>,
}

impl GfpTable {
    /// A table of these entries. Entries with value 0 (flags that this kernel's configuration removed) are
    /// dropped.
    pub fn new(entries: Vec<(u64, String)>) -> Self {
        GfpTable { entries: entries.into_iter().filter(|&(value, _)| value != 0).collect() }
    }

    /// No names known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number and name of every entry, in the kernel's order.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &str)> {
        self.entries.iter().map(|(value, name)| (*value, &**name))
    }

    /// The number of `name` in this kernel, `None` if it has no such flag.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.entries.iter().find(|(_, known)| known == name).map(|&(value, _)| value)
    }

    /// The text the kernel itself prints for `raw`: names joined by `|`, unknown bits last in hexadecimal,
    /// `none` for 0.
    pub fn print(&self, raw: u64) -> String {
        if raw == 0 {
            return "none".into();
        }
        let (mut parts, mut rest) = (Vec::new(), raw);
        for (value, name) in &self.entries {
            if rest & value == *value {
                parts.push(name.clone());
                rest &= !value;
            }
        }
        if rest != 0 {
            parts.push(format!("{rest:#x}"));
        }
        parts.join("|")
    }

    /// The flags of `raw` in our numbering, and the bits that have no name here.
    pub fn canonical(&self, raw: u64) -> (GfpSet, u64) {
        let (mut set, mut rest) = (GfpSet::EMPTY, raw);
        for (value, name) in self.entries.iter().filter(|(value, _)| value.is_power_of_two()) {
            if raw & value != 0
                && let Some(flag) = single(name)
            {
                set = set.union(flag);
                rest &= !value;
            }
        }
        (set, rest)
    }

    /// The flags of a text such as `GFP_KERNEL|__GFP_ZERO`, in our numbering; the first unknown name is the
    /// error.
    pub fn parse<'a>(&self, text: &'a str) -> Result<GfpSet, &'a str> {
        let mut set = GfpSet::EMPTY;
        for name in text.split('|').filter(|name| !matches!(*name, "none" | "0" | "")) {
            let known = match self.value(name) {
                Some(value) => Some(self.canonical(value).0),
                None => single(name).or_else(|| compound(name)),
            };
            set = set.union(known.ok_or(name)?);
        }
        Ok(set)
    }
}

fn single(name: &str) -> Option<GfpSet> {
    let flag = GfpFlag::ALL.iter().find(|(_, known)| *known == name).map(|&(flag, _)| GfpSet::of(&[flag]));
    // Entries that print one bit under a compound's name, as GFP_DMA does.
    flag.or_else(|| compound(name).filter(|set| set.0.count_ones() == 1))
}

fn compound(name: &str) -> Option<GfpSet> {
    COMPOUNDS.iter().find(|(known, _)| *known == name).map(|&(_, set)| set)
}
