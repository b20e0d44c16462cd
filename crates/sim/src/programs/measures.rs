//! What programs on the simulated kernel measure alike: shares, waits, switches, memory.
//!
//! A workload lists its own metrics and gets the others from here:
//!
//! ```text
//! const METRICS: [Metric; 1 + KERNEL.len()] = with_kernel([OWN]);
//! sample(&METRICS, &outcome, &[(OWN.name, number)])
//! ```

use super::program::{Metric, Object, Sample, ppm};
use crate::kernel::era::Era;
use crate::kernel::objects::Object as Kernel;
use crate::kernel::tally::Outcome;
use slablab_model::Spent;
use slablab_platform::Event;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::collections::BTreeMap;

/// Allocations that took the fast path.
pub const FAST_ALLOCS: Metric =
    Metric::percent("fast_allocs_ppm", "allocations that took the fast path", Some(Better::Higher));
/// Frees that took the fast path.
pub const FAST_FREES: Metric =
    Metric::percent("fast_frees_ppm", "frees that took the fast path", Some(Better::Higher));
/// Frees on another CPU than that of the allocation.
pub const ELSEWHERE: Metric =
    Metric::percent("elsewhere_ppm", "frees on another CPU than that of the allocation", None);
/// Waits for locks.
pub const LOCK_WAIT: Metric =
    Metric::percent("lock_wait_ppm", "part of the CPUs' time in waits for locks", Some(Better::Lower));
/// Time without a task.
pub const IDLE: Metric = Metric::percent("idle_ppm", "part of the CPUs' time without a task", None);
/// Context switches.
pub const SWITCHES: Metric =
    Metric::each("switches_milli", "context switches of one message, or of one operation");
/// Cache lines that moved.
pub const LINES: Metric =
    Metric::each("lines_milli", "cache lines that come from other CPUs or from memory, for one operation");
/// Slab memory.
pub const SLAB_MAX: Metric = Metric {
    name: "slab_bytes_max",
    about: "slab memory at its highest",
    better: Some(Better::Lower),
    unit: "MiB",
    per_unit: 1_048_576.0,
    decimals: 1,
};

/// What each program on the simulated kernel measures beside its own metrics.
pub const KERNEL: [Metric; 7] = [FAST_ALLOCS, FAST_FREES, ELSEWHERE, LOCK_WAIT, IDLE, SWITCHES, SLAB_MAX];

/// A workload's own metrics, then [`KERNEL`]. `ALL` is the sum of both counts.
pub const fn with_kernel<const OWN: usize, const ALL: usize>(own: [Metric; OWN]) -> [Metric; ALL] {
    assert!(ALL == OWN + KERNEL.len());
    let mut all = [FAST_ALLOCS; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < OWN { own[at] } else { KERNEL[at - OWN] };
        at += 1;
    }
    all
}

/// The rows of kernel objects, each with how many an operation allocates, and when.
pub fn rows(release: Release, objects: &[(Kernel, &'static str)]) -> Vec<Object> {
    let row = |(object, per_operation): &(Kernel, &'static str)| {
        let row = object.row(Era { release })?;
        let per_operation = (*per_operation).into();
        Some(Object { cache: row.name, bytes: row.bytes, per_operation, source: row.source })
    };
    objects.iter().filter_map(row).collect()
}

/// The sample of a run: `own` numbers, and for the other `metrics` those of this file.
///
/// # Panics
/// If a metric is neither in `own` nor of this file.
pub fn sample(metrics: &[Metric], outcome: &Outcome, own: &[(&'static str, u64)]) -> Sample {
    let mut counters = BTreeMap::new();
    for (event, count) in outcome.caches.iter().flat_map(|cache| &cache.events) {
        *counters.entry(event.name().to_string()).or_insert(0) += count;
    }
    let count = |event: Event| counters.get(event.name()).copied().unwrap_or(0);
    let share = |fast: Event, slow: Event| ppm(count(fast), count(fast) + count(slow));
    let (elsewhere, frees) = outcome.frees();
    let whole = outcome.elapsed * outcome.spent.len() as u64;
    let spent: u64 = outcome.spent.iter().flatten().sum();
    let waits: u64 = outcome.spent.iter().map(|spent| spent[Spent::LockWait as usize]).sum();
    let each = |number: u64| number * 1_000 / outcome.messages.max(1);
    let of_kernel = [
        (FAST_ALLOCS.name, share(Event::AllocFastpath, Event::AllocSlowpath)),
        (FAST_FREES.name, share(Event::FreeFastpath, Event::FreeSlowpath)),
        (ELSEWHERE.name, ppm(elsewhere, frees)),
        (LOCK_WAIT.name, ppm(waits, whole)),
        (IDLE.name, ppm(whole.saturating_sub(spent), whole)),
        (SWITCHES.name, each(outcome.switches)),
        (LINES.name, each(outcome.lines_moved)),
        (SLAB_MAX.name, outcome.slab_bytes.1),
    ];
    let number = |metric: &Metric| {
        let found = own.iter().chain(&of_kernel).find(|(name, _)| *name == metric.name);
        let (name, number) = found.unwrap_or_else(|| panic!("nothing measures {}", metric.name));
        (name.to_string(), *number)
    };
    let metrics = metrics.iter().map(number).collect();
    let locks = outcome.locks.iter().map(|(name, times)| (name.to_string(), *times)).collect();
    Sample { metrics, counters, locks }
}
