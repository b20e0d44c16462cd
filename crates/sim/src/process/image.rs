//! The address space of a process that runs a program: its mappings, an exec, the copy for a child.
//!
//! ```text
//! copy      mm_struct ── for each mapping: vm_area_struct, anon_vma and links, page tables
//! exec      open the file ── binprm ── the old space's end ── mm_struct ── maps ── page faults
//!           each library: open ── maps ── close
//! end       mappings, pages ── the tree ── mm_struct
//! ```
//!
//! Counts are those of a small dynamic C program (assumed). With them a fork and an exec allocate 40
//! mappings; a server of 2001 counted 45 for a fork (docs/theory/files.md 3).

use crate::fs::files::{Entry, FileTable};
use crate::kernel::Task;
use crate::kernel::objects::{Held, Object};
use crate::process::mappings::{AddressSpace, Mapping};
use slablab_model::Access;
use std::rc::Rc;

/// Cycles of an exec beside system call, allocator, lines, lookups, maps and page faults (assumed).
const EXEC: u64 = 60_000;
/// Cycles that the dynamic linker computes for each library (assumed).
const LINK: u64 = 100_000;
/// Mappings that a library adds.
const MAPS_PER_LIBRARY: u32 = 4;
/// Bytes of the arguments' description during an exec, from kmalloc (from memory).
const BINPRM: u32 = 400;
/// Nodes of the tree hold about this many mappings (assumed; 16 at most).
const MAPPINGS_PER_NODE: usize = 10;
/// Pages of each written mapping that a child writes to after a fork, and that are copied (assumed).
const WRITTEN_BY_CHILD: u64 = 3;

/// What a program's address space looks like after its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Mappings of the program and of its libraries.
    pub mappings: u32,
    /// Mappings with pages that the program wrote to.
    pub written: u32,
    /// Pages that it wrote to in each of these.
    pub pages: u32,
    /// Faults on pages of files, which are in the page cache.
    pub file_faults: u32,
}

impl Shape {
    /// A small program (assumed).
    pub const SMALL: Shape = Shape { mappings: 20, written: 6, pages: 4, file_faults: 60 };
}

/// The libraries that every program opens at its start, and a path that it looks for in vain.
pub struct Libraries {
    /// The dynamic linker's cache and the C library.
    pub found: Vec<Rc<Entry>>,
    /// What does not exist.
    pub absent: Rc<Entry>,
}

/// The address space of a program.
pub struct Image {
    mm: Held,
    space: AddressSpace,
    mappings: Vec<Mapping>,
    /// Nodes of the tree of mappings beside the first.
    nodes: Vec<Held>,
}

impl Image {
    /// An address space without mappings.
    pub fn empty(task: &Task) -> Image {
        let mm = task.alloc(Object::Mm);
        task.touch(&mm, 512, Access::Write);
        Image { mm, space: AddressSpace::new(task), mappings: Vec::new(), nodes: Vec::new() }
    }

    /// The space, for maps and changes of the heap's end.
    pub fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// A child's copy. Part of a system call.
    pub fn copy(&self, task: &Task) -> Image {
        let mut copy = Image::empty(task);
        copy.mappings = self.mappings.iter().map(|mapping| mapping.copy(task)).collect();
        copy.add_nodes(task);
        copy
    }

    /// The child writes to its stack and its data.
    pub(super) fn write_after_fork(&self, task: &Task) {
        for mapping in self.mappings.iter().filter(|mapping| mapping.is_written()) {
            self.space.write_first(task, mapping, WRITTEN_BY_CHILD);
        }
    }

    /// Nodes of the tree for mappings that do not fit into the first.
    fn add_nodes(&mut self, task: &Task) {
        if task.kernel.era.since(6, 1, 0) {
            let nodes = self.mappings.len().div_ceil(MAPPINGS_PER_NODE);
            self.nodes.extend((self.nodes.len()..nodes).map(|_| task.alloc(Object::MapleNode)));
            self.nodes.iter().for_each(|node| task.touch(node, 256, Access::Write));
        }
    }

    /// Frees the address space. No task uses it any more.
    pub fn end(self, task: &Task) {
        self.mappings.into_iter().for_each(|mapping| mapping.end(task));
        self.nodes.into_iter().for_each(|node| task.free_after_grace(node));
        self.space.end(task);
        task.free(self.mm);
    }

    /// Replaces the address space by that of the program in `file`, and lets it start: until its main.
    pub fn exec(
        self,
        task: &Task,
        table: &FileTable,
        file: &Rc<Entry>,
        libraries: &Libraries,
        shape: Shape,
    ) -> Image {
        let in_libraries = MAPS_PER_LIBRARY * libraries.found.len() as u32;
        let mut image = task.syscall(|| {
            let binary = table.open(task, file).expect("the program exists");
            let binprm = task.alloc_bytes(BINPRM);
            let arguments = task.alloc_pages(0);
            task.work(EXEC);
            self.end(task);
            let mut image = Image::empty(task);
            image.map(task, shape.mappings.saturating_sub(in_libraries));
            image.add_nodes(task);
            task.free(arguments);
            task.free(binprm);
            table.close(task, binary);
            image
        });
        task.syscall(|| libraries.absent.look_up(task));
        for library in &libraries.found {
            let open = task.syscall(|| table.open(task, library)).expect("the library exists");
            for _ in 0..MAPS_PER_LIBRARY {
                task.syscall(|| image.map(task, 1));
            }
            task.syscall(|| table.close(task, open));
            task.compute(LINK * task.kernel.prices.cycle);
        }
        image.first_faults(task, shape);
        image
    }

    /// Maps the heap: a mapping of `bytes` bytes that grows as [`Image::grow_heap`] says. Part of a system
    /// call.
    pub fn map_heap(&mut self, task: &Task, bytes: u64) {
        let heap = self.space.map(task, bytes);
        self.mappings.push(heap);
    }

    /// The heap, which was mapped last, grows, and the program touches these pages of it.
    pub fn grow_heap(&self, task: &Task, pages: std::ops::Range<u64>) {
        let heap = self.mappings.last().expect("the heap is mapped");
        task.syscall(|| self.space.grow_heap(task));
        self.space.touch_first(task, heap, pages);
    }

    fn map(&mut self, task: &Task, count: u32) {
        /// Of each mapping; the program touches less (assumed).
        const BYTES: u64 = 128 << 10;
        for _ in 0..count {
            let mapping = self.space.map(task, BYTES);
            self.mappings.push(mapping);
        }
    }

    fn first_faults(&self, task: &Task, shape: Shape) {
        self.space.file_faults(task, shape.file_faults);
        for mapping in self.mappings.iter().take(shape.written as usize) {
            self.space.touch_first(task, mapping, 0..shape.pages.into());
        }
    }
}
