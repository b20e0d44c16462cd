//! The removal of a tree, and a new one from the archive: bunzip2 in a pipe beside tar.

use super::site::{Site, Unpacked};
use crate::kernel::{Task, WaitQueue, Waiting};
use crate::process::{Children, Kind};
use slablab_model::{Ps, Timed};
use slablab_vm::mm::OpenFile;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// CPU time to unpack the archive: 10 to 15 s (from memory): the middle.
const UNPACK: Ps = 12_500_000_000_000;
/// KiB that a pipe holds.
const PIPE: u32 = 64;
/// KiB that tar writes at a time.
const PIECE_PAGES: u32 = 2;

/// Data on the way from bunzip2 to tar.
#[derive(Default)]
struct Pipe {
    /// Pages in it.
    pages: Cell<u32>,
    reader: WaitQueue,
    writer: WaitQueue,
}

impl Pipe {
    const CAPACITY: u32 = PIPE / 4;

    fn put(&self, task: &Task, pages: u32) {
        while self.pages.get() + pages > Self::CAPACITY {
            self.writer.wait(task, Waiting { what: "for room in a pipe, tar's", number: 0 });
            Timed::turn();
        }
        task.copy(pages << 12);
        self.pages.set(self.pages.get() + pages);
        self.reader.wake_one(&task.kernel, true);
    }

    fn take(&self, task: &Task, pages: u32) {
        while self.pages.get() < pages {
            self.reader.wait(task, Waiting { what: "for data in a pipe, tar's", number: 0 });
            Timed::turn();
        }
        task.copy(pages << 12);
        self.pages.set(self.pages.get() - pages);
        self.writer.wake_one(&task.kernel, true);
    }
}

impl Site {
    /// Removes the tree with all outputs (`rm -r`).
    ///
    /// # Panics
    /// A build uses it.
    pub(super) fn remove(&self, task: &Task) {
        let Some(old) = self.unpacked.take() else { return };
        let Unpacked { folders, files, objects, outputs, .. } =
            Rc::into_inner(old).expect("no build uses the tree");
        let built = objects
            .into_inner()
            .into_iter()
            .flatten()
            .chain(outputs.into_inner().into_iter().map(|(_, node)| node));
        let built = built.map(|node| Rc::into_inner(node).expect("no link uses the object"));
        for node in built.chain(files) {
            task.syscall(|| self.volume.remove(task, node));
        }
        for folder in folders.into_iter().rev() {
            task.syscall(|| self.volume.remove_dir(task, folder));
        }
    }

    /// Unpacks the archive.
    pub(super) fn unpack(self: &Rc<Self>, task: &Task) -> Unpacked {
        let (children, pipe) = (Rc::new(Children::default()), Rc::new(Pipe::default()));
        let (site, of_child) = (self.clone(), pipe.clone());
        task.syscall(|| children.start(task, Kind::Process, move |child| site.decompress(child, &of_child)));
        let mut folders = Vec::new();
        for (at, parent) in self.tree.dirs.iter().enumerate() {
            let folder = task.syscall(|| {
                let parent = if at == 0 { self.volume.root() } else { &folders[*parent as usize] };
                self.volume.make_dir(task, parent)
            });
            folders.push(folder);
        }
        let mut files = Vec::new();
        for file in &self.tree.files {
            let folder = &folders[file.dir as usize];
            let node = task.syscall(|| self.volume.create(task, folder));
            let mut left = file.pages();
            while left > 0 {
                let pages = left.min(PIECE_PAGES);
                task.syscall(|| pipe.take(task, pages));
                task.syscall(|| self.volume.write(task, &node, pages));
                left -= pages;
            }
            task.syscall(|| self.volume.close(&node));
            files.push(node);
        }
        task.syscall(|| children.wait(task));
        let mut left = vec![0; folders.len()];
        self.tree.sources.iter().for_each(|at| left[self.tree.files[*at as usize].dir as usize] += 1);
        let objects = RefCell::new(vec![Vec::new(); folders.len()]);
        Unpacked { folders, files, objects, outputs: RefCell::default(), left: RefCell::new(left) }
    }

    /// bunzip2: it reads the archive, computes, and writes to the pipe.
    fn decompress(&self, task: &Task, pipe: &Pipe) {
        task.call_it(|| "bunzip2".into());
        let (volume, archive) = &self.archive;
        let packed = self.memory.vm.with(|state| state.mappings.get(archive.mapping).pages());
        let pages = self.tree.pages();
        let user: Ps = UNPACK / Ps::from(self.program.part);
        let mut open = OpenFile::new(archive.mapping);
        let mut done = 0;
        while done < pages {
            let next = (done + u64::from(Pipe::CAPACITY / 2)).min(pages);
            let of = |total: u64| total * u64::from(packed) / pages;
            let read = of(done) as u32..of(next) as u32;
            task.syscall(|| volume.read_part(task, &mut open, read));
            task.compute(user * next / pages - user * done / pages);
            task.syscall(|| pipe.put(task, (next - done) as u32));
            done = next;
        }
    }
}
