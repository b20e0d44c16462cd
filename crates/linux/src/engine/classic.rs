//! SLAB and SLOB: what they have and SLUB has not.
//!
//! Neither has files in sysfs. The shim counts their calls by what changed of the state that headers of the
//! tree have (shim/slab.c, shim/slob.c), and says so by the names of SLUB's files. Blocks that go back to the
//! page allocator are counted here, since only the program knows whose they were.
//!
//! | | SLAB | SLOB |
//! |---|---|---|
//! | timers | `cache_reap` of each CPU: deferred work of the world | none |
//! | pages | of one cache | shared: a block counts for the cache whose call took it |
//! | requests of kmalloc | a cache for each class | of their size, with a header |

use super::cache::Linux;
use super::shared::{Booted, Shared};
use crate::build::Allocator;
use slablab_platform::{CpuId, Event, Field, Gfp, NO_CACHE, NodeId, Pfn, Platform, Work, WorkKind};
use slablab_slabs::cache::CacheFlags;
use slablab_slabs::{Backing, CacheSpec, Geometry, Usage};
use std::cell::Cell;

/// Bytes before an object of SLOB's kmalloc, which are also the least alignment.
const HEADER: u32 = 8;

impl Booted {
    pub(super) fn is_slub(&self) -> bool {
        self.image.allocator == Allocator::Slub
    }

    pub(super) fn is_slob(&self) -> bool {
        self.image.allocator == Allocator::Slob
    }
}

impl<P: Platform> Shared<P> {
    /// Names a cache that was made, and hands over what its making left to do later.
    pub(super) fn made(&self, cache: u64, id: u32) {
        self.books.ids.borrow_mut().insert(cache, id);
        self.defer_left(id);
    }

    /// Hands over what calls without a cache left to do later, in the name of one.
    pub(super) fn defer_left(&self, id: u32) {
        for (cpu, work, delay_ns) in self.image.deferred.take() {
            self.defer(id, cpu, work, delay_ns);
        }
    }

    /// The image's work of all caches: the world gets a number for it, as addresses differ from run to run.
    pub(super) fn defer(&self, id: u32, cpu: u16, work: u64, delay_ns: u64) {
        let mut later = self.books.later.borrow_mut();
        let known = later.iter().position(|known| *known == work);
        let argument = known.unwrap_or(later.len()) as u64;
        if known.is_none() {
            later.push(work);
        }
        // The tree counts from its last tick.
        let since_tick = P::now() % 4_000_000;
        let delay_ns = delay_ns.saturating_sub(since_tick);
        P::defer(CpuId(cpu), delay_ns, Work { kind: WorkKind::Reap, cache: id, argument });
    }

    /// A block of a cache went back to the page allocator.
    pub(super) fn gave(&self, cache: u32, cpu: CpuId) {
        if !self.is_slub() {
            let mut given = self.books.given.borrow_mut();
            *given.entry((cache, cpu.0)).or_default() += 1;
        }
    }

    /// A block is of another cache than the one whose call took it: of one of the image's own caches, if the
    /// program did not make it.
    pub(super) fn is_of(&self, pfn: u64, cache: u64) {
        let id = self.books.ids.borrow().get(&cache).copied().unwrap_or(NO_CACHE);
        if let Some(block) = self.blocks.borrow_mut().get_mut(&pfn) {
            block.cache = id;
            P::aside(|| P::with_frame(Pfn(pfn as u32), |frame| frame.owner.set(id.into())));
        }
    }
}

/// The size of SLOB's requests for a cache of kmalloc, or `None` for a cache with objects of its own.
pub(super) fn kmalloc_size(booted: &Booted, spec: &CacheSpec) -> Option<u32> {
    (booted.is_slob() && spec.flags.has(CacheFlags::KMALLOC)).then_some(spec.object_size)
}

/// The layout of a page of SLOB that one cache has alone.
pub(super) fn slob_geometry(booted: &Booted, cache: u64, spec: &CacheSpec) -> Geometry {
    let number = |name: &str| booted.file(cache, name).map_or(0, |said| said.total as u32);
    let kmalloc = kmalloc_size(booted, spec);
    let (bytes, align, lead) = match kmalloc {
        Some(bytes) if bytes.is_power_of_two() => (bytes + HEADER, bytes.max(HEADER), HEADER),
        Some(bytes) => (bytes + HEADER, HEADER, HEADER),
        None => (number("slab_size"), number("align").max(HEADER), 0),
    };
    let (size, order, objects) = match bytes < 4096 {
        true => {
            let size = bytes.next_multiple_of(align);
            (size, 0, 1 + (4096 - (lead.next_multiple_of(align) - lead) - bytes) / size)
        }
        false => {
            let bytes = kmalloc.unwrap_or(bytes);
            (bytes, bytes.div_ceil(4096).next_power_of_two().ilog2() as u8, 1)
        }
    };
    Geometry {
        object_size: spec.object_size,
        size,
        spacing: size,
        link_offset: 0,
        order,
        objects,
        min_order: order,
        min_objects: objects,
    }
}

impl<P: Platform> Linux<P> {
    /// Deferred work of the image: `cache_reap`, which looks at all caches.
    pub(super) fn run_later(&self, backing: &Backing<'_, P>, cpu: CpuId, work: Work) {
        let known = self.shared.books.later.borrow().get(work.argument as usize).copied();
        if let Some(work) = known.filter(|_| self.shared.online[cpu.0 as usize].get()) {
            self.run(backing, cpu.0, self.shared.image.functions.later, [work, 0, 0, 0, 0]);
        }
    }

    /// A counter of SLAB or SLOB, by a CPU or by all.
    pub(super) fn seen(&self, cpu: Option<CpuId>, event: Event) -> u64 {
        if event != Event::FreeSlab {
            let said = self.shared.file(self.cache, event.name());
            return said.map_or(0, |said| cpu.map_or(said.total, |cpu| said.of_cpu(cpu.0)));
        }
        let given = self.shared.books.given.borrow();
        let own =
            given.iter().filter(|((cache, at), _)| *cache == self.id.0 && cpu.is_none_or(|cpu| cpu.0 == *at));
        own.map(|(_, count)| count).sum()
    }

    /// Objects of SLOB: those in shared pages, those with pages of their own, and the frames of all blocks
    /// that calls for this cache took.
    pub(super) fn slob_usage(&self, node: Option<NodeId>) -> Usage {
        let number = |name: &str| {
            let said = self.file(name);
            node.map_or(said.total, |node| said.of_node(node.0))
        };
        let (shared_bytes, large) = (number("shared_bytes"), number("large_objects"));
        let live = match node {
            Some(node) => self.live[node.0 as usize].get(),
            None => self.live.iter().map(Cell::get).sum(),
        };
        let frames = self.frames(node.map(|node| node.0));
        Usage {
            slabs: large,
            frames,
            total_objects: large,
            shared_objects: live - large,
            shared_bytes,
            ..Usage::default()
        }
    }

    /// Fills the current CPU's array with objects of its slabs.
    pub(super) fn fill_array(&self, backing: &Backing<'_, P>, count: u32) {
        if self.shared.image.allocator != Allocator::Slab {
            return;
        }
        let limit = self.file("limit").total as u32;
        let cpu = P::cpu().0;
        let objects: Vec<u64> = (0..count.min(limit))
            .map_while(|_| self.allocate(backing, cpu, Gfp::KERNEL, None, self.geometry.object_size))
            .collect();
        objects.into_iter().for_each(|address| self.release(backing, cpu, address));
    }

    /// An object's address in the image.
    pub(super) fn allocate(
        &self,
        backing: &Backing<'_, P>,
        cpu: u16,
        gfp: Gfp,
        node: Option<NodeId>,
        bytes: u32,
    ) -> Option<u64> {
        let functions = &self.shared.image.functions;
        let node = node.map_or(-1i64, |node| node.0.into()) as u64;
        let address = match self.kmalloc {
            Some(_) => {
                self.run(backing, cpu, functions.kmalloc, [self.cache, gfp.0.into(), node, bytes.into(), 0])
            }
            None => self.run(backing, cpu, functions.alloc, [self.cache, gfp.0.into(), node, 0, 0]),
        };
        (address != 0).then_some(address)
    }

    /// Frees an object by its address in the image.
    pub(super) fn release(&self, backing: &Backing<'_, P>, cpu: u16, address: u64) {
        let functions = &self.shared.image.functions;
        let function = if self.kmalloc.is_some() { functions.kfree } else { functions.free };
        self.run(backing, cpu, function, [self.cache, address, 0, 0, 0]);
    }
}
