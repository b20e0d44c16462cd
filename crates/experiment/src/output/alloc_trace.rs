//! A trace of allocations, as in the mail of September 2009: lines, then a summary.

use slablab_report::text::Table;
use slablab_sim::trace::{Counts, Line, Trace};
use std::fmt::Write;

/// The lines of the first allocations and the summary of all. In place of a cache's address stands its name.
pub fn allocation_trace(trace: &Trace) -> String {
    let mut out = String::from("timestamp cpu pid function format tag cache gfp\n");
    let mut traced = 0;
    for line in &trace.lines {
        traced += u64::from(line.misc == 0 && line.function == trace.lines[0].function);
        out += &shown(trace, line);
    }
    let total = trace.total();
    if total.allocations > traced {
        let more = total.allocations - traced;
        writeln!(out, "{more} more allocations: the summary has them").expect("a String takes all");
    }
    out += "\nsummary: times in us; misc: 0 at a function's begin, 1 at its end, 2 and 3 if it failed\n";
    out += &summary(trace, &total);
    out
}

fn shown(trace: &Trace, line: &Line) -> String {
    let Line { at, cpu, task, function, misc, cache, gfp, node } = line;
    let (seconds, nanoseconds) = (at / 1_000_000_000_000, at / 1_000 % 1_000_000_000);
    let cache = &trace.names[*cache as usize];
    let node = node.map_or(String::new(), |node| format!(" {:#x}", node.0));
    let (cpu, task) = (cpu.0, task.0);
    format!("{seconds}.{nanoseconds:09} {cpu} {task} {function} misc: {misc:#x} {cache} {gfp:#x}{node}\n")
}

fn summary(trace: &Trace, total: &Counts) -> String {
    let heads =
        ["", "max depth", "avg calls", "min", "max", "avg alloc time", "refills", "grows", "fallbacks"];
    let mut table = Table::new(heads);
    let named = trace.caches.iter().map(|(cache, counts)| (trace.names[*cache as usize].as_str(), counts));
    for (name, counts) in named.chain([("total", total)]) {
        let each = |sum: u64| sum as f64 / counts.allocations.max(1) as f64;
        table.row([
            name.to_string(),
            counts.depth_max.to_string(),
            format!("{:.2}", each(counts.calls)),
            format!("{:.3}", counts.shortest as f64 / 1e6),
            format!("{:.3}", counts.longest as f64 / 1e6),
            format!("{:.3}", each(counts.time) / 1e6),
            counts.refills.to_string(),
            counts.grows.to_string(),
            counts.fallbacks.to_string(),
        ]);
    }
    table.print_within(usize::MAX)
}
