//! Races of two CPUs over prepared objects.

use super::heap::Heap;
use crate::kit::{Job, Kit};
use crate::{Checked, Explored, Limits, Shape, explore};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Platform};
use slablab_slabs::{Engine, Front};

/// What one CPU does.
pub type Step<P, E> = fn(&Heap<P, E>);

/// A race of two CPUs over prepared objects. CPU 0 runs `prepare` first; then the two steps run at once.
pub struct Race<P: Platform, E: Engine<P>> {
    /// Its name.
    pub name: &'static str,
    /// Bytes of an object.
    size: u32,
    prepare: Step<P, E>,
    first: Step<P, E>,
    second: Step<P, E>,
}

/// Runs a race in every schedule within the limits. At the end no object and no page may be lost.
///
/// # Errors
/// The text of the panic that a schedule ended with.
pub fn explored<K: Kit, P: Testable, E: Engine<P> + 'static>(
    race: &Race<P, E>,
    policy: E::Policy,
    shape: Shape,
    limits: Limits,
) -> Result<Explored, String>
where
    E::Policy: Send + Sync + 'static,
{
    let Race { size, prepare, first, second, .. } = *race;
    explore::<K>(limits, move || {
        Checked::<K>::enter(shape, || {
            let heap = Heap::<P, E>::new(&policy, size);
            prepare(&heap);
            let (one, two) = (heap.clone(), heap.clone());
            let jobs: Vec<(CpuId, Job)> =
                vec![(CpuId(0), Box::new(move || first(&one))), (CpuId(1), Box::new(move || second(&two)))];
            heap.racing.set(true);
            Checked::<K>::together(jobs);
            heap.racing.set(false);
            heap.end();
        });
    })
}

/// CPU 0 allocates `n` objects, four per slab, for use by both CPUs.
fn hold<P: Testable, E: Engine<P>>(heap: &Heap<P, E>, n: usize) {
    for _ in 0..n {
        let object = heap.alloc().expect("memory is left");
        heap.live.borrow_mut().push_back(object);
    }
}

/// Allocates an object for use by both CPUs.
pub(super) fn alloc_one<P: Testable, E: Engine<P>>(heap: &Heap<P, E>) {
    if let Some(object) = heap.alloc() {
        heap.live.borrow_mut().push_back(object);
    }
}

fn free_one<P: Testable, E: Engine<P>>(heap: &Heap<P, E>) {
    // Take the oldest object, which was prepared before the race, so that passing it to this CPU needs no
    // ordering.
    let object = heap.live.borrow_mut().pop_front();
    object.into_iter().for_each(|object| heap.free(object));
}

/// CPU 0 goes offline: its slot's objects move to where other CPUs find them. Then it comes online again.
fn exit<P: Testable, E: Engine<P>>(heap: &Heap<P, E>) {
    P::set_online(CpuId(0), false);
    heap.cache.cpu_down(&heap.backing(), CpuId(0));
    P::set_online(CpuId(0), true);
}

fn twice<P: Testable, E: Engine<P>>(heap: &Heap<P, E>, step: Step<P, E>) {
    step(heap);
    step(heap);
}

/// Races of two CPUs on one cache's slabs.
pub fn races<P: Testable, E: Engine<P>>() -> [Race<P, E>; 7] {
    [
        // The CPU's own objects run out while another CPU frees to it.
        Race {
            name: "refill against free",
            size: 1024,
            prepare: |heap| hold(heap, 4),
            first: alloc_one,
            second: free_one,
        },
        // Two CPUs free to one full slab.
        Race {
            name: "free against free",
            size: 1024,
            prepare: |heap| hold(heap, 5),
            first: free_one,
            second: free_one,
        },
        // The last objects of a partial slab are freed while the other CPU takes slabs off the node's list.
        Race {
            name: "empty against acquire",
            size: 1024,
            prepare: |heap| {
                hold(heap, 8);
                twice(heap, free_one);
                free_one(heap);
            },
            first: |heap| twice(heap, alloc_one),
            second: free_one,
        },
        // Of two slabs on the node's list the first one's last object is taken while another CPU frees to it.
        Race {
            name: "last object against free",
            size: 1024,
            prepare: |heap| {
                hold(heap, 8);
                free_one(heap);
                let other = heap.live.borrow_mut().pop_back();
                other.into_iter().for_each(|object| heap.free(object));
            },
            first: alloc_one,
            second: free_one,
        },
        // A shrink returns slabs while another CPU frees to them.
        Race {
            name: "shrink against free",
            size: 1024,
            prepare: |heap| hold(heap, 6),
            first: |heap| {
                heap.cache.shrink(&heap.backing());
            },
            second: |heap| twice(heap, free_one),
        },
        // A CPU goes offline, like a thread that ends, while another CPU frees to its slabs.
        Race {
            name: "exit against free",
            size: 1024,
            prepare: |heap| hold(heap, 6),
            first: exit,
            second: |heap| twice(heap, free_one),
        },
        // A CPU goes offline while another CPU allocates the objects that the first one had.
        Race {
            name: "exit against alloc",
            size: 1024,
            prepare: |heap| {
                hold(heap, 6);
                free_one(heap);
            },
            first: exit,
            second: alloc_one,
        },
    ]
}

/// A CPU hands objects back to the list that owns their page, while the owner claims them.
pub fn hand_over<P: Testable, E: Engine<P>>() -> [Race<P, E>; 2] {
    [
        Race {
            name: "claim against hand-over",
            size: 1024,
            prepare: |heap| hold(heap, 4),
            first: |heap| twice(heap, alloc_one),
            second: |heap| twice(heap, free_one),
        },
        Race {
            name: "free against hand-over",
            size: 1024,
            prepare: |heap| hold(heap, 6),
            first: |heap| twice(heap, free_one),
            second: |heap| twice(heap, free_one),
        },
    ]
}

/// Objects that a sheaf holds in the races of [`exchanges`].
const SHEAF: usize = 4;

/// CPU 0 allocates or frees, oldest first, by the rungs of a malloc.
fn allocs<P: Testable, E: Engine<P>>(heap: &Heap<P, E>, n: usize) {
    (0..n).for_each(|_| alloc_one(heap));
}

fn frees<P: Testable, E: Engine<P>>(heap: &Heap<P, E>, n: usize) {
    (0..n).for_each(|_| free_one(heap));
}

/// CPU 0's main sheaf and its spare are full, and `barn` full sheaves are in the barn; 8 objects are live.
fn stocked<P: Testable, E: Front<P>>(heap: &Heap<P, E>, barn: usize) {
    heap.use_rungs();
    hold(heap, 8 + (2 + barn) * SHEAF);
    frees(heap, (2 + barn) * SHEAF);
}

/// A malloc's rungs exchange CPU 0's main sheaf without holding its slot, while CPU 1 uses the barn too. For
/// caches whose sheaves hold 4 objects.
pub fn exchanges<P: Testable, E: Front<P>>() -> [Race<P, E>; 5] {
    [
        Race {
            name: "an empty sheaf for the spare, against a refill",
            size: 4096,
            prepare: |heap| {
                stocked(heap, 0);
                allocs(heap, SHEAF);
            },
            first: |heap| twice(heap, alloc_one),
            second: |heap| twice(heap, alloc_one),
        },
        Race {
            name: "an empty sheaf for the barn's last full one, which the other CPU takes too",
            size: 4096,
            prepare: |heap| {
                stocked(heap, 1);
                allocs(heap, 2 * SHEAF);
            },
            first: alloc_one,
            second: alloc_one,
        },
        Race {
            name: "a full sheaf for the barn's last empty one, which the other CPU takes too",
            size: 4096,
            prepare: |heap| {
                stocked(heap, 1);
                // The last one leaves an empty sheaf in the barn.
                allocs(heap, 2 * SHEAF + 1);
                frees(heap, 1 + SHEAF);
            },
            first: free_one,
            second: free_one,
        },
        Race {
            name: "a full sheaf for the spare, against a shrink",
            size: 4096,
            prepare: |heap| {
                stocked(heap, 1);
                allocs(heap, SHEAF + 1);
                free_one(heap);
            },
            first: |heap| twice(heap, free_one),
            second: |heap| {
                heap.cache.shrink(&heap.backing());
            },
        },
        Race {
            name: "an empty sheaf for a full one and the CPU's exit, against an exchange",
            size: 4096,
            prepare: |heap| {
                stocked(heap, 2);
                allocs(heap, 2 * SHEAF);
            },
            first: |heap| {
                alloc_one(heap);
                exit(heap);
            },
            second: |heap| twice(heap, alloc_one),
        },
    ]
}
