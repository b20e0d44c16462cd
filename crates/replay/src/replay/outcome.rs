//! The outcome of a run: counters, memory, and the parts that depend on assumptions.

use super::timeline::Timeline;
use slablab_engines::ByCache;
use slablab_platform::Event;
use slablab_slabs::partition::Partition;
use slablab_slabs::preset::Choice;
use slablab_slabs::preset::Preset;
use slablab_slabs::report::Reports;
use slablab_slabs::wrap::Wrap;
use slablab_slabs::{Geometry, Held, Usage};

/// One engine's answer.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The engine.
    pub preset: Preset,
    /// What was around it.
    pub wrap: Wrap,
    /// How kmalloc was divided among its callers.
    pub partition: Partition,
    /// Knobs of single caches, as they are written.
    pub of_caches: &'static str,
    /// What debugging found.
    pub violations: Violations,
    /// Caches with a slab or an event, in the table's order.
    pub caches: Vec<CacheOutcome>,
    /// Slab memory over time.
    pub timeline: Timeline,
    /// Events that belong to no cache: pages, locks.
    pub global: Counts,
    /// kmallocs that went to the page allocator.
    pub large: LargeOutcome,
    /// Pages that caches share, at the end.
    pub shared: Held,
    /// Caches with allocations that the engine has no layout for.
    pub no_layout: Vec<NoLayout>,
    /// Rows replayed.
    pub rows: u64,
    /// Bytes in a page.
    pub page_size: u64,
    /// Page frames in slabs at most.
    pub peak_frames: u64,
    /// Page frames in slabs at the start and at the end.
    pub start_frames: u64,
    /// As above.
    pub end_frames: u64,
    /// Frees whose cache is unknown.
    pub unknown_frees: u64,
    /// Rows of CPUs that were off.
    pub elsewhere: Elsewhere,
    /// Bytes the model's tables hold at the end.
    pub model_bytes: usize,
    /// Time of the pass over the rows, and of the part that read them.
    pub elapsed: std::time::Duration,
}

impl Outcome {
    /// The number of orders that are counted.
    pub const ORDERS: usize = 11;

    /// The cache with this name, as directory or alias.
    pub fn cache(&self, name: &str) -> Option<&CacheOutcome> {
        let called =
            |cache: &&CacheOutcome| cache.name == name || cache.aliases.iter().any(|alias| alias == name);
        self.caches.iter().find(called)
    }

    /// Slabs taken and slabs returned, by order. A slab that fell back to its cache's smallest order counts
    /// there as taken. Returned slabs count at the cache's preferred order: exact unless the cache fell back.
    pub fn slabs_by_order(&self) -> [(u64, u64); Outcome::ORDERS] {
        let mut orders = [(0, 0); Outcome::ORDERS];
        for cache in &self.caches {
            let fallback = cache.counts.get(Event::OrderFallback);
            orders[cache.geometry.order as usize].0 += cache.counts.get(Event::AllocSlab) - fallback;
            orders[cache.geometry.min_order as usize].0 += fallback;
            orders[cache.geometry.order as usize].1 += cache.counts.get(Event::FreeSlab);
        }
        orders
    }

    /// The engine and what was around it, as it is written.
    pub fn engine(&self) -> ByCache {
        let choice = Choice { preset: self.preset, wrap: self.wrap };
        ByCache { choice, partition: self.partition, of_caches: self.of_caches }
    }
}

/// A cache whose objects, with what the engine puts around them, are larger than any block of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoLayout {
    /// Its name.
    pub name: String,
    /// Bytes that a user gets.
    pub object_size: u32,
    /// Allocations, which the run leaves out.
    pub allocs: u64,
}

/// What debugging found in a run.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    /// By cache: its name, how many, and the first ones.
    pub caches: Vec<(String, Reports)>,
    /// Rows that free an address again which an earlier row freed, with no allocation between: a double free,
    /// or an allocation that left no event. Only with `debug=F`.
    pub freed_again: u64,
    /// The first of them; the trace's first row is 1, as in reports' sites.
    pub first_freed_again: Option<u64>,
    /// Other rows that free what neither a row allocated nor the start has. Only with `debug=F`.
    pub never_allocated: u64,
}

/// kmallocs that went to the page allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LargeOutcome {
    /// Allocations.
    pub allocs: u64,
    /// Frees.
    pub frees: u64,
    /// Allocations that failed.
    pub failed: u64,
    /// Frames held at the end.
    pub frames: u64,
}

/// Rows of CPUs that were off, which another CPU ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// All of them.
    pub rows: u64,
    /// Of these, on another node: all CPUs of their own were off.
    pub rows_other_node: u64,
}

/// The locks inside caches; the page allocator's is `lock_zone`.
pub const LOCKS: [Event; 7] = [
    Event::LockNodeList,
    Event::LockAlien,
    Event::LockPageList,
    Event::LockRemoteFree,
    Event::LockBarn,
    Event::LockSlab,
    Event::LockHeap,
];

/// How often each event was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(pub Box<[u64; Event::COUNT]>);

impl Default for Counts {
    fn default() -> Self {
        Counts(Box::new([0; Event::COUNT]))
    }
}

impl Counts {
    /// How often one event was counted.
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize]
    }

    /// These counts without `earlier` ones.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut counts = self.clone();
        for (count, before) in counts.0.iter_mut().zip(earlier.0.iter()) {
            *count -= before;
        }
        counts
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        for (count, more) in self.0.iter_mut().zip(other.0.iter()) {
            *count += more;
        }
    }

    /// Allocations, fast and slow.
    pub fn allocs(&self) -> u64 {
        // A second try after a quarantine was emptied is the same allocation.
        self.get(Event::AllocFastpath) + self.get(Event::AllocSlowpath) - self.get(Event::QuarantineFlush)
    }

    /// Frees, fast and slow; one into quarantine counts, and not again when the object leaves it.
    pub fn frees(&self) -> u64 {
        let freed = [Event::FreeFastpath, Event::FreeSlowpath, Event::FreeRcuSheaf];
        let freed: u64 = freed.into_iter().map(|event| self.get(event)).sum();
        freed + self.get(Event::QuarantineHold) - self.get(Event::QuarantineRelease)
    }

    /// Percent of allocations that were fast; `None` without allocations.
    pub fn fast_allocs_percent(&self) -> Option<f64> {
        percent(self.get(Event::AllocFastpath), self.allocs())
    }

    /// Percent of frees that were fast; `None` without frees.
    pub fn fast_frees_percent(&self) -> Option<f64> {
        percent(self.get(Event::FreeFastpath), self.frees())
    }

    /// Locks taken inside the cache.
    pub fn locks(&self) -> u64 {
        LOCKS.into_iter().map(|lock| self.get(lock)).sum()
    }
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// What the rows did to one cache, as the replay sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Allocations replayed.
    pub allocs: u64,
    /// Frees replayed.
    pub frees: u64,
    /// Allocations the engine could not serve.
    pub failed: u64,
    /// Frees by another CPU than allocated.
    pub other_cpu: u64,
    /// Frees by a CPU whose memory node is not the object's.
    pub other_node: u64,
    /// Frees of objects from before.
    pub old: u64,
    /// Frees of objects that a path without events allocated: allocated just before, by assumption.
    pub bulk: u64,
    /// Frees without an event that later events imply.
    pub implied: u64,
    /// Bytes asked for by the objects allocated in the recording and live now; negative while older ones are
    /// freed.
    pub requested_live: i64,
    /// Bytes their cache gives to those objects.
    pub given_live: i64,
}

impl Traffic {
    /// Percent of the cache's events that rest on an assumption about what is not in the recording.
    pub fn assumed_percent(&self) -> f64 {
        let events = self.allocs + self.frees;
        if events == 0 { 0.0 } else { 100.0 * (2 * self.bulk + self.implied) as f64 / events as f64 }
    }
}

/// One cache's answer.
#[derive(Clone, Debug)]
pub struct CacheOutcome {
    /// Its place in the replay's table.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// Sizes and orders.
    pub geometry: Geometry,
    /// Events counted, in the cache's window.
    pub counts: Counts,
    /// Traffic in the cache's window.
    pub traffic: Traffic,
    /// What it held at the start of its window.
    pub start: Usage,
    /// What it held at the end of its window.
    pub end: Usage,
}

/// Where slab memory goes, bytes. The parts add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// All slab pages; of pages that caches share, what the cache's objects take.
    pub slabs: u64,
    /// Objects that are allocated.
    pub live: u64,
    /// Free objects parked at CPUs, in barns and in quarantine.
    pub parked: u64,
    /// Free objects in slabs on lists.
    pub free: u64,
    /// Ends of slabs that no object fits in.
    pub tail: u64,
}

impl Split {
    /// The split of one cache.
    pub fn of(usage: &Usage, geometry: &Geometry, page_size: u64) -> Split {
        let size = geometry.size as u64;
        let slabs = usage.frames * page_size;
        let (live, quarantined) = usage.held_in_slabs();
        Split {
            slabs: slabs + usage.shared_bytes,
            live: live * size + usage.shared_bytes,
            parked: (usage.parked + quarantined) * size,
            free: usage.free_in_partial * size,
            tail: slabs - usage.total_objects * size,
        }
    }
}

impl std::ops::AddAssign for Split {
    fn add_assign(&mut self, other: Split) {
        self.slabs += other.slabs;
        self.live += other.live;
        self.parked += other.parked;
        self.free += other.free;
        self.tail += other.tail;
    }
}

impl Outcome {
    /// All caches' counts together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.caches.iter().for_each(|cache| total.add(&cache.counts));
        total
    }

    /// All caches' traffic together.
    pub fn traffic(&self) -> Traffic {
        let mut total = Traffic::default();
        for Traffic {
            allocs,
            frees,
            failed,
            other_cpu,
            other_node,
            old,
            bulk,
            implied,
            requested_live,
            given_live,
        } in self.caches.iter().map(|cache| cache.traffic)
        {
            total.allocs += allocs;
            total.frees += frees;
            total.failed += failed;
            total.other_cpu += other_cpu;
            total.other_node += other_node;
            total.old += old;
            total.bulk += bulk;
            total.implied += implied;
            total.requested_live += requested_live;
            total.given_live += given_live;
        }
        total
    }

    /// Where slab memory goes at the end.
    pub fn split(&self) -> Split {
        let mut split = Split::default();
        for cache in &self.caches {
            split += Split::of(&cache.end, &cache.geometry, self.page_size);
        }
        split.slabs += self.shared.free_bytes;
        split.free += self.shared.free_bytes;
        split
    }
}
