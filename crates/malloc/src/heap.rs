//! A heap of one engine: the classes, the pages behind them, and their upkeep.

use crate::classes;
use crate::report::{Line, misuse};
use slablab_native::{Home, Native, Object, system};
use slablab_pages::Pages;
use slablab_pages::policy::{MinFree, PagesPolicy, PcpRule, ZoneRule};
use slablab_platform::{CpuId, Gfp, Platform};
use slablab_slabs::{Backing, CacheId, Engine, Metadata, Misuse};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A heap.
pub(crate) struct Heap<E: Engine<Native>> {
    pages: Pages<Native>,
    common: E::Common,
    classes: [E; classes::COUNT],
    /// When upkeep was last looked after, in nanoseconds; and which class is next.
    looked_ns: AtomicU64,
    next_class: AtomicU32,
}

/// The owner of a block of page frames, where a slab's is its cache.
const LARGE: u32 = 1 << 24;

/// Free memory that stays for the next request.
const KEEP_BYTES: u64 = 4 << 20;
/// The smallest block that is worth a call to the kernel, 64 KiB on pages of 4 KiB.
const REPORT_ORDER: u8 = 4;
/// How often upkeep looks after the next class.
const LOOK_EVERY_NS: u64 = 5_000_000;

impl<E: Engine<Native>> Heap<E> {
    /// A heap without memory. `sheaf_bytes`: as [`classes::spec`].
    pub(crate) fn new(policy: &E::Policy, sheaf_bytes: u32) -> Self {
        const { assert!(E::KNOWS_OWNERS, "who frees says only where") };
        let mut pages = PagesPolicy::for_release(6, 18, 0);
        pages.pcp = PcpRule::NONE;
        pages.zones = Some(ZoneRule::One);
        pages.min_free = MinFree::Kib(0);
        // One label for all: nothing here can be moved.
        pages.max_order = Some(Native::largest_order());
        pages.pageblock_order = pages.max_order;
        Heap {
            pages: Pages::new(pages),
            common: E::Common::default(),
            classes: std::array::from_fn(|class| {
                E::create(CacheId(class as u32), &classes::spec(class, sheaf_bytes), policy)
            }),
            looked_ns: AtomicU64::new(0),
            next_class: AtomicU32::new(0),
        }
    }

    /// An object of a class from this thread's slot.
    #[inline(always)]
    pub(crate) fn alloc_hot(&self, class: usize) -> Option<Object> {
        self.classes[class].alloc_hot()
    }

    /// Gives an object of a class back to this thread's slot.
    #[inline(always)]
    pub(crate) fn free_hot(&self, object: Object, home: Home) -> bool {
        let node = Native::node_of(home.slab);
        self.classes
            .get(home.cache as usize)
            .is_some_and(|class| class.free_hot(object, home.slab, node, home.offset))
    }

    fn backing(&self) -> Backing<'_, Native, E::Common> {
        Backing { metadata: Some(self), ..Backing::new(&self.pages, &self.common) }
    }

    /// An object of a class, by the engine's own way.
    #[cold]
    pub(crate) fn alloc_slow(&self, class: usize) -> Option<Object> {
        self.upkeep();
        self.classes[class].alloc(&self.backing(), Gfp::KERNEL, None)
    }

    /// Gives back what is not an object of this thread's slot.
    #[cold]
    pub(crate) fn free_slow(&self, object: Object, home: Option<Home>) {
        self.upkeep();
        let Some(home) = home else {
            misuse(format_args!("free of {object:?}: not in the heap, or in an empty slab"))
        };
        if home.cache == LARGE {
            return self.free_large(object, home);
        }
        let class = home.cache as usize;
        match self.classes[class].free(&self.backing(), object) {
            Ok(()) => {}
            Err(Misuse::AlreadyFree) => {
                misuse(format_args!("double free of {object:?} (malloc-{})", classes::size(class)))
            }
            Err(Misuse::NotAnObject) => misuse(format_args!(
                "free of {object:?}: inside an object, or behind the last, of a slab of malloc-{} at offset {}",
                classes::size(class),
                home.offset
            )),
            Err(other) => misuse(format_args!("free of {object:?}: {other:?}")),
        }
    }

    /// Page frames for a request above the classes, aligned to `align`; whether they are zeros is answered too.
    #[cold]
    pub(crate) fn alloc_large(&self, bytes: usize, align: usize) -> Option<(Object, bool)> {
        self.upkeep();
        let shift = Native::page_shift();
        let frames = u32::try_from(bytes.checked_add((1 << shift) - 1)? >> shift).ok()?;
        let align_order = (align >> shift).max(1).ilog2() as u8;
        let node = Native::cpu_memory_node(Native::cpu());
        let (pfn, untouched) = self.pages.alloc_exact(Gfp::KERNEL, frames, align_order, node)?;
        Native::map_slab(pfn, 0, 0, LARGE);
        Some((Native::address(pfn, 0), untouched))
    }

    fn free_large(&self, object: Object, home: Home) {
        if home.offset != 0 {
            misuse(format_args!("free of {object:?}: {} bytes into a large block", home.offset));
        }
        Native::unmap_slab(home.slab, 0);
        self.pages.free_exact(home.slab);
        self.give_back(KEEP_BYTES);
    }

    /// Bytes that may be used at an address that was allocated.
    pub(crate) fn usable(&self, home: Home) -> usize {
        match home.cache {
            LARGE => (Pages::<Native>::exact_frames(home.slab) as usize) << Native::page_shift(),
            class => classes::size(class as usize) as usize,
        }
    }

    /// Looks after what no caller waits for: deferred work, one class that may keep too much, free memory.
    fn upkeep(&self) {
        while let Some((cpu, work)) = Native::due() {
            if let Some(class) = self.classes.get(work.cache as usize) {
                class.work(&self.backing(), cpu, work);
            }
        }
        if !Native::tick() {
            return;
        }
        let (now, looked) = (Native::now(), self.looked_ns.load(Relaxed));
        if now.saturating_sub(looked) < LOOK_EVERY_NS
            || self.looked_ns.compare_exchange(looked, now, Relaxed, Relaxed).is_err()
        {
            return;
        }
        let class = self.next_class.fetch_add(1, Relaxed) as usize % classes::COUNT;
        self.classes[class].shrink(&self.backing());
        self.give_back(KEEP_BYTES);
    }

    /// Gives free memory back to the system, all but `keep` bytes. Answers the bytes given back.
    fn give_back(&self, keep: u64) -> u64 {
        let shift = Native::page_shift();
        if self.pages.resident_free_frames() <= keep >> shift {
            return 0;
        }
        // Down to half, so that the next free does not come here again.
        let given = self.pages.report_free(REPORT_ORDER, keep >> shift >> 1, Native::discard);
        given << shift
    }

    /// Gives back all that can be given back. Answers the bytes.
    pub(crate) fn trim(&self) -> u64 {
        for class in &self.classes {
            class.shrink(&self.backing());
        }
        self.give_back(0)
    }

    /// What a thread's slot held is anybody's from now on.
    pub(crate) fn thread_exit(&self, cpu: CpuId) {
        self.classes.iter().for_each(|class| class.cpu_down(&self.backing(), cpu));
    }

    /// The classes in slabinfo's columns.
    pub(crate) fn print_stats(&self, engine: &dyn core::fmt::Display) {
        Line::say(format_args!(
            "{engine}, {}, {} slots used, pages of {} bytes",
            Native::slots(),
            Native::cpus(),
            system::page_size()
        ));
        Line::print(format_args!(
            "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : slabdata <active_slabs> <num_slabs>"
        ));
        for class in &self.classes {
            let (usage, geometry) = (class.usage(), class.geometry());
            if usage.slabs > 0 {
                Line::print(format_args!(
                    "malloc-{:<10} {:>8} {:>8} {:>8} {:>4} {:>4} : slabdata {:>8} {:>8}",
                    geometry.object_size,
                    usage.live_objects(),
                    usage.total_objects,
                    geometry.size,
                    geometry.objects,
                    1u32 << geometry.order,
                    usage.slabs,
                    usage.slabs,
                ));
            }
        }
    }
}

/// Sheaves and the like are objects of the classes, which make do without metadata of their own for them.
impl<E: Engine<Native>> Metadata<Native> for Heap<E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Object> {
        self.classes[classes::of(bytes as usize)].alloc(&Backing::new(&self.pages, &self.common), gfp, None)
    }
    fn free(&self, object: Object) {
        let home = Native::home(object.as_ptr()).expect("metadata lies in a slab");
        let freed = self.classes[home.cache as usize].free(&Backing::new(&self.pages, &self.common), object);
        freed.expect("metadata is an object");
    }
}
