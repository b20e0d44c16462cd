//! What a kernel keeps beside each object: the memory cgroup that it is charged to, and the line of code
//! that allocated it (docs/theory/slub.md 7.1).
//!
//! No engine of this crate keeps them: no modelled object is charged. The rules tell a dump's reader what the
//! kernel keeps, and where.

use crate::kmalloc::KmallocRule;
use crate::release::Release;

/// Objects have a word for their cgroup; before, each cgroup had caches of its own.
const CGROUPS_SINCE: Release = Release::new(5, 9, 0);
/// The line of code can be kept beside it, as one structure.
const PROFILING_SINCE: Release = Release::new(6, 10, 0);
/// Both lie in what a slab has left, if they fit.
const INSIDE_SINCE: Release = Release::new(7, 0, 0);
/// Arrays of two kmalloc caches do not keep each other's slabs any more.
const UNPINNED_SINCE: Release = Release::new(7, 2, 0);
/// The two words are kept apart.
const SPLIT_SINCE: Release = Release::new(7, 3, 0);

/// Bytes of each of the two words.
const WORD: u32 = 8;

/// Memory allocation profiling of a kernel (`CONFIG_MEM_ALLOC_PROFILING`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profiling {
    /// Not compiled in.
    #[default]
    Absent,
    /// Compiled in, and off (`vm.mem_profiling`).
    Off,
    /// On.
    On,
}

/// Whose objects a cache has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// kmalloc without `__GFP_ACCOUNT`: `kmalloc-512`.
    Kmalloc,
    /// Objects that are charged to a cgroup: `SLAB_ACCOUNT`, `kmalloc-cg-512`.
    Charged,
    /// Other objects.
    Other,
}

/// Where a slab's words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind the last object of the slab.
    Leftover,
    /// In the padding of each object.
    Padding,
    /// In an array, which is an object of kmalloc.
    Array,
}

/// A kernel's accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounting {
    /// The kernel's release.
    pub release: Release,
    /// Whether it has memory cgroups, and charges kernel memory to them.
    pub cgroups: bool,
    /// Allocation profiling.
    pub profiling: Profiling,
}

/// A slab, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabOf {
    /// Bytes of the slab.
    pub bytes: u64,
    /// Bytes from one object to the next.
    pub size: u64,
    /// Objects.
    pub objects: u64,
    /// Bytes of padding behind each object.
    pub padding: u64,
}

impl Accounting {
    /// Bytes that the kernel keeps beside each object of a slab; 0 for nothing.
    pub fn bytes_per_object(&self, owner: Owner) -> u32 {
        let profiling = match self.profiling {
            Profiling::Absent => Profiling::Absent,
            _ if self.release < PROFILING_SINCE => Profiling::Absent,
            known => known,
        };
        let on = profiling == Profiling::On;
        let cgroups = self.cgroups && self.release >= CGROUPS_SINCE;
        let charged = cgroups && owner == Owner::Charged;
        let words = if self.release >= SPLIT_SINCE {
            // Of kmalloc no object is ever charged, and so none has the first word.
            let may_be_charged = charged || (cgroups && on && owner == Owner::Other);
            u32::from(may_be_charged) + u32::from(on)
        } else if charged || on {
            u32::from(cgroups) + u32::from(profiling != Profiling::Absent)
        } else {
            0
        };
        words * WORD
    }

    /// Where a slab keeps `per_object` bytes beside each object.
    pub fn place(&self, slab: &SlabOf, per_object: u32) -> Place {
        let per_object = u64::from(per_object);
        let leftover = slab.bytes.saturating_sub(slab.objects.saturating_mul(slab.size));
        match self.release >= INSIDE_SINCE {
            true if slab.objects.saturating_mul(per_object) <= leftover => Place::Leftover,
            true if slab.padding >= per_object => Place::Padding,
            _ => Place::Array,
        }
    }

    /// Bytes of the kmalloc class that an array for `objects` objects is in.
    pub fn array_bytes(rule: &KmallocRule, objects: u64, per_object: u32) -> u64 {
        rule.size_of(rule.class_of(objects.saturating_mul(per_object.into())))
    }

    /// Whether arrays of two kmalloc caches keep each other's slabs: each array of one lies in a slab of the
    /// other, so that neither slab becomes empty. Only profiling gives kmalloc's own objects arrays.
    pub fn arrays_pin(&self) -> bool {
        let releases = PROFILING_SINCE..UNPINNED_SINCE;
        self.bytes_per_object(Owner::Kmalloc) > 0 && releases.contains(&self.release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Preset;

    /// Bytes beside an object of kmalloc, of one that is charged, and of another one.
    #[track_caller]
    fn check(release: &str, cgroups: bool, profiling: Profiling, expected: [u32; 3]) {
        let release = Release::parse(release).expect("a release");
        let kernel = Accounting { release, cgroups, profiling };
        let found = [Owner::Kmalloc, Owner::Charged, Owner::Other].map(|of| kernel.bytes_per_object(of));
        assert_eq!(found, expected, "{kernel:?}");
    }

    #[test]
    fn words_by_release() {
        use Profiling::{Absent, Off, On};
        check("5.8", true, Absent, [0, 0, 0]);
        check("5.9", true, Absent, [0, 8, 0]);
        check("6.1", false, Absent, [0, 0, 0]);
        check("6.9", true, On, [0, 8, 0]);
        check("6.12.117+deb12", true, Absent, [0, 8, 0]);
        check("6.12", true, Off, [0, 16, 0]);
        check("6.12", true, On, [16, 16, 16]);
        check("6.12", false, On, [8, 8, 8]);
        check("7.2", true, Off, [0, 16, 0]);
        check("7.3", true, Off, [0, 8, 0]);
        check("7.3", true, On, [8, 16, 16]);
        check("7.3", false, On, [8, 8, 8]);
    }

    #[test]
    fn places_by_release() {
        let check = |release: &str, (bytes, size, objects, padding), per_object, expected| {
            let release = Release::parse(release).expect("a release");
            let kernel = Accounting { release, cgroups: true, profiling: Profiling::Absent };
            let slab = SlabOf { bytes, size, objects, padding };
            assert_eq!(kernel.place(&slab, per_object), expected, "{release} {slab:?} {per_object}");
        };
        // dentry: 21 objects of 192 bytes leave 64.
        check("6.18", (4096, 192, 21, 0), 8, Place::Array);
        check("7.0", (4096, 192, 21, 0), 8, Place::Array);
        // ext4_inode_cache: 14 objects of 1128 bytes leave 592.
        check("6.18", (16384, 1128, 14, 0), 8, Place::Array);
        check("7.0", (16384, 1128, 14, 0), 8, Place::Leftover);
        check("7.0", (16384, 1128, 14, 0), 16, Place::Leftover);
        check("7.0", (4096, 128, 32, 16), 16, Place::Padding);
        check("7.0", (4096, 128, 32, 8), 16, Place::Array);
    }

    #[test]
    fn arrays_are_of_kmalloc() {
        let rule = KmallocRule::of(&Preset::parse("slub@6.18").expect("a preset"), 12);
        for (objects, per_object, bytes) in [(21, 8, 192), (14, 8, 128), (32, 16, 512), (64, 16, 1024)] {
            assert_eq!(Accounting::array_bytes(&rule, objects, per_object), bytes, "{objects}");
        }
    }

    #[test]
    fn arrays_pin_each_other_until_7_1() {
        let pins = |release, profiling| {
            let release = Release::parse(release).expect("a release");
            Accounting { release, cgroups: true, profiling }.arrays_pin()
        };
        assert!(pins("6.12", Profiling::On) && pins("6.16", Profiling::On) && pins("7.1.13", Profiling::On));
        assert!(!pins("7.2", Profiling::On) && !pins("6.18", Profiling::Off) && !pins("6.9", Profiling::On));
    }
}
