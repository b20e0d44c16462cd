//! Random programs: every bio is completed once, on every disk, under every elevator, and in time where the
//! elevator says so.

use super::{MS, disks};
use slablab_model::Ps;
use slablab_sim::block::disk::bio::{Bio, Direction};
use slablab_sim::block::disk::presets::QUEUES;
use slablab_sim::block::disk::queue::{Added, QueueSpec};
use slablab_sim::block::disk::queued::QueuedDisk;
use std::collections::{BTreeMap, VecDeque};

const TASKS: u64 = 8;
const BIOS: u64 = 600;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    /// A bio: some follow the last one, some come before it, some are far away.
    fn bio(&mut self, last: &Bio) -> Bio {
        let owner = self.below(TASKS) as u32;
        let sectors = 8 * (1 + self.below(4)) as u32;
        let sector = match self.below(4) {
            0 => last.end(),
            1 => last.sector.saturating_sub(sectors.into()),
            2 => self.below(2_000) * 8,
            _ => self.below(5_000_000) * 8,
        };
        let sector = sector.min(41_000_000);
        let make = if self.below(2) == 0 { Bio::read } else { Bio::write };
        let (metadata, sync) = (self.below(8) == 0, self.below(8) == 0);
        Bio { metadata, sync, priority: 3 + self.below(3) as u8, ..make(sector, sectors, owner) }
    }
}

/// What a program does, and what came back.
struct Program {
    disk: QueuedDisk,
    now: Ps,
    waiting: BTreeMap<u64, (Bio, Ps)>,
    /// Bios without a request: they are tried again when requests are free.
    refused: VecDeque<(Bio, u64)>,
    sectors: [u64; 2],
}

impl Program {
    fn submit(&mut self, bio: Bio, key: u64, slept: bool) {
        if let Added::NoRequest = self.disk.submit(&bio, key, slept, self.now) {
            self.disk.unplug(bio.owner, self.now);
            self.refused.push_back((bio, key));
            return;
        }
        self.sectors[bio.direction as usize] += u64::from(bio.sectors);
        assert!(self.waiting.insert(key, (bio, self.now)).is_none());
    }

    /// Goes on to the next event, or to `until` if none comes before.
    fn advance(&mut self, until: Ps) -> Ps {
        let mut longest = 0;
        self.now = self.disk.next().map_or(until, |next| next.min(until)).max(self.now);
        for ended in self.disk.advance(self.now) {
            let mut at = ended.request.sector;
            for key in &ended.request.keys {
                let (bio, since) = self.waiting.remove(key).expect("a bio is completed once");
                assert_eq!(bio.sector, at, "bios of a request follow each other");
                assert_eq!(bio.direction, ended.request.direction);
                at = bio.end();
                longest = longest.max(self.now - since);
            }
            assert_eq!(at, ended.request.end());
            for _ in 0..ended.wake.tasks.min(self.refused.len() as u32) {
                let (bio, key) = self.refused.pop_front().expect("it has one");
                self.submit(bio, key, true);
            }
        }
        longest
    }
}

/// The longest time that a bio took after it had got a request.
fn run(name: &str, disk: &slablab_model::disk::Disk, seed: u64) -> Ps {
    let mut random = Random(seed);
    let disk = QueuedDisk::new(disk, QueueSpec::named(name).expect(name));
    let mut program =
        Program { disk, now: 0, waiting: BTreeMap::new(), refused: VecDeque::new(), sectors: [0; 2] };
    let (mut last, mut longest) = (Bio::read(0, 8, 0), 0);
    for key in 0..BIOS {
        if random.below(16) == 0 {
            program.disk.start_plug(random.below(TASKS) as u32);
        }
        if random.below(8) == 0 {
            let pause = random.below(20 * MS);
            longest = longest.max(program.advance(program.now + pause));
        }
        last = random.bio(&last);
        program.submit(last, key, false);
        if random.below(8) == 0 {
            program.disk.unplug(random.below(TASKS) as u32, program.now);
        }
        if random.below(64) == 0 {
            program.disk.task_ends(random.below(TASKS) as u32, program.now);
        }
    }
    // Who waits at the end unplugs.
    (0..TASKS).for_each(|task| program.disk.unplug(task as u32, program.now));
    while !program.waiting.is_empty() || !program.refused.is_empty() {
        let next = program.disk.next();
        assert!(next.is_some(), "{name}, seed {seed}: {} bios wait for ever", program.waiting.len());
        longest = longest.max(program.advance(next.unwrap_or(0)));
        if program.disk.next().is_none() {
            (0..TASKS).for_each(|task| program.disk.unplug(task as u32, program.now));
        }
    }
    let fields = program.disk.queue().stat().fields();
    assert!(program.disk.queue().is_empty() && fields[8] == 0, "{name}, seed {seed}");
    assert_eq!([fields[2], fields[6]], program.sectors, "{name}, seed {seed}: sectors");
    let all = fields[0] + fields[1] + fields[4] + fields[5];
    assert_eq!(all, BIOS, "{name}, seed {seed}: each bio is a request or merged: {fields:?}");
    longest
}

#[test]
fn every_bio_is_completed_once() {
    for name in QUEUES {
        for (disk_name, disk) in disks() {
            for seed in 0..8 {
                let longest = run(name, &disk, seed);
                assert!(longest > 0, "{name} on {disk_name}");
            }
        }
    }
}

/// Under deadline a read that has waited for 500 ms goes before the next sweep. It then waits for what is in
/// the disk, one sweep of 16 requests, those whose time passed before its own, and two sweeps of reads.
#[test]
fn deadline_holds_its_times() {
    for (disk_name, disk) in disks().into_iter().filter(|(_, disk)| disk.depth == 1 && disk.rotational) {
        let mut queued = QueuedDisk::new(&disk, QueueSpec::named("deadline@2.6.29").expect("it exists"));
        let (mut random, mut now, mut key) = (Random(7), 0, 0);
        let mut since: BTreeMap<u64, (Ps, Direction)> = BTreeMap::new();
        let mut longest = [0; 2];
        while key < 4_000 {
            // Reads always wait, in order from a low place; one in 20 is far away.
            while since.len() < 24 {
                let far = key % 20 == 0;
                let sector = if far { 30_000_000 + random.below(1 << 20) * 8 } else { key * 16 };
                let make = if key % 5 == 4 { Bio::write } else { Bio::read };
                let bio = make(sector, 8, 1);
                queued.submit(&bio, key, false, now);
                since.insert(key, (now, bio.direction));
                key += 1;
            }
            queued.unplug(1, now);
            now = queued.next().expect("a bio waits");
            for ended in queued.advance(now) {
                for key in ended.request.keys {
                    let (came, direction) = since.remove(&key).expect("completed once");
                    longest[direction as usize] = (now - came).max(longest[direction as usize]);
                }
            }
        }
        // 24 requests of at most 30 ms wait: beside its expiry a request waits for all of them at most
        // thrice.
        let [reads, writes] = longest.map(|longest| longest / MS);
        assert!(
            reads < 500 + 3 * 24 * 30 && writes < 5_000 + 3 * 24 * 30,
            "{disk_name}: {reads} {writes} ms"
        );
    }
}
