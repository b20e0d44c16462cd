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
//! | [`guest`] | how the machine is set up: what is free at the start, swap, disks |
//! | `prices` | what work costs |
//! | `waits` | what tasks wait for: frames, throttling; whose bios wait |
//! | `disk`, `disks` | a disk behind its queue; both disks, where files lie on them, loop devices |
//! | `accounts` | what is counted: `account`, every frame has one holder; `asks`, who asked for what |
//! | `processes` | who has memory, who sleeps, who is killed |
//! | `buffers`, `trees`, `shrinkers` | slab objects of pages: buffer heads, nodes of trees; caches that reclaim frees |
//! | `samples` | what is kept of all that over time |
//! | `daemons` | kswapd, kcompactd, kreclaimd, the flusher: what was asked of them |
//! | `host` | [`Here`]: the interface `Host` of the crate `vm`, in the running task or interrupt |
//! | `io` | from frames to a disk's queue, and back by an interrupt |
//! | `reclaim` | the page allocator asks; when reclaim goes on without an end |
//! | `group` | the limit of the programs' memory group |
//! | `programs`, `compact` | the programs of the daemons; direct compaction |
//! | [`views`], [`sampler`] | /proc/vmstat, meminfo, buddyinfo, /sys/block as values; their samples at fixed times |
//! | [`loopback`], [`volume`] | a loop device on a file of tmpfs; files of tmpfs, and of ext2 on a loop device |
//! | [`caches`], `names`, `unused` | dentries and inodes that reclaim frees |
//!
//! [`Memory`] holds one value of each, and no more: the files from `host` on are what connects them.
//!
//! **Frames.** Slab caches, page tables and pages share one page allocator. A frame has its number there.
//!
//! **Time.** Work of the memory costs cycles ([`Prices`], assumed); locks, lines and slab caches cost what
//! they cost everywhere in this crate. An interrupt of a disk is served where the running task works or may
//! be preempted.

mod account;
mod accounts;
mod asks;
mod buffers;
pub mod caches;
mod compact;
mod daemons;
mod disk;
mod disks;
mod group;
pub mod guest;
mod host;
mod io;
pub mod loopback;
mod names;
mod pageblocks;
mod prices;
mod processes;
mod programs;
mod reclaim;
pub mod sampler;
mod samples;
mod shrinkers;
mod trees;
mod unused;
pub mod views;
pub mod volume;
mod waits;

pub use accounts::{Accounts, Blocks};
pub use asks::{Asks, Cause, ORDERS, Reader};
pub use disks::Disks;
pub use guest::Guest;
pub use host::Here;
pub use names::{Recorded, Unused};
pub use prices::Prices;
pub use processes::{Killed, Processes};
pub use shrinkers::{Shrinkers, Shrinks};

use crate::kernel::era::Era;
use crate::kernel::tally::Failed;
use crate::kernel::{Kernel, Task, Waiting, with_pages};
use crate::record::Recorder;
use crate::setup::Setup;
use buffers::Buffers;
use daemons::Daemons;
use names::Names;
use samples::Samples;
use slablab_model::{Ps, Timed};
use slablab_platform::{Gfp, NodeId, Topology};
use slablab_vm::mm::Rules;
use slablab_vm::{Replacement, Settings, State, Swap, Vm, Zone};
use std::rc::Rc;
use trees::TreeNodes;
use waits::Waits;

/// Slab objects that belong to pages, and caches of objects that reclaim can free.
pub struct Objects {
    buffers: Buffers,
    nodes: TreeNodes,
    /// Caches that reclaim asks for objects.
    pub shrinkers: Shrinkers,
    /// Those of file systems without a disk.
    names: Vec<Rc<Names>>,
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
    /// The node of each zone of the crate `vm`, and its index there.
    zones: Vec<(NodeId, u8)>,
    waits: Waits,
    /// The disks, and loop devices.
    pub disks: Disks,
    daemons: Daemons,
    /// What is counted.
    pub accounts: Accounts,
    /// The processes that have memory.
    pub processes: Processes,
    /// Slab objects of pages, and what reclaim can free.
    pub objects: Objects,
    samples: Samples,
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
        memory.samples.hand_over();
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
        let memory = Rc::new(Memory {
            kernel: kernel.clone(),
            vm: Vm::new(state, policy),
            rules,
            guest: guest.clone(),
            prices: Timed::hardware(|hardware| Prices::of_costs(&hardware.costs)),
            zones: places,
            waits: Waits::default(),
            disks: Disks::new(guest),
            daemons: Daemons::new(),
            accounts: Accounts::default(),
            processes: Processes::default(),
            objects: Objects {
                buffers: Buffers::default(),
                nodes: TreeNodes::new(guest.tree_nodes),
                shrinkers: Shrinkers::default(),
                names: guest.names.iter().map(|unused| Rc::new(Names::new(*unused))).collect(),
            },
            samples: Samples::new(recorder),
        });
        if let Some(mode) = guest.settings.zone_reclaim_mode {
            memory.kernel.heap.pages().set_reclaims_near(mode > 0);
        }
        memory.take_kernel_pages();
        memory.accounts.frames.open(kernel, &memory.zones);
        let shrinkers = &memory.objects.shrinkers;
        memory.objects.names.iter().for_each(|names| shrinkers.register(names.clone()));
        memory.set_reclaim();
        memory.start_sampling();
        memory.start_daemons();
        memory
    }

    /// A phase of a script begins or ends: the program that records it looks its names up.
    pub(crate) fn record_names(&self, ends: bool) {
        self.objects.names.iter().for_each(|names| names.record(ends));
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
        self.daemons.kswapd_work()
    }

    /// Pages that have a buffer head.
    pub fn buffers(&self) -> u64 {
        self.objects.buffers.count()
    }

    /// The nodes.
    pub fn nodes(&self) -> std::ops::Range<u16> {
        0..Timed::nodes()
    }

    /// The place of a zone of the page allocator in the crate `vm`.
    fn zone(&self, node: NodeId, zone: u8) -> Option<usize> {
        self.zones.iter().position(|of| *of == (node, zone))
    }

    /// Sets the time between two rounds of the flusher, from now on; 0: it works only if it is asked.
    pub fn set_writeback_every(&self, every: Ps) {
        self.daemons.flusher.set_every(&self.kernel, every);
    }

    /// A process sleeps until another one calls [`Memory::wake_processes`], or it is killed.
    pub fn sleep(self: &Rc<Self>, task: &Task, waiting: Waiting) {
        self.waits(task, waiting, &self.processes.sleepers);
    }

    /// Processes that sleep look again.
    pub fn wake_processes(&self) {
        self.processes.wake(&self.kernel);
    }

    /// The daemons end: no program is left.
    pub fn stop(&self) {
        self.sample_end();
        self.daemons.stop(&self.kernel);
        self.disks.stop_loops(&self.kernel);
        self.daemons.stop_timers(&self.kernel);
    }
}
