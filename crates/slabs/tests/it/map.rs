//! SLUB with maps of free objects (`freelist=map`). No kernel has them, so these tests define the behaviour.

use crate::heap::Heap;
use slablab_model::{Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{Frames, Gfp, Word};
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::slab::{NewObjects, Slab};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Misuse, Preset};

type Ptr = <Model as Frames>::Ptr;

/// Calls `f` with a cache of objects of 64 bytes, without sheaves, 64 objects in a slab.
fn with(new: NewObjects<Model>, f: impl FnOnce(&Slub<Model>, &Backing<'_, Model>)) {
    with_policy("slub@7.1,freelist=map,sheaves=off,max_order=0", new, f);
}

fn with_policy(text: &str, new: NewObjects<Model>, f: impl FnOnce(&Slub<Model>, &Backing<'_, Model>)) {
    let Ok(Preset::Slub(policy)) = Preset::parse(text) else { unreachable!("{text} is SLUB") };
    let mut machine = Machine::new(MachineSpec::uniform(2, 1, 1 << 30)).expect("the spec is right");
    machine.enter(|| {
        let pages = Pages::new(PagesPolicy::for_release(7, 0, 0));
        let mut cache = Slub::<Model>::create(CacheId(1), &CacheSpec::of_size(64), &policy);
        cache.set_new_objects(new);
        let backing = Backing::pages(&pages);
        f(&cache, &backing);
        assert_eq!(cache.destroy(&backing), Ok(()));
    });
}

fn alloc(cache: &Slub<Model>, backing: &Backing<'_, Model>) -> Ptr {
    cache.alloc(backing, Gfp::KERNEL, None).expect("memory")
}

fn map_of(object: Ptr) -> u64 {
    let (slab, _) = Slab::<Model>::of(object).expect("a slab");
    Model::with_map(slab.pfn(), 0, |word| word.load())
}

#[test]
fn the_lowest_free_objects_go_first() {
    with(NewObjects::default(), |cache, backing| {
        let objects: Vec<Ptr> = (0..64).map(|_| alloc(cache, backing)).collect();
        assert!(objects.windows(2).all(|pair| pair[1].0.get() - pair[0].0.get() == 64), "by address");
        for index in [40, 7, 63, 20] {
            cache.free(backing, objects[index]).expect("an object");
        }
        assert_eq!(map_of(objects[0]), 1 << 40 | 1 << 7 | 1 << 63 | 1 << 20);
        let again: Vec<Ptr> = (0..4).map(|_| alloc(cache, backing)).collect();
        assert_eq!(again, [7, 20, 40, 63].map(|index: usize| objects[index]));
        objects.iter().for_each(|object| cache.free(backing, *object).expect("an object"));
    });
}

/// Also where a sheaf's objects are of two slabs.
#[test]
fn a_sheaf_hands_out_its_slabs_in_their_order() {
    let Ok(Preset::Slub(policy)) = Preset::parse("slub@7.1,freelist=map,max_order=0") else {
        unreachable!("it is SLUB")
    };
    let mut machine = Machine::new(MachineSpec::uniform(2, 1, 1 << 30)).expect("the spec is right");
    machine.enter(|| {
        let heap =
            Heap::<Slub<Model>>::of(&policy, PagesPolicy::for_release(7, 0, 0), &CacheSpec::of_size(64));
        heap.with(|cache, backing| {
            let objects: Vec<Ptr> = (0..320).map(|_| alloc(cache, backing)).collect();
            let slabs: Vec<_> = objects.chunks(64).map(|slab| slab[0]).collect();
            for (slab, first) in objects.chunks(64).zip(&slabs) {
                let offsets: Vec<u64> = slab.iter().map(|object| object.0.get() - first.0.get()).collect();
                assert!(offsets.iter().copied().eq((0..64).map(|number| number * 64)), "{offsets:?}");
            }
            objects.iter().for_each(|object| cache.free(backing, *object).expect("an object"));
        });
    });
}

/// The second free is refused, whatever was freed in between, and changes nothing.
#[test]
fn an_object_is_freed_once() {
    with(NewObjects::default(), |cache, backing| {
        let objects: Vec<Ptr> = (0..65).map(|_| alloc(cache, backing)).collect();
        for place in [3, 9, 5] {
            cache.free(backing, objects[place]).expect("an object");
        }
        for place in [3, 5, 9] {
            let before = (map_of(objects[0]), cache.usage());
            assert_eq!(cache.free(backing, objects[place]), Err(Misuse::AlreadyFree), "object {place}");
            assert_eq!((map_of(objects[0]), cache.usage()), before, "object {place}");
        }
        // In a batch the others are freed, and one that is there twice is free afterwards.
        let batch = [10, 3, 11, 10, 12].map(|place| objects[place]);
        assert_eq!(cache.free_bulk(backing, &batch), Err(Misuse::AlreadyFree));
        let freed = [3, 5, 9, 10, 11, 12];
        assert_eq!(map_of(objects[0]), freed.iter().fold(0, |bits, place| bits | 1 << place));
        for place in (0..65).filter(|place| !freed.contains(place)) {
            cache.free(backing, objects[place]).expect("an object");
        }
    });
}

/// In a batch of several slabs, those behind an object that is free already are freed too.
#[test]
fn a_double_free_in_a_batch_leaves_no_object_behind() {
    for text in ["slub@7.1,freelist=map,sheaves=off,max_order=0", "slub@7.1,freelist=map,max_order=0"] {
        with_policy(text, NewObjects::default(), |cache, backing| {
            let objects: Vec<Ptr> = (0..3 * 64).map(|_| alloc(cache, backing)).collect();
            let wrong = [70, 71];
            wrong.iter().for_each(|place| cache.free(backing, objects[*place]).expect("an object"));
            cache.shrink(backing);
            // The second slab is the first that the batch ends with, and the last object of it that it frees
            // empties it.
            let batch: Vec<Ptr> =
                [0..64, 128..192, 64..128].into_iter().flatten().map(|place| objects[place]).collect();
            assert_eq!(cache.free_bulk(backing, &batch), Err(Misuse::AlreadyFree), "{text}");
            assert_eq!(cache.usage().live_objects(), 0, "{text}");
        });
    }
}

/// An object that empties its slab, and comes twice, is found though its slab is gone.
#[test]
fn a_double_free_is_found_when_its_slab_is_gone() {
    let text = "slub@7.1,freelist=map,sheaves=off,max_order=0,min_partial=0";
    with_policy(text, NewObjects::default(), |cache, backing| {
        let objects: Vec<Ptr> = (0..5 * 64).map(|_| alloc(cache, backing)).collect();
        let (alone, others) = objects[..].split_at(64);
        alone[1..].iter().for_each(|object| cache.free(backing, *object).expect("an object"));
        // Between the two there are more objects of other slabs than a search passes over.
        let mut batch = vec![alone[0]];
        batch.extend((0..4).map(|slab| others[slab * 64]));
        batch.push(alone[0]);
        assert_eq!(cache.free_bulk(backing, &batch), Err(Misuse::AlreadyFree));
        assert_eq!(cache.usage().live_objects(), 4 * 63);
        for slab in 0..4 {
            cache.free_bulk(backing, &others[slab * 64 + 1..][..63]).expect("objects");
        }
    });
}

#[test]
fn objects_come_in_random_order_if_the_cache_wants_that() {
    with(NewObjects { shuffled: true, ..NewObjects::default() }, |cache, backing| {
        let mut objects: Vec<Ptr> = (0..64).map(|_| alloc(cache, backing)).collect();
        let rising = objects.windows(2).filter(|pair| pair[0].0 < pair[1].0).count();
        assert!((16..48).contains(&rising), "{rising} of 63 objects are above the one before");
        objects.iter().for_each(|object| cache.free(backing, *object).expect("an object"));
        objects.sort_unstable();
        objects.dedup();
        assert_eq!(objects.len(), 64);
    });
}
