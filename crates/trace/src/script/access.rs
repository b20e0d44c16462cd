//! The accesses of a process: which page comes next.
//!
//! ```text
//! Batches::next ── group of this turn ── Process::fill ── one loop for each distribution
//! ```
//!
//! A batch holds pages of one group, so that neither the distribution nor the mode is asked for in a loop
//! over pages.

use super::generator::Generator;
use super::zipf::{Exponent, Zipf, permutation};
use super::{Distribution, Group, Mode, ObjectId, Rw, Script};

/// The most pages of a [`Batch`].
pub const BATCH_PAGES: usize = 1024;

/// The state that decides the accesses of one process: its generator, and a cursor for each object.
#[derive(Clone, Debug)]
pub struct Process {
    generator: Generator,
    objects: Vec<Object>,
    pages: Box<[u32; BATCH_PAGES]>,
}

#[derive(Clone, Debug)]
struct Object {
    name: String,
    pages: u32,
    cursor: u32,
    /// Computed when first used.
    permutation: Vec<u32>,
    zipf: [Option<Zipf>; 3],
}

impl Process {
    /// A process at the start of `script`, with the generator that no `seed` line has set (seed 1).
    pub fn new(script: &Script) -> Process {
        Process::with(Generator::new(1), script)
    }

    /// A process that this one spawns. A fork copies the generator: a child without a `seed` line goes on
    /// from the number that the parent would draw next.
    pub fn spawn(&self, script: &Script) -> Process {
        Process::with(self.generator, script)
    }

    fn with(generator: Generator, script: &Script) -> Process {
        let object = |object: &super::Object| Object {
            name: object.name.clone(),
            pages: object.pages,
            cursor: 0,
            permutation: Vec::new(),
            zipf: [None, None, None],
        };
        let objects = script.objects.iter().map(object).collect();
        Process { generator, objects, pages: Box::new([0; BATCH_PAGES]) }
    }

    /// `seed`: starts the generator anew.
    pub fn seed(&mut self, seed: u64) {
        self.generator = Generator::new(seed);
    }

    /// `rewind`: sets the object's cursor to 0.
    pub fn rewind(&mut self, object: ObjectId) {
        self.objects[usize::from(object.0)].cursor = 0;
    }

    /// The generator's next number, as `statuni` draws it.
    pub fn draw(&mut self) -> u64 {
        self.generator.draw()
    }

    /// The next pages of `object` under `distribution`: all of `out` is written. `object` is of the script of
    /// this process. Only a stride that is longer than the object gives pages behind its end.
    pub fn fill(&mut self, object: ObjectId, distribution: Distribution, out: &mut [u32]) {
        let Process { generator, objects, .. } = self;
        objects[usize::from(object.0)].fill(generator, distribution, out);
    }
}

impl Object {
    fn fill(&mut self, generator: &mut Generator, distribution: Distribution, out: &mut [u32]) {
        let pages = self.pages;
        // A stride that is longer than the object leaves the cursor behind its end.
        let next = |page: u32| if page < pages - 1 { page + 1 } else { (page + 1) % pages };
        match distribution {
            Distribution::Sequential => self.walk(out, |cursor| cursor, next),
            Distribution::Reverse => self.walk(out, |cursor| (pages - 1).wrapping_sub(cursor), next),
            Distribution::Stride(stride) => {
                let step = |cursor: u32| match cursor.checked_add(stride) {
                    Some(ahead) if ahead < pages => ahead,
                    _ => (cursor % stride + 1) % stride,
                };
                self.walk(out, |cursor| cursor, step);
            }
            Distribution::Part { group, first } => {
                let step = |cursor: u32| {
                    let mut page = next(cursor);
                    while page % group >= first {
                        page = next(page);
                    }
                    page
                };
                self.walk(out, |cursor| cursor, step);
            }
            Distribution::Uniform => {
                let pages = u64::from(pages);
                out.iter_mut().for_each(|slot| *slot = (generator.draw() % pages) as u32);
            }
            Distribution::Zipf(exponent) => {
                let (zipf, permutation) = self.zipf(exponent);
                out.iter_mut().for_each(|slot| *slot = permutation[zipf.draw(generator) as usize]);
            }
        }
    }

    /// Accesses the page of the cursor, then moves the cursor on, for each page of `out`.
    #[inline]
    fn walk(&mut self, out: &mut [u32], page: impl Fn(u32) -> u32, step: impl Fn(u32) -> u32) {
        let mut cursor = self.cursor;
        for slot in out {
            *slot = page(cursor);
            cursor = step(cursor);
        }
        self.cursor = cursor;
    }

    /// The tables of [`Distribution::Zipf`], computed when they are first used.
    fn zipf(&mut self, exponent: Exponent) -> (&Zipf, &[u32]) {
        if self.permutation.is_empty() {
            self.permutation = permutation(&self.name, self.pages);
        }
        let pages = self.pages;
        let table = self.zipf[exponent as usize].get_or_insert_with(|| Zipf::new(exponent, pages));
        (table, &self.permutation)
    }
}

/// Accesses of one group that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The object.
    pub object: ObjectId,
    /// Its pages, at least one and at most [`BATCH_PAGES`].
    pub pages: &'a [u32],
    /// How they are accessed.
    pub mode: Mode,
    /// Load or store.
    pub rw: Rw,
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The object.
    pub object: ObjectId,
    /// The page.
    pub page: u32,
    /// How it is accessed.
    pub mode: Mode,
    /// Load or store.
    pub rw: Rw,
}

/// The accesses of one [`super::Command::Access`], in batches.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    groups: &'a [Group],
    /// Rounds that are not begun.
    rounds: u64,
    /// The current group, and its accesses that are left.
    group: usize,
    left: u64,
}

impl<'a> Batches<'a> {
    /// The accesses of `rounds` rounds of `groups`.
    pub fn new(rounds: u64, groups: &'a [Group]) -> Batches<'a> {
        // A round of no access never ends the search for the next group.
        let rounds = if groups.iter().all(|group| group.count == 0) { 0 } else { rounds };
        Batches { groups, rounds, group: groups.len(), left: 0 }
    }

    /// The next accesses; `None` at the end. `process` is the one that runs the command.
    #[inline]
    pub fn next<'p>(&mut self, process: &'p mut Process) -> Option<Batch<'p>> {
        while self.left == 0 {
            self.group += 1;
            if self.group >= self.groups.len() {
                self.rounds = self.rounds.checked_sub(1)?;
                self.group = 0;
            }
            self.left = self.groups[self.group].count;
        }
        let group = &self.groups[self.group];
        let count = self.left.min(BATCH_PAGES as u64);
        self.left -= count;
        let Process { generator, objects, pages } = process;
        let out = &mut pages[..count as usize];
        objects[usize::from(group.object.0)].fill(generator, group.distribution, out);
        Some(Batch { object: group.object, pages: out, mode: group.mode, rw: group.rw })
    }

    /// The accesses one by one. For a caller that needs speed, [`Batches::next`] is the way.
    pub fn each(mut self, process: &mut Process, mut visit: impl FnMut(Access)) {
        while let Some(batch) = self.next(process) {
            let Batch { object, pages, mode, rw } = batch;
            pages.iter().for_each(|&page| visit(Access { object, page, mode, rw }));
        }
    }
}
