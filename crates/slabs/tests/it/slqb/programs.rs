//! Random programs against a reference that knows only the live objects.
//!
//! crates/check runs longer programs over every engine, and over slots that may be unavailable. Here every
//! policy is tested on every topology, and the statistics must agree with the operations.

use super::*;
use slablab_platform::{Frames, Time, Topology};
use slablab_slabs::engines::slqb::Memoryless;
use slablab_slabs::knob::Policy;
use std::collections::BTreeMap;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Live objects by address. Reports objects that overlap.
struct Live {
    objects: BTreeMap<u64, <Model as Frames>::Ptr>,
    size: u64,
}

impl Live {
    fn add(&mut self, object: <Model as Frames>::Ptr) {
        let key = object.0.get();
        let below = self.objects.range(..=key).next_back().is_some_and(|(other, _)| *other + self.size > key);
        let above = self.objects.range(key..).next().is_some_and(|(other, _)| key + self.size > *other);
        assert!(!below && !above, "{key:#x} overlaps a live object");
        assert_eq!(key % 8, 0, "{key:#x} is not aligned");
        self.objects.insert(key, object);
    }

    fn take(&mut self, random: &mut Random) -> Option<<Model as Frames>::Ptr> {
        let index = random.below(self.objects.len().max(1) as u64) as usize;
        let key = *self.objects.keys().nth(index)?;
        self.objects.remove(&key)
    }
}

/// The operations, to compare with the statistics.
#[derive(Default)]
struct Done {
    allocs: u64,
    failed: u64,
    frees: u64,
}

fn run(policy: &SlqbPolicy, spec: &CacheSpec, seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut heap = Heap::new(SEPTEMBER, spec);
    heap.cache = Slqb::create(CacheId(3), spec, policy);
    let mut live = Live { objects: BTreeMap::new(), size: spec.object_size as u64 };
    let mut done = Done::default();
    for step in 0..3000 {
        // Alternates between growing and shrinking.
        let allocates = random.below(100) < if step / 300 % 2 == 0 { 65 } else { 35 };
        Model::run_on(CpuId(random.below(Model::cpus() as u64) as u16));
        if random.below(200) == 0 {
            Model::advance_to(Model::now() + REAP_NS / 2);
            heap.due();
        } else if random.below(300) == 0 {
            heap.cache.shrink(&heap.backing());
        } else if allocates {
            let node = (random.below(4) == 0).then(|| NodeId(random.below(Model::nodes() as u64) as u16));
            match heap.cache.alloc(&heap.backing(), Gfp::KERNEL, node) {
                Some(object) => live.add(object),
                None => done.failed += 1,
            }
            done.allocs += 1;
        } else if let Some(object) = live.take(&mut random) {
            heap.cache.free(&heap.backing(), object).expect("the object is the cache's");
            done.frees += 1;
        }
        if step % 100 == 0 {
            adds_up(&heap, &live, &done);
        }
    }
    adds_up(&heap, &live, &done);
    heap.held.extend(live.objects.into_values());
    heap.end();
    done.allocs
}

/// Checks the equations of docs/engines/slqb.md.
fn adds_up(heap: &Heap, live: &Live, done: &Done) {
    use Event::*;
    let counted = |event| heap.cache.counted(event);
    let usage = heap.cache.usage();
    assert_eq!(usage.live_objects(), live.objects.len() as u64, "{usage:?}");
    assert_eq!(counted(AllocFastpath) + counted(AllocSlowpath), done.allocs);
    assert_eq!(counted(SlqbAlloc), done.allocs - done.failed);
    assert_eq!(counted(FreeFastpath) + counted(FreeSlowpath), done.frees);
    assert_eq!(counted(SlqbFree) + counted(SlqbFreeRemote), done.frees);
    assert_eq!(counted(SlqbAllocSlabNew), counted(AllocSlab));
    assert_eq!(counted(SlqbFlushSlabFree), counted(FreeSlab));
    assert_eq!(usage.slabs, counted(AllocSlab) - counted(FreeSlab));
    assert!(counted(SlqbClaimRemoteListObjects) <= counted(SlqbFlushRfreeListObjects));
    assert!(counted(SlqbFlushRfreeListObjects) <= counted(SlqbFreeRemote) + counted(SlqbFlushFreeListRemote));
}

#[test]
fn random_programs_overlap_nothing_and_leak_nothing() {
    let nodes = |bytes: &[u64]| bytes.iter().map(|bytes| NodeSpec { bytes: *bytes }).collect();
    let machines = [
        ("one node", MachineSpec::uniform(2, 1, 64 * MIB)),
        ("four nodes", MachineSpec::uniform(8, 4, 64 * MIB)),
        ("64K pages", MachineSpec { page_shift: 16, ..MachineSpec::uniform(4, 2, 256 * MIB) }),
        (
            "memory on 1 of 3 nodes",
            MachineSpec { nodes: nodes(&[0, 64 * MIB, 0]), ..MachineSpec::uniform(6, 3, 0) },
        ),
        ("little memory", MachineSpec { nodes: nodes(&[2 * MIB, 0]), ..MachineSpec::uniform(4, 2, 0) }),
    ];
    let flags = CacheFlags::TYPESAFE_BY_RCU | CacheFlags::CONSTRUCTOR;
    let specs =
        [CacheSpec::of_size(8), CacheSpec::of_size(704), CacheSpec { flags, ..CacheSpec::of_size(4000) }];
    let fixes = [Memoryless::AsAsked, Memoryless::RemoteFirst, Memoryless::FreeAsLocal, Memoryless::Nearest];
    let mut allocs = 0;
    for (what, machine) in &machines {
        for preset in SlqbPolicy::PRESETS {
            for memoryless in fixes {
                for (seed, spec) in specs.iter().enumerate() {
                    // Every second run uses small batches: programs of this length never fill a queue of
                    // 1,024 objects.
                    let freebatch = if seed % 2 == 0 { Some(5) } else { None };
                    let policy = SlqbPolicy { memoryless, freebatch, ..*preset };
                    println!("{what}, {policy:?}, {spec:?}, seed {seed}");
                    let mut machine = Machine::new(machine.clone()).expect("the spec is right");
                    allocs += machine.enter(|| run(&policy, spec, seed as u64));
                }
            }
        }
    }
    assert!(allocs > 100_000, "{allocs} allocations: the programs did too little");
}
