//! The heap: a cache per size, and blocks of pages above the largest.

use crate::cpu;
use crate::memory::{self, Object, PAGE};
use crate::world::Kernel;
use core::alloc::Layout;
use slablab_pages::Pages;
use slablab_pages::policy::{MinFree, PagesPolicy, PcpRule, ZoneRule};
use slablab_platform::{CpuId, FrameKind, Frames, Gfp, NodeId};
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Metadata, Misuse};

/// A heap of one engine.
pub struct Heap<E: Engine<Kernel>> {
    pub(crate) pages: Pages<Kernel>,
    pub(crate) common: E::Common,
    pub(crate) classes: [E; CLASSES],
}

/// The smallest class and the largest: 16 bytes, 32, ... 8 KiB.
const SMALLEST: usize = 16;
const LARGEST: usize = 8192;
const CLASSES: usize = (LARGEST / SMALLEST).ilog2() as usize + 1;
/// The order of the largest block there is: 256 KiB.
const MAX_ORDER: u8 = 6;

impl<E: Engine<Kernel>> Heap<E> {
    /// A heap that has given nothing yet. Once, at boot: memory is its.
    pub fn new(policy: &E::Policy) -> Self {
        let class = |index: usize| {
            let bytes = (SMALLEST << index) as u32;
            let spec = CacheSpec { align: bytes.min(PAGE as u32), ..CacheSpec::of_size(bytes) };
            E::create(CacheId(index as u32), &spec, policy)
        };
        let mut pages = PagesPolicy::for_release(6, 18, 0);
        pages.zones = Some(ZoneRule::One);
        pages.max_order = Some(MAX_ORDER);
        pages.pageblock_order = Some(MAX_ORDER);
        // One CPU needs no page lists of its own; interrupts may take the last page.
        pages.pcp = PcpRule::NONE;
        pages.min_free = MinFree::Kib(0);
        Heap { pages: Pages::new(pages), common: E::Common::default(), classes: core::array::from_fn(class) }
    }

    /// Memory of this layout, from a task or an interrupt. `None` if there is none, or for alignments above a
    /// page.
    pub fn alloc(&self, layout: Layout) -> Option<Object> {
        let gfp = if cpu::in_interrupt() { Gfp::ATOMIC } else { Gfp::KERNEL };
        let bytes = layout.size().max(layout.align()).max(SMALLEST);
        if bytes > LARGEST {
            let order = bytes.div_ceil(PAGE).checked_next_power_of_two()?.ilog2();
            let order = u8::try_from(order).ok().filter(|_| layout.align() <= PAGE)?;
            let block = self.pages.alloc(gfp, order, NodeId(0), FrameKind::Large)?;
            return Some(Kernel::address(block, 0));
        }
        let class = bytes.next_power_of_two().ilog2() - SMALLEST.ilog2();
        self.classes[class as usize].alloc(&self.backing(), gfp, None)
    }

    /// Gives memory back. Any address may come.
    ///
    /// # Errors
    /// There is no object at this address; nothing happened.
    pub fn free(&self, at: *mut u8) -> Result<(), Misuse> {
        let object = Object::new(at).filter(|_| memory::contains(at)).ok_or(Misuse::NotInSlab)?;
        let (block, state) = Pages::<Kernel>::block_of(object).ok_or(Misuse::NotInSlab)?;
        if state.kind == FrameKind::Slab {
            let class = memory::owner(block).get() as usize;
            return self.classes[class].free(&self.backing(), object);
        }
        if Kernel::locate(object) != (block, 0) {
            return Err(Misuse::NotAnObject);
        }
        self.pages.free(block);
        Ok(())
    }

    /// What no caller waits for: timers, and slabs whose readers are gone. To be called when the CPU idles.
    pub fn idle(&self) {
        Kernel::nobody_reads();
        while let Some(work) = Kernel::due() {
            self.classes[work.cache as usize].work(&self.backing(), CpuId(0), work);
        }
    }

    /// Gives empty slabs back to the pages. Answers how many. To be called when memory is short.
    pub fn shrink(&self) -> u64 {
        self.classes.iter().map(|class| class.shrink(&self.backing())).sum()
    }

    /// Page frames that are free.
    pub fn free_frames(&self) -> u64 {
        self.pages.free_frames(NodeId(0))
    }

    pub(crate) fn backing(&self) -> Backing<'_, Kernel, E::Common> {
        Backing { metadata: Some(self), ..Backing::new(&self.pages, &self.common) }
    }
}

/// Sheaves and arrays are objects of the classes. What they need themselves they do without.
impl<E: Engine<Kernel>> Metadata<Kernel> for Heap<E> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Object> {
        let class = (bytes as usize).max(SMALLEST).next_power_of_two().ilog2() - SMALLEST.ilog2();
        self.classes.get(class as usize)?.alloc(&Backing::new(&self.pages, &self.common), gfp, None)
    }
    fn free(&self, object: Object) {
        let (block, _) = Pages::<Kernel>::block_of(object).expect("metadata is in a slab");
        let class = &self.classes[memory::owner(block).get() as usize];
        class.free(&Backing::new(&self.pages, &self.common), object).expect("metadata is an object");
    }
}
