//! An application: an address space with a program's text, a heap, and what it does to them.

use super::{Desktop, NoMemory};
use crate::kernel::Task;
use crate::memory::Here;
use slablab_model::{Ps, Timed};
use slablab_vm::mappings::Kind;
use slablab_vm::mm;
use slablab_vm::{MappingId, RegionId, SpaceId};

/// Pages that a fault on a program's text reads together.
const CLUSTER: u32 = 16;
/// Touches that are charged together.
const PIECE: usize = 64;
/// What a program computes for each page of text or heap when it starts (assumed).
const START: Ps = 200_000_000;

/// Pages of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Its name.
    pub name: &'static str,
    /// Pages of its text and libraries, which it maps.
    pub text: u32,
    /// Pages of its heap.
    pub heap: u32,
}

impl Size {
    /// The part 1 / n of its pages.
    fn part(self, n: u32) -> Size {
        Size { text: self.text / n, heap: self.heap / n, ..self }
    }
}

/// A running application.
pub(super) struct App {
    pub(super) size: Size,
    pub(super) space: SpaceId,
    text: RegionId,
    pub(super) heap: RegionId,
}

/// Whether pages are loaded from or stored to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Load,
    Store,
}

impl App {
    /// Maps a program. Its text is a file that was there before.
    pub(super) fn exec(desktop: &Desktop, size: Size) -> App {
        let file = desktop.memory.vm.with(|state| state.mappings.create(Kind::File, size.text));
        App::of_text(desktop, size, file)
    }

    /// Maps a program whose text other processes may share.
    pub(super) fn of_text(desktop: &Desktop, size: Size, file: MappingId) -> App {
        let vm = &desktop.memory.vm;
        let space = vm.with(|state| state.spaces.create());
        let text = mm::map(vm, space, file);
        let heap = mm::anon(vm, space, size.heap);
        App { size, space, text, heap }
    }

    /// Starts a program: it touches its text in clusters in a random order, then writes its heap.
    pub(super) fn start(desktop: &Desktop, task: &Task, size: Size) -> Result<App, NoMemory> {
        App::start_part(desktop, task, size, 1)
    }

    /// Starts a program that touches the first 1 / n of its text and of its heap.
    pub(super) fn start_part(desktop: &Desktop, task: &Task, size: Size, n: u32) -> Result<App, NoMemory> {
        let app = App::exec(desktop, size);
        let size = size.part(n);
        desktop.run_as(task, &app, || {
            let mut clusters: Vec<u32> = (0..size.text.div_ceil(CLUSTER)).collect();
            desktop.shuffle(&mut clusters);
            for cluster in clusters {
                let pages: Vec<u32> = (cluster * CLUSTER..((cluster + 1) * CLUSTER).min(size.text)).collect();
                touch(desktop, task, app.text, &pages, Touch::Load)?;
                task.compute(START * pages.len() as u64);
            }
            for first in (0..size.heap).step_by(PIECE) {
                let pages: Vec<u32> = (first..(first + PIECE as u32).min(size.heap)).collect();
                touch(desktop, task, app.heap, &pages, Touch::Store)?;
                task.compute(START * pages.len() as u64);
            }
            Ok(())
        })?;
        Ok(app)
    }

    /// The user works with the program: it touches a part of its text and heap, in percent, at random.
    pub(super) fn used(&self, desktop: &Desktop, task: &Task, percent: u32) -> Result<(), NoMemory> {
        desktop.run_as(task, self, || {
            let text = desktop.some(self.size.text, percent);
            touch(desktop, task, self.text, &text, Touch::Load)?;
            touch(desktop, task, self.heap, &desktop.some(self.size.heap, percent), Touch::Store)
        })
    }

    /// The program ends: it touches a part of its heap first, then its memory is freed.
    pub(super) fn close(self, desktop: &Desktop, task: &Task, percent: u32) -> Result<(), NoMemory> {
        self.used(desktop, task, percent)?;
        let (vm, here) = (&desktop.memory.vm, Here::new(&desktop.memory, task));
        task.syscall(|| mm::exit(vm, &here, self.space));
        Ok(())
    }

    /// Pages in frames, and all pages: RSS and VSZ.
    pub(super) fn resident(&self, desktop: &Desktop) -> (u64, u64) {
        desktop.memory.vm.with(|state| {
            let regions = state.spaces.space(self.space).regions.iter();
            regions.fold((0, 0), |(resident, pages), region| {
                let region = state.spaces.region(*region);
                (resident + u64::from(region.resident), pages + u64::from(region.pages()))
            })
        })
    }

    /// The region of its text.
    pub(super) fn text(&self) -> RegionId {
        self.text
    }
}

/// Touches pages of a region.
pub(super) fn touch(
    desktop: &Desktop,
    task: &Task,
    region: RegionId,
    pages: &[u32],
    how: Touch,
) -> Result<(), NoMemory> {
    let memory = &desktop.memory;
    let here = Here::new(memory, task);
    for piece in pages.chunks(PIECE) {
        for page in piece {
            let touched = mm::touch(&memory.vm, &here, &memory.rules, region, *page, how == Touch::Store);
            touched.ok_or(NoMemory)?;
        }
        Timed::charge(memory.prices().touch * piece.len() as u64);
        task.preemption_point();
    }
    if memory.is_killed(task.id) { Err(NoMemory) } else { Ok(()) }
}
