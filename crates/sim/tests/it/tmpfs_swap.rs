//! Two builds at a time, on tmpfs and on a loop device: a thirty-second of the tree and of the memory.

use crate::disk::ide;
use crate::machine::setup;
use slablab_model::disk::{Disk, DiskKind};
use slablab_sim::block::disk::queue::QueueSpec;
use slablab_sim::fs::ext2::Format;
use slablab_sim::memory::loopback::LoopRules;
use slablab_sim::memory::volume::{Keeps, Volume};
use slablab_sim::memory::{Cause, Guest, Here, with_memory};
use slablab_sim::programs::kbuild;
use slablab_sim::programs::tmpfs_swap::{Iteration, Second, TmpfsSwap, part_of, run};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_vm::mm::{self, Rules};
use slablab_vm::shrinker;
use slablab_vm::{Host, Preset as VmPreset};
use std::cell::Cell;
use std::rc::Rc;

const PART: u32 = 32;
/// Memory of that part: so little that each fact of swap and loop device shows.
const MIB: u64 = 36;

fn small(engine: &str, mib: u64) -> (Setup, Guest) {
    let mut setup = setup(engine, 4, 1);
    setup.spec.nodes[0].bytes = mib << 20;
    let disk = Disk { bytes: 40 << 30, depth: 16, rotational: true, kind: DiskKind::Rotating(ide()) };
    let guest = Guest {
        swap_pages: PART << 16,
        disk: [disk.clone(), disk],
        tree_nodes: true,
        queue: QueueSpec::named("cfq@2.6.29").expect("a queue of this name"),
        ..Guest::default()
    };
    (setup, part_of(guest, 1 << 20, PART))
}

fn program() -> TmpfsSwap {
    TmpfsSwap {
        second: Second::Loop,
        kbuild: kbuild::Params { jobs: 2, ..kbuild::Params::default() },
        iterations: 2,
        part: PART,
        image_mib: 2_048,
        rules: LoopRules::default(),
        keeps: Keeps { discards: false, shrinks: true, packs: false },
        compresses: true,
    }
}

const RULES: Rules = Rules::of(2, 6, 29);

fn build(engine: &str, mib: u64, program: &TmpfsSwap) -> Result<Vec<Iteration>, Failed> {
    build_by(engine, mib, RULES, program)
}

fn build_by(engine: &str, mib: u64, rules: Rules, program: &TmpfsSwap) -> Result<Vec<Iteration>, Failed> {
    let (setup, guest) = small(engine, mib);
    let policy = VmPreset::parse("vm@2.6.29").expect("a preset").policy();
    let ran = run(&setup, 1, &guest, policy, rules, program, &Recorder::default());
    ran.map(|(iterations, _)| iterations)
}

fn built(engine: &str, mib: u64, program: &TmpfsSwap) -> Vec<Iteration> {
    build(engine, mib, program).unwrap_or_else(|failed| panic!("{failed}"))
}

/// Pages read to overwrite blocks of the image, over all iterations.
fn overwritten(answer: &[Iteration]) -> u64 {
    answer.iter().map(|one| one.counts.swap_ins[2]).sum()
}

#[test]
fn both_builds_compile_all_sources_and_the_run_repeats() {
    for engine in ["slub@2.6.29", "slqb@2009-01"] {
        let answer = built(engine, MIB, &program());
        assert_eq!(answer, built(engine, MIB, &program()), "{engine}: two runs differ");
        assert_eq!(answer.len(), 2);
        let mut total = 0;
        for one in &answer {
            let [first, second] = one.builds;
            assert_eq!((first.objects, second.objects), (1_450 / PART, 1_450 / PART), "{engine}");
            // Both do the same work.
            assert_eq!(first.cpu.user, second.cpu.user, "{engine}");
            // At least a fork and six programs' starts for each object; less than the programs themselves.
            let starts = u64::from(first.objects) * 6 * 100_000_000;
            assert!(first.cpu.system > starts && first.cpu.system < first.cpu.user, "{engine}: {first:?}");
            // A page for each of the tree, two on the loop device; a stack of order 1 for each process.
            assert!(first.requests[0] > 2_800 && first.requests[1] > 6 * 45, "{engine}: {first:?}");
            assert!(second.requests[1] > 6 * 45, "{engine}: {second:?}");
            assert!(first.elapsed < one.total - total && second.elapsed < one.total - total, "{engine}");
            assert!(one.counts.transfers.0 > 2_800, "{engine}: {one:?}");
            total = one.total;
        }
        assert!(answer[1].counts.swap_outs > 0, "{engine}: {answer:?}");
        // kswapd is woken by requests that find nothing above the low mark.
        let counts = &answer[1].counts;
        assert!(counts.low[0] >= counts.wakes[0] && counts.wakes[0] > 0, "{engine}: {counts:?}");
        // The first iteration writes to holes, and so reads nothing to overwrite it.
        assert_eq!(answer[0].counts.swap_ins[2], 0, "{engine}");
        assert!(answer[1].counts.swap_ins[2] > 0, "{engine}: {:?}", answer[1]);
        let read = |build: usize, cause: Cause| answer[1].builds[build].swap_ins[cause as usize];
        // What was read to be overwritten is garbage, and some of what came along with it.
        assert!(read(1, Cause::Garbage) >= answer[1].counts.swap_ins[2] / 8, "{engine}: {:?}", answer[1]);
        // On tmpfs nothing is, but neighbours of what is read.
        assert!(read(0, Cause::Garbage) < read(1, Cause::Garbage), "{engine}: {:?}", answer[1]);
        assert!(read(0, Cause::Source) > read(0, Cause::Garbage), "{engine}: {:?}", answer[1]);
        let all: u64 = answer[1].builds.iter().flat_map(|build| build.swap_ins).sum();
        let readers: u64 = answer[1].counts.swap_ins.iter().sum();
        assert!(all <= readers && all > 0, "{engine}: {:?}", answer[1]);
    }
}

/// What programs use of their text is read once. Where memory is short it is evicted, and read again.
#[test]
fn text_of_programs_is_in_memory_that_can_be_evicted() {
    let reads = |mib| {
        let answer = built("slub@2.6.29", mib, &program());
        answer.iter().map(|one| one.counts.text_kib).collect::<Vec<_>>()
    };
    // Pages of cc1, of the assembler, of the linker, of the shell, and one of each other program.
    assert_eq!(reads(256), [(32 + 4 + 3 + 2 + 4) * 4, 0]);
    assert!(reads(MIB)[1] > 0);
}

/// A part has as many pageblocks as the whole, so that as much of it is in reserve.
#[test]
fn a_part_has_small_pageblocks() {
    for (part, frames) in [(1, 512), (8, 64), (PART, 16)] {
        let (setup, guest) = small("slub@2.6.29", 64);
        let guest = part_of(Guest { pageblock_order: None, ..guest }, 1 << 20, part);
        let policy = VmPreset::parse("vm@2.6.29").expect("a preset").policy();
        let found = with_memory(&setup, 1, &guest, policy, RULES, |memory| {
            let (of_task, found) = (memory.clone(), Rc::new(Cell::new(0)));
            let result = found.clone();
            memory.kernel.start(memory.kernel.new_process(), None, move |task| {
                result.set(Here::new(&of_task, task).pageblock_frames());
                of_task.stop();
            });
            memory.kernel.run()?;
            assert_eq!(memory.vm.with(|state| state.settings.part), part);
            Ok(found.get())
        });
        assert_eq!(found, Ok(frames));
    }
}

/// Runs of touches are charged as one step, or each touch is one of its own: iterations, times, and all that
/// the kernel counted are the same.
#[test]
fn a_build_by_runs_of_touches_is_the_build() {
    for engine in ["slub@2.6.29", "slqb@2009-01"] {
        let [by_runs, one_by_one] = [true, false].map(|compresses| {
            let (setup, guest) = small(engine, MIB);
            let policy = VmPreset::parse("vm@2.6.29").expect("a preset").policy();
            let program = TmpfsSwap { compresses, iterations: 1, ..program() };
            let ran = run(&setup, 1, &guest, policy, RULES, &program, &Recorder::default());
            ran.unwrap_or_else(|failed| panic!("{failed}"))
        });
        assert!(by_runs.0[0].counts.swap_outs > 0, "{engine}: nothing swaps");
        assert_eq!(by_runs, one_by_one, "{engine}");
    }
}

#[test]
fn each_fact_of_the_loop_device_is_a_choice() {
    let with = |rules: LoopRules| built("slub@2.6.29", MIB, &TmpfsSwap { rules, ..program() });
    let usual = with(LoopRules::default());
    // There is something to differ in: the device reads pages from swap, to read and to overwrite them.
    assert!(usual[1].counts.swap_ins[1] > 0 && usual[1].counts.swap_ins[2] > 0, "{usual:?}");
    let blind = with(LoopRules { overwrite_reads: false, ..LoopRules::default() });
    assert_eq!(overwritten(&blind), 0, "nothing is read to be overwritten");
    assert!(overwritten(&usual) > 0);
    let outs = |answer: &[Iteration]| answer.iter().map(|one| one.counts.swap_outs).sum::<u64>();
    for rules in [
        LoopRules { read_dirties: false, ..LoopRules::default() },
        LoopRules { is_restricted: false, ..LoopRules::default() },
    ] {
        let other = with(rules);
        assert_ne!(other, usual, "{rules:?} changes nothing");
        assert!(outs(&other) > 0, "{rules:?}");
    }
    let by =
        |rules| build_by("slub@2.6.29", MIB, rules, &program()).unwrap_or_else(|failed| panic!("{failed}"));
    // Programs read the archive back from swap: its pages keep their slots, and go without a write.
    let kept = by(Rules { tmpfs_read_frees_slot: false, ..RULES });
    assert_ne!(kept, usual);
    // Without names that reclaim frees no lookup reads. (What the device reads in all depends on much else;
    // what a lookup reads has a test of its own.)
    let kept = Keeps { discards: false, shrinks: false, packs: false };
    let lasting = built("slub@2.6.29", MIB, &TmpfsSwap { keeps: kept, ..program() });
    assert_ne!(lasting, usual);
    // What is taken out of the image is not read again.
    let discarded = built(
        "slub@2.6.29",
        MIB,
        &TmpfsSwap { keeps: Keeps { discards: true, shrinks: true, packs: false }, ..program() },
    );
    assert!(overwritten(&discarded) < overwritten(&usual) / 2, "{}", overwritten(&discarded));
}

#[test]
fn without_a_loop_device_nothing_goes_through_one() {
    let program = TmpfsSwap { second: Second::Tmpfs, ..program() };
    for one in built("slub@2.6.29", MIB, &program) {
        assert_eq!((one.counts.transfers, &one.counts.swap_ins[1..]), ((0, 0), &[0, 0][..]));
    }
}

#[test]
fn an_image_that_is_too_small_is_a_result() {
    let failed = build("slub@2.6.29", 32, &TmpfsSwap { image_mib: 256, ..program() });
    let said = failed.expect_err("8 MiB hold no tree of 11 MiB").to_string();
    assert!(said.contains("expected a larger image"), "{said}");
}

/// A file of 64 pages on ext2: written, dropped from the page cache, read again, removed.
#[test]
fn blocks_come_back_through_the_loop_device_and_stay_behind_when_files_go() {
    for discards in [false, true] {
        let (setup, guest) = small("slub@2.6.29", 32);
        let (policy, rules) = (VmPreset::parse("vm@2.6.29").expect("a preset").policy(), Rules::of(2, 6, 29));
        let moved = with_memory(&setup, 1, &guest, policy, rules, |memory| {
            let moved = Rc::new(Cell::new((0, 0, 0, 0)));
            let (of_task, result) = (memory.clone(), moved.clone());
            memory.kernel.start(memory.kernel.new_process(), None, move |task| {
                let format = Format { blocks: 4_096, bytes_per_inode: 8_192, inode_bytes: 128 };
                let volume = Volume::ext2(
                    &of_task,
                    task,
                    format,
                    LoopRules::default(),
                    Keeps { discards, shrinks: false, packs: false },
                );
                let device = volume.device().expect("a loop device").clone();
                let held = || of_task.vm.with(|state| state.mappings.get(device.backing).frames);
                let node = volume.create(task, volume.root());
                volume.write(task, &node, 64);
                let here = Here::new(&of_task, task);
                mm::sync(&of_task.vm, &here, &rules);
                let (written, before) = (device.transfers().0, held());
                mm::drop_pagecache(&of_task.vm, &here);
                let read_before = device.transfers().1;
                volume.read(task, &node);
                let read = device.transfers().1 - read_before;
                volume.remove(task, node);
                result.set((written, read, before, before - held()));
                of_task.stop();
            });
            memory.kernel.run()?;
            memory.check().map_err(Failed::Broken)?;
            Ok(moved.get())
        });
        let (written, read, before, gone) = moved.unwrap_or_else(|failed| panic!("{failed}"));
        // Beside the data: an indirect block, bitmaps, descriptor, inodes, the directory.
        assert!((65..=75).contains(&written), "{written} pages are written");
        assert_eq!(read, 64, "the file alone is read");
        assert_eq!(u64::from(before), written, "the image has what was written, and nothing else");
        assert_eq!(gone, if discards { 64 } else { 0 }, "discards: {discards}");
    }
}

/// 100 files of a page on ext2, whose dentries and inodes reclaim frees. A lookup reads a block of the table
/// and one of the directory, and the next one finds the file in memory.
#[test]
fn names_that_reclaim_freed_are_read_again() {
    for shrinks in [true, false] {
        let (setup, guest) = small("slub@2.6.29", 32);
        let policy = VmPreset::parse("vm@2.6.29").expect("a preset").policy();
        let read = with_memory(&setup, 1, &guest, policy, RULES, |memory| {
            let read = Rc::new(Cell::new((0, 0, 0, 0)));
            let (of_task, result) = (memory.clone(), read.clone());
            memory.kernel.start(memory.kernel.new_process(), None, move |task| {
                let format = Format { blocks: 4_096, bytes_per_inode: 8_192, inode_bytes: 128 };
                let keeps = Keeps { discards: false, shrinks, packs: false };
                let volume = Volume::ext2(&of_task, task, format, LoopRules::default(), keeps);
                let device = volume.device().expect("a loop device").clone();
                let nodes: Vec<_> = (0..100).map(|_| volume.create(task, volume.root())).collect();
                nodes.iter().for_each(|node| volume.write(task, node, 1));
                let here = Here::new(&of_task, task);
                mm::sync(&of_task.vm, &here, &RULES);
                let pages = || of_task.vm.with(|state| state.mappings.get(nodes[7].mapping).frames);
                let objects = |name: &str| {
                    let row = of_task.slabinfo().into_iter().find(|row| row.name == name);
                    row.map_or(0, |row| row.active)
                };
                let dentries = objects("dentry");
                shrinker::drop_slab(&of_task.vm, &here);
                // A grace period goes by.
                task.sleep(100_000_000_000);
                let freed = dentries.saturating_sub(objects("dentry"));
                let left = pages();
                mm::drop_pagecache(&of_task.vm, &here);
                let reads = |node| {
                    let before = device.transfers().1;
                    volume.bring(task, node);
                    device.transfers().1 - before
                };
                result.set((freed, left, reads(&nodes[7]), reads(&nodes[7])));
                nodes.into_iter().for_each(|node| volume.remove(task, node));
                of_task.stop();
            });
            memory.kernel.run()?;
            memory.check().map_err(Failed::Broken)?;
            Ok(read.get())
        });
        let (freed, left, first, second) = read.unwrap_or_else(|failed| panic!("{failed}"));
        // What CPUs keep of a slab counts as in use.
        assert_eq!(freed > 50, shrinks, "{freed} dentries");
        // An inode takes its clean pages along.
        assert_eq!((left, first, second), if shrinks { (0, 2, 0) } else { (1, 0, 0) }, "shrinks: {shrinks}");
    }
}

/// A task removes files whose metadata is in swap; another one frees dentries and inodes meanwhile. Nothing
/// is freed or counted twice.
#[test]
fn reclaim_takes_no_name_of_a_file_that_goes() {
    const FILES: u32 = 6;
    let (setup, guest) = small("slub@2.6.29", 32);
    let policy = VmPreset::parse("vm@2.6.29").expect("a preset").policy();
    let left = with_memory(&setup, 1, &guest, policy, RULES, |memory| {
        let left = Rc::new(Cell::new(FILES));
        let (of_task, now) = (memory.clone(), left.clone());
        memory.kernel.start(memory.kernel.new_process(), None, move |task| {
            let format = Format { blocks: 4_096, bytes_per_inode: 8_192, inode_bytes: 128 };
            let keeps = Keeps { discards: false, shrinks: true, packs: false };
            let volume = Volume::ext2(&of_task, task, format, LoopRules::default(), keeps);
            let mut nodes: Vec<_> = (0..FILES).map(|_| volume.create(task, volume.root())).collect();
            nodes.iter().for_each(|node| volume.write(task, node, 1));
            let here = Here::new(&of_task, task);
            mm::sync(&of_task.vm, &here, &RULES);
            let other = Volume::tmpfs(&of_task, task);
            let large = other.create(task, other.root());
            while let Some(node) = nodes.pop() {
                mm::sync(&of_task.vm, &here, &RULES);
                mm::drop_pagecache(&of_task.vm, &here);
                other.write(task, &large, 9_000);
                nodes.iter().for_each(|node| volume.bring(task, node));
                volume.remove(task, node);
                now.set(now.get() - 1);
            }
            other.remove(task, large);
            of_task.stop();
        });
        let (of_task, now) = (memory.clone(), left.clone());
        memory.kernel.start(memory.kernel.new_process(), None, move |task| {
            while now.get() > 0 {
                shrinker::drop_slab(&of_task.vm, &Here::new(&of_task, task));
                task.sleep(1_000_000_000);
            }
        });
        memory.kernel.run()?;
        memory.check().map_err(Failed::Broken)?;
        Ok(left.get())
    });
    assert_eq!(left, Ok(0));
}
