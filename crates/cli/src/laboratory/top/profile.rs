//! A look as a profile that pprof and what collects its files reads. There is no code in it, for the library
//! records none: a chain leads from the program to a cache, or to memory that is no slab's.

use super::view::Look;
use slablab_report::pprof::{Kind, Profile};

/// The profile of a look.
pub(super) fn of(look: &Look) -> Profile {
    let kinds = [
        Kind::new("inuse_objects", "count"),
        Kind::new("inuse_space", "bytes"),
        Kind::new("held_space", "bytes"),
        Kind::new("parked_space", "bytes"),
        Kind::new("pinned_space", "bytes"),
    ];
    let sample = &look.sample;
    let mut profile = Profile::new(&kinds, "inuse_space", 1);
    let mut in_slabs = 0;
    for cache in &sample.caches {
        let parked = cache.in_sheaves + cache.in_barns;
        let live = cache.live.saturating_mul(cache.object_bytes);
        in_slabs += live;
        let numbers =
            [cache.live, live, cache.bytes, parked.saturating_mul(cache.slot_bytes), cache.pinned_bytes()];
        profile.sample([look.command.as_str(), "slabs", &cache.name], &numbers);
    }
    let blocks = sample.live_bytes.saturating_sub(in_slabs);
    for (what, numbers) in [
        ("blocks of page frames", [0, blocks, blocks, 0, 0]),
        ("mappings", [sample.mappings, sample.mapping_bytes, sample.mapping_bytes, 0, 0]),
        ("free page frames", [0, 0, sample.free_frame_bytes, 0, 0]),
    ] {
        if numbers.iter().any(|number| *number > 0) {
            profile.sample([look.command.as_str(), what], &numbers);
        }
    }
    profile
}
