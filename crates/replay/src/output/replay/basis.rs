//! What a replay is of, and what it rests on.

use super::columns::MARK_ABOVE_PERCENT;
use super::table::busiest;
use super::violations;
use crate::output::recording::gaps;
use crate::replay::Replay;
use slablab_report::html::Cell;
use slablab_report::html::chart::Scale;
use slablab_report::text::counted;
use slablab_report::visible;

/// What the recording lacks, then the replay's warnings, a line each.
pub(in crate::output) fn leading(replay: &Replay) -> Vec<String> {
    let warnings = replay.warnings.iter().map(|text| format!("warning: {text}"));
    let lines = gaps(&replay.metadata).into_iter().chain(warnings);
    lines.map(|line| visible::lines(&line).into_owned()).collect()
}

/// The limits of the result: what the answer lacks, then what it rests on.
pub fn remarks(replay: &Replay) -> Vec<String> {
    [leading(replay), rests_on(replay)].concat()
}

/// What the result rests on: assumptions, caches with many assumed events, and what debugging found.
pub(in crate::output) fn rests_on(replay: &Replay) -> Vec<String> {
    let mut remarks = replay.metadata.warnings.clone();
    remarks.extend(replay.machine.assumed.iter().map(|text| format!("assumed: {text}")));
    remarks.extend(replay.assumed.iter().map(|text| match text.starts_with("inferred: ") {
        true => text.clone(),
        false => format!("assumed: {text}"),
    }));
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

/// The recording, and the machine that it was replayed on.
pub(in crate::output) fn recording_line(replay: &Replay) -> String {
    let kernel = replay.metadata.release.as_deref().unwrap_or("an unknown kernel");
    let machine = &replay.machine.spec;
    format!(
        "{}: {}, recorded on {kernel}; machine: {}, {}, {} K pages",
        visible::path(&replay.path),
        counted(replay.metadata.statistics.rows, "row"),
        counted(machine.cpu_node.len() as u64, "CPU"),
        counted(machine.nodes.len() as u64, "node"),
        (1u64 << machine.page_shift) / 1024
    )
}

/// What the recording and the machine are, in numbers.
pub(in crate::output) fn recorded(replay: &Replay) -> [(&'static str, Cell); 7] {
    let statistics = &replay.metadata.statistics;
    let seconds = statistics.last_time_ns.saturating_sub(statistics.first_time_ns) as f64 / 1e9;
    let machine = &replay.machine.spec;
    let kernel = replay.metadata.release.clone().map_or(Cell::Text("unknown".into()), Cell::Name);
    [
        ("Kernel", kernel),
        ("Rows", Cell::Count(statistics.rows)),
        ("Recorded time", Cell::Text(Scale::Seconds.print(seconds))),
        ("CPUs", Cell::Count(machine.cpu_node.len() as u64)),
        ("Nodes", Cell::Count(machine.nodes.len() as u64)),
        ("Page size", Cell::Bytes(1 << machine.page_shift)),
        ("Events lost", Cell::Count(replay.metadata.losses.events)),
    ]
}
