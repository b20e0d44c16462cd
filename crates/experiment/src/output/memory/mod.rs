//! Memory over time: vmstat's log, /proc/meminfo, processes, mmtests' rows, a page.

mod meminfo;
mod mmtests;
mod page;
mod recorded;
mod vmstat;

pub use meminfo::{meminfo_log, processes_table};
pub(super) use mmtests::mmtests_vmstat;
pub(super) use page::page_blocks;
pub(super) use recorded::group_figures;
pub use vmstat::vmstat_log;

use crate::pressure::run::Run;
use slablab_sim::memory::sampler::Sample;

/// Runs of one kind, with their name: a column of a table.
pub type Column<'a> = (String, Vec<&'a Run>);

const SECOND: u128 = 1_000_000_000_000;
/// A page in KiB.
const PAGE_KIB: u64 = 4;

/// What was added between two samples, a second; rounded.
fn rate(before: &Sample, after: &Sample, of: impl Fn(&Sample) -> u64) -> u64 {
    let time = u128::from(after.at.saturating_sub(before.at)).max(1);
    let added = u128::from(of(after).saturating_sub(of(before)));
    ((added * SECOND + time / 2) / time) as u64
}

/// Picoseconds as seconds with three decimals.
fn seconds(ps: u64) -> String {
    let ms = ps / 1_000_000_000;
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pressure::looked::{PhaseEnd, ProcessMemory};
    use slablab_sim::kernel::AllCpus;
    use slablab_sim::memory::sampler::Frames;

    const MS: u64 = 1_000_000_000;

    fn sample(at: u64, counts: [u64; 9]) -> Sample {
        let [faults, major, swap_in, swap_out, pgin, pgout, scan, steal, written] = counts;
        let is_idle = at == 0 || at == 2_000 * MS;
        Sample {
            at,
            vmstat: vec![
                ("pgfault", faults),
                ("pgmajfault", major),
                ("pswpin", swap_in),
                ("pswpout", swap_out),
                ("pgpgin", pgin),
                ("pgpgout", pgout),
                ("pgscan_kswapd", scan),
                ("pgsteal_kswapd", steal),
                ("nr_vmscan_write", written),
            ],
            meminfo: vec![
                ("MemTotal", 16_384),
                ("MemFree", 4_000),
                ("Buffers", 40),
                ("Cached", 1_240),
                ("SwapTotal", 65_536),
                ("SwapFree", 57_344),
            ],
            frames: Frames { total: 4_096, free: 1_000, slab: 96, ..Frames::default() },
            disks: vec![("swap", [0; 17])],
            cpu: AllCpus::default(),
            daemons: Vec::new(),
            running: if is_idle { 0 } else { 2 },
            blocked: if is_idle { 0 } else { 1 },
            switches: 0,
            interrupts: 0,
            processes: Vec::new(),
        }
    }

    /// A busy half of a second, then a half that waits for disks, then an idle second.
    pub(super) fn samples() -> Vec<Sample> {
        let counts = [1_000, 100, 4, 100, 1_200, 300, 200, 50, 120];
        let mut all: Vec<Sample> = [0, 500, 1_000, 2_000].map(|ms| sample(ms * MS, counts)).into();
        all[0] = sample(0, [0; 9]);
        let busy = AllCpus { user: 250 * MS, busy: 500 * MS, waited: 0, all: 500 * MS };
        for (sample, waited) in all[1..].iter_mut().zip([0, 500 * MS, 500 * MS]) {
            sample.cpu = AllCpus { waited, all: sample.at, ..busy };
            (sample.switches, sample.interrupts) = (2_000, 50);
        }
        all
    }

    pub(super) fn end(phase: &str, at: u64) -> PhaseEnd {
        let process = |name: &str, virtual_pages, resident, swapped| ProcessMemory {
            name: name.into(),
            virtual_pages,
            resident,
            swapped,
            tables: 1,
        };
        PhaseEnd {
            phase: phase.into(),
            at,
            meminfo: vec![("MemTotal", 16_384), ("MemFree", 4_000)],
            processes: vec![process("", 100, 70, 20), process("idle", 10, 0, 10)],
        }
    }

    #[test]
    fn rates_are_rounded() {
        let (before, after) = (sample(0, [0; 9]), sample(1_500 * MS, [10, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(rate(&before, &after, |sample| sample.count("pgfault")), 7);
        assert_eq!((rate(&after, &after, |_| 5), seconds(61_002 * MS)), (0, "61.002".into()));
    }
}
