//! Tables for people.

use super::columns::{self, Row};
use super::{Figure, MARK_ABOVE_PERCENT, side_by_side, violations};
use crate::replay::Replay;
use crate::replay::outcome::{CacheOutcome, Outcome};
use slablab_platform::Event;
use slablab_report::text::{Table, grouped};
use slablab_report::visible;

/// One row per figure, one column per engine.
pub fn engines_table(replay: &Replay) -> String {
    let names = replay.outcomes.iter().map(|outcome| outcome.engine().to_string());
    let mut table = Table::new(std::iter::once(String::new()).chain(names));
    for (name, cells) in side_by_side(replay) {
        let cells = cells.iter().map(|figure| figure.as_ref().map_or("0".into(), text));
        table.row(std::iter::once(name).chain(cells));
    }
    table.print()
}

fn text(figure: &Figure) -> String {
    match figure {
        Figure::Count(count) => grouped(*count),
        Figure::Percent(Some(percent)) => format!("{percent:.1} %"),
        Figure::Percent(None) => "-".into(),
        Figure::Bytes(bytes) => format!("{} K", grouped(bytes / 1024)),
        Figure::Heading => String::new(),
    }
}

/// The caches of one engine in the columns of `slabinfo -AD`, busiest first.
///
/// `Objects` counts as the kernel does: everything in CPU slabs is in use.
pub fn caches_table(outcome: &Outcome, limit: usize) -> String {
    let rows = rows(outcome, limit);
    let keys = [
        "objects",
        "alloc",
        "free",
        "fast_allocs",
        "fast_frees",
        "fallbacks",
        "order",
        "slabs",
        "slab_bytes",
        "loss",
        "mark",
    ];
    columns::caches().text(("Name", &|row: &Row| row.cache.name.clone()), &keys, &rows, false).print()
}

/// The `limit` busiest caches as rows.
pub(super) fn rows(outcome: &Outcome, limit: usize) -> Vec<Row<'_>> {
    busiest(outcome).into_iter().take(limit).map(|cache| Row::new(outcome, cache)).collect()
}

/// The caches, most events first.
pub(crate) fn busiest(outcome: &Outcome) -> Vec<&CacheOutcome> {
    let mut caches: Vec<_> = outcome.caches.iter().collect();
    caches.sort_by_key(|cache| {
        (
            std::cmp::Reverse(cache.counts.allocs() + cache.counts.frees()),
            std::cmp::Reverse(cache.end.frames),
            cache.index,
        )
    });
    caches
}

/// One cache: every counter that any engine has, side by side.
pub fn cache_table(replay: &Replay, name: &str) -> Option<String> {
    let found: Vec<Option<&CacheOutcome>> =
        replay.outcomes.iter().map(|outcome| outcome.cache(name)).collect();
    let first = found.iter().flatten().next()?;
    let mut table = Table::new(
        std::iter::once(first.name.clone())
            .chain(replay.outcomes.iter().map(|outcome| outcome.engine().to_string())),
    );
    let mut row = |name: &str, value: &dyn Fn(&CacheOutcome) -> String| {
        let cells = found.iter().map(|cache| cache.map_or("-".into(), value));
        table.row(std::iter::once(name.to_string()).chain(cells));
    };
    row("object_size", &|cache| cache.geometry.object_size.to_string());
    row("slab_size", &|cache| cache.geometry.size.to_string());
    row("order", &|cache| cache.geometry.order.to_string());
    row("objs_per_slab", &|cache| cache.geometry.objects.to_string());
    row("slabs start", &|cache| cache.start.slabs.to_string());
    row("slabs end", &|cache| cache.end.slabs.to_string());
    row("objects end", &|cache| cache.end.active_objects().to_string());
    row("  parked of these", &|cache| cache.end.parked.to_string());
    row("partial end", &|cache| cache.end.partial.to_string());
    row("cpu_slabs end", &|cache| (cache.end.cpu_slabs + cache.end.cpu_partial).to_string());
    row("frees by another CPU", &|cache| cache.traffic.other_cpu.to_string());
    row("frees by another node", &|cache| cache.traffic.other_node.to_string());
    row("frees of older objects", &|cache| cache.traffic.old.to_string());
    row("untraced allocations", &|cache| cache.traffic.bulk.to_string());
    row("untraced frees", &|cache| cache.traffic.implied.to_string());
    for event in Event::ALL {
        if found.iter().flatten().any(|cache| cache.counts.get(*event) > 0) {
            row(event.name(), &|cache| cache.counts.get(*event).to_string());
        }
    }
    Some(table.print())
}

/// The limits of the result: lost events, assumptions, caches with many assumed events.
pub fn remarks(replay: &Replay) -> Vec<String> {
    let mut remarks = Vec::new();
    let losses = &replay.metadata.losses;
    if losses.records > 0 {
        remarks.push(format!(
            "the recording lost {} events in {} places: the answer is incomplete",
            losses.events, losses.records
        ));
    }
    remarks.extend(replay.metadata.warnings.iter().cloned());
    remarks.extend(replay.machine.assumed.iter().map(|text| format!("assumed: {text}")));
    remarks.extend(replay.assumed.iter().map(|text| format!("assumed: {text}")));
    if !replay.hotplug.is_empty() {
        remarks.push(plugged(replay));
    }
    if let Some(outcome) = replay.outcomes.first() {
        let marked: Vec<_> = busiest(outcome)
            .into_iter()
            .filter(|cache| cache.traffic.assumed_percent() > MARK_ABOVE_PERCENT)
            .map(|cache| cache.name.as_str())
            .collect();
        if !marked.is_empty() {
            remarks.push(format!(
                "more than {MARK_ABOVE_PERCENT} % of the events of these caches are not in the recording \
                 (bulk and RCU paths): {}",
                marked.join(", ")
            ));
        }
    }
    remarks.extend(replay.outcomes.iter().flat_map(violations::lines));
    remarks.iter().map(|remark| visible::lines(remark).into_owned()).collect()
}

/// The hotplug commands, and the rows they moved to other CPUs. Both are equal for all engines.
fn plugged(replay: &Replay) -> String {
    let commands: Vec<String> = replay.hotplug.iter().map(|command| command.to_string()).collect();
    let elsewhere = replay.outcomes.first().map_or_else(Default::default, |outcome| outcome.elsewhere);
    let mut text = format!(
        "assumed: {} rows of CPUs that were off ({}) ran on the next CPU of their node",
        elsewhere.rows,
        commands.join(", ")
    );
    if elsewhere.rows_other_node > 0 {
        text += &format!(", {} of them on the nearest node with a CPU", elsewhere.rows_other_node);
    }
    text
}
