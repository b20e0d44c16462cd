//! What a kernel lets its user change about slabs, by release.
//!
//! Releases are those of docs/theory where a chapter has them. Any other knob has the release whose kernel
//! documentation first names it; docs/doctor.md lists which. A knob outside its releases is never advised.

use crate::measure::allocator::Allocator;
use crate::state::State;
use slablab_slabs::Release;

/// How a knob is turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the kernel's command line, at the next boot, for all caches.
    Boot,
    /// On the kernel's command line, for a list of caches or for all.
    BootList,
    /// A file below /sys/kernel/slab/CACHE, now, for one cache.
    PerCache,
    /// A file of the whole machine, now.
    Now,
    /// A program that holds the objects, now.
    Owner,
    /// It can be read, not changed.
    ReadOnly,
}

impl Way {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Way::Boot => "at boot, all caches",
            Way::BootList => "at boot, a list of caches or all",
            Way::PerCache => "now, one cache",
            Way::Now => "now, the machine",
            Way::Owner => "now, what holds them",
            Way::ReadOnly => "read-only",
        }
    }
}

/// Which allocator has a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// SLUB, with or without sheaves.
    Slub,
    /// SLAB, until 6.7.
    Slab,
    /// The kernel around the allocator.
    Kernel,
}

/// A knob in a range of releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// The file or the parameter, by the name it has in these releases.
    pub name: &'static str,
    /// Its name for programs, equal for all releases.
    pub key: &'static str,
    /// First release.
    pub since: Release,
    /// First release without it; `None` if it is still there.
    pub until: Option<Release>,
    /// How it is turned.
    pub way: Way,
    /// Whose it is.
    pub of: Of,
}

const fn at(major: u16, minor: u16, patch: u16) -> Release {
    Release::new(major, minor, patch)
}

/// Orders in sysfs became read-only.
const ORDER_FIXED: Release = at(5, 9, 0);
/// The release that renamed the boot parameters from `slub_...` to `slab_...`. The old names still work.
const RENAMED: Release = at(6, 9, 0);
/// The first SLUB.
const SLUB: Release = at(2, 6, 22);
/// Orders chosen by the number of CPUs, with parameters to say otherwise.
const ORDERS: Release = at(2, 6, 26);

const fn knob(
    key: &'static str,
    name: &'static str,
    since: Release,
    until: Option<Release>,
    way: Way,
    of: Of,
) -> Knob {
    Knob { name, key, since, until, way, of }
}

/// Every knob, the ones that are turned now first.
pub const KNOBS: &[Knob] = &[
    knob("shrink", "shrink", SLUB, None, Way::PerCache, Of::Slub),
    knob("min_partial", "min_partial", at(2, 6, 30), None, Way::PerCache, Of::Slub),
    knob("cpu_partial", "cpu_partial", at(3, 2, 0), Some(at(7, 0, 0)), Way::PerCache, Of::Slub),
    knob("remote_defrag", "remote_node_defrag_ratio", at(2, 6, 25), None, Way::PerCache, Of::Slub),
    knob("order", "order", SLUB, Some(ORDERS), Way::ReadOnly, Of::Slub),
    knob("order", "order", ORDERS, Some(ORDER_FIXED), Way::PerCache, Of::Slub),
    knob("order", "order", ORDER_FIXED, None, Way::ReadOnly, Of::Slub),
    knob("sheaf_capacity", "sheaf_capacity", at(6, 18, 0), None, Way::ReadOnly, Of::Slub),
    knob("max_order", "slub_max_order", ORDERS, Some(RENAMED), Way::Boot, Of::Slub),
    knob("max_order", "slab_max_order", RENAMED, None, Way::Boot, Of::Slub),
    knob("min_order", "slub_min_order", ORDERS, Some(RENAMED), Way::Boot, Of::Slub),
    knob("min_order", "slab_min_order", RENAMED, None, Way::Boot, Of::Slub),
    knob("min_objects", "slub_min_objects", ORDERS, Some(RENAMED), Way::Boot, Of::Slub),
    knob("min_objects", "slab_min_objects", RENAMED, None, Way::Boot, Of::Slub),
    knob("nomerge", "slub_nomerge", SLUB, Some(at(3, 18, 0)), Way::Boot, Of::Slub),
    knob("nomerge", "slab_nomerge", at(3, 18, 0), None, Way::Boot, Of::Slub),
    knob("debug", "slub_debug", SLUB, Some(RENAMED), Way::BootList, Of::Slub),
    knob("debug", "slab_debug", RENAMED, None, Way::BootList, Of::Slub),
    knob("tunables", "/proc/slabinfo", at(2, 6, 0), Some(at(6, 8, 0)), Way::Now, Of::Slab),
    knob("noaliencache", "noaliencache", at(2, 6, 18), Some(at(6, 8, 0)), Way::Boot, Of::Slab),
    knob("drop_caches", "/proc/sys/vm/drop_caches", at(2, 6, 16), None, Way::Now, Of::Kernel),
    knob("cache_pressure", "vm.vfs_cache_pressure", at(2, 6, 0), None, Way::Now, Of::Kernel),
    knob("sites", "slablab record", at(3, 10, 0), None, Way::Now, Of::Kernel),
    knob("owner", "owner", at(2, 6, 0), None, Way::Owner, Of::Kernel),
    knob("nokmem", "cgroup.memory=nokmem", at(4, 5, 0), None, Way::Boot, Of::Kernel),
];

/// The knobs of this machine's kernel. None where the input does not tell the release: what is not known to
/// be there is not advised.
pub fn knobs(state: &State) -> impl Iterator<Item = &'static Knob> {
    let release = state.release;
    let own = match Allocator::of(state) {
        Allocator::Slub => Of::Slub,
        Allocator::Slab => Of::Slab,
    };
    KNOBS.iter().filter(move |knob| {
        let in_time =
            |release: Release| release >= knob.since && knob.until.is_none_or(|until| release < until);
        release.is_some_and(in_time) && (knob.of == Of::Kernel || knob.of == own)
    })
}

/// The knob of this key, if this kernel has it and lets it be turned.
pub fn turnable(state: &State, key: &str) -> Option<&'static Knob> {
    knobs(state).find(|knob| knob.key == key && knob.way != Way::ReadOnly)
}
