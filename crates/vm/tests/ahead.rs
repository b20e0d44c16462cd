//! How far faults read ahead: around a page of a file, and in swap that does not rotate.

use slablab_vm::instant::Instant;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules, SwapReadAhead, Touched};
use slablab_vm::{Flags, Frame, RegionId, Vm};

struct Room {
    vm: Vm,
    host: Instant,
    rules: Rules,
    frames: u32,
}

impl Room {
    fn new(vm: &str, frames: u32) -> Room {
        let (vm, host, rules) = Instant::machine(vm, frames, 4_096);
        let rules = Rules { swap_read_ahead: SwapReadAhead::Region, ..rules };
        Room { vm, host, rules, frames }
    }

    /// Touches pages; returns how many faults read.
    fn touch(&self, region: RegionId, pages: impl Iterator<Item = u32>, write: bool) -> usize {
        let touched = pages.map(|page| mm::touch(&self.vm, &self.host, &self.rules, region, page, write));
        touched.filter(|touched| touched.expect("memory") == Touched::Major).count()
    }

    fn map(&self, pages: u32) -> (RegionId, OpenFile) {
        let mapping = self.vm.with(|state| state.mappings.create(Kind::File, pages));
        let space = self.vm.with(|state| state.spaces.create());
        (mm::map(&self.vm, space, mapping), OpenFile::new(mapping))
    }

    /// Frames with a page, page tables and buffer heads aside.
    fn cached(&self, file: &OpenFile, pages: u32) -> usize {
        let frame = |page| self.vm.with(|state| state.mappings.get(file.mapping).entry(page).frame());
        (0..pages).filter_map(frame).count()
    }
}

/// A region's cursor follows its faults. So a program that goes on meets what was read ahead, and the
/// next read has 8 new pages: forwards and backwards.
#[test]
fn swap_that_does_not_rotate_is_read_ahead_of_the_program() {
    for (name, pages) in [("up", (0..256).collect::<Vec<u32>>()), ("down", (0..256).rev().collect())] {
        let room = Room::new("vm@6.1", 512);
        let space = room.vm.with(|state| state.spaces.create());
        let region = mm::anon(&room.vm, space, 1_024);
        room.touch(region, 0..1_024, true);
        let swapped =
            room.vm.with(|state| (0..256).all(|page| state.spaces.region(region).pte(page).slot().is_some()));
        assert!(swapped, "the oldest pages went to swap");
        let reads = room.touch(region, pages.into_iter(), false);
        assert!((32..=34).contains(&reads), "{name}: {reads} reads of 256 pages");
    }
}

/// Faults that write find no pages around to map, so after 100 that miss a file is read page by page. Faults
/// that read map 16 pages each, which count as hits, and go on.
#[test]
fn only_faults_that_write_give_reading_around_up() {
    for (write, expected) in [(true, 100 * 32 + 50), (false, 150 * 32)] {
        let room = Room::new("vm@6.1", 9_000);
        let (region, file) = room.map(8_192);
        assert_eq!(room.touch(region, (0..150).map(|at| at * 50), write), 150);
        assert_eq!(room.cached(&file, 8_192), expected, "write: {write}");
    }
}

/// Since 6.10 pages of the working set are no hits: a file whose pages come back again and again is read at
/// random.
#[test]
fn refaults_of_the_working_set_are_no_hits() {
    for (vm, is_set, expected) in [("vm@6.1", true, 34), ("vm@6.12", false, 34), ("vm@6.12", true, 50)] {
        let room = Room::new(vm, 1_024);
        let (region, mut file) = room.map(64);
        for page in 0..64 {
            mm::read(&room.vm, &room.host, &room.rules, &mut file, page).expect("memory");
        }
        room.host.settle(&room.vm);
        room.vm.with(|state| {
            let cached = (0..room.frames).map(Frame).filter(|frame| state.frames.has(*frame, Flags::USED));
            let cached: Vec<Frame> = cached.collect();
            for frame in cached.into_iter().filter(|_| is_set) {
                state.frames.set(frame, Flags::WORKINGSET);
            }
            state.spaces.region_mut(region).ahead.misses = 50;
        });
        room.touch(region, 20..21, false);
        let misses = room.vm.with(|state| state.spaces.region(region).ahead.misses);
        assert_eq!(misses, expected, "{vm}, working set: {is_set}");
    }
}

/// A descriptor and a mapping of one open file have one cursor: where faults read around a page, reads go on.
#[test]
fn a_mapping_lends_its_cursor() {
    let room = Room::new("vm@6.1", 1_024);
    let (region, mut file) = room.map(512);
    mm::lend_ahead(&room.vm, region, &mut file);
    room.touch(region, 100..101, false);
    mm::lend_ahead(&room.vm, region, &mut file);
    assert_eq!((file.ahead.start, file.ahead.size, file.ahead.misses), (84, 32, 0));
}
