//! One slab as seen through its head frame's descriptor.

mod new;

pub use new::{Constructor, NewObjects};

use core::marker::PhantomData;
use slablab_pages::Pages;
use slablab_platform::frames::Links;
use slablab_platform::{Field, FrameState, NodeId, Pfn, Platform, Word};

/// A slab's racing state in one word. Bits: head 0-30 (offset in units of 8 bytes, all ones for none), frozen
/// 31, inuse 32-47, objects 48-63.
///
/// Any CPU may push one object or a chain (head, inuse). Only the CPU that froze the slab, or the holder of
/// the `list_lock` that the slab is listed under, may take objects out. So a head that a CPU has read cannot
/// come back with another list behind it, and the word needs no tag. Each transition below says who may make
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabWord {
    /// First free object, as an offset from the slab's start in units of 8 bytes.
    pub head: Option<u32>,
    /// Objects not on the slab's own free list.
    pub inuse: u16,
    /// Objects the slab holds.
    pub objects: u16,
    /// The slab is one CPU's: it is on no node's list, and no other CPU may take objects out.
    pub frozen: bool,
}

impl SlabWord {
    const NO_HEAD: u64 = (1 << 31) - 1;

    /// The word for this state.
    #[inline]
    pub const fn pack(self) -> u64 {
        let head = match self.head {
            Some(head) => head as u64,
            None => Self::NO_HEAD,
        };
        head | (self.frozen as u64) << 31 | (self.inuse as u64) << 32 | (self.objects as u64) << 48
    }

    /// The state in a word.
    #[inline]
    pub const fn unpack(word: u64) -> SlabWord {
        let head = word & Self::NO_HEAD;
        SlabWord {
            head: if head == Self::NO_HEAD { None } else { Some(head as u32) },
            inuse: (word >> 32) as u16,
            objects: (word >> 48) as u16,
            frozen: word >> 31 & 1 == 1,
        }
    }

    /// Objects on the slab's own free list.
    #[inline]
    pub const fn free(self) -> u32 {
        self.objects as u32 - self.inuse as u32
    }

    /// The word of a new slab whose objects are all out, not frozen. Who may write it: the CPU that made the
    /// slab, before any other CPU knows the slab.
    #[inline]
    pub const fn all_out(objects: u16) -> SlabWord {
        SlabWord { head: None, inuse: objects, objects, frozen: false }
    }

    /// `count` objects come back in front of the list; `head` is the first of them. `None` if fewer objects
    /// are out: one was freed twice. Who may: any CPU, in any state of the slab.
    #[inline]
    pub fn pushed(self, head: u32, count: u32) -> Option<SlabWord> {
        let inuse = (self.inuse as u32).checked_sub(count)?;
        Some(SlabWord { head: Some(head), inuse: inuse as u16, ..self })
    }

    /// `count` objects leave the front of the list; `head` is the first that stays. Who may: the holder of
    /// the `list_lock` that the slab is listed under.
    #[inline]
    pub const fn taken(self, count: u32, head: Option<u32>) -> SlabWord {
        SlabWord { head, inuse: self.inuse + count as u16, ..self }
    }

    /// The whole list leaves. Who may: the CPU that froze the slab, or the holder of the `list_lock` that the
    /// slab is listed under.
    #[inline]
    pub const fn taken_all(self) -> SlabWord {
        SlabWord { head: None, inuse: self.objects, ..self }
    }

    /// The slab becomes a CPU's own. Who may: the holder of the `list_lock` that the slab is listed under;
    /// the CPU on whose chain of partial slabs it is; the CPU that frees into a full slab, in the same
    /// exchange as its push.
    #[inline]
    pub const fn frozen(self) -> SlabWord {
        SlabWord { frozen: true, ..self }
    }

    /// The slab is no CPU's own any more. Who may: the CPU that froze it. Where the slab has a free object
    /// afterwards, that CPU holds the `list_lock` under which it lists the slab.
    #[inline]
    pub const fn thawed(self) -> SlabWord {
        SlabWord { frozen: false, ..self }
    }
}

/// A chain of free objects, linked from `head`; `tail` is the last.
#[derive(Clone, Copy, Debug)]
pub struct Chain<Ptr> {
    /// The first object.
    pub head: Ptr,
    /// The last object. Its link has no meaning.
    pub tail: Ptr,
    /// Objects in the chain.
    pub count: u32,
}

/// A slab, by its head frame.
pub struct Slab<P> {
    pfn: Pfn,
    world: PhantomData<fn() -> P>,
}

impl<P> Clone for Slab<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Slab<P> {}

impl<P> core::fmt::Debug for Slab<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Slab({})", self.pfn.0)
    }
}

impl<P: Platform> Slab<P> {
    /// The slab whose head frame is `pfn`.
    #[inline]
    pub fn at(pfn: Pfn) -> Self {
        Slab { pfn, world: PhantomData }
    }

    /// The slab an object is in, and its frame state. `None` for an address that is in no slab.
    #[inline]
    pub fn of(object: P::Ptr) -> Option<(Self, FrameState)> {
        let (pfn, state) = Pages::<P>::block_of(object)?;
        (state.kind == slablab_platform::FrameKind::Slab).then(|| (Self::at(pfn), state))
    }

    /// The head frame.
    #[inline]
    pub fn pfn(self) -> Pfn {
        self.pfn
    }

    /// The head frame's state.
    #[inline]
    pub fn state(self) -> FrameState {
        FrameState::unpack(P::with_frame(self.pfn, |frame| frame.state.load()))
    }

    /// The node the slab's memory is on.
    #[inline]
    pub fn node(self) -> NodeId {
        self.state().node
    }

    /// The racing word. Acquire: pairs with the compare-exchange that pushed the head, whose link is read
    /// next.
    #[inline]
    pub fn word(self) -> SlabWord {
        SlabWord::unpack(P::with_frame(self.pfn, |frame| frame.slab.load_acquire()))
    }

    /// Writes the word of a slab that no other CPU can find yet.
    pub fn init_word(self, word: SlabWord) {
        P::with_frame(self.pfn, |frame| frame.slab.store(word.pack()));
    }

    /// Tries once to change the word from `from` to `to`. The error is the word found instead.
    #[inline]
    pub fn exchange(self, from: SlabWord, to: SlabWord) -> Result<(), SlabWord> {
        P::with_frame(self.pfn, |frame| frame.slab.compare_exchange(from.pack(), to.pack()))
            .map(drop)
            .map_err(SlabWord::unpack)
    }

    /// The owner's word: cache, list, as the engine packs it.
    #[inline]
    pub fn owner(self) -> u64 {
        P::with_frame(self.pfn, |frame| frame.owner.get())
    }

    /// Sets the owner's word of a slab that no other CPU can find yet.
    pub fn set_owner(self, owner: u64) {
        P::with_frame(self.pfn, |frame| frame.owner.set(owner));
    }

    /// The engine's own field, protected as the engine says.
    #[inline]
    pub fn extra(self) -> u64 {
        P::with_frame(self.pfn, |frame| frame.extra.get())
    }

    /// Writes the engine's own field.
    #[inline]
    pub fn set_extra(self, extra: u64) {
        P::with_frame(self.pfn, |frame| frame.extra.set(extra));
    }

    /// The slab after this one on its list, of either kind.
    #[inline]
    pub fn next(self) -> Option<Self> {
        Links::unpack(P::with_frame(self.pfn, |frame| frame.link.get())).next.map(Self::at)
    }

    /// The slab before this one on a doubly linked list.
    #[inline]
    pub fn prev(self) -> Option<Self> {
        Links::unpack(P::with_frame(self.pfn, |frame| frame.link.get())).prev.map(Self::at)
    }

    /// Sets the slab after this one on a singly linked list.
    #[inline]
    pub fn set_next(self, next: Option<Self>) {
        let links = Links { next: next.map(Self::pfn), prev: None };
        P::with_frame(self.pfn, |frame| frame.link.set(links.pack()));
    }

    /// The address of an object by its offset in units of 8 bytes.
    #[inline]
    pub fn object(self, head: u32) -> P::Ptr {
        P::address(self.pfn, head as u64 * 8)
    }

    /// Bytes from the slab's start to an address in it.
    #[inline]
    pub fn bytes_to(self, object: P::Ptr) -> u32 {
        let (pfn, offset) = P::locate(object);
        ((pfn.0 - self.pfn.0) << P::page_shift()) + offset
    }

    /// Bytes from the slab's start to `address`. `None` if the slab, of `order`, does not contain the
    /// address.
    #[inline]
    pub fn offset_of(self, address: P::Ptr, order: u8) -> Option<u32> {
        let (pfn, offset) = P::locate(address);
        let frames = pfn.0.wrapping_sub(self.pfn.0);
        (frames < 1 << order).then(|| (frames << P::page_shift()) + offset)
    }

    /// An object's offset in units of 8 bytes.
    #[inline]
    pub fn offset(self, object: P::Ptr) -> u32 {
        let (pfn, offset) = P::locate(object);
        ((pfn.0 - self.pfn.0) << (P::page_shift() - 3)) + offset / 8
    }

    /// Prepares the `objects` objects of a slab that no other CPU can find yet, without linking them. Touches
    /// none if there is nothing to prepare. Returns the first.
    pub fn prepare(self, size: u32, objects: u32, new: &NewObjects<P>) -> P::Ptr {
        let address = |index: u32| P::address(self.pfn, u64::from(index) * u64::from(size));
        if new.makes() {
            (0..objects).for_each(|index| new.make(address(index)));
        }
        address(0)
    }

    /// Links the `objects` objects of a slab that no other CPU can find yet. The first starts `colour` bytes
    /// into the slab. Returns the head of the list.
    pub fn thread(
        self,
        colour: u32,
        size: u32,
        objects: u32,
        link_offset: u32,
        new: &NewObjects<P>,
    ) -> P::Ptr {
        let head = self.thread_after(0, (colour, size, objects, link_offset), new, &mut |_| ());
        // A slab has an object.
        head.unwrap_or_else(|| P::address(self.pfn, colour.into()))
    }

    /// As [`Slab::thread`], but for the first `taken` objects, which are passed to `put` without a link. The
    /// others are linked: `None` if none is left. `shape` is what `thread` takes before `new`.
    #[inline]
    pub fn thread_after(
        self,
        taken: u32,
        shape: (u32, u32, u32, u32),
        new: &NewObjects<P>,
        put: &mut impl FnMut(P::Ptr),
    ) -> Option<P::Ptr> {
        let (colour, size, objects, link_offset) = shape;
        let address = |index: u32| P::address(self.pfn, colour as u64 + index as u64 * size as u64);
        let key = if new.shuffled { Some(P::random()) } else { None };
        let nth = |place: u32| address(key.map_or(place, |key| new::shuffled(place, objects, key)));
        let taken = taken.min(objects);
        for object in (0..taken).map(nth) {
            new.make(object);
            put(object);
        }
        let head = (taken < objects).then(|| nth(taken))?;
        let mut object = head;
        for place in taken + 1..=objects {
            let next = (place < objects).then(|| nth(place));
            new.make(object);
            P::set_link(object, link_offset, next);
            object = next.unwrap_or(object);
        }
        Some(head)
    }
}

/// A doubly linked list of slabs through their frames' links. The caller of each method holds the lock of the
/// list.
#[derive(Debug)]
pub struct SlabList<P> {
    head: Option<Pfn>,
    tail: Option<Pfn>,
    len: u32,
    world: PhantomData<fn() -> P>,
}

impl<P> Default for SlabList<P> {
    fn default() -> Self {
        SlabList { head: None, tail: None, len: 0, world: PhantomData }
    }
}

impl<P: Platform> SlabList<P> {
    /// Slabs on the list.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first slab.
    #[inline]
    pub fn first(&self) -> Option<Slab<P>> {
        self.head.map(Slab::at)
    }

    /// The last slab.
    #[inline]
    pub fn last(&self) -> Option<Slab<P>> {
        self.tail.map(Slab::at)
    }

    /// The slabs, first to last.
    pub fn iter(&self) -> impl Iterator<Item = Slab<P>> {
        core::iter::successors(self.first(), |slab| slab.next())
    }

    /// Adds a slab at the head.
    pub fn push_head(&mut self, slab: Slab<P>) {
        Self::set_links(slab.pfn, Links { next: self.head, prev: None });
        match self.head {
            Some(head) => Self::update(head, |links| links.prev = Some(slab.pfn)),
            None => self.tail = Some(slab.pfn),
        }
        self.head = Some(slab.pfn);
        self.len += 1;
    }

    /// Adds a slab at the tail.
    pub fn push_tail(&mut self, slab: Slab<P>) {
        Self::set_links(slab.pfn, Links { next: None, prev: self.tail });
        match self.tail {
            Some(tail) => Self::update(tail, |links| links.next = Some(slab.pfn)),
            None => self.head = Some(slab.pfn),
        }
        self.tail = Some(slab.pfn);
        self.len += 1;
    }

    /// Takes a slab off the list it is on.
    pub fn remove(&mut self, slab: Slab<P>) {
        let links = Links::unpack(P::with_frame(slab.pfn, |frame| frame.link.get()));
        match links.prev {
            Some(prev) => Self::update(prev, |other| other.next = links.next),
            None => self.head = links.next,
        }
        match links.next {
            Some(next) => Self::update(next, |other| other.prev = links.prev),
            None => self.tail = links.prev,
        }
        self.len -= 1;
    }

    /// Turns the list so that it begins at a slab on it; those before it follow the last.
    pub fn begin_at(&mut self, slab: Slab<P>) {
        let (Some(head), Some(tail), Some(prev)) = (self.head, self.tail, slab.prev()) else { return };
        Self::update(tail, |links| links.next = Some(head));
        Self::update(head, |links| links.prev = Some(tail));
        Self::update(prev.pfn, |links| links.next = None);
        Self::update(slab.pfn, |links| links.prev = None);
        (self.head, self.tail) = (Some(slab.pfn), Some(prev.pfn));
    }

    fn set_links(pfn: Pfn, links: Links) {
        P::with_frame(pfn, |frame| frame.link.set(links.pack()));
    }

    fn update(pfn: Pfn, change: impl FnOnce(&mut Links)) {
        P::with_frame(pfn, |frame| {
            let mut links = Links::unpack(frame.link.get());
            change(&mut links);
            frame.link.set(links.pack());
        });
    }
}
