//! Evidence as people paste it: slabtop, `vmstat -m`, slabinfo, meminfo and the kernel's messages about
//! slabs, inside mails, logs and bug reports.
//!
//! A text is scanned line by line. What mails, logs and web pages put around a line is taken away, then each
//! kind of row, heading and message is tried; each has a small grammar of its own. A line that ends in the
//! middle of a row is joined with the next one. Every line that nothing understood is counted, and the first
//! one is kept, so that an answer can say what was left out.
//!
//! | module | what |
//! |---|---|
//! | `clean` | a line as its program printed it |
//! | `row` | rows of tables |
//! | `tables` | rows become tables, parts of tables and snapshots |
//! | `infer` | what rows do not say and their numbers imply |
//! | `message` | messages of the kernel |
//! | `facts` | totals of slabtop, meminfo, dentry-state, the kernel's release |

mod clean;
mod facts;
mod infer;
mod message;
mod row;
mod tables;

pub use facts::{DentryState, Totals};
pub use infer::{Caches, Inferred};
pub use message::{AllocFailure, MemoryReport, NodeCounts};
pub use row::{Row, Size};
pub use tables::{Kind, Snapshot, Table};

use crate::procfs::Numbers;
use facts::{Fact, Facts};
use tables::Block;

/// What was found in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pasted {
    /// Tables of caches: one for each kind, the most complete kind first.
    pub tables: Vec<Table>,
    /// The head of the last screen of slabtop.
    pub totals: Option<Totals>,
    /// Lines of /proc/meminfo, in kB.
    pub meminfo: Numbers,
    /// /proc/sys/fs/dentry-state.
    pub dentry_state: Option<DentryState>,
    /// Slabs that the kernel could not get, in the text's order.
    pub failures: Vec<AllocFailure>,
    /// Reports of the OOM killer and of failed allocations of pages.
    pub reports: Vec<MemoryReport>,
    /// The kernel's release, from "Linux version", `uname -a` or a report of the kernel.
    pub release: Option<String>,
    /// CPUs, as lscpu counts them.
    pub cpus: Option<u32>,
    /// The version line of a slabinfo is there: its list is complete if no row is cut.
    pub has_version: bool,
    /// The caches are those of one memory cgroup: memory.kmem.slabinfo.
    pub of_cgroup: bool,
    /// A list of sizes was made from active objects, not from all: an awk program in the text says so.
    pub active_bytes: bool,
    /// Lines with anything in them.
    pub lines: usize,
    /// Lines that nothing understood.
    pub unread: usize,
    /// The first of them: its number from 1, and its text.
    pub first_unread: Option<(usize, String)>,
    /// Rows that end early, by their line: what is there of them.
    pub cut: Vec<(usize, String)>,
}

/// Most rows that are told as cut.
const CUT: usize = 1000;
/// Most messages that are kept: a log may have the same one without end.
const MESSAGES: usize = 10_000;
/// Letters that are kept of a line that was not understood.
const SHOWN: usize = 60;

/// Scans a text. Bytes that are no UTF-8 are replaced.
pub fn scan(text: &[u8]) -> Pasted {
    let text = decoded(text);
    let mut scan = Scan::default();
    for (number, line) in clean::lines(&text) {
        scan.line(number, &line);
    }
    scan.finish()
}

/// UTF-8, or UTF-16 with a mark that tells the order of its bytes.
fn decoded(text: &[u8]) -> std::borrow::Cow<'_, str> {
    let (rest, unit): (_, fn([u8; 2]) -> u16) = match text {
        [0xff, 0xfe, rest @ ..] => (rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => (rest, u16::from_be_bytes),
        _ => return String::from_utf8_lossy(text),
    };
    let (units, _) = rest.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|bytes| unit(*bytes)).collect();
    String::from_utf16_lossy(&units).into()
}

/// Whether bytes are a text at all, judged by the first of them.
pub(crate) fn is_text(first: &[u8]) -> bool {
    if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
        return true;
    }
    let odd =
        |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x7 | 0x8 | 0xe | 0xf | 0x1b);
    !first.is_empty() && !first.contains(&0) && first.iter().filter(odd).count() * 50 < first.len()
}

impl Pasted {
    /// Whether there is anything about slabs.
    pub fn is_empty(&self) -> bool {
        let report = |report: &MemoryReport| report.slab_unreclaimable.is_some();
        self.tables.is_empty()
            && self.totals.is_none()
            && !self.meminfo.contains_key("Slab")
            && !self.meminfo.contains_key("SUnreclaim")
            && self.dentry_state.is_none()
            && self.failures.is_empty()
            && !self.reports.iter().any(report)
    }

    /// The caches of the last snapshots.
    pub fn caches(&self) -> Caches {
        infer::caches(&self.tables)
    }

    /// The caches of earlier snapshots, oldest first, of the most complete kind of table that has any.
    pub fn earlier(&self) -> Vec<Caches> {
        let Some(table) = self.tables.iter().find(|table| table.snapshots.len() > 1) else {
            return Vec::new();
        };
        let (_, earlier) = table.snapshots.split_last().expect("a table has a snapshot");
        earlier.iter().map(|snapshot| infer::of_snapshot(table.kind, snapshot)).collect()
    }
}

/// A row that may go on in the next line.
struct Open {
    kind: Kind,
    line: usize,
    text: String,
    words: usize,
    row: Row,
    is_cut: bool,
}

/// Where in the text the scan is.
#[derive(Default)]
struct Scan {
    pasted: Pasted,
    facts: Facts,
    blocks: Vec<Block>,
    /// Other lines since the last row.
    is_gap: bool,
    open: Option<Open>,
    /// The heading of a table was seen, and no line that is no row since.
    under: Option<Kind>,
    in_failure: bool,
    /// Rows of a list of sizes, which count only if there are several.
    sizes: Vec<(usize, Row, String)>,
}

impl Scan {
    fn line(&mut self, number: usize, line: &str) {
        if !line.chars().any(char::is_alphanumeric) {
            // A rule or a fence. A message's lines follow each other.
            self.is_gap |= !line.is_empty();
            return;
        }
        self.pasted.lines += 1;
        if self.goes_on(line) {
            return;
        }
        self.close();
        let words = row::words(line);
        if self.rows(number, line, &words) {
            self.in_failure = false;
            return;
        }
        if !self.sizes.is_empty() && row::sized(&words).is_none() {
            self.close_sizes();
        }
        if self.message(number, line) {
            self.is_gap = true;
            return;
        }
        if let Some(fact) = self.facts.line(&mut self.pasted, line, &words) {
            self.is_gap = true;
            if let Fact::Heading(kind) = fact {
                self.under = Some(kind);
            }
            return;
        }
        if self.columns(number, line, &words) || self.size(number, line, &words) {
            return;
        }
        (self.is_gap, self.under) = (true, None);
        self.unread(number, line);
    }

    fn unread(&mut self, number: usize, line: &str) {
        self.pasted.unread += 1;
        if self.pasted.first_unread.as_ref().is_none_or(|(first, _)| number < *first) {
            self.pasted.first_unread = Some((number, line.chars().take(SHOWN).collect()));
        }
    }

    /// Whether the line is the rest of the row before it.
    fn goes_on(&mut self, line: &str) -> bool {
        let Some(open) = &mut self.open else { return false };
        let alone = row::words(line);
        if row::slabinfo(&alone).is_some() || row::slabtop(&alone).is_some() {
            return false;
        }
        // A name that was broken at its hyphen.
        if open.row.name.ends_with('-') {
            if let [rest] = alone[..]
                && !rest.contains(char::is_uppercase)
                && row::is_name(&format!("{}{rest}", open.row.name))
            {
                open.row.name += rest;
            }
            let went_on = !open.row.name.ends_with('-');
            self.close();
            return went_on;
        }
        let joined = format!("{} {line}", open.text);
        let words = row::words(&joined);
        let found = match open.kind {
            Kind::Slabtop => row::slabtop(&words),
            _ => row::slabinfo(&words),
        };
        match found {
            Some(found) if found.words == words.len() && found.words > open.words => {
                let row = Row { line: open.line, ..found.row };
                *open = Open { text: joined, words: found.words, row, is_cut: found.is_cut, ..*open };
                if !open.is_cut && !open.row.name.ends_with('-') {
                    self.close();
                }
                true
            }
            _ => false,
        }
    }

    /// Ends a row that did not go on.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.is_cut {
            if self.pasted.cut.len() < CUT {
                self.pasted.cut.push((open.line, open.text.chars().take(SHOWN).collect()));
            }
            // Without a name nothing can be said of a row.
            if open.row.name.is_empty() {
                self.is_gap = true;
                return;
            }
        }
        self.push(open.kind, open.row);
    }

    /// Takes all rows of a line: some web pages lose the line breaks.
    fn rows(&mut self, number: usize, line: &str, words: &[&str]) -> bool {
        let mut at = 0;
        while at < words.len() {
            let rest = &words[at..];
            let found = row::slabinfo(rest).map(|found| (Kind::Slabinfo, found));
            let found = found.or_else(|| row::slabtop(rest).map(|found| (Kind::Slabtop, found)));
            let Some((kind, found)) = found else { break };
            self.close();
            let end = at + found.words;
            let text =
                if at == 0 && end == words.len() { line.to_string() } else { words[at..end].join(" ") };
            let row = Row { line: number, ..found.row };
            if found.is_cut || (end == words.len() && row.name.ends_with('-')) {
                let is_cut = found.is_cut;
                self.open = Some(Open { kind, line: number, text, words: found.words, row, is_cut });
            } else {
                self.push(kind, row);
            }
            at = end;
        }
        at > 0
    }

    fn push(&mut self, kind: Kind, row: Row) {
        match self.blocks.last_mut() {
            Some(block) if block.kind == kind && !self.is_gap => block.rows.push(row),
            _ => self.blocks.push(Block { kind, rows: vec![row] }),
        }
        self.is_gap = false;
    }

    /// The first columns of slabinfo, vmstat's, or those of an OOM report.
    fn columns(&mut self, number: usize, line: &str, words: &[&str]) -> bool {
        if self.under == Some(Kind::Oom)
            && let Some(row) = row::oom(words)
        {
            self.push(Kind::Oom, Row { line: number, ..row });
            return true;
        }
        let is_sure = self.under == Some(Kind::Columns);
        let Some(row) = row::columns(words, is_sure) else { return false };
        let row = Row { line: number, ..row };
        if row.pages.is_some() {
            // A row of slabinfo that goes on in the next line begins so.
            let (text, words) = (line.to_string(), words.len());
            self.open = Some(Open { kind: Kind::Columns, line: number, text, words, row, is_cut: false });
        } else {
            self.push(Kind::Columns, row);
        }
        true
    }

    fn size(&mut self, number: usize, line: &str, words: &[&str]) -> bool {
        let Some(row) = row::sized(words) else { return false };
        self.sizes.push((number, Row { line: number, ..row }, line.chars().take(SHOWN).collect()));
        true
    }

    /// Two rows make a list. One may be a sentence.
    fn close_sizes(&mut self) {
        let sizes = std::mem::take(&mut self.sizes);
        let is_list = sizes.len() > 1;
        for (number, row, line) in sizes {
            if is_list {
                self.push(Kind::Sizes, row);
            } else {
                self.unread(number, &line);
            }
        }
        self.is_gap = true;
    }

    fn message(&mut self, number: usize, line: &str) -> bool {
        if let Some(failure) = message::failure(line) {
            if self.pasted.failures.len() < MESSAGES {
                self.pasted.failures.push(AllocFailure { line: number, ..failure });
            }
            self.in_failure = true;
            return true;
        }
        if self.in_failure
            && let Some(failure) = self.pasted.failures.last_mut()
        {
            if message::more_of_failure(failure, line) {
                return true;
            }
            self.in_failure = false;
        }
        self.report(number, line)
    }

    fn report(&mut self, number: usize, line: &str) -> bool {
        let begins = line.contains(" invoked oom-killer") || line.contains("page allocation failure");
        let reports = &mut self.pasted.reports;
        if (begins || reports.is_empty()) && reports.len() < MESSAGES {
            let mut report = MemoryReport { line: number, ..MemoryReport::default() };
            if !message::more_of_report(&mut report, line) {
                return false;
            }
            reports.push(report);
            return true;
        }
        reports.last_mut().is_some_and(|report| message::more_of_report(report, line))
    }

    fn finish(mut self) -> Pasted {
        self.close();
        self.close_sizes();
        let mut pasted = self.pasted;
        pasted.tables = tables::tables(self.blocks);
        if let Some(report) = pasted.reports.last_mut() {
            report.has_table = pasted.tables.iter().any(|table| table.kind == Kind::Oom);
        }
        // Lines that looked like meminfo's, and were none.
        if !["MemTotal", "MemFree", "Slab", "SUnreclaim"].iter().any(|key| pasted.meminfo.contains_key(*key))
        {
            pasted.unread += pasted.meminfo.len();
            pasted.meminfo.clear();
        }
        pasted
    }
}
