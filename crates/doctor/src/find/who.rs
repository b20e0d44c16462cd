//! What holds the objects of large caches in one snapshot, and the words for it.

use super::finding::{Finding, Kind};
use crate::measure::held::Held;
use crate::measure::holders::Who;
use crate::measure::{Line, Measured, named};
use crate::words::{listed, percent, size};

/// Findings for large caches, where no snapshot of before tells what grew.
pub(crate) fn find(measured: &Measured, worth: u64) -> Vec<Finding> {
    let is_alone = measured.history.is_none();
    let worthy = measured.held.iter().filter(|held| is_alone && held.bytes >= worth);
    worthy.map(|held| finding(measured, held)).collect()
}

fn finding(measured: &Measured, held: &Held) -> Finding {
    let lines: Vec<&Line> = held.lines.iter().map(|at| &measured.lines[*at]).collect();
    let names: Vec<String> = lines.iter().map(|line| named(line)).collect();
    let (have, of) =
        (if names.len() == 1 { "has" } else { "have" }, percent(held.bytes, measured.total.bytes));
    let text = format!(
        "{} {have} {} ({of} of {}). Who: {}",
        listed(&names),
        size(held.bytes),
        measured.sum_name(),
        held_by(measured, &held.who)
    );
    Finding::of_caches(Kind::Holders, &lines, held.bytes, text)
}

impl Measured<'_> {
    /// Who holds how many, in words, with the name that a container of the process has.
    pub fn held_by(&self, who: &Who) -> String {
        held_by(self, who)
    }
}

/// Who holds how many: `3 processes python3 (most: pid 7) hold about 40,000 sockets, 39,000 more than
/// before`.
pub(crate) fn held_by(measured: &Measured, who: &Who) -> String {
    let owners = &measured.state.dump.owners;
    let cgroup = match who.cgroup.as_str() {
        "" | "/" => String::new(),
        path => format!(", cgroup {}", owners.name_of(path)),
    };
    let others = if who.and_others { " and others" } else { "" };
    let holder = match (who.processes, who.pid) {
        (_, 0) => format!("{}{others} has", who.comm),
        (1, pid) if !who.and_others => format!("{} (pid {pid}{cgroup}) holds", who.comm),
        (1, pid) => format!("{} (pid {pid}{cgroup}){others} hold", who.comm),
        (many, pid) => format!("{many} processes {} (most: pid {pid}{cgroup}){others} hold", who.comm),
    };
    let more = match who.more {
        Some(more) if more > 0 => format!(", {} more than before", who.amount(more.unsigned_abs())),
        _ => String::new(),
    };
    let detail = if who.detail.is_empty() { String::new() } else { format!(" ({})", who.detail) };
    format!("{holder} about {} {}{detail}{more}", who.amount(who.count), who.words)
}

/// The same in a few words, for a sentence that says more: `held by 3 processes python3: 40,000 sockets`.
pub(crate) fn briefly(who: &Who) -> String {
    let by = match (who.processes, who.pid) {
        (_, 0) => who.comm.clone(),
        (1, pid) => format!("{} (pid {pid})", who.comm),
        (many, _) => format!("{many} processes {}", who.comm),
    };
    let others = if who.and_others { " and others" } else { "" };
    let count = who.more.filter(|more| *more > 0).map_or(who.count, i64::unsigned_abs);
    format!("held by {by}{others}: {} {}", who.amount(count), who.words)
}
