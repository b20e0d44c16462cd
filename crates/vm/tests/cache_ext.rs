//! What the policies of papers do with small programs whose best answer is known, on a machine without time.

#[allow(dead_code)]
#[path = "generations/machine.rs"]
mod machine;

use machine::Machine;
use slablab_vm::{Counter, MappingId};

/// Frames of the machine, about 200 of which hold pages; a loop over the pages of a file is longer.
const FRAMES: u32 = 256;
const FILE: u32 = 320;
/// Pages of the hot set.
const HOT: u32 = 32;

/// A program: reads of the pages of a file and of a hot set.
struct Program<'a> {
    machine: &'a Machine,
    files: [MappingId; 2],
    misses: u64,
}

impl Program<'_> {
    fn read(&mut self, file: usize, page: u32) {
        let is_there = self.machine.resident(self.files[file]).contains(&page);
        self.misses += u64::from(!is_there);
        self.machine.read(self.files[file], page);
    }

    /// Reads the file, so many pages apart, a few times.
    fn scans(&mut self, stride: u32, times: u32) {
        for page in (0..times).flat_map(|_| (0..FILE * stride).step_by(stride as usize)) {
            self.read(0, page);
        }
    }

    /// Each page of the hot set is read so many times; then a stream, with a hot page after each eight.
    fn hot(&mut self, times: u32) {
        (0..times * HOT).for_each(|at| self.read(1, at % HOT));
        self.misses = 0;
        for page in 0..8 * FILE {
            self.read(0, page);
            if page % 8 == 7 {
                self.read(1, page / 8 * 7 % HOT);
            }
        }
        self.misses -= u64::from(8 * FILE);
    }
}

/// Reads from the disk in a program: `loop`, a file is read five times; `columns`, each eighth page of one
/// is; `warm` and `hot`, a set that was read twice or four times is read beside a stream, whose misses do not
/// count.
#[track_caller]
fn misses(preset: &str, program: &str, expected: u64) {
    let machine = Machine::of(preset, FRAMES, 0, [16, 32, 48], 0);
    let files = [machine.file(FILE * 8), machine.file(HOT)];
    let mut run = Program { machine: &machine, files, misses: 0 };
    match program {
        "loop" => run.scans(1, 5),
        "columns" => run.scans(8, 5),
        "warm" => run.hot(2),
        _ => run.hot(4),
    }
    let misses = run.misses;
    machine.check();
    assert_eq!(misses, expected, "{preset}: {program}");
}

#[test]
fn a_loop_that_does_not_fit_is_for_mru_and_stride() {
    // 320 pages, five times, in memory for about 210: LRU and first in, first out find none of them.
    misses("vm@7.2,s3fifo", "loop", 1600);
    misses("vm@7.2,mru", "loop", 832);
    misses("vm@7.2,mru,skip=0", "loop", 704);
    misses("vm@7.2,stride", "loop", 872);
    misses("vm@7.2,stride,run=400", "loop", 1600);
    misses("vm@7.2,stride", "columns", 872);
    misses("vm@7.2,stride,skip=0", "columns", 704);
    misses("vm@7.2,lhd", "loop", 925);
    misses("vm@7.2", "loop", 1600);
    misses("vm@7.2,lru_gen", "loop", 1600);
}

#[test]
fn a_hot_set_beside_a_stream_is_for_s3fifo_lhd_and_stride() {
    misses("vm@7.2,s3fifo", "hot", 0);
    misses("vm@7.2,s3fifo", "warm", 80);
    misses("vm@7.2,s3fifo,promotes=1", "warm", 0);
    misses("vm@7.2,s3fifo,small=60", "warm", 80);
    misses("vm@7.2,lhd", "hot", 103);
    misses("vm@7.2,lhd,sample=1", "hot", 226);
    misses("vm@7.2,mru", "hot", 267);
    misses("vm@7.2,stride", "hot", 0);
    misses("vm@7.2", "hot", 0);
    misses("vm@7.2,lru_gen", "hot", 80);
    misses("vm@7.2,lru_gen", "warm", 296);
    misses("vm@6.12,lru_gen", "hot", 8);
}

/// Anonymous pages, more than there are frames, are stored to in turn: they go to swap and come back.
#[test]
fn anonymous_pages_go_to_swap_and_come_back() {
    for word in ["s3fifo", "lhd", "mru", "stride"] {
        let preset = format!("vm@7.2,{word}");
        let machine = Machine::of(&preset, FRAMES, 1024, [16, 32, 48], 8);
        let region = machine.region(None, FILE);
        for at in 0..5 * FILE {
            machine.store(region, at % FILE);
            if at % 40 == 0 {
                machine.check();
            }
        }
        assert!(machine.count(Counter::PgStealAnon) > u64::from(FILE), "{preset}");
        assert!(machine.count(Counter::RefaultAnon) > 0, "{preset}");
    }
}
