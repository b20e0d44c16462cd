//! The start of the world: reserves its address space, and tells each part where it is.

use crate::per_cpu::{self, Owner};
use crate::space::{Space, begin_first_block};
use crate::{area, boot_memory, directory, memory, region, thread, topology};
use slablab_platform::Pfn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The options of [`crate::Native::start_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// What slots belong to. Slots are per thread if slots per CPU are not possible.
    pub slots: Owner,
    /// Whether the kernel may back the heap with huge pages where it can (`MADV_HUGEPAGE`).
    pub huge_pages: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        Wishes { slots: Owner::Thread, huge_pages: false }
    }
}

/// How a start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The world runs.
    Runs,
    /// There is not enough address space.
    NoMemory,
}

/// Starts the world, once. If there is no address space, the next call tries again.
pub(crate) fn start(wanted: Wishes) -> Start {
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if memory::frames() > 0 {
        return Start::Runs;
    }
    let Some(space) = Space::reserve() else { return Start::NoMemory };
    area::start(space.areas);
    directory::start(space.directory);
    boot_memory::start(space.boot_memory, space.boot_bytes);
    thread::start();
    topology::read();
    per_cpu::start(wanted.slots);
    if let Some(from) = memory::start(space.heap) {
        begin_first_block(from);
    }
    place(wanted.huge_pages);
    Start::Runs
}

static HUGE: AtomicBool = AtomicBool::new(false);

/// Whether huge pages may back the heap.
pub(crate) fn has_huge_pages() -> bool {
    HUGE.load(Relaxed)
}

/// Has each node's frames come from that node as long as it has memory, and allows huge pages if
/// `huge_pages`.
fn place(huge_pages: bool) {
    if memory::frames() == 0 {
        return;
    }
    let range =
        |first: Pfn, count: u32| (memory::address(first, 0).addr(), (count as usize) << memory::page_shift());
    if topology::nodes() > 1 {
        for node in (0..topology::nodes()).filter(|node| topology::has_memory(*node)) {
            let (first, count) = memory::node_frames(node);
            let (at, bytes) = range(first, count);
            // The range is in the heap, which is not used yet.
            region::prefer_node(at, bytes, node);
        }
    }
    if huge_pages {
        let (at, bytes) = range(Pfn(0), memory::frames());
        HUGE.store(region::allow_huge_pages(at, bytes), Relaxed);
    }
}
