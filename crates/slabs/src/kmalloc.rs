//! kmalloc: size classes, types and page-backed sizes, by era (docs/theory/slub.md 8, docs/theory/slqb.md 7).
//!
//! A request has a [`Class`] by its size and a [`KmallocType`] by its flags; the two name a cache. Classes
//! are the powers of two from the smallest on, and 96 and 192 bytes where the smallest class is small enough;
//! above the largest class a request goes to the page allocator. Which types exist is a matter of the
//! kernel's configuration.
//!
//! What a recording cannot tell is reported, not guessed: under `RANDOM_KMALLOC_CACHES` a hash of the call
//! site and a secret picks one of 16 caches, and under `SLAB_BUCKETS` some callers have sets of their own;
//! see [`Ambiguity`].
//!
//! Deliberately absent: nothing is created here. The code that assembles a heap creates a cache per type and
//! class.

use crate::cache::{CacheFlags, CacheSpec, WORD};
use crate::preset::Preset;
use crate::release::Release;
use core::fmt;
use slablab_platform::Gfp;

/// What serves a request of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Nothing is allocated: the kernel answers `ZERO_SIZE_PTR` to a request of no bytes.
    Zero,
    /// The class with this index, smallest first.
    Small(u8),
    /// Pages of this order, straight from the page allocator.
    Large(u8),
}

/// The classes of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmallocRule {
    /// log2 of the smallest class, `KMALLOC_MIN_SIZE`.
    min_shift: u8,
    /// log2 of the largest class.
    max_shift: u8,
    page_shift: u8,
    align: ClassAlign,
    names: Names,
    /// SLQB asks for `SLAB_HWCACHE_ALIGN`.
    hwcache_align: bool,
    /// Other caches may be folded into the classes: 2.6.
    merged: bool,
    /// No class of 96 bytes even so: SLAB of 2.6.
    without_96: bool,
}

/// How the objects of a class are aligned, beside the smallest class's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClassAlign {
    /// To a word: 2.6, SLQB.
    Word,
    /// Powers of two to their size, the others to a word: seen in 6.1.
    PowersOfTwo,
    /// To the largest power of two that divides the size, 32 for 96 and 64 for 192: seen in 6.12 and 6.18.
    Divisor,
}

/// How a size is written in a cache's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// `kmalloc-1024`: 2.6, SLQB.
    Bytes,
    /// `kmalloc-1k`: seen in 6.1 and later.
    Short,
}

/// Where the classes begin unless the architecture asks for more.
const MIN_SHIFT: u8 = 3;
/// Where SLAB's begin, on pages of 4 KiB.
const SLAB_MIN_SHIFT: u8 = 5;
/// The largest of SLAB's in 2.6, on machines whose blocks are as large.
const SLAB_MAX_SHIFT: u8 = 25;
/// The smallest class that a class of 96 bytes can stand beside.
const MIN_SHIFT_OF_96: u8 = 5;
/// The smallest class that a class of 192 bytes can stand beside.
const MIN_SHIFT_OF_192: u8 = 6;

impl KmallocRule {
    /// The classes of a preset: up to two pages; SLQB's up to 512 pages. SLAB's begin with 32 bytes, and in
    /// 2.6 went up to the largest block, at most 32 MB (docs/theory/slab.md 5.7).
    pub fn of(preset: &Preset, page_shift: u32) -> KmallocRule {
        let page_shift = page_shift as u8;
        let (old, aligned) = match preset {
            Preset::Slub(policy) => (policy.release.major == 2, policy.release >= Release::new(6, 12, 0)),
            Preset::Slqb(_) => (true, false),
            Preset::Slab(policy) => (policy.release.major == 2, false),
            // SLOB has no classes: these stand for the sizes that come in, each with its own size.
            Preset::Slob(policy) => (policy.release.major == 2, false),
        };
        let slqb = matches!(preset, Preset::Slqb(_));
        let slab = matches!(preset, Preset::Slab(_));
        KmallocRule {
            min_shift: match (slab, old && page_shift > 12) {
                (false, _) => MIN_SHIFT,
                (true, false) => SLAB_MIN_SHIFT,
                (true, true) => SLAB_MIN_SHIFT + 1,
            },
            max_shift: match (slqb, slab && old) {
                (true, _) => page_shift + 9,
                (_, true) => (page_shift + crate::order::MAX_ORDER).min(SLAB_MAX_SHIFT),
                _ => page_shift + 1,
            },
            page_shift,
            align: match (old, aligned) {
                (true, _) => ClassAlign::Word,
                (false, false) => ClassAlign::PowersOfTwo,
                (false, true) => ClassAlign::Divisor,
            },
            names: if old { Names::Bytes } else { Names::Short },
            // The class of 96 bytes has 128 in the dump of a 6.1 with SLAB.
            hwcache_align: slqb || (slab && !old),
            merged: old && !slqb && !slab,
            // A cache line of 64 bytes is too long for it (docs/theory/slab.md 5.7).
            without_96: slab && old,
        }
    }

    /// The rule with `bytes` as `KMALLOC_MIN_SIZE`, a power of two: 8 by default, 128 on arm64 until 6.4.
    pub const fn with_min_size(self, bytes: u32) -> KmallocRule {
        assert!(bytes.is_power_of_two() && bytes >= 1 << MIN_SHIFT);
        KmallocRule { min_shift: bytes.ilog2() as u8, ..self }
    }

    /// With this largest class, a power of two, at least 256 and the smallest class.
    ///
    /// Whether classes up to two pages came with 2.6.29 or 2.6.30 is not settled (docs/theory/slub.md 8);
    /// before them, an object larger than a page came from the page allocator.
    pub const fn with_max_size(self, bytes: u32) -> KmallocRule {
        assert!(bytes.is_power_of_two() && bytes >= 256 && bytes.ilog2() >= self.min_shift as u32);
        KmallocRule { max_shift: bytes.ilog2() as u8, ..self }
    }

    const fn has_96(&self) -> bool {
        self.min_shift <= MIN_SHIFT_OF_96 && !self.without_96
    }

    const fn has_192(&self) -> bool {
        self.min_shift <= MIN_SHIFT_OF_192
    }

    /// The class that serves a request of `bytes` bytes: compares, one bit scan and adds, no division and no
    /// table.
    #[inline]
    pub const fn class_of(&self, bytes: u64) -> Class {
        if bytes == 0 {
            return Class::Zero;
        }
        if bytes > 1 << self.max_shift {
            return Class::Large((u64::BITS - ((bytes - 1) >> self.page_shift).leading_zeros()) as u8);
        }
        let shift = (u64::BITS - (bytes - 1).leading_zeros()) as u8;
        if shift <= self.min_shift {
            return Class::Small(0);
        }
        let between =
            (self.has_96() && shift == 7 && bytes <= 96) || (self.has_192() && shift == 8 && bytes <= 192);
        Class::Small(self.index_of_shift(shift) - between as u8)
    }

    /// The index of the class of 2^`shift` bytes: 96 comes before 128, 192 before 256.
    const fn index_of_shift(&self, shift: u8) -> u8 {
        let in_between = (self.has_96() && shift >= 7) as u8 + (self.has_192() && shift >= 8) as u8;
        shift - self.min_shift + in_between
    }

    /// Which class served a request that was recorded with the bytes it was given: the recorded size decides
    /// where it is a size this kernel gives, else the bytes asked for.
    pub fn class_recorded(&self, bytes_req: u64, bytes_alloc: Option<u64>) -> Class {
        let given =
            bytes_alloc.filter(|given| *given >= bytes_req).map(|given| (given, self.class_of(given)));
        match given {
            Some((given, class)) if self.size_of(class) == given => class,
            _ => self.class_of(bytes_req),
        }
    }

    /// Bytes given to a request of this class.
    pub fn size_of(&self, class: Class) -> u64 {
        match class {
            Class::Zero => 0,
            Class::Small(index) => self.class_size(index) as u64,
            Class::Large(order) => 1 << (self.page_shift + order),
        }
    }

    /// How many classes there are.
    pub const fn class_count(&self) -> u8 {
        self.index_of_shift(self.max_shift) + 1
    }

    /// Bytes of an object of a class.
    ///
    /// # Panics
    /// There is no such class.
    pub fn class_size(&self, index: u8) -> u32 {
        let is = |shift: u8| shift >= self.min_shift && self.index_of_shift(shift) == index;
        match (self.min_shift..=self.max_shift).find(|shift| is(*shift)) {
            Some(shift) => 1 << shift,
            None if self.has_96() && index + 1 == self.index_of_shift(7) => 96,
            None if self.has_192() && index + 1 == self.index_of_shift(8) => 192,
            None => panic!("class {index} of {}", self.class_count()),
        }
    }

    /// The sizes of all classes, smallest first.
    pub fn class_sizes(&self) -> impl Iterator<Item = u32> {
        let rule = *self;
        (0..rule.class_count()).map(move |index| rule.class_size(index))
    }

    /// What the cache of a type and a class is asked to be.
    pub fn spec(&self, kind: KmallocType, index: u8) -> CacheSpec {
        let object_size = self.class_size(index);
        let by_size = match (kind, self.align) {
            // The dumps of 6.12 and 6.18 show no more for them.
            (KmallocType::Bucket(_), _) => WORD,
            (_, ClassAlign::PowersOfTwo) if object_size.is_power_of_two() => object_size,
            (_, ClassAlign::Word | ClassAlign::PowersOfTwo) => WORD,
            (_, ClassAlign::Divisor) => 1 << object_size.trailing_zeros(),
        };
        CacheSpec {
            align: by_size.max(1 << self.min_shift),
            flags: CacheFlags {
                hwcache_align: self.hwcache_align,
                reclaim_account: kind == KmallocType::Reclaimable,
                dma: kind == KmallocType::Dma,
                account: kind == KmallocType::Cgroup,
                no_merge: !self.merged,
                kmalloc: true,
                ..CacheFlags::default()
            },
            ..CacheSpec::of_size(object_size)
        }
    }

    /// The name of the cache of a type and a class, as the kernel prints it.
    pub fn name(&self, kind: KmallocType, index: u8) -> ClassName {
        ClassName { kind, size: self.class_size(index), names: self.names }
    }
}

/// Which of the caches of one class serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KmallocType {
    /// `kmalloc-512`.
    Normal,
    /// `kmalloc-rcl-512`: pages that a shrinker can free.
    Reclaimable,
    /// `kmalloc-cg-512`: charged to a memory cgroup.
    Cgroup,
    /// `dma-kmalloc-512`: pages below 16 MiB.
    Dma,
    /// `kmalloc-rnd-01-512`: a copy of the normal cache, from 1.
    Copy(u8),
    /// `msg_msg-512`: a set of its own, by its index in [`BUCKET_SETS`].
    Bucket(u8),
}

/// The sets of `SLAB_BUCKETS`, each named by its user.
pub const BUCKET_SETS: &[&str] = &["memdup_user", "msg_msg"];
/// Copies of the normal caches under `RANDOM_KMALLOC_CACHES`.
pub const RANDOM_COPIES: u8 = 15;

/// Which types a kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmallocConfig {
    /// `ZONE_DMA`.
    pub dma: bool,
    /// Reclaimable caches of their own: 6.1 and later, not in 2.6.
    pub reclaimable: bool,
    /// `MEMCG_KMEM` (`MEMCG` since it has no switch of its own), not in 2.6.
    pub cgroup: bool,
    /// Copies of the normal caches: 0, or [`RANDOM_COPIES`] with `RANDOM_KMALLOC_CACHES`.
    pub random_copies: u8,
    /// `SLAB_BUCKETS`.
    pub buckets: bool,
}

impl KmallocConfig {
    /// The types that a distribution's kernel of this preset has: the dumps of 6.12 and 6.18 show buckets,
    /// none shows copies.
    pub fn of(preset: &Preset) -> KmallocConfig {
        let release = match preset {
            Preset::Slub(policy) => policy.release,
            Preset::Slqb(_) => Release::new(2, 6, 0),
            Preset::Slab(policy) => policy.release,
            Preset::Slob(policy) => policy.release,
        };
        let modern = release.major > 2;
        KmallocConfig {
            dma: true,
            reclaimable: modern,
            cgroup: modern,
            random_copies: 0,
            buckets: release >= Release::new(6, 12, 0),
        }
    }

    /// The types there are.
    pub fn types(self) -> impl Iterator<Item = KmallocType> {
        let one = |there: bool, kind: KmallocType| there.then_some(kind);
        let sets = if self.buckets { BUCKET_SETS.len() as u8 } else { 0 };
        [
            Some(KmallocType::Normal),
            one(self.reclaimable, KmallocType::Reclaimable),
            one(self.cgroup, KmallocType::Cgroup),
            one(self.dma, KmallocType::Dma),
        ]
        .into_iter()
        .flatten()
        .chain((1..=self.random_copies).map(KmallocType::Copy))
        .chain((0..sets).map(KmallocType::Bucket))
    }
}

impl KmallocType {
    /// The type of a request with these flags: DMA before reclaimable before accounted, each if the kernel
    /// has it. Never a copy nor a bucket set, which flags do not tell; see [`KmallocType::ambiguous`].
    pub const fn of(gfp: Gfp, config: &KmallocConfig) -> KmallocType {
        if config.dma && gfp.any(Gfp::DMA) {
            KmallocType::Dma
        } else if config.reclaimable && gfp.any(Gfp::RECLAIMABLE) {
            KmallocType::Reclaimable
        } else if config.cgroup && gfp.any(Gfp::ACCOUNT) {
            KmallocType::Cgroup
        } else {
            KmallocType::Normal
        }
    }

    /// Which other caches may have served a recorded request of this type; `None` when flags and size decide.
    ///
    /// A bucket set has one cache per class whatever the flags, so that a normal or an accounted request may
    /// be of any.
    pub fn ambiguous(self, config: &KmallocConfig) -> Option<Ambiguity> {
        let sets = if config.buckets { BUCKET_SETS.len() as u8 } else { 0 };
        let others = match self {
            KmallocType::Normal => Ambiguity { copies: config.random_copies, bucket_sets: sets },
            KmallocType::Cgroup => Ambiguity { copies: 0, bucket_sets: sets },
            KmallocType::Reclaimable | KmallocType::Dma | KmallocType::Copy(_) | KmallocType::Bucket(_) => {
                Ambiguity::default()
            }
        };
        (others != Ambiguity::default()).then_some(others)
    }
}

/// Caches that a recording cannot tell from the one its flags name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ambiguity {
    /// Random copies of the normal cache.
    pub copies: u8,
    /// Sets of buckets; the symbol of the call site often tells which, if any.
    pub bucket_sets: u8,
}

/// The name of a kmalloc cache. The forms of 2.6's DMA caches and of random copies are from memory; all
/// others are in dumps of real kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassName {
    kind: KmallocType,
    size: u32,
    names: Names,
}

impl fmt::Display for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.names) {
            (KmallocType::Normal, _) => write!(f, "kmalloc")?,
            (KmallocType::Reclaimable, _) => write!(f, "kmalloc-rcl")?,
            (KmallocType::Cgroup, _) => write!(f, "kmalloc-cg")?,
            (KmallocType::Dma, Names::Bytes) => write!(f, "kmalloc_dma")?,
            (KmallocType::Dma, Names::Short) => write!(f, "dma-kmalloc")?,
            (KmallocType::Copy(copy), _) => write!(f, "kmalloc-rnd-{copy:02}")?,
            (KmallocType::Bucket(set), _) => write!(f, "{}", BUCKET_SETS[set as usize])?,
        }
        match (self.names, self.size) {
            (Names::Short, size) if size >= 1 << 20 => write!(f, "-{}M", size >> 20),
            (Names::Short, size) if size >= 1 << 10 => write!(f, "-{}k", size >> 10),
            (Names::Bytes | Names::Short, size) => write!(f, "-{size}"),
        }
    }
}
