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
//! | `prefix` | what a log puts before every line, learnt from the text |
//! | `row` | rows of tables |
//! | `tables` | rows become tables, parts of tables and snapshots |
//! | `infer` | what rows do not say and their numbers imply |
//! | `message` | messages of the kernel about memory |
//! | `corruption` | reports of damaged or leaked objects |
//! | `aside` | texts of other tools: what they are |
//! | `facts` | totals of slabtop, meminfo, dentry-state, the kernel's release |

mod aside;
mod clean;
mod corruption;
mod facts;
mod infer;
mod message;
mod prefix;
mod row;
mod tables;

pub use crate::procfs::DentryState;
pub use aside::{Aside, Asides};
pub use corruption::{Corruption, Damage, Track};
pub use facts::Totals;
pub use infer::{Caches, Inferred};
pub use message::{AllocFailure, CgroupCounts, MemoryReport, NodeCounts, ZoneCounts};
pub use row::{Row, Size};
pub use tables::{Kind, Snapshot, Table};

use crate::allocinfo::{self, AllocSite, Allocinfo};
use crate::procfs::Numbers;
use crate::text::LineError;
use facts::{Fact, Facts};
use tables::Block;

/// What was found in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pasted {
    /// Tables of caches: one for each kind, the most complete kind first.
    pub tables: Vec<Table>,
    /// The head of the last screen of slabtop.
    pub totals: Option<Totals>,
    /// Lines of /proc/meminfo, in kB: of the last moment that has any of slabs.
    pub meminfo: Numbers,
    /// Earlier moments of /proc/meminfo, oldest first.
    pub moments: Vec<Moment>,
    /// Seconds since 1970 when the last one was, if a line before it tells.
    pub taken_s: Option<u64>,
    /// Seconds that the machine was up then.
    pub up_s: Option<f64>,
    /// Counters of one memory cgroup, from its memory.stat: bytes.
    pub cgroup_stat: Numbers,
    /// Reports of damaged or leaked objects, in the text's order.
    pub corruptions: Vec<Corruption>,
    /// Lines of code that allocate, from /proc/allocinfo or the kernel's log.
    pub alloc_sites: Vec<AllocSite>,
    /// What is of other tools.
    pub asides: Asides,
    /// Lines inside of a table that look like rows and could not be read.
    pub lost: Vec<(usize, String)>,
    /// The last /proc/meminfo of the text ends before its lines about slabs, and is not used.
    pub cut_moment: bool,
    /// The lines of meminfo are counters of /proc/vmstat.
    pub of_vmstat: bool,
    /// Caches that the tool itself could not read.
    pub unreadable: Vec<String>,
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

/// /proc/meminfo at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// Its lines, in kB.
    pub meminfo: Numbers,
    /// Seconds since 1970, if a line before it tells.
    pub taken_s: Option<u64>,
    /// Seconds that the machine was up.
    pub up_s: Option<f64>,
}

/// Most moments of /proc/meminfo that are kept.
const MOMENTS: usize = 128;
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

/// Lines of /proc/allocinfo among others: after a prompt, quoted in a mail, with units, in the kernel's log.
/// A text that begins as the kernel prints the file is read as that.
///
/// # Errors
/// A text without such lines, or a line of another form in a file as the kernel prints it.
pub fn allocinfo(bytes: &[u8]) -> Result<Allocinfo, LineError> {
    if allocinfo::is_allocinfo(bytes) && !has_equals_sign_at_an_end(bytes) {
        return allocinfo::parse(bytes);
    }
    let text = decoded(bytes);
    let mut loose = allocinfo::Loose::default();
    for (_, line) in clean::lines(&text) {
        loose.line(&line);
    }
    match loose.finish() {
        sites if sites.is_empty() => allocinfo::parse(bytes),
        sites => Ok(Allocinfo { version: None, sites }),
    }
}

/// Whether a text that begins like this has lines of /proc/allocinfo.
pub fn is_allocinfo(head: &[u8]) -> bool {
    let found = || scan(head).alloc_sites.len() > 1;
    allocinfo::is_allocinfo(head) || found()
}

/// What a text of another tool is, and what it says about slabs; `None` for one that is not known. `head` is
/// its beginning.
pub fn other_tool(head: &[u8]) -> Option<String> {
    let found = scan(head);
    let words = found.asides.words()?;
    Some(match found.asides.answer() {
        Some(answer) => format!("{words} ({answer})"),
        None => words.to_string(),
    })
}

/// A name that a mail program broke ends so; no line of the file does.
fn has_equals_sign_at_an_end(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"=\n")
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
        self.tables.is_empty()
            && self.totals.is_none()
            && !self.meminfo.contains_key("Slab")
            && !self.meminfo.contains_key("SUnreclaim")
            && self.dentry_state.is_none()
            && self.failures.is_empty()
            && self.corruptions.is_empty()
            && self.cgroup_stat.is_empty()
            && self.alloc_sites.is_empty()
            && self.asides.answer().is_none()
            && !self.reports.iter().any(MemoryReport::tells)
    }

    /// Why a text has nothing about slabs, if it is known what it is.
    pub fn not_of_slabs(&self) -> Option<String> {
        if let Some(words) = self.asides.words() {
            return Some(format!("{words}. Nothing in the text is of slab caches"));
        }
        let keys: Vec<&str> = self.meminfo.keys().take(3).map(String::as_str).collect();
        (!keys.is_empty()).then(|| {
            format!(
                "/proc/meminfo without the line Slab (it has {} lines, as {}): send the whole file, at least `grep -E \
                 'MemTotal|MemFree|Slab|SReclaimable|SUnreclaim' /proc/meminfo`",
                self.meminfo.len(),
                keys.join(", ")
            )
        })
    }

    /// Ends a moment of /proc/meminfo: the next one begins. The same numbers again are no new moment.
    fn next_moment(&mut self) {
        let (taken_s, up_s) = (self.taken_s.take(), self.up_s.take());
        let moment = Moment { meminfo: std::mem::take(&mut self.meminfo), taken_s, up_s };
        if self.moments.last().is_some_and(|last| last.meminfo == moment.meminfo) {
            return;
        }
        if self.moments.len() == MOMENTS {
            self.moments.remove(0);
        }
        self.moments.push(moment);
    }

    /// Counters in lines of their own: those of a memory cgroup, or of /proc/vmstat, whose pages are put down
    /// as lines of /proc/meminfo. Others were no counters.
    fn sort_counters(&mut self, counters: Numbers) {
        const PAGES: [(&str, &str); 9] = [
            ("nr_free_pages", "MemFree"),
            ("nr_anon_pages", "AnonPages"),
            ("nr_file_pages", "Cached"),
            ("nr_slab_reclaimable", "SReclaimable"),
            ("nr_slab_unreclaimable", "SUnreclaim"),
            ("nr_page_table_pages", "PageTables"),
            ("nr_shmem", "Shmem"),
            ("nr_dirty", "Dirty"),
            ("nr_writeback", "Writeback"),
        ];
        const KB_PER_PAGE: u64 = 4;
        let has = |key: &str| counters.contains_key(key);
        let kb = |key: &str| counters.get(key).and_then(|pages| pages.checked_mul(KB_PER_PAGE));
        if has("nr_slab_unreclaimable") || has("nr_slab_reclaimable") {
            let known = PAGES.iter().filter_map(|(from, to)| Some((to.to_string(), kb(from)?)));
            let slab = kb("nr_slab_reclaimable").zip(kb("nr_slab_unreclaimable"));
            let slab = slab.and_then(|(one, other)| Some(("Slab".to_string(), one.checked_add(other)?)));
            let stack = counters.get("nr_kernel_stack").map(|kb| ("KernelStack".to_string(), *kb));
            let all: Vec<(String, u64)> = known.chain(slab).chain(stack).collect();
            if self.meminfo.is_empty() {
                self.meminfo.extend(all);
                self.of_vmstat = true;
            }
            return;
        }
        let of_cgroup = has("slab_reclaimable") || has("slab_unreclaimable") || (has("cache") && has("rss"));
        if of_cgroup {
            self.cgroup_stat = counters;
        } else {
            self.unread += counters.len();
        }
    }

    /// The last moment may be cut before the lines about slabs: then the one before it is the last.
    fn last_whole_moment(&mut self) {
        let has_slabs =
            |meminfo: &Numbers| ["Slab", "SUnreclaim"].iter().any(|key| meminfo.contains_key(*key));
        if has_slabs(&self.meminfo) {
            self.moments.retain(|moment| has_slabs(&moment.meminfo));
            // A reply that quotes the numbers again.
            if self.moments.last().is_some_and(|last| last.meminfo == self.meminfo) {
                self.moments.pop();
            }
        } else if let Some(at) = self.moments.iter().rposition(|moment| has_slabs(&moment.meminfo)) {
            let last = self.moments.swap_remove(at);
            self.moments.truncate(at);
            (self.meminfo, self.taken_s, self.up_s) = (last.meminfo, last.taken_s, last.up_s);
            self.cut_moment = true;
        }
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

/// Whether lines that look like meminfo's are.
fn is_of_memory(meminfo: &Numbers) -> bool {
    ["MemTotal", "MemFree", "Slab", "SUnreclaim"].iter().any(|key| meminfo.contains_key(*key))
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
    in_corruption: bool,
    within: message::Within,
    sites: allocinfo::Loose,
    /// Caches of node_exporter's metrics, by name.
    exported: std::collections::BTreeMap<String, Row>,
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
        if self.sites.line(line) || self.exported(number, line) || self.pasted.asides.line(number, line) {
            self.is_gap = true;
            return;
        }
        self.lost(number, line, &words);
        (self.is_gap, self.under) = (true, None);
        self.unread(number, line);
    }

    /// A line with four numbers inside of a table is a row that could not be read: what it has is missing.
    fn lost(&mut self, number: usize, line: &str, words: &[&str]) {
        const NUMBERS: usize = 4;
        let in_table = self.under.is_some() || (!self.blocks.is_empty() && !self.is_gap);
        let is_number = |word: &&&str| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            row::number::<u64>(word).is_some() || row::size(word).is_some()
        };
        if in_table
            && self.pasted.lost.len() < CUT
            && words.iter().filter(is_number).take(NUMBERS).count() == NUMBERS
        {
            self.pasted.lost.push((number, line.chars().take(SHOWN).collect()));
        }
    }

    /// A metric of node_exporter: `node_slabinfo_active_objects{slab="dentry"} 12`.
    fn exported(&mut self, number: usize, line: &str) -> bool {
        let Some((metric, rest)) = line.strip_prefix("node_slabinfo_").and_then(|rest| rest.split_once('{'))
        else {
            return false;
        };
        let name = rest.split_once("slab=\"").and_then(|(_, rest)| rest.split_once('"'));
        let value =
            rest.rsplit_once('}').and_then(|(_, value)| value.split_whitespace().next()?.parse::<f64>().ok());
        let (Some((name, _)), Some(value)) = (name, value.filter(|value| (0.0..1e18).contains(value))) else {
            return false;
        };
        if self.exported.len() > 1 << 14 || !row::is_name(name) {
            return false;
        }
        let row = self.exported.entry(name.to_string()).or_insert_with(|| Row {
            line: number,
            name: name.to_string(),
            ..Row::default()
        });
        let value = value as u64;
        match metric {
            "active_objects" => row.active = Some(value),
            "objects" => row.total = Some(value),
            "object_size_bytes" => row.size = Some(Size::exact(value)),
            "objects_per_slab" => row.per_slab = Some(value),
            "pages_per_slab" => row.pages = Some(value),
            _ => {}
        }
        true
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
        if self.under == Some(Kind::Crash) {
            match row::crash(words) {
                Some(Ok(row)) => self.push(Kind::Crash, Row { line: number, ..row }),
                Some(Err(name)) => self.pasted.unreadable.push(name),
                // What crash says of a row, and dots for rows that were left out.
                None if line.starts_with("kmem: ") || line == "..." => {}
                None => return false,
            }
            return true;
        }
        if self.under == Some(Kind::Spl)
            && let Some(row) = row::spl(words)
        {
            row.into_iter().for_each(|row| self.push(Kind::Spl, Row { line: number, ..row }));
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
        if self.corruption(number, line) {
            return true;
        }
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

    /// Reports of damaged objects. A cache's live objects may be listed before the line that says why.
    fn corruption(&mut self, number: usize, line: &str) -> bool {
        let reports = &mut self.pasted.corruptions;
        if let Some(found) = corruption::begins(line) {
            (self.in_corruption, self.in_failure) = (true, false);
            let found = Corruption { line: number, ..found };
            if let Some(last) = reports.last_mut().filter(|last| last.is_headless()) {
                last.head(found);
            } else if reports.len() < MESSAGES {
                reports.push(found);
            }
            return true;
        }
        if line.contains(" invoked oom-killer") || line.contains("page allocation failure") {
            self.in_corruption = false;
        }
        let starts =
            ["INFO: Object 0x", "INFO: Slab 0x", "INFO: Allocated in ", "INFO: Freed in ", "Object 0x"];
        if !self.in_corruption
            && reports.len() < MESSAGES
            && starts.iter().any(|start| line.starts_with(start))
        {
            reports.push(Corruption { line: number, ..Corruption::default() });
            self.in_corruption = true;
        }
        self.in_corruption && reports.last_mut().is_some_and(|report| corruption::more(report, line))
    }

    fn report(&mut self, number: usize, line: &str) -> bool {
        let begins = line.contains(" invoked oom-killer") || line.contains("page allocation failure");
        let reports = &mut self.pasted.reports;
        if (begins || reports.is_empty()) && reports.len() < MESSAGES {
            let mut report = MemoryReport { line: number, ..MemoryReport::default() };
            if !message::more_of_report(&mut report, &mut self.within, line) {
                return false;
            }
            reports.push(report);
            return true;
        }
        reports.last_mut().is_some_and(|report| message::more_of_report(report, &mut self.within, line))
    }

    fn finish(mut self) -> Pasted {
        self.close();
        self.close_sizes();
        let mut exported: Vec<Row> = std::mem::take(&mut self.exported).into_values().collect();
        if !exported.is_empty() {
            exported.retain(|row| row.total.is_some() || row.active.is_some());
            self.blocks.push(Block { kind: Kind::Columns, rows: exported });
        }
        let mut pasted = self.pasted;
        pasted.alloc_sites = self.sites.finish();
        corruption::gather(&mut pasted.corruptions);
        pasted.sort_counters(self.facts.counters);
        pasted.last_whole_moment();
        pasted.tables = tables::tables(self.blocks);
        if let Some(report) = pasted.reports.last_mut() {
            report.has_table |= pasted.tables.iter().any(|table| table.kind == Kind::Oom);
        }
        // Lines that looked like meminfo's, and were none.
        if !is_of_memory(&pasted.meminfo) {
            pasted.unread += pasted.meminfo.len();
            pasted.meminfo.clear();
        }
        pasted.moments.retain(|moment| is_of_memory(&moment.meminfo));
        pasted
    }
}
