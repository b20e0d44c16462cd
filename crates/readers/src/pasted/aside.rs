//! Texts of other tools about memory: what they are, and what they say about slabs if anything.
//!
//! A recording or a list of call sites is read by another verb; a summary lacks what it was made of. Such a
//! text is named, so that the answer can say where it belongs.

use super::row::number;
use std::collections::BTreeMap;

/// A text of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aside {
    /// Events of ftrace, or of trace_printk.
    Ftrace,
    /// Events as perf script prints them.
    PerfScript,
    /// The summary of `perf kmem stat`.
    PerfKmem,
    /// /sys/kernel/debug/page_owner.
    PageOwner,
    /// `sar -B`.
    Sar,
    /// oomctl of systemd.
    Oomctl,
    /// /proc/vmallocinfo.
    Vmallocinfo,
    /// /proc/buddyinfo.
    Buddyinfo,
    /// /proc/pressure.
    Pressure,
    /// vmstat's rows of one second each.
    Vmstat,
    /// Processes by memory, as top and ps list them.
    Processes,
}

/// The first line of a kind of text, from 1, and what was counted in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it is.
    pub aside: Aside,
    /// The line.
    pub line: usize,
    /// Lines of it.
    pub lines: usize,
}

/// Pages by page_owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOwner {
    /// Blocks of pages, by order.
    pub orders: BTreeMap<u32, u64>,
    /// Of these, blocks of slabs, by order.
    pub slabs: BTreeMap<u32, u64>,
    /// Blocks charged to a memory cgroup.
    pub cgroups: BTreeMap<String, u64>,
    last: u32,
}

/// Pages scanned by `sar -B`, all rows together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Rows.
    pub rows: u64,
    /// Pages a second by kswapd and by those who asked, in hundredths, added up.
    pub pages: u64,
    columns: Vec<usize>,
}

/// What was seen of other tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asides {
    /// Kinds of texts, each once.
    pub seen: Vec<Seen>,
    /// What page_owner counts.
    pub pages: PageOwner,
    /// What `sar -B` counts.
    pub scanned: Scanned,
}

/// Words of lines by which a text is known; all words of one must be in the line.
const MARKS: [(Aside, &[&str]); 23] = [
    (Aside::PerfScript, &["kmem:kmalloc:"]),
    (Aside::PerfScript, &["kmem:kmem_cache_alloc:"]),
    (Aside::PerfScript, &["kmem:mm_page_alloc:"]),
    (Aside::Ftrace, &["# tracer:"]),
    (Aside::Ftrace, &["tracer: nop"]),
    (Aside::Ftrace, &["kmem_cache_alloc: ", "call_site="]),
    (Aside::Ftrace, &["kmalloc: ", "call_site="]),
    (Aside::PerfKmem, &["perf kmem stat"]),
    (Aside::PerfKmem, &["SUMMARY (SLAB allocator)"]),
    (Aside::PerfKmem, &["Total bytes requested:"]),
    (Aside::PerfKmem, &["SUMMARY (page allocator)"]),
    (Aside::PerfKmem, &["Total alloc", "GFP flags", "Callsite"]),
    (Aside::PerfKmem, &["Callsite", "Total_alloc/Per"]),
    (Aside::PageOwner, &["Page allocated via order "]),
    (Aside::Sar, &["pgscank/s", "pgscand/s"]),
    (Aside::Oomctl, &["Memory Pressure Limit:"]),
    (Aside::Oomctl, &["System Context:"]),
    (Aside::Vmallocinfo, &["-0x", " pages=", " vmalloc"]),
    (Aside::Buddyinfo, &["Node ", ", zone "]),
    (Aside::Pressure, &["some avg10=", "total="]),
    (Aside::Vmstat, &["procs", "---memory---"]),
    (Aside::Processes, &["PID", "VIRT", "RES"]),
    (Aside::Processes, &["PID", "%MEM", "RSS"]),
];

impl Asides {
    /// Takes a line; false if it is of no such text.
    pub(super) fn line(&mut self, at: usize, line: &str) -> bool {
        if self.page_owner(line) || self.sar(line) {
            return true;
        }
        let found = MARKS.iter().find(|(_, words)| words.iter().all(|word| line.contains(word)));
        let Some((aside, _)) = found else { return false };
        match self.seen.iter_mut().find(|seen| seen.aside == *aside) {
            Some(seen) => seen.lines += 1,
            None => self.seen.push(Seen { aside: *aside, line: at, lines: 1 }),
        }
        if let Some((_, rest)) = line.split_once("Page allocated via order ") {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
            self.pages.last = number(digits).unwrap_or(0);
            *self.pages.orders.entry(self.pages.last).or_default() += 1;
        }
        if *aside == Aside::Sar {
            let is_scan = |(_, word): &(usize, &str)| matches!(*word, "pgscank/s" | "pgscand/s");
            // From the end: a time may be one word or two.
            let words: Vec<&str> = line.split_whitespace().rev().collect();
            self.scanned.columns =
                words.iter().copied().enumerate().filter(is_scan).map(|(at, _)| at).collect();
        }
        true
    }

    fn page_owner(&mut self, line: &str) -> bool {
        let pages = &mut self.pages;
        if pages.orders.is_empty() {
            return false;
        }
        if line.starts_with("Slab cache page") {
            *pages.slabs.entry(pages.last).or_default() += 1;
            return true;
        }
        if let Some((_, name)) = line.split_once("to memcg ").filter(|_| line.starts_with("Charged")) {
            if pages.cgroups.len() < 1 << 12 {
                *pages.cgroups.entry(name.trim().into()).or_default() += 1;
            }
            return true;
        }
        line.starts_with("PFN ")
    }

    fn sar(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().rev().collect();
        let plain = |at: &usize| {
            let (whole, part) = words.get(*at)?.split_once(['.', ','])?;
            Some(number::<u64>(whole)? * 100 + number::<u64>(part).filter(|_| part.len() == 2)?)
        };
        if self.scanned.columns.is_empty() {
            return false;
        }
        let Some(values) = self.scanned.columns.iter().map(plain).collect::<Option<Vec<u64>>>() else {
            return false;
        };
        self.scanned.rows += 1;
        self.scanned.pages = values.into_iter().fold(self.scanned.pages, u64::saturating_add);
        true
    }

    /// The answer that such a text gives by itself.
    pub fn answer(&self) -> Option<String> {
        if self.scanned.rows > 0 {
            let rows = self.scanned.rows;
            return Some(match self.scanned.pages {
                0 => format!(
                    "memory is not short: no reclaim at all in {rows} rows of sar -B (pgscank and pgscand are 0); it \
                     does not count slabs"
                ),
                pages => format!(
                    "unknown: the kernel scanned {} pages a second on average in {rows} rows of sar -B to free memory; \
                     it does not tell what holds it",
                    pages / 100 / rows
                ),
            });
        }
        let pages = &self.pages;
        if pages.orders.is_empty() {
            return None;
        }
        let blocks: u64 = pages.orders.values().sum();
        let slabs: Vec<String> = pages
            .slabs
            .iter()
            .map(|(order, count)| format!("{count} slab {} of order {order}", word(*count)))
            .collect();
        let slabs = if slabs.is_empty() { "no slab page".into() } else { slabs.join(", ") };
        let mut cgroups: Vec<(&String, &u64)> = pages.cgroups.iter().collect();
        cgroups.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        let charged: Vec<String> = cgroups
            .iter()
            .take(3)
            .map(|(name, count)| format!("{count} {} charged to {name}", word(**count)))
            .collect();
        let charged = if charged.is_empty() { String::new() } else { format!("; {}", charged.join(", ")) };
        Some(format!("{blocks} blocks of pages by page_owner: {slabs}{charged}"))
    }

    /// What the text is, and which command reads it, if one does.
    pub fn words(&self) -> Option<&'static str> {
        let seen = self.seen.iter().max_by_key(|seen| seen.lines)?;
        Some(match seen.aside {
            Aside::Ftrace => {
                "events of ftrace: who allocates, not what is held; `slablab sites FILE` lists the call sites, `slablab \
                 import` makes a trace of it"
            }
            Aside::PerfScript => {
                "the output of perf script: who allocates, not what is held; `slablab sites FILE` lists the call sites"
            }
            Aside::PerfKmem => {
                "a summary of perf kmem, which counts what was allocated and not what is held: the recording is needed \
                 (perf.data of `perf kmem record`, then `slablab sites perf.data`)"
            }
            Aside::PageOwner => "page_owner: pages and who allocated them, not caches",
            Aside::Sar => "sar -B: paging of the machine, not what holds memory",
            Aside::Oomctl => {
                "oomctl: memory pressure (PSI) and limits of a cgroup as systemd-oomd sees them; it has nothing about \
                 slabs. memory.stat of that cgroup has"
            }
            Aside::Vmallocinfo => {
                "/proc/vmallocinfo: memory of vmalloc, which is no slab memory; its last column of names says who took it"
            }
            Aside::Buddyinfo => {
                "/proc/buddyinfo: free blocks of pages by order; it does not tell what holds memory"
            }
            Aside::Pressure => {
                "/proc/pressure: how long tasks waited for memory; it does not tell what holds it"
            }
            Aside::Vmstat => {
                "vmstat: memory, paging and CPUs each second; it has no slabs. `vmstat -m` has, and /proc/meminfo"
            }
            Aside::Processes => {
                "a list of processes with their memory: slabs are of the kernel, and in none of them; /proc/meminfo has \
                 them"
            }
        })
    }
}

fn word(count: u64) -> &'static str {
    if count == 1 { "page" } else { "pages" }
}
