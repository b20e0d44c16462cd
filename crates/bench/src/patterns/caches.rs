//! Objects of one type: caches and pools that reuse free objects of it. An operation takes one object, writes
//! eight bytes, and returns the object.
//!
//! Pools differ in features, so each workload is compared with different ones: the table of each workload is
//! below.

use super::{Contestant, Group, Run, Task, Workload};
use crate::block::Block;
use crate::clock::{Sample, measured};
use crate::contestants::Glibc;
use crate::engines::{self, Ours};
use crate::freelist::{Listed, fill};
use crate::subject::{Role, Subject, prove};
use slablab_objects::ObjectCache;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;

const OWN_TYPE: &str = "a type of its own: no other allocator can serve it";

fn one(name: &'static str, role: Role, run: Run) -> Contestant {
    Contestant { name, role, evidence: OWN_TYPE, run }
}

fn allocator<A: Subject>(name: &'static str, run: Run) -> Contestant {
    Contestant { name, role: A::ROLE, evidence: A::EVIDENCE, run }
}

fn object_cache(run: Run) -> Contestant {
    Contestant {
        name: "object-cache",
        role: Role::Ours,
        evidence: "the cache number at the address is slablab's, but not a heap's",
        run,
    }
}

pub(super) fn workloads() -> Vec<Workload> {
    let workload = |name, about, contestants: Vec<Contestant>| Workload {
        name,
        about,
        group: Group::Caches,
        ops: 2_000_000,
        cpus: 1,
        contestants,
    };
    let pair64 = vec![
        object_cache(object_pair::<56>),
        allocator::<Ours>("malloc", block_pair::<Ours, 64>),
        allocator::<Glibc>("box-glibc", block_pair::<Glibc, 64>),
        #[cfg(feature = "peers")]
        one("slab", Role::Peer, pools::slab_pair),
        #[cfg(feature = "peers")]
        one("sharded-slab", Role::Peer, pools::sharded_pair),
        #[cfg(feature = "peers")]
        one("object-pool", Role::Peer, pools::pool_pair::<64>),
        one("tls-list", Role::Floor, list_pair::<64>),
    ];
    let pair4096 = vec![
        object_cache(object_pair::<4088>),
        allocator::<Ours>("malloc", block_pair::<Ours, 4096>),
        allocator::<Glibc>("box-glibc", block_pair::<Glibc, 4096>),
        #[cfg(feature = "peers")]
        one("object-pool", Role::Peer, pools::pool_pair::<4096>),
        one("tls-list", Role::Floor, list_pair::<4096>),
    ];
    let many64 = vec![
        object_cache(object_many),
        allocator::<Ours>("malloc", block_many::<Ours, 64>),
        allocator::<Glibc>("box-glibc", block_many::<Glibc, 64>),
        #[cfg(feature = "peers")]
        one("slab", Role::Peer, pools::slab_many),
        #[cfg(feature = "peers")]
        one("sharded-slab", Role::Peer, pools::sharded_many),
        #[cfg(feature = "peers")]
        one("object-pool", Role::Peer, pools::pool_many),
        one("tls-list", Role::Floor, list_many),
    ];
    vec![
        workload("cache64", "an object of 64 bytes, freed at once", pair64),
        workload("cache4096", "an object of 4096 bytes, freed at once", pair4096),
        workload("cache64-many", "1000 objects of 64 bytes, freed in the same order", many64),
    ]
}

/// The number of objects in the workloads that hold many.
const MANY: u64 = 1000;

fn block_pair<A: Subject, const BYTES: usize>(task: Task) -> Result<Sample, String> {
    let sample = measured(task.ops, |ops| (0..ops).for_each(|_| drop(Block::<A, BYTES>::new())));
    prove::<A>(Block::<A, BYTES>::new().at())?;
    Ok(sample)
}

/// Takes many objects with `take`, then returns all with `give`.
fn many<T>(task: Task, mut take: impl FnMut() -> T, mut give: impl FnMut(T)) -> Sample {
    let mut held = Vec::with_capacity(MANY as usize);
    measured((task.ops / MANY).max(8) * MANY, |ops| {
        for _ in 0..ops / MANY {
            (0..MANY).for_each(|_| held.push(take()));
            held.drain(..).for_each(&mut give);
        }
    })
}

fn block_many<A: Subject, const BYTES: usize>(task: Task) -> Result<Sample, String> {
    let sample = many(task, Block::<A, BYTES>::new, drop);
    prove::<A>(Block::<A, BYTES>::new().at())?;
    Ok(sample)
}

/// An object of eight bytes that are written, and `REST` bytes that are not.
#[derive(Debug)]
struct Thing<const REST: usize> {
    _first: u64,
    _rest: MaybeUninit<[u8; REST]>,
}

fn thing<const REST: usize>() -> Thing<REST> {
    Thing { _first: 1, _rest: MaybeUninit::uninit() }
}

fn cache<const REST: usize>() -> Result<ObjectCache<Thing<REST>>, String> {
    let cache = ObjectCache::new("bench").map_err(|error| format!("{error:?}"))?;
    let object = cache.insert(thing()).map_err(|_| "no memory for an object")?;
    let at = ptr::from_ref::<Thing<REST>>(&object).cast();
    match engines::known(at) && !Ours::serves(at) {
        true => drop(object),
        false => return Err(format!("object-cache: another allocator served the object at {at:p}")),
    }
    Ok(cache)
}

fn object_pair<const REST: usize>(task: Task) -> Result<Sample, String> {
    let cache = cache::<REST>()?;
    Ok(measured(task.ops, |ops| {
        for _ in 0..ops {
            let mut object = cache.insert(thing()).expect("there is memory");
            black_box(&mut *object);
        }
    }))
}

fn object_many(task: Task) -> Result<Sample, String> {
    let cache = cache::<56>()?;
    Ok(many(task, || cache.insert(thing()).expect("there is memory"), drop))
}

fn list_pair<const BYTES: usize>(task: Task) -> Result<Sample, String> {
    fill(4, BYTES);
    Ok(measured(task.ops, |ops| (0..ops).for_each(|_| drop(Listed::pop()))))
}

fn list_many(task: Task) -> Result<Sample, String> {
    fill(MANY as usize, 64);
    Ok(many(task, Listed::pop, drop))
}

/// Pools from other crates.
#[cfg(feature = "peers")]
mod pools {
    use super::*;
    type Small = [u64; 8];

    pub(super) fn slab_pair(task: Task) -> Result<Sample, String> {
        let mut slab = slab::Slab::<Small>::with_capacity(4);
        Ok(measured(task.ops, |ops| {
            for _ in 0..ops {
                let key = black_box(slab.insert([1; 8]));
                black_box(slab.remove(key));
            }
        }))
    }

    pub(super) fn slab_many(task: Task) -> Result<Sample, String> {
        let slab = std::cell::RefCell::new(slab::Slab::<Small>::with_capacity(MANY as usize));
        let give = |key| {
            black_box(slab.borrow_mut().remove(key));
        };
        Ok(many(task, || slab.borrow_mut().insert([1; 8]), give))
    }

    pub(super) fn sharded_pair(task: Task) -> Result<Sample, String> {
        let slab = sharded_slab::Slab::<Small>::new();
        Ok(measured(task.ops, |ops| {
            for _ in 0..ops {
                let key = black_box(slab.insert([1; 8]).expect("there is room"));
                black_box(slab.remove(key));
            }
        }))
    }

    pub(super) fn sharded_many(task: Task) -> Result<Sample, String> {
        let slab = sharded_slab::Slab::<Small>::new();
        let take = || slab.insert([1; 8]).expect("there is room");
        let give = |key| {
            black_box(slab.remove(key));
        };
        Ok(many(task, take, give))
    }

    fn pool<const BYTES: usize>(count: u64) -> object_pool::Pool<Box<[u8; BYTES]>> {
        object_pool::Pool::new(count as usize, || Box::new([0; BYTES]))
    }

    pub(super) fn pool_pair<const BYTES: usize>(task: Task) -> Result<Sample, String> {
        let pool = pool::<BYTES>(4);
        Ok(measured(task.ops, |ops| {
            for _ in 0..ops {
                let mut object = pool.try_pull().expect("there are four");
                object[..8].copy_from_slice(&1u64.to_ne_bytes());
                black_box(&mut object);
            }
        }))
    }

    pub(super) fn pool_many(task: Task) -> Result<Sample, String> {
        let pool = pool::<64>(MANY);
        let take = || {
            let mut object = pool.try_pull().expect("the pool has enough objects");
            object[..8].copy_from_slice(&1u64.to_ne_bytes());
            object
        };
        Ok(many(task, take, drop))
    }
}
