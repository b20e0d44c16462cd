//! The memory of a simulated kernel: page replacement with time, tasks and devices.
//!
//! ```text
//! with_memory(setup, seed, guest, policy) ── Memory ── Kernel::start(program) ── Kernel::run
//!   a task          mm::touch, read, write over (Vm, Here)
//!   page allocator  Platform::reclaim ── kswapd is woken; the policy's direct reclaim, in the asking task
//!   kswapd, flusher tasks of their own
//!   disks           bios of frames ── queue, elevator ── interrupt: frames are unlocked, tasks wake
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `host` | [`Here`]: the interface `Host` of the room `vm`, in the running task or interrupt |
//! | `account` | every frame has one holder |
//! | `asks` | who asked for blocks of pages, for kswapd, for pages in swap |
//! | `daemons` | kswapd, kreclaimd, the flusher, the sums of statistics |
//! | `buffers` | buffer heads of pages |
//! | [`caches`] | dentries and inodes that reclaim frees |
//! | `compact` | kcompactd, direct compaction |
//! | `disk` | a disk behind its queue |
//! | `names` | [`Unused`]: names that the kernel holds when programs start |
//! | [`loopback`] | a loop device on a file of tmpfs |
//! | [`volume`] | files of tmpfs, and of ext2 on a loop device |
//! | [`guest`] | how the machine is set up: what is free at the start, swap, disks |
//! | `oom` | who is killed; when reclaim goes on without an end |
//! | [`sampler`] | samples of all that at fixed times; tracks of a recording |
//! | `shrinkers` | [`Shrinks`]: caches of objects that reclaim can free |
//! | `trees` | nodes of the page cache's trees as slab objects |
//! | `unused` | dentries and inodes of ext2 that reclaim frees |
//! | [`views`] | /proc/vmstat, meminfo, buddyinfo, /sys/block as values |
//!
//! **Frames.** Slab caches, page tables and pages share one page allocator. A frame has its number there.
//!
//! **Time.** Work of the memory costs cycles ([`Prices`], assumed); locks, lines and slab caches cost what
//! they cost everywhere in this crate. An interrupt of a disk is served where the running task works or may
//! be preempted.

mod account;
mod asks;
mod buffers;
pub mod caches;
mod compact;
mod daemons;
mod disk;
pub mod guest;
mod host;
pub mod loopback;
mod names;
mod oom;
mod prices;
pub mod sampler;
mod shrinkers;
mod trees;
mod unused;
pub mod views;
pub mod volume;

pub use asks::{Cause, ORDERS, Reader};
pub use guest::Guest;
pub use host::Here;
pub use names::Unused;
pub use oom::Killed;
pub use prices::Prices;
pub use shrinkers::Shrinks;

use crate::kernel::era::Era;
use crate::kernel::tally::Failed;
use crate::kernel::{Kernel, Task, WaitQueue, Waiting, with_pages};
use crate::record::Recorder;
use crate::sched::TaskId;
use crate::setup::Setup;
use account::Account;
use asks::Asks;
use buffers::Buffers;
use compact::Kcompactd;
use daemons::{Flusher, Kreclaimd, Kswapd, Refresher, Summer};
use disk::{BlockDisk, PAGE_SECTORS};
use loopback::Loop;
use names::Names;
use oom::Processes;
use sampler::{PartEnd, Sample};
use slablab_model::{Ps, Timed};
use slablab_platform::{Gfp, NodeId, Topology};
use slablab_vm::mm::{self, Rules};
use slablab_vm::{Io, MappingId, Replacement, Settings, State, Swap, Throttle, Vm, Zone};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use trees::TreeNodes;

/// Places of the disks in [`Memory::disks`].
const SWAP: usize = 0;
const DATA: usize = 1;
/// What a throttled task waits for, by [`slablab_vm::Throttle`].
const THROTTLES: [&str; 6] = [
    "for congested disks",
    "for pages under writeback",
    "for reclaim to make progress",
    "for isolated pages",
    "for half of the reserve",
    "for dirty pages to be written",
];

/// A task's I/O, in blocks of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// The memory of a kernel.
pub struct Memory {
    /// Its kernel.
    pub kernel: Rc<Kernel>,
    /// Pages and their policy.
    pub vm: Vm,
    /// What faults, files and writers do.
    pub rules: Rules,
    /// How the machine is set up.
    pub guest: Guest,
    prices: Prices,
    /// The node of each zone of the room `vm`, and its index there.
    zones: Vec<(NodeId, u8)>,
    disks: [BlockDisk; 2],
    daemons: Vec<Kswapd>,
    compactors: Vec<Kcompactd>,
    kreclaimd: Kreclaimd,
    buffers: Buffers,
    flusher: Flusher,
    summer: Summer,
    refresher: Refresher,
    frame_waits: RefCell<BTreeMap<u32, Rc<WaitQueue>>>,
    throttles: [WaitQueue; THROTTLES.len()],
    /// Writes that ended while reclaimers slept for pages under writeback, and how many sleep.
    writes: Cell<(u32, u32)>,
    /// Tasks that keep their bios together until they wait.
    plugged: RefCell<BTreeSet<TaskId>>,
    blocks: RefCell<BTreeMap<TaskId, Blocks>>,
    /// The first sector of each file, and the first free one.
    extents: RefCell<(BTreeMap<MappingId, u64>, u64)>,
    loops: RefCell<Vec<Rc<Loop>>>,
    account: Account,
    asks: Asks,
    nodes: TreeNodes,
    processes: Processes,
    shrinkers: RefCell<Vec<Rc<dyn Shrinks>>>,
    /// What kswapd's looks at pages and entries cost so far.
    kswapd_work: Cell<Ps>,
    /// When a page was last allocated or freed.
    moved_at: Cell<Ps>,
    stopping: Cell<bool>,
    /// What the memory tells.
    recorder: Recorder,
    samples: RefCell<Vec<Sample>>,
    parts: RefCell<Vec<PartEnd>>,
}

/// Makes a machine, enters it, boots a kernel there with this memory and policy, and runs `f` on it.
///
/// # Errors
/// A machine that cannot be modelled; what `f` returns.
pub fn with_memory<T>(
    setup: &Setup,
    seed: u64,
    guest: &Guest,
    policy: Box<dyn Replacement>,
    rules: Rules,
    f: impl FnOnce(&Rc<Memory>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    with_recorded_memory(setup, seed, &Recorder::default(), guest, policy, rules, f)
}

/// Makes a machine, enters it, boots a kernel there with this memory and policy, which tells `recorder` what
/// it does, and runs `f` on it.
///
/// # Errors
/// A machine that cannot be modelled; what `f` returns.
pub fn with_recorded_memory<T>(
    setup: &Setup,
    seed: u64,
    recorder: &Recorder,
    guest: &Guest,
    policy: Box<dyn Replacement>,
    rules: Rules,
    f: impl FnOnce(&Rc<Memory>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    let pages = guest.pages(setup.preset.pages(), Era::of(&setup.preset));
    with_pages(setup, seed, recorder, &guest.caches, pages, |kernel| {
        let memory = Memory::boot(kernel, recorder, guest, policy, rules);
        let result = f(&memory);
        memory.hand_over();
        Timed::set_reclaim(|_| slablab_platform::Reclaimed::NOTHING);
        result
    })
}

/// The zones of a machine, and the node and class of each.
fn zones(kernel: &Kernel) -> (Vec<Zone>, Vec<(NodeId, u8)>) {
    let pages = kernel.heap.pages();
    let (mut zones, mut places) = (Vec::new(), Vec::new());
    for node in (0..Timed::nodes()).map(NodeId) {
        for class in pages.zones_of(node) {
            let Some(info) = pages.zone_info(node, class) else { continue };
            let frames = info.start.0..info.start.0 + info.frames;
            let managed = u64::from(info.frames);
            zones.push(Zone { name: info.name, node: node.0, class, frames, managed });
            places.push((node, class));
        }
    }
    (zones, places)
}

impl Memory {
    fn boot(
        kernel: &Rc<Kernel>,
        recorder: &Recorder,
        guest: &Guest,
        policy: Box<dyn Replacement>,
        rules: Rules,
    ) -> Rc<Memory> {
        let (zones, places) = zones(kernel);
        let lists = policy.lists(zones.len() as u16, Timed::nodes());
        let swap = Swap::new(guest.swap_pages, guest.slot_rule);
        let mut state = State::new(zones, swap, lists, Settings { ..guest.settings });
        if guest.tree_nodes {
            state.trees.keep();
        }
        let disks = guest.disks();
        let memory = Rc::new(Memory {
            kernel: kernel.clone(),
            vm: Vm::new(state, policy),
            rules,
            guest: guest.clone(),
            prices: Timed::hardware(|hardware| Prices::of_costs(&hardware.costs)),
            zones: places,
            disks,
            daemons: (0..Timed::nodes()).map(|_| Kswapd::default()).collect(),
            compactors: (0..Timed::nodes()).map(|_| Kcompactd::default()).collect(),
            kreclaimd: Kreclaimd::default(),
            buffers: Buffers::default(),
            flusher: Flusher::default(),
            summer: Summer::default(),
            refresher: Refresher::default(),
            frame_waits: RefCell::default(),
            throttles: Default::default(),
            writes: Cell::new((0, 0)),
            plugged: RefCell::default(),
            blocks: RefCell::default(),
            extents: RefCell::default(),
            loops: RefCell::default(),
            account: Account::default(),
            asks: Asks::default(),
            nodes: TreeNodes::default(),
            processes: Processes::default(),
            shrinkers: RefCell::default(),
            kswapd_work: Cell::new(0),
            moved_at: Cell::new(0),
            stopping: Cell::new(false),
            recorder: recorder.clone(),
            samples: RefCell::default(),
            parts: RefCell::default(),
        });
        if let Some(mode) = guest.settings.zone_reclaim_mode {
            memory.kernel.heap.pages().set_reclaims_near(mode > 0);
        }
        memory.take_kernel_pages();
        memory.open_account();
        guest.names.iter().for_each(|unused| memory.register_shrinker(Rc::new(Names::new(*unused))));
        memory.set_reclaim();
        memory.start_sampling();
        memory.start_daemons();
        memory
    }

    /// The kernel's own pages: what is not free when programs start. They stay. Each node has its share of
    /// what is free, in its highest zone.
    fn take_kernel_pages(&self) {
        let Some(free) = self.guest.free_pages else { return };
        let heap = &self.kernel.heap;
        let (here, _) = self.zones[self.zones.len() - 1];
        // Free ones go to the CPU's list of the kind that programs take from.
        let user = Gfp::KERNEL | Gfp::HARDWALL | Gfp::HIGHMEM | Gfp::MOVABLE;
        let cached: Vec<_> =
            (0..self.guest.cached_pages).map_while(|_| heap.alloc_pages(0, user, here)).collect();
        let managed: Vec<u64> = self.vm.with(|state| state.zones.iter().map(|zone| zone.managed).collect());
        let whole: u64 = managed.iter().sum();
        let mut of_node = 0;
        for (at, (node, zone)) in self.zones.iter().copied().enumerate() {
            of_node += managed[at];
            if self.zones.get(at + 1).is_some_and(|next| next.0 == node) {
                continue;
            }
            let left = free * std::mem::take(&mut of_node) / whole;
            let gfp = Gfp::KERNEL | Gfp::THISNODE;
            while heap.pages().zone_free(node, zone) > left && heap.alloc_pages(0, gfp, node).is_some() {}
        }
        cached.into_iter().for_each(|pfn| heap.free_pages(pfn));
    }

    /// What work costs.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// CPU time of all kswapds: pages and entries that they looked at, pages that they freed and wrote.
    pub fn kswapd_work(&self) -> Ps {
        self.kswapd_work.get()
    }

    /// The flusher's work: what was asked for, then what is too old.
    fn flush(&self, here: &Here, is_asked: bool, pages: u64, is_due: bool) {
        let write = |why| mm::write_back(&self.vm, here, &self.rules, why);
        if is_asked {
            write(if pages > 0 { mm::Why::Pages(pages) } else { mm::Why::Background });
        }
        // 2.4 has a task for old pages alone, which nobody wakes before its time.
        if is_due || self.rules.dirty != mm::DirtyRule::Buffers {
            write(mm::Why::Old);
        }
    }

    /// The daemons end: no program is left.
    pub fn stop(&self) {
        self.sample_end();
        self.stopping.set(true);
        self.daemons.iter().for_each(|kswapd| kswapd.wake(&self.kernel));
        self.compactors.iter().for_each(|kcompactd| kcompactd.stop(&self.kernel));
        self.kreclaimd.wake(&self.kernel);
        self.flusher.stop(&self.kernel);
        self.loops.borrow().iter().for_each(|device| device.stop(&self.kernel));
        self.summer.stop(&self.kernel);
        self.refresher.stop(&self.kernel);
    }

    /// The task waits at a queue; what it has plugged starts.
    fn waits(self: &Rc<Self>, task: &Task, waiting: Waiting, queue: &WaitQueue) {
        self.unplug(task);
        queue.wait(task, waiting);
        Timed::turn();
    }

    /// The task keeps its bios together until it waits.
    fn plugged(self: &Rc<Self>, task: &Task) {
        self.plugged.borrow_mut().insert(task.id);
        self.disks.iter().for_each(|disk| disk.start_plug(task.id.0));
    }

    /// The task's bios start.
    fn unplug(self: &Rc<Self>, task: &Task) {
        self.disks.iter().for_each(|disk| disk.unplug(self, task.id.0));
        if self.plugged.borrow().contains(&task.id) {
            self.disks.iter().for_each(|disk| disk.start_plug(task.id.0));
        }
    }

    /// The task has submitted its last bio of many.
    fn end_plug(self: &Rc<Self>, task: &Task) {
        self.plugged.borrow_mut().remove(&task.id);
        self.unplug(task);
    }

    /// A reclaimer begins or ends a sleep: those that wait for pages under writeback are counted.
    fn sleeps_for(&self, why: Throttle, begins: bool) {
        if why == Throttle::Writeback {
            let (ended, sleepers) = self.writes.get();
            let written = if sleepers == 0 { 0 } else { ended };
            self.writes.set((written, if begins { sleepers + 1 } else { sleepers - 1 }));
        }
    }

    /// So many writes ended: reclaimers go on after 32 for each of them (`acct_reclaim_writeback`).
    fn writes_ended(&self, pages: u32) {
        let (ended, sleepers) = self.writes.get();
        if sleepers > 0 {
            self.writes.set((ended + pages, sleepers));
            if ended + pages > 32 * sleepers {
                self.throttles[Throttle::Writeback as usize].wake_all(&self.kernel, false);
            }
        }
    }

    /// A disk's queue of writes is congested no longer. Until 5.15 reclaimers sleep until then
    /// (`congestion_wait`), until 3.1 writers too.
    fn congestion_ends(&self) {
        let sleeps = [(Throttle::Congestion, (5, 16, 0)), (Throttle::Dirty, (3, 2, 0))];
        for (why, (major, minor, patch)) in sleeps {
            if !self.kernel.era.since(major, minor, patch) {
                self.throttles[why as usize].wake_all(&self.kernel, false);
            }
        }
    }

    fn account_io(&self, task: TaskId, io: &Io<'_>) {
        let mut blocks = self.blocks.borrow_mut();
        let blocks = blocks.entry(task).or_default();
        let count = io.frames.len() as u64 * PAGE_SECTORS;
        *(if io.write { &mut blocks.written } else { &mut blocks.read }) += count;
    }

    /// What a task read and wrote so far.
    pub fn blocks_of(&self, task: TaskId) -> Blocks {
        self.blocks.borrow().get(&task).copied().unwrap_or_default()
    }

    /// The loop device that has the blocks of this mapping.
    fn loop_of(&self, mapping: MappingId) -> Option<Rc<Loop>> {
        self.loops.borrow().iter().find(|device| device.has(mapping)).cloned()
    }

    /// The sector of a page of a file: files lie one after the other, each in one piece.
    fn sector_of(&self, mapping: MappingId, index: u32) -> u64 {
        let (extents, next) = &mut *self.extents.borrow_mut();
        let first = *extents.entry(mapping).or_insert_with(|| {
            let pages = self.vm.with(|state| state.mappings.get(mapping).pages());
            std::mem::replace(next, *next + u64::from(pages) * PAGE_SECTORS)
        });
        first + u64::from(index) * PAGE_SECTORS
    }
}
