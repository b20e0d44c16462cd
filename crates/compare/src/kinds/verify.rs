//! `slablab verify`: how well the model predicts a real kernel.

use super::replay::{lost, recording};
use super::{Kind, Shown, list, singles, text};
use crate::answer::{Answer, Fact, Quantity, Role, program};
use serde_json::Value;
use slablab_stats::table::Better::{Higher, Lower};

pub(super) const KIND: Kind = Kind {
    verb: "verify",
    words: "slablab verify",
    schema: "slablab.verify.1",
    medians: false,
    exact: "each is one recording: other recordings of the same workload give other errors",
    read,
};

const SKILLS: &[Shown] = &[
    ("skill_slab_bytes", "skill, slabs", 1.0, 3, Higher),
    ("skill_active_bytes", "skill, objects", 1.0, 3, Higher),
];

fn read(document: &Value) -> Result<Answer, String> {
    let mut answer = Answer {
        inputs: recording(document, None),
        settings: vec![program(document), Fact::of("recorded kernel", &document["release"])],
        engines: vec![text(document, "engine")?.to_string()],
        cautions: lost(document),
        ..Answer::default()
    };
    let place = |role| (Some(0), "", role);
    answer.quantities.extend(singles(document, SKILLS, place(Role::Answer)));
    let pages = [("error_percent", "slab pages off, %", 1.0, 2, Lower)];
    answer.quantities.extend(singles(&document["slab_pages"], &pages, place(Role::Answer)));
    let error = [("error_bytes", "", 1024.0, 0, Lower)];
    for cache in list(document, "caches")? {
        let name = text(cache, "cache")?.to_string();
        let group = (Some(0), "caches, KiB off", Role::Detail);
        let of = singles(cache, &error, group);
        answer.quantities.extend(of.map(|quantity| Quantity { name: name.clone(), ..quantity }));
    }
    Ok(answer)
}
