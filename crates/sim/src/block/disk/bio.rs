//! What a task asks of a disk, and what the queue makes of it: bios, requests, and how they merge.

use slablab_model::Ps;

/// Whether data comes from the disk or goes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the disk.
    Read = 0,
    /// To the disk.
    Write = 1,
}

/// A piece of I/O, as a task submits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Read or write.
    pub direction: Direction,
    /// The first sector, of 512 bytes.
    pub sector: u64,
    /// Sectors, at least 1.
    pub sectors: u32,
    /// Marked as sync: a write that a task waits for, or a bio that is not to be held in a plug.
    pub sync: bool,
    /// Metadata of a file system.
    pub metadata: bool,
    /// The task that CFQ charges it to.
    pub owner: u32,
    /// The owner's I/O priority, 0 (first) to 7: (nice + 20) / 5, so 4 for most tasks.
    pub priority: u8,
}

impl Bio {
    /// A read, of normal priority.
    pub fn read(sector: u64, sectors: u32, owner: u32) -> Bio {
        let (direction, sync) = (Direction::Read, false);
        Bio { direction, sector, sectors, sync, metadata: false, owner, priority: 4 }
    }

    /// A write that no task waits for: writeback or swap-out, of normal priority.
    pub fn write(sector: u64, sectors: u32, owner: u32) -> Bio {
        Bio { direction: Direction::Write, ..Bio::read(sector, sectors, owner) }
    }

    /// The sector after the last one.
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// Whether the elevator takes it for sync: all reads, and writes that are marked.
    pub fn is_sync(&self) -> bool {
        self.sync || self.direction == Direction::Read
    }
}

/// The number of a request within its queue, free for another one after completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u32);

/// Bios that follow each other on the disk, and go to it as one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Read or write.
    pub direction: Direction,
    /// The first sector.
    pub sector: u64,
    /// All sectors.
    pub sectors: u32,
    /// Pieces of memory: pages that bios bring.
    pub segments: u32,
    /// Sync for the elevator: a read, or a write that is marked.
    pub sync: bool,
    /// Its first bio is metadata, or that of a request that became a part of it.
    pub metadata: bool,
    /// The owner of its first bio.
    pub owner: u32,
    /// The I/O priority of its first bio.
    pub priority: u8,
    /// When its first bio came.
    pub arrived: Ps,
    /// When it went to the disk; the same until then.
    pub started: Ps,
    /// The caller's keys of its bios, in the order of their sectors.
    pub keys: Vec<u64>,
    /// What the elevator keeps of it: patience (Linus' elevator), or a time (deadline, CFQ).
    pub(super) note: u64,
}

/// Limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sectors.
    pub sectors: u32,
    /// Pieces of memory.
    pub segments: u32,
}

/// Sectors of a page of 4 KiB, the memory of one segment.
const PAGE_SECTORS: u32 = 8;

/// The end of a request that a bio is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The bio follows the request.
    Back,
    /// The bio comes before the request.
    Front,
}

impl Request {
    fn new(bio: &Bio, key: u64, now: Ps) -> Request {
        Request {
            direction: bio.direction,
            sector: bio.sector,
            sectors: bio.sectors,
            segments: bio.sectors.div_ceil(PAGE_SECTORS),
            sync: bio.is_sync(),
            metadata: bio.metadata,
            owner: bio.owner,
            priority: bio.priority,
            arrived: now,
            started: now,
            keys: vec![key],
            note: 0,
        }
    }

    /// The sector after the last one.
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// The side at which a bio may be added; `None` if it is not adjacent, of the other direction, of another
    /// sync-ness, or too large.
    pub(super) fn side(&self, bio: &Bio, limits: Limits) -> Option<Side> {
        let alike = self.direction == bio.direction && self.sync == bio.is_sync();
        let fits = self.sectors + bio.sectors <= limits.sectors
            && self.segments + bio.sectors.div_ceil(PAGE_SECTORS) <= limits.segments;
        match alike && fits {
            true if self.end() == bio.sector => Some(Side::Back),
            true if bio.end() == self.sector => Some(Side::Front),
            _ => None,
        }
    }
}

/// The requests of a queue by their numbers.
#[derive(Debug, Default)]
pub(super) struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<u32>,
}

impl Requests {
    pub(super) fn add(&mut self, bio: &Bio, key: u64, now: Ps) -> RequestId {
        let request = Some(Request::new(bio, key, now));
        match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = request;
                RequestId(at)
            }
            None => {
                self.slots.push(request);
                RequestId(self.slots.len() as u32 - 1)
            }
        }
    }

    pub(super) fn get(&self, RequestId(at): RequestId) -> &Request {
        self.slots[at as usize].as_ref().expect("a request that was freed")
    }

    pub(super) fn get_mut(&mut self, RequestId(at): RequestId) -> &mut Request {
        self.slots[at as usize].as_mut().expect("a request that was freed")
    }

    pub(super) fn remove(&mut self, RequestId(at): RequestId) -> Request {
        let request = self.slots[at as usize].take().expect("a request that was freed");
        self.free.push(at);
        request
    }

    /// Adds a bio to a request.
    pub(super) fn extend(&mut self, id: RequestId, bio: &Bio, key: u64, side: Side) {
        let request = self.get_mut(id);
        request.sectors += bio.sectors;
        request.segments += bio.sectors.div_ceil(PAGE_SECTORS);
        match side {
            Side::Back => request.keys.push(key),
            Side::Front => {
                request.sector = bio.sector;
                request.keys.insert(0, key);
            }
        }
    }

    /// Whether the request `second` can follow `first` in one request.
    pub(super) fn fuse_fits(&self, first: RequestId, second: RequestId, limits: Limits) -> bool {
        let (first, second) = (self.get(first), self.get(second));
        first.end() == second.sector
            && first.direction == second.direction
            && first.sync == second.sync
            && first.sectors + second.sectors <= limits.sectors
            && first.segments + second.segments <= limits.segments
    }

    /// Makes the request `second` a part of `first`. Notes and arrivals are the lesser ones.
    pub(super) fn fuse(&mut self, first: RequestId, second: RequestId) {
        let gone = self.remove(second);
        let into = self.get_mut(first);
        into.sectors += gone.sectors;
        into.segments += gone.segments;
        into.arrived = into.arrived.min(gone.arrived);
        into.note = into.note.min(gone.note);
        into.metadata |= gone.metadata;
        into.keys.extend(gone.keys);
    }
}
