//! Objects of pool_workqueue: how many follow from the workqueues and the CPUs.
//!
//! Since 6.6 each workqueue has an object for each CPU, and an unbound one has another that no CPU brings. So
//! a machine with `n` CPUs has `w n + u` objects, of `w` workqueues and `u` unbound ones. Which workqueues
//! there are depends on the machine's modules and file systems, so the objects of a dump tell `w`, and boots
//! tell `u / w`.

use crate::state::State;
use slablab_slabs::Release;

/// The cache.
pub(super) const CACHE: &str = "pool_workqueue";

/// Before, an unbound workqueue had an object for each node, and one for CPUs had its objects elsewhere.
const PER_CPU_SINCE: Release = Release::new(6, 6, 0);

/// Objects that no CPU brings, for each workqueue: Debian's 6.12.117 had 68, 114 and 206 objects after boot
/// on 1, 2 and 4 CPUs, counted with `slub_debug=F,pool_workqueue`: 46 for each CPU and 22.
const ONCE: f64 = 22.0 / 46.0;

/// Whether each workqueue of this kernel has an object for each CPU.
pub(super) fn are_per_cpu(state: &State) -> bool {
    state.release.is_some_and(|release| release >= PER_CPU_SINCE)
}

/// Objects that come with the CPUs, or go if negative, of `objects` on `today` CPUs.
pub(super) fn more(objects: f64, today: f64, then: f64) -> f64 {
    objects / (today + ONCE) * (then - today)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_boots_of_6_12() {
        #[track_caller]
        fn check(objects: u64, today: u32, then: u32, expected: u64) {
            let found = objects as f64 + more(objects as f64, today.into(), then.into());
            assert_eq!(found.round() as u64, expected, "{today} CPUs, then {then}");
        }
        check(68, 1, 2, 114);
        check(68, 1, 4, 206);
        check(206, 4, 1, 68);
        check(114, 2, 4, 206);
    }
}
