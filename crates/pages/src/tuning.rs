//! Watermarks that an administrator sets while the machine runs: `min_free_kbytes`, `watermark_scale_factor`,
//! `watermark_boost_factor` of /proc/sys/vm (`Pages::tune`).
//!
//! Until the first one is set the marks are numbers of the machine, and no CPU reads a word for them.

use crate::machine::Machine;
use crate::policy::Gap;

/// What is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// `min_free_kbytes`: the min watermarks of all zones together, in KiB.
    pub min_free_kib: u32,
    /// `watermark_scale_factor`: the least distance between two watermarks, in frames of 10,000. It has a
    /// meaning with [`Gap::Scaled`] alone.
    pub scale_factor: u16,
    /// `watermark_boost_factor`: the most by which watermarks rise, in 10,000ths of the high one; 0: they do
    /// not.
    pub boost_factor: u16,
}

impl Tuning {
    /// `watermark_boost_factor` of every release that has it.
    pub const BOOST_FACTOR: u16 = 15_000;

    /// What a machine has before anything is set.
    pub(crate) fn of(machine: &Machine) -> Tuning {
        let scale_factor = match machine.policy.gap {
            Gap::Scaled(factor) => factor as u16,
            Gap::Quarter | Gap::Multiples => 0,
        };
        let min_free_kib = (machine.min_free << machine.page_shift >> 10) as u32;
        Tuning { min_free_kib, scale_factor, boost_factor: Tuning::BOOST_FACTOR }
    }

    /// Bits: `min_free_kib` 0-31, `scale_factor` 32-46, `boost_factor` 47-62, 63 set.
    pub(crate) const fn pack(self) -> u64 {
        let scale_factor = (self.scale_factor & 0x7fff) as u64;
        1 << 63 | self.min_free_kib as u64 | scale_factor << 32 | (self.boost_factor as u64) << 47
    }

    /// `None` if nothing was set.
    pub(crate) const fn unpack(word: u64) -> Option<Tuning> {
        if word == 0 {
            return None;
        }
        let (scale_factor, boost_factor) = ((word >> 32 & 0x7fff) as u16, (word >> 47) as u16);
        Some(Tuning { min_free_kib: word as u32, scale_factor, boost_factor })
    }

    /// A machine with these settings.
    pub(crate) fn apply(self, machine: &Machine) -> Machine {
        let mut machine = *machine;
        if let Gap::Scaled(factor) = &mut machine.policy.gap {
            *factor = self.scale_factor.into();
        }
        machine.min_free = u64::from(self.min_free_kib) << 10 >> machine.page_shift;
        machine
    }
}
