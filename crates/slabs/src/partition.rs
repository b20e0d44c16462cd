//! Partitioned kmalloc: copies of each normal kmalloc cache, divided among the callers (docs/theory/slub.md
//! 8.1).
//!
//! `RANDOM_KMALLOC_CACHES` of 6.6 to 7.1, `KMALLOC_PARTITION_RANDOM` since 7.2: a hash of the call site and
//! of a number that is drawn at boot says which of 16 copies serves. An attacker who frees an object of one
//! call site then finds it given out again by one of sixteen call sites only. `KMALLOC_PARTITION_TYPED`
//! divides by the type of the object, which no recording has.

use crate::knob::{Knob, knob};
use crate::release::Release;

/// What decides which copy serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionBy {
    /// One cache for each class.
    Off,
    /// The call site.
    Random,
}

/// How the normal kmalloc caches are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// What decides.
    pub by: PartitionBy,
    /// Caches of each class, the first included.
    pub caches: u8,
}

/// The number of copies of the normal caches in a kernel with the option, beside the normal cache.
pub const RANDOM_COPIES: u8 = 15;
/// The caches of each class in such a kernel.
const KERNEL_CACHES: u8 = RANDOM_COPIES + 1;
/// Most caches of a class: a name has two digits.
const MOST_CACHES: u8 = 64;

/// Kernels since then call the copies `kmalloc-part-01-96`.
const PART_SINCE: Release = Release::new(7, 2, 0);

impl Default for Partition {
    fn default() -> Partition {
        Partition { by: PartitionBy::Off, caches: KERNEL_CACHES }
    }
}

impl Partition {
    /// The knobs, which stand among those of an engine.
    pub const KNOBS: &'static [Knob<Partition>] = &[
        knob!(
            "partition",
            "random: each call site of kmalloc has one of the copies of its class \
             (CONFIG_KMALLOC_PARTITION_RANDOM; docs/theory/slub.md 8.1)",
            by: PartitionBy ["off" = Off, "random" = Random]
        ),
        knob!(
            "partitions",
            "caches of each kmalloc class with partition=random, 16 in every kernel (docs/theory/slub.md 8.1)",
            caches: number 1 to MOST_CACHES as u64
        ),
    ];

    /// Caches of each class.
    pub fn count(&self) -> u8 {
        match self.by {
            PartitionBy::Off => 1,
            PartitionBy::Random => self.caches,
        }
    }

    /// Which of [`Partition::count`] caches serves a call site, in a boot that drew `seed`. 0 is the cache
    /// without a number in its name.
    pub fn of_site(&self, site: &str, seed: u64) -> u8 {
        // FNV-1a over the text, then the golden ratio: the kernel's hash is another one, of an address.
        let hash = site.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let spread = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(spread) * u128::from(self.count())) >> 64) as u8
    }
}

/// The word in the names of copies: `kmalloc-rnd-01-96`, or `kmalloc-part-01-96`.
pub const fn word(release: Release) -> &'static str {
    let since = PART_SINCE;
    let is_part =
        release.major > since.major || (release.major == since.major && release.minor >= since.minor);
    if is_part { "part" } else { "rnd" }
}

/// The size in the name of a normal kmalloc cache: `512` of `kmalloc-512`. `None` for others, as
/// `kmalloc-cg-512`.
pub fn normal_size(name: &str) -> Option<&str> {
    let size = name.strip_prefix("kmalloc-")?;
    size.starts_with(|first: char| first.is_ascii_digit()).then_some(size)
}
