//! Disks of the simulated kernel: every bio is done once and its objects are freed, who waits, reserves.

use super::{MS, disks, ide};
use crate::machine::setup;
use slablab_model::disk::{Disk, DiskKind};
use slablab_model::{Ps, Timed};
use slablab_platform::CpuId;
use slablab_sim::block::Affinity;
use slablab_sim::block::disk::bio::{Bio, Direction};
use slablab_sim::block::disk::device::{Congestion, QueuedDevice};
use slablab_sim::block::disk::presets::QUEUES;
use slablab_sim::block::disk::queue::QueueSpec;
use slablab_sim::kernel::{Task, WaitQueue, Waiting, with_kernel};
use slablab_sim::tally::Outcome;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const WAITING: Waiting = Waiting { what: "for bios of a test", number: 0 };

/// Bios that were submitted and are not done.
#[derive(Default)]
struct Open {
    count: Cell<u64>,
    done: RefCell<Vec<u32>>,
    waiter: WaitQueue,
}

impl Open {
    fn submit(self: &Rc<Self>, task: &Task, device: &Rc<QueuedDevice>, bio: Bio) {
        self.count.set(self.count.get() + 1);
        let (open, at) = (self.clone(), self.done.borrow().len());
        self.done.borrow_mut().push(0);
        device.submit(task, bio, move |kernel| {
            open.done.borrow_mut()[at] += 1;
            open.count.set(open.count.get() - 1);
            if open.count.get() == 0 {
                open.waiter.wake_all(kernel, false);
            }
        });
    }

    fn wait(&self, task: &Task, device: &Rc<QueuedDevice>) {
        device.unplug(task);
        while self.count.get() > 0 {
            self.waiter.wait(task, WAITING);
            Timed::turn();
        }
    }
}

/// Runs `program` on CPU 0 of two with a device, until all tasks have ended; memory of `mib` MiB.
fn on(
    preset: &str,
    mib: u64,
    (disk, queue): (&Disk, &str),
    affinity: Affinity,
    program: impl FnOnce(&Task, &Rc<QueuedDevice>) + 'static,
) -> Outcome {
    let mut setup = setup(preset, 2, 1);
    setup.spec.nodes[0].bytes = mib << 20;
    let (disk, queue) = (disk.clone(), QueueSpec::named(queue).expect(queue));
    let outcome = with_kernel(&setup, 1, |kernel| {
        let start = kernel.mark();
        let device: Rc<RefCell<Option<Rc<QueuedDevice>>>> = Rc::default();
        let of_task = device.clone();
        kernel.start(kernel.new_process(), None, move |task| {
            task.pin(CpuId(0));
            let made = QueuedDevice::new(task, 0, &disk, queue, affinity, Rc::default());
            *of_task.borrow_mut() = Some(made.clone());
            program(task, &made);
        });
        kernel.run()?;
        Ok(kernel.outcome(&start))
    });
    outcome.unwrap_or_else(|failed| panic!("{preset}: {failed}"))
}

fn old_disk() -> Disk {
    Disk { bytes: 20 << 30, depth: 1, rotational: true, kind: DiskKind::Rotating(ide()) }
}

/// Four tasks on two CPUs read and write; each waits for its own bios after every few of them.
fn storm(task: &Task, device: &Rc<QueuedDevice>) {
    let ended = Rc::new(Open::default());
    ended.count.set(4);
    for number in 0..4_u64 {
        let (device, ended) = (device.clone(), ended.clone());
        task.thread(move |task| {
            let open = Rc::new(Open::default());
            let mut state = number + 1;
            for at in 0..60_u64 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let far = (state >> 40) % 4 == 0;
                let sector = if far { (state >> 36) % 30_000_000 } else { number * 8_000_000 + at * 8 };
                let make = if (state >> 50) % 2 == 0 { Bio::read } else { Bio::write };
                let sectors = 8 * (1 + (state >> 55) as u32 % 6);
                if at % 7 == 0 {
                    device.start_plug(task);
                }
                task.syscall(|| open.submit(task, &device, make(sector, sectors, task.id.0)));
                if at % 7 == 6 {
                    device.finish_plug(task);
                }
                if at % 16 == 15 {
                    task.syscall(|| open.wait(task, &device));
                }
            }
            task.syscall(|| open.wait(task, &device));
            assert!(open.done.borrow().iter().all(|times| *times == 1), "a bio is done once");
            device.task_ends(task);
            ended.count.set(ended.count.get() - 1);
            ended.waiter.wake_all(&task.kernel, false);
        });
    }
    while ended.count.get() > 0 {
        ended.waiter.wait(task, WAITING);
    }
    let fields = device.stat().fields();
    assert_eq!(fields[0] + fields[1] + fields[4] + fields[5], 240, "{fields:?}");
    assert_eq!((fields[8], device.reserves_used()), (0, 0));
    device.shut_down(&task.kernel);
}

#[test]
fn every_bio_is_done_once_and_its_objects_are_freed() {
    let presets = ["slab@2.6.29", "slub@2.6.29", "slub@6.18"];
    let affinities = [Affinity::Submitter, Affinity::Cpu(CpuId(1)), Affinity::Turns];
    for (at, queue) in QUEUES.into_iter().enumerate() {
        for (which, (name, disk)) in disks().into_iter().enumerate() {
            let preset = presets[(at + which) % 3];
            let outcome = on(preset, 1024, (&disk, queue), affinities[which % 3], storm);
            for cache in &outcome.caches {
                let what = format!("{preset}, {queue} on {name}: {}", cache.name);
                assert_eq!(cache.allocs, cache.frees, "{what}");
            }
            let bios = outcome.caches.iter().find(|cache| cache.name.starts_with("bio"));
            assert_eq!(bios.map(|cache| cache.allocs), Some(242), "240 and 2 in reserve");
        }
    }
}

/// A bio between two requests makes them one: the objects of the other are freed too.
#[test]
fn requests_that_become_one_leave_nothing() {
    let program = |task: &Task, device: &Rc<QueuedDevice>| {
        let open = Rc::new(Open::default());
        [100, 116, 108].into_iter().for_each(|at| open.submit(task, device, Bio::write(at, 8, task.id.0)));
        open.wait(task, device);
        assert_eq!(device.stat().fields()[4..7], [1, 2, 24]);
        device.shut_down(&task.kernel);
    };
    let outcome = on("slub@2.6.29", 1024, (&old_disk(), "noop@2.6.29"), Affinity::Submitter, program);
    assert!(outcome.caches.iter().all(|cache| cache.allocs == cache.frees), "{:?}", outcome.caches);
}

/// A task that submits more than the queue has requests for waits until some are free, also if no task
/// unplugs.
#[test]
fn a_writer_waits_for_free_requests() {
    let check = |queue: &str, at_once: u64| {
        on("slub@2.6.29", 1024, (&old_disk(), queue), Affinity::Cpu(CpuId(1)), move |task, device| {
            let (open, start) = (Rc::new(Open::default()), Timed::clock());
            let mut free = 0;
            for at in 0..300 {
                open.submit(task, device, Bio::write(at * 90_000, 8, task.id.0));
                free += u64::from(Timed::clock() - start < 2 * MS);
            }
            assert_eq!(free, at_once, "without a wait");
            assert!(open.count.get() <= 192 && Timed::clock() - start > 500 * MS);
            open.wait(task, device);
            device.shut_down(&task.kernel);
        });
    };
    check("linus@2.4.10", 64);
    check("cfq@2.6.29", 159);
}

/// A task waits until the device leaves congestion, or for its time.
#[test]
fn congestion_ends_or_the_time_passes() {
    let check = |at_most: Ps, expected: bool| {
        on("slub@2.6.29", 1024, (&old_disk(), "cfq@2.6.29"), Affinity::Cpu(CpuId(0)), move |task, _| {
            let congestion = Rc::new(Congestion::default());
            let queue = QueueSpec::named("cfq@2.6.29").expect("it exists");
            let disk = old_disk();
            let device = QueuedDevice::new(task, 1, &disk, queue, Affinity::Turns, congestion.clone());
            let open = Rc::new(Open::default());
            (0..120).for_each(|at| open.submit(task, &device, Bio::write(at * 90_000, 8, task.id.0)));
            assert!(device.is_congested(Direction::Write) && !device.is_congested(Direction::Read));
            device.unplug(task);
            let start = Timed::clock();
            assert_eq!(congestion.wait(task, Direction::Write, at_most), expected);
            assert_eq!(device.is_congested(Direction::Write), !expected);
            let took = (Timed::clock() - start) / MS;
            assert!(if expected { took < at_most / MS } else { took == at_most / MS }, "{took} ms");
            open.wait(task, &device);
            device.shut_down(&task.kernel);
        });
    };
    // 18 requests of about 12 ms until 102 are left.
    check(50 * MS, false);
    check(1_000 * MS, true);
}

/// Without memory bios come from the reserve, two at a time, and all are done.
#[test]
fn without_memory_the_reserve_serves() {
    on("slub@2.6.29", 3, (&old_disk(), "cfq@2.6.29"), Affinity::Cpu(CpuId(1)), |task, device| {
        let open = Rc::new(Open::default());
        for at in 0..25_000 {
            open.submit(task, device, Bio::write(at * 8, 8, task.id.0));
        }
        assert!(device.reserves_used() > 0, "{} bios are open", open.count.get());
        open.wait(task, device);
        device.shut_down(&task.kernel);
    });
}
