//! Frames, links and storage: a two-level table made where touched.
//!
//! A link is eight bytes per object, found from the object's address: the frame's record says where its links
//! begin and how many bytes of the frame share one. Objects are at least `1 << shift` bytes apart, so two
//! never share.

use crate::contents::Contents;
use crate::level::{Access, Level};
use slablab_platform::{Descriptor, Field, HotArray, NodeId, Pfn, Word};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::hint::black_box;
use std::num::NonZeroU64;
use std::rc::Rc;

/// An object's address in the model: frame number times page size plus offset. Address 0 is no object's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(pub NonZeroU64);

/// A shared word: one CPU runs at a time, so a cell is exact.
#[derive(Debug)]
pub struct Plain<L: Level> {
    value: Cell<u64>,
    line: L::Line,
}

impl<L: Level> Plain<L> {
    fn made(value: u64) -> Self {
        Plain { value: Cell::new(value), line: L::line() }
    }

    #[inline]
    fn read(&self) -> u64 {
        L::word(self.line, Access::Read);
        self.value.get()
    }

    #[inline]
    fn write(&self, value: u64) {
        L::word(self.line, Access::Write);
        self.value.set(value);
    }
}

impl<L: Level> Word for Plain<L> {
    fn new(value: u64) -> Self {
        Self::made(value)
    }
    #[inline]
    fn load(&self) -> u64 {
        self.read()
    }
    #[inline]
    fn load_acquire(&self) -> u64 {
        self.read()
    }
    #[inline]
    fn store(&self, value: u64) {
        self.write(value);
    }
    #[inline]
    fn store_release(&self, value: u64) {
        self.write(value);
    }
    #[inline]
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        L::word(self.line, Access::Exchange);
        let found = self.value.get();
        if found == current {
            self.value.set(new);
            Ok(found)
        } else {
            Err(found)
        }
    }
}

impl<L: Level> Field for Plain<L> {
    fn new(value: u64) -> Self {
        Self::made(value)
    }
    #[inline]
    fn get(&self) -> u64 {
        self.read()
    }
    #[inline]
    fn set(&self, value: u64) {
        self.write(value);
    }
}

/// A frame's descriptor.
pub(crate) type Frame<L> = Descriptor<Plain<L>, Plain<L>>;

/// Frames made together when one of them is touched: one largest block of 4 KiB pages.
pub(crate) const CHUNK: u32 = 1024;
/// Links made together.
const SEGMENT: u32 = 1 << 16;
/// log2 of the bytes that share a link where halves are kept.
const HALVES_SHIFT: u32 = 3;
/// Frame 0 holds no object.
const NO_HALVES: (Pfn, u32) = (Pfn(0), 0);

/// A cache line each: a walk over frames touches one per frame.
#[repr(align(64))]
struct Record<L: Level> {
    frame: Frame<L>,
    /// First link of this frame's objects plus 1; 0 while the frame holds no slab.
    links: Cell<u32>,
    /// log2 of the bytes that share one link.
    shift: Cell<u8>,
    /// The node of the frame's memory.
    home: Cell<u16>,
    /// What was written into the frame's objects.
    contents: Cell<Option<Box<Contents>>>,
    /// The line of the descriptor's words, and that of the slab's descriptor.
    line: L::Line,
    slab_line: Cell<L::Line>,
    /// The frame's first line, if it holds no objects of a slab.
    page: L::Beside,
}

impl<L: Level> Record<L> {
    fn new(home: NodeId) -> Self {
        let (frame, line) = L::together(Some(home), || (<Frame<L>>::new(), L::line()));
        Record {
            frame,
            line,
            slab_line: Cell::new(line),
            page: L::Beside::default(),
            links: Cell::new(0),
            shift: Cell::new(0),
            home: Cell::new(home.0),
            contents: Cell::default(),
        }
    }
}

impl<L: Level> std::fmt::Debug for Record<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record")
            .field("frame", &self.frame)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

// Arrays: an index modulo their length needs no check.
type Chunk<L> = Box<[Record<L>; CHUNK as usize]>;
type Segment<L> = Box<[LinkCell<L>; SEGMENT as usize]>;

/// An object's link, and what the level keeps beside it.
#[derive(Debug)]
struct LinkCell<L: Level> {
    link: Cell<u64>,
    beside: L::Beside,
}

impl<L: Level> LinkCell<L> {
    fn new() -> Self {
        LinkCell { link: Cell::new(0), beside: L::Beside::default() }
    }
}

/// Words of an object that is storage, and what the level keeps beside each line of them.
#[derive(Debug)]
struct Storage<L: Level> {
    words: Box<[Cell<u64>]>,
    lines: L::Lines,
}

#[cold]
#[inline(never)]
fn in_no_slab(object: Addr) -> ! {
    panic!("address {:#x} is in no slab", object.0)
}

/// So many values, each made by itself: on the heap at once, as the stack may have no room for them.
fn boxed<T, const N: usize>(make: impl Fn() -> T) -> Box<[T; N]> {
    let values: Box<[T]> = (0..N).map(|_| make()).collect();
    values.try_into().unwrap_or_else(|_| unreachable!("{N} values were made"))
}

/// All memory of one machine.
#[derive(Debug)]
pub(crate) struct Memory<L: Level> {
    page_shift: u32,
    /// The last frame of each node plus 1, in order.
    node_ends: Box<[u32]>,
    chunks: Box<[OnceCell<Chunk<L>>]>,
    segments: Box<[OnceCell<Segment<L>>]>,
    /// The frame whose halves were used last, and its first link: a block is searched half by half.
    halves: Cell<(Pfn, u32)>,
    /// First link never handed out.
    fresh: Cell<u32>,
    /// Runs of links given back, by log2 of their length.
    spare: RefCell<[Vec<u32>; 17]>,
    /// Frames that hold objects now, and at most so far.
    mapped: Cell<u64>,
    mapped_max: Cell<u64>,
    storage: RefCell<Vec<Option<Storage<L>>>>,
    spare_storage: RefCell<Vec<u32>>,
    /// Bytes of frames' contents.
    contents_bytes: Cell<usize>,
    /// Lines of blocks' maps, by the block's first frame and the line's place in the map.
    maps: RefCell<HashMap<(u32, u32), MapLine<L>>>,
}

/// Words of a block's map that share a cache line.
type MapLine<L> = Rc<[Plain<L>; MAP_LINE]>;
const MAP_LINE: usize = 8;

impl<L: Level> Memory<L> {
    /// Memory for `frames` frames; nothing touched.
    pub(crate) fn new(page_shift: u32, frames: u32, node_frames: &[(Pfn, u32)]) -> Self {
        Memory {
            page_shift,
            node_ends: node_frames.iter().map(|(first, frames)| first.0 + frames).collect(),
            chunks: (0..frames.div_ceil(CHUNK) as usize + 1).map(|_| OnceCell::new()).collect(),
            segments: (0..u32::MAX / SEGMENT).map(|_| OnceCell::new()).collect(),
            halves: Cell::new(NO_HALVES),
            fresh: Cell::new(0),
            spare: RefCell::default(),
            mapped: Cell::new(0),
            mapped_max: Cell::new(0),
            storage: RefCell::default(),
            spare_storage: RefCell::default(),
            contents_bytes: Cell::new(0),
            maps: RefCell::default(),
        }
    }

    #[inline]
    fn record(&self, pfn: Pfn) -> &Record<L> {
        match self.chunks[(pfn.0 / CHUNK) as usize].get() {
            Some(chunk) => &chunk[(pfn.0 % CHUNK) as usize],
            None => self.fresh_record(pfn),
        }
    }

    #[cold]
    #[inline(never)]
    fn fresh_record(&self, pfn: Pfn) -> &Record<L> {
        let chunk = self.chunks[(pfn.0 / CHUNK) as usize].get_or_init(|| {
            let home = self.home_of(pfn);
            boxed(|| Record::new(home))
        });
        &chunk[(pfn.0 % CHUNK) as usize]
    }

    #[inline]
    pub(crate) fn frame(&self, pfn: Pfn) -> &Frame<L> {
        &self.record(pfn).frame
    }

    /// Calls `f` with a word of the map of the block at `pfn`.
    pub(crate) fn with_map<T>(&self, pfn: Pfn, index: u32, f: impl FnOnce(&Plain<L>) -> T) -> T {
        let (line, word) = (index / MAP_LINE as u32, index as usize % MAP_LINE);
        let words = Rc::clone(self.maps.borrow_mut().entry((pfn.0, line)).or_insert_with(|| {
            let made = || Rc::new(std::array::from_fn(|_| Plain::made(0)));
            L::together(Some(self.home_of(pfn)), made)
        }));
        f(&words[word])
    }

    #[inline]
    pub(crate) fn address(&self, pfn: Pfn, offset: u64) -> Addr {
        // Frame 0 is never handed out, so an address is never 0.
        Addr(NonZeroU64::new(((pfn.0 as u64) << self.page_shift) + offset).expect("frame 0 holds no object"))
    }

    #[inline]
    pub(crate) fn locate(&self, object: Addr) -> (Pfn, u32) {
        let address = object.0.get();
        (Pfn((address >> self.page_shift) as u32), (address & ((1 << self.page_shift) - 1)) as u32)
    }

    /// The node that a frame's memory is on.
    pub(crate) fn home_of(&self, pfn: Pfn) -> NodeId {
        NodeId(self.node_ends.partition_point(|end| *end <= pfn.0).min(self.node_ends.len() - 1) as u16)
    }

    /// What the level keeps of the line an address is in, and the node of its memory. Objects smaller than a
    /// line share that of the first; all addresses of a page that is in no slab share one.
    #[inline]
    pub(crate) fn beside(&self, at: Addr, line_bytes: u32) -> (&L::Beside, u16) {
        let (pfn, offset) = self.locate(at);
        let record = self.record(pfn);
        let Some(first) = record.links.get().checked_sub(1) else {
            return (&record.page, record.home.get());
        };
        let offset = offset & !(line_bytes - 1);
        (&self.cell(first + (offset >> record.shift.get())).beside, record.home.get())
    }

    /// The line of the descriptor of the slab that an object is in.
    #[cfg(feature = "cost")]
    #[inline]
    pub(crate) fn descriptor(&self, object: Addr) -> L::Line {
        self.record(self.locate(object).0).slab_line.get()
    }

    /// The line of a frame's own descriptor.
    #[cfg(feature = "cost")]
    pub(crate) fn own_descriptor(&self, pfn: Pfn) -> L::Line {
        self.record(pfn).line
    }

    /// Gives the frames of a slab their links.
    pub(crate) fn map(&self, pfn: Pfn, order: u8, size: u32) {
        let shift = size.max(1).ilog2().clamp(3, self.page_shift);
        let class = self.page_shift - shift;
        self.mapped.set(self.mapped.get() + (1 << order));
        self.mapped_max.set(self.mapped_max.get().max(self.mapped.get()));
        for index in 0..1u32 << order {
            let record = self.record(pfn.plus(index));
            assert_eq!(record.links.get(), 0, "frame {} is mapped twice", pfn.0 + index);
            let first = match self.spare.borrow_mut()[class as usize].pop() {
                Some(first) => first,
                None => self.fresh_links(1 << class),
            };
            record.links.set(first + 1);
            record.slab_line.set(self.record(pfn).line);
            record.shift.set(shift as u8);
        }
    }

    fn fresh_links(&self, count: u32) -> u32 {
        // Runs have power-of-two lengths up to 2^13 and start at multiples of their length: none straddles a
        // segment.
        let first = self.fresh.get().next_multiple_of(count);
        self.fresh.set(first.checked_add(count).expect("links of more than 2^32 objects"));
        // Memory that is read before it is written is mapped twice by the system: halves are read first.
        self.cell(first).link.set(0);
        first
    }

    /// Takes the links away again.
    pub(crate) fn unmap(&self, pfn: Pfn, order: u8) {
        self.halves.set(NO_HALVES);
        self.mapped.set(self.mapped.get() - (1 << order));
        for index in 0..1u32 << order {
            let record = self.record(pfn.plus(index));
            let links = record.links.replace(0);
            assert_ne!(links, 0, "frame {} is not mapped", pfn.0 + index);
            self.drop_contents(&record.contents);
            let class = self.page_shift - record.shift.get() as u32;
            self.spare.borrow_mut()[class as usize].push(links - 1);
        }
    }

    #[inline]
    fn link_cell(&self, object: Addr) -> &LinkCell<L> {
        let (pfn, offset) = self.locate(object);
        let record = self.record(pfn);
        let Some(first) = record.links.get().checked_sub(1) else { in_no_slab(object) };
        self.cell(first + (offset >> record.shift.get()))
    }

    #[inline(always)]
    fn cell(&self, index: u32) -> &LinkCell<L> {
        match self.segments[(index / SEGMENT) as usize].get() {
            Some(segment) => &segment[(index % SEGMENT) as usize],
            None => self.fresh_cell(index),
        }
    }

    #[cold]
    #[inline(never)]
    fn fresh_cell(&self, index: u32) -> &LinkCell<L> {
        let segment = self.segments[(index / SEGMENT) as usize].get_or_init(|| boxed(LinkCell::new));
        &segment[(index % SEGMENT) as usize]
    }

    /// Loads what is kept of an object, so that the host's caches have it when the object is touched.
    #[inline(never)]
    pub(crate) fn warm(&self, object: Addr) {
        let (pfn, offset) = self.locate(object);
        let record = self.record(pfn);
        black_box(record.frame.state.value.get());
        if let Some(first) = record.links.get().checked_sub(1) {
            black_box(self.cell(first + (offset >> record.shift.get())).link.get());
        }
    }

    #[inline]
    pub(crate) fn link(&self, object: Addr) -> Option<Addr> {
        NonZeroU64::new(self.link_cell(object).link.get()).map(Addr)
    }

    #[inline]
    pub(crate) fn set_link(&self, object: Addr, next: Option<Addr>) {
        self.link_cell(object).link.set(next.map_or(0, |next| next.0.get()));
    }

    /// Four halves share the link's cell of the eight bytes they are in.
    #[inline(always)]
    pub(crate) fn half(&self, at: Addr) -> u16 {
        (self.half_cell(at).link.get() >> Self::half_shift(at)) as u16
    }

    #[inline(always)]
    pub(crate) fn set_half(&self, at: Addr, value: u16) {
        let (cell, shift) = (&self.half_cell(at).link, Self::half_shift(at));
        cell.set(cell.get() & !(0xffff << shift) | (value as u64) << shift);
    }

    #[inline(always)]
    fn half_cell(&self, at: Addr) -> &LinkCell<L> {
        let (pfn, offset) = self.locate(at);
        let (known, first) = self.halves.get();
        let first = if known == pfn { first } else { self.halves_of(at) };
        self.cell(first + (offset >> HALVES_SHIFT))
    }

    /// Where the links of an address's frame begin; the next halves will be in the same frame.
    fn halves_of(&self, at: Addr) -> u32 {
        let (pfn, _) = self.locate(at);
        let record = self.record(pfn);
        let Some(first) = record.links.get().checked_sub(1) else { in_no_slab(at) };
        assert_eq!(record.shift.get() as u32, HALVES_SHIFT, "frame {} is not mapped for halves", pfn.0);
        self.halves.set((pfn, first));
        first
    }

    #[inline(always)]
    fn half_shift(at: Addr) -> u64 {
        (at.0.get() & 6) * 8
    }

    /// Makes an object storage. An allocated object needs no link: the cell says where its words are.
    pub(crate) fn attach(&self, object: Addr, words: u32) {
        let mut storage = self.storage.borrow_mut();
        let index = self.spare_storage.borrow_mut().pop().unwrap_or_else(|| {
            storage.push(None);
            storage.len() as u32 - 1
        });
        let words = words.max(HotArray::<Addr>::HEADER);
        storage[index as usize] = Some(Storage {
            words: (0..words).map(|_| Cell::new(0)).collect(),
            lines: L::lines(words, self.record(self.locate(object).0).home.get()),
        });
        self.link_cell(object).link.set(index as u64 + 1);
    }

    pub(crate) fn detach(&self, object: Addr) {
        let index = self.link_cell(object).link.replace(0).checked_sub(1).expect("the object is no storage");
        self.storage.borrow_mut()[index as usize] = None;
        self.spare_storage.borrow_mut().push(index as u32);
    }

    /// Calls `f` with one word of storage.
    #[inline]
    pub(crate) fn stored<T>(
        &self,
        object: Addr,
        index: u32,
        f: impl FnOnce(&L::Lines, &Cell<u64>) -> T,
    ) -> T {
        let at = self.link_cell(object).link.get().checked_sub(1).expect("the object is no storage");
        let storage = self.storage.borrow();
        let storage = storage[at as usize].as_ref().expect("storage was detached");
        f(&storage.lines, &storage.words[index as usize])
    }

    pub(crate) fn page_shift(&self) -> u32 {
        self.page_shift
    }

    #[inline]
    pub(crate) fn contents(&self, pfn: Pfn) -> &Cell<Option<Box<Contents>>> {
        &self.record(pfn).contents
    }

    /// Drops a frame's contents.
    fn drop_contents(&self, cell: &Cell<Option<Box<Contents>>>) {
        if let Some(contents) = cell.take() {
            self.count_contents(-(contents.bytes() as isize));
        }
    }

    /// Counts what contents take more, or less.
    pub(crate) fn count_contents(&self, more: isize) {
        self.contents_bytes.set(self.contents_bytes.get().saturating_add_signed(more));
    }

    /// Frames that hold objects: now, and the most so far.
    pub(crate) fn mapped(&self) -> (u64, u64) {
        (self.mapped.get(), self.mapped_max.get())
    }

    /// Bytes the tables hold now, for the compactness tests.
    pub(crate) fn bytes(&self) -> usize {
        let chunks = self.chunks.iter().filter(|chunk| chunk.get().is_some()).count();
        let segments = self.segments.iter().filter(|segment| segment.get().is_some()).count();
        size_of_val(&*self.chunks)
            + size_of_val(&*self.segments)
            + chunks * CHUNK as usize * size_of::<Record<L>>()
            + segments * SEGMENT as usize * size_of::<LinkCell<L>>()
            + self.contents_bytes.get()
    }
}
