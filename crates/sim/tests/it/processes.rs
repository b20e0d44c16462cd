//! What processes of a script share and copy: memory at a fork, files by name, queues, caches.

use crate::machine::costs;
use slablab_model::{Hardware, MachineSpec};
use slablab_sim::memory::Guest;
use slablab_sim::memory::views::Snapshot;
use slablab_sim::programs::script::{Answer, Phase, run};
use slablab_sim::setup::{Boot, Setup};
use slablab_slabs::Preset;
use slablab_trace::script::Script;
use slablab_vm::Preset as VmPreset;
use slablab_vm::mm::Rules;
use std::sync::Arc;

/// Runs a script that can spawn `one.t`.
fn run_both(main: &str, one: &str) -> Answer {
    let spec = MachineSpec { memoryless_nodes: false, ..MachineSpec::uniform(1, 1, 4_400 << 12) };
    let hardware = Hardware { core: vec![0], llc: vec![0], socket: vec![0], costs: costs() };
    let preset = Preset::parse("slub@6.1").expect("a preset");
    let setup = Setup { spec, hardware, preset, boot: Boot::default(), placement: None };
    let mut load = |_: &str| Ok(one.to_string());
    let script = Arc::new(Script::parse("main.t", main, &mut load).expect("a script"));
    let policy = VmPreset::parse("vm@6.1").expect("a preset").policy();
    let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
    run(&setup, 1, &guest, policy, Rules::of(6, 1, 0), &script).expect("it ends")
}

#[track_caller]
fn phase<'a>(answer: &'a Answer, record: usize, label: &str) -> &'a Phase {
    let phases = &answer.records[record].phases;
    phases.iter().find(|phase| phase.label == label).expect("a phase of this label")
}

/// Pages that became free in a phase.
fn freed(answer: &Answer, label: &str) -> i64 {
    let phase = phase(answer, 0, label);
    let free =
        |at: &Snapshot| at.meminfo.iter().find(|(name, _)| *name == "MemFree").map_or(0, |row| row.1 / 4);
    free(&phase.end) as i64 - free(&phase.begin) as i64
}

#[test]
fn a_child_has_its_parents_memory_until_one_of_both_writes() {
    let main = "anon a 1\nphase fill\nacc x1 a seq m w\nspawn one one.t\nuntil one\nphase shared\n\
                acc x1 a seq m w\ngo one\njoin one\nphase alone\nacc x1 a seq m w\nphase end\n";
    let answer = run_both(main, "ready\n");
    let minor = ["fill", "shared", "alone"].map(|label| phase(&answer, 0, label).usage.minor);
    // Each page is copied once.
    assert_eq!(minor, [256, 256, 0]);
}

#[test]
fn a_tmpfs_file_has_a_name_that_outlives_its_process() {
    let child = "shm s 4\nacc 1000 s seq s w\nready\n";
    let main = "spawn one one.t\nuntil one\ngo one\njoin one\nshm s 4\nphase see\nphase read\n\
                acc 1000 s seq s r\nfree s\nphase end\n";
    let answer = run_both(main, child);
    assert_eq!(phase(&answer, 0, "see").residency[0].1.counts(), [24, 1_000, 0]);
    // The child's pages, mapped by nobody else, go with the name.
    assert!(freed(&answer, "read") > 800, "{}", freed(&answer, "read"));
}

#[test]
fn a_tmpfs_file_without_a_name_stays_while_a_child_maps_it() {
    let main = "shm s 4\nacc x1 s seq s w\nspawn one one.t\nuntil one\nphase free\nfree s\nphase join\n\
                go one\njoin one\nphase end\n";
    let answer = run_both(main, "ready\n");
    let freed = |label| freed(&answer, label);
    assert!(freed("free") < 10 && freed("join") > 800, "{} {}", freed("free"), freed("join"));
}

#[test]
fn each_ready_waits_for_a_go_of_its_own() {
    let child = "phase a\nready\nphase b\nready\nphase c\n";
    let main = "spawn one one.t\nphase first\nuntil one\nsleep 10\ngo one\nphase second\nuntil one\nsleep 10\n\
                phase third\ngo one\njoin one\n";
    let answer = run_both(main, child);
    let times = |record, label| phase(&answer, record, label).uptime_ns;
    assert!(times(1, "b") >= times(0, "first"));
    // The second `go` is 10 ms after the second `ready`.
    assert!(times(1, "c") >= times(0, "second") && times(0, "second") >= times(1, "b") + 10_000_000);
}

#[test]
fn a_fork_shares_queue_and_pipes() {
    let child = "phase child\nmsg 8 4040\nready\nphase rest\n";
    let main = "phase send\nmsg 8 8192\npipes 60 300\npipes 1 70000\nspawn one one.t\nuntil one\n\
                phase receive\nmsgfree 1\nmsgfree 0\nphase close\npipesfree\nphase join\ngo one\njoin one\n";
    let answer = run_both(main, child);
    assert_eq!(phase(&answer, 0, "send").counts, [8 + 60, 1, 0]);
    assert_eq!(phase(&answer, 1, "child").counts, [8, 0, 0]);
    assert_eq!(phase(&answer, 0, "receive").counts, [2 + 14, 0, 0]);
    // Rings of 512 buffers: 8 pages each, which the child has until it ends.
    let freed = |label| freed(&answer, label);
    assert!(freed("close") < 8 && freed("join") > 300, "{} {}", freed("close"), freed("join"));
}

#[test]
fn a_file_has_the_size_of_its_largest_user() {
    let child = "file big 2\nphase read\nacc x1 big seq s r\nready\n";
    let main = "file big 1\nspawn one one.t\nuntil one\nphase see\nacc x1 big seq m r\ngo one\njoin one\n";
    let answer = run_both(main, child);
    assert_eq!(phase(&answer, 1, "read").residency[0].1.counts(), [0, 512, 0]);
    let see = phase(&answer, 0, "see");
    assert_eq!((see.residency[0].1.counts(), see.usage.major), ([0, 256, 0], 0));
}

#[test]
fn names_are_dropped_and_looked_up_again() {
    let main = "recslab 1\nphase stat\nstat /d 20 50 1\nphase part\nstat /d 10 50 1\nstatuni /d 20 30 40\n\
                phase slabs\nset /proc/sys/vm/drop_caches 2\nsleep 50\nphase again\nstat /d 20 50 1\n\
                phase all\ndrop\nsleep 50\nphase last\nstat /d 20 50 1\n";
    let answer = run_both(main, "");
    let dentries = |label| {
        let rows = phase(&answer, 0, label).slabs.as_ref().expect("recslab 1");
        rows.iter().find(|row| row.name == "dentry").map_or(0, |row| row.active)
    };
    let read = |label| phase(&answer, 0, label).delta("pgpgin");
    assert!(dentries("stat") >= 1_020 && dentries("slabs") < 300, "{}", dentries("slabs"));
    // Slabs on the CPU's own lists count as in use.
    // A part of the tree is in memory with the whole; blocks stay when names go, until they are dropped too.
    let reads = ["stat", "part", "again", "last"].map(read);
    assert!(reads[0] > 0 && reads[1..] == [0, 0, reads[0]], "{reads:?}");
}
