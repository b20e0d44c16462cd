//! Prometheus' text format, for its textfile collector.
//!
//! Names of caches repeat, so that a series is told by `cache` and `ordinal` together.

use crate::act::Report;
use crate::measure::Line;
use slablab_report::visible;
use std::fmt::Write;

/// A metric: name, help, and its value for one cache.
type Metric = (&'static str, &'static str, fn(&Line) -> Option<i64>);

/// Gauges of each cache. Units are in the names, as Prometheus asks.
const METRICS: [Metric; 11] = [
    ("slab_bytes", "Bytes of slabs.", |line| whole(line.split.bytes)),
    ("in_use_bytes", "Bytes of objects the kernel counts as active, parked ones included.", |line| {
        whole(line.split.in_use)
    }),
    ("parked_low_bytes", "Bytes of objects parked with CPUs, at least; absent if unknown.", |line| {
        whole(line.split.parked.low).filter(|_| !line.split.parked_unknown)
    }),
    ("parked_high_bytes", "Bytes of objects parked with CPUs, at most; absent if unknown.", |line| {
        whole(line.split.parked.high).filter(|_| !line.split.parked_unknown)
    }),
    ("loss_bytes", "Loss as slabinfo computes it: slabs less active objects.", |line| {
        Some(line.split.loss())
    }),
    ("free_bytes", "Bytes of free objects in slabs.", |line| whole(line.split.free)),
    ("tail_bytes", "Bytes behind the last object of each slab.", |line| whole(line.split.tail)),
    ("metadata_bytes", "Bytes of alignment, free pointers and debugging; absent if unknown.", |line| {
        line.split.metadata.and_then(|metadata| whole(metadata.total()))
    }),
    ("objects", "Objects there is room for.", |line| whole(line.cache.total_objects)),
    ("active_objects", "Objects the kernel counts as active.", |line| whole(line.cache.active_objects)),
    ("slabs", "Slabs.", |line| whole(line.cache.slabs)),
];

fn whole(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

/// The report as metrics.
pub(super) fn metrics(report: &Report) -> String {
    let mut out = String::new();
    for (name, help, value) in METRICS {
        header(&mut out, &format!("cache_{name}"), help);
        for line in &report.measured.lines {
            if let Some(value) = value(line) {
                let (cache, ordinal) = (escaped(&line.cache.name), line.cache.ordinal);
                writeln!(out, "slablab_cache_{name}{{cache=\"{cache}\",ordinal=\"{ordinal}\"}} {value}")
                    .expect("a string");
            }
        }
    }
    let meminfo = report.measured.meminfo.as_ref();
    let totals = [
        ("caches", "Caches.", Some(report.measured.lines.len() as i64)),
        ("meminfo_slab_bytes", "Slab of /proc/meminfo.", meminfo.and_then(|meminfo| whole(meminfo.slab))),
        (
            "meminfo_outside_caches_bytes",
            "Slab of /proc/meminfo less the slabs of all caches: large kmallocs, and counters that lag.",
            meminfo.map(|meminfo| meminfo.gap),
        ),
        ("missing_inputs", "Files that could not be read.", Some(report.measured.state.missing.len() as i64)),
    ];
    for (name, help, value) in totals {
        if let Some(value) = value {
            header(&mut out, name, help);
            writeln!(out, "slablab_{name} {value}").expect("a string");
        }
    }
    out
}

fn header(out: &mut String, name: &str, help: &str) {
    writeln!(out, "# HELP slablab_{name} {help}\n# TYPE slablab_{name} gauge").expect("a string");
}

/// A label's value: control characters become escapes, backslash and quote are escaped.
fn escaped(text: &str) -> String {
    visible::name(text).replace('\\', "\\\\").replace('"', "\\\"")
}
