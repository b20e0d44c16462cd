//! The heap: a cache for each size, blocks of pages above the largest, and Rust's global allocator. `unsafe`:
//! hands out memory.

use crate::cpu::{self, CPUS, Off};
use crate::memory::{self, Object, PAGE};
use crate::slots::AllCpus;
use crate::world::Kernel;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::OnceCell;
use core::sync::atomic::Ordering::Relaxed;
use slablab_pages::Pages;
use slablab_pages::policy::{MinFree, PagesPolicy, ZoneRule};
use slablab_platform::{CpuId, FrameKind, Frames, Gfp, NodeId, Topology};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Metadata, Misuse};

const SMALLEST: usize = 16;
const LARGEST: usize = 8192;
const CLASSES: usize = (LARGEST / SMALLEST).ilog2() as usize + 1;
/// The page allocator of Linux 6.18, with one zone of which a request may take the last page.
const PAGES: PagesPolicy = PagesPolicy {
    zones: Some(ZoneRule::One),
    min_free: MinFree::Kib(0),
    ..PagesPolicy::for_release(6, 18, 0)
};

/// A heap of one engine.
pub struct Heap<E: Engine<Kernel>> {
    pages: Pages<Kernel>,
    common: E::Common,
    classes: [E; CLASSES],
}

impl<E: Engine<Kernel>> Heap<E> {
    /// A heap that has given nothing yet. One at a time: all memory is its.
    pub fn new(policy: &E::Policy) -> Self {
        let class = |index: usize| {
            let bytes = (SMALLEST << index) as u32;
            let spec = CacheSpec { align: bytes.min(PAGE as u32), ..CacheSpec::of_size(bytes) };
            E::create(CacheId(index as u32), &spec, policy)
        };
        let (pages, common) = (Pages::new(PAGES), E::Common::default());
        Heap { pages, common, classes: core::array::from_fn(class) }
    }

    /// Memory of this layout. `None` if there is none, and for alignments above a page.
    pub fn alloc(&self, layout: Layout) -> Option<Object> {
        let gfp = if cpu::in_interrupt() { Gfp::ATOMIC } else { Gfp::KERNEL };
        let bytes = layout.size().max(layout.align()).max(SMALLEST);
        if bytes > LARGEST {
            let order = bytes.div_ceil(PAGE).checked_next_power_of_two()?.ilog2();
            let order = u8::try_from(order).ok().filter(|_| layout.align() <= PAGE)?;
            return Some(Kernel::address(self.pages.alloc(gfp, order, NodeId(0), FrameKind::Large)?, 0));
        }
        self.classes[class_of(bytes)].alloc(&self.backing(), gfp, None)
    }

    /// Gives memory back, on any CPU.
    ///
    /// # Errors
    /// There is no object at this address; nothing happened.
    pub fn free(&self, at: *mut u8) -> Result<(), Misuse> {
        let object = Object::new(at).filter(|_| memory::contains(at)).ok_or(Misuse::NotInSlab)?;
        let (block, state) = Pages::<Kernel>::block_of(object).ok_or(Misuse::NotInSlab)?;
        if state.kind == FrameKind::Slab {
            return self.classes[memory::owner(block).load(Relaxed) as usize].free(&self.backing(), object);
        }
        if Kernel::locate(object) != (block, 0) {
            return Err(Misuse::NotAnObject);
        }
        self.pages.free(block);
        Ok(())
    }

    /// Deferred work of this CPU. For a CPU that idles: it says that no reader runs here.
    pub fn idle(&self) {
        let here = Kernel::cpu();
        Kernel::quiescent(here);
        while let Some((cpu, work)) = Kernel::due(|cpu| cpu == here) {
            self.classes[work.cache as usize].work(&self.backing(), cpu, work);
        }
    }

    /// Gives empty slabs back to the pages. For when memory is short; any CPU, at any time.
    pub fn shrink(&self) -> u64 {
        self.classes.iter().map(|class| class.shrink(&self.backing())).sum()
    }

    /// Ends a heap that no CPU uses any more. Answers the number of free page frames, which is that of all.
    pub fn end(&self) -> u64 {
        Kernel::stop(true);
        let backing = self.backing();
        for class in &self.classes {
            (0..CPUS).for_each(|cpu| class.cpu_down(&backing, CpuId(cpu as u16)));
        }
        // Sheaves and arrays are objects of other classes, which end after those that own them.
        for class in self.classes.iter().chain(&self.classes) {
            let _ = class.destroy(&backing);
        }
        for class in &self.classes {
            class.destroy(&backing).unwrap_or_else(|busy| panic!("{:?}: {busy:?}", class.id()));
        }
        (0..CPUS).for_each(|cpu| self.pages.cpu_down(CpuId(cpu as u16)));
        while Kernel::due(|_| true).is_some() {}
        Kernel::stop(false);
        self.pages.free_frames(NodeId(0))
    }

    fn backing(&self) -> Backing<'_, Kernel, E::Common> {
        Backing { metadata: Some(self), ..Backing::new(&self.pages, &self.common) }
    }
}

fn class_of(bytes: usize) -> usize {
    (bytes.max(SMALLEST).next_power_of_two() / SMALLEST).ilog2() as usize
}

/// Sheaves and arrays are objects of the classes, allocated without sheaves and arrays.
impl<E: Engine<Kernel>> Metadata<Kernel> for Heap<E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Object> {
        self.classes.get(class_of(bytes as usize))?.alloc(&Backing::new(&self.pages, &self.common), gfp, None)
    }
    fn free(&self, object: Object) {
        let (block, _) = Pages::<Kernel>::block_of(object).expect("metadata is in a slab");
        let class = &self.classes[memory::owner(block).load(Relaxed) as usize];
        class.free(&Backing::new(&self.pages, &self.common), object).expect("metadata is an object");
    }
}

/// A heap in a static: `#[global_allocator] static HEAP: Global<Slub<Kernel>> = Global::new();`.
pub struct Global<E: Engine<Kernel>>(AllCpus<OnceCell<Heap<E>>>);

impl<E: Engine<Kernel>> Global<E> {
    /// An allocator without a heap: allocations return null until `boot`.
    pub const fn new() -> Self {
        Global(AllCpus(OnceCell::new()))
    }
    /// Makes the heap. On the boot CPU, before another CPU allocates.
    pub fn boot(&self, policy: &E::Policy) -> &Heap<E> {
        let _off = Off::new();
        self.0.0.get_or_init(|| Heap::new(policy))
    }
}

// SAFETY: what the heap gives is the caller's alone, as large and as aligned as the layout says.
unsafe impl<E: Engine<Kernel>> GlobalAlloc for Global<E> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let object = self.0.0.get().and_then(|heap| heap.alloc(layout));
        object.map_or(core::ptr::null_mut(), |object| object.as_ptr())
    }
    unsafe fn dealloc(&self, at: *mut u8, _layout: Layout) {
        let heap = self.0.0.get().expect("what is freed was allocated");
        heap.free(at).unwrap_or_else(|misuse| panic!("free of {at:p}: {misuse:?}"));
    }
}
