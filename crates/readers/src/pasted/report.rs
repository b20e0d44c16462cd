//! Reports of the OOM killer and of allocations of pages that failed.

use super::corruption;
use super::failure::leading;
use crate::text::number;
use std::collections::BTreeMap;

/// A report of the OOM killer, or of another failed allocation: what is around the table of caches. Counts
/// are pages where no unit is in the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// The line in the text where it begins, from 1.
    pub line: usize,
    /// The process that asked for memory, from "... invoked oom-killer".
    pub invoked_by: Option<String>,
    /// The process that was killed.
    pub killed: Option<String>,
    /// A cgroup was out of memory, not the machine.
    pub of_cgroup: bool,
    /// A page allocation failed: the order that it asked for.
    pub failed_order: Option<u32>,
    /// Reclaimable slabs.
    pub slab_reclaimable: Option<u64>,
    /// Unreclaimable slabs.
    pub slab_unreclaimable: Option<u64>,
    /// All pages of the machine.
    pub ram: Option<u64>,
    /// Pages of the page cache.
    pub pagecache: Option<u64>,
    /// Free swap in kB.
    pub swap_free_kb: Option<u64>,
    /// Swap in kB.
    pub swap_total_kb: Option<u64>,
    /// The table of unreclaimable caches is there.
    pub has_table: bool,
    /// The order that was asked for, of a failed allocation or by the OOM killer.
    pub order: Option<u32>,
    /// The caller's flags by name: `GFP_ATOMIC|__GFP_COMP`.
    pub gfp_names: Option<String>,
    /// Pages by the counters of Mem-Info: `active_anon` and so on.
    pub pages: BTreeMap<String, u64>,
    /// Pages that the kernel does not manage.
    pub reserved: Option<u64>,
    /// Zones, in the text's order.
    pub zones: Vec<ZoneCounts>,
    /// The memory cgroup that was at its limit.
    pub cgroup: Option<CgroupCounts>,
    /// The call trace: functions with their modules, the innermost first.
    pub trace: Vec<String>,
}

/// A zone in a report. Counts are kB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneCounts {
    /// `Node 0 Normal`, as the line begins.
    pub name: String,
    /// Its counters: `free`, `min`, `present`, `managed` and so on.
    pub kb: BTreeMap<String, u64>,
    /// Free blocks: kB of a block and how many there are.
    pub blocks: Vec<(u64, u64)>,
}

/// A memory cgroup in a report. Counts are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupCounts {
    /// Its path.
    pub name: Option<String>,
    /// Used, and allowed.
    pub usage: Option<(u64, u64)>,
    /// Kernel memory in use, by version 1.
    pub kernel: Option<u64>,
    /// Its counters: `rss`, `shmem`, `anon`, `slab_unreclaimable` and so on.
    pub bytes: BTreeMap<String, u64>,
}

/// A part of a report whose lines may be broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Within {
    #[default]
    Nothing,
    /// Mem-Info's counters.
    Counters,
    /// The last zone.
    Zone,
    /// The counters of the memory cgroup.
    Cgroup,
}

impl MemoryReport {
    /// Whether it says what happened or counts anything.
    pub fn tells(&self) -> bool {
        self.invoked_by.is_some()
            || self.killed.is_some()
            || self.failed_order.is_some()
            || self.slab_unreclaimable.is_some()
            || self.cgroup.is_some()
    }

    /// kB of a counter over all zones; `None` if no zone has it.
    pub fn zones_kb(&self, key: &str) -> Option<u64> {
        let of = self.zones.iter().filter_map(|zone| zone.kb.get(key));
        of.fold(None, |sum: Option<u64>, kb| Some(sum.unwrap_or(0).saturating_add(*kb)))
    }

    /// The code that asked: the functions of the trace behind those of the page allocator and of the slab
    /// allocator, the innermost first.
    pub fn callers(&self) -> impl Iterator<Item = &str> {
        let is_own = |frame: &&String| PAGES.iter().any(|start| frame.starts_with(start)) || is_slab(frame);
        self.trace.iter().skip_while(is_own).map(String::as_str)
    }

    /// Whether the pages were asked for by the slab allocator, for a new slab.
    pub fn for_slab(&self) -> bool {
        self.trace.iter().any(|frame| is_of_new_slab(frame))
    }
}

/// Whether a function of a stack gets pages for a new slab.
pub(super) fn is_of_new_slab(frame: &str) -> bool {
    NEW_SLAB.iter().any(|name| frame.starts_with(name))
}

/// Functions that get pages for a new slab, of SLUB and of SLAB, old and new.
const NEW_SLAB: [&str; 10] = [
    "new_slab",
    "allocate_slab",
    "alloc_slab_page",
    "___slab_alloc",
    "__slab_alloc",
    "cache_alloc_refill",
    "cache_grow",
    "kmem_getpages",
    "fallback_alloc",
    "slab_alloc_node",
];
/// Functions between the page allocator's caller and its report.
const PAGES: [&str; 22] = [
    "dump_stack",
    "show_stack",
    "dump_backtrace",
    "unwind_backtrace",
    "__dump_stack",
    "warn_alloc",
    "__alloc_pages",
    "__alloc_frozen",
    "alloc_pages",
    "alloc_page",
    "__get_free_page",
    "get_free_page",
    "dump_header",
    "oom_kill",
    "out_of_memory",
    "__folio_alloc",
    "folio_alloc",
    "__dma_direct",
    "dma_direct",
    "dma_alloc",
    "__iommu_dma",
    "alloc_single_sgt",
];

fn is_slab(frame: &str) -> bool {
    is_of_new_slab(frame) || corruption::is_of_allocator(frame)
}

/// Things of a report that are kept at most.
const KEPT: usize = 4096;

/// Takes a line of a memory report; false if it is none.
///
/// `within` is what lines of counters without a start of their own go on with.
pub(super) fn more(report: &mut MemoryReport, within: &mut Within, line: &str) -> bool {
    if let Some((process, rest)) = line.split_once(" invoked oom-killer") {
        // A log's prefix that is not known ends in a colon and a blank; names of threads have none.
        let process = process.rsplit(": ").next().unwrap_or(process).trim();
        report.invoked_by = Some(process.to_string());
        asked(report, rest);
        return true;
    }
    if let Some((_, rest)) = line.split_once("page allocation failure") {
        asked(report, rest);
        report.failed_order = report.order;
        return true;
    }
    if line.contains("Killed process") || line.contains("Kill process") {
        let name = line.split_once('(').and_then(|(_, rest)| Some(rest.split_once(')')?.0));
        report.killed = name.map(str::to_string);
        report.of_cgroup |= line.contains("Memory cgroup out of memory");
        return true;
    }
    if line.contains("gfp_mask=") && report.gfp_names.is_none() && report.invoked_by.is_some() {
        asked(report, line);
        return true;
    }
    if of_cgroup_line(report, within, line) {
        return true;
    }
    if counters(report, within, line) {
        return true;
    }
    let after = |key: &str| {
        let (before, rest) = line.split_once(key)?;
        leading(rest.trim_start().trim_start_matches('=').trim_start()).filter(|_| !before.contains(':'))
    };
    if let Some(kb) = after("Free swap") {
        report.swap_free_kb = Some(kb);
        return true;
    }
    if let Some(kb) = after("Total swap") {
        report.swap_total_kb = Some(kb);
        return true;
    }
    // The number is the word before these.
    let words = ["pages RAM", "total pagecache pages", "pages in swap cache", "pages reserved"];
    let found = words.iter().position(|words| line.ends_with(words) || line.contains(&format!(" {words} ")));
    if let Some(at) = found {
        let before = line[..line.find(words[at]).unwrap_or(0)].trim_end();
        let pages = before.split_whitespace().last().and_then(number::<u64>);
        match at {
            0 => report.ram = pages.or(report.ram),
            1 => report.pagecache = pages.or(report.pagecache),
            3 => report.reserved = pages.or(report.reserved),
            _ => {}
        }
        return pages.is_some();
    }
    let others = [
        "Mem-Info:",
        "lowmem_reserve[]",
        "Call Trace:",
        "Call trace:",
        "oom-kill:",
        "Memory allocations (profiling",
    ];
    if others.iter().any(|start| line.starts_with(start)) {
        report.of_cgroup |= line.contains("constraint=CONSTRAINT_MEMCG");
        if let Some((_, rest)) = line.split_once("oom_memcg=") {
            let cgroup = report.cgroup.get_or_insert_default();
            let name = rest.split(',').next().map(str::to_string);
            cgroup.name = cgroup.name.take().or(name);
        }
        *within = Within::Nothing;
        return true;
    }
    let counts =
        [" pages HighMem", " pages cma reserved", " pages hwpoisoned", " pages non-shared", " pages shared"];
    if counts.iter().any(|words| line.contains(words)) || line.contains("hugepages_total=") {
        return true;
    }
    if let Some(frame) = corruption::frame(line).filter(|_| report.tells() || !report.trace.is_empty()) {
        if report.trace.len() < KEPT {
            report.trace.push(frame);
        }
        return true;
    }
    false
}

/// Order and flags of the request: `order:7, mode:0x40a20(GFP_ATOMIC|__GFP_COMP)`, `gfp_mask=.., order=0`.
fn asked(report: &mut MemoryReport, rest: &str) {
    let order = rest.split_once("order:").or_else(|| rest.split_once("order="));
    let order = order.and_then(|(_, order)| leading(order.trim_start()));
    report.order = order.and_then(|order| u32::try_from(order).ok()).or(report.order);
    let flags = rest.split_once("mode:").or_else(|| rest.split_once("gfp_mask="));
    let names = flags.and_then(|(_, flags)| flags.split_once('(')?.1.split_once(')'));
    report.gfp_names = names.map(|(names, _)| names.to_string()).or(report.gfp_names.take());
}

/// Lines about the memory cgroup that was at its limit, of both versions.
fn of_cgroup_line(report: &mut MemoryReport, within: &mut Within, line: &str) -> bool {
    if let Some((_, rest)) = line.split_once("killed as a result of limit of ") {
        report.of_cgroup = true;
        let name = rest.split_whitespace().next().map(str::to_string);
        let cgroup = report.cgroup.get_or_insert_default();
        cgroup.name = name.or(cgroup.name.take());
        return true;
    }
    let kb = |key: &str| {
        let (_, rest) = line.split_once(key)?;
        let kb = leading(rest.trim_start())?;
        rest.trim_start().contains("kB").then(|| kb.saturating_mul(1024))
    };
    for (start, is_all) in [
        ("memory: usage ", true),
        ("kmem: usage ", false),
        ("swap: usage ", false),
        ("memory+swap: usage ", false),
    ] {
        if line.starts_with(start) {
            let usage = kb("usage ");
            let cgroup = report.cgroup.get_or_insert_default();
            if is_all {
                cgroup.usage = usage.zip(kb("limit "));
            } else if start.starts_with("kmem") {
                cgroup.kernel = usage;
            }
            report.of_cgroup = true;
            return true;
        }
    }
    if let Some((_, rest)) = line.split_once("Memory cgroup stats for ") {
        let (name, rest) = rest.split_once(':').unwrap_or((rest, ""));
        let pairs = pairs(rest);
        let cgroup = report.cgroup.get_or_insert_default();
        // Version 1 has a line for each cgroup below: the first is the one at its limit.
        if cgroup.bytes.is_empty() {
            cgroup.name = Some(name.trim().to_string());
            cgroup.bytes.extend(pairs.into_iter().map(|(key, value, _)| (key, value.saturating_mul(1024))));
        }
        (report.of_cgroup, *within) = (true, Within::Cgroup);
        return true;
    }
    // Version 2 has a counter in each line.
    if *within == Within::Cgroup {
        let mut words = line.split_whitespace();
        if let (Some(key), Some(value), None) =
            (words.next(), words.next().and_then(number::<u64>), words.next())
            && let Some(cgroup) = report.cgroup.as_mut().filter(|cgroup| cgroup.bytes.len() < KEPT)
        {
            cgroup.bytes.insert(key.to_string(), value);
            return true;
        }
        *within = Within::Nothing;
    }
    false
}

/// `key:12kB` or `key:12` of each word that is one: key, number, and whether it has a unit.
fn pairs(text: &str) -> Vec<(String, u64, bool)> {
    let of = |word: &str| {
        let (key, value) = word.trim_end_matches(',').rsplit_once(':')?;
        let value = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let is_key = key.starts_with(|c: char| c.is_ascii_lowercase());
        Some((
            key.to_string(),
            number(value).filter(|_| is_key)?,
            word.trim_end_matches(',').ends_with("kB") || word.ends_with("KB"),
        ))
    };
    text.split_whitespace().filter_map(of).collect()
}

/// Counters of Mem-Info, of nodes and of zones, and the lists of free blocks.
fn counters(report: &mut MemoryReport, within: &mut Within, line: &str) -> bool {
    if let Some((name, list)) =
        line.split_once(": ").filter(|(_, list)| list.contains("*4kB") || list.contains("*8kB"))
    {
        *within = Within::Nothing;
        return blocks(report, name, list);
    }
    let node = line.strip_prefix("Node ").filter(|rest| is_of_node(rest));
    let pairs = pairs(line);
    let words = line.split_whitespace().count();
    // A zone: its name, and the counter of free pages first.
    if let Some(at) = line.find(" free:").filter(|_| pairs.len() > 1 || line.contains("free:")) {
        let name = &line[..at];
        let is_zone = node.is_some() || name.split_whitespace().count() == 1;
        if is_zone && !name.contains(':') && report.zones.len() < KEPT {
            let kb = pairs.into_iter().map(|(key, value, _)| (key, value)).collect();
            report.zones.push(ZoneCounts { name: name.to_string(), kb, blocks: Vec::new() });
            *within = Within::Zone;
            return true;
        }
    }
    if node.is_some() {
        *within = Within::Nothing;
        return true;
    }
    if pairs.is_empty() {
        return false;
    }
    // All words are counters, but for the last one of a text that ends there.
    let has_unit = pairs.iter().any(|(_, _, has_unit)| *has_unit);
    let all = pairs.len() + 1 >= words || line.contains("slab_reclaimable:");
    if has_unit {
        let zone = report.zones.last_mut().filter(|_| *within == Within::Zone && all);
        return zone.is_some_and(|zone| {
            zone.kb.extend(pairs.into_iter().map(|(key, value, _)| (key, value)));
            true
        });
    }
    let known = [
        "anon",
        "file",
        "slab_",
        "unevictable",
        "mapped",
        "pagetables",
        "free",
        "kernel_misc",
        "bounce",
        "dirty",
    ];
    let is_known = pairs.iter().any(|(key, ..)| known.iter().any(|known| key.contains(known)));
    if !all || !is_known {
        return false;
    }
    for (key, value, _) in pairs {
        report.pages.entry(key).or_insert(value);
    }
    report.slab_reclaimable = report.pages.get("slab_reclaimable").copied();
    report.slab_unreclaimable = report.pages.get("slab_unreclaimable").copied();
    *within = Within::Counters;
    true
}

/// Whether what follows `Node ` is a line of Mem-Info: not of /proc/buddyinfo (`0, zone`), of a node's
/// meminfo (`0 MemTotal:`) or of numastat's head.
fn is_of_node(rest: &str) -> bool {
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, after) = rest.split_at(digits);
    let mut words = after.split_whitespace();
    let is_meminfo = words.next().is_some_and(|word| {
        word.ends_with(':')
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && words.nth(1) == Some("kB")
    });
    !number.is_empty() && after.starts_with(' ') && !after.ends_with("Total") && !is_meminfo
}

/// `Node 0 DMA: 4*4kB (UM) 31*8kB (UM) .. = 904kB`.
fn blocks(report: &mut MemoryReport, name: &str, list: &str) -> bool {
    let of = |word: &str| {
        let (count, size) = word.split_once('*')?;
        Some((number::<u64>(size.strip_suffix("kB")?)?, number::<u64>(count)?))
    };
    let blocks: Vec<(u64, u64)> = list.split_whitespace().filter_map(of).collect();
    let at = report.zones.iter().rposition(|zone| zone.name == name);
    match at {
        Some(at) => report.zones[at].blocks = blocks,
        None if report.zones.len() < KEPT => {
            report.zones.push(ZoneCounts { name: name.to_string(), kb: BTreeMap::new(), blocks });
        }
        None => {}
    }
    true
}
