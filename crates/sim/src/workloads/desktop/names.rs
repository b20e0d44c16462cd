//! Dentries and inodes of a file system: slab objects that reclaim frees as 2.4 does (`prune_dcache`,
//! `prune_icache`), and the blocks of the disk that a lookup reads.
//!
//! A dentry holds its inode. An inode whose dentry is gone is unused, and can be freed. Left out: inodes that
//! pages of their files hold, and dirty inodes; a lookup here changes nothing and reads no file.

use super::NoMemory;
use crate::heap::{CacheNumber, Named};
use crate::kernel::Task;
use crate::memory::{Here, Memory, Shrinks};
use crate::objects::Held;
use slablab_platform::Gfp;
use slablab_slabs::{CacheFlags, CacheSpec};
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::{MappingId, Shrinker, Shrunk};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The slab caches: of dentries, of bytes as in slabinfo(5) of 2.4 on i386; of inodes, the kernel's own.
const CACHES: [&str; 2] = ["dentry_cache", "inode_cache"];
const DENTRY: u32 = 128;
/// Inodes of a block of the inode table: 128 bytes each in 4 KiB.
const INODES: u32 = 32;
/// Files of a directory, which has one block (assumed).
const FILES: u32 = 15;

/// The cache of names, for [`crate::memory::Guest::caches`].
pub fn caches() -> Vec<Named> {
    let spec = CacheSpec { flags: CacheFlags::RECLAIM_ACCOUNT, ..CacheSpec::of_size(DENTRY) };
    vec![Named { name: CACHES[DENTRIES].into(), spec }]
}

/// A file's name and inode, as far as they are in memory.
#[derive(Default)]
struct File {
    dentry: Option<Held>,
    is_referenced: bool,
    inode: Option<Held>,
}

/// All names of a file system.
pub(super) struct Names {
    caches: [CacheNumber; 2],
    device: MappingId,
    files: RefCell<Vec<File>>,
    /// Unused dentries and unused inodes: the newest in front.
    unused: [RefCell<VecDeque<u32>>; 2],
    /// Inodes in memory.
    inodes: Cell<u64>,
}

const DENTRIES: usize = 0;
const UNUSED_INODES: usize = 1;

impl Names {
    /// A file system of so many files, none of them looked up. Reclaim can free what will be.
    pub(super) fn new(memory: &Rc<Memory>, files: u32) -> Rc<Names> {
        let blocks = files.div_ceil(INODES) + files.div_ceil(FILES);
        let device = memory.vm.with(|state| state.mappings.create(Kind::Device, blocks + 1));
        let number = |name: &str| memory.kernel.heap.named(name).expect("the guest has the caches");
        let names = Rc::new(Names {
            caches: CACHES.map(number),
            device,
            files: RefCell::new((0..files).map(|_| File::default()).collect()),
            unused: Default::default(),
            inodes: Cell::new(0),
        });
        for of in [DENTRIES, UNUSED_INODES] {
            memory.register_shrinker(Rc::new(Cache { of, names: names.clone() }));
        }
        names
    }

    /// Inodes and dentries in memory.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.inodes.get(), self.unused[DENTRIES].borrow().len() as u64)
    }

    /// `stat` of every file, directory by directory (slocate).
    pub(super) fn stat_all(&self, memory: &Rc<Memory>, task: &Task) -> Result<(), NoMemory> {
        let files = self.files.borrow().len() as u32;
        let tables = files.div_ceil(INODES);
        for file in 0..files {
            if file % FILES == 0 {
                self.read(memory, task, tables + file / FILES)?;
            }
            task.syscall(|| self.look_up(memory, task, file))?;
        }
        Ok(())
    }

    /// Looks a name up: its dentry and its inode are in memory then.
    fn look_up(&self, memory: &Rc<Memory>, task: &Task, file: u32) -> Result<(), NoMemory> {
        let at = file as usize;
        if self.files.borrow()[at].dentry.is_some() {
            self.files.borrow_mut()[at].is_referenced = true;
            return Ok(());
        }
        let dentry = task.try_alloc_from(self.caches[DENTRIES], Gfp::KERNEL).ok_or(NoMemory)?;
        let is_unused = self.files.borrow()[at].inode.is_some();
        if is_unused {
            self.unused[UNUSED_INODES].borrow_mut().retain(|of| *of != file);
        } else {
            let inode = task.try_alloc_from(self.caches[UNUSED_INODES], Gfp::KERNEL).ok_or(NoMemory)?;
            self.read(memory, task, file / INODES)?;
            self.files.borrow_mut()[at].inode = Some(inode);
            self.inodes.set(self.inodes.get() + 1);
        }
        let of = &mut self.files.borrow_mut()[at];
        (of.dentry, of.is_referenced) = (Some(dentry), false);
        self.unused[DENTRIES].borrow_mut().push_front(file);
        Ok(())
    }

    /// Reads a block of the disk through its page cache, without read-ahead (`bread`).
    fn read(&self, memory: &Rc<Memory>, task: &Task, block: u32) -> Result<(), NoMemory> {
        let mut file = OpenFile::new(self.device);
        let here = Here::new(memory, task);
        mm::read(&memory.vm, &here, &memory.rules, &mut file, block).map(|_| ()).ok_or(NoMemory)
    }

    /// Frees dentries, oldest first; one that was looked up again stays once more.
    fn prune_dentries(&self, memory: &Memory, n: u64) -> (u64, u64) {
        let (mut scanned, mut freed) = (0, 0);
        while freed < n {
            let Some(file) = self.unused[DENTRIES].borrow_mut().pop_back() else { break };
            scanned += 1;
            let of = &mut self.files.borrow_mut()[file as usize];
            if std::mem::take(&mut of.is_referenced) {
                self.unused[DENTRIES].borrow_mut().push_front(file);
                continue;
            }
            let dentry = of.dentry.take().expect("a listed dentry");
            self.unused[UNUSED_INODES].borrow_mut().push_front(file);
            memory.kernel.free(dentry);
            freed += 1;
        }
        (scanned, freed)
    }

    fn prune_inodes(&self, memory: &Memory, n: u64) -> (u64, u64) {
        let mut freed = 0;
        while freed < n {
            let Some(file) = self.unused[UNUSED_INODES].borrow_mut().pop_back() else { break };
            let inode = self.files.borrow_mut()[file as usize].inode.take().expect("a listed inode");
            self.inodes.set(self.inodes.get() - 1);
            memory.kernel.free(inode);
            freed += 1;
        }
        (freed, freed)
    }

    /// Everything is freed: the machine goes down.
    pub(super) fn drop_all(&self, memory: &Memory) {
        self.prune_dentries(memory, u64::MAX);
        self.prune_inodes(memory, u64::MAX);
    }
}

/// One of the two caches, as reclaim sees it.
struct Cache {
    of: usize,
    names: Rc<Names>,
}

impl Shrinks for Cache {
    fn about(&self) -> Shrinker {
        Shrinker { name: CACHES[self.of], seeks: 2, batch: 128 }
    }

    fn unused(&self, _memory: &Memory) -> u64 {
        self.names.unused[self.of].borrow().len() as u64
    }

    fn shrink(&self, memory: &Memory, n: u64) -> Shrunk {
        let (scanned, freed) = match self.of {
            DENTRIES => self.names.prune_dentries(memory, n),
            _ => self.names.prune_inodes(memory, n),
        };
        let pages = memory.kernel.heap.shrink(self.names.caches[self.of]);
        Shrunk { scanned, freed, pages }
    }
}
