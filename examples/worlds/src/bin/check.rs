//! The checking world: is there any order of two CPUs' steps in which an allocator goes wrong?
//!
//! CPU 0 refills its slab while CPU 1 frees into it. loom goes through every order within two preemptions;
//! the world reports links that were not written, fields without protection, locks out of order. A second run
//! has a planted fault: the exchange of a slab's word orders nothing.

use slablab_check::broken::RelaxedExchange;
use slablab_check::kit::{Job, Kit};
use slablab_check::{Address, Checked, Limits, Loom, Shape, explore};
use slablab_pages::policy::{MinFree, PcpRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Gfp};
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Preset;
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine};
use std::cell::Cell;
use std::rc::Rc;

/// A cache, and the pages under it.
struct Heap<K: Kit> {
    pages: Pages<Checked<K>>,
    cache: Slub<Checked<K>>,
}

impl<K: Kit> Heap<K> {
    fn new() -> Rc<Self> {
        let Ok(Preset::Slub(policy)) = Preset::parse("slub@6.1,max_order=0,min_partial=0") else {
            unreachable!("it is an engine")
        };
        // The machine has eight page frames: nothing is kept back.
        let rules = PagesPolicy {
            min_free: MinFree::Kib(0),
            pcp: PcpRule::NONE,
            ..PagesPolicy::for_release(6, 1, 0)
        };
        // Four objects to a slab.
        let cache = Slub::create(CacheId(1), &CacheSpec::of_size(1024), &policy);
        Rc::new(Heap { pages: Pages::new(rules), cache })
    }

    fn alloc(&self) -> Option<Address> {
        self.cache.alloc(&Backing::pages(&self.pages), Gfp::KERNEL, None)
    }

    fn free(&self, object: Address) {
        self.cache.free(&Backing::pages(&self.pages), object).expect("it was allocated");
    }
}

/// One race; at its end every object is freed, and the cache must be able to go.
fn race<K: Kit>() {
    Checked::<K>::enter(Shape::ONE_NODE, || {
        let heap = Heap::<K>::new();
        let full: Vec<Address> = (0..4).filter_map(|_| heap.alloc()).collect();
        let (got, first) = (Rc::new(Cell::new(None)), full[0]);
        let refill: Job = {
            let (heap, got) = (heap.clone(), got.clone());
            Box::new(move || got.set(heap.alloc()))
        };
        let free: Job = {
            let heap = heap.clone();
            Box::new(move || heap.free(first))
        };
        Checked::<K>::together(vec![(CpuId(0), refill), (CpuId(1), free)]);
        full[1..].iter().copied().chain(got.get()).for_each(|object| heap.free(object));
        let gone = Checked::<K>::still(|| heap.cache.destroy(&Backing::pages(&heap.pages)));
        assert_eq!(gone, Ok(()), "objects that nobody has");
    });
}

fn main() {
    let explored = explore::<Loom>(Limits::QUICK, race::<Loom>).expect("the engine is right");
    println!("refill against free: {} orders, all well", explored.executions);
    // loom says it where it finds it, too.
    std::panic::set_hook(Box::new(|_| {}));
    let found = explore::<Loom<RelaxedExchange>>(Limits::QUICK, race::<Loom<RelaxedExchange>>);
    println!(
        "with a fault planted: {}",
        found.expect_err("the fault is found").lines().next().unwrap_or_default()
    );
}
