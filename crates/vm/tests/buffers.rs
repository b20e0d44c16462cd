//! Buffer heads: which pages have one in which release, and how long.

use slablab_vm::instant::Instant;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules, Why};
use slablab_vm::{Counter, Flags, Frame, MappingId, Vm};

const FRAMES: u32 = 1024;

struct Room {
    vm: Vm,
    host: Instant,
    rules: Rules,
}

impl Room {
    fn new(vm: &str) -> Room {
        let (vm, host, rules) = Instant::machine(vm, FRAMES, 64);
        Room { vm, host, rules }
    }

    fn file(&self, kind: Kind) -> OpenFile {
        OpenFile::new(self.vm.with(|state| state.mappings.create(kind, 64)))
    }

    /// Pages of a file with a buffer head.
    fn buffers(&self, of: MappingId) -> usize {
        self.host.check_buffers(&self.vm).expect("flags say what there is");
        self.vm.with(|state| {
            let frame = |page| state.mappings.get(of).entry(page).frame();
            (0..64).filter_map(frame).filter(|frame| state.frames.has(*frame, Flags::BUFFERS)).count()
        })
    }

    fn read(&self, file: &mut OpenFile, pages: u32) {
        for page in 0..pages {
            mm::read(&self.vm, &self.host, &self.rules, file, page).expect("memory");
        }
        self.host.settle(&self.vm);
    }

    fn write(&self, file: &mut OpenFile, pages: u32) {
        for page in 0..pages {
            mm::write(&self.vm, &self.host, &self.rules, file, page, 1, true).expect("memory");
        }
    }

    fn frames(&self) -> Vec<Frame> {
        (0..FRAMES)
            .map(Frame)
            .filter(|frame| self.vm.with(|state| state.frames.has(*frame, Flags::USED)))
            .collect()
    }
}

/// A page of a file that is written has one; a page that is read has one in 2.4, and if a device has it.
/// Real 6.1 and 6.12: none after 192 MiB read, as many as pages after a file was written, or inodes read.
#[test]
fn pages_that_have_a_buffer_head() {
    for (vm, when_read) in [("vm@2.4.9", 64), ("vm@2.4.10", 64), ("vm@2.6.29", 0), ("vm@6.1", 0)] {
        let room = Room::new(vm);
        let mut read = room.file(Kind::File);
        room.read(&mut read, 64);
        assert_eq!(room.buffers(read.mapping), when_read, "{vm}: read");
        let mut device = room.file(Kind::Device);
        room.read(&mut device, 64);
        assert_eq!(room.buffers(device.mapping), 64, "{vm}: device");
        let mut written = room.file(Kind::File);
        room.write(&mut written, 40);
        assert_eq!(room.buffers(written.mapping), 40, "{vm}: written");
        let mut tmpfs = room.file(Kind::Tmpfs);
        room.write(&mut tmpfs, 40);
        assert_eq!(room.buffers(tmpfs.mapping), 0, "{vm}: tmpfs");
    }
}

/// The first write to a mapped page gives it one, and they go with their pages.
#[test]
fn a_mapped_page_gets_one_when_it_is_written() {
    let room = Room::new("vm@6.1");
    let mut file = room.file(Kind::File);
    room.read(&mut file, 64);
    let space = room.vm.with(|state| state.spaces.create());
    let region = mm::map(&room.vm, space, file.mapping);
    for (page, write) in [(1, false), (2, true), (3, true), (3, true)] {
        mm::touch(&room.vm, &room.host, &room.rules, region, page, write).expect("memory");
    }
    assert_eq!(room.buffers(file.mapping), 2);
    mm::exit(&room.vm, &room.host, space);
    mm::fsync(&room.vm, &room.host, &room.rules, file.mapping);
    assert_eq!(room.buffers(file.mapping), 2, "a write to the disk keeps them");
    mm::drop_pagecache(&room.vm, &room.host);
    assert_eq!((room.buffers(file.mapping), room.frames()), (0, vec![]));
}

/// Who wakes bdflush gets one batch of 32 pages, also below the limit; later kernels write down to it.
#[test]
fn bdflush_writes_a_batch() {
    for (vm, expected) in [("vm@2.4.9", 32), ("vm@6.1", 0)] {
        let room = Room::new(vm);
        let mut files = [room.file(Kind::File), room.file(Kind::File)];
        files.iter_mut().for_each(|file| room.write(file, 40));
        let before = room.vm.with(|state| state.dirty.file);
        let written = mm::write_back(&room.vm, &room.host, &room.rules, Why::Background);
        assert_eq!((before, written), (80, expected), "{vm}");
        room.host.settle(&room.vm);
        assert_eq!(room.vm.with(|state| state.counters.get(Counter::Written)), expected, "{vm}");
    }
}
