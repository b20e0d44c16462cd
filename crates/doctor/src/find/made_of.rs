//! Words for what is behind a cache: the lines of code that allocated its objects, the module that made it.

use super::finding::{Finding, Kind};
use crate::measure::code::Code;
use crate::measure::made::By;
use crate::measure::{Line, Measured, named};
use crate::words::{listed, size};
use slablab_report::text::grouped;

/// Large caches whose objects are of lines of code that the kernel counts, where no snapshot of before
/// tells what grew.
pub(crate) fn find(measured: &Measured, worth: u64) -> Vec<Finding> {
    if measured.history.is_some() {
        return Vec::new();
    }
    let worthy = measured.code.iter().filter(|(at, _)| measured.lines[*at].split.bytes >= worth);
    let finding = |(at, code): &(usize, Vec<Code>)| {
        let line = &measured.lines[*at];
        let text = format!("the {} of {} are objects of {}", size(line.split.bytes), named(line), said(code));
        Finding::of_caches(Kind::CallSites, &[line], line.split.bytes, text)
    };
    worthy.map(finding).collect()
}

/// The lines of code behind caches that grew together: kmalloc's first, because the others are of their own
/// type.
pub(super) fn code(measured: &Measured, lines: &[usize]) -> Option<String> {
    const SHOWN: usize = 3;
    let mut found: Vec<&(usize, Vec<Code>)> =
        measured.code.iter().filter(|(at, _)| lines.contains(at)).collect();
    found.sort_by_key(|(at, _)| !measured.lines[*at].cache.name.contains("kmalloc"));
    let words: Vec<String> = found
        .iter()
        .take(SHOWN)
        .map(|(at, code)| format!("{} by {}", named(&measured.lines[*at]), said(code)))
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// `do_epoll_create (fs/eventpoll.c:2110), 30,000 of them`.
fn said(code: &[Code]) -> String {
    let words: Vec<String> = code
        .iter()
        .map(|code| format!("{} ({}), {}", code.function, code.place, grouped(code.objects)))
        .collect();
    listed(&words)
}

/// The module that made the first of these caches that one made: `foo_conn was made by the module foo`.
pub(super) fn module(measured: &Measured, lines: &[&Line]) -> Option<String> {
    let (line, made) = lines.iter().find_map(|line| Some((*line, measured.made(line)?)))?;
    let by = match made.by {
        By::Constructor => "which has its constructor",
        By::Data => "which is loaded",
        By::Name => "by its name",
    };
    let tree = if made.out_of_tree { ", not of the kernel's own tree" } else { "" };
    Some(format!("{} was made by the module {} ({by}{tree})", named(line), made.module))
}
