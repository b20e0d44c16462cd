//! Who writes old dirty pages: in 2.4 kupdate alone, at its time; later the flusher whenever it is woken.

use crate::disk::ide;
use crate::machine::setup;
use slablab_model::disk::{Disk, DiskKind};
use slablab_sim::block::disk::queue::QueueSpec;
use slablab_sim::memory::{Guest, Here, with_memory};
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules};
use slablab_vm::{Host, Preset as VmPreset};
use std::cell::Cell;
use std::rc::Rc;

const SECOND: u64 = 1_000_000_000_000;

/// A task makes 40 pages dirty, which are old soon, and wakes the flusher. Dirty pages 2 s later, and after
/// the flusher's time, 60 s.
fn left(vm: &str, engine: &str) -> [u64; 2] {
    let mut setup = setup(engine, 1, 1);
    setup.spec.nodes[0].bytes = 64 << 20;
    let disk = Disk { bytes: 40 << 30, depth: 1, rotational: true, kind: DiskKind::Rotating(ide()) };
    let preset = VmPreset::parse(vm).expect("a preset");
    let [major, minor, patch] = preset.kernel;
    let rules = Rules::of(major, minor, patch);
    let mut guest = Guest {
        disk: [disk.clone(), disk],
        queue: QueueSpec::linus(64 << 20),
        writeback_every: 60 * SECOND,
        ..Guest::default()
    };
    guest.settings.dirty_expire = 1_000_000_000;
    let found = with_memory(&setup, 1, &guest, preset.policy(), rules, |memory| {
        let found = Rc::new(Cell::default());
        let (of_task, result) = (memory.clone(), found.clone());
        memory.kernel.start(memory.kernel.new_process(), None, move |task| {
            let (vm, here) = (&of_task.vm, Here::new(&of_task, task));
            let mut file = OpenFile::new(vm.with(|state| state.mappings.create(Kind::File, 40)));
            for page in 0..40 {
                mm::write(vm, &here, &rules, &mut file, page, 1, true).expect("memory");
            }
            task.sleep(2 * SECOND);
            here.wake_flushers(0);
            let after = |time| {
                task.sleep(time);
                vm.with(|state| state.dirty.file)
            };
            result.set([2 * SECOND, 60 * SECOND].map(after));
            mm::unlink(vm, &here, file.mapping);
            of_task.stop();
        });
        memory.kernel.run()?;
        Ok(found.get())
    });
    found.unwrap_or_else(|failed| panic!("{vm}: {failed}"))
}

/// bdflush writes one batch of 32 pages; kupdate the others, when its time has come.
#[test]
fn bdflush_leaves_old_pages_to_kupdate() {
    assert_eq!(left("vm@2.4.10", "slab@2.4"), [8, 0]);
    assert_eq!(left("vm@2.6.29", "slub@2.6.29"), [0, 0]);
}
