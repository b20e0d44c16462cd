//! A command of a disk.

use super::bio::Direction;
use slablab_model::disk::SECTOR;

/// What the disk is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Read or write.
    pub direction: Direction,
    /// The first sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
}

impl Command {
    pub(super) fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR
    }
}
