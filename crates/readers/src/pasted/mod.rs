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
//! | `scan` | the text, line by line |
//! | `clean` | a line as its program printed it |
//! | `records` | logs whose lines are records in JSON |
//! | `prefix` | what a log puts before every line, learnt from the text |
//! | `row` | rows of tables |
//! | `headed` | tables of other tools, whose heading names the columns |
//! | `tables` | rows become tables, parts of tables and snapshots |
//! | `infer` | what rows do not say and their numbers imply |
//! | `failure` | a slab that could not be had |
//! | `report` | reports of the OOM killer and of failed allocations of pages |
//! | `corruption` | reports of damaged or leaked objects |
//! | `aside` | texts of other tools: what they are |
//! | `facts` | totals of slabtop, meminfo, dentry-state, the kernel's release |

mod aside;
mod clean;
mod corruption;
mod facts;
mod failure;
mod headed;
mod infer;
mod prefix;
mod records;
mod report;
mod row;
mod scan;
mod tables;

pub use crate::procfs::DentryState;
pub use aside::{Aside, Asides};
pub use corruption::{Corruption, Damage, Track};
pub use facts::Totals;
pub use failure::{AllocFailure, NodeCounts};
pub use infer::{Caches, Inferred};
pub use report::{CgroupCounts, MemoryReport, ZoneCounts};
pub use row::{Row, Size};
pub use tables::{Kind, Snapshot, Table};

use crate::allocinfo::{self, AllocSite, Allocinfo};
use crate::procfs::Numbers;
use crate::text::LineError;
use scan::Scan;

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
    /// The same at the first moment, if the text has several.
    pub cgroup_before: Option<Numbers>,
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

/// Scans a text. Bytes that are no UTF-8 are replaced.
pub fn scan(text: &[u8]) -> Pasted {
    let text = records::unpacked(decoded(text));
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
    let text = records::unpacked(decoded(bytes));
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
        if self.meminfo.is_empty() && self.first_unread.is_none() {
            return Some(
                "all lines of the text are of kinds that are known, and none of them counts slabs: /proc/meminfo, \
                 /proc/slabinfo or the whole message of the kernel does"
                    .into(),
            );
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
            if !self.meminfo.is_empty() && self.of_vmstat {
                self.next_moment();
            }
            if self.meminfo.is_empty() {
                self.meminfo.extend(all);
                self.of_vmstat = true;
            }
            return;
        }
        let of_cgroup = has("slab_reclaimable") || has("slab_unreclaimable") || (has("cache") && has("rss"));
        if of_cgroup {
            let last = std::mem::replace(&mut self.cgroup_stat, counters);
            if !last.is_empty() && self.cgroup_before.is_none() {
                self.cgroup_before = Some(last);
            }
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
