//! Streams on whole disks: how long a read waits behind a writer, what share of the disk each task gets.

use super::{MS, disks, ide};
use slablab_model::Ps;
use slablab_model::disk::{Disk, DiskKind, Rotating};
use slablab_sim::block::disk::bio::Bio;
use slablab_sim::block::disk::presets::QUEUES;
use slablab_sim::block::disk::queue::{Added, QueueSpec};
use slablab_sim::block::disk::queued::QueuedDisk;

/// A task that has one bio at a time: it submits the next one when the last one is done.
struct Reader {
    next: u64,
    step: u64,
    /// When it submitted the bio that is not done.
    since: Option<Ps>,
    done: u64,
    longest: Ps,
}

/// Tasks that read one page after the other, and a writer that fills the queue with pages in order.
struct Streams {
    disk: QueuedDisk,
    readers: Vec<Reader>,
    writes: bool,
    written: u64,
    next_write: u64,
    now: Ps,
}

const WRITER: u64 = u64::MAX;

impl Streams {
    fn new(disk: &Disk, queue: &str, readers: &[(u64, u64)], writes: bool) -> Streams {
        let reader =
            |(next, step): &(u64, u64)| Reader { next: *next, step: *step, since: None, done: 0, longest: 0 };
        let queue = QueueSpec::named(queue).expect(queue);
        let readers = readers.iter().map(reader).collect();
        Streams {
            disk: QueuedDisk::new(disk, queue),
            readers,
            writes,
            written: 0,
            next_write: 20_000_000,
            now: 0,
        }
    }

    fn submit(&mut self, now: Ps) {
        for at in 0..self.readers.len() {
            let reader = &mut self.readers[at];
            if reader.since.is_some() {
                continue;
            }
            let bio = Bio::read(reader.next, 8, at as u32);
            if self.disk.submit(&bio, at as u64, false, now) != Added::NoRequest {
                reader.next += reader.step;
                reader.since = Some(now);
                self.disk.unplug(at as u32, now);
            }
        }
        while self.writes {
            let bio = Bio::write(self.next_write, 8, 1_000);
            if self.disk.submit(&bio, WRITER, false, now) == Added::NoRequest {
                break;
            }
            self.next_write += 8;
        }
    }

    fn run(mut self, until: Ps) -> Streams {
        while self.now < until {
            self.submit(self.now);
            let now = self.disk.next().expect("a task has a bio in the queue");
            self.now = now;
            for ended in self.disk.advance(now) {
                for key in ended.request.keys {
                    if key == WRITER {
                        self.written += 1;
                        continue;
                    }
                    let reader = &mut self.readers[key as usize];
                    let since = reader.since.take().expect("it waits");
                    reader.longest = reader.longest.max(now - since);
                    reader.done += 1;
                }
            }
        }
        self
    }
}

fn old_disk(write_cache: u64) -> Disk {
    let kind = DiskKind::Rotating(Rotating { write_cache, ..ide() });
    Disk { bytes: 20 << 30, depth: 1, rotational: true, kind }
}

/// The longest wait of a reader of far-away pages beside a writer that streams, in milliseconds.
fn longest_wait(disk: &Disk, queue: &str) -> u64 {
    let streams = Streams::new(disk, queue, &[(1_000_000, 80_000)], true).run(20_000 * MS);
    let reader = &streams.readers[0];
    assert!(reader.done >= 10 && streams.written > 10_000, "{queue}: {} {}", reader.done, streams.written);
    reader.longest / MS
}

/// Under Linus' elevator all 64 writes of 31 pages that are queued may pass first (7.9 MB, at 12 to 24 MB/s
/// 0.33 to 0.66 s), and 910 pages more (0.15 to 0.3 s). A disk without a write cache loses most of a turn
/// between two requests of its only tag, 8 ms each.
#[test]
fn a_read_waits_for_the_writes_of_the_queue() {
    let (cached, uncached) = (old_disk(2 << 20), old_disk(0));
    let [cached, uncached] = [&cached, &uncached].map(|disk| longest_wait(disk, "linus@2.4.10"));
    assert!((330..960).contains(&cached), "{cached} ms");
    assert!((330 + 64 * 7..960 + 94 * 9).contains(&uncached), "{uncached} ms");
}

/// Deadline does a sweep of 16 writes before a read, of 512 KiB or of 1,280 KiB each at 18 MB/s; CFQ none.
#[test]
fn a_read_waits_for_a_sweep_of_writes_or_for_none() {
    let longest = |queue| longest_wait(&old_disk(0), queue);
    let sweep = |kib: u64| 16 * (kib * 1_024 / 18_000 + 8);
    let (old, new) = (longest("deadline@2.6.29"), longest("mq-deadline@6.1"));
    assert!((sweep(512) / 2..sweep(512) * 5 / 4).contains(&old), "{old} of {} ms", sweep(512));
    assert!((sweep(1_280) / 2..sweep(1_280) * 5 / 4).contains(&new), "{new} of {} ms", sweep(1_280));
    let cfq = longest("cfq@2.6.29");
    assert!(cfq < 100, "{cfq} ms");
}

/// Tasks that read in order at different places get equal shares under CFQ, in slices; without an elevator
/// the arm goes to and fro, and all get less.
#[test]
fn slices_share_the_disk() {
    let places = [(0, 8), (15_000_000, 8), (30_000_000, 8)];
    let done = |queue| {
        let streams = Streams::new(&old_disk(0), queue, &places, false).run(10_000 * MS);
        streams.readers.iter().map(|reader| reader.done).collect::<Vec<u64>>()
    };
    let (cfq, noop) = (done("cfq@2.6.29"), done("noop@2.6.29"));
    let rate = |at: usize| [24, 18, 14][at];
    for (at, done) in cfq.iter().enumerate() {
        // A third of ten seconds, at least half of it with data at the rate of the place.
        let most = rate(at) * 1_000_000 / 4096 * 10 / 3;
        assert!((most / 2..most * 5 / 4).contains(done), "{cfq:?}: {at} of at most {most}");
        assert!(*done > 3 * noop[at], "{cfq:?} {noop:?}");
    }
}

/// The disk is kept 8 ms for the next read of a task, until the task's reads came back late three times; it
/// is not kept for a task that has ended.
#[test]
fn the_disk_is_kept_for_a_task_that_comes_back() {
    let check = |step: u64, ends: bool, expected: &[Ps]| {
        let mut disk = QueuedDisk::new(&old_disk(0), QueueSpec::named("cfq@2.6.29").expect("it exists"));
        let mut now = 0;
        let mut kept = Vec::new();
        for at in 0..6 {
            disk.submit(&Bio::read(at * step, 8, 1), 1, false, now);
            disk.submit(&Bio::read(30_000_000 + at * 800, 8, 2), 2, false, now);
            disk.unplug(1, now);
            if ends {
                disk.task_ends(1, now);
            }
            let mut done = Vec::new();
            while done.len() < 2 {
                let next = disk.next().expect("a bio is not done");
                let ended = disk.advance(next);
                if ended.is_empty() {
                    kept.push((next - now) / MS);
                }
                done.extend(ended);
                now = next;
            }
            // The second task's disk is kept too: let it pass.
            now += 100 * MS;
            disk.advance(now);
        }
        assert_eq!(kept, expected, "step {step}, ends: {ends}");
    };
    check(8, false, &[8, 8, 8]);
    check(8, true, &[]);
}

/// Writes of a device with a limit take as long as that says, reads do not.
#[test]
fn a_limit_holds_writes_back() {
    let (_, fixed) = disks().into_iter().find(|(name, _)| *name == "fixed").expect("it is there");
    let streams = Streams::new(&fixed, "mq-deadline@6.1", &[(0, 8)], true).run(4_000 * MS);
    let rate = streams.written * 4096 * 1_000 / (streams.now / MS);
    assert!((23_000_000..=24_010_000).contains(&rate), "{rate} bytes a second");
}

/// A card takes a stream at its rate, and random pages at a copy of a unit each.
#[test]
fn a_card_is_slow_for_random_writes() {
    let (_, card) = disks().into_iter().find(|(name, _)| *name == "card").expect("it is there");
    let time = |step: u64| {
        let mut disk = QueuedDisk::new(&card, QueueSpec::named("noop@2.6.29").expect("it exists"));
        let mut now = 0;
        for at in 0..100 {
            disk.submit(&Bio::write(at * step, 8, 1), at, false, now);
            while disk.queue().stat().in_flight > 0 {
                now = disk.next().expect("a bio is not done");
                disk.advance(now);
            }
        }
        now / MS
    };
    // A page: 1 ms and 0.41 ms of data. 98 of 100 units are closed, 100 ms each.
    assert_eq!(time(8), 140);
    assert_eq!(time(100_000), 140 + 98 * 100);
}

/// All elevators and disks make the same bytes of the same bios.
#[test]
fn two_runs_are_alike() {
    for queue in QUEUES {
        for (name, disk) in disks() {
            let run = || {
                let streams = Streams::new(&disk, queue, &[(0, 8), (15_000_000, 80_000)], true).run(500 * MS);
                (streams.disk.queue().stat().clone(), streams.written)
            };
            let (first, second) = (run(), run());
            assert_eq!(first, second, "{queue} on {name}");
            assert!(first.1 > 0, "{queue} on {name}");
        }
    }
}
