//! What was recorded, in some lines.

use slablab_recorder::{Process, Summary};
use slablab_report::visible;
use std::fmt::Write;
use std::path::Path;

/// The most other processes that are listed.
const OTHERS: usize = 8;

/// The lines for standard error.
pub(super) fn text(output: &Path, all: &[Process], process: &Process, found: &Summary) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| {
        writeln!(text, "  {what:<12}{}", visible::lines(&value)).expect("memory");
    };
    let share = |part: u64| part as f64 * 100.0 / (found.allocs + found.frees + found.resizes).max(1) as f64;
    line(
        "calls",
        format!(
            "{} in {:.2} s: {} allocations, {} frees, {} changes of size ({:.1} %)",
            counted(found.allocs + found.frees + found.resizes),
            found.wall_ns as f64 / 1e9,
            counted(found.allocs),
            counted(found.frees),
            counted(found.resizes),
            share(found.resizes)
        ),
    );
    let [threads, at_once] = found.threads;
    line("threads", format!("{}, {} at once", counted(threads), counted(at_once)));
    let size = |share| counted(found.size_at(share));
    line(
        "sizes",
        format!(
            "half at most {} bytes, 90 % at most {}, 99 % at most {}, the largest {}",
            size(0.5),
            size(0.9),
            size(0.99),
            size(1.0)
        ),
    );
    let blocks =
        |[bytes, blocks]: [u64; 2]| format!("{} bytes in {} blocks", counted(bytes), counted(blocks));
    line("peak", blocks(found.peak));
    line("at the end", blocks(found.end));
    if found.unseen_frees > 0 {
        let why = "of blocks from before the recording, or from calls that it does not see";
        line("frees", format!("{} {why}", counted(found.unseen_frees)));
    }
    if let Some([begin, most, end]) = found.resident {
        let kib = |bytes: u64| counted(bytes / 1024);
        let text =
            format!("{} KiB at most, {} at the end, {} at the beginning", kib(most), kib(end), kib(begin));
        line("in memory", text);
    }
    if process.no_chains {
        line("call chains", "none: the program's C library cannot walk stacks".into());
    } else if let Some(bytes) = process.sample_bytes {
        let each = match bytes {
            1 => "every allocation".to_string(),
            _ => format!("about one allocation in each {} bytes", counted(bytes)),
        };
        line(
            "call chains",
            format!("{} ({each}); slablab sites {}", counted(found.chains), visible::path(output)),
        );
    }
    line("lost", counted(found.lost));
    if let Some(others) = without_file(all) {
        line("not written", others);
    }
    line("allocator", process.allocator.clone());
    let who = format!("{} (process {})", process.name(), process.pid);
    let first = format!("{}: {} rows, {who}\n", output.display(), counted(found.rows));
    visible::lines(&first).to_string() + "\n" + &text + &others(all, process)
}

/// The processes that could not write, their calls, and the first of them.
fn without_file(all: &[Process]) -> Option<String> {
    let refused: Vec<&Process> = all.iter().filter(|process| process.could_not_write()).collect();
    let calls = refused.iter().fold(0u64, |sum, process| sum.saturating_add(process.lost));
    let [first, ..] = refused[..] else { return None };
    let who = match refused.len() {
        1 => "1 process could not write its".to_string(),
        many => format!("{} processes could not write their", counted(many as u64)),
    };
    let why = "they gave up rights, or the disk is full";
    Some(format!("{who} {} calls ({}, process {}): {why}", counted(calls), first.name(), first.pid))
}

/// The processes that are not in the trace, those with most calls first.
fn others(all: &[Process], process: &Process) -> String {
    let mut others: Vec<&Process> = all.iter().filter(|other| other.paths != process.paths).collect();
    if others.is_empty() {
        return String::new();
    }
    others.sort_by_key(|other| std::cmp::Reverse(other.calls));
    let calls: u64 = all.iter().map(|process| process.calls).sum();
    let share = (calls - process.calls) as f64 * 100.0 / calls.max(1) as f64;
    let more = slablab_report::text::counted(others.len() as u64, "more process");
    let mut text = format!("not in the trace: {more}, {share:.0} % of all calls (--process)\n");
    for other in others.iter().take(OTHERS) {
        let name = format!("{} ({})", other.name(), other.pid);
        let calls = slablab_report::text::counted(other.calls, "call");
        writeln!(text, "  {:<24}{calls}", visible::lines(&name)).expect("memory");
    }
    text
}

/// A number with commas between thousands.
fn counted(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
