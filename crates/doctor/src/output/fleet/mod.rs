//! The answer about many dumps.

mod columns;
mod document;
mod sums;

use crate::fleet::{Fleet, Outlier};
use crate::words::{percent, size};
use columns::machines;
pub(super) use document::FleetDocument;
use slablab_report::Answer;
use slablab_report::html::{self, Cell, Head};
use slablab_report::text::{Table, counted, cut, grouped};
use slablab_report::visible;
use sums::Sums;

/// Dumps that cannot be read, and that are named.
const UNREAD: usize = 5;
/// Characters of a machine's name.
const NAME: usize = 30;
/// Groups in the text.
const GROUPS: usize = 12;

/// The answer of `fleet`: text and page have `lines` rows of each table.
pub fn fleet_answer(fleet: &Fleet, lines: usize) -> Answer {
    let sums = Sums::of(fleet);
    let answer = Answer::new("Slab memory of many machines", sentence(fleet, &sums))
        .warnings(unread(fleet))
        .document(&FleetDocument::new(fleet, &sums))
        .rows(machines(&fleet.changes).frame(&fleet.machines));
    let answer = of_changes(answer, fleet, &sums);
    let answer = of_groups(answer, fleet, &sums);
    let answer = of_outliers(answer, fleet, &sums, lines);
    let answer = of_climbing(answer, fleet, &sums, lines);
    of_caches(answer, &sums, lines).remarks(remarks(fleet, &sums))
}

fn sentence(fleet: &Fleet, sums: &Sums) -> String {
    let all = &sums.all;
    let of_memory = match all.memory {
        0 => String::new(),
        memory => {
            let whose = if fleet.machines.len() == 1 { "its" } else { "their" };
            format!(" ({} of {whose} memory)", percent(all.slabs.min(memory), memory))
        }
    };
    let held: Vec<&Outlier> = sums.outliers.iter().filter(|outlier| !outlier.reclaimable).collect();
    let stand_out = match held.first() {
        None => "; none stands out by slabs that the kernel does not free".to_string(),
        Some(first) => {
            let mut machines: Vec<usize> = held.iter().map(|outlier| outlier.machine).collect();
            machines.sort_unstable();
            machines.dedup();
            format!(
                "; {} out by slabs that the kernel does not free, most of all {} with {} of {}",
                if machines.len() == 1 { "1 stands".into() } else { format!("{} stand", machines.len()) },
                fleet.machines[first.machine].name,
                size(first.bytes),
                fleet.names[first.cache as usize]
            )
        }
    };
    format!(
        "{} {} {} of slab memory{of_memory}, {} of it not reclaimable{stand_out}.",
        counted(fleet.machines.len() as u64, "machine"),
        if fleet.machines.len() == 1 { "has" } else { "have" },
        size(all.slabs),
        size(all.unreclaimable)
    )
}

fn unread(fleet: &Fleet) -> Vec<String> {
    if fleet.unread.is_empty() {
        return Vec::new();
    }
    let some = fleet.unread.iter().take(UNREAD);
    let first = match fleet.unread.len() {
        1 => "1 file is no dump, or not a whole one:".to_string(),
        many => format!("{many} files are no dumps, or not whole ones:"),
    };
    let more = fleet.unread.len().saturating_sub(UNREAD);
    let more = (more > 0).then(|| format!("... and {more} more (--format json)"));
    std::iter::once(first).chain(some.map(|unread| unread.why.clone())).chain(more).collect()
}

/// A table of text and page alike.
fn table(answer: Answer, title: &str, caption: &str, heads: &[&str], rows: Vec<Vec<String>>) -> Answer {
    let mut text = Table::new(heads.iter().copied());
    let page_heads = heads.iter().enumerate().map(|(at, head)| match at {
        0 => Head::text(head),
        _ => Head::number(head),
    });
    let mut page = html::Table::new(page_heads);
    for row in rows {
        page.row(row.iter().map(|cell| Cell::Text(cell.clone())));
        text.row(row);
    }
    answer.section(title).table(text.cut(0, NAME), &[]).page_table(caption, page)
}

/// A difference in bytes.
fn change(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", size(bytes.unsigned_abs()))
}

/// What a change saves, or takes.
fn saves(bytes: i64) -> String {
    let word = if bytes < 0 { "takes " } else { "" };
    format!("{word}{}", size(bytes.unsigned_abs()))
}

fn of_changes(answer: Answer, fleet: &Fleet, sums: &Sums) -> Answer {
    // Where no machine predicts it, nothing is known: that is no saving of 0.
    let predicted = fleet.changes.iter().zip(&sums.all.saved).filter(|(_, (_, machines))| *machines > 0);
    let rows = predicted.map(|(change_of, (saved, machines))| {
        let numbers = [saved.likely, saved.low, saved.high].map(saves);
        let machines = grouped(*machines as u64);
        [vec![change_of.to_string()], numbers.to_vec(), vec![machines]].concat()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return answer;
    }
    let heads = ["One change on all machines", "saves", "at least", "at most", "machines"];
    let caption = "What one boot parameter or kernel would save over all machines where that is predicted.";
    table(answer, "What would help", caption, &heads, rows)
}

fn of_groups(answer: Answer, fleet: &Fleet, sums: &Sums) -> Answer {
    let rows = sums.groups.iter().take(GROUPS).map(|group| {
        let part = match group.memory {
            0 => "-".into(),
            memory => percent(group.slabs.min(memory), memory),
        };
        let saved = group.saved.first().map(|(saved, machines)| match machines {
            0 => "-".into(),
            _ => saves(saved.likely),
        });
        let cells = [group.name.clone(), grouped(group.machines as u64), size(group.slabs), part];
        let rest = [size(group.unreclaimable), change(group.loss)];
        cells.into_iter().chain(rest).chain(saved).collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let first = fleet.changes.first().map(|change| format!("{change} saves"));
    let heads = ["Group", "machines", "slabs", "of memory", "unreclaimable", "loss"];
    let heads: Vec<&str> = heads.into_iter().chain(first.as_deref()).collect();
    let answer = table(answer, "Groups", "Slab memory by group.", &heads, rows);
    match sums.groups.len().saturating_sub(GROUPS) {
        0 => answer,
        more => answer.line(format!("... and {}", counted(more as u64, "more group"))),
    }
}

fn of_outliers(answer: Answer, fleet: &Fleet, sums: &Sums, lines: usize) -> Answer {
    if sums.outliers.is_empty() {
        return answer;
    }
    let rows = sums.outliers.iter().take(lines).map(|outlier| {
        let machine = &fleet.machines[outlier.machine];
        vec![
            machine.name.clone(),
            cut(&fleet.names[outlier.cache as usize], NAME),
            size(outlier.bytes),
            format!("{:.1} %", outlier.percent),
            format!("{:.2} %", outlier.median_percent),
            if outlier.reclaimable { "yes" } else { "no" }.into(),
        ]
    });
    let heads = ["Stands out", "cache", "has", "of memory", "elsewhere", "reclaimable"];
    let caption = "Machines on which a cache has far more of the memory than on the others of their group.";
    let answer = table(answer, "What stands out", caption, &heads, rows.collect());
    match sums.outliers.len().saturating_sub(lines) {
        0 => answer,
        more => answer.line(format!("... and {more} more (-N)")),
    }
}

fn of_climbing(answer: Answer, fleet: &Fleet, sums: &Sums, lines: usize) -> Answer {
    if sums.climbing.is_empty() {
        return answer;
    }
    let rows = sums.climbing.iter().take(lines).map(|one| {
        let rate = one.bytes_per_day.map_or("-".into(), |rate| size(rate as u64));
        vec![
            fleet.names[one.cache as usize].clone(),
            format!("{} of {}", grouped(one.machines as u64), grouped(one.of as u64)),
            size(one.bytes),
            rate,
            if one.reclaimable { "yes" } else { "no" }.into(),
        ]
    });
    let heads = ["Grows everywhere", "machines", "grew by", "a day each", "reclaimable"];
    let caption = "Caches that grew on nearly all machines that have two dumps or more.";
    table(answer, "What grows everywhere", caption, &heads, rows.collect())
}

fn of_caches(answer: Answer, sums: &Sums, lines: usize) -> Answer {
    let rows = sums.caches.iter().take(lines).map(|cache| {
        vec![
            cache.name.clone(),
            size(cache.bytes),
            percent(cache.bytes, sums.all.slabs.max(cache.bytes)),
            grouped(cache.machines as u64),
            size(cache.median),
            size(cache.most),
            if cache.reclaimable { "yes" } else { "no" }.into(),
        ]
    });
    let heads = ["Cache", "has", "of slabs", "machines", "median", "most", "reclaimable"];
    table(answer, "Caches", "Caches over all machines, most bytes first.", &heads, rows.collect())
}

fn remarks(fleet: &Fleet, sums: &Sums) -> Vec<String> {
    let mut remarks = Vec::new();
    let earlier: usize = fleet.earlier.values().map(Vec::len).sum();
    if earlier > 0 {
        let machines = counted(fleet.earlier.len() as u64, "machine");
        remarks.push(format!(
            "{} of {machines} are earlier: sums have the newest of each machine",
            counted(earlier as u64, "dump")
        ));
    }
    let unknown = fleet.machines.iter().filter(|machine| machine.memory == 0);
    let names: Vec<String> = unknown.map(|machine| visible::path(&machine.path).to_string()).collect();
    if let Some(first) = names.first() {
        remarks.push(format!(
            "no memory is told by {}, so that none of their caches can stand out: {first}{}",
            counted(names.len() as u64, "machine"),
            if names.len() > 1 { " and others" } else { "" }
        ));
    }
    for (change, (_, predicted)) in fleet.changes.iter().zip(&sums.all.saved) {
        let not = fleet.machines.len() - predicted;
        if not > 0 {
            let machines = counted(not as u64, "machine");
            remarks.push(format!("{change} is not predicted on {machines}, which its sum leaves out"));
        }
    }
    if !fleet.changes.is_empty() {
        remarks.push(
            "the range of a change is the sum of the machines' ranges, as if all predictions erred the same way".into(),
        );
    }
    remarks
}
