//! The start of a cache whose slabs were read: nothing of it is guessed.
//!
//! What the snapshot says stands. Where the recording's first event of an object says otherwise, a path
//! without events changed it in between:
//!
//! | in the snapshot | first event | the replay |
//! |---|---|---|
//! | in use | a free | frees it |
//! | in use | an allocation | frees it just before: it was freed without an event |
//! | free, or in a sheaf | an allocation | hands out what its own lists say |
//! | free, or in a sheaf | a free | allocates an object just before: it was allocated without an event |

use super::planned::{PlannedSlab, Start};
use super::survey::{CacheSurvey, SlabSurvey};
use rustc_hash::FxHashMap;
use slablab_platform::CpuId;
use slablab_readers::slabs::{CacheSlabs, Sheaf, SlabPlace, SlabState, Snapshot};
use slablab_slabs::Place;

/// The start of one cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// Its slabs, in the order in which an engine makes them.
    pub(super) slabs: Vec<PlannedSlab>,
    /// Objects in sheaves, in the order in which they come there: CPU, slab, object.
    pub(super) parked: Vec<(u16, usize, u16)>,
    /// Objects in use whose first event is an allocation: its row, slab, object.
    pub(super) freed_unseen: Vec<(u64, usize, u16)>,
    /// Objects in use whose first event is a free: slab, object.
    pub(super) old: Vec<(usize, u16)>,
    /// Objects that are free, and whose first event is a free.
    pub(super) allocated_unseen: u64,
}

/// The start of a cache of which `found` was read; `seen` is what events show of its slabs, `objects` the
/// number of objects of a slab of the usual order.
pub(super) fn observed(
    (snapshot, found): (&Snapshot, &CacheSlabs),
    seen: &CacheSurvey,
    objects: u32,
) -> Observed {
    let mut start = Observed::default();
    let mut places: FxHashMap<u64, usize> = FxHashMap::default();
    for slab in in_order(&found.slabs) {
        let address = snapshot.address(slab);
        let at = start.slabs.len();
        places.insert(address, at);
        start.slabs.push(planned(slab, address, objects));
        if let Some(seen) = seen.slabs.get(&address) {
            start.compare(at, seen);
        }
    }
    let bytes: Vec<u64> = found.slabs.iter().map(|slab| snapshot.page_bytes << slab.order).collect();
    let largest = bytes.iter().copied().max().unwrap_or(snapshot.page_bytes);
    let slab_of = |object: u64| {
        let mut steps = std::iter::successors(Some(largest), |bytes| Some(bytes / 2));
        let base = steps.by_ref().take_while(|bytes| *bytes >= snapshot.page_bytes);
        base.map(|bytes| object & !(bytes - 1)).find_map(|base| Some((base, *places.get(&base)?)))
    };
    for sheaf in sheaves(found) {
        // The kernel hands out the first of a list next, so it is put there last.
        for object in sheaf.1.iter().rev() {
            let Some((base, at)) = slab_of(*object) else { continue };
            let index = ((object - base) / found.size) as u16;
            let is_kept = |start: &Start| *start == Start::Kept;
            if start.slabs[at].objects.get(usize::from(index)).is_some_and(is_kept) {
                start.parked.push((sheaf.0, at, index));
            }
        }
    }
    let is_parked = |at: usize, index: u16, parked: &[(u16, usize, u16)]| {
        parked.iter().any(|(_, slab, object)| (*slab, *object) == (at, index))
    };
    let Observed { parked, freed_unseen, old, allocated_unseen, .. } = &mut start;
    freed_unseen.retain(|(_, at, index)| !is_parked(*at, *index, parked));
    let before = old.len();
    old.retain(|(at, index)| !is_parked(*at, *index, parked));
    *allocated_unseen += (before - old.len()) as u64;
    start
}

/// The slabs in the order in which an engine makes them: the newest of a CPU's chain is put there last.
fn in_order(slabs: &[SlabState]) -> Vec<&SlabState> {
    let mut ordered: Vec<&SlabState> = slabs.iter().collect();
    let rank = |slab: &&SlabState| match slab.place {
        SlabPlace::Cpu(cpu) => (0, cpu),
        SlabPlace::Chain(cpu) => (1, cpu),
        SlabPlace::List => (2, 0),
        SlabPlace::None => (3, 0),
    };
    ordered.sort_by_key(rank);
    ordered.chunk_by_mut(|a, b| rank(a) == rank(b)).for_each(|part| {
        if matches!(part[0].place, SlabPlace::Chain(_)) {
            part.reverse();
        }
    });
    ordered
}

/// A slab that fell back to a lower order has fewer objects: the others of it are in use for ever.
fn planned(slab: &SlabState, address: u64, objects: u32) -> PlannedSlab {
    let mut starts = vec![Start::Kept; objects as usize];
    for (turn, index) in (0..).zip(&slab.free) {
        if let Some(start) = starts.get_mut(usize::from(*index)) {
            *start = Start::Free(turn);
        }
    }
    let place = match slab.place {
        SlabPlace::Cpu(cpu) => Place::Cpu(CpuId(cpu)),
        SlabPlace::Chain(cpu) => Place::CpuPartial(CpuId(cpu)),
        SlabPlace::List | SlabPlace::None => Place::Node,
    };
    PlannedSlab { node: slab.node, address, place, objects: starts }
}

/// Sheaves with the CPU that fills them, those that are filled first in front: barns are filled from full
/// sheaves of their CPUs, the spare one before the main one is.
fn sheaves(found: &CacheSlabs) -> Vec<(u16, &[u64])> {
    let of = |wanted: fn(Sheaf) -> Option<u16>| {
        let parked = found.parked.iter();
        parked.filter_map(move |parked| Some((wanted(parked.sheaf)?, &parked.objects[..])))
    };
    let barn = of(|sheaf| if let Sheaf::Barn(_) = sheaf { Some(0) } else { None });
    let waiting = of(|sheaf| if let Sheaf::Rcu(cpu) = sheaf { Some(cpu) } else { None });
    let spare = of(|sheaf| if let Sheaf::Spare(cpu) = sheaf { Some(cpu) } else { None });
    let main = of(|sheaf| if let Sheaf::Main(cpu) = sheaf { Some(cpu) } else { None });
    barn.chain(waiting).chain(spare).chain(main).collect()
}

impl Observed {
    fn compare(&mut self, at: usize, seen: &SlabSurvey) {
        let objects = &self.slabs[at].objects;
        let is_kept = |index: u16| objects.get(usize::from(index)) == Some(&Start::Kept);
        for ((index, _), row) in
            seen.free.iter().zip(&seen.free_rows).filter(|((index, _), _)| is_kept(*index))
        {
            self.freed_unseen.push((*row, at, *index));
        }
        for index in &seen.live {
            match is_kept(*index) {
                true => self.old.push((at, *index)),
                false => self.allocated_unseen += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_readers::slabs::Parked;

    const PAGE: u64 = 4096;

    fn slab(place: SlabPlace, frame: u64, free: &[u16]) -> SlabState {
        SlabState { place, node: 0, frame, order: 0, objects: 4, free: free.to_vec() }
    }

    /// The start of a cache with slabs of four objects; `events` of a slab: allocations and frees.
    fn start(slabs: &[SlabState], parked: &[Parked], events: &[(u64, &[u16], &[u16])]) -> Observed {
        let snapshot = Snapshot { page_bytes: PAGE, ..Snapshot::default() };
        let (slabs, parked) = (slabs.to_vec(), parked.to_vec());
        let cache = CacheSlabs { name: "filp".into(), size: 1024, slabs, parked, ..CacheSlabs::default() };
        let mut seen = CacheSurvey::default();
        for (frame, free, live) in events {
            let mut slab = SlabSurvey::default();
            slab.free = free.iter().map(|index| (*index, 0)).collect();
            slab.free_rows = (10..).take(free.len()).collect();
            slab.live = live.to_vec();
            seen.slabs.insert(frame * PAGE, slab);
        }
        observed((&snapshot, &cache), &seen, 4)
    }

    #[test]
    fn slabs_are_where_they_were() {
        let slabs = [
            slab(SlabPlace::None, 1, &[]),
            slab(SlabPlace::List, 2, &[3, 1]),
            slab(SlabPlace::Chain(1), 3, &[0]),
            slab(SlabPlace::Chain(1), 4, &[1]),
            slab(SlabPlace::List, 5, &[2]),
            slab(SlabPlace::Cpu(0), 6, &[2, 0]),
        ];
        let found = start(&slabs, &[], &[]);
        let order: Vec<u64> = found.slabs.iter().map(|slab| slab.address / PAGE).collect();
        // The chain's head is the newest; lists keep their order.
        assert_eq!(order, [6, 4, 3, 2, 5, 1]);
        assert_eq!(found.slabs[0].place, Place::Cpu(CpuId(0)));
        assert_eq!(found.slabs[0].objects, [Start::Free(1), Start::Kept, Start::Free(0), Start::Kept]);
        assert_eq!(found.slabs[5].objects, [Start::Kept; 4]);
    }

    #[test]
    fn the_snapshot_stands_where_an_event_says_otherwise() {
        /// A slab with object 0 free: its first events, and what follows.
        #[track_caller]
        fn check(events: (&[u16], &[u16]), freed: &[(u64, u16)], old: &[u16], allocated: u64) {
            let found = start(&[slab(SlabPlace::List, 7, &[0])], &[], &[(7, events.0, events.1)]);
            let expected: Vec<_> = freed.iter().map(|(row, index)| (*row, 0, *index)).collect();
            assert_eq!(found.freed_unseen, expected);
            assert_eq!(found.old, old.iter().map(|index| (0, *index)).collect::<Vec<_>>());
            assert_eq!(found.allocated_unseen, allocated);
        }
        check((&[], &[]), &[], &[], 0);
        check((&[0], &[]), &[], &[], 0);
        check((&[0, 2], &[]), &[(11, 2)], &[], 0);
        check((&[], &[1]), &[], &[1], 0);
        check((&[], &[0]), &[], &[], 1);
    }

    #[test]
    fn parked_objects_are_neither_free_in_slabs_nor_in_use() {
        let objects = |indexes: &[u64]| indexes.iter().map(|index| 7 * PAGE + index * 1024).collect();
        let main = Parked { sheaf: Sheaf::Main(1), objects: objects(&[2, 1]) };
        let barn = Parked { sheaf: Sheaf::Barn(0), objects: objects(&[3]) };
        let elsewhere = Parked { sheaf: Sheaf::Spare(0), objects: vec![99 * PAGE] };
        let slabs = [slab(SlabPlace::List, 7, &[0])];
        let found = start(&slabs, &[main, barn, elsewhere], &[(7, &[2], &[1])]);
        // The barn's first; the main sheaf hands out 2 first, so it is put there last.
        assert_eq!(found.parked, [(0, 0, 3), (1, 0, 1), (1, 0, 2)]);
        assert_eq!((found.freed_unseen, found.old, found.allocated_unseen), (vec![], vec![], 1));
    }
}
