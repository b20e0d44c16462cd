//! Objects and links: kbuild's steps over files and memory that can be evicted.

use super::programs::{ABSENT, LINK, MAKE};
use super::site::{Site, Unpacked};
use crate::fs::files::FileTable;
use crate::kernel::Task;
use crate::kernel::tally::Failed;
use crate::memory::volume::Node;
use crate::memory::{Here, Memory};
use crate::process::{Children, Image, Shape};
use crate::programs::kbuild::{AS, CC1, IN_VAIN, MAKE_USER, STEPS, WRITE};
use slablab_model::Timed;
use slablab_vm::mm::{self, Touched};
use slablab_vm::{RegionId, SpaceId};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// Headers that every object includes (assumed).
const COMMON: u32 = 100;

/// An object that is being compiled.
struct Job {
    unpacked: Rc<Unpacked>,
    /// The place of its source among all files.
    source: u32,
    /// The places of its headers.
    headers: Vec<u32>,
    /// The assembler's source.
    assembly: RefCell<Option<Node>>,
}

impl Site {
    /// Removes the last tree, unpacks a new one and builds it.
    pub(super) fn build(self: &Rc<Self>, task: &Task) {
        task.call_it(|| "build".into());
        self.remove(task);
        self.is_unpacking.set(true);
        let unpacked = Rc::new(self.unpack(task));
        self.is_unpacking.set(false);
        *self.unpacked.borrow_mut() = Some(unpacked.clone());
        self.make(task, &unpacked);
    }

    /// Builds the tree.
    pub(super) fn make(self: &Rc<Self>, task: &Task, unpacked: &Rc<Unpacked>) {
        let table = FileTable::new(&self.files);
        let image = self.exec(task, Image::empty(task), &table, MAKE);
        let memory = Space::new(self, MAKE, 0);
        memory.use_text(self, task, 0, 1);
        let (children, kbuild) = (Rc::new(Children::default()), &self.program.kbuild);
        for (number, source) in self.tree.sources.iter().enumerate() {
            let headers = self.tree.includes(number as u32, kbuild.compiler_opens(), COMMON);
            self.look_up(task, unpacked, kbuild.make_stats());
            task.compute(kbuild.user() * MAKE_USER / 1_000);
            let assembly = RefCell::new(None);
            let job = Rc::new(Job { unpacked: unpacked.clone(), source: *source, headers, assembly });
            let site = self.clone();
            let shell = move |child: &Task, image: Image| site.compile(child, image, &job);
            self.tell_started(task);
            task.syscall(|| children.fork(task, &image, shell));
            task.syscall(|| children.wait_for(task, kbuild.jobs - 1));
        }
        task.syscall(|| children.wait(task));
        // All directories' objects become one.
        let parts = std::mem::take(&mut *unpacked.outputs.borrow_mut());
        let (linked, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(is_link, _)| *is_link);
        let linked: Vec<Rc<Node>> = linked.into_iter().map(|(_, node)| node).collect();
        let pages: u32 = linked.iter().map(|node| self.pages(node)).sum();
        let whole = self.link(task, &table, unpacked, 0, &linked, pages / 2);
        let mut outputs = unpacked.outputs.borrow_mut();
        outputs.extend(linked.into_iter().map(|node| (true, node)).chain(others));
        outputs.push((false, whole));
        drop(outputs);
        memory.end(self, task);
        image.end(task);
    }

    /// Tells how far the run is: the builds of all iterations compile the same number of objects.
    fn tell_started(&self, task: &Task) {
        let started = self.programs.started.get() + 1;
        self.programs.started.set(started);
        let whole = 2 * self.tree.sources.len() as u64 * u64::from(self.program.iterations);
        task.kernel.has_done(started, whole);
    }

    fn exec(&self, task: &Task, image: Image, table: &FileTable, at: usize) -> Image {
        image.exec(task, table, &self.programs.programs[at], &self.programs.libraries, Shape::SMALL)
    }

    fn pages(&self, node: &Node) -> u32 {
        self.memory.vm.with(|state| state.mappings.get(node.mapping).pages())
    }

    /// The shell of an object; then the link of its directory, if it was the last one there.
    fn compile(self: &Rc<Self>, task: &Task, image: Image, job: &Rc<Job>) -> Image {
        let image = self.run(task, image, 0, job);
        let dir = self.tree.files[job.source as usize].dir;
        let is_last = {
            let left = &mut job.unpacked.left.borrow_mut()[dir as usize];
            *left -= 1;
            *left == 0
        };
        if !is_last {
            return image;
        }
        let table = FileTable::new(&self.files);
        let image = self.exec(task, image, &table, LINK);
        let memory = Space::new(self, LINK, 0);
        memory.use_text(self, task, 0, 1);
        let objects = job.unpacked.objects.borrow()[dir as usize].clone();
        let pages = objects.iter().map(|node| self.pages(node)).sum();
        let linked = self.link(task, &table, &job.unpacked, dir, &objects, pages);
        job.unpacked.outputs.borrow_mut().push((true, linked));
        memory.end(self, task);
        image
    }

    /// Reads objects, and writes one of `pages` pages.
    fn link(
        &self,
        task: &Task,
        table: &FileTable,
        unpacked: &Unpacked,
        dir: u32,
        objects: &[Rc<Node>],
        pages: u32,
    ) -> Rc<Node> {
        for object in objects {
            self.open(task, table, object);
        }
        Rc::new(self.output(task, table, unpacked, dir, pages.max(1)))
    }

    /// A program opens a file, reads all of it, and closes it.
    fn open(&self, task: &Task, table: &FileTable, node: &Node) {
        let open = || {
            self.volume.bring(task, node);
            table.open(task, &node.entry)
        };
        let file = task.syscall(open).expect("the file exists");
        task.syscall(|| self.volume.read(task, node));
        task.syscall(|| table.close(task, file));
    }

    /// A program writes a new file.
    fn output(&self, task: &Task, table: &FileTable, unpacked: &Unpacked, dir: u32, pages: u32) -> Node {
        let node = task.syscall(|| self.volume.create(task, &unpacked.folders[dir as usize]));
        let file = task.syscall(|| table.open(task, &node.entry)).expect("it was created");
        let mut left = pages;
        while left > 0 {
            let part = left.min(WRITE >> 12);
            task.syscall(|| self.volume.write(task, &node, part));
            left -= part;
        }
        self.volume.close(&node);
        task.syscall(|| table.close(task, file));
        node
    }

    fn look_up(&self, task: &Task, unpacked: &Unpacked, stats: u32) {
        for _ in 0..stats {
            let at = task.kernel.random(self.tree.headers.len() as u64) as usize;
            let node = &unpacked.files[self.tree.headers[at] as usize];
            task.syscall(|| {
                self.volume.bring(task, node);
                node.entry.look_up(task);
            });
        }
    }

    /// A child becomes the program of a step, and does its work.
    fn run(self: &Rc<Self>, task: &Task, image: Image, at: usize, job: &Rc<Job>) -> Image {
        let step = &STEPS[at];
        task.call_it(|| step.name.into());
        let table = FileTable::new(&self.files);
        let image = self.exec(task, image, &table, at);
        let kbuild = &self.program.kbuild;
        let (opens, heap_mib) = match at {
            CC1 => (kbuild.compiler_opens(), kbuild.heap_mib),
            _ => (step.opens, step.heap_mib),
        };
        self.look_up(task, &job.unpacked, step.stats);
        let memory = Space::new(self, at, (heap_mib << 8) / self.program.part);
        match at {
            CC1 => self.open(task, &table, &job.unpacked.files[job.source as usize]),
            AS => self.open(task, &table, job.assembly.borrow().as_ref().expect("the compiler wrote it")),
            _ => {}
        }
        self.work(task, &table, &memory, (at, opens), job);
        for start in step.starts {
            let children = Rc::new(Children::default());
            let (site, job, start) = (self.clone(), job.clone(), *start);
            let program = move |child: &Task, image| site.run(child, image, start, &job);
            task.syscall(|| children.fork(task, &image, program));
            task.syscall(|| children.wait(task));
        }
        self.end(task, &table, at, job);
        memory.end(self, task);
        image
    }

    /// The program computes, opens files, goes on in its text, and its heap grows: each in `opens` parts, at
    /// least one.
    fn work(&self, task: &Task, table: &FileTable, memory: &Space, (at, opens): (usize, u32), job: &Job) {
        let parts = u64::from(opens.max(1));
        let user = self.program.kbuild.user() * STEPS[at].user / 1_000;
        let mut header = 0;
        for part in 0..parts {
            task.compute(user / parts);
            if part < u64::from(opens) {
                if at == CC1 && part % u64::from(IN_VAIN) == 0 {
                    let absent = &self.programs.absent[task.kernel.random(ABSENT.into()) as usize];
                    let found = task.syscall(|| table.open(task, absent));
                    assert!(found.is_none(), "an absent header was opened");
                } else {
                    let place = job.headers[header % job.headers.len()];
                    self.open(task, table, &job.unpacked.files[place as usize]);
                    header += 1;
                }
            }
            memory.use_text(self, task, part, parts);
            let pages = u64::from(memory.heap_pages);
            memory.grow(self, task, (part * pages / parts) as u32..((part + 1) * pages / parts) as u32);
        }
    }

    /// The program's output; the driver removes the assembler's source.
    fn end(&self, task: &Task, table: &FileTable, at: usize, job: &Job) {
        let dir = self.tree.files[job.source as usize].dir;
        let pages = STEPS[at].writes_kib.div_ceil(4);
        if pages > 0 {
            let node = self.output(task, table, &job.unpacked, dir, pages);
            match at {
                CC1 => *job.assembly.borrow_mut() = Some(node),
                AS => job.unpacked.objects.borrow_mut()[dir as usize].push(Rc::new(node)),
                _ => job.unpacked.outputs.borrow_mut().push((false, Rc::new(node))),
            }
        }
        if STEPS[at].name == "gcc" {
            let node = job.assembly.borrow_mut().take().expect("the compiler wrote it");
            task.syscall(|| self.volume.remove(task, node));
        }
    }
}

/// What a run of a program has in memory: its text, which can be evicted, and a heap, which can be swapped
/// out.
struct Space {
    space: SpaceId,
    text: RegionId,
    heap: Option<RegionId>,
    heap_pages: u32,
}

impl Space {
    /// Of the program `at`.
    fn new(site: &Site, at: usize, heap_pages: u32) -> Space {
        let vm = &site.memory.vm;
        let space = vm.with(|state| state.spaces.create());
        let text = mm::map(vm, space, site.programs.texts[at]);
        let heap = (heap_pages > 0).then(|| mm::anon(vm, space, heap_pages));
        let name = STEPS.get(at).map_or(if at == LINK { "ld" } else { "make" }, |step| step.name);
        site.memory.processes.show(name, space);
        Space { space, text, heap, heap_pages }
    }

    /// The program runs through one of so many parts of its text.
    fn use_text(&self, site: &Site, task: &Task, part: u64, parts: u64) {
        let pages = u64::from(site.memory.vm.with(|state| state.spaces.region(self.text).pages()));
        let part = (part * pages / parts) as u32..((part + 1) * pages / parts) as u32;
        self.touch(site, task, self.text, part, false);
    }

    /// The program writes to pages of its heap for the first time.
    fn grow(&self, site: &Site, task: &Task, pages: Range<u32>) {
        let Some(heap) = self.heap else { return };
        self.touch(site, task, heap, pages, true);
        task.preemption_point();
    }

    fn touch(&self, site: &Site, task: &Task, region: RegionId, pages: Range<u32>, write: bool) {
        let memory = &site.memory;
        let here = Here::new(memory, task);
        let Memory { vm, rules, kernel, .. } = &**memory;
        let mut left = pages;
        while !left.is_empty() {
            let touched = match site.program.compresses {
                true => mm::touch_run(vm, &here, rules, region, left.clone(), write),
                false => mm::touch(vm, &here, rules, region, left.start, write).map(|touched| (touched, 1)),
            };
            left.start += touched.map_or(1, |(_, pages)| pages);
            match touched {
                Some((Touched::Hit, pages)) => Timed::charge(memory.prices().touch * u64::from(pages)),
                Some(_) => {}
                None => kernel.fail(Failed::out_of_memory(&*kernel.heap, 0)),
            }
        }
    }

    fn end(self, site: &Site, task: &Task) {
        let memory = &site.memory;
        memory.processes.hide(self.space);
        task.syscall(|| mm::exit(&memory.vm, &Here::new(memory, task), self.space));
    }
}
