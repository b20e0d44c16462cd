//! The controller: which type is evicted, and which tiers of it are protected (`struct ctrl_pos`).
//!
//! For each type and tier it keeps how many pages were evicted or protected, and how many of them refaulted,
//! since the oldest generation began; and an average of the generations before, in which each counts half of
//! the next. One position is compared with another: the first is the set point, the second the value.

use super::policy::{BATCH, Margin};
use super::word::{TIERS, Type};

/// What is counted of one tier of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tier {
    /// Pages that came back.
    pub refaulted: u64,
    /// Pages evicted.
    pub evicted: u64,
    /// Pages moved to the next generation instead.
    pub protected: u64,
    /// The average of `refaulted` over earlier generations.
    pub average_refaulted: u64,
    /// The average of evicted and protected pages.
    pub average_total: u64,
}

/// Refaults out of pages, weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Pages that came back.
    pub refaulted: u64,
    /// Pages evicted or protected.
    pub total: u64,
    /// The weight.
    pub gain: u64,
}

impl Position {
    /// Whether a value refaults hardly at all, or relatively less than this set point (from memory;
    /// docs/theory/vm.md 4.9).
    pub fn allows(&self, value: &Position) -> bool {
        value.refaulted < BATCH
            || value.refaulted * (self.total + BATCH) * self.gain
                <= (self.refaulted + 1) * value.total * value.gain
    }
}

/// The controller of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    tiers: [[Tier; TIERS]; 2],
}

impl Control {
    /// What is counted of a tier of a type.
    pub fn tier(&self, of: Type, tier: usize) -> &Tier {
        &self.tiers[of as usize][tier]
    }

    /// The same, to change.
    pub fn tier_mut(&mut self, of: Type, tier: usize) -> &mut Tier {
        &mut self.tiers[of as usize][tier]
    }

    /// The position of one tier.
    pub fn position(&self, of: Type, tier: usize, gain: u64) -> Position {
        let tier = self.tier(of, tier);
        Position {
            refaulted: tier.average_refaulted + tier.refaulted,
            total: tier.average_total + tier.evicted + tier.protected,
            gain,
        }
    }

    /// The position of all tiers together.
    pub fn sum(&self, of: Type, gain: u64) -> Position {
        (0..TIERS).map(|tier| self.position(of, tier, gain)).fold(
            Position { gain, ..Position::default() },
            |sum, one| Position {
                refaulted: sum.refaulted + one.refaulted,
                total: sum.total + one.total,
                gain,
            },
        )
    }

    /// The oldest generation of a type goes: what it counted goes into the averages by half (from memory;
    /// docs/theory/vm.md 4.9).
    pub fn carry(&mut self, of: Type) {
        for tier in &mut self.tiers[of as usize] {
            *tier = Tier {
                average_refaulted: (tier.average_refaulted + tier.refaulted) / 2,
                average_total: (tier.average_total + tier.evicted + tier.protected) / 2,
                ..Tier::default()
            };
        }
    }

    /// The last tier of a type that is evicted: those above refault more than the first one by the margin
    /// (docs/theory/vm.md 4.9).
    pub fn last_tier(&self, of: Type, margin: Margin) -> usize {
        let (first, other) = if margin == Margin::Double { (1, 2) } else { (2, 3) };
        self.last_below(of, &self.position(of, 0, first), other)
    }

    /// The last tier of a type that a set point allows.
    fn last_below(&self, of: Type, point: &Position, gain: u64) -> usize {
        let allowed = |tier: &usize| point.allows(&self.position(of, *tier, gain));
        (1..TIERS).take_while(allowed).last().unwrap_or(0)
    }

    /// The type to evict by the first tiers, and the last tier of it: the other type's first tier is the set
    /// point of the others (6.1 to 6.13; docs/theory/vm.md 4.8).
    pub fn choose_by_first(&self, swappiness: u32) -> (Type, usize) {
        let gain = [u64::from(swappiness), u64::from(200 - swappiness)];
        let first = |of: Type| self.position(of, 0, gain[of as usize]);
        let is_file = first(Type::Anon).allows(&first(Type::File));
        let of = if is_file { Type::File } else { Type::Anon };
        (of, self.last_below(of, &first(of.other()), gain[of as usize]))
    }

    /// The type to evict by all tiers (since 6.14; docs/theory/vm.md 4.8).
    pub fn choose_by_all(&self, swappiness: u32) -> Type {
        let anon = self.sum(Type::Anon, swappiness.into());
        let is_file = anon.allows(&self.sum(Type::File, u64::from(200 - swappiness)));
        if is_file { Type::File } else { Type::Anon }
    }
}
