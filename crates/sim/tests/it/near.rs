//! `zone_reclaim_mode`: two nodes, the task's own full of pages of one file, and what goes when the task
//! wants more memory.

use crate::machine::costs;
use slablab_model::{Hardware, MachineSpec};
use slablab_pages::PagesPolicy;
use slablab_platform::CpuId;
use slablab_sim::memory::{Guest, Here, with_memory};
use slablab_sim::setup::{Boot, Setup};
use slablab_sim::tally::Failed;
use slablab_slabs::Preset;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules};
use slablab_vm::{Counter, DirtyLimit, Preset as VmPreset, Settings};
use std::cell::Cell;
use std::rc::Rc;

/// Pages of the file: most of a node of 4,096.
const FILE: u32 = 3_500;
/// Pages that the task wants then.
const WANTED: u32 = 1_000;

/// How the pages of the file are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Clean,
    Dirty,
    Mapped,
}

/// What a run leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    /// Of the file's pages, those in frames of the first node.
    file: u64,
    /// Of the wanted pages, those in frames of the second node.
    far: u64,
    /// Reclaims that freed too little.
    failed: u64,
    /// Pages that reclaim looked at.
    scanned: u64,
}

fn run(vm: &str, used: Use) -> Left {
    let spec = MachineSpec { memoryless_nodes: false, ..MachineSpec::uniform(2, 2, 16 << 20) };
    let hardware = Hardware { core: vec![0, 1], llc: vec![0, 1], socket: vec![0, 1], costs: costs() };
    let policy = VmPreset::parse(vm).expect("a preset");
    let [major, minor, patch] = policy.kernel;
    let engine = if major == 2 { "slub@2.6.29" } else { "slub@6.1" };
    let preset = Preset::parse(engine).expect("a preset");
    let setup = Setup { spec, hardware, preset, boot: Boot::default(), placement: None };
    let never = Some(DirtyLimit::Pages(1 << 20));
    let guest = Guest {
        settings: Settings { dirty_limit: never, dirty_background: never, ..policy.settings },
        pages: Some(PagesPolicy::for_release(major, minor, patch)),
        ..Guest::default()
    };
    let rules = Rules::of(major, minor, patch);
    let left = with_memory(&setup, 1, &guest, policy.policy(), rules, |memory| {
        let left = Rc::new(Cell::default());
        let (of_task, result) = (memory.clone(), left.clone());
        memory.kernel.start(memory.kernel.new_process(), None, move |task| {
            task.pin(CpuId(0));
            let (vm, here) = (&of_task.vm, Here::new(&of_task, task));
            let space = vm.with(|state| state.spaces.create());
            let mapping = vm.with(|state| state.mappings.create(Kind::File, FILE));
            let (mut file, region) = (OpenFile::new(mapping), mm::map(vm, space, mapping));
            for page in 0..FILE {
                let done = match used {
                    Use::Clean => mm::read(vm, &here, &rules, &mut file, page).is_some(),
                    Use::Dirty => mm::write(vm, &here, &rules, &mut file, page, 1, true).is_some(),
                    Use::Mapped => mm::touch(vm, &here, &rules, region, page, false).is_some(),
                };
                assert!(done, "memory");
            }
            let anon = mm::anon(vm, space, WANTED);
            (0..WANTED).for_each(|page| _ = mm::touch(vm, &here, &rules, anon, page, true).expect("memory"));
            let zones = vm.with(|state| state.holdings());
            let nodes = vm.with(|state| state.zones.iter().map(|zone| zone.node).collect::<Vec<_>>());
            let sum = |node, of: fn(&slablab_vm::Holdings) -> u64| {
                zones.iter().zip(&nodes).filter(|(_, at)| **at == node).map(|(zone, _)| of(zone)).sum()
            };
            let count = |counter| vm.with(|state| state.counters.get(counter));
            result.set(Left {
                file: sum(0, |zone| zone.file),
                far: sum(1, |zone| zone.anon),
                failed: count(Counter::ZoneReclaimFailed),
                scanned: count(Counter::PgScanDirect),
            });
            mm::exit(vm, &here, space);
            of_task.stop();
        });
        memory.kernel.run()?;
        memory.check().map_err(Failed::Broken)?;
        Ok(left.get())
    });
    left.unwrap_or_else(|failed| panic!("{vm}: {failed}"))
}

/// Which modes make pages of the file go, before the other node gives a page. With all others it gives every
/// page that the node has not, and no page of the file goes.
#[test]
fn pages_of_the_mode_go_before_another_node_is_asked() {
    let rows: [(&str, Use, &[u8]); 11] = [
        ("vm@2.6.29", Use::Clean, &[1, 3, 5, 7]),
        // Writes free nothing at once, so that the zone counts as full for a second; and pages that are
        // mapped do not count as pages that could go, in any mode.
        ("vm@2.6.29", Use::Dirty, &[]),
        ("vm@2.6.29", Use::Mapped, &[]),
        ("vm@6.1", Use::Clean, &[1, 3, 5, 7]),
        // The flusher, which reclaim wakes, makes them clean.
        ("vm@6.1", Use::Dirty, &[3, 7]),
        ("vm@6.1", Use::Mapped, &[5, 7]),
        ("vm@6.12", Use::Clean, &[1, 3, 5, 7]),
        ("vm@6.12", Use::Mapped, &[5, 7]),
        ("vm@6.1,lru_gen", Use::Clean, &[1, 3, 5, 7]),
        ("vm@6.1,lru_gen", Use::Mapped, &[5, 7]),
        // Generations let nothing go for a reclaimer that keeps dirty or mapped pages, since 6.3.
        ("vm@6.12,lru_gen", Use::Clean, &[7]),
    ];
    for (vm, used, modes) in rows {
        let without = run(&format!("{vm},zone_reclaim_mode=0"), used);
        assert!(without.far > 400 && without.file == u64::from(FILE), "{vm} {used:?}: {without:?}");
        for mode in [1, 3, 5, 7] {
            let left = run(&format!("{vm},zone_reclaim_mode={mode}"), used);
            let goes = left.file < u64::from(FILE) - 400 && left.far < 20;
            let stays = left.file == without.file && left.far == without.far;
            let (says, is) = if modes.contains(&mode) { ("go", goes) } else { ("stay", stays) };
            assert!(is, "{vm} {used:?} {mode}: pages do not {says}: {left:?}");
        }
    }
}

/// Nodes at the usual distance are not reclaimed by themselves.
#[test]
fn the_mode_is_0_at_boot_where_nodes_are_near() {
    for vm in ["vm@2.6.29", "vm@6.1", "vm@6.12"] {
        let [boot, off] =
            ["auto", "0"].map(|mode| run(&format!("{vm},zone_reclaim_mode={mode}"), Use::Clean));
        assert_eq!((boot.file, boot.far, boot.scanned), (off.file, off.far, off.scanned), "{vm}");
    }
}

/// A zone of 2.6 that gave too little is left alone for a second; a node of 6.x is tried by each request, and
/// failures are counted.
#[test]
fn a_full_zone_is_remembered_in_2_6() {
    let of = |vm: &str| run(&format!("{vm},zone_reclaim_mode=3"), Use::Dirty);
    let (old, new) = (of("vm@2.6.29"), of("vm@6.12"));
    assert!(old.file == u64::from(FILE) && old.failed == 0, "{old:?}");
    assert!(new.failed > 100, "{new:?}");
}

/// Fewer pages of files than the ratio keeps: none goes.
#[test]
fn a_part_of_the_pages_of_files_stays() {
    for vm in ["vm@2.6.29", "vm@6.1"] {
        let kept = run(&format!("{vm},zone_reclaim_mode=1,min_unmapped_ratio=90"), Use::Clean);
        assert_eq!((kept.file, kept.scanned), (u64::from(FILE), 0), "{vm}");
    }
    // 6.x's kswapd comes along, woken for a boost, and goes by other marks.
    let some = run("vm@2.6.29,zone_reclaim_mode=1,min_unmapped_ratio=80", Use::Clean);
    assert!((3_200..3_400).contains(&some.file), "{some:?}");
}
