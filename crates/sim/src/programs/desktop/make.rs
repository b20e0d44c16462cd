//! `make -j4` of a kernel beside music: equal times can hide gaps (LKML, 18 and 19 September 2001).
//!
//! Of the mail: user time 241 s, 935,000 minor faults and 901,000 faults on files. With 1,000 objects
//! (assumed) these are 241 ms, 935 and 901 pages of an object: the heap and the text of its programs. A
//! source and its object file have 30 KB each, headers 10 MB in all, of which an object reads 1 MB (assumed).

use super::app::{App, Size, Touch, touch};
use super::machine::{
    self, ESTIMATE, GAP_LONGEST, GAPS, IN, KSWAPD, Machine, NEEDED, OUT, SKIPS, music, observed, seconds,
    swap,
};
use super::names::Names;
use super::{Desktop, Habits, NoMemory, Test};
use crate::kernel::Task;
use crate::kernel::tally::Failed;
use crate::memory::Here;
use crate::params::params;
use crate::programs::measures::{KERNEL, with_kernel};
use crate::programs::program::{Estimate, Metric, Object, Observed, Pair, Program};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::disk::Disk;
use slablab_model::{MachineSpec, Ps};
use slablab_slabs::Release;
use slablab_vm::MappingId;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::preset::Preset;
use std::cell::Cell;
use std::rc::Rc;

/// CPU time of an object's programs in themselves, in pieces between which they touch memory.
const USER: Ps = 241_000_000_000;
const PIECES: u32 = 64;
/// Pages of their heap, and of their text, which all of them share.
const HEAP: u32 = 935;
const TEXT: u32 = 901;
/// Pages of a source and of an object file; of all headers, and of those that an object reads.
const FILE: u32 = 8;
const HEADERS: u32 = 2_560;
const INCLUDED: u32 = 256;
/// How often the user's task looks whether all jobs have ended.
const EVERY: Ps = 100_000_000_000;

params! {
    /// The workload's parameters.
    pub struct Params {
        vm: Preset = machine::VM;
        memory_mib: u64 = machine::MEMORY;
        disk: Disk = machine::DISK;
        buffer_ms: u64 = machine::BUFFER;
        objects: u32 = [50, 1_000, 1_000], 1..=100_000, "objects that are compiled",
            "assumed: 1,000, with the faults and the user time of the mail divided by it";
        jobs: u32 = [4], 1..=64, "objects at a time: make -j", "LKML, 18 September 2001: -j4";
    }
}

/// The test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Make {
    /// Objects.
    pub objects: u32,
    /// Objects at a time.
    pub jobs: u32,
}

impl Program for Make {
    type Params = Params;

    const NAME: &'static str = "make-music";
    const ABOUT: &'static str = "make -j of a kernel beside a player of wav files, under a VM of 2.4";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[Pair {
        machine: "kulesa-2001",
        parameters: "memory_mib = 64\nobjects = 20",
        why: "a build whose files do not stay in memory",
    }];

    fn objects(_release: Release) -> Vec<Object> {
        machine::objects()
    }

    fn estimate(_machine: &MachineSpec, _params: &Params) -> Estimate {
        ESTIMATE
    }

    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let Params { vm, memory_mib, disk, buffer_ms, objects, jobs } = params;
        let machine = Machine { vm, memory_mib: *memory_mib, disk };
        let test = Test::Make(Make { objects: *objects, jobs: *jobs });
        let answer = machine.run((setup, seed, recorder), (&test, Some(*buffer_ms), Habits::USUAL))?;
        let counter =
            |name: &str| answer.counters.iter().find(|(one, _)| *one == name).map_or(0, |(_, n)| *n);
        let mut own = vec![
            ("make_ps", answer.step("make").map_or(0, |step| step.elapsed)),
            ("pgfault", counter("pgfault")),
            ("pgmajfault", counter("pgmajfault")),
        ];
        own.extend(swap(&answer));
        own.extend(music(answer.played()));
        Ok(observed(&METRICS, answer, &own))
    }
}

const METRICS: [Metric; 10 + KERNEL.len()] = with_kernel([
    Metric { name: "make_ps", about: "time of the build", ..seconds() },
    SKIPS,
    GAP_LONGEST,
    GAPS,
    NEEDED,
    OUT,
    IN,
    KSWAPD,
    Metric { name: "pgfault", about: "page faults", better: None, ..SKIPS },
    Metric { name: "pgmajfault", about: "page faults that wait for a disk", better: None, ..SKIPS },
]);

/// What the jobs share.
struct Tree {
    text: MappingId,
    headers: MappingId,
    left: Cell<u32>,
    running: Cell<u32>,
}

pub(super) fn test(desktop: &Rc<Desktop>, task: &Task, make: &Make) -> Result<(), NoMemory> {
    let names = Names::new(&desktop.memory, 0);
    let (daemons, screen) = desktop.step("boot", &names, || desktop.boot(task))?;
    let create = |pages| desktop.memory.vm.with(|state| state.mappings.create(Kind::File, pages));
    let tree = Rc::new(Tree {
        text: create(TEXT),
        headers: create(HEADERS),
        left: Cell::new(make.objects),
        running: Cell::new(make.jobs),
    });
    for _ in 0..make.jobs {
        let tree = tree.clone();
        desktop.start("make", move |desktop, task| {
            let mut ended = Ok(());
            while ended.is_ok() && tree.left.get() > 0 {
                tree.left.set(tree.left.get() - 1);
                ended = compile(desktop, task, &tree);
            }
            tree.running.set(tree.running.get() - 1);
            ended
        });
    }
    desktop.step("make", &names, || {
        while tree.running.get() > 0 {
            task.sleep(EVERY);
        }
        Ok(())
    })?;
    daemons.stop(desktop, task);
    screen.close(desktop, task, 0)
}

/// Compiles an object: reads its source and headers, computes, writes its file.
fn compile(desktop: &Desktop, task: &Task, tree: &Tree) -> Result<(), NoMemory> {
    let (memory, vm) = (&desktop.memory, &desktop.memory.vm);
    let app = App::of_text(desktop, Size { name: "cc1", text: TEXT, heap: HEAP }, tree.text);
    let here = Here::new(memory, task);
    let read = |file: MappingId, pages: std::ops::Range<u32>| {
        let mut file = OpenFile::new(file);
        let mut read = |page| task.syscall(|| mm::read(vm, &here, &memory.rules, &mut file, page));
        pages.into_iter().try_for_each(|page| read(page).map(|_| ())).ok_or(NoMemory)
    };
    let source = vm.with(|state| state.mappings.create(Kind::File, FILE));
    let first = desktop.below(u64::from(HEADERS - INCLUDED)) as u32;
    desktop.run_as(task, &app, || {
        read(source, 0..FILE)?;
        read(tree.headers, first..first + INCLUDED)?;
        let of = |pages: u32, piece: u32| (piece * pages / PIECES..(piece + 1) * pages / PIECES).collect();
        for piece in 0..PIECES {
            let (text, heap): (Vec<u32>, Vec<u32>) = (of(TEXT, piece), of(HEAP, piece));
            touch(desktop, task, app.text(), &text, Touch::Load)?;
            touch(desktop, task, app.heap, &heap, Touch::Store)?;
            task.compute(USER / Ps::from(PIECES));
        }
        let object = vm.with(|state| state.mappings.create(Kind::File, FILE));
        let mut object = OpenFile::new(object);
        let mut write = |page| mm::write(vm, &here, &memory.rules, &mut object, page, page + 1, true);
        (0..FILE).try_for_each(|page| task.syscall(|| write(page)).map(|_| ())).ok_or(NoMemory)
    })?;
    app.close(desktop, task, 0)
}
