//! Every frame has one holder at the end of a run: what is lost, or held twice, is found, with the zone and
//! who holds what.

use crate::pressure::setup;
use slablab_sim::kernel::Task;
use slablab_sim::memory::{Guest, Here, Memory, with_memory};
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules};
use slablab_vm::{Host, MappingId, Preset as VmPreset, Purpose};
use std::rc::Rc;

/// What the check says after a program that reads 64 pages of a file and does `then` with its mapping.
fn checked(then: impl Fn(&Rc<Memory>, &Task, MappingId) + 'static) -> Result<(), String> {
    let policy = VmPreset::parse("vm@6.1").expect("a preset").policy();
    let guest = Guest { min_free_kib: Some(512), ..Guest::default() };
    let checked = with_memory(&setup(4_400), 1, &guest, policy, Rules::of(6, 1, 0), |memory| {
        let of_task = memory.clone();
        memory.kernel.start(memory.kernel.new_process(), None, move |task| {
            let memory = &of_task;
            let here = Here::new(memory, task);
            let file = memory.vm.with(|state| state.mappings.create(Kind::File, 64));
            let mut open = OpenFile::new(file);
            for page in 0..64 {
                mm::read(&memory.vm, &here, &memory.rules, &mut open, page).expect("memory");
            }
            then(memory, task, file);
            memory.stop();
        });
        memory.kernel.run()?;
        Ok(memory.check())
    });
    checked.expect("the run ends")
}

#[track_caller]
fn check_lost(what: &str, then: impl Fn(&Rc<Memory>, &Task, MappingId) + 'static) {
    let said = checked(then).expect_err(what);
    let begin = format!("zone DMA32 of node 0: {what}, of 4400: free ");
    assert!(said.starts_with(&begin), "{said}");
    assert!(said.contains("anonymous 0, files 64, tmpfs 0, block devices 0 (64 of these on lists"), "{said}");
}

#[test]
fn a_lost_frame_is_found() {
    assert_eq!(checked(|_, _, _| {}), Ok(()));
    // A block that a task has and nobody frees.
    check_lost("4 allocated frames have no holder", |_, task, _| _ = task.alloc_pages(2));
    // A page that enters no mapping, and a page table of no region.
    for purpose in [Purpose::File, Purpose::Table] {
        check_lost("1 allocated frames have no holder", move |memory, task, _| {
            Here::new(memory, task).alloc(&memory.vm, purpose).expect("a frame");
        });
    }
    // A page of a file whose frame is freed behind its back.
    check_lost("1 frames have a holder and are free", |memory, task, file| {
        let frame = memory.vm.with(|state| state.mappings.get(file).entry(7).frame()).expect("in memory");
        Here::new(memory, task).free(&memory.vm, frame);
    });
}
