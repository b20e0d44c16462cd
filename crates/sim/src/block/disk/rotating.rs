//! A rotating disk: where the arm is, where the platter is, what is in the buffer.
//!
//! Times and angles are integers. A place on a track is a part of a turn; the platter's angle at a time t is
//! t modulo the turn. The rate of a zone fixes the sectors of its tracks: a track passes in one turn at that
//! rate, so that data over several tracks flows without a gap. docs/theory/block.md 8.

use super::bio::Direction;
use super::command::Command;
use super::write_cache::WriteCache;
use slablab_model::Ps;
use slablab_model::disk::{Rotating, SECTOR, bytes_in, time_of};

/// Zones of a disk, of equally many cylinders (assumed; disks have 8 to 30).
const ZONES: u64 = 16;

/// Cylinders whose tracks have equally many sectors.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    track_sectors: u64,
}

/// The arm and the buffer.
#[derive(Debug)]
pub(super) struct Arm {
    disk: Rotating,
    zones: Vec<Zone>,
    cylinders: u64,
    /// Until when the medium is busy.
    free_at: Ps,
    /// The sector behind the last one that passed under the head.
    head: u64,
    /// The disk reads on from this sector since this time.
    ahead: Option<(u64, Ps)>,
    cache: WriteCache,
}

/// Square roots keep 16 bits behind the point.
fn root(distance: u64) -> u64 {
    (distance << 32).isqrt()
}

impl Arm {
    pub(super) fn new(disk: &Rotating, sectors: u64) -> Arm {
        let heads = u64::from(disk.heads.max(1));
        let track_sectors = |zone: u64| {
            let less = (disk.outer - disk.inner) * (2 * zone + 1) / (2 * ZONES);
            (bytes_in(disk.turn, disk.outer - less) / SECTOR).max(1)
        };
        let column: u64 = (0..ZONES).map(track_sectors).sum();
        let cylinders = sectors.div_ceil(column * heads).max(1);
        let mut zones = Vec::new();
        let mut first_sector = 0;
        for zone in 0..ZONES {
            let track_sectors = track_sectors(zone);
            zones.push(Zone { first_sector, first_cylinder: zone * cylinders, track_sectors });
            first_sector += cylinders * heads * track_sectors;
        }
        Arm {
            disk: disk.clone(),
            zones,
            cylinders: cylinders * ZONES,
            free_at: 0,
            head: 0,
            ahead: None,
            cache: WriteCache::new(disk.write_cache / SECTOR),
        }
    }

    fn zone(&self, sector: u64) -> usize {
        self.zones.partition_point(|zone| zone.first_sector <= sector) - 1
    }

    fn cylinder(&self, sector: u64) -> u64 {
        let zone = &self.zones[self.zone(sector)];
        let in_cylinder = zone.track_sectors * u64::from(self.disk.heads.max(1));
        (zone.first_cylinder + (sector - zone.first_sector) / in_cylinder).min(self.cylinders - 1)
    }

    /// The angle of a sector's start, as a time.
    fn angle(&self, sector: u64) -> Ps {
        let zone = &self.zones[self.zone(sector)];
        let index = (sector - zone.first_sector) % zone.track_sectors;
        index * self.disk.turn / zone.track_sectors
    }

    /// Time of data from `from` to `to` under the head.
    fn transfer(&self, from: u64, to: u64) -> Ps {
        let (mut at, mut time) = (from, 0);
        while at < to {
            let zone = self.zone(at);
            let until = self.zones.get(zone + 1).map_or(to, |next| to.min(next.first_sector));
            time += (until - at) * self.disk.turn / self.zones[zone].track_sectors;
            at = until;
        }
        time
    }

    /// Time of a seek over `distance` cylinders: a + b * sqrt(distance) up to a third of all, then linear.
    pub(super) fn seek(&self, distance: u64) -> Ps {
        let Rotating { seek_track, seek_average, seek_full, .. } = self.disk;
        let (all, third) = ((self.cylinders - 1).max(1), ((self.cylinders - 1) / 3).max(2));
        let between = |from: Ps, to: Ps, part: u64, whole: u64| {
            from + (u128::from(to - from) * u128::from(part) / u128::from(whole.max(1))) as Ps
        };
        match distance {
            0 => 0,
            _ if distance <= third => {
                between(seek_track, seek_average, root(distance) - root(1), root(third) - root(1))
            }
            _ => between(seek_average, seek_full, distance - third, all.saturating_sub(third)),
        }
    }

    /// When data of a command begins to pass under the head, if the arm starts at `from`.
    fn position(&self, command: &Command, from: Ps) -> Ps {
        if command.sector == self.head && from <= self.free_at {
            return from;
        }
        let distance = self.cylinder(self.head).abs_diff(self.cylinder(command.sector));
        let is_write = command.direction == Direction::Write;
        let at = from + self.seek(distance) + if is_write { self.disk.seek_write } else { 0 };
        let angle = at % self.disk.turn;
        at + (self.angle(command.sector) + self.disk.turn - angle) % self.disk.turn
    }

    /// When the arm can begin with a command that came at `came`.
    fn ready(&self, came: Ps, now: Ps) -> Ps {
        (came + self.disk.overhead).max(now).max(self.free_at)
    }

    /// When data of a command would begin to pass: what the disk's queue compares.
    pub(super) fn reaches(&self, command: &Command, came: Ps, now: Ps) -> Ps {
        self.position(command, self.ready(came, now))
    }

    /// Moves the arm to data and over them.
    fn pass(&mut self, command: &Command, from: Ps) -> Ps {
        let starts = self.position(command, from);
        self.free_at = starts + self.transfer(command.sector, command.end());
        self.head = command.end();
        self.ahead = None;
        self.free_at
    }

    /// Does a command that came at `came` and is next at `now`. Returns when it is done.
    pub(super) fn serve(&mut self, command: &Command, came: Ps, now: Ps) -> Ps {
        self.write_back_until(now);
        let interface = time_of(command.bytes(), self.disk.interface);
        if command.direction == Direction::Read {
            if self.cache.has(command.sector, command.end()) {
                return now.max(came + self.disk.overhead) + interface;
            }
            return self.read_ahead(command, came, now, interface).unwrap_or_else(|| {
                let done = self.pass(command, self.ready(came, now));
                self.ahead = (self.disk.ahead > 0).then_some((self.head, done));
                done
            });
        }
        if self.cache.fits_at_all(command.sectors) {
            while !self.cache.fits(command.sectors) {
                self.write_back();
            }
            let end = self.ready(came, now) + interface;
            self.cache.add(command.sector, command.end());
            self.free_at = self.free_at.max(end);
            return end;
        }
        self.cache.forget(command.sector, command.end());
        self.pass(command, self.ready(came, now))
    }

    /// A read that goes on where the last one ended: the disk has read on since, until its buffer was full.
    fn read_ahead(&mut self, command: &Command, came: Ps, now: Ps, interface: Ps) -> Option<Ps> {
        let (next, since) = self.ahead.filter(|(next, _)| *next == command.sector)?;
        let (start, full) = (self.ready(came, now), next + self.disk.ahead / SECTOR);
        // With a full buffer the disk has waited, and reads on from now.
        let since = since.max(start.saturating_sub(self.transfer(next, full)));
        let passed = since + self.transfer(next, command.end());
        self.head = command.end();
        self.free_at = self.free_at.max(passed);
        self.ahead = Some((self.head, passed));
        Some(passed.max(start + interface))
    }

    /// Takes a write into the buffer, if it has room. Returns when the data are there.
    pub(super) fn cache(&mut self, command: &Command, now: Ps) -> Option<Ps> {
        self.write_back_until(now);
        if !self.cache.fits(command.sectors) {
            return None;
        }
        let end = now + self.disk.overhead + time_of(command.bytes(), self.disk.interface);
        self.cache.add(command.sector, command.end());
        self.free_at = self.free_at.max(end);
        Some(end)
    }

    /// The disk writes back what its buffer holds while no command is on the medium.
    fn write_back_until(&mut self, now: Ps) {
        while self.free_at < now && !self.cache.is_empty() {
            self.write_back();
        }
    }

    fn write_back(&mut self) {
        let Some((from, to)) = self.cache.take(self.head) else { return };
        let (direction, sectors) = (Direction::Write, (to - from) as u32);
        self.pass(&Command { direction, sector: from, sectors }, self.free_at);
    }
}

#[cfg(test)]
mod tests;
