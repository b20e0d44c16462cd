//! What programs over TCP have in common: kernel objects, acknowledgements, locks of a segment.

use super::program::{Metric, Object, ppm};
use crate::kernel::era::Era;
use crate::kernel::objects::Object as Kernel;
use crate::kernel::tally::Outcome;
use crate::net::tcp::Rules;
use slablab_platform::Event;
use slablab_slabs::Release;

/// Acknowledgements without data.
pub const ACKS: Metric =
    Metric::percent("acks_ppm", "acknowledgements without data, of the segments with data", None);
/// Locks of a segment.
pub const LOCKS: Metric =
    Metric::each("locks_milli", "locks of the allocators taken for one segment, SLUB's slab_lock too");

/// Segments of the whole run.
fn segments(outcome: &Outcome) -> u64 {
    outcome.cache("skbuff_fclone_cache").map_or(1, |cache| cache.allocs.max(1))
}

/// The number of [`ACKS`].
pub fn acks(outcome: &Outcome) -> u64 {
    ppm(outcome.cache("skbuff_head_cache").map_or(0, |cache| cache.allocs), segments(outcome))
}

/// The number of [`LOCKS`]. SLUB's slab_lock is a bit of a word, so it has no rank: its event counts it.
pub fn locks(outcome: &Outcome) -> u64 {
    let ranked = outcome.locks.iter().filter(|(name, _)| !name.starts_with("tcp "));
    let events = outcome.caches.iter().flat_map(|cache| &cache.events);
    let bits: u64 = events.filter(|(event, _)| *event == Event::LockSlab).map(|(_, count)| *count).sum();
    (ranked.map(|(_, times)| times.taken).sum::<u64>() + bits) * 1_000 / segments(outcome)
}

/// The kernel objects of a release; `segments` says how many segments an operation has.
pub fn objects(release: Release, segments: &'static str) -> Vec<Object> {
    let rules = Rules::of(Era { release });
    let of = |object: Kernel, per_operation: &'static str| {
        let row = object.row(Era { release })?;
        Some(Object {
            cache: row.name,
            bytes: row.bytes,
            per_operation: per_operation.into(),
            source: row.source,
        })
    };
    const HEAD: &str = "1 for each segment: its headers, until 3.6 data too; 1 for each acknowledgement";
    let head = of(Kernel::SmallHead, HEAD).unwrap_or(Object {
        cache: "kmalloc of heads",
        bytes: rules.data_head,
        per_operation: HEAD.into(),
        source: "slabinfo of tbench (C. Lameter, 9 February 2008): 4,096 bytes, 1,024 without data; 640 from \
                 3.7 on, assumed",
    });
    let ack = "1 for each acknowledgement without data: freed where it is taken";
    let sock = "2 for each connection";
    let all = [
        of(Kernel::SkBuffClones, segments),
        Some(head),
        of(Kernel::SkBuff, ack),
        of(Kernel::TcpSock, sock),
        of(Kernel::SocketInode, sock),
    ];
    all.into_iter().flatten().collect()
}
