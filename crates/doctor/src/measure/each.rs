//! What slabs that were read one by one tell of a cache, beside the counts: which of them are empty or
//! nearly so, and where its free objects are.
//!
//! A recording of `slablab record` has them (docs/record.md, "Every slab"). They say of a cache's free
//! objects what sums cannot: whether these are whole slabs, which a shrink gives back, or holes between
//! objects.

use crate::state::{Cache, State};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::slabs::{CacheSlabs, SlabPlace, SlabState};

/// A slab with at most this part of its objects in use is nearly empty.
const NEARLY_EMPTY: u64 = 8;

/// The slabs of one cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EachSlab {
    /// Its name.
    pub cache: String,
    /// Slabs.
    pub slabs: u64,
    /// Bytes of a slab.
    pub slab_bytes: u64,
    /// Objects in use: neither free in a slab nor parked in a sheaf.
    pub in_use: u64,
    /// Free objects of slabs on nodes' lists.
    pub free_listed: u64,
    /// Free objects of slabs that CPUs allocate from, or have on their lists.
    pub free_cpus: u64,
    /// Objects in sheaves.
    pub in_sheaves: u64,
    /// Slabs without an object in use, no CPU's.
    pub empty: u64,
    /// Slabs that are no CPU's with at least one object in use, and at most an eighth of theirs.
    pub nearly_empty: u64,
    /// Objects in use of those.
    pub in_use_nearly_empty: u64,
    /// Slabs that are more than the objects in use need.
    pub beyond_need: u64,
}

impl EachSlab {
    /// The slabs of `cache`, if the input has them one by one.
    pub fn of(cache: &Cache, state: &State) -> Option<EachSlab> {
        let names = std::iter::once(&cache.name).chain(&cache.aliases).filter(|_| cache.ordinal == 0);
        let snapshot = state.dump.slabs.as_deref()?;
        let found = names.into_iter().find_map(|name| snapshot.only(name))?;
        let each = EachSlab { cache: cache.name.clone(), ..EachSlab::counted(found) };
        Some(EachSlab { slab_bytes: cache.slab_bytes(state.page_size), ..each })
    }

    /// All of a state; none if its input has no slabs one by one.
    pub fn all(state: &State) -> Vec<EachSlab> {
        state.caches.iter().filter_map(|cache| EachSlab::of(cache, state)).collect()
    }

    fn counted(found: &CacheSlabs) -> EachSlab {
        let mut each = EachSlab { slabs: found.slabs.len() as u64, ..EachSlab::default() };
        let per_slab = found.slabs.iter().map(|slab| u64::from(slab.objects)).max().unwrap_or(0);
        found.slabs.iter().for_each(|slab| each.add(slab));
        each.in_sheaves = found.parked.iter().map(|parked| parked.objects.len() as u64).sum();
        let not_free = found.objects().saturating_sub(each.free_listed + each.free_cpus);
        each.in_use = not_free.saturating_sub(each.in_sheaves);
        each.beyond_need = each.slabs.saturating_sub(each.in_use.div_ceil(per_slab.max(1)));
        each
    }

    fn add(&mut self, slab: &SlabState) {
        let (objects, free) = (u64::from(slab.objects), slab.free.len() as u64);
        if matches!(slab.place, SlabPlace::Cpu(_) | SlabPlace::Chain(_)) {
            self.free_cpus += free;
            return;
        }
        self.free_listed += free;
        let in_use = objects.saturating_sub(free);
        match in_use {
            0 => self.empty += 1,
            1.. if in_use * NEARLY_EMPTY <= objects => {
                self.nearly_empty += 1;
                self.in_use_nearly_empty += in_use;
            }
            _ => {}
        }
    }

    /// Free objects that the kernel counts as active.
    pub fn parked(&self) -> u64 {
        self.free_cpus + self.in_sheaves
    }

    /// Bytes of slabs that are nearly empty.
    pub fn nearly_empty_bytes(&self) -> u64 {
        self.nearly_empty.saturating_mul(self.slab_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_readers::slabs::{Parked, Sheaf};

    #[test]
    fn slabs_by_how_full_they_are() {
        /// Slabs of 16 objects by place and free objects.
        #[track_caller]
        fn check(slabs: &[(SlabPlace, u16)], parked: usize, expected: EachSlab) {
            let slab = |(place, free): &(SlabPlace, u16)| SlabState {
                place: *place,
                node: 0,
                frame: 0,
                order: 0,
                objects: 16,
                free: (0..*free).collect(),
            };
            let parked = vec![Parked { sheaf: Sheaf::Main(0), objects: vec![0; parked] }];
            let found =
                CacheSlabs { slabs: slabs.iter().map(slab).collect(), parked, ..CacheSlabs::default() };
            assert_eq!(EachSlab::counted(&found), expected);
        }
        let none = EachSlab::default();
        check(&[], 0, none.clone());
        let one = EachSlab { slabs: 1, in_use: 16, ..none.clone() };
        check(&[(SlabPlace::None, 0)], 0, one.clone());
        // What a CPU holds is parked, however empty it is.
        let of_cpu = EachSlab { in_use: 0, free_cpus: 16, beyond_need: 1, ..one.clone() };
        check(&[(SlabPlace::Cpu(0), 16)], 0, of_cpu);
        let list =
            [(SlabPlace::List, 16), (SlabPlace::List, 14), (SlabPlace::List, 13), (SlabPlace::None, 0)];
        let listed = EachSlab {
            slabs: 4,
            in_use: 19,
            free_listed: 43,
            in_sheaves: 2,
            empty: 1,
            nearly_empty: 1,
            in_use_nearly_empty: 2,
            beyond_need: 2,
            ..none
        };
        check(&list, 2, listed);
    }
}
