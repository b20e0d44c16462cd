//! What is measured of a phase. Units: pages, faults, objects.

use slablab_readers::slabinfo::SlabinfoRow;
use slablab_readers::vmrecord::{Phase, Record};

/// Two means agree if both are below this: two batches of 32 pages, in which reclaim takes pages off a list.
pub const SMALL: f64 = 64.0;

/// Level of the tests of distributions.
pub const LEVEL: f64 = 0.05;

/// The name of the measure of a phase's time, which is judged by ranges, apart from the counts.
pub const ELAPSED: &str = "elapsed_ms";

/// A count of one phase.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name in tables.
    pub name: &'static str,
    /// Whether it is judged; the others are printed.
    pub is_judged: bool,
    /// Whether it is of the process. The others are of the machine: they are taken from the record of the
    /// script's own process, so that each count is judged once.
    pub of_process: bool,
    /// The value at the phase with this index; `None` if it was not recorded.
    value: fn(&Record, usize) -> Option<i64>,
}

/// Names are unique.
impl PartialEq for Measure {
    fn eq(&self, other: &Measure) -> bool {
        self.name == other.name
    }
}

impl Measure {
    const fn judged(name: &'static str, value: fn(&Record, usize) -> Option<i64>) -> Measure {
        Measure { name, is_judged: true, of_process: false, value }
    }

    const fn printed(name: &'static str, value: fn(&Record, usize) -> Option<i64>) -> Measure {
        Measure { name, is_judged: false, of_process: false, value }
    }

    const fn of_process(self) -> Measure {
        Measure { of_process: true, ..self }
    }

    /// The value in the phase called `phase`; `None` if the record has no such phase, or not this count.
    pub fn of(&self, record: &Record, phase: &str) -> Option<i64> {
        let at = record.phases.iter().position(|one| one.name == phase)?;
        (self.value)(record, at)
    }
}

/// A counter that is not there is and was 0, but not if nothing of /proc/vmstat was recorded.
fn delta(record: &Record, at: usize, counter: &str) -> Option<i64> {
    let phase = &record.phases[at];
    (!phase.vmstat.is_empty()).then(|| phase.delta(counter))
}

fn sum(record: &Record, at: usize, counters: [&str; 2]) -> Option<i64> {
    counters.iter().map(|counter| delta(record, at, counter)).sum()
}

/// All measures, the judged ones first.
pub const MEASURES: [Measure; 14] = [
    Measure::judged("majflt", |record, at| Some(record.phases[at].rusage.majflt)).of_process(),
    // A block of rusage has 512 bytes.
    Measure::judged("read_by_process", |record, at| Some(record.phases[at].rusage.inblock / 8)).of_process(),
    // pgpgin counts KiB.
    Measure::judged("read", |record, at| Some(delta(record, at, "pgpgin")? / 4)),
    Measure::judged("pswpin", |record, at| delta(record, at, "pswpin")),
    Measure::judged("pswpout", |record, at| delta(record, at, "pswpout")),
    Measure::judged("stolen", |record, at| sum(record, at, ["pgsteal_kswapd", "pgsteal_direct"])),
    Measure::judged("refaults", |record, at| {
        sum(record, at, ["workingset_refault_anon", "workingset_refault_file"])
    }),
    Measure::judged("slabs_scanned", |record, at| delta(record, at, "slabs_scanned")),
    Measure::judged("slab_objects_freed", slab_objects_freed),
    Measure::printed("stolen_kswapd", |record, at| delta(record, at, "pgsteal_kswapd")),
    Measure::printed("stolen_direct", |record, at| delta(record, at, "pgsteal_direct")),
    Measure::printed("scanned_kswapd", |record, at| delta(record, at, "pgscan_kswapd")),
    Measure::printed("scanned_direct", |record, at| delta(record, at, "pgscan_direct")),
    Measure::printed(ELAPSED, |record, at| i64::try_from(record.phases[at].elapsed_ns / 1_000_000).ok()),
];

/// Dentries and inodes that are fewer than at the end of the phase before, summed over their caches. `None`
/// without slabinfo in both phases.
fn slab_objects_freed(record: &Record, at: usize) -> Option<i64> {
    let rows = |phase: &Phase| Some(phase.slabinfo().ok()??.rows);
    let (before, after) = (rows(&record.phases[at.checked_sub(1)?])?, rows(&record.phases[at])?);
    let shrinks = |row: &&SlabinfoRow| row.name == "dentry" || row.name.ends_with("inode_cache");
    let fewer = |row: &SlabinfoRow| {
        let left = after.iter().find(|other| other.name == row.name && other.ordinal == row.ordinal);
        row.active_objs.saturating_sub(left.map_or(0, |left| left.active_objs)) as i64
    };
    Some(before.iter().filter(shrinks).map(fewer).sum())
}
