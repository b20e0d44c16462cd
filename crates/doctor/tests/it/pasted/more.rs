//! Texts of the kinds of `cases.rs` that were made for this test: other releases, other tools, cuts and
//! wraps. Each was answered wrong or not at all once, or is beside one that was.

use super::cases::{Case, check, said};
use super::sample;
use slablab_doctor::state::{Input, read};

/// What the doctor says of a text of the folder, or why it refuses it.
fn said_of(name: &str) -> String {
    let path = sample("more").join(format!("{name}.txt"));
    said(read(&Input { path: Some(path), ..Input::default() }).map_err(|error| error.to_string()))
}

/// The report of `oom6-*`: 912,345 of 1,048,442 pages.
const OOM: &[&str] = &[
    "Not reclaimable, and slabs are the cause: systemd-journal invoked the OOM killer, which killed foo; 3.5 of 4.0 GiB \
     of memory (87 %) are unreclaimable slabs, most in my_conn_cache, 2.1 GiB",
];
/// What no refusal says where the text is of a known tool.
const BLIND: &[&str] = &["none of the", "line 0"];

const REPORTS: &[Case] = &[
    ("oom6-human", OOM, &["Nov12"]),
    ("oom6-csv", OOM, &[]),
    ("oom6-mail2", OOM, &[]),
    ("oom-cut80", OOM, &[]),
    // The end of a report: its list is there, its counters are not.
    ("oom6-tailtasks", &["the text begins after the counters", "\"Mem-Info:\""], &["No problem"]),
    // Two reports: the one in which slabs are the largest user counts, wherever it stands.
    ("oom-two", &["slabs are the cause", "that is the report of line 44, beside 1 other"], &["No problem"]),
    (
        "oom-two-rev",
        &["slabs are the cause", "that is the report of line 1, beside 1 other"],
        &["No problem"],
    ),
    // Reclaimable slabs that were not reclaimed.
    (
        "oom310-messages",
        &[
            "Not reclaimed, and slabs are the cause: httpd invoked the OOM killer",
            "1.6 of 2.0 GiB (80 %) are slabs, 1.5 GiB of them counted as reclaimable",
        ],
        &["No problem"],
    ),
    // A 32-bit machine: 9 % of all memory, and most of that in which the kernel can be.
    (
        "oom-lowmem",
        &[
            "Not reclaimable, and slabs are the cause: bash invoked the OOM killer",
            "725 of 849 MiB of low memory (85 %) are unreclaimable slabs",
        ],
        &["No problem"],
    ),
    (
        "oom-arm32",
        &["99.7 of 128 MiB of memory (78 %) are unreclaimable slabs", "Linux 4.14.98"],
        &["No problem"],
    ),
    (
        "oom-anon-first-slab-second",
        &["1.5 of 4.0 GiB of memory (37 %)", "slabs are not the largest user: ", "processes 2.0 GiB"],
        &["No problem", "slabs are the cause"],
    ),
    ("oom2632", &["903 of 1024 MiB of memory (88 %) are unreclaimable slabs", "2.6.32"], &["No problem"]),
    (
        "memcg-v2-reclaimable-slab",
        &[
            "kernel memory 480 MiB (94 %)",
            "475 MiB are reclaimable slabs, which the kernel did not free in time",
        ],
        &["No problem"],
    ),
    (
        "memcg-tail",
        &["kubepods-burstable-pod12.slice was at its limit, not the machine", "are needed"],
        &["No problem", "was reached"],
    ),
    ("memcg-anon", &["processes are the answer, not slabs"], &["slabs are the cause"]),
    ("memcg-v1-kmem", &["kernel memory 245 MiB (96 %)", "kernel memory is the answer"], &["No problem"]),
    (
        "paf-order4-frag",
        &["fragmentation", "order 4 failed (64 KiB), asked for by foo_alloc_ring [foo]"],
        &["asked for by ___kmalloc"],
    ),
    ("paf-order0-atomic", &["not a single page for a new slab", "network receive path"], &["No problem"]),
    (
        "slub-unable-quoted",
        &["no pages for a new slab of kmalloc-4k for memory cgroup 912 (kubepods-pod1.slice)"],
        &["does not name"],
    ),
    ("zoneinfo", &["Not reclaimable: 99.6 % of slab memory, 11.5 GiB"], &[]),
];

const NO_MEMORY: &[&str] = &["Not reclaimable", "No problem"];

const DAMAGE: &[Case] = &[
    (
        "kmemleak-new",
        &["kmemleak: 2 objects of 256 bytes, 512 bytes together", "allocated in foo_probe [foo]"],
        &["0 s old"],
    ),
    (
        "kasan-uaf-old",
        &[
            "KASAN: read of 8 bytes at an object of TCPv6 that was freed, in tcp_foo, allocated in sk_prot_alloc (age 123), \
             freed in sk_destruct (age 3)",
        ],
        &["further report"],
    ),
    (
        "kasan-double-free",
        &[
            "double free of an object of kmalloc-rnd-07-1k, freed first in foo_flush [foo], allocated in foo_open [foo]",
        ],
        NO_MEMORY,
    ),
    (
        "kasan-mail",
        &["KASAN: write of 64 bytes, 112 bytes inside of an object of 128 bytes of kmalloc-128"],
        NO_MEMORY,
    ),
    (
        "kfence",
        &[
            "KFENCE: read at an object of 64 bytes of kmalloc-64 that was freed, in foo_poll [foo], allocated in foo_open \
             [foo], freed in foo_close [foo]",
        ],
        NO_MEMORY,
    ),
    (
        "usercopy",
        &[
            "A copy that was stopped, not a shortage of memory: the kernel stopped a copy of 4,097 bytes out of an object of \
           names_cache at offset 0",
        ],
        &["No problem", "restart the machine"],
    ),
    (
        "slab-corruption",
        &["a free object of size-2048 was written", "freed: in skb_release_data"],
        &["G W", "Not reclaimable"],
    ),
    ("slab-oldcorruption", &["Memory corruption", "freed: in kfree_skbmem"], NO_MEMORY),
    ("kasan-global", &["KASAN: read of 4 bytes beside a global variable, in foo_bar [foo]"], &["object"]),
    ("kasan-stack", &["KASAN: write of 8 bytes beside a variable on the stack, in foo_bar [foo]"], NO_MEMORY),
    ("gpf-kmalloc", &["general protection fault in the allocator", "__kmalloc"], NO_MEMORY),
    ("oops-elsewhere-slab-in-trace", &["none of the"], &["corruption"]),
    ("slub-fixslab", &["kmalloc-64: SLUB repaired what it had reported before"], NO_MEMORY),
    (
        "slub-already-free",
        &["double free of an object of kmalloc-64, freed first in foo_work [foo] (age 33)"],
        NO_MEMORY,
    ),
    (
        "slub-rightredzone",
        &["red zone of an object of kmalloc-64 overwritten: 8 bytes", "at offset 64"],
        NO_MEMORY,
    ),
    ("slub-freelist", &["the list of free objects of dentry is broken"], NO_MEMORY),
    ("destroy-new", &["foo_cache was destroyed with 7 of 32 objects of a slab still in use"], NO_MEMORY),
    ("bug-slub", &["BUG at mm/slub.c:305 of Linux 5.15", "__slab_free"], NO_MEMORY),
];

const TABLES: &[Case] = &[
    ("percpu-leak", &["Percpu has 13.3 GiB (85 %), which is no slabs"], &[]),
    ("pagetables-big", &["PageTables has 12.6 GiB (81 %), which is no slabs"], &[]),
    ("slabtop-copy-nolinebreaks", &["kmalloc-2k", "4.0 of 6.5 GiB (62 %)"], BLIND),
    ("slabinfo-csv", &["kmalloc-2k", "4.0 of 4.6 GiB (88 %)"], BLIND),
    ("slab-table-md", &["kmalloc-2k", "4.0 of 4.6 GiB (88 %)"], BLIND),
    ("meminfo-k8s-yaml", &["Not reclaimable: 98 % of slab memory, 13.2 GiB"], &["o problem"]),
    ("cg-v2-systemd", &["11.00 GiB of 11.09 GiB of kernel memory of the cgroup are reclaimable slabs"], &[]),
    ("meminfo-MB", &["Not reclaimable: 98 % of slab memory, 13.2 GiB"], &["o problem"]),
    ("meminfo-jira", &["Not reclaimable: 98 % of slab memory, 13.2 GiB"], &["o problem"]),
    ("meminfo-days", &["Climbing and not reclaimable", "grew by 4.8 GiB"], &["takes a second snapshot"]),
    (
        "node-meminfo",
        &["Not reclaimable: 97 % of slab memory, 6.5 GiB", "83.6 % of the machine's 8.0 GiB"],
        BLIND,
    ),
    (
        "numastat",
        &["Not reclaimable: 96 % of slab memory, 6.5 GiB", "42.4 % of the machine's 16.0 GiB"],
        BLIND,
    ),
    ("node_exporter-mem", &["Not reclaimable: 98 % of slab memory, 13.2 GiB"], BLIND),
    ("promql", &["Not reclaimable: 13.2 of 15.6 GiB of memory (84 %) are unreclaimable slabs"], BLIND),
    ("atop", &["Not reclaimable: 98 % of slab memory, 13.2 GiB"], BLIND),
    ("free-and-grep", &["Slabs have 13.4 GiB"], &["o problem"]),
    ("vmstat-grep", &["Not reclaimable: 99.6 % of slab memory, 12.1 GiB"], &["o problem"]),
    (
        "memory.stat-twice",
        &[
            "Climbing and not reclaimable: unreclaimable slabs of the cgroup grew by 477 MiB, from 364 MiB to 840 MiB",
        ],
        &["a second memory.stat"],
    ),
    ("vmstat-m-twice", &["Climbing and not reclaimable: 938 MiB of growth", "nf_conntrack"], &[]),
    ("slabtop-de", &["kmalloc-2k", "4.0 of 6.5 GiB (62 %)"], &[]),
    ("sblist", &["kmalloc-4k", "320 MiB"], BLIND),
    ("slabinfo-tool", &["kmalloc-2k", "holds 4.0 of 4.0 GiB"], BLIND),
    ("three-col", &["most is buffer_head", "974 MiB"], BLIND),
    ("awk-bytes", &["most is buffer_head", "2 GiB"], BLIND),
    ("spl", &["SPL, beside /proc/slabinfo", "zio_buf_comb_16384", "(60 %)"], &["o problem"]),
    ("crash-kmem-i", &["Slabs have 88.4 % of the machine's 125 GiB"], &["o problem"]),
    (
        "sar-r",
        &["slabs have 55.7 GiB of 63.1 GiB of memory (88 %), 195.3 MiB more than in the first of 2 rows"],
        BLIND,
    ),
    (
        "sar-r-comma",
        &["slabs have 55.7 GiB of 63.1 GiB of memory (88 %), 195.3 MiB more than in the first of 2 rows"],
        BLIND,
    ),
];

const OTHERS: &[Case] = &[
    ("page_owner", &["1 slab page of order 3, allocated for foo_ioctl [foo]"], &["no slab page"]),
    ("page_owner_sort", &["20144 slab pages of order 3, allocated for foo_ioctl [foo]"], &["no slab page"]),
    (
        "alloc_traces",
        &["82170 live objects of kmalloc-64", "81085 (98 %), allocated in foo_open [foo]"],
        BLIND,
    ),
    ("alloc_calls", &["81397 live objects", "allocated in foo_open [foo]"], BLIND),
    ("kmemleak-summary", &["/sys/kernel/debug/kmemleak"], BLIND),
    ("meminfo-free", &["free, the head of top", "/proc/meminfo has both"], BLIND),
    ("systemd-cgtop", &["systemd-cgtop"], BLIND),
    ("drgn-slabinfo", &["drgn", "scripts/vmcore.py"], BLIND),
    ("cachedup", &["a cache that could not be made", "no shortage"], BLIND),
    ("proc-buddyinfo", &["/proc/buddyinfo"], BLIND),
    ("arcstats", &["arcstats of ZFS"], BLIND),
    ("bcc-memleak", &["bcc", "slablab leak"], BLIND),
    ("slabratetop", &["bcc"], BLIND),
    ("docker-stats", &["memory of containers"], BLIND),
    ("lmk", &["lowmemorykiller"], BLIND),
    ("neigh", &["at its own limit"], BLIND),
    ("tcpmem", &["tcp_mem"], BLIND),
    ("xfs-deadlock", &["XFS repeats"], BLIND),
    ("xsos", &["xsos"], BLIND),
    ("sar-r-old", &["kbslab"], BLIND),
    ("slabinfo-T", &["totals by the kernel's tool slabinfo"], BLIND),
];

#[test]
fn texts_of_the_same_kinds_say_what_they_tell() {
    let all = [REPORTS, DAMAGE, TABLES, OTHERS].into_iter().flatten();
    check(all.map(|(name, words, never)| (*name, said_of(name), *words, *never)));
}
