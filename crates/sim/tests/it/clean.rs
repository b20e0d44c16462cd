//! Clean pages of 2.4 (`inactive_clean`): the page allocator counts them, and takes or frees them.

use crate::machine::costs;
use slablab_model::{Hardware, MachineSpec, Timed};
use slablab_pages::PagesPolicy;
use slablab_platform::{Gfp, Hooks, NodeId, Reclaim, ReclaimStep};
use slablab_sim::memory::{Guest, Here, with_memory};
use slablab_sim::setup::{Boot, Setup};
use slablab_sim::tally::Failed;
use slablab_slabs::Preset;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules};
use slablab_vm::{Host, Mark, Preset as VmPreset};
use std::cell::Cell;
use std::rc::Rc;

const NODE: NodeId = NodeId(0);
const MS: u64 = 1_000_000_000;

/// Free and clean pages of the machine's zone, and those that the page allocator hears of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pages {
    free: u64,
    clean: u64,
    heard: u64,
}

/// The pages after a file of twice the memory was read, after a step of the page allocator, and the low mark.
fn after(vm: &str, step: ReclaimStep) -> (Pages, Pages, u64) {
    let spec = MachineSpec { memoryless_nodes: false, ..MachineSpec::uniform(1, 1, 16 << 20) };
    let hardware = Hardware { core: vec![0], llc: vec![0], socket: vec![0], costs: costs() };
    let preset = Preset::parse("slab@2.4").expect("a preset");
    let setup = Setup { spec, hardware, preset, boot: Boot::default(), placement: None };
    let policy = VmPreset::parse(vm).expect("a preset");
    let [major, minor, patch] = policy.kernel;
    let guest = Guest {
        zones: None,
        settings: policy.settings,
        pages: Some(PagesPolicy::for_release(major, minor, patch)),
        ..Guest::default()
    };
    let rules = Rules::of(major, minor, patch);
    let found = with_memory(&setup, 1, &guest, policy.policy(), rules, |memory| {
        let found = Rc::new(Cell::default());
        let (of_task, result) = (memory.clone(), found.clone());
        memory.kernel.start(memory.kernel.new_process(), None, move |task| {
            let (vm, here) = (&of_task.vm, Here::new(&of_task, task));
            let mut file = OpenFile::new(vm.with(|state| state.mappings.create(Kind::File, 8_192)));
            for page in 0..8_192 {
                mm::read(vm, &here, &rules, &mut file, page).expect("memory");
            }
            let pages = || Pages {
                free: here.free_pages(0),
                clean: vm.with(|state| vm.policy.clean_pages(state, 0)),
                heard: Timed::clean_frames(NODE, 0),
            };
            let before = pages();
            let (order, gfp) = (1, Gfp::KERNEL);
            let ask =
                Reclaim { node: NODE, class: 0, zone: 0, order, gfp, reclaimer: false, attempt: 0, step };
            Timed::reclaim(ask);
            task.sleep(MS);
            result.set((before, pages(), here.mark(0, Mark::Low)));
            of_task.stop();
        });
        memory.kernel.run()?;
        memory.check().map_err(Failed::Broken)?;
        Ok(found.get())
    });
    found.unwrap_or_else(|failed| panic!("{vm}: {failed}"))
}

/// Clean pages count for the page allocator; kreclaimd frees them until as many pages as low are free.
#[test]
fn kreclaimd_frees_clean_pages() {
    for vm in ["vm@2.4.8", "vm@2.4.9", "vm@2.4.9-ac14"] {
        let (before, after, low) = after(vm, ReclaimStep::WakeKreclaimd);
        assert!(before.free < low && before.clean > low - before.free, "{vm}: {before:?}, low {low}");
        assert_eq!((before.heard, after.heard), (before.clean, after.clean), "{vm}");
        let freed = low - before.free;
        assert_eq!((after.free, after.clean), (low, before.clean - freed), "{vm}");
    }
}

/// A request for a block makes pages clean; one for a page does not ask for it. 2.4.10 has no clean pages.
#[test]
fn a_request_for_a_block_makes_pages_clean() {
    let (before, laundered, _) = after("vm@2.4.8", ReclaimStep::Launder);
    assert!(laundered.clean > before.clean && laundered.free == before.free, "{before:?}, {laundered:?}");
    let (before, laundered, _) = after("vm@2.4.10", ReclaimStep::Launder);
    assert_eq!((before.clean, before.heard, laundered), (0, 0, before));
}
