//! Dentries and inodes of a file system on a disk, as slab objects that reclaim can free.
//!
//! ```text
//! look_up   name is cached: its dentry is referenced
//!           is not: dentry ── directory's block ── inode, unless it is cached ── block of the inode table
//! shrink    list of dentries ── referenced: one more round; in use: off the list; else freed
//!             its inode goes on the list of inodes; the last name of a directory takes the directory's
//!           list of inodes ── referenced: one more round; has a name: off the list; else freed
//! ```
//!
//! Freed objects go to the engine after a grace period; pages come back when their slab is empty. Blocks are
//! read through the page cache of the device. Cycles are assumed. Rules of 6.x, from memory.

use super::{Here, Memory, Shrinks};
use crate::heap::Named;
use crate::kernel::era::Era;
use crate::kernel::objects::Held;
use crate::kernel::{Kernel, Task};
use slablab_model::{Access, Timed};
use slablab_platform::{Gfp, Topology};
use slablab_slabs::{CacheFlags, CacheSpec};
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::{Shrinker, Shrunk, Vm};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Cycles of a look at an object on a list, and of the end of one, beside lines and engine (assumed).
const LOOK: u64 = 60;
const END: u64 = 300;
/// Cycles of a step of a walk (assumed, as in [`crate::fs::files`]).
const STEP: u64 = 120;
/// Bytes that a walk and a shrinker touch of an object.
const HEAD: u32 = 64;
/// Bytes of an inode that are filled from its table.
const FILLED: u32 = 512;
/// Inodes of a block of the table (256 bytes each); names of a block of a directory (16 bytes each).
const INODES: u32 = 16;
const NAMES: u32 = 256;
/// Blocks of the table that are read together (`inode_readahead_blks`).
const AHEAD: u32 = 32;

/// A directory's own name: in place of a file's number.
const SELF: u32 = u32::MAX;

/// A directory and a file in it, or [`SELF`].
type Key = (u32, u32);

struct Name {
    dentry: Held,
    referenced: bool,
    /// Names in it, and walks that are in it.
    users: u32,
    /// Its place on the list.
    place: Option<u64>,
}

struct Inode {
    held: Held,
    /// What security modules keep of it.
    blob: Held,
    has_name: bool,
    referenced: bool,
    place: Option<u64>,
}

/// Objects in the order in which reclaim looks at them.
#[derive(Default)]
struct List {
    keys: BTreeMap<u64, Key>,
    next: u64,
}

impl List {
    fn add(&mut self, key: Key) -> Option<u64> {
        self.next += 1;
        self.keys.insert(self.next, key);
        Some(self.next)
    }

    fn remove(&mut self, place: Option<u64>) {
        place.and_then(|place| self.keys.remove(&place));
    }

    /// Takes the first object off. A pass that puts it back at the end can meet it again.
    fn first(&mut self) -> Option<Key> {
        self.keys.pop_first().map(|(_, key)| key)
    }
}

#[derive(Default)]
struct State {
    names: BTreeMap<Key, Name>,
    inodes: BTreeMap<Key, Inode>,
    name_list: List,
    inode_list: List,
}

/// What happened to the objects of a [`Tree`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Dentries and inodes that were allocated.
    pub made: u64,
    /// Objects that shrinkers looked at.
    pub looked: u64,
    /// Objects that were freed.
    pub freed: u64,
}

/// Directories with files on a disk: their names and inodes in memory.
pub struct Tree {
    files: u32,
    /// Blocks of the inode table; the directories' blocks follow.
    table: u32,
    device: slablab_vm::MappingId,
    /// Where the dentries' cache is among those that the program brought; those of inodes follow.
    caches: u16,
    state: RefCell<State>,
    tally: Cell<Tally>,
}

impl Tree {
    /// The caches: of dentries, of ext4's inodes, of what security modules keep of an inode. Sizes: slabinfo
    /// of the kernels whose runs are recorded.
    pub fn caches(era: Era) -> [Named; 3] {
        let (inode, blob) = if era.since(6, 12, 0) { (1_168, 88) } else { (1_192, 32) };
        let named = |name: &str, bytes, flags| Named {
            name: name.into(),
            spec: CacheSpec { flags, ..CacheSpec::of_size(bytes) },
        };
        [
            named("dentry", 192, CacheFlags::RECLAIM_ACCOUNT),
            named("ext4_inode_cache", inode, CacheFlags::RECLAIM_ACCOUNT),
            named("lsm_inode_cache", blob, CacheFlags::NONE),
        ]
    }

    /// `directories` with `files` each, none in memory, which reclaim knows from now on. `caches`: the place
    /// of [`Tree::caches`] among the guest's.
    pub fn new(memory: &Rc<Memory>, caches: u16, directories: u32, files: u32) -> Rc<Tree> {
        let table = (directories * (files + 1)).div_ceil(INODES);
        let blocks = table + directories * files.div_ceil(NAMES);
        let device = memory.vm.with(|state| state.mappings.create(Kind::Device, blocks));
        let (state, tally) = (RefCell::default(), Cell::default());
        let tree = Rc::new(Tree { files, table, device, caches, state, tally });
        memory.objects.shrinkers.register(tree.clone());
        tree
    }

    /// What happened to its objects.
    pub fn tally(&self) -> Tally {
        self.tally.get()
    }

    fn count(&self, f: impl FnOnce(&mut Tally)) {
        let mut tally = self.tally.get();
        f(&mut tally);
        self.tally.set(tally);
    }

    /// Looks a file up, as a part of a system call. `None` without memory.
    pub fn look_up(&self, memory: &Rc<Memory>, task: &Task, directory: u32, file: u32) -> Option<()> {
        self.find(memory, task, (directory, SELF))?;
        // The walk holds the directory while it is in it.
        self.hold((directory, SELF));
        let found = self.find(memory, task, (directory, file));
        self.release((directory, SELF));
        found
    }

    fn hold(&self, key: Key) {
        self.state.borrow_mut().names.get_mut(&key).expect("a name that was found stays").users += 1;
    }

    fn release(&self, key: Key) {
        self.state.borrow_mut().names.get_mut(&key).expect("a name that is held stays").users -= 1;
    }

    fn find(&self, memory: &Rc<Memory>, task: &Task, key: Key) -> Option<()> {
        task.work(STEP);
        if self.is_cached(task, key) {
            return Some(());
        }
        let dentry = self.alloc(task, 0)?;
        let result = self.bring_inode(memory, task, key);
        // Another task may have looked it up meanwhile.
        if result.is_none() || self.is_cached(task, key) {
            self.end(task, dentry);
            return result;
        }
        let state = &mut *self.state.borrow_mut();
        state.inodes.get_mut(&key).expect("brought, and not shrunk since").has_name = true;
        if key.1 != SELF {
            state.names.get_mut(&(key.0, SELF)).expect("the walk holds it").users += 1;
        }
        let place = state.name_list.add(key);
        state.names.insert(key, Name { dentry, referenced: false, users: 0, place });
        Some(())
    }

    /// Whether a name is cached. The end of a walk puts it on the list, or, if it is there, refers to it.
    fn is_cached(&self, task: &Task, key: Key) -> bool {
        let state = &mut *self.state.borrow_mut();
        let Some(name) = state.names.get_mut(&key) else { return false };
        task.touch(&name.dentry, HEAD, Access::Read);
        // A walk through a directory does not end there.
        if key.1 != SELF {
            name.referenced = name.place.is_some();
            name.place = name.place.or_else(|| state.name_list.add(key));
        }
        true
    }

    /// Makes the inode be cached, and not on its way out: its blocks are read if it is not.
    fn bring_inode(&self, memory: &Rc<Memory>, task: &Task, key: Key) -> Option<()> {
        if key.1 != SELF {
            let blocks = self.files.div_ceil(NAMES);
            self.read(memory, task, self.table + key.0 * blocks + key.1 / NAMES, 1)?;
        }
        if self.state.borrow().inodes.contains_key(&key) {
            return Some(());
        }
        let held = self.alloc(task, 1)?;
        let Some(blob) = self.alloc(task, 2) else {
            self.end(task, held);
            return None;
        };
        let number = key.0 * (self.files + 1) + if key.1 == SELF { 0 } else { key.1 + 1 };
        if self.read(memory, task, number / INODES, AHEAD).is_none() {
            self.end_all(task, vec![held, blob]);
            return None;
        }
        task.touch(&held, FILLED, Access::Write);
        let state = &mut *self.state.borrow_mut();
        let inode = Inode { held, blob, has_name: false, referenced: false, place: None };
        if let Some(ours) = state.inodes.insert(key, inode) {
            // Another task was faster: one of the two goes.
            let other = state.inodes.insert(key, ours).expect("inserted above");
            self.end_all(task, vec![other.held, other.blob]);
        }
        Some(())
    }

    /// Reads a block of the device, and those of its aligned group of `group` that are absent.
    fn read(&self, memory: &Rc<Memory>, task: &Task, block: u32, group: u32) -> Option<()> {
        let here = Here::new(memory, task);
        let first = block - block % group;
        let end = if block < self.table { self.table.min(first + group) } else { first + group };
        mm::read_group(&memory.vm, &here, &memory.rules, self.device, first..end, block);
        let mut file = OpenFile::new(self.device);
        mm::read(&memory.vm, &here, &memory.rules, &mut file, block)?;
        Some(())
    }

    fn alloc(&self, task: &Task, cache: u16) -> Option<Held> {
        let held = task.try_alloc_from(task.kernel.own(self.caches + cache), Gfp::KERNEL)?;
        self.count(|tally| tally.made += 1);
        Some(held)
    }

    fn end(&self, task: &Task, held: Held) {
        Timed::cycles(END);
        self.count(|tally| tally.freed += 1);
        task.free_after_grace(held);
    }

    /// Looks at up to `n` dentries. Returns how many objects were freed.
    fn shrink_names(&self, task: &Task, n: u64) -> u64 {
        let mut dead = Vec::new();
        for _ in 0..n {
            let state = &mut *self.state.borrow_mut();
            let Some(key) = state.name_list.first() else { break };
            let name = state.names.get_mut(&key).expect("a list has cached names");
            self.looks(task, &name.dentry);
            name.place = None;
            if name.users > 0 {
                continue;
            }
            if std::mem::take(&mut name.referenced) {
                name.place = state.name_list.add(key);
                continue;
            }
            Self::forget(state, key, &mut dead);
        }
        self.end_all(task, dead)
    }

    /// Takes a name away, and that of its directory with the last one.
    fn forget(state: &mut State, key: Key, dead: &mut Vec<Held>) {
        let name = state.names.remove(&key).expect("a cached name");
        state.name_list.remove(name.place);
        dead.push(name.dentry);
        let inode = state.inodes.get_mut(&key).expect("a name has its inode");
        inode.has_name = false;
        match inode.place {
            Some(_) => inode.referenced = true,
            None => inode.place = state.inode_list.add(key),
        }
        if key.1 == SELF {
            return;
        }
        let directory = (key.0, SELF);
        let parent = state.names.get_mut(&directory).expect("a name holds its directory's");
        parent.users -= 1;
        if parent.users == 0 {
            Self::forget(state, directory, dead);
        }
    }

    /// Frees objects. The state is not borrowed: an engine can wait for a lock.
    fn end_all(&self, task: &Task, dead: Vec<Held>) -> u64 {
        let freed = dead.len() as u64;
        dead.into_iter().for_each(|held| self.end(task, held));
        freed
    }

    /// Looks at up to `n` inodes. Returns how many were freed.
    fn shrink_inodes(&self, task: &Task, n: u64) -> u64 {
        let mut dead = Vec::new();
        for _ in 0..n {
            let state = &mut *self.state.borrow_mut();
            let Some(key) = state.inode_list.first() else { break };
            let inode = state.inodes.get_mut(&key).expect("a list has cached inodes");
            self.looks(task, &inode.held);
            inode.place = None;
            if inode.has_name {
                continue;
            }
            if std::mem::take(&mut inode.referenced) {
                inode.place = state.inode_list.add(key);
                continue;
            }
            let inode = state.inodes.remove(&key).expect("it was there");
            dead.extend([inode.held, inode.blob]);
        }
        self.end_all(task, dead)
    }

    fn looks(&self, task: &Task, held: &Held) {
        Timed::cycles(LOOK);
        task.touch(held, HEAD, Access::Write);
        self.count(|tally| tally.looked += 1);
    }

    /// Dentries and inodes in memory, and of these on the lists.
    pub fn sizes(&self) -> [usize; 4] {
        let state = self.state.borrow();
        let (names, inodes) = (state.name_list.keys.len(), state.inode_list.keys.len());
        [state.names.len(), state.inodes.len(), names, inodes]
    }
}

impl Shrinks for Tree {
    fn about(&self) -> Shrinker {
        Shrinker { name: "sb-ext4", seeks: 2, batch: 1_024 }
    }

    fn unused(&self, vm: &Vm) -> u64 {
        let [_, _, names, inodes] = self.sizes();
        let pressure = vm.with(|state| state.settings.vfs_cache_pressure);
        (names + inodes) as u64 * u64::from(pressure) / 100
    }

    /// Shares `n` between dentries and inodes as they are on the lists (`super_cache_scan`).
    fn shrink(&self, _vm: &Vm, kernel: &Rc<Kernel>, n: u64) -> Shrunk {
        let Some(task) = kernel.running() else { return Shrunk::default() };
        let [_, _, names, inodes] = self.sizes().map(|size| size as u64);
        let before = kernel.heap.slab_bytes();
        let freed = self.shrink_names(&task, n * names / (names + inodes + 1) + 1)
            + self.shrink_inodes(&task, n * inodes / (names + inodes + 1) + 1);
        let pages = before.saturating_sub(kernel.heap.slab_bytes()) >> Timed::page_shift();
        // The kernel counts what it was asked for.
        Shrunk { scanned: n, freed, pages }
    }
}
