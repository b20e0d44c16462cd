//! A process with a program, a heap, and a disk of programs: what AIM7's and AIM9's tasks are.

use crate::fs::files::{Entry, FileTable, Files};
use crate::kernel::Task;
use crate::process::mappings::{self, Mapping};
use crate::process::{Children, Image, Libraries, Shape};
use slablab_model::Timed;
use slablab_platform::Topology;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes by which the heap grows.
const HEAP: u64 = 1 << 20;

/// Such a process.
pub struct User {
    /// `None` only while the process ends.
    image: RefCell<Option<Image>>,
    heap: Mapping,
    files: Rc<Files>,
    /// Its open files.
    pub table: FileTable,
    /// The folder of its files.
    pub root: Rc<Entry>,
    program: Rc<Entry>,
    libraries: Rc<Libraries>,
}

impl User {
    /// The task becomes such a process, and may run on every CPU.
    pub fn new(task: &Task, files: &Rc<Files>) -> User {
        task.unpin();
        let root = Entry::root(task);
        let found = (0..2).map(|_| root.create(task)).collect();
        let libraries = Rc::new(Libraries { found, absent: root.absent(task) });
        let program = root.create(task);
        let table = FileTable::new(files);
        let image = Image::empty(task).exec(task, &table, &program, &libraries, Shape::SMALL);
        let heap = image.space().map(task, HEAP);
        let image = RefCell::new(Some(image));
        User { image, heap, files: files.clone(), table, root, program, libraries }
    }

    /// Frees all of it.
    pub fn end(self, task: &Task) {
        self.heap.end(task);
        self.image.take().into_iter().for_each(|image| image.end(task));
        let libraries = Rc::into_inner(self.libraries).expect("all children have ended");
        let entries = libraries.found.into_iter().chain([libraries.absent, self.program, self.root]);
        entries.for_each(|entry| entry.forget(task));
    }

    /// A child that ends; it executes the program before if `executes`. Waits for it.
    pub fn child(&self, task: &Task, executes: bool) {
        let children = Rc::new(Children::default());
        let (program, libraries) = (self.program.clone(), self.libraries.clone());
        let files = self.files.clone();
        task.syscall(|| {
            let image = self.image.borrow();
            children.fork(task, image.as_ref().expect("it has not ended"), move |child, image| {
                if !executes {
                    return image;
                }
                let table = FileTable::new(&files);
                image.exec(child, &table, &program, &libraries, Shape::SMALL)
            });
        });
        task.syscall(|| children.wait(task));
    }

    /// The heap grows by 1 MiB, the program touches `pages` pages of it, at most all, and it shrinks.
    pub fn heap(&self, task: &Task, pages: u64) {
        let image = self.image.borrow();
        let space = image.as_ref().expect("it has not ended").space();
        let (_, all) = mappings::pages_of(HEAP, Timed::page_shift());
        task.syscall(|| space.grow_heap(task));
        space.touch_first(task, &self.heap, 0..pages.min(all));
        task.syscall(|| space.shrink_heap(task, Some(&self.heap)));
    }
}
