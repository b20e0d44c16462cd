//! Block I/O of 2026: a null block device in user space (ublk) under io_uring.
//!
//! ```text
//! submitter, a CPU each                      server, a CPU each
//!   reap: read the completions                 wait for requests
//!   submit 32 at a time, 128 in flight:        for each request: handle it, end the bio:
//!     bio_alloc_bioset ── this CPU's cache ─┐     bio_put ── this CPU's cache, 256 bios
//!                      └─ kmem_cache_alloc  │             └─ kmem_cache_free
//!     write the bio, pass the request on ───┘     pass the completion on
//! ```
//!
//! The bio's own cache of a CPU comes first. A completion in task context fills the server's cache once, to
//! 256, and overflows ever after; the submitter's is always empty. So each I/O is one slab allocation on the
//! submitter's CPU and one slab free on the server's. Requests, io_uring's and ublk's own state are recycled
//! without slab objects.

use crate::heap::paths::paths;
use crate::heap::start::started_heap;
use crate::heap::{CacheNumber, Heap, Named};
use crate::kernel::tally::Failed;
use crate::record::profile::Profile;
use crate::record::{CPUS, Holds, MEMORY, Recorder};
use crate::setup::Setup;
use slablab_model::{Access, Addr, CallId, LockTimes, Ps, Spent, Timed, TimedMachine};
use slablab_platform::{CpuId, Event, Gfp, Topology, rank};
use slablab_slabs::CacheSpec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes of a bio inside `blkdev_dio`, and what the slab of `bio-264` spaces them by (a dump of 6.18).
const BIO: (u32, u32) = (264, 320);
/// Bytes of a bio that the submitter writes, and that the server reads.
const BIO_WRITTEN: u32 = 264;
const BIO_READ: u32 = 128;
/// Bios that a CPU's own cache keeps.
const BIO_CACHE: u32 = 256;

/// What runs on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// The CPUs of a submitter and of the server of its queue.
    pub(super) pairs: Vec<(CpuId, CpuId)>,
    /// I/Os in flight of one submitter.
    pub(super) depth: u32,
    /// I/Os that are submitted, and reaped, at a time.
    pub(super) batch: u32,
    /// CPU time of an I/O on the submitter, without the allocator.
    pub(super) submit: Ps,
    /// CPU time of an I/O on the server, without the allocator.
    pub(super) serve: Ps,
    /// Time before counting begins, and time that is counted.
    pub(super) warm_up: Ps,
    /// Time that is counted.
    pub(super) counted: Ps,
}

/// What a run did while it was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// I/Os that were completed.
    pub(super) ios: u64,
    /// How long was counted.
    pub(super) time: Ps,
    /// I/Os of each submitter.
    pub(super) by_submitter: Vec<u64>,
    /// How the submitters' CPUs spent their time.
    pub(super) submitters: [Ps; Spent::COUNT],
    /// How the servers' CPUs spent their time.
    pub(super) servers: [Ps; Spent::COUNT],
    /// Time of the submitters inside the allocation.
    pub(super) allocating: Ps,
    /// Time of the submitters inside the allocation and in writing the bio: `bio_alloc_bioset`.
    pub(super) bio_allocating: Ps,
    /// Of `allocating`, slow allocations on nodes without memory: objects come from other nodes' lists
    /// (`get_from_any_partial`).
    pub(super) from_other_nodes: Ps,
    /// Time of the servers inside the free.
    pub(super) freeing: Ps,
    /// The nodes' list locks.
    pub(super) list_lock: LockTimes,
    /// The barns' locks.
    pub(super) barn_lock: LockTimes,
    /// Where the time of these CPUs went.
    pub(super) profile: Profile,
    /// Events of the bios' cache.
    pub(super) events: Vec<(Event, u64)>,
}

impl Outcome {
    /// I/Os per second.
    pub(super) fn iops(&self) -> u64 {
        (self.ios as u128 * 1_000_000_000_000 / self.time.max(1) as u128) as u64
    }

    /// Time of one I/O and submitter.
    pub(super) fn per_io(&self) -> Ps {
        self.time * self.by_submitter.len() as u64 / self.ios.max(1)
    }
}

/// One submitter's queue to its server and back.
#[derive(Default)]
struct Queue {
    requests: RefCell<VecDeque<Addr>>,
    completions: Cell<u32>,
    server: Cell<Option<CallId>>,
    submitter: Cell<Option<CallId>>,
}

/// What all calls of a run share.
struct Run {
    heap: Rc<dyn Heap>,
    bios: CacheNumber,
    ublk: Load,
    done: Vec<Cell<u64>>,
    allocating: Cell<Ps>,
    bio_allocating: Cell<Ps>,
    from_other_nodes: Cell<Ps>,
    freeing: Cell<Ps>,
    end: Ps,
    /// Allocations and frees.
    events: Cell<u64>,
    /// Set by the first allocation without memory; the submitter ends.
    failed: RefCell<Option<Failed>>,
    recorder: Recorder,
}

/// Runs the device on a machine, and records the counted time: batches, slow operations, waits for locks.
///
/// # Errors
/// A machine that cannot be modelled, or that has no memory for its bios.
pub(super) fn run(setup: &Setup, ublk: &Load, recorder: &Recorder) -> Result<Outcome, Failed> {
    let paths = paths(&setup.preset, &setup.hardware.costs);
    let mut machine = TimedMachine::new(setup.spec.clone(), setup.hardware.clone(), paths)?;
    let cpus = setup.spec.cpu_node.len();
    if let Some(pair) = ublk.pairs.iter().find(|pair| pair.0.0.max(pair.1.0) as usize >= cpus) {
        return Err(Failed::Machine(format!("CPUs {} and {} of {cpus}", pair.0.0, pair.1.0)));
    }
    machine.enter(|| {
        let spec = CacheSpec { known_size: BIO.1, ..CacheSpec::of_size(BIO.0) };
        let heap = started_heap(setup, setup.spec.seed, vec![Named { name: "bio-264".into(), spec }]);
        let start = Timed::latest();
        let (warm, end) = (start + ublk.warm_up, start + ublk.warm_up + ublk.counted);
        recorder.watch_locks();
        let run = Rc::new(Run {
            bios: CacheNumber(0),
            done: ublk.pairs.iter().map(|_| Cell::new(0)).collect(),
            allocating: Cell::new(0),
            bio_allocating: Cell::new(0),
            from_other_nodes: Cell::new(0),
            freeing: Cell::new(0),
            ublk: ublk.clone(),
            heap,
            end,
            events: Cell::new(0),
            failed: RefCell::default(),
            recorder: recorder.clone(),
        });
        for (index, (submitter, server)) in ublk.pairs.iter().enumerate() {
            let queue = Rc::new(Queue::default());
            let (of_run, of_queue, at) = (run.clone(), queue.clone(), start + index as Ps * 10_000);
            let server = *server;
            Timed::spawn(*submitter, at, move || of_run.submit(index, &of_queue, server));
            let (of_run, submitter) = (run.clone(), *submitter);
            Timed::spawn(server, at, move || of_run.serve(&queue, submitter));
        }
        Timed::run_until(warm);
        recorder.restart(warm);
        run.record_memory(warm);
        let before = run.snapshot(warm);
        Timed::run_until(end);
        if let Some(failed) = run.failed.borrow_mut().take() {
            return Err(failed);
        }
        Ok(run.outcome(&before))
    })
}

/// The counts at one moment.
struct Snapshot {
    done: Vec<u64>,
    spent: [[Ps; Spent::COUNT]; 2],
    allocating: Ps,
    bio_allocating: Ps,
    from_other_nodes: Ps,
    freeing: Ps,
    list_lock: LockTimes,
    barn_lock: LockTimes,
    events: Vec<u64>,
    profile: Profile,
}

impl Run {
    /// The counts at `at`, which is now.
    fn snapshot(&self, at: Ps) -> Snapshot {
        let mut cpus: Vec<CpuId> = self.ublk.pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
        cpus.sort_unstable();
        let spent = |cpu: fn(&(CpuId, CpuId)) -> CpuId| {
            let mut sum = [0; Spent::COUNT];
            for pair in &self.ublk.pairs {
                for (sum, spent) in sum.iter_mut().zip(Timed::spent(cpu(pair))) {
                    *sum += spent;
                }
            }
            sum
        };
        Snapshot {
            done: self.done.iter().map(Cell::get).collect(),
            spent: [spent(|pair| pair.0), spent(|pair| pair.1)],
            allocating: self.allocating.get(),
            bio_allocating: self.bio_allocating.get(),
            from_other_nodes: self.from_other_nodes.get(),
            freeing: self.freeing.get(),
            list_lock: Timed::lock_times::<rank::NodeList>(),
            barn_lock: Timed::lock_times::<rank::Barn>(),
            events: Event::ALL.iter().map(|event| self.heap.counted(self.bios, *event)).collect(),
            profile: Profile::until(at, cpus, &*self.heap),
        }
    }

    fn outcome(&self, before: &Snapshot) -> Outcome {
        let after = self.snapshot(self.end);
        let by_submitter: Vec<u64> =
            after.done.iter().zip(&before.done).map(|(after, before)| after - before).collect();
        let difference =
            |at: usize| std::array::from_fn(|kind| after.spent[at][kind] - before.spent[at][kind]);
        let events = Event::ALL.iter().zip(after.events.iter().zip(&before.events));
        Outcome {
            ios: by_submitter.iter().sum(),
            time: self.ublk.counted,
            by_submitter,
            submitters: difference(0),
            servers: difference(1),
            allocating: after.allocating - before.allocating,
            bio_allocating: after.bio_allocating - before.bio_allocating,
            from_other_nodes: after.from_other_nodes - before.from_other_nodes,
            freeing: after.freeing - before.freeing,
            list_lock: after.list_lock - before.list_lock,
            barn_lock: after.barn_lock - before.barn_lock,
            profile: after.profile.clone().since(&before.profile),
            events: events.map(|(event, (after, before))| (*event, after - before)).collect(),
        }
    }

    /// A submitter: keeps its device queue full.
    fn submit(&self, index: usize, queue: &Queue, server: CpuId) {
        let mut in_flight = 0;
        while Timed::clock() < self.end {
            Timed::turn();
            let from = Timed::clock();
            let reaped = queue.completions.get().min(self.ublk.batch);
            queue.completions.set(queue.completions.get() - reaped);
            self.done[index].set(self.done[index].get() + reaped as u64);
            in_flight -= reaped;
            let wanted = self.ublk.batch.min(self.ublk.depth - in_flight);
            if wanted == 0 || (reaped == 0 && in_flight + self.ublk.batch > self.ublk.depth) {
                queue.submitter.set(Timed::current());
                Timed::park();
                continue;
            }
            for _ in 0..wanted {
                let start = Timed::clock();
                let Some(bio) = self.bio_alloc() else { return };
                Timed::touch(bio, BIO_WRITTEN, Access::Write);
                self.bio_allocating.set(self.bio_allocating.get() + Timed::clock() - start);
                Timed::charge(self.ublk.submit);
                queue.requests.borrow_mut().push_back(bio);
            }
            in_flight += wanted;
            self.record("submit", from);
            if let Some(call) = queue.server.take() {
                Timed::unpark(call, server, Timed::clock());
            }
        }
    }

    /// Records what this CPU did from `from` until now.
    #[inline]
    fn record(&self, name: &str, from: Ps) {
        if self.recorder.is_on() {
            let track = self.recorder.track(CPUS, || format!("CPU {}", Timed::cpu().0));
            self.recorder.slice(track, self.recorder.name(|| name.into()), from, Timed::clock());
        }
    }

    fn record_memory(&self, at: Ps) {
        if self.recorder.is_on() {
            let track = self.recorder.track_of(MEMORY, || "slabs".into(), Holds::Bytes);
            self.recorder.value(track, at, self.heap.slab_bytes() as i64);
        }
    }

    /// How often this CPU counted an event of the bios' cache.
    fn counted(&self, event: Event) -> u64 {
        self.heap.counted_on(self.bios, Timed::cpu(), event)
    }

    /// A bio; `None` without memory.
    fn bio_alloc(&self) -> Option<Addr> {
        let slow = self.counted(Event::AllocSlowpath);
        let start = Timed::clock();
        let Some(bio) = self.heap.alloc(self.bios, Gfp::KERNEL, None) else {
            let failed = || Failed::out_of_memory(&*self.heap, self.events.get());
            self.failed.borrow_mut().get_or_insert_with(failed);
            return None;
        };
        self.events.set(self.events.get() + 1);
        let took = Timed::clock() - start;
        self.allocating.set(self.allocating.get() + took);
        if self.counted(Event::AllocSlowpath) > slow {
            if Timed::node_frames(Timed::cpu_node(Timed::cpu())).1 == 0 {
                self.from_other_nodes.set(self.from_other_nodes.get() + took);
            }
            self.record(Event::AllocSlowpath.name(), start);
            self.record_memory(Timed::clock());
        }
        Some(bio)
    }

    /// A server: completes what comes.
    fn serve(&self, queue: &Queue, submitter: CpuId) {
        let mut cached = 0;
        while Timed::clock() < self.end {
            Timed::turn();
            let from = Timed::clock();
            let batch = (queue.requests.borrow().len() as u32).min(self.ublk.batch);
            if batch == 0 {
                queue.server.set(Timed::current());
                Timed::park();
                continue;
            }
            for _ in 0..batch {
                let bio = queue.requests.borrow_mut().pop_front().expect("counted");
                Timed::touch(bio, BIO_READ, Access::Read);
                Timed::charge(self.ublk.serve);
                if cached <= BIO_CACHE {
                    cached += 1;
                    continue;
                }
                let slow = self.recorder.is_on().then(|| self.counted(Event::FreeSlowpath));
                let start = Timed::clock();
                self.heap.free(self.bios, bio);
                self.events.set(self.events.get() + 1);
                self.freeing.set(self.freeing.get() + Timed::clock() - start);
                if slow.is_some_and(|before| self.counted(Event::FreeSlowpath) > before) {
                    self.record(Event::FreeSlowpath.name(), start);
                }
            }
            queue.completions.set(queue.completions.get() + batch);
            self.record("serve", from);
            if let Some(call) = queue.submitter.take() {
                Timed::unpark(call, submitter, Timed::clock());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_model::{Costs, Handover, Hardware, MachineSpec, NodeSpec};
    use slablab_slabs::Preset;

    fn setup(preset: &str, everywhere: bool) -> Setup {
        let costs = Costs {
            cycle: 286,
            line_bytes: 64,
            l1_bytes: 32 << 10,
            l2_bytes: 1 << 20,
            llc_bytes: 16 << 20,
            l1: 1_200,
            l2: 4_000,
            llc: 14_000,
            transfer_core: 6_000,
            transfer_llc: 25_000,
            transfer: vec![(10, 90_000), (11, 110_000), (32, 200_000)],
            memory: vec![(10, 100_000), (11, 110_000), (32, 200_000)],
            local_exchange: 2_300,
            locked_exchange: 5_000,
            exchange16: 6_500,
            interrupts: 9_000,
            zero_kib: 20_000,
            handover: Handover::Queued,
            ..Costs::default()
        };
        let cpu_node: Vec<u16> = (0..64u16).map(|cpu| cpu % 32 / 4).collect();
        let distance = (0..8)
            .map(|from| {
                let to = |to: i32| {
                    if from == to {
                        10
                    } else if from / 4 == to / 4 {
                        11
                    } else {
                        32
                    }
                };
                (0..8).map(to).collect()
            })
            .collect();
        let hardware = Hardware {
            core: (0..64).map(|cpu| cpu % 32).collect(),
            llc: cpu_node.clone(),
            socket: cpu_node.iter().map(|node| node / 4).collect(),
            costs,
        };
        let bytes = |node: u64| {
            if everywhere {
                8 << 30
            } else if node.is_multiple_of(4) {
                32 << 30
            } else {
                0
            }
        };
        let spec = MachineSpec {
            cpu_node,
            nodes: (0..8).map(|node| NodeSpec { bytes: bytes(node) }).collect(),
            distance,
            memoryless_nodes: false,
            ..MachineSpec::uniform(64, 8, 1 << 30)
        };
        Setup {
            spec,
            hardware,
            preset: Preset::parse(preset).expect("a preset"),
            boot: Default::default(),
            placement: None,
        }
    }

    /// The CPUs of the report: server threads on the even CPUs of 0 to 31, submitters on the odd ones.
    fn pairs_of_the_report() -> Vec<(CpuId, CpuId)> {
        (0..16).map(|queue| (CpuId(2 * queue + 1), CpuId(2 * queue))).collect()
    }

    fn ublk() -> Load {
        Load {
            pairs: pairs_of_the_report(),
            depth: 128,
            batch: 32,
            submit: 300_000,
            serve: 250_000,
            warm_up: 1_000_000_000,
            counted: 1_000_000_000,
        }
    }

    /// Releases on memory on 2 of 8 nodes and everywhere, in percent of 6.18 with memory on 2 of 8.
    #[test]
    fn memoryless_nodes_cost_7_0_its_speed() {
        let of = |preset: &str, everywhere: bool| {
            run(&setup(preset, everywhere), &ublk(), &Recorder::default()).expect("a machine")
        };
        let base = of("slub@6.18", false).iops();
        let check = |preset: &str, everywhere: bool, percent: std::ops::Range<u64>| {
            let found = of(preset, everywhere).iops() * 100 / base;
            assert!(percent.contains(&found), "{preset}, memory everywhere {everywhere}: {found} %");
        };
        check("slub@6.12", false, 95..106);
        check("slub@7.0", false, 25..50);
        check("slub@7.1", false, 90..120);
        check("slub@6.18", true, 95..106);
        check("slub@7.0", true, 90..120);
        check("slub@7.1", true, 90..120);
    }

    /// Which submitters are slow, and why: the twelve on nodes without memory wait for two lists' locks.
    #[test]
    fn the_slow_submitters_wait_for_other_nodes_lists() {
        let found = run(&setup("slub@7.0", false), &ublk(), &Recorder::default()).expect("a machine");
        let fast = found.by_submitter.iter().max().copied().unwrap_or(0);
        let slow: Vec<usize> = (0..16).filter(|at| found.by_submitter[*at] < fast / 3).collect();
        // Queue q is on CPUs 2q and 2q + 1, which are of node q / 2; nodes 0 and 4 have memory.
        let memoryless: Vec<usize> = (0..16).filter(|queue| queue / 2 % 4 != 0).collect();
        assert_eq!(slow, memoryless, "{:?}", found.by_submitter);
        let [_, _, _, waits] = found.submitters;
        let all: Ps = found.submitters.iter().sum();
        assert!(waits * 100 / all > 30, "{waits} of {all} ps wait for locks");
        assert!(found.list_lock.wait > 10 * found.barn_lock.wait, "{found:?}");
        // Objects of other nodes are the slow submitters' alone, and nearly all of the time in allocations.
        assert!(found.from_other_nodes * 10 > found.allocating * 8, "{found:?}");
        assert!(found.from_other_nodes <= found.allocating, "{found:?}");
        assert!(found.allocating < found.bio_allocating, "{found:?}");
        // 6.18 has slow allocations with memory everywhere too, from the own node.
        let everywhere = run(&setup("slub@6.18", true), &ublk(), &Recorder::default()).expect("a machine");
        let slow = everywhere.events.iter().find(|(event, _)| *event == Event::AllocSlowpath);
        assert!(slow.is_some_and(|(_, count)| *count > 0), "{everywhere:?}");
        assert_eq!(everywhere.from_other_nodes, 0);
    }

    /// 16 queues of 4,096 bios on slow servers need more than 8 MiB: the run says what holds the memory.
    #[test]
    fn no_memory_is_an_answer() {
        let mut small = setup("slub@6.18", true);
        small.spec.nodes = vec![NodeSpec { bytes: 1 << 20 }; 8];
        let slow = Load { depth: 4096, serve: 10_000_000, ..ublk() };
        let failed = run(&small, &slow, &Recorder::default()).expect_err("8 MiB are full");
        let Failed::OutOfMemory { events, caches } = failed else { panic!("{failed}") };
        let held = caches.iter().find(|cache| cache.0 == "bio-264").expect("the bios' cache");
        assert!(held.1 > 8_000 && events >= held.1 && held.2 > held.1 * 320, "{events}: {caches:?}");
    }
}
