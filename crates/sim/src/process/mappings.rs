//! The mappings of a process: their objects, their pages, and the lock that its threads share.
//!
//! | step | under the lock | objects |
//! |---|---|---|
//! | map | yes | a `vm_area_struct`; a store into the tree |
//! | unmap | yes, until the mapping is out of the tree | frees of all below |
//! | fault | for reading until 6.3: two exchanges on the lock's word; from 6.4 only the mapping's own lock | first an `anon_vma` and its link; a page table for each that is not there; a page with zeros |
//!
//! The tree, per store: until 6.0 a red-black tree inside the mappings, no objects. From 6.1 a maple tree: a
//! new leaf is written, and the old one is freed after a grace period. Releases 6.1 to 6.5 first take nodes
//! for the worst case and give back those that they do not need; from 6.6 they take the one node. A program
//! can ask for more ([`AddressSpace::with_nodes`]), for trees whose leaves are full: until 6.17 they are
//! taken one by one, from 6.18 in a prefilled sheaf. A single node never comes from a prefilled sheaf.
//!
//! A `vm_area_struct` is freed at once until 6.3 and from 6.15, between these after a grace period. Both
//! caches ask for sheaves of 32 objects (docs/theory/sheaves.md 2); nodes that are freed after a grace
//! period go through RCU sheaves where the engine has them. The rules are from memory, the cycles are
//! assumed. Readers of the lock do not wait for its writer: a writer holds it only while it changes the
//! tree. Mappings are not merged with their neighbours.

use crate::kernel::era::Era;
use crate::kernel::objects::{Held, Object};
use crate::kernel::{Task, locks_of};
use crate::locks::MmapLock;
use slablab_model::{Access, LockTimes, Ps, Timed};
use slablab_platform::{Field, Frames, Lock, Platform, Topology};
use std::cell::RefCell;

/// Cycles of a map, of an unmap, and of a change of the heap's end, beside system call, allocator and lines.
const MAP: u64 = 1_500;
const UNMAP: u64 = 1_800;
const BRK: u64 = 900;
/// Nodes that 6.1 to 6.4 take before a store: three for each of two levels, and one.
const WORST_CASE: u32 = 7;
/// Bytes of an entry of a page table.
const ENTRY: u64 = 8;

/// Nodes that a store into the tree of mappings allocates, if the program asks for `asked`; 0: the era's.
pub fn nodes_per_store(era: Era, asked: u32) -> u32 {
    match (era.since(6, 1, 0), era.since(6, 6, 0)) {
        (false, _) => 0,
        (true, _) if asked > 0 => asked,
        (true, false) => WORST_CASE,
        (true, true) => 1,
    }
}

/// Page tables of a region of `bytes` bytes, and its pages.
pub fn pages_of(bytes: u64, page_shift: u32) -> (u64, u64) {
    let pages = bytes.div_ceil(1 << page_shift);
    (pages.div_ceil((1 << page_shift) / ENTRY), pages)
}

/// The tree of mappings.
#[derive(Default)]
struct Tree {
    leaf: Option<Held>,
    /// Nodes that a store takes.
    nodes: u32,
}

/// An address space.
pub struct AddressSpace {
    tree: <Timed as Platform>::Lock<MmapLock, Tree>,
    /// The word that counts the lock's readers.
    readers: <Timed as Frames>::Field,
}

/// A mapping of anonymous memory.
pub struct Mapping {
    vma: Held,
    bytes: u64,
    contents: RefCell<Contents>,
}

/// What a mapping got by faults.
#[derive(Default)]
struct Contents {
    anon: Vec<Held>,
    tables: Vec<Held>,
    pages: Vec<Held>,
}

/// What the locks of all address spaces did so far.
pub fn locks() -> (&'static str, LockTimes) {
    locks_of::<MmapLock>()
}

impl AddressSpace {
    /// An address space whose tree has a leaf.
    pub fn new(task: &Task) -> AddressSpace {
        Self::with_nodes(task, 0)
    }

    /// An address space whose tree has a leaf. A store into the tree takes `nodes` nodes; 0: as many as the
    /// release does for a leaf that has room.
    pub fn with_nodes(task: &Task, nodes: u32) -> AddressSpace {
        let nodes = nodes_per_store(task.kernel.era, nodes);
        let leaf = (nodes > 0).then(|| task.alloc(Object::MapleNode));
        AddressSpace { tree: Lock::new(Tree { leaf, nodes }), readers: Field::new(0) }
    }

    /// Frees the tree. No task uses it any more.
    pub fn end(&self, task: &Task) {
        let leaf = self.tree.lock().leaf.take();
        leaf.into_iter().for_each(|leaf| task.free_after_grace(leaf));
    }

    /// Maps `bytes` bytes of anonymous memory. Part of a system call.
    pub fn map(&self, task: &Task, bytes: u64) -> Mapping {
        let mut tree = self.tree.lock();
        task.work(MAP);
        let vma = new_vma(task);
        tree.store(task);
        Mapping { vma, bytes, contents: RefCell::default() }
    }

    /// Unmaps a mapping, and frees what belongs to it. Part of a system call.
    pub fn unmap(&self, task: &Task, mapping: Mapping) {
        let mut tree = self.tree.lock();
        task.work(UNMAP);
        tree.store(task);
        drop(tree);
        free_contents(task, mapping.contents.into_inner());
        free_vma(task, mapping.vma);
    }

    /// Moves the heap's end up: the heap's mapping grows. Part of a system call.
    pub fn grow_heap(&self, task: &Task) {
        let mut tree = self.tree.lock();
        task.work(BRK);
        tree.store(task);
    }

    /// Moves the heap's end down: the part above is split off its mapping, and unmapped. `above` is what
    /// faults brought there. Part of a system call.
    pub fn shrink_heap(&self, task: &Task, above: Option<&Mapping>) {
        let mut tree = self.tree.lock();
        task.work(BRK + UNMAP);
        let split = new_vma(task);
        tree.store(task);
        tree.store(task);
        drop(tree);
        if let Some(above) = above {
            free_contents(task, std::mem::take(&mut *above.contents.borrow_mut()));
        }
        free_vma(task, split);
    }

    /// The program touches each page of a mapping for the first time. Returns the number of faults.
    pub fn touch(&self, task: &Task, mapping: &Mapping) -> u64 {
        let (_, pages) = pages_of(mapping.bytes, Timed::page_shift());
        for page in 0..pages {
            self.fault(task, mapping, page);
            task.preemption_point();
        }
        pages
    }

    fn fault(&self, task: &Task, mapping: &Mapping, page: u64) {
        let (price, exchange, zero) = Timed::hardware(|hardware| {
            let costs = &hardware.costs;
            (costs.page_fault, costs.locked_exchange, costs.zero_kib << Timed::page_shift() >> 10)
        });
        Timed::charge(price);
        Timed::turn();
        let shares_lock = !task.kernel.era.since(6, 4, 0);
        self.reader(shares_lock, exchange);
        let mut contents = mapping.contents.borrow_mut();
        if contents.anon.is_empty() {
            contents.anon.push(task.alloc(Object::AnonVma));
            if Object::AnonVmaChain.row(task.kernel.era).is_some() {
                contents.anon.push(task.alloc(Object::AnonVmaChain));
            }
            contents.anon.iter().for_each(|held| task.touch(held, 32, Access::Write));
        }
        if page / ((1 << Timed::page_shift()) / ENTRY) >= contents.tables.len() as u64 {
            contents.tables.push(task.alloc_pages(0));
            Timed::charge(zero);
        }
        contents.pages.push(task.alloc_pages(0));
        Timed::charge(zero);
        drop(contents);
        self.reader(shares_lock, exchange);
    }

    /// Takes the lock for reading, or gives it back.
    fn reader(&self, shares_lock: bool, exchange: Ps) {
        if shares_lock {
            self.readers.set(0);
        }
        Timed::charge(exchange);
    }
}

impl Tree {
    /// Changes one leaf.
    fn store(&mut self, task: &Task) {
        if self.nodes == 0 {
            return;
        }
        let (prefilled, unused, new) = if self.nodes > 1 && task.kernel.era.since(6, 18, 0) {
            let mut prefilled = task.prefill(Object::MapleNode, self.nodes);
            let new = task.alloc_prefilled(&mut prefilled);
            (Some(prefilled), Vec::new(), new)
        } else {
            let new = task.alloc(Object::MapleNode);
            (None, (1..self.nodes).map(|_| task.alloc(Object::MapleNode)).collect(), new)
        };
        task.touch(&new, 256, Access::Write);
        if let Some(old) = self.leaf.replace(new) {
            task.touch(&old, 256, Access::Read);
            task.free_after_grace(old);
        }
        prefilled.into_iter().for_each(|sheaf| task.return_prefilled(sheaf));
        unused.into_iter().for_each(|node| task.free(node));
    }
}

fn new_vma(task: &Task) -> Held {
    let vma = task.alloc(Object::Vma);
    task.touch(&vma, 152, Access::Write);
    vma
}

fn free_vma(task: &Task, vma: Held) {
    let era = task.kernel.era;
    if era.since(6, 4, 0) && !era.since(6, 15, 0) {
        task.free_after_grace(vma);
    } else {
        task.free(vma);
    }
}

fn free_contents(task: &Task, contents: Contents) {
    let Contents { anon, tables, pages } = contents;
    pages.into_iter().chain(tables).chain(anon).for_each(|held| task.free(held));
}

impl AddressSpace {
    /// The program touches these pages of a mapping for the first time.
    pub(crate) fn touch_first(&self, task: &Task, mapping: &Mapping, pages: std::ops::Range<u64>) {
        for page in pages {
            self.fault(task, mapping, page);
            task.preemption_point();
        }
    }

    /// A child writes to `pages` pages of its copy of a mapping: each is copied.
    pub(crate) fn write_first(&self, task: &Task, mapping: &Mapping, pages: u64) {
        for page in 0..pages {
            self.fault(task, mapping, page);
            task.copy(1 << Timed::page_shift());
            task.preemption_point();
        }
    }

    /// Faults on pages of a file that are in the page cache: no objects, no pages.
    pub(crate) fn file_faults(&self, task: &Task, faults: u32) {
        let (price, exchange) =
            Timed::hardware(|hardware| (hardware.costs.page_fault, hardware.costs.locked_exchange));
        let shares_lock = !task.kernel.era.since(6, 4, 0);
        for _ in 0..faults {
            Timed::charge(price);
            Timed::turn();
            self.reader(shares_lock, exchange);
            self.reader(shares_lock, exchange);
            task.preemption_point();
        }
    }
}

impl Mapping {
    /// Whether the program wrote to it.
    pub(crate) fn is_written(&self) -> bool {
        !self.contents.borrow().tables.is_empty()
    }

    /// A child's copy of a mapping. Its pages are shared until one of the two writes to them.
    pub(crate) fn copy(&self, task: &Task) -> Mapping {
        task.touch(&self.vma, 152, Access::Read);
        let vma = new_vma(task);
        let mut anon = Vec::new();
        let has_chains = Object::AnonVmaChain.row(task.kernel.era).is_some();
        if has_chains && !self.contents.borrow().anon.is_empty() {
            let objects = [Object::AnonVmaChain, Object::AnonVma, Object::AnonVmaChain];
            anon.extend(objects.map(|object| task.alloc(object)));
            anon.iter().for_each(|held| task.touch(held, 32, Access::Write));
        }
        let tables = self.contents.borrow().tables.iter().map(|_| task.alloc_pages(0)).collect();
        Mapping {
            vma,
            bytes: self.bytes,
            contents: RefCell::new(Contents { anon, tables, pages: Vec::new() }),
        }
    }

    /// An exit frees the mapping, at once in every release: no reader can find it any more.
    pub(crate) fn end(self, task: &Task) {
        free_contents(task, self.contents.into_inner());
        task.free(self.vma);
    }
}
