//! Dentries and inodes of a file system: slab objects that reclaim frees as 2.4 does (`prune_dcache`,
//! `prune_icache`), and the blocks of the disk that a lookup reads.
//!
//! A dentry holds its inode. An inode whose dentry is gone is unused, and can be freed if no page of its file
//! is in memory. A lookup reads no file, but its directory: that has one page, which holds the directory's
//! inode. Left out: dentries of directories, and dirty inodes; a lookup changes nothing.

use super::NoMemory;
use crate::heap::{CacheNumber, Named};
use crate::kernel::objects::Held;
use crate::kernel::{Kernel, Task};
use crate::memory::{Here, Memory, Shrinks};
use slablab_platform::Gfp;
use slablab_slabs::{CacheFlags, CacheSpec};
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::{MappingId, Shrinker, Shrunk, Vm};
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
    /// The pages of a directory.
    pages: Option<MappingId>,
}

/// All names of a file system.
pub(super) struct Names {
    caches: [CacheNumber; 2],
    device: MappingId,
    /// Files, then directories.
    files: RefCell<Vec<File>>,
    /// Files that are no directories.
    names: u32,
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
        let all = files + files.div_ceil(FILES);
        let device = memory.vm.with(|state| state.mappings.create(Kind::Device, all.div_ceil(INODES)));
        let directory = || memory.vm.with(|state| state.mappings.create(Kind::File, 1));
        let file = |at: u32| File { pages: (at >= files).then(directory), ..File::default() };
        let number = |name: &str| memory.kernel.heap.named(name).expect("the guest has the caches");
        let names = Rc::new(Names {
            caches: CACHES.map(number),
            device,
            files: RefCell::new((0..all).map(file).collect()),
            names: files,
            unused: Default::default(),
            inodes: Cell::new(0),
        });
        for of in [DENTRIES, UNUSED_INODES] {
            memory.objects.shrinkers.register(Rc::new(Cache { of, names: names.clone() }));
        }
        names
    }

    /// Inodes and dentries in memory.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.inodes.get(), self.unused[DENTRIES].borrow().len() as u64)
    }

    /// `stat` of every file, directory by directory (slocate).
    pub(super) fn stat_all(&self, memory: &Rc<Memory>, task: &Task) -> Result<(), NoMemory> {
        for file in 0..self.names {
            if file % FILES == 0 {
                task.syscall(|| self.open(memory, task, self.names + file / FILES))?;
            }
            task.syscall(|| self.look_up(memory, task, file))?;
        }
        Ok(())
    }

    /// Reads a directory: its inode is in memory then, and its page.
    fn open(&self, memory: &Rc<Memory>, task: &Task, directory: u32) -> Result<(), NoMemory> {
        let at = directory as usize;
        if self.files.borrow()[at].inode.is_none() {
            self.read_inode(memory, task, directory)?;
            // Nobody has it open afterwards.
            self.unused[UNUSED_INODES].borrow_mut().push_front(directory);
        }
        let pages = self.files.borrow()[at].pages.expect("a directory");
        self.read(memory, task, pages, 0)
    }

    /// Allocates an inode and reads its block of the inode table.
    fn read_inode(&self, memory: &Rc<Memory>, task: &Task, file: u32) -> Result<(), NoMemory> {
        let inode = task.try_alloc_from(self.caches[UNUSED_INODES], Gfp::KERNEL).ok_or(NoMemory)?;
        self.read(memory, task, self.device, file / INODES)?;
        self.files.borrow_mut()[file as usize].inode = Some(inode);
        self.inodes.set(self.inodes.get() + 1);
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
            self.read_inode(memory, task, file)?;
        }
        let of = &mut self.files.borrow_mut()[at];
        (of.dentry, of.is_referenced) = (Some(dentry), false);
        self.unused[DENTRIES].borrow_mut().push_front(file);
        Ok(())
    }

    /// Reads a block of the disk through its page cache, without read-ahead (`bread`).
    fn read(&self, memory: &Rc<Memory>, task: &Task, of: MappingId, page: u32) -> Result<(), NoMemory> {
        let mut file = OpenFile::new(of);
        let here = Here::new(memory, task);
        mm::read(&memory.vm, &here, &memory.rules, &mut file, page).map(|_| ()).ok_or(NoMemory)
    }

    /// Frees dentries, oldest first; one that was looked up again stays once more.
    fn prune_dentries(&self, kernel: &Kernel, n: u64) -> (u64, u64) {
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
            kernel.free(dentry);
            freed += 1;
        }
        (scanned, freed)
    }

    /// Frees inodes, oldest first; one whose file has a page in memory stays where it is.
    fn prune_inodes(&self, vm: &Vm, kernel: &Kernel, n: u64) -> (u64, u64) {
        let (mut scanned, mut freed) = (0, 0);
        let mut at = self.unused[UNUSED_INODES].borrow().len();
        while freed < n && at > 0 {
            at -= 1;
            scanned += 1;
            let file = self.unused[UNUSED_INODES].borrow()[at];
            let pages = self.files.borrow()[file as usize].pages;
            if pages.is_some_and(|pages| vm.with(|state| state.mappings.get(pages).frames) > 0) {
                continue;
            }
            self.unused[UNUSED_INODES].borrow_mut().remove(at);
            let inode = self.files.borrow_mut()[file as usize].inode.take().expect("a listed inode");
            self.inodes.set(self.inodes.get() - 1);
            kernel.free(inode);
            freed += 1;
            // Another task may have taken inodes from the list meanwhile.
            at = at.min(self.unused[UNUSED_INODES].borrow().len());
        }
        (scanned, freed)
    }

    /// Everything is freed: the machine goes down.
    pub(super) fn drop_all(&self, memory: &Rc<Memory>, task: &Task) {
        let here = Here::new(memory, task);
        let pages: Vec<MappingId> = self.files.borrow().iter().filter_map(|file| file.pages).collect();
        pages.into_iter().for_each(|pages| mm::unlink(&memory.vm, &here, pages));
        self.files.borrow_mut().iter_mut().for_each(|file| file.pages = None);
        self.prune_dentries(&memory.kernel, u64::MAX);
        self.prune_inodes(&memory.vm, &memory.kernel, u64::MAX);
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

    fn unused(&self, _vm: &Vm) -> u64 {
        self.names.unused[self.of].borrow().len() as u64
    }

    fn shrink(&self, vm: &Vm, kernel: &Rc<Kernel>, n: u64) -> Shrunk {
        let (scanned, freed) = match self.of {
            DENTRIES => self.names.prune_dentries(kernel, n),
            _ => self.names.prune_inodes(vm, kernel, n),
        };
        let pages = kernel.heap.shrink(self.names.caches[self.of]);
        Shrunk { scanned, freed, pages }
    }
}
