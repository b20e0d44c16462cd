//! What a workload costs a process: CPU time in its own code and in the kernel, page faults, peak memory, and
//! the price of a page fault.
//!
//! Peak memory and faults belong to a process. So the rig runs each sample of the group `programs` in a
//! process that does nothing else ([`crate::child::serve`]).

use crate::block::AnyBlock;
use crate::clock::{Sample, thread_cpu_ns};
use crate::costs::Costs;
use crate::proof::{Usage, usage};
use crate::stats::median;
use crate::subject::{Subject, prove};
use std::hint::black_box;
use std::time::Instant;

/// The operations of a workload, and some of its live blocks, for the proof of their allocator.
pub(crate) struct Done<A: Subject> {
    pub(crate) ops: u64,
    pub(crate) blocks: Vec<AnyBlock<A>>,
}

/// Measures `work` from its start to its end, with the CPU time of all threads. There is no warm-up: a
/// program pays for its first touch of memory, too.
pub(crate) fn measured<A: Subject>(work: impl FnOnce() -> Done<A>) -> Result<Sample, String> {
    // The kernel then counts the peak from here on. Where it refuses, the peak is that of the whole process.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let resident = status("VmRSS:");
    let before = usage();
    let start = Instant::now();
    let done = work();
    let wall_ns = start.elapsed().as_nanos() as u64;
    let after = usage();
    let peak_bytes = status("VmHWM:").saturating_sub(resident);
    done.blocks.iter().try_for_each(|block| prove::<A>(block.at()))?;
    let spent = |of: fn(&Usage) -> u64| of(&after) - of(&before);
    let costs = Costs {
        user_ns: spent(|usage| usage.user_ns),
        system_ns: spent(|usage| usage.system_ns),
        faults: spent(|usage| usage.faults),
        peak_bytes,
        fault_ns: fault_ns(),
    };
    Ok(Sample {
        ops: done.ops,
        cpu_ns: costs.user_ns + costs.system_ns,
        wall_ns: Some(wall_ns),
        costs: Some(costs),
        ..Sample::default()
    })
}

/// A number of bytes in /proc/self/status; 0 if the kernel does not say it.
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// CPU time of a page fault in ns: what the first write to each page of new memory takes longer than the
/// second. The median of several parts.
pub(crate) fn fault_ns() -> f64 {
    const PAGE: usize = 4096;
    /// Larger than the size from which the C library always maps memory.
    const BYTES: usize = 64 << 20;
    /// The part that is touched at once.
    const PART: usize = 1 << 20;
    const PARTS: usize = 8;
    let mut memory = vec![0u8; BYTES];
    let touch = |part: &mut [u8]| {
        let start = thread_cpu_ns();
        part.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        black_box(part);
        thread_cpu_ns() - start
    };
    let prices: Vec<f64> = memory
        .chunks_mut(PART)
        .take(PARTS)
        .map(|part| {
            let before = usage().faults;
            let first = touch(part);
            let faults = usage().faults - before;
            first.saturating_sub(touch(part)) as f64 / faults.max(1) as f64
        })
        .collect();
    median(&prices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::Glibc;

    /// A workload whose faults and peak are known: it writes one byte in each page of a large block. In a
    /// process of its own: memory that another test frees meanwhile would be missing in the peak.
    #[test]
    fn costs_of_a_known_workload() {
        const ALONE: &str = "COSTS_ALONE";
        if std::env::var_os(ALONE).is_some() {
            return check_costs();
        }
        let this = std::env::current_exe().expect("this test is a program");
        let mut alone = std::process::Command::new(this);
        alone.args(["--exact", "process::tests::costs_of_a_known_workload"]).env(ALONE, "1");
        let done = alone.output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
    }

    fn check_costs() {
        const PAGES: usize = 8192;
        let sample = measured::<Glibc>(|| {
            let block = AnyBlock::paged(PAGES * 4096);
            Done { ops: 1, blocks: vec![block] }
        });
        let costs = sample.expect("glibc served it").costs.expect("it is measured");
        // Huge pages would make fewer faults.
        assert!(costs.faults >= PAGES as u64, "{costs:?}");
        assert!(costs.peak_bytes >= (PAGES * 4096) as u64, "{costs:?}");
        assert!((20.0..100_000.0).contains(&costs.fault_ns), "{costs:?}");
        let known = Costs { faults: 10, fault_ns: 250.5, ..Costs::default() };
        assert_eq!(known.all_faults_ns(), 2505.0);
    }
}
