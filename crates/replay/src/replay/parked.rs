//! Objects that SLAB parks in arrays as the recording begins.
//!
//! /proc/slabinfo counts them as active. `sharedavail` says how many are in the arrays that the CPUs of a
//! node share, all nodes together; each node gets a part by the free objects it has. How many are in the
//! CPUs' own arrays no file says: at least those that the recording sees as free, and that neither lists of
//! nodes nor shared arrays have room for. So many are taken. More would be a guess: an array that was not
//! used is empty after five visits of the reaper.

use super::before::CacheBefore;
use super::fill::spread;
use super::planned::{PlannedSlab, Start, free_objects};
use crate::machine::Chosen;
use crate::quantiles::Quantiles;

/// Free objects in arrays, of one cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parked {
    /// In the array of each CPU.
    pub cpus: Vec<u32>,
    /// In the shared array of each node.
    pub shared: Vec<u32>,
}

/// Decides how many objects are parked, and frees as many of those that the recording does not see.
pub(super) fn park(
    slabs: &mut [PlannedSlab],
    dump: &CacheBefore,
    machine: &Chosen,
    quantiles: &mut Quantiles,
) -> Parked {
    let (Some(shared), Some(total)) = (dump.knobs.shared_objects, dump.slabs.as_ref()) else {
        return Parked::default();
    };
    let sum = |of: fn(&PlannedSlab) -> u64| -> u64 { slabs.iter().map(of).sum() };
    let (all, free) = (sum(|slab| slab.objects.len() as u64), sum(free_objects));
    let listed = (total.total.value * dump.objects).saturating_sub(dump.active).min(all);
    let shared = shared.min(dump.active);
    let arrays = free.saturating_sub(listed + shared);
    free_unseen(slabs, (listed + shared).saturating_sub(free), quantiles);
    let of_node = |node: u16| slabs.iter().filter(|slab| slab.node == node).map(free_objects).sum();
    let of_nodes: Vec<u64> = (0..machine.spec.nodes.len() as u16).map(of_node).collect();
    let of_cpus: Vec<u64> = machine.spec.cpu_node.iter().map(|node| of_node(*node)).collect();
    let small = |numbers: Vec<u64>| numbers.into_iter().map(|number| number as u32).collect();
    Parked { cpus: small(spread(arrays, &of_cpus)), shared: small(spread(shared, &of_nodes)) }
}

/// Frees `count` objects that the recording does not see, of any slabs, and no slab's last.
fn free_unseen(slabs: &mut [PlannedSlab], count: u64, quantiles: &mut Quantiles) {
    let mut unseen: Vec<(usize, usize)> = Vec::new();
    for (at, slab) in slabs.iter().enumerate() {
        let kept = slab.objects.iter().enumerate().filter(|(_, start)| **start == Start::Kept);
        let has_others = slab.objects.iter().any(|start| matches!(start, Start::Old(_)));
        unseen.extend(kept.skip(usize::from(!has_others)).map(|(index, _)| (at, index)));
    }
    for _ in 0..count.min(unseen.len() as u64) {
        let (at, index) = unseen.swap_remove(quantiles.below(unseen.len() as u64) as usize);
        let turn = free_objects(&slabs[at]) as u16;
        slabs[at].objects[index] = Start::Free(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_whole() {
        assert_eq!(spread(10, &[1, 1, 1]), [3, 3, 4]);
        assert_eq!(spread(7, &[0, 5, 0]), [0, 7, 0]);
        assert_eq!(spread(7, &[0, 0]), [7, 0]);
    }
}
