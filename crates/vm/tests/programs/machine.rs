//! A program that runs random steps on a machine, each beside the reference.

use crate::reference::{File, Pages, Random, Reference, Region, Space};
use slablab_vm::instant::Instant;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Punched, Rules, Why};
use slablab_vm::swap::SlotRule;
use slablab_vm::{Ask, Flags, Frame, Host, Replacement, Settings, State, Swap, Vm, Zone};
use std::rc::Rc;

/// A host of a test.
pub(crate) trait Bench: Host {
    /// All requests of the device end.
    fn settle(&self, vm: &Vm);
    /// Free frames.
    fn free_frames(&self) -> usize;
    /// Every page with [`Flags::BUFFERS`] has a buffer head here, and no other one.
    fn check_buffers(&self, vm: &Vm) -> Result<(), String>;
}

impl Bench for Instant {
    fn settle(&self, vm: &Vm) {
        Instant::settle(self, vm);
    }

    fn free_frames(&self) -> usize {
        Instant::free_frames(self)
    }

    fn check_buffers(&self, vm: &Vm) -> Result<(), String> {
        Instant::check_buffers(self, vm)
    }
}

/// The memory of a machine of one zone: so many frames and slots.
pub(crate) fn memory(policy: Box<dyn Replacement>, (frames, slots): (u32, u32)) -> Rc<Vm> {
    let zone = Zone { name: "DMA32", node: 0, class: 0, frames: 0..frames, managed: frames.into() };
    let swap = Swap::new(slots, SlotRule::Clusters);
    let mut state = State::new(vec![zone], swap, policy.lists(1, 1), Settings::default());
    state.trees.keep();
    Rc::new(Vm::new(state, policy))
}

/// The device's requests end, and every frame is back: no program is left.
pub(crate) fn account(vm: &Vm, host: &dyn Bench, frames: u32) {
    host.settle(vm);
    vm.with(|state| state.check()).expect("the state is sound at the end");
    // Pages in flight when their last user went stay in the swap cache until reclaim meets them.
    for _ in 0..64 {
        let ask = Ask { node: 0, class: 0, order: 0, io: true, fs: true, space: None, group: false };
        if let Some(page) = vm.policy.direct(vm, host, &ask).page {
            host.free(vm, page);
        }
        host.settle(vm);
    }
    let used = (0..frames).map(Frame).filter(|frame| {
        let flags = vm.with(|state| state.frames.flags(*frame));
        assert!(flags == Flags::default() || flags.has(Flags::SWAPCACHE), "{frame:?} stays: {flags:?}");
        flags != Flags::default()
    });
    assert_eq!(host.free_frames() + used.count(), frames as usize, "every frame is back");
}

/// A program, and what it must see.
pub(crate) struct Machine<'h> {
    pub(crate) vm: Rc<Vm>,
    host: &'h dyn Bench,
    rules: Rules,
    random: Random,
    reference: Reference,
    /// Other tasks run beside it.
    pub(crate) has_company: bool,
    /// Calls that found no memory.
    pub(crate) out_of_memory: u32,
}

impl<'h> Machine<'h> {
    pub(crate) fn new(vm: &Rc<Vm>, host: &'h dyn Bench, rules: Rules, seed: u64) -> Machine<'h> {
        let (random, reference) = (Random(seed), Reference::default());
        Machine { vm: vm.clone(), host, rules, random, reference, has_company: false, out_of_memory: 0 }
    }

    /// Runs `steps` random steps; checks all of the state every 16.
    pub(crate) fn run(&mut self, steps: u32) {
        for step in 0..steps {
            self.step();
            if step % 16 == 0 {
                let checked = self.vm.with(|state| state.check().and_then(|()| self.vm.policy.check(state)));
                let checked = checked.and_then(|()| self.host.check_buffers(&self.vm));
                checked.unwrap_or_else(|error| panic!("step {step}: {error}"));
            }
        }
    }

    /// Runs `steps` random steps.
    pub(crate) fn steps(&mut self, steps: u32) {
        (0..steps).for_each(|_| self.step());
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..50 => self.touch(),
            50..60 => self.read(),
            60..70 => self.write(),
            70..74 => self.new_region(),
            74..76 => self.new_file(),
            76..78 => self.fork(),
            78..80 => self.exit(),
            80..83 => self.unmap(),
            83..87 => self.punch_region(),
            87..89 => self.punch_file(),
            89..91 => self.truncate(),
            91..93 => self.unlink(),
            93..95 => self.fsync(),
            95 => mm::sync(&self.vm, self.host, &self.rules),
            96 => mm::drop_pagecache(&self.vm, self.host),
            97 => _ = mm::write_back(&self.vm, self.host, &self.rules, Why::Pages(4)),
            98 => _ = mm::write_back(&self.vm, self.host, &self.rules, Why::Background),
            _ => self.host.settle(&self.vm),
        }
    }

    fn touch(&mut self) {
        let Some((space, region)) = self.reference.region(&mut self.random) else { return self.new_region() };
        let pages = self.reference.touchable(&self.reference.spaces[space].regions[region]);
        let id = self.reference.spaces[space].regions[region].id;
        // A run, so that read-ahead has something to do.
        let (start, write) = (self.random.below(pages), self.random.below(2) == 0);
        for page in start..(start + self.random.below(6)).min(pages) {
            if mm::touch(&self.vm, self.host, &self.rules, id, page, write).is_none() {
                self.out_of_memory += 1;
                return self.kill(space);
            }
            let expected = self.reference.page(space, region, page);
            assert_eq!(mm::load(&self.vm, id, page), *expected, "page {page} of {id:?} of space {space}");
            if write {
                *expected = self.random.0 as u32 | 1;
                mm::store(&self.vm, id, page, *expected);
            }
        }
    }

    fn kill(&mut self, space: usize) {
        let space = self.reference.spaces.swap_remove(space);
        mm::exit(&self.vm, self.host, space.id);
    }

    fn space(&mut self) -> usize {
        if self.reference.spaces.len() < 4 && self.random.below(2) == 0 || self.reference.spaces.is_empty() {
            let id = self.vm.with(|state| state.spaces.create());
            self.reference.spaces.push(Space { id, regions: Vec::new() });
            return self.reference.spaces.len() - 1;
        }
        self.random.below(self.reference.spaces.len() as u32) as usize
    }

    fn new_region(&mut self) {
        let space = self.space();
        let id = self.reference.spaces[space].id;
        let file = self.reference.file(&mut self.random).filter(|_| self.random.below(2) == 0);
        let region = match file {
            Some(at) => {
                let file = self.reference.files[at].as_ref().expect("it exists");
                let pages = file.pages.len() as u32;
                Region { id: mm::map(&self.vm, id, file.open.mapping), pages: Pages::File(at, pages) }
            }
            None => {
                let most = if self.random.below(8) == 0 { 700 } else { 40 };
                let pages = 1 + self.random.below(most);
                Region { id: mm::anon(&self.vm, id, pages), pages: Pages::Anon(vec![0; pages as usize]) }
            }
        };
        self.reference.spaces[space].regions.push(region);
    }

    fn new_file(&mut self) {
        let kind = if self.random.below(2) == 0 { Kind::File } else { Kind::Tmpfs };
        let pages = self.random.below(60);
        let mapping = self.vm.with(|state| state.mappings.create(kind, pages));
        let mut contents = vec![0; pages as usize];
        if kind == Kind::File {
            for (at, content) in contents.iter_mut().enumerate() {
                *content = self.random.below(u32::MAX);
                self.vm.with(|state| state.mappings.get_mut(mapping).store(at as u32, *content));
            }
        }
        let file = File { open: OpenFile::new(mapping), kind, pages: contents };
        self.reference.files.push(Some(file));
    }

    fn read(&mut self) {
        let Some(at) = self.reference.file(&mut self.random) else { return self.new_file() };
        let file = self.reference.files[at].as_mut().expect("it exists");
        let start = self.random.below(file.pages.len() as u32 + 2);
        for page in start..start + self.random.below(8) {
            match mm::read(&self.vm, self.host, &self.rules, &mut file.open, page) {
                None => self.out_of_memory += 1,
                Some(_) => {
                    let expected = file.pages.get(page as usize).copied().unwrap_or(0);
                    assert_eq!(file.open.content, expected, "page {page} of a file ({:?})", file.kind);
                }
            }
        }
    }

    fn write(&mut self) {
        let Some(at) = self.reference.file(&mut self.random) else { return self.new_file() };
        let file = self.reference.files[at].as_mut().expect("it exists");
        let start = self.random.below(file.pages.len() as u32 + 2);
        let whole = self.random.below(3) > 0;
        for page in start..start + self.random.below(8) {
            let content = self.random.below(u32::MAX);
            let (vm, host) = (&self.vm, self.host);
            if mm::write(vm, host, &self.rules, &mut file.open, page, content, whole).is_none() {
                self.out_of_memory += 1;
                // The file may have grown by the page, which is a hole then.
                continue;
            }
            if page as usize >= file.pages.len() {
                file.pages.resize(page as usize + 1, 0);
            }
            file.pages[page as usize] = content;
        }
    }

    fn fork(&mut self) {
        if self.reference.spaces.len() > 6 {
            return;
        }
        let Some(parent) = self.random.pick(&self.reference.spaces) else { return };
        let Some(id) = mm::fork(&self.vm, self.host, self.reference.spaces[parent].id) else {
            self.out_of_memory += 1;
            return;
        };
        let ids = self.vm.with(|state| state.spaces.space(id).regions.clone());
        let regions = self.reference.spaces[parent].regions.iter().zip(ids);
        let regions = regions.map(|(region, id)| Region { id, pages: region.pages.clone() }).collect();
        self.reference.spaces.push(Space { id, regions });
    }

    fn exit(&mut self) {
        if let Some(space) = self.random.pick(&self.reference.spaces) {
            self.kill(space);
        }
    }

    fn unmap(&mut self) {
        let Some((space, region)) = self.reference.region(&mut self.random) else { return };
        let region = self.reference.spaces[space].regions.remove(region);
        mm::unmap(&self.vm, self.host, region.id);
    }

    fn punch_region(&mut self) {
        let Some((space, region)) = self.reference.region(&mut self.random) else { return };
        let region = &mut self.reference.spaces[space].regions[region];
        let start = self.random.below(40);
        let range = start..start + self.random.below(8);
        mm::punch(&self.vm, self.host, Punched::Region(region.id), range.clone());
        if let Pages::Anon(pages) = &mut region.pages {
            let end = pages.len();
            pages[(start as usize).min(end)..(range.end as usize).min(end)].fill(0);
        }
    }

    fn punch_file(&mut self) {
        let Some(at) = self.reference.file(&mut self.random) else { return };
        let file = self.reference.files[at].as_mut().expect("it exists");
        let (start, end) = (self.random.below(40), file.pages.len());
        let range = start..start + self.random.below(8);
        mm::punch(&self.vm, self.host, Punched::Mapping(file.open.mapping), range.clone());
        file.pages[(start as usize).min(end)..(range.end as usize).min(end)].fill(0);
    }

    fn truncate(&mut self) {
        let Some(at) = self.reference.file(&mut self.random) else { return };
        let file = self.reference.files[at].as_mut().expect("it exists");
        let pages = self.random.below(file.pages.len() as u32 + 8);
        mm::truncate(&self.vm, self.host, file.open.mapping, pages);
        file.pages.resize(pages as usize, 0);
    }

    fn unlink(&mut self) {
        let Some(at) = self.reference.file(&mut self.random) else { return };
        if !self.reference.is_mapped(at) {
            let file = self.reference.files[at].take().expect("it exists");
            mm::unlink(&self.vm, self.host, file.open.mapping);
        }
    }

    fn fsync(&mut self) {
        let Some(at) = self.reference.file(&mut self.random) else { return };
        let mapping = self.reference.files[at].as_ref().expect("it exists").open.mapping;
        mm::fsync(&self.vm, self.host, &self.rules, mapping);
        let dirty = self.vm.with(|state| state.mappings.get(mapping).dirtied);
        // Beside fsync, a reclaimer can unmap pages that only their entries know to be dirty.
        let may_be_dirty = self.has_company && !self.rules.write_notify;
        assert!(dirty == 0 || may_be_dirty, "{dirty} pages of a file are dirty after fsync");
    }

    /// Ends all spaces and files.
    pub(crate) fn end(&mut self) {
        while !self.reference.spaces.is_empty() {
            self.kill(0);
        }
        for file in std::mem::take(&mut self.reference.files).into_iter().flatten() {
            mm::unlink(&self.vm, self.host, file.open.mapping);
        }
    }
}
