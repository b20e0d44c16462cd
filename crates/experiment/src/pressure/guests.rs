//! The machines on which real kernels ran the scripts: facts of their configuration, read before the runs.

use slablab_report::error::{Error, Result};
use slablab_sim::memory::{Guest, Recorded, Unused};

/// What is known of a guest of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The first kernel that it holds for.
    pub kernel: [u32; 3],
    /// Pages that the page allocator manages: `managed` in /proc/zoneinfo.
    pub managed: u64,
    /// `min_free_kbytes`.
    pub min_free_kib: u32,
    /// Pages free before the script, the fewest and the most of the runs (`config.csv`).
    pub free: [u64; 2],
    /// Pages on the CPU's list then, the fewest and the most (/proc/zoneinfo before the script).
    pub cached: [u64; 2],
    /// Names that nobody uses before the script.
    pub names: [Unused; 3],
    /// CPUs.
    pub cpus: u16,
}

/// Pages that the recording program locks: its data and stack, in the first process and in a spawned one.
/// `nr_unevictable` of the records grows so much from the start to the end of a first phase (252 or 253 in
/// every scenario with one process), and with each process of closeall_lifo (278 to 280).
const LOCKED: [u32; 2] = [252, 279];

/// What the guests' first program looked up after it had dropped all unused names: `sysctls` files of
/// /proc/sys/vm twice and three only by reading their folder, /proc/cmdline twice and ten more of /proc once;
/// 21 files of sysfs twice, one that is not there, three links to disks; one file of debugfs. The recorded
/// slabinfo agrees: 66 or 77 objects of `proc_inode_cache` at the start, in slabs of 11.
///
/// The recording program (its source) reads, at the begin and at the end of each phase, a sysctl and vmstat
/// of /proc, and through the links of two disks their stat; at the end also meminfo, buddyinfo, and pagemap
/// through the link self; and one file of debugfs. Left out: slabinfo, and files on fragmentation, which few
/// scripts ask for.
const fn names(sysctls: u32) -> [Unused; 3] {
    let proc = Recorded { ends: 6, begins: 2, known: 5 };
    let sysfs = Recorded { ends: 4, begins: 4, known: 2 };
    let debugfs = Recorded { ends: 1, begins: 0, known: 1 };
    [
        Unused { of: "sb-proc", once: 13, again: sysctls + 1, recorded: proc },
        Unused { of: "sb-sysfs", once: 4, again: 21, recorded: sysfs },
        Unused { of: "sb-debugfs", once: 1, again: 0, recorded: debugfs },
    ]
}

/// The guests, oldest kernel first (examples/data/vm: config.csv).
pub const GUESTS: [Facts; 2] = [
    Facts {
        kernel: [6, 1, 0],
        managed: 35_676,
        min_free_kib: 1_499,
        free: [27_646, 27_864],
        cached: [182, 311],
        names: names(45),
        cpus: 1,
    },
    Facts {
        kernel: [6, 12, 0],
        managed: 34_408,
        min_free_kib: 1_472,
        free: [28_288, 28_653],
        // 194 to 569; but since 6.7 a CPU's list is refilled by up to 224 pages, and stays as long as it was.
        cached: [0, 0],
        names: names(49),
        cpus: 1,
    },
];

/// Memory of the guests in MiB.
const MEMORY_MIB: u64 = 192;

/// The root of 16 times the KiB that are managed above the high mark, 128 at least: 1,499 and 1,472 on the
/// guests. The high mark is 1.5 times min there.
fn min_free_kib(managed: u64) -> u32 {
    let of = |high: u64| (64 * managed.saturating_sub(high)).isqrt().max(128);
    // Rounds until both agree: the mark is a small part of the memory.
    let kib = (0..4).fold(0, |kib, _| of(high_mark(managed, kib)));
    u32::try_from(kib).unwrap_or(u32::MAX)
}

/// The high mark: min and twice a quarter of it, or a thousandth of the memory if that is more.
fn high_mark(managed: u64, min_free_kib: u64) -> u64 {
    let min = min_free_kib / 4;
    min + 2 * (min / 4).max(managed / 1_000)
}

/// How much slower or faster a run's disks are than the machine file says, in thousandths: the host had other
/// work. A read took 0.661 and 1.030 ms (uni_read of uniswap, 61-classic, 2 runs: 4,555 ms of 6,891 reads,
/// 7,098 ms of 6,894), 0.845 in the middle.
pub const DISK_SPEED: [u64; 2] = [780, 1_220];
/// The CPU's: 17.3 to 34.1 us for a fault (fill of the same runs), 25.7 in the middle.
pub const CPU_SPEED: [u64; 2] = [674, 1_326];

/// Pages of the smallest and the largest machine that is modelled: 4 MiB and 16 GiB.
const MANAGED_LEAST: u64 = 1 << 10;
const MANAGED_MOST: u64 = 1 << 22;

impl Facts {
    /// The guest of a kernel; older kernels get the oldest.
    pub fn of(kernel: [u32; 3]) -> Facts {
        GUESTS.into_iter().rfind(|facts| facts.kernel <= kernel).unwrap_or(GUESTS[0])
    }

    /// This guest with another size of memory. *Assumed*: the kernel's own pages stay as many, so all that is
    /// added is free; `min_free_kbytes` follows its formula.
    #[must_use]
    pub(super) fn resized(self, managed: u64) -> Facts {
        if managed == self.managed {
            return self;
        }
        let free = self.free.map(|free| (free + managed).saturating_sub(self.managed));
        Facts { managed, free, min_free_kib: min_free_kib(managed), ..self }
    }

    /// This guest with so many MiB in place of 192: of each 64 pages one is their descriptors'.
    #[must_use]
    pub(super) fn with_memory(self, mib: u64) -> Facts {
        let pages = |mib: u64| mib * 256 * 63 / 64;
        self.resized((self.managed + pages(mib)).saturating_sub(pages(MEMORY_MIB)))
    }

    /// Changes a fact: `free=PAGES`, `managed=PAGES`, `min_free_kib=KIB`.
    pub(super) fn change(&mut self, set: &str) -> Result<()> {
        let (name, value) = set.split_once('=').unwrap_or((set, ""));
        let bad = || Error::new("--set", format!("{set}: expected {name}=NUMBER"));
        let number: u32 = value.parse().map_err(|_| bad())?;
        match name {
            "free" => self.free = [number.into(); 2],
            "managed" => self.managed = number.into(),
            _ => self.min_free_kib = number,
        }
        Ok(())
    }

    /// Whether there can be such a machine.
    pub(super) fn check(&self) -> Result<()> {
        let bad = |text: String| Err(Error::new("--set", text));
        let Facts { managed, free: [_, free], min_free_kib, .. } = *self;
        if !(MANAGED_LEAST..=MANAGED_MOST).contains(&managed) {
            return bad(format!("managed={managed}: expected {MANAGED_LEAST} to {MANAGED_MOST} pages"));
        }
        if free > managed {
            return bad(format!("free={free}: expected at most the {managed} managed pages"));
        }
        if u64::from(min_free_kib) / 4 > managed / 2 {
            let most = managed * 2;
            return bad(format!("min_free_kib={min_free_kib}: expected at most {most}, half of the memory"));
        }
        Ok(())
    }

    /// The guest at the start of the run with this seed: what is free, and where timers stand.
    pub fn guest(&self, seed: u64) -> Guest {
        let (mut start, mut timers) = (Stream::of(seed, "start"), Stream::of(seed, "timers"));
        let guest = Guest::default();
        Guest {
            free_pages: Some(start.between(self.free)),
            cached_pages: start.between(self.cached),
            locked: LOCKED,
            min_free_kib: Some(self.min_free_kib),
            names: self.names.to_vec(),
            writeback_first: Some(timers.between([1, guest.writeback_every])),
            ..guest
        }
    }
}

/// The random numbers of one subsystem in the run with one seed (Steele, Lea, Flood 2014: splitmix64).
pub(super) struct Stream(u64);

impl Stream {
    pub(super) fn of(seed: u64, subsystem: &str) -> Stream {
        // FNV-1a of the name: streams of one seed have nothing in common.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        Stream(subsystem.bytes().fold(0xCBF2_9CE4_8422_2325 ^ seed, hash))
    }

    /// A number of this range, with its ends.
    pub(super) fn between(&mut self, [low, high]: [u64; 2]) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        low + (mixed ^ (mixed >> 31)) % (high.saturating_sub(low) + 1)
    }
}
