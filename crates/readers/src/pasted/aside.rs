//! Texts of other tools about memory: what they are, and what they say about slabs if anything.
//!
//! A recording or a list of call sites is read by another verb; a summary lacks what it was made of. Such a
//! text is named, so that the answer can say where it belongs.

mod page_owner;
mod sar;
mod traces;

use page_owner::PageOwner;
use sar::{Memory, Scanned};
use traces::Traces;

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
    /// `sar -r`.
    SarMemory,
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
    /// `free`, the head of top, `vmstat -s`.
    Free,
    /// systemd-cgtop.
    Cgtop,
    /// drgn's counts of a cache.
    Drgn,
    /// A cache that could not be made.
    Create,
    /// kmemleak's line in the kernel's log.
    Kmemleak,
    /// Who allocated the objects of a cache: alloc_traces, alloc_calls.
    Traces,
    /// bcc's slabratetop and memleak.
    Bcc,
    /// ZFS's arcstats.
    Arcstats,
    /// Memory of containers or services.
    Services,
    /// Android's killer of processes.
    LowMemoryKiller,
    /// Memory of TCP's buffers.
    TcpMemory,
    /// An allocation that XFS repeats.
    Xfs,
    /// A table of the network that is full.
    FullTable,
    /// The summary of xsos.
    Xsos,
    /// The totals of the kernel's tool slabinfo.
    SlabinfoTotals,
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

/// What was seen of other tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asides {
    /// Kinds of texts, each once.
    pub seen: Vec<Seen>,
    /// What page_owner counts.
    pub pages: PageOwner,
    /// What `sar -B` counts.
    pub scanned: Scanned,
    /// What `sar -r` counts.
    pub memory: Memory,
    /// Who allocated the objects of a cache.
    pub traces: Traces,
}

/// Words of lines by which a text is known; all words of one must be in the line.
const MARKS: [(Aside, &[&str]); 54] = [
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
    (Aside::SarMemory, &["kbmemfree", "kbmemused"]),
    (Aside::Free, &["total", "used", "free", "shared", "buff/cache"]),
    (Aside::Free, &["total", "used", "free", "shared", "buffers", "cached"]),
    (Aside::Free, &["Mem", "total,", "free,", "used,", "buff/cache"]),
    (Aside::Free, &["Mem:", "total,", "used,", "free,", "buffers"]),
    (Aside::Free, &["K total memory"]),
    (Aside::Cgtop, &["Control Group", "%CPU", "Memory"]),
    (Aside::Drgn, &["SlabCacheUsage("]),
    (Aside::Drgn, &["for_each_slab_cache("]),
    (Aside::Create, &["kmem_cache_create", "failed with error"]),
    (Aside::Create, &["kmem_cache_sanity_check"]),
    (Aside::Create, &["kmem_cache of name", "already exists"]),
    (Aside::Kmemleak, &["kmemleak: ", "new suspected memory leaks"]),
    (Aside::Traces, &["/alloc_traces"]),
    (Aside::Traces, &["/alloc_calls"]),
    (Aside::Bcc, &["CACHE", "ALLOCS", "BYTES"]),
    (Aside::Bcc, &["stacks with outstanding allocations"]),
    (Aside::Bcc, &[" bytes in ", " allocations from stack"]),
    (Aside::Arcstats, &["arcstats"]),
    (Aside::Arcstats, &["arc_meta_"]),
    (Aside::Arcstats, &["c_max "]),
    (Aside::Services, &["CONTAINER ID", "MEM USAGE"]),
    (Aside::Services, &["Loaded: loaded ("]),
    (Aside::LowMemoryKiller, &["lowmemorykiller: Kill"]),
    (Aside::TcpMemory, &["TCP: out of memory"]),
    (Aside::Xfs, &["possible memory allocation deadlock"]),
    (Aside::FullTable, &["table overflow!"]),
    (Aside::FullTable, &["nf_conntrack: table full"]),
    (Aside::Xsos, &["of total ram used for slab"]),
    (Aside::SlabinfoTotals, &["Slabcache Totals"]),
    (Aside::SlabinfoTotals, &["Slabcaches :", "Aliases"]),
];

impl Asides {
    /// Takes a line; false if it is of no such text.
    pub(super) fn line(&mut self, at: usize, line: &str) -> bool {
        if self.traces.line(line) || self.pages.line(line) || self.scanned.row(line) || self.memory.row(line)
        {
            return true;
        }
        let found = MARKS.iter().find(|(_, words)| words.iter().all(|word| line.contains(word)));
        let Some((aside, _)) = found else { return false };
        match self.seen.iter_mut().find(|seen| seen.aside == *aside) {
            Some(seen) => seen.lines += 1,
            None => self.seen.push(Seen { aside: *aside, line: at, lines: 1 }),
        }
        match aside {
            Aside::Sar => self.scanned.head(line),
            Aside::SarMemory => self.memory.head(line),
            _ => {}
        }
        true
    }

    /// The answer that such a text gives by itself.
    pub fn answer(&self) -> Option<String> {
        let traces = || self.traces.answer();
        self.scanned.answer().or_else(traces).or_else(|| self.memory.answer()).or_else(|| self.pages.answer())
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
            Aside::SarMemory => {
                "sar -r: memory of the machine. Its column kbslab (`sar -r ALL`) has all slabs, and the text has no row of it"
            }
            Aside::Free => {
                "free, the head of top, or vmstat -s: slabs are in buff/cache as far as the kernel counts them as \
                 reclaimable, and in used; /proc/meminfo has both numbers"
            }
            Aside::Cgtop => {
                "systemd-cgtop: memory of cgroups, slabs included and not told apart; memory.stat of a cgroup does"
            }
            Aside::Drgn => {
                "drgn's counts of objects and slabs, without their sizes: scripts/vmcore.py of slablab, run with drgn, \
                 writes what `slablab doctor` reads, and so does crash's `kmem -s`"
            }
            Aside::Create => {
                "a cache that could not be made: its name or its size is not allowed (error -22), its name is taken, or \
                 memory is short (error -12). But for -12 it is a defect of the module that asks, and no shortage"
            }
            Aside::Kmemleak => {
                "kmemleak's count of objects that it suspects: which they are and who allocated them is in \
                 /sys/kernel/debug/kmemleak"
            }
            Aside::Traces => {
                "who allocated the objects of one cache (alloc_traces, alloc_calls): the text has no row of it"
            }
            Aside::Bcc => {
                "what bcc counts while it runs: allocations, and what was not freed yet in that time. `slablab leak` puts \
                 such call sites beside the caches that grow"
            }
            Aside::Arcstats => {
                "arcstats of ZFS: the size of its cache of files (ARC), which counts its buffers and not the slabs they \
                 are in; /proc/spl/kmem/slab has those, /proc/meminfo the kernel's"
            }
            Aside::Services => {
                "memory of containers or services, slabs included and not told apart; memory.stat of the cgroup does"
            }
            Aside::LowMemoryKiller => {
                "Android's lowmemorykiller: it ends processes when the page cache is small, and does not count slabs; \
                 /proc/meminfo does"
            }
            Aside::TcpMemory => {
                "TCP's own limit (net.ipv4.tcp_mem), not the machine's memory: data in buffers of sockets; `ss -m` and \
                 /proc/net/sockstat tell whose"
            }
            Aside::Xfs => {
                "an allocation that XFS repeats until it succeeds: a large block (its size is in the line) is not there, \
                 most often by fragmentation (/proc/buddyinfo); it does not tell what holds memory"
            }
            Aside::FullTable => {
                "a table of the network at its own limit (gc_thresh3 of neighbours, nf_conntrack_max), not a shortage of \
                 memory"
            }
            Aside::Xsos => {
                "a summary by xsos: the sosreport itself, which `slablab doctor` reads, has the caches and whether the \
                 kernel frees them"
            }
            Aside::SlabinfoTotals => {
                "totals by the kernel's tool slabinfo: its list of caches (slabinfo without -T), or /proc/slabinfo, has \
                 the caches"
            }
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
