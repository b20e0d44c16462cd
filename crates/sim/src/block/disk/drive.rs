//! The disk itself: commands that it holds, and when each is done.
//!
//! A rotating disk, a card and an emulated device do one command at a time on the medium; of the commands
//! that wait in it a rotating disk takes the one that its arm reaches first. Flash does all at once, and they
//! share its bandwidth.

use super::bio::Direction;
use super::card::Units;
use super::command::Command;
use super::rotating::Arm;
use slablab_model::Ps;
use slablab_model::disk::{Disk, DiskKind, time_of};
use std::collections::BTreeSet;

/// Commands that may pass a waiting one before it goes first (assumed: disks age their queues, but no manual
/// says how).
pub const PASSED_MAX: u32 = 64;

/// A command that waits in the disk.
#[derive(Clone, Copy, Debug)]
struct Held {
    tag: u32,
    command: Command,
    came: Ps,
    passed: u32,
}

#[derive(Debug)]
enum Medium {
    Rotating(Box<Arm>),
    Card(Units),
    /// Until when the bandwidth of reads and of writes is in use.
    Flash([Ps; 2]),
    /// Until when writes are held back.
    Fixed(Ps),
}

/// A disk at work.
#[derive(Debug)]
pub struct Drive {
    disk: Disk,
    medium: Medium,
    held: Vec<Held>,
    /// Commands that will be done, by when.
    ends: BTreeSet<(Ps, u32)>,
    /// The command on the medium, where one is there at a time.
    on_medium: Option<u32>,
}

impl Drive {
    /// A disk that has done nothing: its arm is over sector 0.
    pub fn new(disk: &Disk) -> Drive {
        let medium = match &disk.kind {
            DiskKind::Rotating(rotating) => Medium::Rotating(Box::new(Arm::new(rotating, disk.sectors()))),
            DiskKind::Card(card) => Medium::Card(Units::new(card)),
            DiskKind::Flash(_) => Medium::Flash([0; 2]),
            DiskKind::Fixed(_) => Medium::Fixed(0),
        };
        Drive { disk: disk.clone(), medium, held: Vec::new(), ends: BTreeSet::new(), on_medium: None }
    }

    /// Whether it has a free tag.
    pub fn has_room(&self) -> bool {
        (self.held.len() + self.ends.len()) < self.disk.depth.max(1) as usize
    }

    /// Commands in it.
    pub fn in_disk(&self) -> usize {
        self.held.len() + self.ends.len()
    }

    /// Gives it a command, for which it has a free tag. `tag` is its name until it is done.
    pub fn start(&mut self, tag: u32, command: Command, now: Ps) {
        match &mut self.medium {
            Medium::Flash(used) => {
                let DiskKind::Flash(flash) = &self.disk.kind else {
                    unreachable!("flash is of a flash disk")
                };
                let at = command.direction as usize;
                let latency = [flash.read, flash.write][at];
                let data = time_of(command.bytes(), [flash.read_rate, flash.write_rate][at]);
                used[at] = used[at].max(now + latency) + data;
                self.ends.insert((used[at], tag));
                return;
            }
            Medium::Rotating(arm) if command.direction == Direction::Write => {
                if let Some(end) = arm.cache(&command, now) {
                    self.ends.insert((end, tag));
                    return;
                }
            }
            _ => {}
        }
        self.held.push(Held { tag, command, came: now, passed: 0 });
        self.begin(now);
    }

    /// Puts the next command on the medium, if that is free.
    fn begin(&mut self, now: Ps) {
        if self.on_medium.is_some() || self.held.is_empty() {
            return;
        }
        let at = self.choose(now);
        let Held { tag, command, came, .. } = self.held.remove(at);
        self.held[..at].iter_mut().for_each(|held| held.passed += 1);
        let end = match (&mut self.medium, &self.disk.kind) {
            (Medium::Rotating(arm), _) => arm.serve(&command, came, now),
            (Medium::Card(units), _) => now + units.serve(&command),
            (Medium::Fixed(held_back), DiskKind::Fixed(fixed)) => {
                let done = now + fixed.request + command.bytes() * fixed.kib / 1024;
                match fixed.write_limit.filter(|_| command.direction == Direction::Write) {
                    Some(limit) => {
                        *held_back = (*held_back).max(now) + time_of(command.bytes(), limit);
                        done.max(*held_back)
                    }
                    None => done,
                }
            }
            _ => unreachable!("flash has no queue"),
        };
        self.on_medium = Some(tag);
        self.ends.insert((end, tag));
    }

    /// The place of the next command: the first one, or on a rotating disk the one that the arm reaches
    /// first, unless one has been passed too often.
    fn choose(&self, now: Ps) -> usize {
        let Medium::Rotating(arm) = &self.medium else { return 0 };
        if self.held[0].passed >= PASSED_MAX {
            return 0;
        }
        let reached = |at: &usize| (arm.reaches(&self.held[*at].command, self.held[*at].came, now), *at);
        (0..self.held.len()).min_by_key(reached).expect("a command waits")
    }

    /// When the next command is done.
    pub fn next(&self) -> Option<Ps> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// Takes out a command that is done by `now`; the next one goes on the medium.
    pub fn finish(&mut self, now: Ps) -> Option<u32> {
        let (end, tag) = *self.ends.first().filter(|(end, _)| *end <= now)?;
        self.ends.pop_first();
        if self.on_medium == Some(tag) {
            self.on_medium = None;
            self.begin(end);
        }
        Some(tag)
    }
}
