//! Migrate types: the kind of page a pageblock is for.

use crate::policy::PagesPolicy;
use slablab_platform::Gfp;

/// The use of a pageblock. The numbers are ours: `Movable` is 0, because untouched memory is movable and the
/// descriptor of an untouched frame has only zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MigrateType {
    /// Pages that can be migrated; everything at boot.
    Movable = 0,
    /// Pages that stay where they are.
    Unmovable = 1,
    /// Pages a shrinker can free.
    Reclaimable = 2,
    /// `MIGRATE_RESERVE` or `MIGRATE_HIGHATOMIC`, whichever the era has: see [`crate::policy::Reserve`].
    Reserve = 3,
}

impl MigrateType {
    /// How many types there are.
    pub const COUNT: usize = 4;
    /// Types a request can have, and a per-CPU list is kept for.
    pub const USUAL: usize = 3;
    /// Every type, in order of its number.
    pub const ALL: [MigrateType; MigrateType::COUNT] =
        [MigrateType::Movable, MigrateType::Unmovable, MigrateType::Reclaimable, MigrateType::Reserve];

    /// The type with this number; the number is one that was made from a type.
    #[inline]
    pub(crate) const fn from_index(index: u64) -> MigrateType {
        MigrateType::ALL[(index & 3) as usize]
    }

    /// What a request with these flags wants.
    #[inline]
    pub const fn of(gfp: Gfp) -> MigrateType {
        if gfp.has(Gfp::MOVABLE) {
            MigrateType::Movable
        } else if gfp.has(Gfp::RECLAIMABLE) {
            MigrateType::Reclaimable
        } else {
            MigrateType::Unmovable
        }
    }

    /// Where else a request may take from, in this order (docs/theory/pagealloc.md 1).
    #[inline]
    pub(crate) const fn fallbacks(self) -> [MigrateType; 2] {
        match self {
            MigrateType::Unmovable => [MigrateType::Reclaimable, MigrateType::Movable],
            MigrateType::Reclaimable => [MigrateType::Unmovable, MigrateType::Movable],
            MigrateType::Movable | MigrateType::Reserve => [MigrateType::Reclaimable, MigrateType::Unmovable],
        }
    }

    /// The kernel's name in /proc/pagetypeinfo.
    pub const fn name(self, policy: &PagesPolicy) -> &'static str {
        match self {
            MigrateType::Movable => "Movable",
            MigrateType::Unmovable => "Unmovable",
            MigrateType::Reclaimable => "Reclaimable",
            MigrateType::Reserve => match policy.reserve {
                crate::policy::Reserve::HighAtomic => "HighAtomic",
                _ => "Reserve",
            },
        }
    }
}
