//! The machine of the checking worlds: a few frames on a few nodes, memory as single words, virtual time.
//!
//! Only mapped slabs have memory. Each word of it is one field, created by the first write. The machine
//! reports a link that is read before it was written, or read outside a slab. Under loom it also reports an
//! access that no synchronisation orders.

use crate::kit::Kit;
use crate::queue::Queue;
use slablab_platform::bytes::{Piece, pieces};
use slablab_platform::{CpuId, Descriptor, Event, Field, NodeId, Pfn, Word, Work};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::rc::Rc;

/// An object's address: frame number times page size plus offset. Frame 0 belongs to no node, so no object
/// has the address 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub NonZeroU64);

impl Address {
    fn plus(self, offset: u32) -> Address {
        Address(self.0.saturating_add(offset as u64))
    }
}

/// The description of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// log2 of the page size in bytes.
    pub page_shift: u32,
    /// The node of each CPU.
    pub cpu_node: &'static [u16],
    /// Frames of each node, at most [`Shape::NODE_FRAMES_MAX`]; 0 for a node without memory.
    pub node_frames: &'static [u32],
    /// The distances between the nodes.
    pub distances: Distances,
    /// Page allocations of this order or above fail.
    pub fail_order: u8,
}

/// The distances between the nodes of a [`Shape`], in ACPI SLIT units: 10 from a node to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distances {
    /// The nodes are on a line: 20 to the next node, 30 to the node after it.
    Line,
    /// Every node is 20 from every other node: a machine of four sockets.
    Flat,
}

impl Shape {
    /// One node of 8 frames, 2 CPUs.
    pub const ONE_NODE: Shape = Shape {
        page_shift: 12,
        cpu_node: &[0, 0],
        node_frames: &[8],
        distances: Distances::Line,
        fail_order: u8::MAX,
    };
    /// 2 CPUs on separate nodes, each with 8 frames.
    pub const TWO_NODES: Shape = Shape { cpu_node: &[0, 1], node_frames: &[8, 8], ..Shape::ONE_NODE };
    /// 4 CPUs: two share a node, one has a node, one is on a node without memory.
    pub const MEMORYLESS: Shape =
        Shape { cpu_node: &[0, 0, 1, 2], node_frames: &[8, 8, 0], ..Shape::ONE_NODE };
    /// 2 CPUs on separate nodes, and 2 nodes without CPUs. All four nodes have 8 frames and are equally far
    /// from each other.
    pub const FLAT: Shape = Shape {
        cpu_node: &[0, 1],
        node_frames: &[8, 8, 8, 8],
        distances: Distances::Flat,
        ..Shape::ONE_NODE
    };

    /// Frames between the starts of two nodes: the largest block.
    pub const NODE_FRAMES_MAX: u32 = 1 << 10;

    pub(crate) fn first_frame(node: NodeId) -> Pfn {
        Pfn((node.0 as u32 + 1) * Self::NODE_FRAMES_MAX)
    }

    pub(crate) fn distance(&self, from: NodeId, to: NodeId) -> u32 {
        let steps = from.0.abs_diff(to.0) as u32;
        match self.distances {
            Distances::Line => 10 + 10 * steps,
            Distances::Flat => 10 + 10 * steps.min(1),
        }
    }

    pub(crate) fn memory_node(&self, cpu: CpuId) -> NodeId {
        let home = NodeId(self.cpu_node[cpu.0 as usize]);
        let with_memory = (0..self.node_frames.len()).filter(|node| self.node_frames[*node] > 0);
        let nodes = with_memory.map(|node| NodeId(node as u16));
        nodes.min_by_key(|node| (self.distance(home, *node), *node)).expect("some node has memory")
    }
}

/// Words of blocks' maps, by the block's first frame and the word's place.
type Maps<W> = BTreeMap<(u32, u32), Rc<W>>;

/// The state of one execution.
pub struct Machine<K: Kit> {
    pub(crate) shape: Shape,
    pub(crate) online: Vec<Cell<bool>>,
    /// For each CPU, the bytes that engines counted for its slots.
    pub(crate) reserved: Vec<Cell<u64>>,
    /// Whether all CPUs except the running one are stopped.
    pub(crate) still: Cell<bool>,
    pub(crate) now_ns: Cell<u64>,
    pub(crate) random: Cell<u64>,
    counts: [Cell<u64>; Event::COUNT],
    frames: Vec<Vec<Descriptor<K::Word, K::Field>>>,
    /// Mapped blocks: order by first frame.
    slabs: RefCell<BTreeMap<u32, u8>>,
    words: RefCell<BTreeMap<u64, Rc<K::Field>>>,
    /// Words of blocks' maps that were used.
    maps: RefCell<Maps<K::Word>>,
    /// Words of each object that is storage.
    storage: RefCell<BTreeMap<Address, u32>>,
    /// For each object that was ever marked: whether it is allocated.
    live: RefCell<BTreeMap<Address, Rc<K::Word>>>,
    queue: Queue,
    grace: RefCell<Vec<(CpuId, Work)>>,
}

// All threads of loom and of shuttle run on one system thread, so they share its thread-local state.
thread_local!(static ENTERED: RefCell<Option<Rc<dyn Any>>> = const { RefCell::new(None) });

impl<K: Kit> Machine<K> {
    /// Makes this the machine that code runs on.
    pub(crate) fn enter(self) {
        // The machine is replaced, not restored: after a panic, no state of an ended execution may be in use.
        ENTERED.set(Some(Rc::new(self)));
    }

    /// Ends the use of the machine that was entered.
    pub(crate) fn leave() {
        ENTERED.set(None);
    }

    /// The machine that code runs on.
    pub(crate) fn entered() -> Rc<Machine<K>> {
        let entered = ENTERED.with_borrow(Clone::clone).expect("no machine was entered");
        entered.downcast().expect("a machine of this kit was entered")
    }

    /// The number of CPUs.
    pub(crate) fn cpus(&self) -> u16 {
        self.shape.cpu_node.len() as u16
    }

    /// The number of nodes.
    pub(crate) fn nodes(&self) -> u16 {
        self.shape.node_frames.len() as u16
    }

    pub(crate) fn new(shape: Shape) -> Machine<K> {
        assert!(shape.node_frames.iter().all(|frames| *frames <= Shape::NODE_FRAMES_MAX), "{shape:?}");
        let frames = |count: &u32| (0..*count).map(|_| Descriptor::new()).collect();
        Machine {
            shape,
            online: shape.cpu_node.iter().map(|_| Cell::new(true)).collect(),
            reserved: shape.cpu_node.iter().map(|_| Cell::new(0)).collect(),
            still: Cell::new(false),
            now_ns: Cell::new(0),
            random: Cell::new(1),
            counts: [const { Cell::new(0) }; Event::COUNT],
            frames: shape.node_frames.iter().map(frames).collect(),
            slabs: RefCell::default(),
            words: RefCell::default(),
            maps: RefCell::default(),
            storage: RefCell::default(),
            live: RefCell::default(),
            queue: Queue::new(),
            grace: RefCell::default(),
        }
    }

    // Frames and memory.

    pub(crate) fn frame(&self, pfn: Pfn) -> &Descriptor<K::Word, K::Field> {
        let node = (pfn.0 / Shape::NODE_FRAMES_MAX).checked_sub(1).expect("frames start at the first node's");
        let index = pfn.0 % Shape::NODE_FRAMES_MAX;
        let frame = self.frames.get(node as usize).and_then(|frames| frames.get(index as usize));
        frame.unwrap_or_else(|| panic!("{pfn:?} does not exist"))
    }

    /// A word of the map of the block at `pfn`. What an earlier owner left in it stays.
    pub(crate) fn map_word(&self, pfn: Pfn, index: u32) -> Rc<K::Word> {
        Rc::clone(self.maps.borrow_mut().entry((pfn.0, index)).or_insert_with(|| Rc::new(K::Word::new(0))))
    }

    pub(crate) fn address(&self, pfn: Pfn, offset: u64) -> Address {
        let address = ((pfn.0 as u64) << self.shape.page_shift) + offset;
        Address(NonZeroU64::new(address).expect("frame 0 holds no object"))
    }

    pub(crate) fn locate(&self, object: Address) -> (Pfn, u32) {
        let address = object.0.get();
        let offset = address & ((1 << self.shape.page_shift) - 1);
        (Pfn((address >> self.shape.page_shift) as u32), offset as u32)
    }

    pub(crate) fn map(&self, pfn: Pfn, order: u8) {
        let before = self.slab_of(pfn.plus((1 << order) - 1));
        assert!(before.is_none_or(|(head, order)| head + (1 << order) <= pfn.0), "{pfn:?} is mapped already");
        self.slabs.borrow_mut().insert(pfn.0, order);
    }

    pub(crate) fn unmap(&self, pfn: Pfn, order: u8) {
        let mapped = self.slabs.borrow_mut().remove(&pfn.0);
        assert_eq!(mapped, Some(order), "{pfn:?} is unmapped with order {order}");
        let end = self.address(pfn.plus(1 << order), 0).0.get();
        let kept = |at: u64| at < self.address(pfn, 0).0.get() || at >= end;
        self.words.borrow_mut().retain(|at, _| kept(*at));
        self.storage.borrow_mut().retain(|object, _| kept(object.0.get()));
    }

    /// The mapped block that starts at or before a frame.
    fn slab_of(&self, pfn: Pfn) -> Option<(u32, u8)> {
        self.slabs.borrow().range(..=pfn.0).next_back().map(|(head, order)| (*head, *order))
    }

    fn checked(&self, at: Address) -> u64 {
        let (pfn, _) = self.locate(at);
        let inside = self.slab_of(pfn).is_some_and(|(head, order)| pfn.0 < head + (1 << order));
        assert!(inside, "{at:x?} is in no slab");
        at.0.get()
    }

    /// The value of a word of memory, if it was ever written.
    pub(crate) fn written(&self, at: Address) -> Option<u64> {
        // The borrow ends before the read. A read is a step of the tool, which may run another thread there.
        let word = self.words.borrow().get(&self.checked(at)).cloned();
        word.map(|word| word.get())
    }

    pub(crate) fn get(&self, at: Address) -> u64 {
        self.written(at).unwrap_or_else(|| panic!("{at:x?} is read before it was written"))
    }

    pub(crate) fn put(&self, at: Address, value: u64) {
        let at = self.checked(at);
        let word = self.words.borrow().get(&at).cloned();
        match word {
            Some(word) => word.set(value),
            None => {
                self.words.borrow_mut().insert(at, Rc::new(K::Field::new(value)));
            }
        }
    }

    pub(crate) fn read(&self, object: Address, offset: u32) -> Option<Address> {
        NonZeroU64::new(self.get(object.plus(offset))).map(Address)
    }

    pub(crate) fn write(&self, object: Address, offset: u32, value: Option<Address>) {
        self.put(object.plus(offset), value.map_or(0, |value| value.0.get()));
    }

    /// The words of a range of bytes.
    pub(crate) fn words(at: Address, bytes: u32) -> impl Iterator<Item = (Address, Piece)> {
        let first = at.0.get() & !7;
        let word = move |index: usize| {
            Address(NonZeroU64::new(first + index as u64 * 8).expect("an object's address is not 0"))
        };
        pieces(at.0.get() as u32 & 7, bytes).enumerate().map(move |(index, piece)| (word(index), piece))
    }

    pub(crate) fn mark(&self, object: Address, live: bool) -> bool {
        self.checked(object);
        let word = self.live.borrow_mut().entry(object).or_insert_with(|| Rc::new(K::Word::new(0))).clone();
        word.compare_exchange(!live as u64, live as u64).is_err() == live
    }

    pub(crate) fn attach(&self, object: Address, words: u32) {
        let before = self.storage.borrow_mut().insert(object, words);
        assert_eq!(before, None, "{object:x?} is storage already");
        (0..words).for_each(|index| self.write(object, index * 8, None));
    }

    /// Reads word `index` of storage.
    pub(crate) fn load(&self, object: Address, index: u32) -> Option<Address> {
        self.read(object, self.stored(object, index))
    }

    /// Writes word `index` of storage.
    pub(crate) fn store(&self, object: Address, index: u32, value: Option<Address>) {
        self.write(object, self.stored(object, index), value);
    }

    fn stored(&self, object: Address, index: u32) -> u32 {
        let words = self.storage.borrow().get(&object).copied();
        let words = words.unwrap_or_else(|| panic!("{object:x?} is not storage"));
        assert!(index < words, "word {index} of {words} in {object:x?}");
        index * 8
    }

    pub(crate) fn detach(&self, object: Address) {
        let words = self.storage.borrow_mut().remove(&object);
        assert!(words.is_some(), "{object:x?} is not storage");
    }

    // Time and counts.

    pub(crate) fn defer(&self, cpu: CpuId, delay_ns: u64, work: Work) {
        self.queue.defer(self.now_ns.get() + delay_ns, cpu, work);
    }

    pub(crate) fn after_grace(&self, cpu: CpuId, work: Work) {
        self.grace.borrow_mut().push((cpu, work));
    }

    pub(crate) fn end_grace(&self) {
        let ended = self.grace.take();
        ended.into_iter().for_each(|(cpu, work)| self.defer(cpu, 0, work));
    }

    pub(crate) fn due(&self) -> Option<(CpuId, Work)> {
        self.queue.due(self.now_ns.get())
    }

    pub(crate) fn count(&self, event: Event, n: u64) {
        let count = &self.counts[event as usize];
        count.set(count.get() + n);
    }

    pub(crate) fn counted(&self, event: Event) -> u64 {
        self.counts[event as usize].get()
    }
}
