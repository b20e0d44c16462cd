//! What is on the page alone: charts with their tables.

use super::columns::{self, signed};
use super::parts::{meminfo_parts, meminfo_rows, parts};
use super::text::Shown;
use super::words::subject;
use crate::act::Report;
use crate::measure::grown::Grown;
use crate::measure::meminfo::Meminfo;
use crate::measure::rounding::Rounding;
use crate::measure::split::{Metadata, Split};
use crate::measure::{Line, SortKey, named};
use crate::words::capital;
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Bar, Bars, Lines, Pair, Pairs, Scale, Series, Shape};
use slablab_report::html::{Cell, Head, Table, name_of, number};
use slablab_report::text::grouped;
use std::cmp::Reverse;

/// The parts of slabs, as the bars name them.
const PARTS: [&str; 6] =
    ["in use", "parked with CPUs, at most", "free in slabs", "tail of slabs", "padding", "debugging"];
/// The parked part, which is not shown where the input does not tell it.
const PARKED: usize = 1;
/// The first part that is loss.
const LOSS: usize = 2;

/// All slabs by what is in them.
pub(super) fn split(answer: Answer, report: &Report) -> Answer {
    let whole = Bar { label: "all caches".into(), values: sizes(&report.measured.total).to_vec() };
    let answer = answer.section("Where it is").figure(
        match report.measured.total.parked_unknown {
            false => {
                "All slabs by what is in them. What is in use, parked or not, and the loss make the whole, to \
                 the byte."
            }
            true => "All slabs by what is in them. What is in use and the loss make the whole, to the byte.",
        },
        bars(report, 0, vec![whole], "slab memory"),
        split_table(report),
    );
    let meminfo = report.measured.meminfo.as_ref().filter(|_| report.measured.state.has_all_caches());
    let outside = meminfo.map(|meminfo| format!("Outside caches: {}.", meminfo.explanation()));
    outside.into_iter().fold(answer, |answer, outside| answer.paragraph(&outside))
}

/// The machine and its slabs in a sentence.
pub(super) fn lede(report: &Report) -> String {
    let total = &report.measured.total;
    let share = |bytes: f64| number::percent(100.0 * bytes / total.bytes as f64);
    let parked = match (total.parked.low, total.parked.high) {
        _ if total.parked_unknown => String::new(),
        (_, 0) => String::new(),
        (0, high) => {
            format!("; up to {} of what counts as in use is parked with CPUs", number::bytes(high))
        }
        (low, high) => format!(
            "; between {} and {} of what counts as in use is parked with CPUs",
            number::bytes(low),
            number::bytes(high)
        ),
    };
    if !is_split(report) {
        return format!("{}.", capital(&subject(report)));
    }
    format!(
        "{}. The slabs take {}; {} of them ({}) hold no object{parked}.",
        capital(&subject(report)),
        number::bytes(total.bytes),
        number::signed_bytes(total.loss()).trim_start_matches('+'),
        share(total.loss() as f64),
    )
}

/// Whether the input says what is in slabs: a text may have the kernel's counters alone.
pub(super) fn is_split(report: &Report) -> bool {
    !report.measured.lines.is_empty() || report.measured.state.dump.pasted.is_none()
}

/// What /proc/meminfo says of slabs, where no cache is known.
pub(super) fn meminfo(answer: Answer, meminfo: &Meminfo) -> Answer {
    let mut table =
        Table::new([Head::text("/proc/meminfo"), Head::number("bytes"), Head::number("of memory")]);
    for (name, bytes, percent) in meminfo_rows(meminfo) {
        let name = "\u{2003}".repeat((name.len() - name.trim_start().len()) / 2) + name.trim_start();
        table.row([Cell::Text(name), Cell::Bytes(bytes), Cell::Percent(Some(percent))]);
    }
    answer
        .section("Where it is")
        .page_table("The kernel's counters; the input does not say which caches have it.", table)
}

pub(super) fn facts(report: &Report) -> Vec<(&'static str, Cell)> {
    let mut facts = Vec::new();
    if !is_split(report) {
        facts.extend(
            report.measured.meminfo.as_ref().map(|meminfo| ("Slab memory", Cell::Bytes(meminfo.slab))),
        );
        facts.extend(of_meminfo(report));
        return facts;
    }
    if let Some(history) = &report.measured.history {
        let growth = history.total();
        facts.push(("Grown", Cell::ByteChange(growth.bytes)));
        let climbed =
            report.measured.grown.iter().filter(|group| !group.benign).map(|group| group.bytes).sum();
        facts.push(("not reclaimable", Cell::Bytes(climbed)));
        facts.extend(growth.fit.map(|fit| ("Grown an hour", Cell::ByteChange(fit.bytes_per_hour as i64))));
    }
    facts.push(("Slab memory", Cell::Bytes(report.measured.total.bytes)));
    facts.extend(of_meminfo(report));
    facts.push(("Loss", signed(report.measured.total.loss())));
    if !report.measured.total.parked_unknown {
        facts.push(("Parked, at most", Cell::Bytes(report.measured.total.parked.high)));
    }
    facts
}

/// The kernel's counters of slab memory, and the machine's memory.
fn of_meminfo(report: &Report) -> impl Iterator<Item = (&'static str, Cell)> {
    let counters = report.measured.meminfo.as_ref().map(|meminfo| {
        [
            ("SReclaimable", meminfo.reclaimable),
            ("SUnreclaim", meminfo.unreclaimable),
            ("Memory", meminfo.total),
        ]
    });
    counters.into_iter().flatten().filter_map(|(name, bytes)| Some((name, Cell::Bytes(bytes?))))
}

/// The sizes of [`PARTS`]. Where counters raced their sum is more than the whole by [`Split::raced`].
fn sizes(split: &Split) -> [f64; 6] {
    let Metadata { alignment, pointer, debugging, accounting } = split.metadata.unwrap_or_default();
    let parked = if split.parked_unknown { 0 } else { split.parked.high };
    let held = split.in_use.saturating_sub(parked);
    let padding = alignment.saturating_add(pointer).saturating_add(accounting);
    [held, parked, split.free, split.tail, padding, debugging].map(|bytes| bytes as f64)
}

/// Bars of the parts from the first one on, without the last ones that no cache has any of: debugging,
/// mostly.
fn bars(report: &Report, first: usize, mut bars: Vec<Bar>, label: &str) -> Bars {
    let last = sizes(&report.measured.total).iter().rposition(|bytes| *bytes > 0.0).unwrap_or(0).max(first);
    let mut parts: Vec<String> = PARTS[first..=last].iter().map(|part| (*part).into()).collect();
    bars.iter_mut().for_each(|bar| bar.values.truncate(parts.len()));
    // A part that is not known has no colour either: all charts of the page leave it out.
    let unknown = report.measured.total.parked_unknown;
    if unknown && (first..=last).contains(&PARKED) {
        parts.remove(PARKED - first);
        for bar in &mut bars {
            bar.values.remove(PARKED - first);
        }
    }
    Bars {
        parts,
        first_colour: if unknown && first > PARKED { first - 1 } else { first },
        bars,
        axis: Axis::new(label, Scale::Bytes),
        remainder: false,
    }
}

fn split_table(report: &Report) -> Table {
    let mut table = Table::new([Head::text("slab memory"), Head::number("bytes"), Head::number("of all")]);
    let all = report.measured.total.bytes;
    let mut add = |name: String, bytes: i64| {
        let percent = (all > 0).then(|| 100.0 * bytes as f64 / all as f64);
        table.row([Cell::Text(name), signed(bytes), Cell::Percent(percent)]);
    };
    parts(&report.measured.total)
        .for_each(|(part, bytes)| add("\u{2003}".repeat(part.depth) + part.name, bytes));
    if let Some(meminfo) = report.measured.meminfo.as_ref().filter(|_| report.measured.state.has_all_caches())
    {
        add("outside caches".into(), meminfo.gap);
        add("meminfo Slab".into(), i64::try_from(meminfo.slab).unwrap_or(i64::MAX));
        for (name, bytes) in meminfo_parts(report) {
            let inside = name.len() - name.trim_start().len();
            let name = "\u{2003}".repeat(1 + inside / 2) + name.trim_start();
            add(name, i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }
    table
}

/// The caches by the key that the user asked for, and those with most loss.
pub(super) fn caches(answer: Answer, report: &Report, shown: &Shown) -> Answer {
    let lines: Vec<&Line> = report.measured.sorted(shown.sort).into_iter().take(shown.lines).collect();
    let bar = |first: usize| {
        move |line: &&Line| Bar { label: named(line), values: sizes(&line.split)[first..].to_vec() }
    };
    let mut answer = answer.section("Caches").figure(
        &format!(
            "The first {} of {} caches by {}.",
            lines.len(),
            report.measured.lines.len(),
            shown.sort.words()
        ),
        bars(report, 0, lines.iter().map(bar(0)).collect(), "slab memory"),
        caches_table(&lines, report.measured.history.is_some()),
    );
    let mut worst = report.measured.sorted(SortKey::Loss);
    worst.retain(|line| line.split.loss() > 0);
    worst.truncate(shown.lines);
    answer = answer.figure(
        &format!("The {} caches with most memory that holds no object.", worst.len()),
        bars(report, LOSS, worst.iter().map(bar(LOSS)).collect(), "loss"),
        loss_table(&worst),
    );
    let mut known: Vec<&Line> =
        lines.iter().chain(&worst).copied().filter(|line| line.what.is_some()).collect();
    known.sort_by(|a, b| a.cache.name.cmp(&b.cache.name).then(a.cache.ordinal.cmp(&b.cache.ordinal)));
    known.dedup_by(|a, b| a.cache.name == b.cache.name);
    if !known.is_empty() {
        let columns = ["cache", "what it is for", "grows with"].map(Head::text);
        let mut table = Table::new(columns);
        for (line, entry) in known.iter().filter_map(|line| Some((line, line.what?))) {
            let grows = entry.grows_with.clone().map_or(Cell::Empty, Cell::Text);
            table.row([Cell::Name(line.cache.name.clone()), Cell::Text(entry.what.clone()), grows]);
        }
        answer = answer.folded_table("What these caches are for; slablab what NAME says more.", table);
    }
    if shown.aliases {
        let mut table = Table::new([Head::text("cache"), Head::text("also")]);
        for line in lines.iter().filter(|line| !line.cache.aliases.is_empty()) {
            table.row([Cell::Name(named(line)), Cell::Text(line.cache.aliases.join(", "))]);
        }
        answer = answer.page_table("Other names of merged caches.", table);
    }
    answer
}

fn caches_table(lines: &[&Line], grown: bool) -> Table {
    let mut keys =
        vec!["mark", "space", "loss", "active_objects", "used", "objsize", "objs_per_slab", "order"];
    if grown {
        keys.push("growth_bytes");
    }
    columns::caches().html(("cache", &label), &keys, lines.iter().copied())
}

fn label(line: &Line) -> Cell {
    Cell::Name(named(line))
}

fn loss_table(lines: &[&Line]) -> Table {
    let keys = ["space", "loss", "loss_share", "free", "tail", "padding", "debugging"];
    columns::caches().html(("cache", &label), &keys, lines.iter().copied())
}

/// The caches that changed most since the first snapshot.
pub(super) fn growth(answer: Answer, report: &Report, shown: &Shown) -> Answer {
    let Some(history) = report.measured.history.as_ref().filter(|_| is_split(report)) else { return answer };
    let answer = answer.section("Growth");
    let mut grown: Vec<(&Line, i64)> = report
        .measured
        .lines
        .iter()
        .filter_map(|line| Some((line, line.growth.as_ref()?)))
        // Of several caches that are followed as one, the first stands for all.
        .filter(|(line, growth)| growth.bytes != 0 && !(growth.together && line.cache.ordinal > 0))
        .map(|(line, growth)| (line, growth.bytes))
        .collect();
    grown.sort_by_key(|(line, bytes)| (Reverse(bytes.unsigned_abs()), &line.cache.name, line.cache.ordinal));
    grown.truncate(shown.lines);
    if grown.is_empty() {
        return answer.paragraph(match shown.lines {
            0 => "No cache is listed (-N 0).",
            _ => "No cache has more or less slab memory than in the first snapshot.",
        });
    }
    let mut keys = vec!["mark", "growth_bytes", "growth_objects", "active_objects"];
    if history.has_rates() {
        keys.extend(["rate", "rate_error", "growth_r2"]);
    }
    let table = columns::caches().html(("cache", &label), &keys, grown.iter().map(|(line, _)| *line));
    if let Some(hours) = history.hours.as_ref().filter(|hours| hours.len() > 2) {
        let axis = Axis::new("slab memory", Scale::Bytes);
        let chart = curves(report, hours, axis);
        return answer.figure("The caches that grew most, in each snapshot.", chart, table);
    }
    let pair = |(line, bytes): &(&Line, i64)| Pair { label: named(line), values: [0.0, *bytes as f64] };
    let chart = Pairs {
        names: ["first snapshot".into(), "now".into()],
        rows: grown.iter().map(pair).collect(),
        axis: Axis::new("change of slab memory", Scale::Bytes),
    };
    answer.figure("Caches that changed most.", chart, table)
}

/// Lines in one chart.
const CURVES: usize = 6;

/// Slab memory of what grew most, over the time of the snapshots.
fn curves(report: &Report, hours: &[f64], y: Axis) -> Lines {
    let worth = report.measured.worth;
    let minutes = hours[hours.len() - 1] < 1.0;
    let (unit, factor) = if minutes { ("minutes", 60.0) } else { ("hours", 1.0) };
    let series = |group: &Grown| {
        let line = &report.measured.lines[group.lines[0]];
        let points = line.growth.iter().flat_map(|growth| &growth.points);
        let points = hours.iter().zip(points).map(|(at, bytes)| (at * factor, *bytes as f64)).collect();
        Series { name: named(line), points, band: Vec::new() }
    };
    Lines {
        x: Axis::new(&format!("{unit} since the first snapshot"), Scale::Number),
        y,
        shape: Shape::Straight,
        series: report
            .measured
            .grown
            .iter()
            .filter(|group| group.bytes >= worth)
            .take(CURVES)
            .map(series)
            .collect(),
    }
}

/// Kernel memory by cgroup.
pub(super) fn cgroups(answer: Answer, report: &Report, shown: &Shown) -> Answer {
    if report.measured.charged.is_empty() {
        return answer;
    }
    let columns = ["slabs or kernel memory", "reclaimable", "not reclaimable", "grown"].map(Head::number);
    let mut table = Table::new([Head::text("cgroup"), Head::text("path")].into_iter().chain(columns));
    for charged in report.measured.charged.iter().take(shown.lines) {
        let bytes = |bytes: Option<u64>| bytes.map_or(Cell::Empty, Cell::Bytes);
        table.row([
            Cell::Name(charged.name.clone()),
            Cell::Text(charged.cgroup.path.clone()),
            Cell::Bytes(charged.bytes),
            bytes(charged.cgroup.reclaimable),
            bytes(charged.cgroup.unreclaimable),
            charged.growth.map_or(Cell::Empty, Cell::ByteChange),
        ]);
    }
    let dying = report.measured.state.dump.owners.dying();
    let dying = dying
        .map_or(String::new(), |dying| format!(" {} removed cgroups still hold memory.", grouped(dying)));
    let of = format!(
        "The first {} of {} cgroups without children; cgroups of version 1 count all kernel memory as one.{dying}",
        table.rows.len(),
        report.measured.charged.len()
    );
    answer.section("Cgroups").page_table(&of, table)
}

/// Bytes given beyond those asked for, class by class.
pub(super) fn kmalloc(answer: Answer, rounding: &Rounding) -> Answer {
    let answer = answer.section("What kmalloc's classes cost").paragraph(&format!(
        "The {} kmallocs that {} saw, and that were not freed in it, asked for {} and got {}. Objects \
         allocated before the recording started are not included.",
        grouped(rounding.objects),
        name_of(&rounding.path),
        number::bytes(rounding.requested),
        number::bytes(rounding.allocated)
    ));
    let columns = ["objects", "asked for", "got", "rounding"].map(Head::number);
    let mut table = Table::new([Head::number("class").unit("bytes")].into_iter().chain(columns));
    let mut rows = Vec::new();
    for (class, (objects, requested)) in &rounding.classes {
        let got = u64::from(*class).saturating_mul(*objects);
        let over = got.saturating_sub(*requested);
        let cells = [*requested, got, over].map(Cell::Bytes);
        table.row([Cell::Count(u64::from(*class)), Cell::Count(*objects)].into_iter().chain(cells));
        rows.push(Bar { label: grouped(u64::from(*class)), values: vec![*requested as f64, over as f64] });
    }
    let chart = Bars {
        parts: vec!["asked for".into(), "rounding".into()],
        first_colour: 0,
        bars: rows,
        axis: Axis::new("memory given", Scale::Bytes),
        remainder: false,
    };
    answer.figure("Live kmallocs of the recording by the bytes of their class.", chart, table)
}
