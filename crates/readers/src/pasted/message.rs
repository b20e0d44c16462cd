//! The kernel's messages about slabs: a slab that could not be had, and reports of the OOM killer.

use super::corruption;
use crate::text::number;
use std::collections::BTreeMap;

/// "SLUB: Unable to allocate memory on node -1", or SLAB's, and the lines that belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocFailure {
    /// The line in the text, from 1.
    pub line: usize,
    /// `SLUB` or `SLAB`.
    pub allocator: String,
    /// The node that the caller asked for; -1 where any would do.
    pub node: Option<i64>,
    /// The CPU that asked, which newer kernels name.
    pub cpu: Option<u32>,
    /// The caller's flags, as a number.
    pub gfp: Option<u64>,
    /// The names of the flags, as kernels since 4.8 print them.
    pub gfp_names: Option<String>,
    /// The cache's name, without its cgroup.
    pub cache: Option<String>,
    /// Number and name of the memory cgroup whose copy of the cache it is (3.8 to 5.8).
    pub cgroup: Option<(u64, String)>,
    /// Bytes of an object.
    pub object_size: Option<u64>,
    /// Bytes from one object to the next.
    pub size: Option<u64>,
    /// Order of the slabs that the kernel prefers.
    pub order: Option<u32>,
    /// The lowest order that holds an object.
    pub min_order: Option<u32>,
    /// Debugging made the lowest order larger.
    pub debugged: bool,
    /// The cache on each node.
    pub nodes: Vec<NodeCounts>,
    /// The line of the cache as far as it was read: a mail program may have broken it.
    pub(super) cache_line: String,
    /// That line was begun.
    pub(super) begun: bool,
}

/// A cache on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// The node.
    pub node: u32,
    /// Slabs.
    pub slabs: u64,
    /// Objects there is room for.
    pub objects: u64,
    /// Free objects of partial slabs.
    pub free: u64,
}

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
        self.trace.iter().any(|frame| NEW_SLAB.iter().any(|name| frame.starts_with(name)))
    }
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
    NEW_SLAB.iter().any(|name| frame.starts_with(name)) || corruption::is_of_allocator(frame)
}

/// Things of a report that are kept at most.
const KEPT: usize = 4096;

/// The first line of a failure.
pub(super) fn failure(line: &str) -> Option<AllocFailure> {
    let (before, rest) = line.split_once("Unable to allocate memory")?;
    let allocator = before.trim_end().trim_end_matches(':').split_whitespace().last()?;
    let node = rest.rsplit_once("on node").and_then(|(_, node)| integer(node.trim_start()));
    let cpu = rest.split_once("on CPU").and_then(|(_, cpu)| leading(cpu.trim_start()));
    let mut failure = AllocFailure {
        allocator: allocator.to_string(),
        node,
        cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
        ..AllocFailure::default()
    };
    flags(&mut failure, rest);
    matches!(allocator, "SLUB" | "SLAB").then_some(failure)
}

/// `(gfp=0x20)`, or `gfp=0x900(GFP_NOWAIT|__GFP_ZERO)`.
fn flags(failure: &mut AllocFailure, text: &str) -> bool {
    let Some((_, rest)) = text.split_once("gfp=0x") else { return false };
    let digits = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    failure.gfp = u64::from_str_radix(&rest[..digits], 16).ok();
    let names = rest[digits..].strip_prefix('(').and_then(|rest| Some(rest.split_once(')')?.0));
    failure.gfp_names = names.filter(|names| !names.is_empty()).map(str::to_string);
    true
}

/// Takes a line that belongs to a failure; false if it is not one.
pub(super) fn more_of_failure(failure: &mut AllocFailure, line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("cache:") {
        failure.cache_line = rest.trim().to_string();
        cache(failure);
        return true;
    }
    if let Some(counts) = node(line) {
        if failure.nodes.len() < 1 << 12 {
            failure.nodes.push(counts);
        }
        return true;
    }
    if goes_on(failure, line) {
        cache(failure);
        return true;
    }
    if line.contains("debugging increased min order") {
        failure.debugged = true;
        return true;
    }
    // The rest of the first line.
    if failure.gfp.is_some() || failure.begun {
        return false;
    }
    let node = line.strip_prefix("node ").and_then(integer);
    failure.node = failure.node.or(node);
    flags(failure, line) || node.is_some()
}

/// Joins a line that goes on with the line of the cache, up to the minimum order.
fn goes_on(failure: &mut AllocFailure, line: &str) -> bool {
    // As long as a name that a program may have put in.
    const LONGEST: usize = 1 << 10;
    // Nothing of the line was read, or all of it.
    if failure.object_size.is_some() && failure.order.is_some() && failure.min_order.is_some() {
        return false;
    }
    let text = &failure.cache_line;
    let is_open = text.matches('(').count() > text.matches(')').count();
    let in_name = is_open || text.ends_with('-');
    let is_word = |word: &str| {
        let word = word.trim_end_matches(',');
        let key =
            matches!(word, "object" | "buffer" | "default" | "min" | "order:" | "size" | "size:" | "order");
        key || number::<u64>(word).is_some()
    };
    let begun = failure.begun && (in_name || text.is_empty() || line.split_whitespace().all(is_word));
    if !begun || text.len() + line.len() > LONGEST {
        return false;
    }
    failure.cache_line =
        if in_name || text.is_empty() { format!("{text}{line}") } else { format!("{text} {line}") };
    true
}

/// Reads the line of the cache, which may not be whole yet.
fn cache(failure: &mut AllocFailure) {
    let text = std::mem::take(&mut failure.cache_line);
    failure.begun = true;
    let name = text.split(", object").next().unwrap_or(&text).trim().trim_end_matches(',');
    let (name, cgroup) = of_cgroup(name);
    // A name that is broken in its middle is none.
    if !name.is_empty() && !name.ends_with('-') {
        failure.cache = Some(name.to_string());
        failure.cgroup = cgroup;
    }
    numbers(failure, &text);
    failure.cache_line = text;
}

/// `kmalloc-1024` and group 1793 of `kmalloc-1024(1793:c8edefa9)`.
pub(super) fn of_cgroup(name: &str) -> (&str, Option<(u64, String)>) {
    let split = name.strip_suffix(')').and_then(|rest| rest.split_once('('));
    let cgroup = split.and_then(|(parent, group)| {
        let (id, group) = group.split_once(':')?;
        Some((parent, (number(id)?, group.to_string())))
    });
    cgroup.map_or((name, None), |(parent, group)| (parent, Some(group)))
}

fn numbers(failure: &mut AllocFailure, text: &str) {
    let of = |key: &str| text.split_once(key).and_then(|(_, rest)| leading(rest.trim_start()));
    let order = |key: &str| of(key).and_then(|order| u32::try_from(order).ok());
    failure.object_size = of("object size:");
    failure.size = of("buffer size:");
    failure.min_order = order("min order:");
    failure.order = order("default order:").or_else(|| order(", order:"));
}

/// `node 0: slabs: 663, objs: 20964, free: 0`; SLAB's has `used/all`.
fn node(line: &str) -> Option<NodeCounts> {
    let (node, rest) = line.strip_prefix("node ")?.split_once(": slabs:")?;
    let of = |key: &str, rest: &str| {
        let value = rest.split_once(key)?.1.trim_start();
        let (first, second) = value.split_once('/').map_or((value, None), |(a, b)| (a, leading(b)));
        Some((leading(first)?, second))
    };
    let slabs = of("", rest)?;
    let objects = of("objs:", rest)?;
    let free = of("free:", rest).map(|(free, _)| free);
    let in_use = |(used, all): (u64, Option<u64>)| all.map(|all| all.saturating_sub(used));
    Some(NodeCounts {
        node: number(node.trim())?,
        slabs: slabs.1.unwrap_or(slabs.0),
        objects: objects.1.unwrap_or(objects.0),
        free: free.or_else(|| in_use(objects)).unwrap_or(0),
    })
}

/// Takes a line of a memory report; false if it is none.
///
/// `within` is what lines of counters without a start of their own go on with.
pub(super) fn more_of_report(report: &mut MemoryReport, within: &mut Within, line: &str) -> bool {
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
    let node = line.strip_prefix("Node ").filter(|rest| leading(rest).is_some());
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

/// The digits that a text begins with.
fn leading(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    number(&text[..digits])
}

/// An integer that may be below zero, and that anything but a letter may follow.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    i64::try_from(leading(digits)?).ok()?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(lines: &[&str]) -> AllocFailure {
        let mut read = failure(lines[0]).expect("a failure");
        for line in &lines[1..] {
            assert!(more_of_failure(&mut read, line), "{line}");
        }
        read
    }

    #[test]
    fn old_new_and_newest_words() {
        let old = read(&[
            "SLUB: Unable to allocate memory on node -1 (gfp=0x20)",
            "cache: kmalloc-1024(1793:c8ed), object size: 1024, buffer size: 1032, default order: 3, min order: 0",
            "node 0: slabs: 663, objs: 20964, free: 0",
            "node 1: slabs: 1, objs: 2, free: 3",
        ]);
        assert_eq!((old.node, old.gfp, old.gfp_names), (Some(-1), Some(0x20), None));
        assert_eq!(old.cache.as_deref(), Some("kmalloc-1024"));
        assert_eq!(old.cgroup, Some((1793, "c8ed".into())));
        assert_eq!(
            (old.object_size, old.size, old.order, old.min_order),
            (Some(1024), Some(1032), Some(3), Some(0))
        );
        let second = NodeCounts { node: 1, slabs: 1, objects: 2, free: 3 };
        assert_eq!((old.nodes.len(), old.nodes[1]), (2, second));

        let new = read(&["SLUB: Unable to allocate memory on node 1, gfp=0x900(GFP_NOWAIT|__GFP_ZERO)"]);
        assert_eq!(
            (new.node, new.gfp, new.gfp_names.as_deref()),
            (Some(1), Some(0x900), Some("GFP_NOWAIT|__GFP_ZERO"))
        );
        let newest = "SLUB: Unable to allocate memory on CPU 12 (of node 1) on node 0, gfp=0x920(GFP_ATOMIC)";
        assert_eq!((read(&[newest]).cpu, read(&[newest]).node), (Some(12), Some(0)));
    }

    #[test]
    fn wrapped_lines_and_slab() {
        let wrapped = read(&[
            "SLUB: Unable to allocate memory on node -1",
            "(gfp=0x20)",
            "cache: kmalloc-1024, object size: 1024, buffer size:",
            "1024, default order: 3,",
            "min order: 0",
        ]);
        assert_eq!((wrapped.gfp, wrapped.object_size, wrapped.min_order), (Some(0x20), Some(1024), Some(0)));
        let cgroup = read(&[
            "SLUB: Unable to allocate memory on",
            "node -1 (gfp=0x20)",
            "cache:",
            "kmalloc-1024(1793:c8ed),",
            "object size: 1024, buffer size: 1024, default order: 3, min order:",
            "0",
            "node 0: slabs: 663, objs: 20964, free: 0",
        ]);
        assert_eq!((cgroup.cache.as_deref(), cgroup.node), (Some("kmalloc-1024"), Some(-1)));
        assert_eq!(cgroup.cgroup, Some((1793, "c8ed".into())));
        assert_eq!((cgroup.size, cgroup.order, cgroup.min_order), (Some(1024), Some(3), Some(0)));
        for broken in
            [["cache: kmalloc-", "1024(1793:c8ed), object"], ["cache: kmalloc-1024(17", "93:c8ed), object"]]
        {
            let broken =
                read(&[&["SLUB: Unable to allocate memory on node -1 (gfp=0x20)"], &broken[..]].concat());
            assert_eq!(broken.cgroup, Some((1793, "c8ed".into())));
        }
        assert_eq!(read(&["SLUB: Unable to allocate memory on node -1", "cache:"]).cache, None);
        let slab = read(&[
            "SLAB: Unable to allocate memory on node 0 (gfp=0xd0)",
            "cache: task_struct, object size: 2640, order: 0",
            "node 0: slabs: 40/41, objs: 40/42, free: 2",
        ]);
        assert_eq!((slab.allocator.as_str(), slab.order), ("SLAB", Some(0)));
        assert_eq!(slab.nodes, [NodeCounts { node: 0, slabs: 41, objects: 42, free: 2 }]);
        assert_eq!(failure("Unable to allocate memory"), None);
    }
}
