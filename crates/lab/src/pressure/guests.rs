//! The machines on which real kernels ran the scripts: facts of their configuration, read before the runs.

use slablab_report::error::{Error, Result};
use slablab_sim::memory::Guest;

/// What is known of a guest of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The first kernel that it holds for.
    pub kernel: [u32; 3],
    /// Pages that the page allocator manages: `managed` in /proc/zoneinfo.
    pub managed: u64,
    /// `min_free_kbytes`.
    pub min_free_kib: u32,
    /// Pages free before the script: the middle of the runs' `config.csv`.
    pub free: u64,
}

/// The guests, oldest kernel first (examples/data/vm: config.csv).
pub const GUESTS: [Facts; 2] = [
    Facts { kernel: [6, 1, 0], managed: 35_676, min_free_kib: 1_499, free: 27_834 },
    Facts { kernel: [6, 12, 0], managed: 34_408, min_free_kib: 1_472, free: 28_393 },
];

impl Facts {
    /// The guest of a kernel; older kernels get the oldest.
    pub fn of(kernel: [u32; 3]) -> Facts {
        GUESTS.into_iter().rfind(|facts| facts.kernel <= kernel).unwrap_or(GUESTS[0])
    }

    /// Changes a fact: `free=PAGES`, `managed=PAGES`, `min_free_kib=KIB`.
    pub(super) fn change(&mut self, set: &str) -> Result<()> {
        let (name, value) = set.split_once('=').unwrap_or((set, ""));
        let bad = || Error::new("--set", format!("{set}: expected {name}=NUMBER"));
        let number: u32 = value.parse().map_err(|_| bad())?;
        match name {
            "free" => self.free = number.into(),
            "managed" => self.managed = number.into(),
            _ => self.min_free_kib = number,
        }
        Ok(())
    }

    /// The guest as the simulation wants it.
    pub fn guest(&self) -> Guest {
        Guest { free_pages: Some(self.free), min_free_kib: Some(self.min_free_kib), ..Guest::default() }
    }
}
