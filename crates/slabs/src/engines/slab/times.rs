//! When the reaper visits (docs/theory/slab.md 6): pure functions of times in nanoseconds.
//!
//! A visit is two seconds behind the last one, and a CPU's first one a second behind the start, each rounded
//! to a whole second as the kernel rounds timers: with `interval` for the two seconds, to half of it. Visits
//! of CPU n are 12 n ms before the whole second, so that not all CPUs wake at once.

/// A tick of the kernel's clock: 250 a second.
const TICK_NS: u64 = 4_000_000;
/// From one CPU's visits to the next one's.
const SKEW_NS: u64 = 3 * TICK_NS;

/// A visit of `cpu` that is asked for `delay` after `now`, in a reaper that comes every `interval`.
fn rounded(cpu: u16, now: u64, delay: u64, interval: u64) -> u64 {
    let second = interval.div_ceil(2);
    let skew = SKEW_NS * cpu as u64;
    let at = now.saturating_add(delay).saturating_add(skew);
    let rest = at % second;
    // Up, unless less than a quarter is left over: 62 of 250 ticks.
    let up = if rest < second / 250 * 62 { 0 } else { second };
    let whole = (at - rest).saturating_add(up).saturating_sub(skew);
    if whole > now { whole } else { now.saturating_add(delay) }
}

/// The visit behind one that happens `now`.
pub(super) fn next(cpu: u16, now: u64, interval: u64) -> u64 {
    rounded(cpu, now, interval, interval)
}

/// A CPU's first visit after `now`, and the number of its visits before, if it is up since `up`.
pub(super) fn first(cpu: u16, (up, now): (u64, u64), interval: u64) -> (u64, u64) {
    let first = rounded(cpu, up, interval.div_ceil(2), interval);
    let before = now.checked_sub(first).map_or(0, |since| since / interval + 1);
    (before.saturating_mul(interval).saturating_add(first), before)
}

/// The first visit of the nodes of a cache that is made `now`: two intervals later, and another part of two
/// intervals that differs between caches. A kernel takes the address of `struct kmem_cache` for that part;
/// the cache's number `id` stands for it, as such structures follow each other by 192 bytes.
pub(super) fn first_of_nodes(id: u32, now: u64, interval: u64) -> u64 {
    now.saturating_add(2 * interval + 2 * interval / 1000 * (192 * id as u64 % 1000))
}

#[cfg(test)]
mod tests {
    use super::{first, first_of_nodes, next};

    const MS: u64 = 1_000_000;

    /// Read off a 6.1.192 with SLAB: the times that its timers ask for.
    #[test]
    fn visits_are_at_whole_seconds_less_12_ms_for_each_cpu() {
        for (cpu, at) in [(0, 1000), (1, 988), (20, 760), (21, 1748), (22, 1736), (63, 1244), (84, 992)] {
            assert_eq!(first(cpu, (0, 0), 2000 * MS), (at * MS, 0), "CPU {cpu}");
            assert_eq!(next(cpu, at * MS, 2000 * MS), (at + 2000) * MS, "CPU {cpu}");
            // From the first use of the cache on.
            assert_eq!(first(cpu, (0, at * MS - 1), 2000 * MS), (at * MS, 0), "CPU {cpu}");
            assert_eq!(first(cpu, (0, at * MS), 2000 * MS), ((at + 2000) * MS, 1), "CPU {cpu}");
            assert_eq!(first(cpu, (0, (at + 3999) * MS), 2000 * MS), ((at + 4000) * MS, 2), "CPU {cpu}");
        }
        // A CPU that came up at 700 ms: the first visit is a second later, rounded.
        assert_eq!(first(0, (700 * MS, 5000 * MS), 2000 * MS), (6000 * MS, 2));
        assert_eq!(first(1, (1200 * MS, 1300 * MS), 2000 * MS), (1988 * MS, 0));
        // A late visit: the next one is at the same place of its second.
        assert_eq!(next(1, (988 + 244) * MS, 2000 * MS), 2988 * MS);
        assert_eq!(next(1, (988 + 248) * MS, 2000 * MS), 3988 * MS);
        // Another interval.
        assert_eq!((first(1, (0, 0), 500 * MS), next(0, 250 * MS, 500 * MS)), ((238 * MS, 0), 750 * MS));
        assert_eq!(first(40, (0, 0), 20 * MS).1, 0);
        assert!((0..40).all(|cpu| first(cpu, (0, 0), 1).0 > 0 && next(cpu, 77, 1) > 77));
    }

    #[test]
    fn caches_visit_their_nodes_at_different_times() {
        assert_eq!(first_of_nodes(0, 7 * MS, 2000 * MS), 4007 * MS);
        assert_eq!(first_of_nodes(3, 0, 2000 * MS), (4000 + 4 * 576) * MS);
        assert_eq!(first_of_nodes(6, 0, 2000 * MS), (4000 + 4 * 152) * MS);
    }
}
