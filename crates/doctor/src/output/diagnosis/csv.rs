//! CSV: one row per cache.

use super::parts;
use crate::diagnosis::Report;
use crate::diagnosis::split::Split;
use slablab_report::csv::Csv;

/// Keys of the split, in the order of the columns.
const SPLIT: [&str; 12] = [
    "slab_bytes",
    "in_use_bytes",
    "parked_low_bytes",
    "parked_high_bytes",
    "loss_bytes",
    "free_bytes",
    "tail_bytes",
    "tail_overstated_bytes",
    "alignment_bytes",
    "pointer_bytes",
    "debugging_bytes",
    "raced_bytes",
];

/// Every cache in the order of the input. What is not known is empty.
pub fn doctor_csv(report: &Report) -> String {
    const FIXED: [&str; 9] = [
        "cache",
        "ordinal",
        "object_size_bytes",
        "slab_size_bytes",
        "objs_per_slab",
        "order",
        "slabs",
        "total_objects",
        "active_objects",
    ];
    const GROWTH: [&str; 5] =
        ["growth_bytes", "growth_objects", "bytes_per_hour", "bytes_per_hour_error", "growth_r2"];
    let header = FIXED.iter().chain(&SPLIT).chain(&GROWTH);
    let mut out = Csv::new(header);
    for line in &report.lines {
        let cache = line.cache;
        let fixed = [
            cache.name.clone(),
            cache.ordinal.to_string(),
            text(cache.object_size),
            cache.size.to_string(),
            cache.objects_per_slab.to_string(),
            cache.order.to_string(),
            cache.slabs.to_string(),
            cache.total_objects.to_string(),
            cache.active_objects.to_string(),
        ];
        let growth = line.growth.as_ref();
        let fit = growth.and_then(|growth| growth.fit);
        let grown = [
            text(growth.map(|growth| growth.bytes)),
            text(growth.map(|growth| growth.objects)),
            text(fit.map(|fit| fit.bytes_per_hour)),
            text(fit.and_then(|fit| fit.error)),
            text(fit.and_then(|fit| fit.r2)),
        ];
        let row = fixed.into_iter().chain(split(&line.split)).chain(grown);
        out.row(row);
    }
    out.finish()
}

fn split(split: &Split) -> impl Iterator<Item = String> {
    let parts = parts(split);
    let known = split.metadata.is_some();
    SPLIT.into_iter().map(move |key| {
        let found = parts.iter().find(|part| part.key == key).map(|part| part.bytes);
        let always = known || !["alignment_bytes", "pointer_bytes", "debugging_bytes"].contains(&key);
        text(found.or(always.then_some(0)))
    })
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
