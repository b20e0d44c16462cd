//! What debugging found in a replay: text as a kernel prints it, and a document.

use crate::replay::outcome::Outcome;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_slabs::report::{Fault, Misuse, Report, Reports, Text, User};

/// All violations, as lines of text. Empty if debugging was off or found none.
pub(super) fn lines(outcome: &Outcome) -> Vec<String> {
    let found = &outcome.violations;
    let mut lines = Vec::new();
    for (cache, reports) in &found.caches {
        let more = reports.total - reports.first.iter().flatten().count() as u64;
        lines.extend(reports.first.iter().flatten().map(|report| Text::new(report, cache).to_string()));
        if more > 0 {
            lines.push(format!("... and {more} more in {cache}"));
        }
    }
    if let Some(row) = found.first_freed_again {
        lines.push(format!(
            "{}: {} rows free an address again (the first: row {row}): a double free, or an allocation \
             between that left no event",
            outcome.engine(),
            found.freed_again
        ));
    }
    if found.never_allocated > 0 {
        lines.push(format!(
            "{}: {} rows free what neither a row allocated nor the start has: a wrong free, or an \
             allocation that left no event",
            outcome.engine(),
            found.never_allocated
        ));
    }
    lines
}

/// Everything that was found.
#[derive(Serialize, JsonSchema)]
pub(super) struct Violations {
    caches: Vec<OfCache>,
    reports: u64,
    /// Rows that free an address again which an earlier row freed.
    rows_free_again: u64,
    /// Other rows that free what neither a row allocated nor the start has.
    rows_free_unallocated: u64,
}

#[derive(Serialize, JsonSchema)]
struct OfCache {
    cache: String,
    total: u64,
    /// The first reports.
    first: Vec<Found>,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    fault: &'static str,
    object: u64,
    /// The first byte that is wrong, from the object's start.
    offset_bytes: Option<i32>,
    found_byte: Option<u8>,
    expected_byte: Option<u8>,
    /// The number of the cache that the object is of.
    owner_cache: Option<u32>,
    by: By,
    allocated: Option<By>,
    freed: Option<By>,
}

#[derive(Serialize, JsonSchema)]
struct By {
    site: u64,
    cpu: u16,
    time_ns: u64,
}

impl Violations {
    /// `None` if the engine runs without debugging.
    pub(super) fn of(outcome: &Outcome) -> Option<Violations> {
        let found = &outcome.violations;
        let of_cache = |(cache, reports): &(String, Reports)| OfCache {
            cache: cache.clone(),
            total: reports.total,
            first: reports.first.iter().flatten().map(report).collect(),
        };
        outcome.wrap.is_on().then(|| Violations {
            caches: found.caches.iter().map(of_cache).collect(),
            reports: found.caches.iter().map(|(_, reports)| reports.total).sum(),
            rows_free_again: found.freed_again,
            rows_free_unallocated: found.never_allocated,
        })
    }
}

fn report(report: &Report) -> Found {
    let wrong = match report.fault {
        Fault::Overwritten(overwritten) => Some(overwritten),
        Fault::Misuse(_) | Fault::HandedOutTwice => None,
    };
    let owner_cache = match report.fault {
        Fault::Misuse(Misuse::WrongCache(owner)) => Some(owner.0),
        _ => None,
    };
    let by = |user: &User| By { site: user.site, cpu: user.cpu.0, time_ns: user.at_ns };
    Found {
        fault: report.fault.name(),
        object: report.object,
        offset_bytes: wrong.map(|wrong| wrong.offset),
        found_byte: wrong.map(|wrong| wrong.found),
        expected_byte: wrong.map(|wrong| wrong.expected),
        owner_cache,
        by: by(&report.by),
        allocated: report.allocated.as_ref().map(by),
        freed: report.freed.as_ref().map(by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use slablab_platform::CpuId;
    use slablab_slabs::CacheId;
    use slablab_slabs::report::{Overwritten, Zone};

    fn check(fault: Fault, lines: &str, keys: &[(&str, Value)]) {
        let user = |site, cpu, at_ns| User { site, cpu: CpuId(cpu), at_ns };
        let (allocated, freed) = (Some(user(12, 1, 400)), None);
        let found =
            Report { fault, cache: CacheId(3), object: 0x4000, by: user(99, 2, 1000), allocated, freed };
        let end =
            "INFO: Allocated in 12 age=600 ns cpu=1\nINFO: Object 0x4000, found in 99 on cpu 2 at 1000 ns";
        let text = Text::new(&found, "kmalloc-64").to_string();
        assert_eq!(text, format!("{lines}\n{end}"));
        let json = serde_json::to_value(report(&found)).expect("JSON");
        assert_eq!(json["allocated"]["site"], 12);
        assert_eq!(json["freed"], Value::Null);
        for (key, value) in keys {
            assert_eq!(json[key], *value, "{key} of {json}");
        }
    }

    #[test]
    fn a_report_reads_as_the_kernels() {
        let right = Overwritten { zone: Zone::RightRedZone, offset: 64, found: 0x41, expected: 0xcc };
        check(
            Fault::Overwritten(right),
            "BUG kmalloc-64: Right Redzone overwritten\nINFO: byte 64 of the object is 0x41 instead of 0xcc",
            &[("offset_bytes", json!(64)), ("found_byte", json!(0x41)), ("expected_byte", json!(0xcc))],
        );
        check(
            Fault::Misuse(Misuse::AlreadyFree),
            "BUG kmalloc-64: Object already free",
            &[("fault", json!("Object already free")), ("offset_bytes", Value::Null)],
        );
        check(
            Fault::Misuse(Misuse::WrongCache(CacheId(7))),
            "BUG kmalloc-64: Object of another cache\nINFO: it belongs to cache 7",
            &[("owner_cache", json!(7))],
        );
    }
}
