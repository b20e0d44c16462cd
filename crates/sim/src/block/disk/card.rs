//! A memory card: writes in order inside an open erase unit are fast, all others cost the copy of a unit.
//!
//! The card keeps a few units open, each with the place up to which it is written. A write elsewhere opens
//! another unit, and the unit that was written longest ago is closed: if it is not full, the card copies the
//! rest of the old unit into it. A write before the open place copies the unit at once. docs/theory/block.md
//! 9.

use super::bio::Direction;
use super::command::Command;
use slablab_model::Ps;
use slablab_model::disk::{Card, SECTOR, time_of};
use std::collections::VecDeque;

/// The erase units of a card.
#[derive(Debug)]
pub(super) struct Units {
    card: Card,
    unit: u64,
    /// Open units and the sector up to which each is written, the one written longest ago first.
    open: VecDeque<(u64, u64)>,
}

impl Units {
    pub(super) fn new(card: &Card) -> Units {
        Units { card: card.clone(), unit: (card.unit / SECTOR).max(1), open: VecDeque::new() }
    }

    /// The time of a command.
    pub(super) fn serve(&mut self, command: &Command) -> Ps {
        match command.direction {
            Direction::Read => self.card.read + time_of(command.bytes(), self.card.read_rate),
            Direction::Write => {
                let data = self.card.write + time_of(command.bytes(), self.card.write_rate);
                data + u64::from(self.copies(command.sector, command.end())) * self.card.unit_copy
            }
        }
    }

    /// Copies of units that a write of the sectors from `from` to `to` costs.
    fn copies(&mut self, from: u64, to: u64) -> u32 {
        let mut copies = 0;
        let mut at = from;
        while at < to {
            let unit = at / self.unit;
            let until = to.min((unit + 1) * self.unit);
            copies += self.write(unit, at, until);
            at = until;
        }
        copies
    }

    fn write(&mut self, unit: u64, from: u64, to: u64) -> u32 {
        let found = self.open.iter().position(|(open, _)| *open == unit);
        let before = found.and_then(|at| self.open.remove(at));
        let copies = match before {
            Some((_, written)) => u32::from(from < written),
            None if self.open.len() < self.card.open_units.max(1) as usize => 0,
            None => self.close(),
        };
        // A unit that is written to its end is closed without a copy.
        if to < (unit + 1) * self.unit {
            self.open.push_back((unit, to));
        }
        copies
    }

    /// Closes the unit that was written longest ago.
    fn close(&mut self) -> u32 {
        u32::from(self.open.pop_front().is_some())
    }
}
