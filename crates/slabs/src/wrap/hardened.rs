//! Encoded free-list pointers: `SLAB_FREELIST_HARDENED` (4.14) as a world around a world.
//!
//! A free object holds its link, exclusive-or the world's secret, exclusive-or the byte-swapped address of
//! the word that holds it (docs/theory/slub.md 7). An engine over [`Hardened`] needs no change, because links
//! belong to the world. A link that a caller overwrote or copied decodes to an address outside the cache's
//! slabs. The engine finds that when it follows the link, and ends the program, because a broken list cannot
//! be used.
//!
//! This is a world and not a wrapper around an engine, because engines make links and slots read them. Both
//! go through [`Memory::link`](slablab_platform::Memory::link). The price: a slot's one-store operations read
//! links themselves, so this world does those operations while it holds the slot.

use crate::zones::ahead;
use core::marker::PhantomData;
use slablab_pages::Pages;
use slablab_platform::conformance::Testable;
use slablab_platform::{
    CpuId, Event, Field, FrameKind, Hooks, HotList, Local, Memory, NodeId, PerCpu, Pfn, Platform, Rank,
    SlotOf, Want, delegate,
};

/// World `P` with encoded links.
#[derive(Debug)]
pub struct Hardened<P>(PhantomData<P>);

impl<P: Platform> Hardened<P> {
    /// An address as a number that is never 0.
    fn number(at: P::Ptr) -> u64 {
        let (pfn, offset) = P::locate(at);
        ((pfn.0 as u64) << P::page_shift()) + offset as u64
    }

    fn key(word: P::Ptr) -> u64 {
        P::secret() ^ Self::number(word).swap_bytes()
    }

    /// The kind of the block of page frames that an object is in, and the number of the block's cache, which
    /// an engine stores in the low 24 bits of the owner word.
    fn block_of(object: P::Ptr) -> Option<(FrameKind, u32)> {
        let (head, state) = Pages::<P>::block_of(object)?;
        Some((state.kind, (P::with_frame(head, |frame| frame.owner.get()) & 0xff_ffff) as u32))
    }

    /// The object at a decoded number; `None` if it cannot be an object of the cache that `object`, which
    /// held the link, belongs to.
    fn followed(object: P::Ptr, number: u64) -> Option<P::Ptr> {
        let frame = u32::try_from(number >> P::page_shift()).ok()?;
        let is_memory = |(first, count): (Pfn, u32)| (first.0..first.0 + count).contains(&frame);
        let exists = (0..P::nodes()).any(|node| is_memory(P::node_frames(NodeId(node))));
        if !exists || !number.is_multiple_of(8) {
            return None;
        }
        let next = P::address(Pfn(frame), number & ((1 << P::page_shift()) - 1));
        // Objects of one list are in slabs of one cache. SLOB does not know caches, but it also has objects
        // with pages of their own.
        let fits = match (Self::block_of(object), Self::block_of(next)) {
            (Some((FrameKind::Slab, own)), Some((FrameKind::Slab, other))) => own == other,
            (Some((FrameKind::Slab | FrameKind::Large, _)), other) => {
                matches!(other, Some((FrameKind::Slab | FrameKind::Large, _)))
            }
            // The contract's tests map slabs without a page allocator.
            (own, other) => own == other,
        };
        fits.then_some(next)
    }
}

delegate! { impl[P: Platform] Topology for Hardened<P> => P }
delegate! { impl[P: Platform] Frames for Hardened<P> => P }
delegate! { impl[P: Platform] Time for Hardened<P> => P }
delegate! { impl[P: Platform] Hooks for Hardened<P> => P }
delegate! { impl[P: Platform] Memory for Hardened<P> => P: half set_half storage_attach storage_load
        storage_store storage_detach fill differs word set_word mark_live;
    /// Calls [`Hooks::broken`] if the link leads to no object of the cache: a caller wrote to the free
    /// object.
    fn link(object: P::Ptr, offset: u32) -> Option<P::Ptr> {
        let word = ahead::<P>(object, offset);
        let number = P::word(word) ^ Self::key(word);
        if number == 0 {
            return None;
        }
        let next = Self::followed(object, number);
        if next.is_none() {
            let cache = Self::block_of(object).filter(|(kind, _)| *kind == FrameKind::Slab);
            Self::broken(
                cache.map(|(_, cache)| cache),
                format_args!(
                    "BUG: Freechain corrupt: the link of the object at {object:?} leads to {number:#x}, \
                     which is in no slab of its cache"
                ),
            );
        }
        next
    }
    fn set_link(object: P::Ptr, offset: u32, next: Option<P::Ptr>) {
        let word = ahead::<P>(object, offset);
        P::set_word(word, next.map_or(0, Self::number) ^ Self::key(word));
    }
}

impl<P: Platform> Platform for Hardened<P> {
    type Ground = P::Ground;
    type Lock<R: Rank, T> = P::Lock<R, T>;
    type PerCpu<T: Default> = HardenedSlots<P, T>;
    type PerNode<T: Default> = P::PerNode<T>;
    type CpuShared<T: Default> = P::CpuShared<T>;
}

delegate! { impl[P: Testable] Testable for Hardened<P> => P }

/// Slots whose hot lists have encoded links.
pub struct HardenedSlots<P: Platform, T: Default> {
    slots: P::PerCpu<T>,
    link_offset: u32,
}

impl<P: Platform, T: Default> PerCpu<P::Ptr, T> for HardenedSlots<P, T> {
    type Local<'a>
        = SlotOf<'a, P, T>
    where
        T: 'a;

    fn new(link_offset: u32) -> Self {
        HardenedSlots { slots: P::PerCpu::new(link_offset), link_offset }
    }
    fn pop_if(&self, want: Want, event: Event) -> Option<P::Ptr> {
        let mut slot = self.slots.local()?;
        let list = slot.list();
        let head = list.head.filter(|_| want.met(list.tag))?;
        let next = Hardened::<P>::link(head, self.link_offset);
        slot.set_list(HotList { head: next, count: list.count - 1, ..list });
        slot.count(event, 1);
        Some(head)
    }
    fn push_if(&self, want: Want, limit: u32, object: P::Ptr, event: Event) -> bool {
        let Some(mut slot) = self.slots.local() else { return false };
        let list = slot.list();
        let fits = want.met(list.tag) && list.count < limit;
        if fits {
            Hardened::<P>::set_link(object, self.link_offset, list.head);
            slot.set_list(HotList { head: Some(object), count: list.count + 1, ..list });
            slot.count(event, 1);
        }
        fits
    }
    fn pop(&self, event: Event) -> Option<P::Ptr> {
        self.slots.pop(event)
    }
    fn push(&self, object: P::Ptr, event: Event) -> bool {
        self.slots.push(object, event)
    }
    fn local(&self) -> Option<Self::Local<'_>> {
        self.slots.local()
    }
    fn claim(&self, cpu: CpuId) -> Option<Self::Local<'_>> {
        self.slots.claim(cpu)
    }
    fn close(&self, closed: bool) {
        self.slots.close(closed);
    }
    fn ask(&self, cpu: CpuId) {
        self.slots.ask(cpu);
    }
    fn count(&self, event: Event, n: u64) {
        self.slots.count(event, n);
    }
    fn counted(&self, cpu: CpuId, event: Event) -> u64 {
        self.slots.counted(cpu, event)
    }
    fn used(&self, cpu: CpuId) -> bool {
        self.slots.used(cpu)
    }
}
