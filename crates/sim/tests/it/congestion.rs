//! Waits for a disk whose queue is congested (`congestion_wait` of 2.6.29).

use crate::disk::ide;
use crate::machine::setup;
use slablab_model::Timed;
use slablab_model::disk::{Disk, DiskKind};
use slablab_platform::{Gfp, Hooks, NodeId, Reclaim, ReclaimStep};
use slablab_sim::block::disk::queue::QueueSpec;
use slablab_sim::memory::{Guest, Here, with_memory};
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules, Why};
use slablab_vm::{Host, Place, Preset as VmPreset, Throttle};
use std::cell::Cell;
use std::rc::Rc;

const MS: u64 = 1_000_000_000;

/// A writer fills the queue of the disk with requests that lie apart, if it writes, and then takes a step.
/// Milliseconds that the step took.
fn took(writes: bool, step: impl Fn(&Here) + 'static) -> u64 {
    let mut setup = setup("slub@2.6.29", 1, 1);
    setup.spec.nodes[0].bytes = 64 << 20;
    let disk = Disk { bytes: 40 << 30, depth: 16, rotational: true, kind: DiskKind::Rotating(ide()) };
    let queue = QueueSpec::named("cfq@2.6.29").expect("a queue of this name");
    let guest = Guest { disk: [disk.clone(), disk], queue, ..Guest::default() };
    let policy = VmPreset::parse("vm@2.6.29").expect("a preset").policy();
    let rules = Rules::of(2, 6, 29);
    let found = with_memory(&setup, 1, &guest, policy, rules, |memory| {
        let found = Rc::new(Cell::default());
        let (of_task, result) = (memory.clone(), found.clone());
        memory.kernel.start(memory.kernel.new_process(), None, move |task| {
            let (vm, here) = (&of_task.vm, Here::new(&of_task, task));
            let mut file = OpenFile::new(vm.with(|state| state.mappings.create(Kind::File, 128 * 64)));
            for page in (0..if writes { 128 } else { 0 }).map(|page| page * 64) {
                mm::write(vm, &here, &rules, &mut file, page, 1, true).expect("memory");
            }
            let written = mm::write_back(vm, &here, &rules, Why::Pages(128));
            assert_eq!(written, if writes { 128 } else { 0 });
            assert_eq!(here.is_congested(Place::Mapping(file.mapping, 0)), writes);
            let before = Timed::clock();
            step(&here);
            result.set((Timed::clock() - before) / MS);
            of_task.stop();
        });
        memory.kernel.run()?;
        Ok(found.get())
    });
    found.unwrap_or_else(|failed| panic!("{failed}"))
}

/// A queue is congested from the 113th request on and until fewer than 103 are left: 26 of 128 take the disk
/// some 10 ms each.
#[test]
fn a_wait_ends_with_the_congestion() {
    for why in [Throttle::Congestion, Throttle::Dirty] {
        let ms = took(true, move |here| here.throttle(why, 10_000_000_000));
        assert!((26..1_000).contains(&ms), "{why:?}: {ms} ms");
        // Without congestion nothing ends it: the time goes by.
        assert_eq!(took(false, move |here| here.throttle(why, 100_000_000)), 100, "{why:?}");
    }
    // A sleep for another reason goes on.
    assert_eq!(took(true, |here| here.throttle(Throttle::NoProgress, 2_000_000_000)), 2_000);
}

/// A request for which nothing is free waits 20 ms before it tries again.
#[test]
fn a_request_waits_before_it_tries_again() {
    let ms = took(false, |_| {
        let step = ReclaimStep::Wait;
        let (node, gfp) = (NodeId(0), Gfp::KERNEL);
        let ask = Reclaim { node, class: 0, zone: 0, order: 0, gfp, reclaimer: false, attempt: 1, step };
        assert!(Timed::reclaim(ask).progress);
    });
    assert_eq!(ms, 20);
}
