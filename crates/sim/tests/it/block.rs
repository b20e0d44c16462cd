//! Block devices: where their objects are freed, who waits for a request, when a request is done.

use crate::machine::setup;
use slablab_model::{Ps, Timed};
use slablab_platform::CpuId;
use slablab_sim::block::{Affinity, Device, Disk, Io, Pending};
use slablab_sim::kernel::{Task, with_kernel};
use slablab_sim::tally::{Failed, Outcome};
use std::cell::Cell;
use std::rc::Rc;

const MS: Ps = 1_000_000_000;
const DISK: Disk = Disk { latency: 5 * MS, kib: 10_000_000, disks: 1, requests: 128 };
const PAGE: Io = Io { bytes: 4096, bios: 1 };

/// Runs `program` on CPU 0 of 2, and lets the kernel go on until nothing is left to do.
fn on(preset: &str, program: impl FnOnce(&Task) + 'static) -> Result<Outcome, Failed> {
    with_kernel(&setup(preset, 2, 1), 1, |kernel| {
        let start = kernel.mark();
        kernel.start(kernel.new_process(), None, |task| {
            task.pin(CpuId(0));
            program(task);
        });
        kernel.run()?;
        Ok(kernel.outcome(&start))
    })
}

/// Allocations of each cache of block I/O, and frees on another CPU than that of the allocation.
#[track_caller]
fn check_objects(preset: &str, affinity: Affinity, expected: &[(&str, u64, u64)]) {
    let outcome = on(preset, move |task| {
        let device = Device::new(0, DISK, affinity);
        (0..10).for_each(|_| task.syscall(|| device.submit_and_wait(task, PAGE)));
        assert_eq!(device.completed(), 10);
    });
    let outcome = outcome.expect("all requests are completed");
    for (name, allocs, elsewhere) in expected {
        let cache = outcome.cache(name).unwrap_or_else(|| panic!("{preset}: {name}: {:?}", outcome.caches));
        let found = (cache.allocs, cache.frees, cache.freed_elsewhere);
        assert_eq!(found, (*allocs, *allocs, *elsewhere), "{preset}: {name}");
    }
    let found = outcome.caches.iter().filter(|cache| cache.name != "kmalloc-16").count();
    assert_eq!(found, expected.len(), "{preset}: {:?}", outcome.caches);
}

#[test]
fn the_interrupt_frees_on_its_cpu() {
    let all = |bio, elsewhere| {
        [(bio, 10), ("blkdev_requests", 10), ("scsi_cmd_cache", 10), ("sgpool-8", 10)]
            .map(|(name, allocs)| (name, allocs, elsewhere))
    };
    check_objects("slub@2.6.29", Affinity::Submitter, &all("bio-0", 0));
    check_objects("slub@2.6.29", Affinity::Cpu(CpuId(1)), &all("bio-0", 10));
    check_objects("slub@2.6.29", Affinity::Turns, &all("bio-0", 5));
    check_objects("slub@6.18", Affinity::Cpu(CpuId(1)), &[("bio-184", 10, 10)]);
}

/// A request is done a latency and its data later, and a disk has one at a time.
#[test]
fn a_request_takes_its_latency_and_waits_for_its_disk() {
    let check = |disks: u32, least: Ps, most: Ps| {
        let took = Rc::new(Cell::new(0));
        let of_task = took.clone();
        let ended = on("slub@6.18", move |task| {
            let device = Device::new(0, Disk { disks, ..DISK }, Affinity::Cpu(CpuId(1)));
            let (pending, start) = (Rc::new(Pending::default()), Timed::clock());
            (0..4).for_each(|_| task.syscall(|| pending.submit(task, &device, PAGE)));
            task.syscall(|| pending.wait(task));
            of_task.set(Timed::clock() - start);
        });
        ended.expect("all requests are completed");
        assert!((least..most).contains(&took.get()), "{disks} disks: {} ps", took.get());
    };
    // A page of 4 KiB takes 5.04 ms.
    check(1, 4 * 5_040_000_000, 4 * 5_040_000_000 + MS);
    check(2, 2 * 5_040_000_000, 2 * 5_040_000_000 + MS);
    check(4, 5_040_000_000, 5_040_000_000 + MS);
}

/// The second of two requests waits for the first one's interrupt where a device has one request.
#[test]
fn who_submits_waits_for_a_request() {
    let check = |requests: u32, in_ms: u64| {
        let took = Rc::new(Cell::new(0));
        let of_task = took.clone();
        let ended = on("slub@2.6.29", move |task| {
            let device = Device::new(0, Disk { requests, ..DISK }, Affinity::Submitter);
            let start = Timed::clock();
            (0..2).for_each(|_| task.syscall(|| device.submit(task, PAGE, |_| ())));
            of_task.set((Timed::clock() - start) / MS);
        });
        ended.expect("all requests are completed");
        assert_eq!(took.get(), in_ms, "{requests} requests");
    };
    check(2, 0);
    check(1, 5);
}

/// A busy CPU serves an interrupt between pieces of its work; the waiter goes on elsewhere meanwhile.
#[test]
fn a_busy_cpu_serves_interrupts() {
    let done_at = Rc::new(Cell::new(0));
    let of_device = done_at.clone();
    let ended = on("slub@2.6.29", move |task| {
        let device = Device::new(0, DISK, Affinity::Submitter);
        task.syscall(|| device.submit(task, PAGE, move |_| of_device.set(Timed::clock())));
        task.compute(20 * MS);
        assert_eq!(device.completed(), 1);
    });
    ended.expect("the request is completed");
    assert_eq!(done_at.get() / MS, 5, "{} ps", done_at.get());
}
