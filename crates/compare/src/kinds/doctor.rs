//! `slablab doctor`: where the slab memory of a machine goes.

use super::{Kind, Shown, caches, list, singles};
use crate::answer::{Answer, Fact, Role, program};
use serde_json::Value;
use slablab_stats::table::Better::Lower;

pub(super) const KIND: Kind = Kind {
    verb: "doctor",
    words: "slablab doctor",
    schema: "slablab.doctor.1",
    medians: false,
    exact: "these are one moment of each machine: the dumps do not tell what is usual there",
    read,
};

const TOTALS: &[Shown] = &[
    ("slab_bytes", "slabs, KiB", 1024.0, 0, Lower),
    ("in_use_bytes", "in use, KiB", 1024.0, 0, Lower),
    ("loss_bytes", "loss, KiB", 1024.0, 0, Lower),
    ("free_bytes", "free, KiB", 1024.0, 0, Lower),
    ("parked_low_bytes", "parked min, KiB", 1024.0, 0, Lower),
    ("parked_high_bytes", "parked max, KiB", 1024.0, 0, Lower),
    ("tail_bytes", "tails, KiB", 1024.0, 0, Lower),
    ("alignment_bytes", "alignment, KiB", 1024.0, 0, Lower),
    ("pointer_bytes", "pointers, KiB", 1024.0, 0, Lower),
    ("debugging_bytes", "debugging, KiB", 1024.0, 0, Lower),
];

const MEMINFO: &[Shown] = &[
    ("slab_bytes", "Slab, KiB", 1024.0, 0, Lower),
    ("reclaimable_bytes", "SReclaimable, KiB", 1024.0, 0, Lower),
    ("unreclaimable_bytes", "SUnreclaim, KiB", 1024.0, 0, Lower),
];

fn read(document: &Value) -> Result<Answer, String> {
    let mut answer = Answer {
        settings: vec![
            program(document),
            Fact::of("input", &document["input"]),
            Fact::of("host", &document["host"]),
            Fact::of("kernel", &document["release"]),
            Fact::of("CPUs", &document["cpus_online"]),
            Fact::of("nodes", &document["nodes"]),
            Fact::of("page size", &document["page_size_bytes"]),
            Fact::of("seconds since boot", &document["up_s"]),
        ],
        ..Answer::default()
    };
    answer.quantities.extend(singles(&document["total"], TOTALS, (None, "", Role::Answer)));
    answer.quantities.extend(singles(&document["meminfo"], MEMINFO, (None, "meminfo", Role::Answer)));
    answer.quantities.extend(caches(list(document, "caches")?, None));
    Ok(answer)
}
