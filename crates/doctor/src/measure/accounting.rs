//! What the kernel keeps beside each object: whom it is charged to, and which line of code allocated it
//! (docs/theory/slub.md 7.1).
//!
//! ```text
//! Charging            of a machine: its kernel's accounting, and whether it is in use
//!   Words             of a cache: bytes beside each object, where they are, how many in all
//! ```
//!
//! Words in arrays are objects of kmalloc, and so are in the memory of those caches; words in slabs are a
//! part of what would be their ends and their padding otherwise.

use super::parked::parked_objects;
use super::split::{Between, Split};
use crate::state::{Cache, State};
use slablab_slabs::Preset;
pub use slablab_slabs::accounting::Place;
use slablab_slabs::accounting::{Accounting, Owner, Profiling, SlabOf};
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::kmalloc::KmallocRule;
use slablab_slabs::partition::normal_size;

/// The kmalloc caches of charged objects; there are none where the kernel charges nothing.
const TWINS: &str = "kmalloc-cg-";

/// Caches whose objects are charged (`SLAB_ACCOUNT`) and whose names in sysfs do not say so, as they are
/// never merged: by the commit of 2016 that marked what programs can make the kernel allocate, and those of
/// the same kind since.
const CHARGED: [&str; 13] = [
    "dentry",
    "filp",
    "task_struct",
    "thread_stack",
    "sighand_cache",
    "signal_cache",
    "mm_struct",
    "vm_area_struct",
    "anon_vma",
    "inode_cache",
    "TCP",
    "TCPv6",
    "sock_inode_cache",
];

/// Inodes that are charged have this in their names; those of security modules, which are not inodes, not.
const INODES: &str = "_inode_cache";
const NO_INODES: &str = "lsm_inode_cache";

/// The cache of memory cgroups themselves, since 6.15.
const MEM_CGROUPS: &str = "mem_cgroup";

/// What the kernel of a machine keeps beside objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charging {
    /// The rules.
    pub kernel: Accounting,
    /// Whether there are memory cgroups beside the root, without which nothing is charged; `None` if the
    /// input does not tell.
    pub in_use: Option<bool>,
}

/// What a cache's slabs keep beside their objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Bytes beside each object.
    pub per_object: u32,
    /// Where.
    pub place: Place,
    /// Bytes of each array with what kmalloc rounds up; 0 where there are none.
    pub array: u64,
    /// Bytes of all slabs.
    pub bytes: u64,
}

impl Words {
    /// A split of the cache where a part of the slabs' ends, or of the padding between objects, is used for
    /// these words.
    pub(super) fn within(&self, mut split: Split) -> Split {
        let Some(metadata) = &mut split.metadata else { return split };
        let from = match self.place {
            Place::Leftover => &mut split.tail,
            Place::Padding => &mut metadata.alignment,
            Place::Array => return split,
        };
        let bytes = self.bytes.min(*from);
        *from -= bytes;
        metadata.accounting = bytes;
        split
    }
}

impl Charging {
    /// What the input tells; `None` if it does not tell the release.
    pub fn of(state: &State) -> Option<Charging> {
        let release = state.release?;
        let is_set = |option: &str| state.dump.config.get(option).is_some_and(|value| value == "y");
        let words = || state.dump.cmdline.iter().flat_map(|line| line.split_whitespace());
        // kmalloc's twins are there if and only if the kernel charges kernel memory.
        let cgroups = state.caches.iter().any(|cache| cache.name.starts_with(TWINS));
        let at_boot = words().filter_map(|word| word.strip_prefix("sysctl.vm.mem_profiling=")).next_back();
        let on = match at_boot {
            Some(value) => value.starts_with('1'),
            None => is_set("MEM_ALLOC_PROFILING_ENABLED_BY_DEFAULT"),
        };
        let profiling = match is_set("MEM_ALLOC_PROFILING") {
            true if on => Profiling::On,
            true => Profiling::Off,
            // Only a kernel that has it is started with it.
            false if at_boot.is_some_and(|value| value.starts_with('1')) => Profiling::On,
            false => Profiling::Absent,
        };
        Some(Charging { kernel: Accounting { release, cgroups, profiling }, in_use: in_use(state) })
    }

    /// What the slabs of a cache keep; `None` for nothing, or where it is not known.
    pub fn words(&self, cache: &Cache, state: &State) -> Option<Words> {
        let charges = self.in_use == Some(true);
        if cache.bytes_only || !(charges || self.kernel.profiling == Profiling::On) {
            return None;
        }
        let per_object = self.kernel.bytes_per_object(owner(cache));
        if per_object == 0 {
            return None;
        }
        let slab = SlabOf {
            bytes: cache.slab_bytes(state.page_size),
            size: cache.size,
            objects: cache.objects_per_slab,
            padding: Between::of(cache).alignment,
        };
        let place = self.kernel.place(&slab, per_object);
        let (array, of_slab) = match place {
            Place::Array => {
                let array = self.array_bytes(cache, state, per_object);
                (array, array)
            }
            Place::Leftover | Place::Padding => (0, cache.objects_per_slab.saturating_mul(per_object.into())),
        };
        Some(Words { per_object, place, array, bytes: cache.slabs.saturating_mul(of_slab) })
    }

    /// Bytes of the kmalloc class of the array of each slab.
    pub fn array_bytes(&self, cache: &Cache, state: &State, per_object: u32) -> u64 {
        let preset = Preset::of_kernel(self.kernel.release).unwrap_or(OLDEST);
        let rule = KmallocRule::of(&preset, state.page_size.max(1).ilog2());
        Accounting::array_bytes(&rule, cache.objects_per_slab, per_object)
    }
}

/// Whose classes an unknown kernel has.
const OLDEST: Preset = Preset::Slub(SlubPolicy::V6_1);

/// Whether there are memory cgroups beside the root.
fn in_use(state: &State) -> Option<bool> {
    let owners = &state.dump.owners;
    let counted = owners.counted.or((!owners.cgroups.is_empty()).then_some(owners.cgroups.len() as u64));
    // Objects of CPU slabs and sheaves are counted as active.
    let surely = || {
        let cache = state.cache(MEM_CGROUPS)?;
        Some(cache.active_objects.saturating_sub(parked_objects(cache, state)?.high))
    };
    match counted {
        Some(cgroups) => Some(cgroups > 1),
        None => surely().filter(|cgroups| *cgroups > 1).map(|_| true),
    }
}

/// Whose objects a cache has. The directory of a merged cache says it: `:A-0000192`.
pub fn owner(cache: &Cache) -> Owner {
    let is_merged_charged = |name: &str| {
        name.strip_prefix(':').and_then(|id| id.split_once('-')).is_some_and(|(flags, _)| flags.contains('A'))
    };
    let name = cache.name.as_str();
    let copies = ["kmalloc-part-", "kmalloc-rnd-"];
    if normal_size(name).is_some() || copies.iter().any(|copies| name.starts_with(copies)) {
        Owner::Kmalloc
    } else if name.starts_with(TWINS)
        || CHARGED.contains(&name)
        || (name.ends_with(INODES) && name != NO_INODES)
        || cache.attrs.as_ref().is_some_and(|attrs| is_merged_charged(&attrs.name))
    {
        Owner::Charged
    } else {
        Owner::Other
    }
}

/// Two kmalloc caches by place in the state, each with its arrays in slabs of the other.
pub fn pinning_pairs(state: &State, charging: &Charging) -> Vec<(usize, usize)> {
    if !charging.kernel.arrays_pin() {
        return Vec::new();
    }
    let per_object = charging.kernel.bytes_per_object(Owner::Kmalloc);
    let kmalloc = |at: &usize| normal_size(&state.caches[*at].name).is_some();
    let all: Vec<usize> = (0..state.caches.len()).filter(kmalloc).collect();
    let array = |at: usize| charging.array_bytes(&state.caches[at], state, per_object);
    let is_pair = |one: usize, other: usize| {
        array(one) == state.caches[other].size && array(other) == state.caches[one].size
    };
    let pairs = all.iter().enumerate().flat_map(|(turn, one)| {
        let others = all[turn + 1..].iter();
        others.filter(|other| is_pair(*one, **other)).map(|other| (*one, *other))
    });
    pairs.collect()
}
