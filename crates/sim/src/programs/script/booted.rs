//! Pages of the boot that are on the lists when a script begins: of the program that waits for its end, and
//! blocks of the data disk's file system.

use crate::kernel::Task;
use crate::memory::{Here, Memory};
use slablab_vm::mappings::{Entry, Kind};
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::{Flags, MappingId, SpaceId};
use std::rc::Rc;

/// The program that waits.
pub(super) struct Booted {
    space: SpaceId,
    text: MappingId,
}

impl Booted {
    /// Brings the pages that the guest has ([`crate::memory::Boot`]), oldest first. Without memory it goes on
    /// with fewer.
    pub(super) fn new(memory: &Rc<Memory>, task: &Task) -> Booted {
        let (here, boot) = (Here::new(memory, task), memory.guest.boot);
        let space = memory.vm.with(|state| state.spaces.create());
        if boot.blocks > 0 {
            let device = memory.vm.with(|state| state.mappings.create(Kind::Device, boot.blocks));
            let mut file = OpenFile::new(device);
            for block in 0..boot.blocks {
                let _ = mm::read(&memory.vm, &here, &memory.rules, &mut file, block);
            }
            (0..boot.held).for_each(|block| hold(memory, device, block));
        }
        let text = memory.vm.with(|state| state.mappings.create(Kind::Pinned, boot.text));
        let regions = [
            (mm::map(&memory.vm, space, text), boot.text, false),
            (mm::anon(&memory.vm, space, boot.anon), boot.anon, true),
        ];
        for (region, pages, write) in regions {
            for page in 0..pages {
                let _ = mm::touch(&memory.vm, &here, &memory.rules, region, page, write);
            }
        }
        Booted { space, text }
    }

    /// The program ends.
    pub(super) fn end(self, memory: &Rc<Memory>, task: &Task) {
        let here = Here::new(memory, task);
        mm::exit(&memory.vm, &here, self.space);
        mm::unlink(&memory.vm, &here, self.text);
    }
}

/// The file system does not let go of a block that is in memory.
fn hold(memory: &Memory, device: MappingId, block: u32) {
    memory.vm.with(|state| {
        if let Entry::Frame(frame) = state.mappings.get(device).entry(block) {
            state.frames.set(frame, Flags::HELD);
        }
    });
}
