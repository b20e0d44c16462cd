//! Small texts made after public reports of 2010 to 2026 (trackers, lists, forums): the kernel's own lines,
//! with hosts, containers and products replaced. Each has the sentences that its answer must have, and those
//! that it must not have. Where a text is refused, the refusal is the answer.

use super::{Options, SHOWN, State, doctor_answer, examine, read, sample, state_of};
use slablab_doctor::state::Input;

/// What the doctor says of a text of the folder, in one line of single blanks.
fn said_of(name: &str) -> String {
    let path = sample("cases").join(format!("{name}.txt"));
    said(read(&Input { path: Some(path), ..Input::default() }).map_err(|error| error.to_string()))
}

pub(super) fn said(state: Result<State, String>) -> String {
    let state = match state {
        Ok(state) => state,
        Err(error) => return error,
    };
    let earlier = state.earlier();
    let report = examine(&state, &Options { since: &earlier, ..Options::default() }).unwrap();
    let text = doctor_answer(&report, &SHOWN).text_of("table", false).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All failures of a table together, so that one run shows them.
#[track_caller]
pub(super) fn check<'a>(table: impl IntoIterator<Item = (&'a str, String, &'a [&'a str], &'a [&'a str])>) {
    let mut failed = Vec::new();
    for (name, said, words, never) in table {
        let missing = words.iter().filter(|word| !said.contains(**word)).map(|word| format!("no {word:?}"));
        let wrong = never.iter().filter(|word| said.contains(**word)).map(|word| format!("{word:?}"));
        let found: Vec<String> = missing.chain(wrong).collect();
        if !found.is_empty() {
            let said: String = said.chars().take(700).collect();
            failed.push(format!("{name}: {}\n    in {said}", found.join(", ")));
        }
    }
    assert!(failed.is_empty(), "{} wrong\n{}", failed.len(), failed.join("\n"));
}

/// Name of the text, what must be said, what must not.
pub(super) type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const OOM: &[&str] = &[
    "Not reclaimable, and slabs are the cause: foo invoked the OOM killer; 1.5 of 1.9 GiB of memory (80 %) are \
     unreclaimable slabs, most in kmalloc-1k",
    "Linux 5.13.4-200.fc34.x86_64",
];
const NO_MEMORY: &[&str] = &["Not reclaimable", "No problem", "out of memory killer"];

const DAMAGE: &[Case] = &[
    (
        "k01-redzone",
        &[
            "Memory corruption, not a shortage of memory: red zone of an object of kmalloc-512 overwritten: 5 bytes, \
             0xadb51e08 to 0xadb51e0c, in front of object 0xadb51e40 (first byte 0x40 instead of 0xcc)",
            "The user of the object before this one in the slab, which wrote past its end",
            "allocated: in platform_device_alloc, pid 1, 11,951 jiffies before",
            "KASAN",
            "=FZPU,kmalloc-512",
        ],
        NO_MEMORY,
    ),
    (
        "k02-objects-remaining",
        &[
            "foo_entry_cache was destroyed by rmmod with 25 of 28 objects of a slab still in use: the module that owns it \
             leaks them",
            "not an out of memory",
            "slab_debug=U,foo_entry_cache",
            "alloc_traces",
        ],
        NO_MEMORY,
    ),
    (
        "k04-double-free",
        &[
            "double free of an object of kmalloc-256, freed first in krealloc (age 3), allocated in foo_session_init \
             [foo]",
        ],
        NO_MEMORY,
    ),
    (
        "k06-kasan",
        &[
            "KASAN: read of 4 bytes, 12 bytes behind an object of 1208 bytes of foo_conn_cache, in foo_done [foo]",
        ],
        NO_MEMORY,
    ),
    (
        "k08-still-has-objects",
        &[
            "bio-4 was destroyed by python3 with live objects (3 are listed)",
            "Linux 5.10.0-14-amd64",
            "slub_debug=U,bio-4",
        ],
        &["slab_debug=U,bio-4 ", "No problem"],
    ),
    (
        "k10-wrong-cache",
        &["an object of mnt_cache was freed to foo_req_128: two different caches"],
        NO_MEMORY,
    ),
    (
        "k11-bug-slub",
        &[
            "BUG at mm/slub.c:3035 of Linux 5.14",
            "not a shortage of memory",
            "double free or a write to a free object",
        ],
        NO_MEMORY,
    ),
    (
        "k13-kmemleak",
        &[
            "kmemleak: 2 objects of 128 bytes, 256 bytes together",
            "allocated in memdup_user, called by strndup_user, load_module; the oldest is 20,379 s old",
        ],
        NO_MEMORY,
    ),
];

const REPORTS: &[Case] = &[
    ("p01-prefix-cyrillic", OOM, &["\u{438}\u{44e}\u{43b}"]),
    ("p02-prefix-kmsg", OOM, &["54929238000"]),
    ("p03-prefix-android", OOM, &["44 KiB"]),
    ("p04-prefix-line-numbers", OOM, &[]),
    ("p05-prefix-chinese", OOM, &["28 KiB"]),
    (
        "p06-prefix-spanish-slub",
        &[
            "no pages for a new slab of kmalloc-4096",
            "1,000 slabs, 8,000 objects, 31.2 MiB in all",
            "order 3 (32 KiB)",
        ],
        &["does not name"],
    ),
    (
        "o01-oom-cut",
        &[
            "slabs are the largest user that the text counts: 29.2 of 53.7 MiB that the text counts (54 %) are unreclaimable \
             slabs, 56 % with the reclaimable ones",
            "processes 44 KiB",
        ],
        &["does not tell which slabs"],
    ),
    (
        "o02-oom-quarter",
        &[
            "29.3 of 128 MiB",
            "(23 %)",
            "pages in no counter (drivers, vmalloc, huge pages) 66.6 MiB",
            "files 920 KiB",
        ],
        &["does not tell which slabs", "slabs are the cause"],
    ),
    (
        "o04-oom-list-one-row",
        &["kmalloc-2048", "57.8 MiB, 100 % of it in use", "1 row of that list"],
        &["No problem"],
    ),
    (
        "o05-order7-slab",
        &["order 7, 512 KiB", "foo_dump [foo]", "atomic", "too large for a slab cache", "kvmalloc"],
        &["No problem"],
    ),
    (
        "o08-logread-prefix",
        &["21.8 of 116 MiB that the kernel manages (19 %"],
        &["does not tell which slabs"],
    ),
    (
        "o09-oom-head",
        &[
            "proc invoked the OOM killer",
            "the text ends before the counters: the lines from \"Mem-Info:\" on",
        ],
        &[],
    ),
    (
        "o10-order5-profiled",
        &[
            "fragmentation: an allocation of pages of order 5 failed (128 KiB)",
            "uvcvideo",
            "9.4 MiB free, no block of 128 KiB or more",
            "48.8 of 283 MiB of memory (17 %) are unreclaimable slabs",
            "the 10 lines of code that the text lists",
            "fill_grant_buffer [xen_blkfront] 33 MiB",
        ],
        &["does not tell which slabs", "slabs are the cause"],
    ),
    ("o11-kmemleak-arm64", &["3.0 of 7.8 GiB of memory (39 %)", "kmemleak_object", "Linux 5.4.51-xxx"], &[]),
    (
        "o13-order0-arm",
        &[
            "not a single page for a new slab",
            "network receive path",
            "atomic",
            "min_free_kbytes",
            "it is not fragmentation",
            "Linux 6.1.20-1",
        ],
        &["No problem"],
    ),
    (
        "g01-memcg-oom-v1",
        &[
            "the limit of /test1 was reached (200 MiB of 200 MiB): shmem 173 MiB (87 %), kernel memory 22.9 MiB (11 %)",
            "shmem is the answer, not slabs",
        ],
        &["slabs are the cause"],
    ),
    (
        "g02-slab-unable",
        &["no pages for a new slab of kmalloc-8192", "24 KiB in all", "the caller is atomic"],
        &[],
    ),
    (
        "s01-unable-order7",
        &[
            "foo_entry is the shortage itself: 29,822 slabs of 512 KiB have 14.6 of 15.5 GiB (94 %), 48 % of it tails",
        ],
        &["7.63 GiB", "min_free_kbytes"],
    ),
];

const TABLES: &[Case] = &[
    (
        "m01-meminfo-twice",
        &[
            "Climbing and not reclaimable: unreclaimable slab memory grew by 34.2 MiB in 2.4 hours",
            "14.0 MiB an hour",
        ],
        &["takes a second snapshot"],
    ),
    (
        "m04-missing-memory",
        &["7.6 GiB (24 %) of the memory is in no line of /proc/meminfo", "slabs are less than that"],
        &["o problem"],
    ),
    ("m05-half-slab", &["Not reclaimable: 3.1 GiB (20 % of the machine's memory)"], &["o problem"]),
    (
        "m09-vmalloc-remainder",
        &["9.2 GiB, can only be freed", "VmallocUsed, 4.9 GiB, explains 97 % of it"],
        &["slabs are less"],
    ),
    ("m07-meminfo-no-slab", &["without the line Slab"], &["line 0"]),
    (
        "t01-kmem_cache-memcg",
        &[
            "3,646,503 kmem_cache objects beside 113 caches",
            "copies of caches for memory cgroups",
            "cgroup.memory=nokmem",
        ],
        &["suspect of a leak", "Suspect of a leak"],
    ),
    (
        "t03-merged-names",
        &["are free objects: no suspect of a leak", "SLUB merges caches"],
        &[": a suspect of a leak", ": suspect of a leak"],
    ),
    (
        "t04-oom-sizes-commented",
        &["skbuff_small_head: 22,180,873, then 22,075,675 KiB", "Linux 7.0.0-15"],
        &["Steady", "No problem"],
    ),
    ("t05-bold-row", &["foo_ctinfo, 704 MiB"], &["No problem"]),
    (
        "t07-kmalloc-3072",
        &["Kmalloc-1k takes 3,072 bytes an object: slab debugging", "3 times the memory"],
        &[],
    ),
    (
        "x05-crash-kmem-s",
        &["kmalloc-1024 no 112672", "108058", "unreadable by crash itself: kmalloc-512"],
        &[],
    ),
    (
        "x07-crash-kmem-i",
        &["No problem: slabs have 77.2 MiB of 3.8 GiB of the machine's memory (2 %)"],
        &["Unknown"],
    ),
    (
        "x08-memory-stat",
        &[
            "1.56 GiB of 1.58 GiB of kernel memory of the cgroup are reclaimable slabs",
            "working set",
            "before it kills",
        ],
        &[],
    ),
    ("x10-proc-vmstat", &["Not reclaimable", "12.1 GiB"], &["No problem"]),
    ("x14-spl-kmem-slab", &["SPL, beside /proc/slabinfo", "zio_buf_512", "(37 %)"], &["No problem"]),
];

const OTHERS: &[Case] = &[
    ("x12-sar-B-comma", &["Memory is not short: no reclaim at all"], &[]),
    ("x13-oomctl", &["memory pressure (PSI)", "of a cgroup", "nothing about slabs"], &["none of the"]),
    ("x04-page_owner", &["1 slab page of order 0; 1 page charged to NetworkManager.service"], &[]),
    ("x01-allocinfo-mail", &["ice_alloc_mapped_page [ice], 3.1 GiB", "slablab sites"], &["none of the"]),
    ("x02-allocinfo-numfmt", &["11 lines of /proc/allocinfo", "alloc_page_ext, 122 MiB"], &["none of the"]),
    ("f01-ftrace-prompt-cut", &["events of ftrace", "slablab sites"], &["none of the"]),
    ("f03-perf-script-quoted", &["perf script", "slablab sites"], &["none of the"]),
    ("f05-perf-kmem-stat", &["a summary of perf kmem", "the recording is needed"], &["none of the"]),
    ("f06-perf-kmem-page", &["a summary of perf kmem", "the recording is needed"], &["none of the"]),
];

#[test]
fn public_texts_say_what_they_tell() {
    let all = [DAMAGE, REPORTS, TABLES, OTHERS].into_iter().flatten();
    check(all.map(|(name, words, never)| (*name, said_of(name), *words, *never)));
}

/// The body of a report, without what a log puts before its lines.
const BODY: &str = "\
foo invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
CPU: 0 PID: 42 Comm: foo Not tainted 5.13.4-200.fc34.x86_64 #1
Mem-Info:
active_anon:1000 inactive_anon:2000 isolated_anon:0
slab_reclaimable:10000 slab_unreclaimable:400000
mapped:69 shmem:0 pagetables:135 bounce:0
500000 pages RAM
Unreclaimable slab info:
Name                      Used          Total
kmalloc-1k           1500000KB    1500100KB
task_struct             2000KB       2100KB
";

/// The same report in logs of other programs, machines and languages.
#[test]
fn a_report_is_read_whatever_stands_before_its_lines() {
    let levels = ["warn", "err", "info"];
    let prefixes: [(&str, &dyn Fn(usize) -> String); 16] = [
        ("german", &|at| format!("M\u{e4}r 03 14:08:{at:02} rechner kernel: ")),
        ("french", &|at| format!("ao\u{fb}t 27 14:08:{at:02} poste kernel: [ 123.{at:06}] ")),
        ("polish", &|at| format!("pa\u{17a} 3 14:08:{at:02} host kernel: ")),
        ("japanese", &|at| format!("11\u{6708} 28 14:08:{at:02} host kernel: ")),
        ("greek", &|at| format!("\u{39d}\u{3bf}\u{3b5} 28 14:08:{at:02} host kernel: ")),
        ("rfc 5424", &|at| format!("<4>1 2025-07-27T14:08:{at:02}.123456+00:00 host kernel - - - ")),
        ("grep -n", &|at| format!("kern.log-{}-", at + 100)),
        ("grep -n of a match", &|at| format!("kern.log:{}:", at + 100)),
        ("logread", &|at| {
            format!("Sun Jul 27 09:17:{at:02} 2025 kern.{} kernel: [155609.93{at:04}] ", levels[at % 3])
        }),
        ("kmsg", &|at| format!("4,18{at:02},5492923{at:04},-;")),
        ("logcat", &|at| format!("07-27 14:08:03.{at:03}  1234  {} W kernel  : ", 5678 + at)),
        ("serial", &|at| format!("[pid:{at},cpu0,swapper/{at}]")),
        ("netconsole", &|at| format!("2025-07-27 14:08:{at:02} 10.0.0.7:6666 [ 1234.{at:06}] ")),
        ("quoted", &|at| format!("> | [ 1234.{at:06}] ")),
        ("json", &|at| format!("host-7 {{\"n\":{at},\"t\":\"2025-07-27\"}} ")),
        ("uptime", &|at| format!("(1d 02:03:{at:02}) host ")),
    ];
    let dressed = |prefix: &dyn Fn(usize) -> String| {
        let lines = BODY.lines().enumerate().map(|(at, line)| format!("{}{line}\n", prefix(at)));
        said(state_of(lines.collect::<String>().as_bytes()))
    };
    check(prefixes.iter().map(|(name, prefix)| (*name, dressed(*prefix), OOM, &["00 %)"] as &[&str])));
}

/// Texts of the same kinds by other means: other words of the kernel, wraps, cuts and mixtures.
const OWN: &[(&str, &str, &[&str], &[&str])] = &[
    (
        "KASAN since 6.4, use after free",
        "[   12.1] BUG: KASAN: slab-use-after-free in foo_read+0x1c/0x40 [foo]\n\
         [   12.1] Write of size 8 at addr ffff888100 by task cat/77\n\
         [   12.1] CPU: 0 UID: 0 PID: 77 Comm: cat Not tainted 6.12.3 #1\n\
         [   12.1] Allocated by task 70:\n[   12.1]  kasan_save_stack+0x1/0x2\n[   12.1]  __kmalloc_cache_noprof+0x1/0x2\n\
         [   12.1]  foo_open+0x22/0x80 [foo]\n[   12.1] Freed by task 71:\n[   12.1]  kfree+0x1/0x2\n\
         [   12.1]  foo_close+0x9/0x10 [foo]\n\
         [   12.1] The buggy address belongs to the object at ffff8881000\n\
         [   12.1]  which belongs to the cache kmalloc-192 of size 192\n\
         [   12.1] The buggy address is located 16 bytes inside of\n[   12.1]  freed 192-byte region [ff, ff)\n",
        &[
            "KASAN: write of 8 bytes, 16 bytes inside of an object of 192 bytes of kmalloc-192 that was freed, in foo_read \
             [foo], allocated in foo_open [foo], freed in foo_close [foo]",
        ],
        NO_MEMORY,
    ),
    (
        "poison overwritten, new words, quoted",
        "> BUG filp (Tainted: G    B  ): Poison overwritten\n> 0xffff88800a1-0xffff88800a4 @offset=161. First byte 0x6a instead \
         of 0x6b\n> Allocated in alloc_empty_file+0x4e/0x100 age=100 cpu=1 pid=99\n>  kmem_cache_alloc+0x1/0x2\n\
         > Freed in file_free_rcu+0x3/0x9 age=5 cpu=1 pid=0\n> Object 0xffff88800a0 @offset=160 fp=0x0\n",
        &[
            "a free object of filp was written: 4 bytes",
            "at offset 1 of object",
            "first byte 0x6a instead of 0x6b",
            "freed: in file_free_rcu",
        ],
        NO_MEMORY,
    ),
    (
        "SLAB's words",
        "slab error in verify_redzone_free(): cache `size-64': memory outside object was overwritten\n",
        &["red zone of an object of size-64 overwritten", "not a shortage"],
        NO_MEMORY,
    ),
    (
        "SLAB's destroy",
        "slab error in kmem_cache_destroy(): cache `foo_cache': Can't free all objects\n",
        &["foo_cache was destroyed with live objects"],
        NO_MEMORY,
    ),
    (
        "an oops in the allocator",
        "general protection fault: 0000 [#1] SMP\nCPU: 3 PID: 9 Comm: z_wr_iss Tainted: P 4.4.0-21-generic #37\n\
         RIP: 0010:[<ffffffff811eb1f4>]  [<ffffffff811eb1f4>] kmem_cache_alloc+0x74/0x1f0\nCall Trace:\n",
        &["list of free objects", "not a shortage"],
        NO_MEMORY,
    ),
    (
        "an oops elsewhere",
        "general protection fault: 0000 [#1] SMP\nRIP: 0010:ext4_foo+0x74/0x1f0 [ext4]\nCall Trace:\n",
        &["none of the"],
        &["corruption"],
    ),
    (
        "version 2 of memory cgroups",
        "java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\nmemory: usage 1048576kB, limit 1048576kB, \
         failcnt 9\nMemory cgroup stats for /kubepods/pod1:\nanon 104857600\nfile 0\nkernel 943718400\nslab_reclaimable 4096\n\
         slab_unreclaimable 900000000\nTasks state (memory values in pages):\nMemory cgroup out of memory: Killed process 7 (java)\n",
        &[
            "limit of /kubepods/pod1 was reached",
            "kernel memory 900 MiB (88 %)",
            "kernel memory is the answer",
            "858 MiB are unreclaimable slabs",
        ],
        &["No problem"],
    ),
    (
        "a small list is no cause",
        "foo invoked oom-killer: gfp_mask=0x0, order=0\nMem-Info:\nactive_anon:100 inactive_anon:100\n slab_reclaimable:1000 \
         slab_unreclaimable:26000\n free:10000 free_pcp:0\n524288 pages RAM\nUnreclaimable slab info:\nName Used Total\nRAWv6 80KB 80KB\n",
        &["No problem of slabs", "(5 %)"],
        &["slabs are the cause", "most in RAWv6"],
    ),
    (
        "a row that cannot be read",
        "slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>\n\
         foo_x=ctinfo;;4147038 4147038 176 23 1 180306 180306 0\ndentry 1661 2592 192 21 1 : tunables 0 0 0 : slabdata 124 124 0\n",
        &["line 3 looks like a row of the table and could not be read"],
        &["No problem: slabs"],
    ),
    (
        "marks around a row",
        "Cache                       Num  Total  Size  Pages\n-> foo_ctinfo 4147038 4147038 176 23\n[dentry 1661 2592 192 21]\n",
        &["foo_ctinfo, 704 MiB"],
        &["No problem"],
    ),
    (
        "meminfo by grep, with uptime",
        " 10:00:00 up 1 day,  1:00,  1 user,  load average: 0.0, 0.0, 0.0\nSlab: 100000 kB\nSUnreclaim: 40000 kB\n\
          12:00:00 up 1 day,  3:00,  1 user,  load average: 0.0, 0.0, 0.0\nSlab: 400000 kB\nSUnreclaim: 340000 kB\n",
        &["Climbing and not reclaimable", "grew by 293 MiB in 2.0 hours"],
        &["takes a second snapshot"],
    ),
    (
        "the second meminfo is cut",
        "MemTotal: 1000000 kB\nMemFree: 500000 kB\nSlab: 100000 kB\nSReclaimable: 60000 kB\nSUnreclaim: 40000 kB\n\
         MemTotal: 1000000 kB\nMemFree: 100000 kB\n",
        &["Slab 102,400,000", "the last /proc/meminfo, which ends before its lines about slabs"],
        &["Climbing"],
    ),
    (
        "node_exporter",
        "node_slabinfo_active_objects{slab=\"dentry\"} 1.2e+06\nnode_slabinfo_objects{slab=\"dentry\"} 1.2e+06\n\
         node_slabinfo_object_size_bytes{slab=\"dentry\"} 192\nnode_slabinfo_objects_per_slab{slab=\"dentry\"} 21\n\
         node_slabinfo_pages_per_slab{slab=\"dentry\"} 1\n",
        &["dentry", "223 MiB"],
        &[],
    ),
    (
        "crash, the name first",
        "CACHE            NAME                 OBJSIZE  ALLOCATED     TOTAL  SLABS  SSIZE\n\
         ffff88003d8b2100 kmalloc-1024            1024     108058    112672   3521    32k\n",
        &["kmalloc-1024", "110 MiB"],
        &[],
    ),
    (
        "memory.stat of version 1",
        "cache 1000000\nrss 2000000\nmapped_file 0\npgpgin 5\nhierarchical_memory_limit 9223372036854771712\n",
        &["version 1 does not count slabs", "memory.kmem"],
        &["No problem"],
    ),
    (
        "a process list",
        "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND\n 1234 root 20 0 1g 1g 1g S 0 1 1:00 java\n",
        &["a list of processes"],
        &["none of the 2"],
    ),
];

#[test]
fn texts_by_other_means_say_what_they_tell() {
    check(
        OWN.iter().map(|(name, text, words, never)| (*name, said(state_of(text.as_bytes())), *words, *never)),
    );
}
