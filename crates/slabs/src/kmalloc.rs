//! kmalloc: size classes, types and page-backed sizes, by era (docs/theory/slub.md 8, docs/theory/slqb.md 7).
//!
//! The size of a request selects a [`Class`], and its flags select a [`KmallocType`]; together they name a
//! cache. The classes are the powers of two from the smallest class on, plus 96 and 192 bytes if the smallest
//! class is small enough. Larger requests go to the page allocator. The kernel's configuration determines
//! which types exist.
//!
//! A recording does not always identify the cache. Under `RANDOM_KMALLOC_CACHES`, a hash of the call site and
//! a secret selects one of 16 caches ([`crate::partition`]). Under `SLAB_BUCKETS`, some callers have sets of
//! their own. Such requests are reported as an [`Ambiguity`], not guessed.
//!
//! Deliberately absent: this module creates no cache. The code that assembles a heap creates one per type and
//! class.

use crate::cache::{CacheFlags, CacheSpec, WORD};
use crate::partition;
pub use crate::partition::RANDOM_COPIES;
use crate::preset::Preset;
use crate::release::Release;
use core::fmt;
use slablab_platform::Gfp;

/// The class of a request's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// No allocation: the kernel returns `ZERO_SIZE_PTR` for a request of 0 bytes.
    Zero,
    /// The class with this index; the smallest class has index 0.
    Small(u8),
    /// Pages of this order, directly from the page allocator.
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
    /// The word in the names of copies.
    copies: &'static str,
    /// SLQB asks for `SLAB_HWCACHE_ALIGN`.
    hwcache_align: bool,
    /// Whether other caches may be merged with the classes: 2.6.
    merged: bool,
    /// Whether the class of 96 bytes is missing although the smallest class allows it: SLAB of 2.6.
    without_96: bool,
}

/// The alignment of a class's objects, in addition to the smallest class's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClassAlign {
    /// To a word: 2.6, SLQB.
    Word,
    /// Powers of two to their size, others to a word: measured on 6.1.
    PowersOfTwo,
    /// To the largest power of two that divides the size, which is 32 for 96 and 64 for 192: measured on 6.12
    /// and 6.18.
    Divisor,
}

/// The form of a size in a cache's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// `kmalloc-1024`: 2.6, SLQB.
    Bytes,
    /// `kmalloc-1k`: measured on 6.1 and later.
    Short,
}

/// log2 of the smallest class, unless the architecture sets a larger one.
const MIN_SHIFT: u8 = 3;
/// log2 of SLAB's smallest class on 4 KiB pages.
const SLAB_MIN_SHIFT: u8 = 5;
/// log2 of SLAB's largest class in 2.6, on machines whose page blocks are that large.
const SLAB_MAX_SHIFT: u8 = 25;
/// The class of 96 bytes exists if log2 of the smallest class is at most this.
const MIN_SHIFT_OF_96: u8 = 5;
/// The class of 192 bytes exists if log2 of the smallest class is at most this.
const MIN_SHIFT_OF_192: u8 = 6;

impl KmallocRule {
    /// The classes of a preset: up to two pages; for SLQB up to 512 pages. SLAB's classes begin with 32
    /// bytes, and in 2.6 they reach the largest page block, at most 32 MB (docs/theory/slab.md 5.7).
    pub fn of(preset: &Preset, page_shift: u32) -> KmallocRule {
        let page_shift = page_shift as u8;
        let (old, aligned) = match preset {
            Preset::Slub(policy) => (policy.release.major == 2, policy.release >= Release::new(6, 12, 0)),
            Preset::Slqb(_) => (true, false),
            Preset::Slab(policy) => (policy.release.major == 2, false),
            // SLOB has no classes. These only name the sizes of requests; each request is served with its own
            // size.
            Preset::Slob(policy) => (policy.release.major == 2, false),
            // The classes of SLUB in a kernel of its release.
            Preset::Registered(own) => (own.release().major == 2, own.release() >= Release::new(6, 12, 0)),
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
            copies: partition::word(preset.release()),
            // In the dump of a 6.1 with SLAB, objects of the class of 96 bytes take 128 bytes.
            hwcache_align: slqb || (slab && !old),
            merged: old && !slqb && !slab,
            // The class of 96 bytes does not exist with cache lines of 64 bytes (docs/theory/slab.md 5.7).
            without_96: slab && old,
        }
    }

    /// The rule with a `KMALLOC_MIN_SIZE` of `bytes`, a power of two: 8 by default, 128 on arm64 until 6.4.
    pub const fn with_min_size(self, bytes: u32) -> KmallocRule {
        assert!(bytes.is_power_of_two() && bytes >= 1 << MIN_SHIFT);
        KmallocRule { min_shift: bytes.ilog2() as u8, ..self }
    }

    /// The rule with a largest class of `bytes`, a power of two of at least 256 and at least the smallest
    /// class.
    ///
    /// It is not known whether classes up to two pages came with 2.6.29 or with 2.6.30 (docs/theory/slub.md
    /// 8). Before them, objects larger than a page came from the page allocator.
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

    /// The class for a request of `bytes` bytes. Uses comparisons, one bit scan and additions; no division,
    /// no table.
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

    /// The index of the class of 2^`shift` bytes. The class of 96 comes before 128, and 192 before 256.
    const fn index_of_shift(&self, shift: u8) -> u8 {
        let in_between = (self.has_96() && shift >= 7) as u8 + (self.has_192() && shift >= 8) as u8;
        shift - self.min_shift + in_between
    }

    /// The class of a recorded request. If the recorded size of the object is a class of this kernel, that
    /// class; else the class of the requested bytes.
    pub fn class_recorded(&self, bytes_req: u64, bytes_alloc: Option<u64>) -> Class {
        let given =
            bytes_alloc.filter(|given| *given >= bytes_req).map(|given| (given, self.class_of(given)));
        match given {
            Some((given, class)) if self.size_of(class) == given => class,
            _ => self.class_of(bytes_req),
        }
    }

    /// The object size for a request of this class, in bytes.
    pub fn size_of(&self, class: Class) -> u64 {
        match class {
            Class::Zero => 0,
            Class::Small(index) => self.class_size(index) as u64,
            Class::Large(order) => 1 << (self.page_shift + order),
        }
    }

    /// The number of classes.
    pub const fn class_count(&self) -> u8 {
        self.index_of_shift(self.max_shift) + 1
    }

    /// The object size of a class, in bytes.
    ///
    /// # Panics
    /// No class has the index `index`.
    pub fn class_size(&self, index: u8) -> u32 {
        let is = |shift: u8| shift >= self.min_shift && self.index_of_shift(shift) == index;
        match (self.min_shift..=self.max_shift).find(|shift| is(*shift)) {
            Some(shift) => 1 << shift,
            None if self.has_96() && index + 1 == self.index_of_shift(7) => 96,
            None if self.has_192() && index + 1 == self.index_of_shift(8) => 192,
            None => panic!("class {index} of {}", self.class_count()),
        }
    }

    /// The object sizes of all classes, smallest first.
    pub fn class_sizes(&self) -> impl Iterator<Item = u32> {
        let rule = *self;
        (0..rule.class_count()).map(move |index| rule.class_size(index))
    }

    /// The specification of the cache for a type and a class.
    pub fn spec(&self, kind: KmallocType, index: u8) -> CacheSpec {
        let object_size = self.class_size(index);
        let by_size = match (kind, self.align) {
            // In the dumps of 6.12 and 6.18 these caches have no larger alignment.
            (KmallocType::Bucket(_), _) => WORD,
            (_, ClassAlign::PowersOfTwo) if object_size.is_power_of_two() => object_size,
            (_, ClassAlign::Word | ClassAlign::PowersOfTwo) => WORD,
            (_, ClassAlign::Divisor) => 1 << object_size.trailing_zeros(),
        };
        CacheSpec {
            align: by_size.max(1 << self.min_shift),
            flags: CacheFlags::KMALLOC
                .with(CacheFlags::HWCACHE_ALIGN, self.hwcache_align)
                .with(CacheFlags::RECLAIM_ACCOUNT, kind == KmallocType::Reclaimable)
                .with(CacheFlags::DMA, kind == KmallocType::Dma)
                .with(CacheFlags::ACCOUNT, kind == KmallocType::Cgroup)
                .with(CacheFlags::NO_MERGE, !self.merged),
            ..CacheSpec::of_size(object_size)
        }
    }

    /// The name of the cache for a type and a class, as the kernel prints it.
    pub fn name(&self, kind: KmallocType, index: u8) -> ClassName {
        ClassName { kind, size: self.class_size(index), names: self.names, copies: self.copies }
    }
}

/// The type of a request: it selects one of the caches of a class.
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
    /// `kmalloc-rnd-01-512`, since 7.2 `kmalloc-part-01-512`: a copy of the normal cache. The first copy is
    /// number 1.
    Copy(u8),
    /// `msg_msg-512`: a cache of a separate set; the number is its index in [`BUCKET_SETS`].
    Bucket(u8),
}

/// The sets of `SLAB_BUCKETS`, by the name that their user gave them.
pub const BUCKET_SETS: &[&str] = &["memdup_user", "msg_msg"];

/// The types that a kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmallocConfig {
    /// `ZONE_DMA`.
    pub dma: bool,
    /// Whether reclaimable requests have caches of their own: 6.1 and later, not in 2.6.
    pub reclaimable: bool,
    /// `MEMCG_KMEM`, or `MEMCG` after the separate switch was removed; not in 2.6.
    pub cgroup: bool,
    /// The number of copies of the normal caches: 0, or [`RANDOM_COPIES`] with `RANDOM_KMALLOC_CACHES`.
    pub random_copies: u8,
    /// `SLAB_BUCKETS`.
    pub buckets: bool,
}

impl KmallocConfig {
    /// The types that a distribution's kernel of this preset has. The dumps of 6.12 and 6.18 contain buckets;
    /// no dump contains copies.
    pub fn of(preset: &Preset) -> KmallocConfig {
        let release = match preset {
            Preset::Slub(policy) => policy.release,
            Preset::Slqb(_) => Release::new(2, 6, 0),
            Preset::Slab(policy) => policy.release,
            Preset::Slob(policy) => policy.release,
            Preset::Registered(own) => own.release(),
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

    /// All types of this configuration.
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
    /// The type of a request with the flags `gfp`. DMA comes before reclaimable, and reclaimable before
    /// accounted, each only if the kernel has it. Never a copy or a bucket set, because flags do not select
    /// those; see [`KmallocType::ambiguous`].
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

    /// The other caches that may have served a recorded request of this type. `None` if flags and size
    /// identify the cache.
    ///
    /// A bucket set has one cache per class, whatever the flags. So a normal or an accounted request may
    /// belong to any set.
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

/// The caches that a recording cannot tell from the cache that the flags select.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ambiguity {
    /// The number of random copies of the normal cache.
    pub copies: u8,
    /// The number of bucket sets. The symbol of the call site often identifies the set, if any.
    pub bucket_sets: u8,
}

/// The name of a kmalloc cache. The names of 2.6's DMA caches and of random copies are from memory; all
/// others appear in dumps of real kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassName {
    kind: KmallocType,
    size: u32,
    names: Names,
    copies: &'static str,
}

impl fmt::Display for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.names) {
            (KmallocType::Normal, _) => write!(f, "kmalloc")?,
            (KmallocType::Reclaimable, _) => write!(f, "kmalloc-rcl")?,
            (KmallocType::Cgroup, _) => write!(f, "kmalloc-cg")?,
            (KmallocType::Dma, Names::Bytes) => write!(f, "kmalloc_dma")?,
            (KmallocType::Dma, Names::Short) => write!(f, "dma-kmalloc")?,
            (KmallocType::Copy(copy), _) => write!(f, "kmalloc-{}-{copy:02}", self.copies)?,
            (KmallocType::Bucket(set), _) => write!(f, "{}", BUCKET_SETS[set as usize])?,
        }
        match (self.names, self.size) {
            (Names::Short, size) if size >= 1 << 20 => write!(f, "-{}M", size >> 20),
            (Names::Short, size) if size >= 1 << 10 => write!(f, "-{}k", size >> 10),
            (Names::Bytes | Names::Short, size) => write!(f, "-{size}"),
        }
    }
}
