//! Dentries and inodes of ext2's files that no task uses: reclaim frees them, and a lookup brings them back
//! (2.6.29).
//!
//! ```text
//! look-up   in memory: the dentry is referenced
//!           not: name ── inode ── its block of the table ── dentry ── the directory's block
//! shrink    dentries, the oldest first: open or referenced: one more round; else freed, its inode is unused
//!           inodes: clean pages are dropped; one with pages that stay: one more round; else freed
//! ```
//!
//! Those of tmpfs are never unused: their file is nowhere else. Directories stay. From memory.

use super::host::Here;
use super::{Memory, Shrinks};
use crate::fs::files::Entry;
use crate::kernel::objects::Held;
use crate::kernel::{Group, Kernel, Task};
use slablab_vm::mm;
use slablab_vm::{MappingId, Shrinker, Shrunk, Vm};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// A file that may be gone.
type File = (Weak<Entry>, MappingId);

/// What could be freed.
pub(super) struct Unused {
    memory: Weak<Memory>,
    dentries: RefCell<VecDeque<File>>,
    inodes: RefCell<VecDeque<File>>,
    /// Dentries in memory, and inodes without one, of files that are there.
    counts: Cell<(u64, u64)>,
    /// Its tasks free nothing: they may not enter file systems.
    restricted: Option<Group>,
}

impl Unused {
    /// Tells reclaim of the two caches. A task of `restricted` frees none of them.
    pub(super) fn register(memory: &Rc<Memory>, restricted: Option<Group>) -> Rc<Unused> {
        let unused = Rc::new(Unused {
            memory: Rc::downgrade(memory),
            dentries: RefCell::default(),
            inodes: RefCell::default(),
            counts: Cell::default(),
            restricted,
        });
        let shrinkers = &memory.objects.shrinkers;
        shrinkers.register(Rc::new(Dentries(unused.clone())));
        shrinkers.register(Rc::new(Inodes(unused.clone())));
        unused
    }

    fn count(&self, dentries: i64, inodes: i64) {
        let (had_dentries, had_inodes) = self.counts.get();
        let sum = |had: u64, more: i64| had.checked_add_signed(more).expect("what is counted is there");
        self.counts.set((sum(had_dentries, dentries), sum(had_inodes, inodes)));
    }

    /// A new file has its dentry and its inode in memory.
    pub(super) fn comes(&self, entry: &Rc<Entry>, mapping: MappingId) {
        self.dentries.borrow_mut().push_back((Rc::downgrade(entry), mapping));
        self.count(1, 0);
    }

    /// An inode that was freed is in memory again, and its dentry is not yet.
    pub(super) fn inode_comes(&self, entry: &Rc<Entry>, mapping: MappingId, inode: Held) -> Option<Held> {
        self.inodes.borrow_mut().push_back((Rc::downgrade(entry), mapping));
        self.count(0, 1);
        entry.give_inode(inode)
    }

    /// A dentry that was freed is in memory again, for an inode that was unused.
    pub(super) fn dentry_comes(&self, entry: &Rc<Entry>, mapping: MappingId, dentry: Held) -> Option<Held> {
        self.comes(entry, mapping);
        self.count(0, -1);
        entry.give_dentry(dentry)
    }

    /// A file goes.
    pub(super) fn goes(&self, entry: &Entry) {
        match entry.in_memory() {
            (true, _) => self.count(-1, 0),
            (false, has_inode) => self.count(0, -i64::from(has_inode)),
        }
    }

    /// Nobody looks at more than what is there now.
    fn first(list: &RefCell<VecDeque<File>>, left: &mut usize) -> Option<File> {
        *left = left.checked_sub(1)?;
        list.borrow_mut().pop_front()
    }

    fn shrink_dentries(&self, task: &Task, n: u64) -> u64 {
        let (mut freed, mut looked) = (0, 0);
        let mut left = self.dentries.borrow().len();
        while looked < n
            && let Some((file, mapping)) = Self::first(&self.dentries, &mut left)
        {
            let Some(entry) = file.upgrade().filter(|entry| entry.in_memory().0) else { continue };
            looked += 1;
            // The file's own, and ours.
            if Rc::strong_count(&entry) > 2 || entry.was_referenced() {
                self.dentries.borrow_mut().push_back((file, mapping));
                continue;
            }
            let dentry = entry.take_dentry();
            drop(entry);
            self.count(-1, 1);
            self.inodes.borrow_mut().push_back((file, mapping));
            // From here on other tasks may run.
            dentry.into_iter().for_each(|dentry| task.free_after_grace(dentry));
            freed += 1;
        }
        freed
    }

    fn shrink_inodes(&self, task: &Task, n: u64) -> u64 {
        let Some(memory) = self.memory.upgrade() else { return 0 };
        let unused = |file: &Weak<Entry>| file.upgrade().filter(|entry| entry.in_memory() == (false, true));
        let (mut freed, mut looked) = (0, 0);
        let mut left = self.inodes.borrow().len();
        while looked < n
            && let Some((file, mapping)) = Self::first(&self.inodes, &mut left)
        {
            if unused(&file).is_none() {
                continue;
            }
            looked += 1;
            let pages = || {
                let mapping = |state: &mut slablab_vm::State| {
                    let file = state.mappings.exists(mapping).then(|| state.mappings.get(mapping));
                    file.map_or((0, 0), |file| (file.frames, file.dirtied))
                };
                memory.vm.with(mapping)
            };
            if pages().1 == 0 {
                mm::invalidate(&memory.vm, &Here::new(&memory, task), mapping);
            }
            // A lookup may have come meanwhile, or the end.
            let Some(entry) = unused(&file) else { continue };
            if pages().0 > 0 {
                self.inodes.borrow_mut().push_back((file, mapping));
                continue;
            }
            let inode = entry.take_inode();
            drop(entry);
            self.count(0, -1);
            inode.into_iter().for_each(|inode| task.free(inode));
            freed += 1;
        }
        freed
    }

    /// Objects that a pass asks a share of: whole hundreds, times `vfs_cache_pressure`.
    fn asked_of(vm: &Vm, objects: u64) -> u64 {
        let pressure = vm.with(|state| state.settings.vfs_cache_pressure);
        objects / 100 * u64::from(pressure)
    }

    /// What a shrinker did; nothing, if the request may not enter file systems.
    fn shrink(&self, kernel: &Rc<Kernel>, n: u64, f: impl FnOnce(&Task) -> u64) -> Shrunk {
        let may_free = |task: &Task| self.restricted.is_none_or(|group| task.kernel.running_group() != group);
        let Some(task) = kernel.running().filter(may_free) else { return Shrunk::default() };
        Shrunk { scanned: n, freed: f(&task), pages: 0 }
    }
}

struct Dentries(Rc<Unused>);
struct Inodes(Rc<Unused>);

impl Shrinks for Dentries {
    fn about(&self) -> Shrinker {
        Shrinker { name: "dcache", seeks: 2, batch: 128 }
    }

    fn unused(&self, vm: &Vm) -> u64 {
        Unused::asked_of(vm, self.0.counts.get().0)
    }

    fn shrink(&self, _vm: &Vm, kernel: &Rc<Kernel>, n: u64) -> Shrunk {
        self.0.shrink(kernel, n, |task| self.0.shrink_dentries(task, n))
    }
}

impl Shrinks for Inodes {
    fn about(&self) -> Shrinker {
        Shrinker { name: "icache", seeks: 2, batch: 128 }
    }

    fn unused(&self, vm: &Vm) -> u64 {
        Unused::asked_of(vm, self.0.counts.get().1)
    }

    fn shrink(&self, _vm: &Vm, kernel: &Rc<Kernel>, n: u64) -> Shrunk {
        self.0.shrink(kernel, n, |task| self.0.shrink_inodes(task, n))
    }
}
