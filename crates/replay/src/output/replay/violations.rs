//! What debugging found in a replay: text as a kernel prints it, and JSON.

use crate::replay::outcome::Outcome;
use serde_json::{Value, json};
use slablab_slabs::report::Misuse;
use slablab_slabs::report::{Fault, Report, Text};
use slablab_slabs::report::{Overwritten, User};

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

/// Everything that was found, as JSON; null if the engine runs without debugging.
pub(super) fn json(outcome: &Outcome) -> Value {
    let found = &outcome.violations;
    if !outcome.wrap.is_on() {
        return Value::Null;
    }
    let caches = found.caches.iter().map(|(cache, reports)| {
        json!({
            "cache": cache,
            "total": reports.total,
            "first": reports.first.iter().flatten().map(report).collect::<Vec<_>>(),
        })
    });
    json!({
        "reports": found.caches.iter().map(|(_, reports)| reports.total).sum::<u64>(),
        "caches": caches.collect::<Vec<_>>(),
        "rows_free_again": found.freed_again,
        "rows_free_unallocated": found.never_allocated,
    })
}

fn report(report: &Report) -> Value {
    let (offset, found, expected) = match report.fault {
        Fault::Overwritten(Overwritten { offset, found, expected, .. }) => {
            (json!(offset), json!(found), json!(expected))
        }
        Fault::Misuse(_) | Fault::HandedOutTwice => (Value::Null, Value::Null, Value::Null),
    };
    let owner = match report.fault {
        Fault::Misuse(Misuse::WrongCache(owner)) => json!(owner.0),
        _ => Value::Null,
    };
    let user = |user: &User| json!({ "site": user.site, "cpu": user.cpu.0, "time_ns": user.at_ns });
    json!({
        "fault": report.fault.name(),
        "object": report.object,
        "offset_bytes": offset,
        "found_byte": found,
        "expected_byte": expected,
        "owner_cache": owner,
        "by": user(&report.by),
        "allocated": report.allocated.as_ref().map(user),
        "freed": report.freed.as_ref().map(user),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_platform::CpuId;
    use slablab_slabs::CacheId;
    use slablab_slabs::report::Zone;

    fn check(fault: Fault, lines: &str, keys: &[(&str, Value)]) {
        let user = |site, cpu, at_ns| User { site, cpu: CpuId(cpu), at_ns };
        let (allocated, freed) = (Some(user(12, 1, 400)), None);
        let found =
            Report { fault, cache: CacheId(3), object: 0x4000, by: user(99, 2, 1000), allocated, freed };
        let end =
            "INFO: Allocated in 12 age=600 ns cpu=1\nINFO: Object 0x4000, found in 99 on cpu 2 at 1000 ns";
        let text = Text::new(&found, "kmalloc-64").to_string();
        assert_eq!(text, format!("{lines}\n{end}"));
        let json = report(&found);
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
