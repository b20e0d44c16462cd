//! Files whose pages are in the memory: those of tmpfs, and those of ext2 on a loop device.
//!
//! | step | tmpfs | ext2 |
//! |---|---|---|
//! | make a file | name, dentry, inode | an inode and an entry: blocks of metadata are dirty |
//! | write a page behind the end | a page | a block, a page; bitmap, descriptor, inode are dirty |
//! | read | a page; from swap: its slot is free | a page, with read-ahead; from the loop device |
//! | remove | pages and slots are free | pages are free, bits are cleared; the backing file stays as it is |
//!
//! Names, dentries and inodes are slab objects ([`crate::fs::files`]). A name is held until the system call
//! ends, also over the I/O of metadata. Reclaim frees dentries and inodes of ext2's files (`unused`).
//!
//! A block of metadata that is written for the first time since it was free is not read before.

use super::Memory;
use super::host::Here;
use super::loopback::{Loop, LoopRules};
use super::unused::Unused;
use crate::fs::ext2::{Ext2, Format, Full, Ino};
use crate::fs::files::Entry;
use crate::kernel::Task;
use crate::kernel::objects::Object;
use crate::kernel::tally::Failed;
use slablab_model::Access;
use slablab_vm::MappingId;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Punched};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Bytes of a name that a system call writes.
const NAME: u32 = 64;

/// A mounted file system.
pub struct Volume {
    memory: Rc<Memory>,
    root: Folder,
    ext2: Option<OnLoop>,
    /// Contents of the page that was written last.
    written: Cell<u32>,
}

/// ext2 on a loop device.
struct OnLoop {
    ext2: Rc<RefCell<Ext2>>,
    device: Rc<Loop>,
    /// Blocks that hold metadata.
    metadata: RefCell<BTreeSet<u32>>,
    /// Dentries and inodes that reclaim may free.
    unused: Option<Rc<Unused>>,
    /// Freed blocks are taken out of the backing file.
    discards: bool,
}

/// What becomes of what is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeps {
    /// Freed blocks are taken out of the backing file.
    pub discards: bool,
    /// Reclaim frees dentries and inodes of files.
    pub shrinks: bool,
    /// Each block that a file gets is the lowest free one, wherever ext2 wants it.
    pub packs: bool,
}

/// A directory.
pub struct Folder {
    /// Its name.
    pub entry: Rc<Entry>,
    ino: Option<Ino>,
}

/// A file.
pub struct Node {
    /// Its name.
    pub entry: Rc<Entry>,
    /// Its pages.
    pub mapping: MappingId,
    ino: Option<Ino>,
}

impl Volume {
    /// A tmpfs.
    pub fn tmpfs(memory: &Rc<Memory>, task: &Task) -> Volume {
        let root = Folder { entry: Entry::root(task), ino: None };
        Volume { memory: memory.clone(), root, ext2: None, written: Cell::new(0) }
    }

    /// An ext2 on a loop device on a file of tmpfs.
    pub fn ext2(
        memory: &Rc<Memory>,
        task: &Task,
        format: Format,
        rules: LoopRules,
        Keeps { discards, shrinks, packs }: Keeps,
    ) -> Volume {
        let ext2 = Rc::new(RefCell::new(Ext2::new(format).packed(packs)));
        let of_device = ext2.clone();
        let has_data = move |block| of_device.borrow().is_used(block);
        let device = Loop::start(memory, format.blocks, rules, has_data);
        let unused = shrinks.then(|| Unused::register(memory, rules.is_restricted.then_some(device.group)));
        let on_loop = OnLoop { ext2, device, metadata: RefCell::default(), unused, discards };
        let root = Folder { entry: Entry::root(task), ino: Some(Ext2::ROOT) };
        Volume { memory: memory.clone(), root, ext2: Some(on_loop), written: Cell::new(0) }
    }

    /// The root.
    pub fn root(&self) -> &Folder {
        &self.root
    }

    /// The loop device below.
    pub fn device(&self) -> Option<&Rc<Loop>> {
        self.ext2.as_ref().map(|of| &of.device)
    }

    /// Frees the root, the last entry. No file is left.
    pub fn forget(self, task: &Task) {
        self.root.entry.forget(task);
    }

    /// Makes a directory. Part of a system call, as all below.
    pub fn make_dir(&self, task: &Task, parent: &Folder) -> Folder {
        let random = task.kernel.random(1 << 32) as u32;
        let (entry, ino) = self.named(task, parent, |ext2, dir, changed| ext2.make_dir(dir, random, changed));
        Folder { entry, ino }
    }

    /// Makes a file.
    pub fn create(&self, task: &Task, parent: &Folder) -> Node {
        let (entry, ino) = self.named(task, parent, Ext2::create);
        let kind = if ino.is_some() { Kind::File } else { Kind::Tmpfs };
        let mapping = self.memory.vm.with(|state| state.mappings.create(kind, 0));
        if let Some(unused) = self.unused() {
            unused.comes(&entry, mapping);
        }
        Node { entry, mapping, ino }
    }

    fn unused(&self) -> Option<&Rc<Unused>> {
        self.ext2.as_ref().and_then(|of| of.unused.as_ref())
    }

    /// A lookup needs a file's dentry and inode. What reclaim has freed is allocated again, and filled from
    /// the directory's block and the table's; the name is held meanwhile. Part of a system call.
    pub fn bring(&self, task: &Task, node: &Node) {
        node.entry.refer();
        let Some((of, ino)) = self.ext2.as_ref().zip(node.ino) else { return };
        if node.entry.in_memory().0 {
            return;
        }
        let name = task.alloc(Object::Name);
        task.touch(&name, NAME, Access::Write);
        let (of_dir, of_table) = of.ext2.borrow().lookup_blocks(ino);
        // Reclaim may free one while the block of the other is read.
        while !node.entry.in_memory().0 {
            let needs_inode = !node.entry.in_memory().1;
            let object = task.alloc(if needs_inode { Object::FileInode } else { Object::Dentry });
            self.read_block(task, of, if needs_inode { of_table } else { of_dir });
            task.touch(&object, NAME, Access::Write);
            let unused = self.unused().expect("only reclaim frees dentries");
            let left = match node.entry.in_memory() {
                (false, false) if needs_inode => unused.inode_comes(&node.entry, node.mapping, object),
                (false, true) if !needs_inode => unused.dentry_comes(&node.entry, node.mapping, object),
                _ => Some(object),
            };
            left.into_iter().for_each(|object| task.free(object));
        }
        task.free(name);
    }

    /// Reads a block of metadata.
    fn read_block(&self, task: &Task, of: &OnLoop, block: u32) {
        let here = Here::new(&self.memory, task);
        let mut open = OpenFile::new(of.device.device);
        self.need(task, mm::read(&self.memory.vm, &here, &self.memory.rules, &mut open, block));
    }

    /// Makes an entry in a directory. The name is held until all of its metadata is there.
    fn named(
        &self,
        task: &Task,
        parent: &Folder,
        make: impl FnOnce(&mut Ext2, Ino, &mut Vec<u32>) -> Result<Ino, Full>,
    ) -> (Rc<Entry>, Option<Ino>) {
        let name = task.alloc(Object::Name);
        task.touch(&name, NAME, Access::Write);
        let ino = self.ext2.as_ref().zip(parent.ino).map(|(of, dir)| {
            let mut changed = Vec::new();
            let made = make(&mut of.ext2.borrow_mut(), dir, &mut changed);
            let ino = made.unwrap_or_else(|Full| self.full(task));
            self.change(task, of, &changed);
            ino
        });
        let entry = parent.entry.create(task);
        task.free(name);
        (entry, ino)
    }

    /// Writes pages behind the end of a file.
    pub fn write(&self, task: &Task, node: &Node, pages: u32) {
        let memory = &self.memory;
        let here = Here::new(memory, task);
        let mut open = OpenFile::new(node.mapping);
        let mut changed = Vec::new();
        for _ in 0..pages {
            let page = memory.vm.with(|state| state.mappings.get(node.mapping).pages());
            if let (Some(of), Some(ino)) = (&self.ext2, node.ino) {
                let block = of.ext2.borrow_mut().append(ino, task.id.0, &mut changed);
                let block = block.unwrap_or_else(|Full| self.full(task));
                of.device.add_block(node.mapping, block);
            }
            self.written.set(self.written.get() % (u32::MAX - 1) + 1);
            let content = self.written.get();
            self.need(task, mm::write(&memory.vm, &here, &memory.rules, &mut open, page, content, true));
            task.copy(1 << 12);
        }
        if let Some(of) = &self.ext2 {
            self.change(task, of, &changed);
        }
    }

    /// The last writer closes a file.
    pub fn close(&self, node: &Node) {
        if let (Some(of), Some(ino)) = (&self.ext2, node.ino) {
            of.ext2.borrow_mut().close(ino);
        }
    }

    /// Reads a file from its begin to its end.
    pub fn read(&self, task: &Task, node: &Node) {
        let pages = self.memory.vm.with(|state| state.mappings.get(node.mapping).pages());
        self.read_part(task, &mut OpenFile::new(node.mapping), 0..pages);
    }

    /// Reads pages of an open file.
    pub fn read_part(&self, task: &Task, open: &mut OpenFile, pages: std::ops::Range<u32>) {
        let here = Here::new(&self.memory, task);
        for page in pages {
            self.need(task, mm::read(&self.memory.vm, &here, &self.memory.rules, open, page));
            task.copy(1 << 12);
        }
    }

    /// Removes a file.
    ///
    /// # Panics
    /// An open file refers to it.
    pub fn remove(&self, task: &Task, node: Node) {
        let memory = &self.memory;
        // As if it were open: reclaim frees neither its dentry nor its inode while the file goes.
        let held = node.entry.clone();
        self.bring(task, &node);
        if let Some(unused) = self.unused() {
            unused.goes(&node.entry);
        }
        mm::unlink(&memory.vm, &Here::new(memory, task), node.mapping);
        if let (Some(of), Some(ino)) = (&self.ext2, node.ino) {
            of.device.forget(node.mapping);
            let indirect = of.ext2.borrow().inode(ino).indirect.clone();
            self.free(task, of, ino, &indirect);
        }
        node.entry.look_up(task);
        drop(held);
        node.entry.forget(task);
    }

    /// Removes an empty directory.
    ///
    /// # Panics
    /// An entry is left in it.
    pub fn remove_dir(&self, task: &Task, folder: Folder) {
        if let (Some(of), Some(ino)) = (&self.ext2, folder.ino) {
            let blocks = of.ext2.borrow().inode(ino).blocks.clone();
            self.free(task, of, ino, &blocks);
        }
        folder.entry.look_up(task);
        folder.entry.forget(task);
    }

    /// Frees an inode with its blocks, `metadata` among them. Pages of the device that have these go first:
    /// a file may get the blocks.
    fn free(&self, task: &Task, of: &OnLoop, ino: Ino, metadata: &[u32]) {
        let here = Here::new(&self.memory, task);
        for block in metadata.iter().copied() {
            let pages = block..block + 1;
            mm::punch(&self.memory.vm, &here, Punched::Mapping(of.device.device), pages);
            of.metadata.borrow_mut().remove(&block);
        }
        if of.discards {
            let blocks = of.ext2.borrow().inode(ino).blocks.clone();
            for block in blocks {
                let pages = block..block + 1;
                mm::punch(&self.memory.vm, &here, Punched::Mapping(of.device.backing), pages);
            }
        }
        let mut changed = Vec::new();
        of.ext2.borrow_mut().remove(ino, &mut changed);
        self.change(task, of, &changed);
    }

    /// Writes blocks of metadata.
    fn change(&self, task: &Task, of: &OnLoop, blocks: &[u32]) {
        let memory = &self.memory;
        let here = Here::new(memory, task);
        let mut open = OpenFile::new(of.device.device);
        for block in blocks.iter().copied() {
            let is_first = of.metadata.borrow_mut().insert(block);
            self.written.set(self.written.get() % (u32::MAX - 1) + 1);
            let content = self.written.get();
            let done = mm::write(&memory.vm, &here, &memory.rules, &mut open, block, content, is_first);
            self.need(task, done);
        }
    }

    /// The result of a step that takes memory. Without any the run fails.
    fn need<T>(&self, task: &Task, result: Option<T>) -> T {
        result.unwrap_or_else(|| self.fail(task, Failed::out_of_memory(&*self.memory.kernel.heap, 0)))
    }

    fn full(&self, task: &Task) -> ! {
        self.fail(
            task,
            Failed::Machine("the file system on the loop device is full: expected a larger image".into()),
        )
    }

    fn fail(&self, task: &Task, failed: Failed) -> ! {
        self.memory.kernel.fail(failed);
        task.preemption_point();
        unreachable!("a task of a run that has failed does not go on")
    }
}
