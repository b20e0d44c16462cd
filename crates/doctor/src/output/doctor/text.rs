//! What is in the text alone: tables and the lines below them.

use super::columns;
use super::parts::{meminfo_parts, meminfo_rows, parts};
use crate::act::Report;
use crate::find::accounting::said as said_of_accounting;
use crate::measure::history::History;
use crate::measure::meminfo::Meminfo;
use crate::measure::{SortKey, named};
use slablab_report::Answer;
use slablab_report::column::Style;
use slablab_report::html::Cell;
use slablab_report::text::{Table, grouped, signed};

/// The options of the list of caches.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// What the caches are sorted by.
    pub sort: SortKey,
    /// Caches to list.
    pub lines: usize,
    /// Whether to list the other names of merged caches.
    pub aliases: bool,
    /// Whether to print bytes instead of KiB.
    pub bytes: bool,
}

/// Columns of the caches that are left out on a narrow terminal, in this order. Growth takes the place of
/// what a table can do without.
const LEFT_OUT: [&str; 5] = ["O", "O/S", "%Ef", "Objsize", "Objs grown"];
/// Characters that are left of a cache's name at least.
const NAME: usize = 23;
/// Characters that are left of a cgroup's name at least.
const CGROUP_NAME: usize = 40;
/// Caches whose course is shown.
const CURVES: usize = 8;
/// Cgroups that are shown.
const CGROUPS: usize = 8;

/// The split of all caches, and the comparison of their sum with /proc/meminfo.
pub(super) fn split(answer: Answer, report: &Report) -> Answer {
    let mut table = Table::new(["Slab memory", "bytes", "%"]);
    let all = report.measured.total.bytes;
    let percent = |bytes: i64| {
        if all == 0 { "-".into() } else { format!("{:.1}", 100.0 * bytes as f64 / all as f64) }
    };
    for (part, bytes) in parts(&report.measured.total) {
        table.row(["  ".repeat(part.depth) + part.name, signed(bytes), percent(bytes)]);
    }
    let mut lines = Vec::new();
    if let Some(meminfo) = report.measured.meminfo.as_ref().filter(|_| report.measured.state.has_all_caches())
    {
        table.row(["outside caches".into(), signed(meminfo.gap), percent(meminfo.gap)]);
        table.row(["meminfo Slab".into(), grouped(meminfo.slab), percent(meminfo.slab as i64)]);
        for (name, bytes) in meminfo_parts(report) {
            table.row([format!("  {name}"), grouped(bytes), percent(bytes as i64)]);
        }
        lines.push(format!("outside caches: {}", meminfo.explanation()));
    }
    lines.extend(rounding(report));
    lines.extend(accounting(report));
    lines.into_iter().fold(answer.table(table, &[]), Answer::line)
}

/// What /proc/meminfo says of slabs, where no cache is known.
pub(super) fn meminfo(answer: Answer, meminfo: &Meminfo) -> Answer {
    let mut table = Table::new(["/proc/meminfo", "bytes", "%"]);
    for (name, bytes, percent) in meminfo_rows(meminfo) {
        table.row([name.into(), grouped(bytes), format!("{percent:.1}")]);
    }
    answer.table(table, &[])
}

/// The rounding of kmalloc among objects in use, from the recording.
fn rounding(report: &Report) -> Option<String> {
    let rounding = report.measured.rounding?;
    let lost = match rounding.losses.events {
        0 => String::new(),
        lost => format!("; the recording lost {} events, so that some of these may be freed", grouped(lost)),
    };
    Some(format!(
        "kmalloc rounding, in use: {} objects that the recording allocated and did not free asked for {} \
         bytes and got {}, {} more{lost}",
        grouped(rounding.objects),
        grouped(rounding.requested),
        grouped(rounding.allocated),
        grouped(rounding.bytes())
    ))
}

/// What the kernel keeps beside objects in use.
fn accounting(report: &Report) -> Option<String> {
    let said = said_of_accounting(&report.measured)?;
    Some(format!("accounting: {said}"))
}

/// The first caches by the sort key.
pub(super) fn caches(answer: Answer, report: &Report, shown: &Shown) -> Answer {
    let lines = report.measured.sorted(shown.sort);
    let (all, by) = (lines.len(), shown.sort.words());
    if shown.lines == 0 {
        return answer
            .heading(format!("Caches: none of {all} listed (-N 0); -N 15 lists the first 15, by {by}"));
    }
    let grown: &[&str] = match report.measured.history.as_ref().map(History::has_rates) {
        Some(true) => &["growth_bytes", "growth_objects", "rate"],
        Some(false) => &["growth_bytes", "growth_objects"],
        None => &[],
    };
    let keys = ["mark", "space", "loss", "active_objects", "used", "objsize", "objs_per_slab", "order"];
    let keys = [&keys[..], grown].concat();
    let style = if shown.bytes { Style::Bytes } else { Style::Kib };
    let most = lines.iter().copied().take(shown.lines);
    let label: (&str, &dyn Fn(&_) -> Cell) = ("Cache", &|line| Cell::Name(named(line)));
    let table = columns::caches().text(label, &keys, most, style).cut(0, NAME);
    let mut answer = answer.table(table, &LEFT_OUT);
    if all > shown.lines {
        answer = answer.line(format!("... and {} more, by {by} (-N, -s)", all - shown.lines));
    }
    if shown.aliases {
        let merged = lines.iter().take(shown.lines).filter(|line| !line.cache.aliases.is_empty());
        let said: Vec<String> =
            merged.map(|line| format!("{}: {}", named(line), line.cache.aliases.join(", "))).collect();
        if !said.is_empty() {
            answer = answer.heading("Other names of merged caches");
        }
        answer = said.into_iter().fold(answer, Answer::line);
    }
    answer
}

/// Slab memory of caches in each snapshot, if there are more than two.
pub(super) fn curves(answer: Answer, report: &Report, shown: &Shown) -> Answer {
    let Some(history) = report.measured.history.as_ref().filter(|history| history.points() > 2) else {
        return answer;
    };
    let age = |hours: f64| match hours {
        ..1.0 => format!("{:.0} s", hours * 3600.0),
        ..100.0 => format!("{hours:.1} h"),
        _ => format!("{:.1} d", hours / 24.0),
    };
    let heads = (0..history.points()).map(|at| match &history.hours {
        Some(hours) => age(hours[at]),
        None => format!("#{}", at + 1),
    });
    let heads: Vec<String> = ["Slab memory, KiB".into(), "Course".into()].into_iter().chain(heads).collect();
    let mut table = Table::new(heads).numbers(2..usize::MAX);
    let worth = report.measured.worth;
    let worthy = report.measured.grown.iter().filter(|group| group.bytes >= worth);
    for group in worthy.take(shown.lines.min(CURVES)) {
        let line = &report.measured.lines[group.lines[0]];
        let points = line.growth.iter().flat_map(|growth| &growth.points);
        let course = if group.steady == Some(true) { "steady growth" } else { "not steady" };
        let cells = points.map(|bytes| grouped(bytes >> 10));
        table.row([named(line), course.into()].into_iter().chain(cells));
    }
    if table.is_empty() { answer } else { answer.table(table.cut(0, NAME), &[]) }
}

/// Slab memory by cgroup.
pub(super) fn cgroups(answer: Answer, report: &Report, shown: &Shown) -> Answer {
    if report.measured.charged.is_empty() {
        return answer;
    }
    let counted = report.measured.charged.iter().any(|charged| charged.cgroup.unreclaimable.is_some());
    let columns: &[&str] = match counted {
        true => &["Cgroup", "Slab K", "recl. K", "unrecl. K", "Grown K"],
        // Version 1 counts all kernel memory as one.
        false => &["Cgroup", "Kernel memory K", "Grown K"],
    };
    let kib = |bytes: Option<u64>| bytes.map_or("-".into(), |bytes| grouped(bytes >> 10));
    let mut table = Table::new(columns).cut(0, CGROUP_NAME);
    for charged in report.measured.charged.iter().take(shown.lines.min(CGROUPS)) {
        let grown = charged.growth.map_or("-".into(), |growth| signed(growth / 1024));
        let mut row = vec![charged.name.clone(), kib(Some(charged.bytes))];
        if counted {
            row.extend([kib(charged.cgroup.reclaimable), kib(charged.cgroup.unreclaimable)]);
        }
        table.row(row.into_iter().chain([grown]));
    }
    let more = report.measured.charged.len().saturating_sub(shown.lines.min(CGROUPS));
    let mut words = Vec::new();
    if more > 0 {
        words.push(format!("{more} more"));
    }
    words.extend(report.measured.state.dump.owners.dying().map(|dying| format!("{} dying", grouped(dying))));
    let answer = answer.table(table, &["recl. K", "unrecl. K"]);
    if words.is_empty() { answer } else { answer.line(format!("... and {}", words.join(", "))) }
}
