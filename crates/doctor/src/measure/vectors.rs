//! Tables of memory cgroups: for each slab whose objects are charged, the kernel keeps an array with a word
//! for each object (since 5.9), in a kmalloc cache. So a kmalloc cache grows by as many objects as other
//! caches grow by slabs, and goes when they go.

use super::line::Line;
use crate::state::State;
use slablab_slabs::Release;

/// The first release with such arrays.
const SINCE: Release = Release::new(5, 9, 0);
/// Bytes for each object: the cgroup, and since 6.10, if the kernel was built so, where it was allocated.
const EACH: [u64; 2] = [8, 16];
/// Sizes of kmalloc caches that such an array may be in.
const CLASSES: [u64; 11] = [8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048];
/// The most that growth is above the number of slabs: others use the cache too, in per cent.
const PERCENT: u64 = 120;

/// The cache whose slabs these arrays are for, most of them, if the growth of `at` is that of such arrays.
pub(super) fn owner(lines: &[Line], at: usize, state: &State) -> Option<usize> {
    state.release.filter(|release| *release >= SINCE)?;
    let grown = lines[at].growth.as_ref()?.objects;
    let class = class_of_name(&lines[at].cache.name)?;
    let of_width = |each: u64| {
        let slabs = lines.iter().enumerate().filter_map(|(other, line)| {
            let bytes = line.growth.as_ref()?.bytes;
            let slabs = u64::try_from(bytes).ok()? / line.cache.slab_bytes(state.page_size).max(1);
            let array =
                CLASSES.into_iter().find(|size| *size >= line.cache.objects_per_slab.saturating_mul(each));
            (array == Some(class) && other != at && slabs > 0).then_some((other, slabs))
        });
        let slabs: Vec<(usize, u64)> = slabs.collect();
        let sum = slabs.iter().fold(0u64, |sum, (_, slabs)| sum.saturating_add(*slabs));
        let explained = grown > 0 && grown as u64 <= sum.saturating_mul(PERCENT) / 100;
        slabs.into_iter().max_by_key(|(_, slabs)| *slabs).filter(|_| explained)
    };
    EACH.into_iter().filter_map(of_width).max_by_key(|(_, slabs)| *slabs).map(|(other, _)| other)
}

/// Bytes of the plain kmalloc cache of this name.
fn class_of_name(name: &str) -> Option<u64> {
    let size = name.strip_prefix("kmalloc-")?;
    match size.strip_suffix('k') {
        Some(kib) => Some(kib.parse::<u64>().ok()?.saturating_mul(1024)),
        None => size.parse().ok(),
    }
}
