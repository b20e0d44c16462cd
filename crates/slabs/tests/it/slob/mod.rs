//! SLOB, rule by rule of docs/theory/slob.md: the places of blocks, the lists, and the cost of searches.
//!
//! A case is a few steps on one heap. A place is a page, numbered in the order of first use, and an offset in
//! it.

mod recorded;

use Step::*;
use slablab_model::{Addr, Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Event, Frames, Gfp, NodeId, Time, Topology};
use slablab_slabs::engines::slob::{Heap, Slob, SlobPolicy};
use slablab_slabs::preset::Preset;
use slablab_slabs::{Backing, CacheFlags, CacheId, CacheSpec, Common, Engine, Misuse, Place, Usage};

/// A page and an offset.
type At = (usize, u32);

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Allocates objects of a cache with this object size, one for each place.
    Object(u32, &'static [At]),
    /// Allocates objects with the second number as alignment.
    Aligned(u32, u32, &'static [At]),
    /// Allocates objects that are aligned to cache lines.
    Line(u32, &'static [At]),
    /// Allocates objects of a `SLAB_TYPESAFE_BY_RCU` cache.
    Rcu(u32, &'static [At]),
    /// Allocates objects from the memory of a node.
    On(u16, u32, &'static [At]),
    /// Allocates with kmalloc, this many bytes each.
    Kmalloc(u32, &'static [At]),
    /// Frees the objects with these numbers. The first allocated object has number 0.
    Free(&'static [usize]),
    /// A free that must be refused.
    Refused(usize, Misuse),
    /// Ends a grace period.
    Grace,
    /// Checks the pages of the heap, and the free bytes in them.
    Held(u64, u64),
    /// Checks the objects with pages of their own, and the frames of those pages.
    Large(u64, u64),
    /// Checks the number of events since the start.
    Counted(Event, u64),
}

struct Run {
    pages: Pages<Model>,
    heap: Heap<Model>,
    policy: SlobPolicy,
    caches: Vec<(CacheSpec, Slob<Model>)>,
    /// Objects with their cache, in the order of allocation.
    objects: Vec<(Addr, usize)>,
    live: Vec<bool>,
    seen: Vec<u32>,
}

fn policy(text: &str) -> SlobPolicy {
    match Preset::parse(text) {
        Ok(Preset::Slob(policy)) => policy,
        other => panic!("{text}: {other:?}"),
    }
}

impl Run {
    fn new(text: &str) -> Run {
        Run {
            pages: Pages::new(PagesPolicy::for_release(6, 1, 0)),
            heap: Heap::default(),
            policy: policy(text),
            caches: Vec::new(),
            objects: Vec::new(),
            live: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn backing(&self) -> Backing<'_, Model, Heap<Model>> {
        Backing::new(&self.pages, &self.heap)
    }

    fn cache(&mut self, spec: CacheSpec) -> usize {
        self.caches.iter().position(|(known, _)| *known == spec).unwrap_or_else(|| {
            let id = CacheId(self.caches.len() as u32);
            self.caches.push((spec, Slob::create(id, &spec, &self.policy)));
            self.caches.len() - 1
        })
    }

    fn alloc(&mut self, spec: CacheSpec, bytes: u32, node: Option<u16>) -> At {
        let cache = self.cache(spec);
        let object = self.caches[cache].1.alloc_sized(&self.backing(), bytes, Gfp::KERNEL, node.map(NodeId));
        let object = object.expect("memory is left");
        self.objects.push((object, cache));
        self.live.push(true);
        let (pfn, offset) = Model::locate(object);
        let page = self.seen.iter().position(|seen| *seen == pfn.0).unwrap_or_else(|| {
            self.seen.push(pfn.0);
            self.seen.len() - 1
        });
        (page, offset)
    }

    fn free(&mut self, number: usize) -> Result<(), Misuse> {
        let (object, cache) = self.objects[number];
        let freed = self.caches[cache].1.free(&self.backing(), object);
        self.live[number] &= freed.is_err();
        freed
    }

    fn due(&self) {
        while let Some((cpu, work)) = Model::next_due() {
            self.caches[work.cache as usize].1.work(&self.backing(), cpu, work);
        }
    }

    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.caches.iter().for_each(|(_, cache)| usage += cache.usage());
        usage
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        let plain = CacheSpec::of_size;
        let rcu = CacheFlags::TYPESAFE_BY_RCU;
        let line = CacheFlags::HWCACHE_ALIGN;
        let kmalloc = CacheFlags::KMALLOC;
        let (spec, bytes, node, places) = match step {
            Object(bytes, places) => (plain(bytes), bytes, None, places),
            Aligned(bytes, align, places) => (CacheSpec { align, ..plain(bytes) }, bytes, None, places),
            Line(bytes, places) => (CacheSpec { flags: line, ..plain(bytes) }, bytes, None, places),
            Rcu(bytes, places) => (CacheSpec { flags: rcu, ..plain(bytes) }, bytes, None, places),
            On(node, bytes, places) => (plain(bytes), bytes, Some(node), places),
            // One class for all sizes: SLOB allocates the requested size.
            Kmalloc(bytes, places) => (CacheSpec { flags: kmalloc, ..plain(8192) }, bytes, None, places),
            Free(numbers) => {
                return numbers
                    .iter()
                    .try_for_each(|number| self.free(*number))
                    .map_err(|e| format!("{e:?}"));
            }
            Refused(number, misuse) => return equal(self.free(number), Err(misuse)),
            Grace => {
                Model::advance_to(Model::now() + 1_000_000_000);
                self.due();
                return Ok(());
            }
            Held(frames, free) => {
                let held = self.heap.held();
                return equal((held.frames, held.free_bytes), (frames, free));
            }
            Large(objects, frames) => {
                return equal((self.usage().slabs, self.usage().frames), (objects, frames));
            }
            Counted(event, n) => {
                return equal(self.caches.iter().map(|(_, cache)| cache.counted(event)).sum::<u64>(), n);
            }
        };
        let found: Vec<At> = places.iter().map(|_| self.alloc(spec, bytes, node)).collect();
        equal(found.as_slice(), places)
    }

    /// Checks the invariants of docs/engines/slob.md.
    fn consistent(&self) -> Result<(), String> {
        let (usage, held) = (self.usage(), self.heap.held());
        let live = self.live.iter().filter(|live| **live).count() as u64;
        equal(usage.live_objects(), live)?;
        equal(usage.shared_bytes + held.free_bytes, held.frames << Model::page_shift())?;
        equal(self.heap.is_sound(), true)
    }

    /// Frees all allocated objects. Then the heap must be empty.
    fn end(mut self) -> Result<(), String> {
        for number in 0..self.objects.len() {
            if self.live[number] {
                self.free(number).map_err(|misuse| misuse.to_string())?;
            }
        }
        self.step(Grace)?;
        self.step(Held(0, 0))?;
        self.step(Large(0, 0))?;
        self.pages.check().map_err(|wrong| format!("{wrong:?}"))
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}")) }
}

fn on(machine: MachineSpec, preset: &str, steps: &[Step]) {
    let mut machine = Machine::new(machine).expect("the spec is right");
    machine.enter(|| {
        let mut run = Run::new(preset);
        for (number, step) in steps.iter().enumerate() {
            run.step(*step)
                .and_then(|()| run.consistent())
                .unwrap_or_else(|wrong| panic!("{preset}, step {number}, {step:?}: {wrong}"));
        }
        run.end().unwrap_or_else(|wrong| panic!("{preset}, at the end: {wrong}"));
    });
}

fn small() -> MachineSpec {
    MachineSpec::uniform(2, 1, 64 << 20)
}

/// Runs a case on both presets, whose rules are equal here.
fn check(steps: &[Step]) {
    on(small(), "slob@2.6.32", steps);
    on(small(), "slob@6.1", steps);
}

#[test]
fn sizes_are_rounded_to_units() {
    check(&[Object(6, &[(0, 0), (0, 8), (0, 16)]), Held(1, 4096 - 18)]);
    check(&[Object(7, &[(0, 0)]), Held(1, 4096 - 8)]);
    check(&[Object(36, &[(0, 0), (0, 40)]), Object(2, &[(0, 80)]), Held(1, 4096 - 74)]);
    // If a page has too many units of two bytes, units have four bytes.
    let large_pages = MachineSpec { page_shift: 16, ..small() };
    on(large_pages, "slob@6.1", &[Object(6, &[(0, 0), (0, 8)]), Held(1, 65536 - 16), Free(&[0])]);
}

#[test]
fn the_first_block_with_room_is_taken() {
    check(&[
        Object(100, &[(0, 0), (0, 104), (0, 208), (0, 312)]),
        Free(&[1]),
        Object(50, &[(0, 104)]),
        // The rest of that block has room for this object and its alignment.
        Object(48, &[(0, 160)]),
        Object(50, &[(0, 416)]),
    ]);
}

#[test]
fn neighbours_are_merged() {
    let before = Object(100, &[(0, 0), (0, 104), (0, 208), (0, 312)]);
    check(&[before, Free(&[1, 2]), Object(204, &[(0, 104)])]);
    check(&[before, Free(&[2, 1]), Object(204, &[(0, 104)])]);
    check(&[before, Free(&[0, 2, 1]), Object(250, &[(0, 0)])]);
    // Each object is followed by four free bytes that the next object's alignment skips. The search visits
    // them too. With the bytes after the last object, the page has one free block again.
    check(&[
        before,
        Free(&[3, 2, 1]),
        Object(240, &[(0, 104)]),
        Counted(Event::SlobBlocksWalked, (1 + 1 + 2 + 3) + (3 + 2 + 1) + 1),
    ]);
}

#[test]
fn an_emptied_page_goes_back_at_once() {
    check(&[
        Object(100, &[(0, 0), (0, 104)]),
        Free(&[0]),
        Counted(Event::FreeSlab, 0),
        Free(&[1]),
        Counted(Event::FreeSlab, 1),
        Held(0, 0),
    ]);
    // A full page is on no list, and is returned when its only object is freed.
    check(&[
        Object(4095, &[(0, 0)]),
        Held(1, 0),
        Free(&[0]),
        Held(0, 0),
        Counted(Event::FreeRemovePartial, 0),
    ]);
}

#[test]
fn three_lists_by_size() {
    check(&[Object(200, &[(0, 0)]), Object(300, &[(1, 0)]), Object(2000, &[(2, 0)]), Object(8, &[(0, 200)])]);
    check(&[
        Object(255, &[(0, 0)]),
        Object(256, &[(1, 0)]),
        Object(1023, &[(1, 256)]),
        Object(1024, &[(2, 0)]),
    ]);
    // The header counts as part of the size.
    check(&[Object(247, &[(0, 0)]), Kmalloc(247, &[(0, 256)]), Kmalloc(250, &[(1, 8)])]);
    on(
        small(),
        "slob@6.1,small_below=65536,medium_below=65536",
        &[Object(200, &[(0, 0)]), Object(2000, &[(0, 200)])],
    );
}

#[test]
fn the_next_search_begins_where_the_last_one_ended() {
    let before = [
        // Two objects per page. A new page is searched first.
        Object(1500, &[(0, 0), (0, 1504), (1, 0), (1, 1504), (2, 0), (2, 1504)]),
        Free(&[0]),
        Object(1500, &[(0, 0)]),
    ];
    let steps = |place: &'static [At]| [before.as_slice(), &[Object(1050, place)]].concat();
    check(&steps(&[(0, 3008)]));
    on(small(), "slob@6.1,next_fit=no", &steps(&[(2, 3008)]));
}

#[test]
fn the_search_continues_behind_a_filled_page() {
    on(
        small(),
        "slob@6.1,after_full=behind",
        &[
            Object(2048, &[(0, 0), (0, 2048), (1, 0), (1, 2048), (2, 0), (2, 2048)]),
            Free(&[0, 2, 4]),
            // Listed in the order of their last free: 2, 1, 0. A request that fills page 2 leaves page 1 at
            // the head.
            Object(2048, &[(2, 0)]),
            Object(1024, &[(1, 0)]),
            Object(1024, &[(1, 1024)]),
            Object(1024, &[(0, 0)]),
        ],
    );
}

#[test]
fn the_search_continues_behind_a_filled_middle_page() {
    on(
        small(),
        "slob@6.1,after_full=behind",
        &[
            Object(2048, &[(0, 0), (0, 2048), (1, 0), (1, 2048), (2, 0)]),
            Object(1024, &[(2, 2048), (2, 3072)]),
            Free(&[0, 2, 5]),
            // Listed are 2, 1, 0. The first has no room, the second becomes full, and the search continues at
            // the third.
            Object(2048, &[(1, 0)]),
            Object(1024, &[(0, 0)]),
        ],
    );
}

/// Read off a 6.1.192 with SLOB: a page that becomes full and is not the first leaves the list as it was.
#[test]
fn a_filled_page_does_not_turn_the_list_in_6_1() {
    on(
        small(),
        "slob@6.1",
        &[
            Object(2048, &[(0, 0), (0, 2048), (1, 0), (1, 2048), (2, 0)]),
            Object(1024, &[(2, 2048), (2, 3072)]),
            Free(&[0, 2, 5]),
            // Listed are 2, 1, 0. The first has no room, and the second becomes full.
            Object(2048, &[(1, 0)]),
            Object(1024, &[(2, 2048), (0, 0)]),
        ],
    );
    let machine = || MachineSpec::uniform(2, 2, 64 << 20);
    const FIRST: &[At] = &[(0, 0), (0, 2048), (1, 0), (1, 2048)];
    const OTHERS: &[At] = &[(2, 0), (2, 2048), (3, 0), (3, 2048)];
    // Listed are 3 and 2 of node 1, then 1 and 0 of node 0. The request for node 0 fills page 1.
    let steps = |next: &'static [At]| {
        [
            On(0, 2048, FIRST),
            On(1, 2048, OTHERS),
            Free(&[0, 2, 4, 6]),
            On(0, 2048, &[(1, 0)]),
            Object(2048, next),
        ]
    };
    on(machine(), "slob@6.1", &steps(&[(3, 0), (2, 0), (0, 0)]));
    on(machine(), "slob@6.1,after_full=behind", &steps(&[(0, 0), (3, 0), (2, 0)]));
    // A page that keeps room is where the next search begins.
    on(
        machine(),
        "slob@6.1",
        &[
            On(0, 2048, FIRST),
            On(1, 2048, OTHERS),
            Free(&[0, 2, 4, 6]),
            On(0, 1024, &[(1, 0)]),
            Object(1024, &[(1, 1024), (0, 0)]),
        ],
    );
}

#[test]
fn the_list_of_a_full_page_depends_on_the_release() {
    let steps = |small: &'static [At], large: &'static [At]| {
        [
            Object(2048, &[(0, 0), (0, 2048)]),
            Free(&[0]),
            Counted(Event::FreeAddPartial, 1),
            Object(100, small),
            Object(1024, large),
        ]
    };
    // On the list of small objects, whatever was freed. A small object uses its free block.
    on(small(), "slob@2.6.32", &steps(&[(0, 0)], &[(1, 0)]));
    on(small(), "slob@6.1", &steps(&[(1, 0)], &[(0, 0)]));
    on(small(), "slob@6.1,readd=small", &steps(&[(0, 0)], &[(1, 0)]));
}

#[test]
fn kmalloc_has_a_header_and_its_own_size() {
    check(&[Kmalloc(28, &[(0, 8), (0, 48)]), Held(1, 4096 - 72), Free(&[0, 1])]);
    on(small(), "slob@2.6.32", &[Kmalloc(64, &[(0, 8), (0, 80)]), Kmalloc(1024, &[(1, 8)])]);
    // Powers of two are aligned to their size. The header lies before the object.
    on(
        small(),
        "slob@6.1",
        &[Kmalloc(64, &[(0, 64), (0, 192)]), Kmalloc(40, &[(0, 8)]), Kmalloc(1024, &[(1, 1024)])],
    );
    // The alignment is a choice of its own.
    on(small(), "slob@6.1,kmalloc_align=word", &[Kmalloc(64, &[(0, 8), (0, 80)]), Kmalloc(1024, &[(1, 8)])]);
    on(
        small(),
        "slob@2.6.32,kmalloc_align=powers-of-two",
        &[Kmalloc(64, &[(0, 64), (0, 192)]), Kmalloc(1024, &[(1, 1024)])],
    );
    // The free reads the size from the header.
    check(&[Kmalloc(100, &[(0, 8), (0, 120)]), Free(&[0]), Held(1, 4096 - 108), Kmalloc(96, &[(0, 8)])]);
}

#[test]
fn a_page_or_more_goes_to_the_page_allocator() {
    check(&[Kmalloc(4087, &[(0, 8)]), Large(0, 0), Held(1, 0)]);
    check(&[Kmalloc(4088, &[(0, 0)]), Large(1, 1), Held(0, 0), Counted(Event::LockHeap, 0)]);
    check(&[
        Kmalloc(4097, &[(0, 0)]),
        Large(1, 2),
        Kmalloc(8192, &[(1, 0)]),
        Large(2, 4),
        Free(&[0]),
        Large(1, 2),
    ]);
    check(&[Object(4095, &[(0, 0)]), Large(0, 0), Object(4096, &[(1, 0)]), Large(1, 1)]);
    check(&[Object(9000, &[(0, 0)]), Large(1, 4), Free(&[0]), Refused(0, Misuse::NotInSlab)]);
}

#[test]
fn alignment_splits_a_block() {
    check(&[
        Object(8, &[(0, 0)]),
        Aligned(100, 64, &[(0, 64), (0, 192)]),
        // The skipped bytes are free: before the objects, and between them.
        Object(56, &[(0, 8)]),
        Object(24, &[(0, 168)]),
        Held(1, 4096 - 8 - 200 - 56 - 24),
    ]);
    // The object begins on a cache line, but its size is not rounded up to a line.
    check(&[Line(8, &[(0, 0), (0, 64)]), Held(1, 4096 - 16)]);
}

#[test]
fn rcu_objects_wait_for_a_grace_period() {
    check(&[Rcu(96, &[(0, 0), (0, 120)]), Free(&[0]), Rcu(96, &[(0, 240)]), Grace, Rcu(96, &[(0, 0)])]);
    check(&[Rcu(4096, &[(0, 0)]), Free(&[0]), Large(0, 2), Grace, Large(0, 0)]);
}

#[test]
fn a_node_skips_pages_of_others() {
    let machine = MachineSpec::uniform(2, 2, 64 << 20);
    on(
        machine,
        "slob@6.1",
        &[
            Object(100, &[(0, 0)]),
            On(1, 100, &[(1, 0)]),
            On(0, 100, &[(0, 104)]),
            // The page that was used last, on any node.
            Object(100, &[(0, 208)]),
            On(1, 100, &[(1, 104)]),
            Object(100, &[(1, 208)]),
        ],
    );
}

#[test]
fn visited_pages_and_blocks_are_counted() {
    check(&[
        Object(1500, &[(0, 0), (0, 1504), (1, 0), (1, 1504), (2, 0)]),
        // The five searches visit 0, 1, 1, 1 and 2 pages.
        Counted(Event::SlobPagesWalked, 1 + 1 + 1 + 2),
        Counted(Event::AllocFromPartial, 2),
        Counted(Event::AllocSlab, 3),
        Counted(Event::AllocSlowpath, 5),
        Counted(Event::LockHeap, 5 + 3),
        Free(&[4]),
        Counted(Event::LockHeap, 9),
        Counted(Event::FreeSlowpath, 1),
        Counted(Event::FreeRemovePartial, 1),
    ]);
}

#[test]
fn detectable_misuse_is_refused() {
    check(&[
        Object(100, &[(0, 0), (0, 104), (0, 208)]),
        Free(&[1]),
        Refused(1, Misuse::AlreadyFree),
        Held(1, 4096 - 200),
        Free(&[0]),
        Refused(0, Misuse::AlreadyFree),
        // The page must not be treated as empty.
        Refused(1, Misuse::AlreadyFree),
        Free(&[2]),
        Refused(2, Misuse::NotInSlab),
    ]);
}

/// Seeded pages, as an earlier run would have left them.
#[test]
fn seeded_pages_have_the_given_free_objects() {
    fn check(spec: CacheSpec, objects: u32, free: &[u16], expected: Option<(u64, u64, u64)>) {
        let mut machine = Machine::new(small()).expect("the spec is right");
        machine.enter(|| {
            let mut run = Run::new("slob@6.1");
            let cache = run.cache(spec);
            let slob = &run.caches[cache].1;
            assert_eq!(slob.geometry().objects, objects, "{spec:?}");
            let base = slob.seed(&run.backing(), NodeId(0), Place::Cpu(CpuId(1)), free);
            let (usage, held) = (slob.usage(), run.heap.held());
            let found = base.map(|_| (usage.live_objects(), held.frames, usage.frames));
            assert_eq!(found, expected, "{spec:?}");
            let Some((pfn, first)) = base.map(Model::locate) else { return };
            for index in (0..objects).filter(|index| !free.contains(&(*index as u16))) {
                let object = Model::address(pfn, (first + index * slob.geometry().size) as u64);
                run.objects.push((object, cache));
                run.live.push(true);
            }
            run.consistent().and_then(|()| run.end()).unwrap_or_else(|wrong| panic!("{spec:?}: {wrong}"));
        });
    }
    let kmalloc = CacheFlags::KMALLOC;
    check(CacheSpec::of_size(1000), 4, &[2], Some((3, 1, 0)));
    check(CacheSpec::of_size(1000), 4, &[3, 2, 1, 0], None);
    check(CacheSpec { flags: kmalloc, ..CacheSpec::of_size(512) }, 4, &[0, 3], Some((2, 1, 0)));
    check(CacheSpec { flags: kmalloc, ..CacheSpec::of_size(96) }, 39, &[], Some((39, 1, 0)));
    check(CacheSpec::of_size(5000), 1, &[], Some((1, 0, 2)));
    check(CacheSpec::of_size(5000), 1, &[0], None);
}
