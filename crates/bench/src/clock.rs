//! The measured quantities: CPU time of threads, wall time, resident memory.

use crate::costs::Costs;
use crate::day::Day;
use crate::times::Calls;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// One run of a workload on one contestant.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sample {
    /// Operations of all threads.
    pub ops: u64,
    /// CPU time of all threads in ns.
    pub cpu_ns: u64,
    /// Wall time in ns, if more than one thread ran.
    pub wall_ns: Option<u64>,
    /// Round trip of a cache line between the first two CPUs, before and after the run, in ns, if more than
    /// one thread ran.
    pub pingpong_ns: Option<[f64; 2]>,
    /// What the run cost its process, if the process ran nothing else.
    pub costs: Option<Costs>,
    /// How long its calls took, if each was timed.
    pub calls: Option<Calls>,
    /// The memory of a service over its day, if it was one.
    pub day: Option<Day>,
}

impl Sample {
    /// CPU time per operation in ns.
    pub fn cpu_per_op(&self) -> f64 {
        self.cpu_ns as f64 / self.ops.max(1) as f64
    }

    /// Wall time per operation in ns.
    pub fn wall_per_op(&self) -> Option<f64> {
        self.wall_ns.map(|ns| ns as f64 / self.ops.max(1) as f64)
    }
}

/// CPU time of this thread in ns.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs `work` once for an eighth of the operations, and then measures it.
pub fn measured(ops: u64, mut work: impl FnMut(u64)) -> Sample {
    work(ops / 8);
    let start = thread_cpu_ns();
    work(ops);
    Sample { ops, cpu_ns: thread_cpu_ns() - start, ..Sample::default() }
}

/// Runs `work` on this thread. Returns its start, its end, and its CPU time in ns.
pub(crate) fn timed(work: impl FnOnce()) -> (Instant, Instant, u64) {
    let (start, cpu) = (Instant::now(), thread_cpu_ns());
    work();
    let cpu = thread_cpu_ns() - cpu;
    (start, Instant::now(), cpu)
}

/// Resident memory of this process in bytes: an exact count if the kernel offers one, else the kernel's
/// running count.
pub fn resident() -> u64 {
    mapped(&["Rss:"]).map_or_else(resident_soon, |[resident]| resident)
}

/// Resident memory of this process in bytes, less the pages that the kernel may take when it wants to
/// (`MADV_FREE`).
pub fn resident_for_good() -> u64 {
    mapped(&["Rss:", "LazyFree:"]).map_or_else(resident_soon, |[resident, lazy]| resident - lazy)
}

/// Bytes of all mappings of this process, by the kernel's names of them; `None` if it does not say them.
fn mapped<const N: usize>(keys: &[&str; N]) -> Option<[u64; N]> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let bytes = |key: &&str| {
        let line = text.lines().find_map(|line| line.strip_prefix(*key))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    let all: Option<Vec<u64>> = keys.iter().map(bytes).collect();
    all?.try_into().ok()
}

/// Resident memory by the kernel's running count: cheaper, but wrong by up to some dozens of pages per CPU.
pub fn resident_soon() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
