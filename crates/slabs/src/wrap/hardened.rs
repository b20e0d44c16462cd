//! Links that nobody can forge: `SLAB_FREELIST_HARDENED` (4.14) as a world around a world.
//!
//! What is stored in a free object is the link, exclusive-or the world's secret, exclusive-or the
//! byte-swapped address of the word it is stored in (docs/theory/slub.md 7). An engine over [`Hardened`]
//! knows nothing of it: links are the world's. Who overwrites a link, or copies one, makes it lead to where
//! no slab of the cache is; that is seen when the link is followed, and ends the program, as a list that is
//! broken cannot be gone on with.
//!
//! A world and not an engine's wrapper because the links are made inside engines and read by slots: the one place that sees
//! all of them is [`Memory::link`](slablab_platform::Memory::link). The price: the slot's one-store operations read the link themselves, so here they are
//! done while the slot is held.

use crate::zones::ahead;
use core::marker::PhantomData;
use slablab_pages::Pages;
use slablab_platform::conformance::Testable;
use slablab_platform::{
    CpuId, Event, Field, FrameKind, Hooks, HotList, Local, Memory, NodeId, PerCpu, Pfn, Platform, Rank,
    Shortcut, SlotOf, Want, delegate,
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

    /// The object that a decoded number stands for, if that can be one of the cache whose object it was read from.
    fn followed(object: P::Ptr, number: u64) -> Option<P::Ptr> {
        let frame = u32::try_from(number >> P::page_shift()).ok()?;
        let is_memory = |(first, count): (Pfn, u32)| (first.0..first.0 + count).contains(&frame);
        let exists = (0..P::nodes()).any(|node| is_memory(P::node_frames(NodeId(node))));
        if !exists || !number.is_multiple_of(8) {
            return None;
        }
        let next = P::address(Pfn(frame), number & ((1 << P::page_shift()) - 1));
        // Objects of one list are in slabs of one cache, whose number is in the low 24 bits of what an engine keeps of an
        // owner; only SLOB, which knows no caches, has objects with pages of their own as well.
        let block_of = |object| {
            let (head, state) = Pages::<P>::block_of(object)?;
            Some((state.kind, P::with_frame(head, |frame| frame.owner.get()) & 0xff_ffff))
        };
        let fits = match (block_of(object), block_of(next)) {
            (Some((FrameKind::Slab, own)), Some((FrameKind::Slab, other))) => own == other,
            (Some((FrameKind::Slab | FrameKind::Large, _)), other) => {
                matches!(other, Some((FrameKind::Slab | FrameKind::Large, _)))
            }
            // The checks of the contract map slabs without a page allocator.
            (own, other) => own == other,
        };
        fits.then_some(next)
    }
}

delegate! { impl[P: Platform] Topology for Hardened<P> => P }
delegate! { impl[P: Platform] Frames for Hardened<P> => P }
delegate! { impl[P: Platform] Time for Hardened<P> => P }
delegate! { impl[P: Platform] Hooks for Hardened<P> => P }
delegate! { impl[P: Platform] Memory for Hardened<P> => P: half set_half storage_attach storage_load storage_store
        storage_detach fill differs word set_word mark_live;
    /// A link that leads to no object of the cache is [`Hooks::broken`]: the free object was overwritten.
    fn link(object: P::Ptr, offset: u32) -> Option<P::Ptr> {
        let word = ahead::<P>(object, offset);
        let number = P::word(word) ^ Self::key(word);
        if number == 0 {
            return None;
        }
        let next = Self::followed(object, number);
        if next.is_none() {
            Self::broken(format_args!(
                "BUG: Freechain corrupt: the link of the object at {object:?} leads to {number:#x}, \
                 which is in no slab of its cache"
            ));
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

impl<P: Platform, T: Default> Shortcut<P::Ptr, T> for HardenedSlots<P, T> {}
