//! Text for people: paragraphs as wide as the terminal, tables of at most 80 columns.

use super::columns;
use super::parts::{meminfo_parts, parts};
use super::words::{evidence, messages as messages_of, remedies, saving, subject, title};
use crate::act::Report;
use crate::measure::Line;

use crate::measure::SortKey;
use crate::measure::history::History;
use crate::measure::meminfo::Meminfo;
use crate::what::Known;
use slablab_report::column::Style;
use slablab_report::html::Cell;
use slablab_report::text::{Table, cut, grouped, signed, wrapped};
use slablab_report::visible;

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

/// The report as text.
pub fn doctor_table(report: &Report, shown: &Shown) -> String {
    let mut out = wrapped(&format!("{}: {}", title(report.measured.state), subject(report)), "", "  ");
    let has_caches = !report.measured.lines.is_empty() || report.measured.state.dump.pasted.is_none();
    out += &wrapped(&format!("Verdict: {}", report.verdict.text), "", "  ");
    let held = match &report.measured.meminfo {
        _ if has_caches => split_table(report),
        Some(meminfo) => meminfo_table(meminfo),
        None => String::new(),
    };
    let listed = if has_caches { caches(report, shown) } else { String::new() };
    let said = findings(report) + &messages(report);
    // Growth leads where it is asked for: it is what may be wrong.
    if report.measured.history.is_some() {
        out += &[said, actions(report), curves(report, shown), cgroups(report, shown)].concat();
        out += &format!("\n{listed}\n{held}");
    } else {
        out += &[held, listed].map(|part| if part.is_empty() { part } else { format!("\n{part}") }).concat();
        out += &(cgroups(report, shown) + &said + &actions(report));
    }
    let said = evidence(report);
    if !said.is_empty() {
        out += "\nEvidence\n";
        said.iter().for_each(|text| out += &wrapped(text, "- ", "  "));
    }
    for command in remedies(report) {
        out += &format!("\nThis makes what is missing readable:\n{command}\n");
    }
    visible::lines(&out).into_owned()
}

/// The split of all caches, and the comparison of their sum with /proc/meminfo.
fn split_table(report: &Report) -> String {
    let mut table = Table::new(["Slab memory", "bytes", "%"]);
    let all = report.measured.total.bytes;
    let percent = |bytes: i64| {
        if all == 0 { "-".into() } else { format!("{:.1}", 100.0 * bytes as f64 / all as f64) }
    };
    for (part, bytes) in parts(&report.measured.total) {
        table.row(["  ".repeat(part.depth) + part.name, signed(bytes), percent(bytes)]);
    }
    let mut explained = String::new();
    if let Some(meminfo) = report.measured.meminfo.as_ref().filter(|_| report.measured.state.has_all_caches())
    {
        table.row(["outside caches".into(), signed(meminfo.gap), percent(meminfo.gap)]);
        table.row(["meminfo Slab".into(), grouped(meminfo.slab), percent(meminfo.slab as i64)]);
        for (name, bytes) in meminfo_parts(report) {
            table.row([format!("  {name}"), grouped(bytes), percent(bytes as i64)]);
        }
        explained = wrapped(&format!("outside caches: {}", meminfo.explanation()), "", "  ");
    }
    table.print() + &explained + &rounding(report)
}

/// What /proc/meminfo says of slabs, where no cache is known.
fn meminfo_table(meminfo: &Meminfo) -> String {
    let mut table = Table::new(["/proc/meminfo", "bytes", "%"]);
    let all = meminfo.total.unwrap_or(meminfo.slab).max(1);
    let of = [
        ("MemTotal", meminfo.total),
        ("Slab", Some(meminfo.slab)),
        ("  SReclaimable", meminfo.reclaimable),
        ("  SUnreclaim", meminfo.unreclaimable),
    ];
    for (name, bytes) in of {
        if let Some(bytes) = bytes {
            table.row([name.into(), grouped(bytes), format!("{:.1}", 100.0 * bytes as f64 / all as f64)]);
        }
    }
    table.print()
}

/// The messages of the kernel, explained.
fn messages(report: &Report) -> String {
    let mut out = String::new();
    for failure in messages_of(report) {
        out += &format!("\n{}\n", failure.title());
        for part in failure.parts(Known::builtin()) {
            let label = if part.label.is_empty() { String::new() } else { format!("{}: ", part.label) };
            out += &wrapped(&format!("{label}{}", part.text), "- ", "  ");
            if let Some(command) = part.command {
                out += &format!("    {command}\n");
            }
        }
    }
    out
}

/// The rounding of kmalloc among objects in use, from the recording.
fn rounding(report: &Report) -> String {
    let Some(rounding) = report.measured.rounding else { return String::new() };
    let lost = match rounding.losses.events {
        0 => String::new(),
        lost => format!("; the recording lost {} events, so that some of these may be freed", grouped(lost)),
    };
    let text = format!(
        "kmalloc rounding, in use: {} objects that the recording allocated and did not free asked for {} \
         bytes and got {}, {} more{lost}",
        grouped(rounding.objects),
        grouped(rounding.requested),
        grouped(rounding.allocated),
        grouped(rounding.bytes())
    );
    wrapped(&text, "", "  ")
}

/// The first caches by the sort key.
fn caches(report: &Report, shown: &Shown) -> String {
    let lines = report.measured.sorted(shown.sort);
    // Growth takes the place of what a table of 80 columns can do without.
    let keys: &[&str] = match report.measured.history.as_ref().map(History::has_rates) {
        Some(true) => &["mark", "space", "loss", "active_objects", "growth_bytes", "growth_objects", "rate"],
        Some(false) => {
            &["mark", "space", "loss", "active_objects", "objsize", "growth_bytes", "growth_objects"]
        }
        None => &["mark", "space", "loss", "active_objects", "used", "objsize", "objs_per_slab", "order"],
    };
    let most = lines.iter().copied().take(shown.lines);
    if shown.lines == 0 {
        let (all, by) = (lines.len(), shown.sort.words());
        return format!("Caches: none of {all} listed (-N 0); -N 15 lists the first 15, by {by}\n");
    }
    let style = if shown.bytes { Style::Bytes } else { Style::Kib };
    let mut out =
        columns::caches().text(("Cache", &|line| Cell::Name(name(line))), keys, most, style).print();
    if lines.len() > shown.lines {
        out += &format!("... and {} more, by {} (-N, -s)\n", lines.len() - shown.lines, shown.sort.words());
    }
    if shown.aliases {
        let merged = lines.iter().take(shown.lines).filter(|line| !line.cache.aliases.is_empty());
        let said: String = merged
            .map(|line| wrapped(&format!("{}: {}", name(line), line.cache.aliases.join(", ")), "", "  "))
            .collect();
        if !said.is_empty() {
            out += "\nOther names of merged caches\n";
            out += &said;
        }
    }
    out
}

/// Slab memory of caches in each snapshot, if there are more than two.
fn curves(report: &Report, shown: &Shown) -> String {
    let Some(history) = report.measured.history.as_ref().filter(|history| history.points() > 2) else {
        return String::new();
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
    let worth = report.measured.worth();
    let worthy = report.measured.grown.iter().filter(|group| group.bytes >= worth);
    for group in worthy.take(shown.lines.min(CURVES)) {
        let line = &report.measured.lines[group.lines[0]];
        let points = line.growth.iter().flat_map(|growth| &growth.points);
        let course = if group.steady == Some(true) { "steady growth" } else { "not steady" };
        let cells = points.map(|bytes| grouped(bytes >> 10));
        table.row([name(line), course.into()].into_iter().chain(cells));
    }
    if table.is_empty() {
        return String::new();
    }
    format!("\n{}", table.print_within(slablab_report::text::width()))
}

/// Caches whose course is shown.
const CURVES: usize = 8;
/// Cgroups that are shown.
const CGROUPS: usize = 8;

/// Slab memory by cgroup.
fn cgroups(report: &Report, shown: &Shown) -> String {
    if report.measured.charged.is_empty() {
        return String::new();
    }
    let counted = report.measured.charged.iter().any(|charged| charged.cgroup.unreclaimable.is_some());
    let columns: &[&str] = match counted {
        true => &["Cgroup", "Slab K", "recl. K", "unrecl. K", "Grown K"],
        // Version 1 counts all kernel memory as one.
        false => &["Cgroup", "Kernel memory K", "Grown K"],
    };
    let kib = |bytes: Option<u64>| bytes.map_or("-".into(), |bytes| grouped(bytes >> 10));
    let mut table = Table::new(columns);
    for charged in report.measured.charged.iter().take(shown.lines.min(CGROUPS)) {
        let grown = charged.growth.map_or("-".into(), |growth| signed(growth / 1024));
        let mut row = vec![cut(&charged.name, 40), kib(Some(charged.bytes))];
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
    let rest = if words.is_empty() { String::new() } else { format!("... and {}\n", words.join(", ")) };
    format!("\n{}{rest}", table.print())
}

fn findings(report: &Report) -> String {
    if report.found.findings.is_empty() {
        return "\nFindings\n- none of at least 1 % of slab memory and 64 KiB\n".into();
    }
    let said = report.found.findings.iter().map(|finding| wrapped(&finding.text, "- ", "  "));
    "\nFindings\n".to_string() + &said.collect::<String>()
}

fn actions(report: &Report) -> String {
    if report.actions.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nWhat this kernel lets you do, as root\n");
    for action in &report.actions {
        // A command is typed or pasted: it is not broken.
        out += &format!("- {}\n", action.command);
        let saves = saving(action.saves);
        out += &wrapped(&format!("{}; {saves}: {}", action.way.words(), action.basis), "    ", "    ");
        out += &wrapped(&format!("costs: {}", action.cost), "    ", "    ");
    }
    out
}

/// The cache's name, with its ordinal if it is not the first cache of that name. A long name is cut, because
/// tables are 80 columns wide.
fn name(line: &Line) -> String {
    const WIDEST: usize = 23;
    let ordinal = if line.cache.ordinal > 0 { format!("#{}", line.cache.ordinal + 1) } else { String::new() };
    cut(&line.cache.name, WIDEST.saturating_sub(ordinal.len())) + &ordinal
}
