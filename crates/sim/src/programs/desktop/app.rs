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
/// What a program computes for each page of text or heap, needed or not, when it starts (assumed).
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

/// A running application.
pub(super) struct App {
    pub(super) size: Size,
    pub(super) space: SpaceId,
    text: RegionId,
    pub(super) heap: RegionId,
    /// Clusters of the text, in the order in which the start needs them: the pages that it needs of each.
    clusters: Vec<Vec<u32>>,
    /// Pages of the heap that it needs.
    heap_needs: Vec<u32>,
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
        desktop.memory.processes.show(size.name, space);
        App { size, space, text, heap, clusters: Vec::new(), heap_needs: Vec::new() }
    }

    /// Starts a program that needs some of its text and all of its heap.
    pub(super) fn start(desktop: &Desktop, task: &Task, size: Size) -> Result<App, NoMemory> {
        App::exec(desktop, size).begin(desktop, task, [desktop.habits.text, 100])
    }

    /// The program begins: it goes through its text in clusters in a random order, of which it touches some
    /// pages, then it writes its heap. `percent`: the parts of its text and of its heap that it needs, now
    /// and later.
    pub(super) fn begin(
        mut self,
        desktop: &Desktop,
        task: &Task,
        percent: [u32; 2],
    ) -> Result<App, NoMemory> {
        let size = self.size;
        let mut clusters: Vec<u32> = (0..size.text.div_ceil(CLUSTER)).collect();
        desktop.shuffle(&mut clusters);
        self.clusters = clusters.into_iter().map(|at| needed(desktop, size.text, at, percent[0])).collect();
        self.heap_needs = (0..size.heap * percent[1] / 100).collect();
        desktop.run_as(task, &self, || {
            for cluster in &self.clusters {
                touch(desktop, task, self.text, cluster, Touch::Load)?;
                task.compute(START * Ps::from(CLUSTER));
            }
            for pages in self.heap_needs.chunks(PIECE) {
                touch(desktop, task, self.heap, pages, Touch::Store)?;
                task.compute(START * pages.len() as u64);
            }
            Ok(())
        })?;
        Ok(self)
    }

    /// The program works: it touches a part of the text and of the heap that it needs, in percent, at random.
    pub(super) fn used(&self, desktop: &Desktop, task: &Task, percent: u32) -> Result<(), NoMemory> {
        let text = desktop.some(&self.clusters.concat(), percent);
        let heap = desktop.some(&self.heap_needs, percent);
        desktop.run_as(task, self, || {
            touch(desktop, task, self.text, &text, Touch::Load)?;
            touch(desktop, task, self.heap, &heap, Touch::Store)
        })
    }

    /// The program ends: it touches a part of what it needs first, then its memory is freed.
    pub(super) fn close(self, desktop: &Desktop, task: &Task, percent: u32) -> Result<(), NoMemory> {
        self.used(desktop, task, percent)?;
        self.exit(desktop, task);
        Ok(())
    }

    /// Its memory is freed.
    pub(super) fn exit(&self, desktop: &Desktop, task: &Task) {
        let (vm, here) = (&desktop.memory.vm, Here::new(&desktop.memory, task));
        desktop.memory.processes.hide(self.space);
        task.syscall(|| mm::exit(vm, &here, self.space));
    }

    /// The region of its text.
    pub(super) fn text(&self) -> RegionId {
        self.text
    }
}

/// The pages of a cluster of a text that a program needs: a part of them, in percent, at least one, in a
/// random order.
fn needed(desktop: &Desktop, text: u32, cluster: u32, percent: u32) -> Vec<u32> {
    let mut pages: Vec<u32> = (cluster * CLUSTER..((cluster + 1) * CLUSTER).min(text)).collect();
    desktop.shuffle(&mut pages);
    pages.truncate((pages.len() * percent as usize / 100).max(1));
    pages
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
        let (mut left, write) = (piece, how == Touch::Store);
        loop {
            let present = mm::touch_present(&memory.vm, region, left.iter().copied(), write);
            left = &left[present as usize..];
            let Some((page, after)) = left.split_first() else { break };
            left = after;
            mm::touch(&memory.vm, &here, &memory.rules, region, *page, write).ok_or(NoMemory)?;
        }
        Timed::charge(memory.prices().touch * piece.len() as u64);
        task.preemption_point();
    }
    if memory.processes.is_killed(task.id) { Err(NoMemory) } else { Ok(()) }
}
