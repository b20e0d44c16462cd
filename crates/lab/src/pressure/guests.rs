//! The machines on which real kernels ran the scripts: facts of their configuration, read before the runs.

use slablab_report::error::{Error, Result};
use slablab_sim::memory::{Guest, Unused};

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
    /// Names that nobody uses before the script.
    pub names: [Unused; 3],
}

/// Pages that the recording program locks: its data and stack, in the first process and in a spawned one.
/// `nr_unevictable` of the records grows so much from the start to the end of a first phase (252 or 253 in
/// every scenario with one process), and with each process of closeall_lifo (278 to 280).
const LOCKED: [u32; 2] = [252, 279];

/// What the guests' first program looked up after it had dropped all unused names: `sysctls` files of
/// /proc/sys/vm twice and three only by reading their folder, /proc/cmdline twice and ten more of /proc once;
/// 21 files of sysfs twice, one that is not there, three links to disks; one file of debugfs. The recorded
/// slabinfo agrees: 66 or 77 objects of `proc_inode_cache` at the start, in slabs of 11.
const fn names(sysctls: u32) -> [Unused; 3] {
    [
        Unused { of: "sb-proc", once: 13, again: sysctls + 1 },
        Unused { of: "sb-sysfs", once: 4, again: 21 },
        Unused { of: "sb-debugfs", once: 1, again: 0 },
    ]
}

/// The guests, oldest kernel first (examples/data/vm: config.csv).
pub const GUESTS: [Facts; 2] = [
    Facts { kernel: [6, 1, 0], managed: 35_676, min_free_kib: 1_499, free: 27_834, names: names(45) },
    Facts { kernel: [6, 12, 0], managed: 34_408, min_free_kib: 1_472, free: 28_393, names: names(49) },
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
        let names = self.names.to_vec();
        let (free_pages, min_free_kib) = (Some(self.free), Some(self.min_free_kib));
        Guest { locked: LOCKED, free_pages, min_free_kib, names, ..Guest::default() }
    }
}
