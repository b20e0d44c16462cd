//! The page of the doctor: where slab memory is, what is worth saying of it, what can be done.

use super::columns::{self, signed};
use super::parts::{meminfo_parts, parts};
use super::table::Shown;
use super::words::{evidence, machine, messages, remedies, saving, subject};
use crate::act::Report;
use crate::act::actions::Action;
use crate::measure::Line;
use crate::measure::SortKey;
use crate::measure::grown::Grown;
use crate::measure::named;
use crate::measure::rounding::Rounding;
use crate::measure::split::{Metadata, Split};
use crate::what::Known;
use slablab_report::html::chart::{Axis, Bar, Bars, Lines, Pair, Pairs, Scale, Series, Shape};
use slablab_report::html::{Cell, Head, Page, Table, name_of, number};
use slablab_report::text::grouped;
use std::cmp::Reverse;

/// The parts of slabs, as the bars name them.
const PARTS: [&str; 6] =
    ["in use", "parked with CPUs, at most", "free in slabs", "tail of slabs", "padding", "debugging"];
/// The parked part, which is not shown where the input does not tell it.
const PARKED: usize = 1;
/// The first part that is loss.
const LOSS: usize = 2;

/// What the doctor found, as a page with as many caches as `shown` says; `command` is what made it.
pub fn doctor_page(report: &Report, command: &str, shown: &Shown) -> String {
    let mut page = Page::new(&format!("Slab memory of {}", machine(report.measured.state)), command);
    page.lede(&format!("{}.", capital(&report.verdict.text)));
    page.text(&lede(report));
    facts(report, &mut page);
    // Growth leads where it is asked for: it is what may be wrong.
    if report.measured.history.is_some() {
        growth(report, shown, &mut page);
        said(report, &mut page);
        cgroups(report, shown, &mut page);
        split(report, &mut page);
        caches(report, shown, &mut page);
    } else {
        split(report, &mut page);
        said(report, &mut page);
        caches(report, shown, &mut page);
        cgroups(report, shown, &mut page);
    }
    if let Some(rounding) = report.measured.rounding {
        kmalloc(rounding, &mut page);
    }
    page.evidence(&evidence(report));
    let remedies = remedies(report);
    if !remedies.is_empty() {
        page.text("This makes what is missing readable:").command(&remedies.join("\n"));
    }
    page.finish()
}

/// Findings and actions.
fn said(report: &Report, page: &mut Page) {
    page.section("Findings");
    findings(report, page);
    for failure in messages(report) {
        page.section(&failure.title());
        for part in failure.parts(Known::builtin()) {
            page.text(&part.text);
            if let Some(command) = part.command {
                page.command(&command);
            }
        }
    }
    page.section("What this kernel lets you do");
    actions(report, page);
}

/// All slabs by what is in them.
fn split(report: &Report, page: &mut Page) {
    page.section("Where it is");
    let whole = Bar { label: "all caches".into(), values: sizes(&report.measured.total).to_vec() };
    page.figure(
        match report.measured.total.parked_unknown {
            false => {
                "All slabs by what is in them. What is in use, parked or not, and the loss make the whole, to \
                 the byte."
            }
            true => "All slabs by what is in them. What is in use and the loss make the whole, to the byte.",
        },
        &bars(report, 0, vec![whole], "slab memory"),
        &split_table(report),
    );
    if let Some(meminfo) = report.measured.meminfo.as_ref().filter(|_| report.measured.state.has_all_caches())
    {
        page.note(&format!("Outside caches: {}.", meminfo.explanation()));
    }
}

fn lede(report: &Report) -> String {
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
    format!(
        "{}. The slabs take {}; {} of them ({}) hold no object{parked}.",
        capital(&subject(report)),
        number::bytes(total.bytes),
        number::signed_bytes(total.loss()).trim_start_matches('+'),
        share(total.loss() as f64),
    )
}

fn facts(report: &Report, page: &mut Page) {
    let mut facts = Vec::new();
    if let Some(history) = &report.measured.history {
        let growth = history.total();
        facts.push(("Grown", Cell::ByteChange(growth.bytes)));
        let climbed =
            report.measured.grown.iter().filter(|group| !group.benign).map(|group| group.bytes).sum();
        facts.push(("not reclaimable", Cell::Bytes(climbed)));
        facts.extend(growth.fit.map(|fit| ("Grown an hour", Cell::ByteChange(fit.bytes_per_hour as i64))));
    }
    facts.push(("Slab memory", Cell::Bytes(report.measured.total.bytes)));
    if let Some(meminfo) = &report.measured.meminfo {
        facts.extend(meminfo.reclaimable.map(|bytes| ("SReclaimable", Cell::Bytes(bytes))));
        facts.extend(meminfo.unreclaimable.map(|bytes| ("SUnreclaim", Cell::Bytes(bytes))));
        facts.extend(meminfo.total.map(|total| ("Memory", Cell::Bytes(total))));
    }
    facts.push(("Loss", signed(report.measured.total.loss())));
    if !report.measured.total.parked_unknown {
        facts.push(("Parked, at most", Cell::Bytes(report.measured.total.parked.high)));
    }
    page.facts(facts);
}

/// The sizes of [`PARTS`]. Where counters raced their sum is more than the whole by [`Split::raced`].
fn sizes(split: &Split) -> [f64; 6] {
    let Metadata { alignment, pointer, debugging } = split.metadata.unwrap_or_default();
    let parked = if split.parked_unknown { 0 } else { split.parked.high };
    let held = split.in_use.saturating_sub(parked);
    let padding = alignment.saturating_add(pointer);
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

fn findings(report: &Report, page: &mut Page) {
    if report.found.findings.is_empty() {
        page.text("None of at least 1 % of slab memory and 64 KiB.");
        return;
    }
    let mut table = Table::new([Head::number("about"), Head::text("finding")]);
    for finding in &report.found.findings {
        let about = if finding.bytes == 0 { Cell::Empty } else { Cell::Bytes(finding.bytes) };
        table.row([about, Cell::Text(finding.text.clone())]);
    }
    page.table(
        match report.measured.history {
            Some(_) => {
                "What is worth saying: growth, then most bytes first. One byte can be in several findings."
            }
            None => "What is worth saying, most bytes first. One byte can be in several findings.",
        },
        &table,
    );
}

fn actions(report: &Report, page: &mut Page) {
    if report.actions.is_empty() {
        page.text(match report.measured.state.release {
            Some(_) => "No setting of this kernel would save enough slab memory to be worth its cost.",
            None => {
                "The input does not name the kernel's release, so its settings are unknown. \
                     Add uname -r, or take the dump with `slablab doctor --save FILE`."
            }
        });
        return;
    }
    let columns = ["saves at least", "at most"].map(Head::number);
    let heads = [Head::number("no."), Head::text("action"), Head::text("when")];
    let mut table = Table::new(heads.into_iter().chain(columns));
    for (number, action) in (1u64..).zip(&report.actions) {
        let saves = [action.saves.0, action.saves.1].map(Cell::ByteChange);
        let command = Cell::Name(action.command.clone());
        let cells = [Cell::Count(number), command, Cell::Text(action.way.words().into())];
        table.row(cells.into_iter().chain(saves));
    }
    // A chart has no room for commands, and a shortened one cannot be pasted: their numbers stand for them.
    let row = |(number, action): (u64, &Action)| Pair {
        label: format!("{number}. {}", action.knob),
        values: [action.saves.0 as f64, action.saves.1 as f64],
    };
    let chart = Pairs {
        names: ["at least".into(), "at most".into()],
        rows: (1u64..).zip(&report.actions).map(row).collect(),
        axis: Axis::new("saved", Scale::Bytes),
    };
    page.figure(
        "What each action saves: the range in which it lies. They are not to be added up.",
        &chart,
        &table,
    );
    for (number, action) in (1u64..).zip(&report.actions) {
        page.command(&action.command);
        page.text(&format!(
            "{number}. {}; {}: {}. Costs: {}.",
            capital(action.way.words()),
            saving(action.saves),
            action.basis,
            action.cost
        ));
    }
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// The caches by the key that the user asked for, and those with most loss.
fn caches(report: &Report, shown: &Shown, page: &mut Page) {
    page.section("Caches");
    let lines: Vec<&Line> = report.measured.sorted(shown.sort).into_iter().take(shown.lines).collect();
    let bar = |first: usize| {
        move |line: &&Line| Bar { label: named(line), values: sizes(&line.split)[first..].to_vec() }
    };
    page.figure(
        &format!(
            "The first {} of {} caches by {}.",
            lines.len(),
            report.measured.lines.len(),
            shown.sort.words()
        ),
        &bars(report, 0, lines.iter().map(bar(0)).collect(), "slab memory"),
        &caches_table(&lines, report.measured.history.is_some()),
    );
    let mut worst = report.measured.sorted(SortKey::Loss);
    worst.retain(|line| line.split.loss() > 0);
    worst.truncate(shown.lines);
    page.figure(
        &format!("The {} caches with most memory that holds no object.", worst.len()),
        &bars(report, LOSS, worst.iter().map(bar(LOSS)).collect(), "loss"),
        &loss_table(&worst),
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
        page.folded("What these caches are for; slablab what NAME says more.", &table);
    }
    if shown.aliases {
        let mut table = Table::new([Head::text("cache"), Head::text("also")]);
        for line in lines.iter().filter(|line| !line.cache.aliases.is_empty()) {
            table.row([Cell::Name(named(line)), Cell::Text(line.cache.aliases.join(", "))]);
        }
        page.table("Other names of merged caches.", &table);
    }
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
fn growth(report: &Report, shown: &Shown, page: &mut Page) {
    let Some(history) = &report.measured.history else { return };
    page.section("Growth");
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
        page.text(match shown.lines {
            0 => "No cache is listed (-N 0).",
            _ => "No cache has more or less slab memory than in the first snapshot.",
        });
        return;
    }
    let mut keys = vec!["mark", "growth_bytes", "growth_objects", "active_objects"];
    if history.has_rates() {
        keys.extend(["rate", "rate_error", "growth_r2"]);
    }
    let table = columns::caches().html(("cache", &label), &keys, grown.iter().map(|(line, _)| *line));
    if let Some(hours) = history.hours.as_ref().filter(|hours| hours.len() > 2) {
        let axis = Axis::new("slab memory", Scale::Bytes);
        page.figure("The caches that grew most, in each snapshot.", &curves(report, hours, axis), &table);
        return;
    }
    let pair = |(line, bytes): &(&Line, i64)| Pair { label: named(line), values: [0.0, *bytes as f64] };
    let chart = Pairs {
        names: ["first snapshot".into(), "now".into()],
        rows: grown.iter().map(pair).collect(),
        axis: Axis::new("change of slab memory", Scale::Bytes),
    };
    page.figure("Caches that changed most.", &chart, &table);
}

/// Lines in one chart.
const CURVES: usize = 6;

/// Slab memory of what grew most, over the time of the snapshots.
fn curves(report: &Report, hours: &[f64], y: Axis) -> Lines {
    let worth = report.measured.worth();
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
fn cgroups(report: &Report, shown: &Shown, page: &mut Page) {
    if report.measured.charged.is_empty() {
        return;
    }
    page.section("Cgroups");
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
    page.table(&of, &table);
}

/// Bytes given beyond those asked for, class by class.
fn kmalloc(rounding: &Rounding, page: &mut Page) {
    page.section("What kmalloc's classes cost");
    page.text(&format!(
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
    page.figure("Live kmallocs of the recording by the bytes of their class.", &chart, &table);
}
