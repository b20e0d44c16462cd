//! The order in which dirty pages of files are written: 2.4 by the time at which they became dirty, later
//! kernels file by file.

use slablab_vm::host::Throttle;
use slablab_vm::instant::Instant;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules, Why};
use slablab_vm::{Host, Vm};

const FRAMES: u32 = 1024;
const SECOND: u64 = 1_000_000_000;

struct Room {
    vm: Vm,
    host: Instant,
    rules: Rules,
    files: [OpenFile; 2],
}

impl Room {
    fn new(vm: &str) -> Room {
        let (vm, host, rules) = Instant::machine(vm, FRAMES, 64);
        let files = [0, 1].map(|_| OpenFile::new(vm.with(|state| state.mappings.create(Kind::File, 64))));
        Room { vm, host, rules, files }
    }

    fn write(&mut self, file: usize, page: u32) {
        let file = &mut self.files[file];
        mm::write(&self.vm, &self.host, &self.rules, file, page, 1, true).expect("memory");
    }

    fn write_back(&self, why: Why) -> u64 {
        let written = mm::write_back(&self.vm, &self.host, &self.rules, why);
        self.host.settle(&self.vm);
        self.vm.with(|state| state.check()).expect("counts and lists fit");
        written
    }

    fn wait(&self, seconds: u64) {
        self.host.throttle(Throttle::Dirty, seconds * SECOND);
    }

    /// The dirty pages of each file.
    fn dirty(&self) -> [Vec<u32>; 2] {
        self.vm.with(|state| {
            [0, 1].map(|file| {
                let mapping = state.mappings.get(self.files[file].mapping);
                (0..64).filter(|page| mapping.next_dirty(*page) == Some(*page)).collect()
            })
        })
    }
}

/// Pages of two files that become dirty in turns, from the last one to the first.
#[test]
fn the_oldest_are_written_first() {
    let all = || (0..20).collect::<Vec<u32>>();
    let by_age = [(0..16).collect(), (0..16).collect()];
    let by_file = [(8..20).collect(), all()];
    let cases = [
        ("2.4.8", &by_age),
        ("2.4.9-ac14", &by_age),
        ("2.4.10", &by_age),
        ("2.6.29", &by_file),
        ("6.1", &by_file),
    ];
    for (vm, left) in cases {
        let mut room = Room::new(&format!("vm@{vm}"));
        for page in (0..20).rev() {
            (0..2).for_each(|file| room.write(file, page));
        }
        assert_eq!((room.write_back(Why::Pages(8)), &room.dirty()), (8, left), "{vm}");
    }
}

/// A dirty page that is written to again keeps its place. One that was clean meanwhile has a new one.
#[test]
fn a_page_keeps_its_place_until_it_is_clean() {
    let mut room = Room::new("vm@2.4.10");
    for (file, page) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        room.write(file, page);
    }
    assert_eq!((room.write_back(Why::Pages(1)), room.dirty()), (1, [vec![1], vec![0, 1]]));
    room.write(0, 1);
    room.write(0, 0);
    assert_eq!((room.write_back(Why::Pages(3)), room.dirty()), (3, [vec![0], vec![]]));
}

/// kupdate writes pages that are dirty for 30 s or more; later kernels the whole of a file that has one.
#[test]
fn kupdate_writes_pages_whose_time_has_come() {
    for (vm, left) in [("2.4.9", (40..60).collect()), ("2.6.29", vec![])] {
        let mut room = Room::new(&format!("vm@{vm}"));
        room.wait(5);
        (0..40).for_each(|page| room.write(0, page));
        room.wait(20);
        (40..60).for_each(|page| room.write(0, page));
        room.wait(9);
        assert_eq!((room.write_back(Why::Old), room.dirty()[0].len()), (0, 60), "{vm}: 29 s");
        room.wait(2);
        assert_eq!((room.write_back(Why::Old), &room.dirty()[0]), (60 - left.len() as u64, &left), "{vm}");
        room.wait(30);
        room.write_back(Why::Old);
        assert_eq!(room.dirty()[0], Vec::<u32>::new(), "{vm}");
    }
}
