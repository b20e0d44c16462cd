//! Paths and open files: what a lookup, an open and a close allocate, lock and touch.
//!
//! ```text
//! look_up   name ── walk: each folder of the path ── last entry's count ── free name ── count back
//! open      name ── filp ── walk ── descriptor's number ── inode ── list of open files ── free name
//!           a path that does not exist: filp and name are freed
//! close     descriptor's number ── list of open files ── entry's count ── free filp
//! ```
//!
//! | rule | until | from | source |
//! |---|---|---|---|
//! | a walk writes to each folder of the path | 2.6.37: under its lock | 2.6.38: reads only | RCU walk, from memory |
//! | all open files are on one list | 2.6.35: under one lock | 2.6.36: a list for each CPU, later none | from memory |
//! | an open takes the lock of the process's file table | 4.2: twice | 4.3: once | from memory |
//! | a closed filp is freed | 6.6: after a grace period | 6.7: at once, its cache is of RCU's type | from memory |
//!
//! A failed open allocates and frees a filp too: the kernel takes it before it walks. Entries, once they
//! exist, stay in the cache of entries: nothing is read from a disk. Cycles are assumed.

mod content;

use crate::kernel::era::Era;
use crate::kernel::objects::{Held, Object};
use crate::kernel::{Task, locks_of};
use crate::locks::{EntryLock, FileTableLock, OpenFilesLock};
use content::Content;
use slablab_model::{Access, LockTimes, Timed};
use slablab_platform::{Lock, Platform};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

/// Cycles of a step of a walk, of an open, of a close, and of a `stat`, beside system call, allocator, locks
/// and lines (assumed; an open and a close take about 1 us together on a CPU of 3 GHz, from memory).
const STEP: u64 = 120;
const OPEN: u64 = 700;
const CLOSE: u64 = 400;
const STAT: u64 = 250;
/// Bytes that are touched: of a name; of an entry; of an inode; of a filp.
const NAME: u32 = 64;
const ENTRY: u32 = 64;
const INODE: u32 = 128;
const FILP: u32 = 192;

/// How files behave in an era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rules {
    walk_locks: bool,
    one_list: bool,
    table_locks: u32,
    frees_at_once: bool,
}

impl Rules {
    fn of(era: Era) -> Rules {
        Rules {
            walk_locks: !era.since(2, 6, 38),
            one_list: !era.since(2, 6, 36),
            table_locks: if era.since(4, 3, 0) { 1 } else { 2 },
            frees_at_once: era.since(6, 7, 0),
        }
    }
}

type Guarded<R> = <Timed as Platform>::Lock<R, ()>;

/// A name in a folder: a file, a folder, or a name that is known not to exist.
pub struct Entry {
    /// None while reclaim has freed it.
    dentry: RefCell<Option<Held>>,
    /// None if the name does not exist, or while reclaim has freed it.
    inode: RefCell<Option<Held>>,
    exists: bool,
    /// It was looked up since reclaim last looked.
    referenced: Cell<bool>,
    lock: Guarded<EntryLock>,
    folder: Option<Rc<Entry>>,
    content: Content,
}

impl Entry {
    fn new(task: &Task, folder: Option<Rc<Entry>>, exists: bool) -> Rc<Entry> {
        let dentry = task.alloc(Object::Dentry);
        task.touch(&dentry, FILP, Access::Write);
        let inode = exists.then(|| task.alloc(Object::FileInode));
        inode.iter().for_each(|inode| task.touch(inode, INODE, Access::Write));
        Rc::new(Entry {
            dentry: RefCell::new(Some(dentry)),
            inode: RefCell::new(inode),
            exists,
            referenced: Cell::new(false),
            lock: Lock::new(()),
            folder,
            content: Content::default(),
        })
    }

    /// The root of a file system.
    pub fn root(task: &Task) -> Rc<Entry> {
        Entry::new(task, None, true)
    }

    /// A new file or folder in a folder.
    pub fn create(self: &Rc<Self>, task: &Task) -> Rc<Entry> {
        Entry::new(task, Some(self.clone()), true)
    }

    /// A name that does not exist in a folder, and is remembered as such.
    pub fn absent(self: &Rc<Self>, task: &Task) -> Rc<Entry> {
        Entry::new(task, Some(self.clone()), false)
    }

    /// Frees the entry and its inode, after a grace period, and its pages. No task uses the entry any more.
    ///
    /// # Panics
    /// If an open file or an entry of this folder is left.
    pub fn forget(self: Rc<Self>, task: &Task) {
        let entry = Rc::into_inner(self).expect("no open file and no other entry refers to the entry");
        entry.content.free(task);
        entry.inode.into_inner().into_iter().for_each(|inode| task.free_after_grace(inode));
        entry.dentry.into_inner().into_iter().for_each(|dentry| task.free_after_grace(dentry));
    }

    /// Whether dentry and inode are in memory.
    pub(crate) fn in_memory(&self) -> (bool, bool) {
        (self.dentry.borrow().is_some(), self.inode.borrow().is_some())
    }

    /// Whether it was looked up since this was last asked.
    pub(crate) fn was_referenced(&self) -> bool {
        self.referenced.replace(false)
    }

    /// A lookup found it in memory.
    pub(crate) fn refer(&self) {
        self.referenced.set(true);
    }

    /// Reclaim takes the dentry, or the inode. Nobody has the file open.
    pub(crate) fn take_dentry(&self) -> Option<Held> {
        self.dentry.take()
    }

    /// See [`Entry::take_dentry`].
    pub(crate) fn take_inode(&self) -> Option<Held> {
        self.inode.take()
    }

    /// A lookup brought the dentry, or the inode. Returns the object if another lookup was faster.
    pub(crate) fn give_dentry(&self, dentry: Held) -> Option<Held> {
        put(&self.dentry, dentry)
    }

    /// See [`Entry::give_dentry`].
    pub(crate) fn give_inode(&self, inode: Held) -> Option<Held> {
        put(&self.inode, inode)
    }

    fn touch_dentry(&self, task: &Task, access: Access) {
        self.dentry.borrow().iter().for_each(|dentry| task.touch(dentry, ENTRY, access));
    }

    fn touch_inode(&self, task: &Task, bytes: u32) {
        self.inode.borrow().iter().for_each(|inode| task.touch(inode, bytes, Access::Read));
    }

    /// Walks from the root to this entry, and counts a user of it.
    fn walk(&self, task: &Task, rules: Rules) {
        if let Some(folder) = &self.folder {
            folder.step(task, rules);
        }
        task.work(STEP);
        self.count(task, rules);
    }

    /// Passes through this folder.
    fn step(&self, task: &Task, rules: Rules) {
        if let Some(folder) = &self.folder {
            folder.step(task, rules);
        }
        task.work(STEP);
        if rules.walk_locks {
            self.count(task, rules);
        } else {
            self.touch_dentry(task, Access::Read);
        }
        self.touch_inode(task, ENTRY);
        if rules.walk_locks {
            self.count(task, rules);
        }
    }

    /// Changes the entry's count of users: under its lock, or by one exchange on lock and count together.
    fn count(&self, task: &Task, rules: Rules) {
        if rules.walk_locks {
            let guard = self.lock.lock();
            self.touch_dentry(task, Access::Write);
            drop(guard);
        } else {
            Timed::charge(Timed::hardware(|hardware| hardware.costs.locked_exchange));
            self.touch_dentry(task, Access::Write);
        }
    }

    /// Looks the path up and reads its inode, as `stat` does. Part of a system call.
    pub fn look_up(&self, task: &Task) {
        let rules = Rules::of(task.kernel.era);
        let name = new_name(task);
        self.walk(task, rules);
        self.touch_inode(task, INODE);
        task.work(STAT);
        task.free(name);
        self.count(task, rules);
    }
}

/// An open file.
pub struct OpenFile {
    entry: Rc<Entry>,
    filp: Held,
    security: Option<Held>,
}

impl OpenFile {
    /// What is open.
    pub fn entry(&self) -> &Rc<Entry> {
        &self.entry
    }
}

/// The list of all open files with its lock, and the files with dirty pages. One for a run.
pub struct Files {
    list: Guarded<OpenFilesLock>,
    dirty: RefCell<VecDeque<Weak<Entry>>>,
}

/// The open files of a process, whose threads share them.
pub struct FileTable {
    lock: Guarded<FileTableLock>,
    files: Rc<Files>,
}

impl Default for Files {
    fn default() -> Self {
        Files { list: Lock::new(()), dirty: RefCell::default() }
    }
}

impl FileTable {
    /// The table of a new process.
    pub fn new(files: &Rc<Files>) -> FileTable {
        FileTable { lock: Lock::new(()), files: files.clone() }
    }

    /// Opens a path. None if it does not exist. Part of a system call.
    pub fn open(&self, task: &Task, entry: &Rc<Entry>) -> Option<OpenFile> {
        let rules = Rules::of(task.kernel.era);
        let name = new_name(task);
        let filp = task.alloc(Object::File);
        task.touch(&filp, FILP, Access::Write);
        let has_security = Object::FileSecurity.row(task.kernel.era).is_some();
        let security = has_security.then(|| task.alloc(Object::FileSecurity));
        security.iter().for_each(|held| task.touch(held, 24, Access::Write));
        entry.walk(task, rules);
        task.work(OPEN);
        let file = OpenFile { entry: entry.clone(), filp, security };
        if !entry.exists {
            file.release(task, rules);
            task.free(name);
            return None;
        }
        entry.touch_inode(task, INODE);
        self.files.change(task, &file, rules);
        (0..rules.table_locks).for_each(|_| drop(self.lock.lock()));
        task.free(name);
        Some(file)
    }

    /// Closes a file. Part of a system call.
    pub fn close(&self, task: &Task, file: OpenFile) {
        let rules = Rules::of(task.kernel.era);
        drop(self.lock.lock());
        task.work(CLOSE);
        self.files.change(task, &file, rules);
        file.release(task, rules);
    }
}

impl Files {
    /// Puts a file on the list, or takes it off.
    fn change(&self, task: &Task, file: &OpenFile, rules: Rules) {
        let guard = rules.one_list.then(|| self.list.lock());
        task.touch(&file.filp, ENTRY, Access::Write);
        drop(guard);
    }
}

impl OpenFile {
    fn release(self, task: &Task, rules: Rules) {
        self.entry.count(task, rules);
        self.security.into_iter().for_each(|held| task.free(held));
        if rules.frees_at_once {
            task.free(self.filp);
        } else {
            task.free_after_grace(self.filp);
        }
    }
}

fn put(place: &RefCell<Option<Held>>, held: Held) -> Option<Held> {
    let mut place = place.borrow_mut();
    match *place {
        Some(_) => Some(held),
        None => {
            *place = Some(held);
            None
        }
    }
}

fn new_name(task: &Task) -> Held {
    let name = task.alloc(Object::Name);
    task.touch(&name, NAME, Access::Write);
    name
}

/// What the locks of paths and open files did so far.
pub fn locks() -> Vec<(&'static str, LockTimes)> {
    vec![locks_of::<FileTableLock>(), locks_of::<OpenFilesLock>(), locks_of::<EntryLock>()]
}

/// The files of one folder that tasks made for themselves, by task number.
#[derive(Default)]
pub struct OwnFiles(RefCell<BTreeMap<u32, Rc<Entry>>>);

impl OwnFiles {
    /// The file of this task, made in `folder` if it has none yet.
    pub fn of(&self, task: &Task, folder: &Rc<Entry>) -> Rc<Entry> {
        if let Some(entry) = self.0.borrow().get(&task.id.0) {
            return entry.clone();
        }
        let entry = folder.create(task);
        self.0.borrow_mut().insert(task.id.0, entry.clone());
        entry
    }

    /// Frees all of them. No task uses them any more.
    pub fn forget(self, task: &Task) {
        self.0.into_inner().into_values().for_each(|entry| entry.forget(task));
    }
}
