//! Evidence as people paste it: each sample of crates/readers/testdata/pasted with the question that was
//! asked, and the same tables in other dress.

mod cases;
mod dress;
mod more;

use slablab_doctor::measure::SortKey;
use slablab_doctor::output::{Shown, doctor_answer};
use slablab_doctor::state::{Input, State, read};
use slablab_doctor::{Options, examine};
use std::path::{Path, PathBuf};

const SHOWN: Shown = Shown { sort: SortKey::CacheSize, lines: 15, aliases: false, bytes: false };

pub(crate) fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../readers/testdata/pasted").join(name)
}

pub(crate) fn sample_text(name: &str) -> String {
    std::fs::read_to_string(sample(name)).unwrap()
}

/// A text as a file, read.
fn state_of(text: &[u8]) -> Result<State, String> {
    // Tests run side by side: each text has a file of its own.
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pasted");
    std::fs::create_dir_all(&folder).unwrap();
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = folder.join(format!("{number}.txt"));
    std::fs::write(&path, text).unwrap();
    let state =
        read(&Input { path: Some(path.clone()), ..Input::default() }).map_err(|error| error.to_string());
    std::fs::remove_file(&path).unwrap();
    state
}

/// The doctor's answer, with the earlier snapshots of the text, in one line of single blanks. All formats are
/// made.
fn answer(state: &State) -> String {
    let earlier = state.earlier();
    let report = examine(state, &Options { since: &earlier, ..Options::default() }).unwrap();
    assert!(report.measured.is_incomplete(), "a text lacks something");
    let answer = doctor_answer(&report, &SHOWN);
    let form = |word| answer.text_of(word, false).expect("the doctor has this form");
    let (page, metrics, said) = (answer.page("slablab doctor"), form("prometheus"), form("table"));
    ["json", "csv", "markdown"].iter().for_each(|word| drop(form(word)));
    println!("{said}");
    // What CPUs park is unknown where the number of CPUs is.
    if state.cpus.is_none() {
        for words in ["parked with CPUs, at", "is parked with CPUs", "Parked, at most"] {
            assert!(!page.contains(words) && !said.contains(words), "{words}");
        }
        assert!(!metrics.contains("parked_high_bytes{"));
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All of `words` are said, in this order.
#[track_caller]
fn says(said: &str, words: &[&str]) {
    let mut rest = said;
    for word in words {
        let at = rest.find(word).unwrap_or_else(|| panic!("no {word:?} (in this order) in {said}"));
        rest = &rest[at + word.len()..];
    }
}

#[track_caller]
fn check(name: &str, words: &[&str]) {
    let state = read(&Input { path: Some(sample(name)), ..Input::default() }).unwrap();
    says(&answer(&state), words);
}

/// 47 GB after a week: what is it, and is it a leak?
#[test]
fn ebitmap() {
    check(
        "ebitmap.txt",
        &[
            "Not reclaimable: ebitmap_node (SELinux: pieces of bitmaps) holds 43.8 of 44.5 GiB (98 %), and \
             no shrinker frees it: suspect of a leak",
            "ebitmap_node no 45906648",
            "Findings",
            "ebitmap_node has 98 %",
            "SELinux",
            "no shrinker of the kernel frees it: a suspect of a leak",
            "a bug of the kernel: look for a fix",
            "a second snapshot, hours later",
            "This makes what is missing readable: sudo sh -c",
            "read: 8 caches of slabtop (lines 9 to 16)",
            "the head of slabtop counts all 129 caches: 740,008,326 objects of 47,376,581 KiB together",
            "1 row is cut off, the first in line 17: `51488",
            "the text has 8 of 129 caches",
            "SReclaimable and SUnreclaim",
            "leaves one size for 7 of 8",
        ],
    );
}

/// Every kmalloc grows with about the same number of objects: who?
#[test]
fn rocm() {
    check(
        "rocm.txt",
        &[
            "Not reclaimable: kmalloc-1024, kmalloc-512, kmalloc-256, kmalloc-96 hold 1.9 of 2.4 GiB (78 %) with nearly \
             the same number of objects",
            "kmalloc-1024 no 1069376",
            "kmalloc-96, kmalloc-1024, kmalloc-512, kmalloc-256 have nearly the same number of active objects (1,069,281 to \
             1,084,643)",
            "kmalloc-192 twice as many",
            "one kind of thing",
            "perf record -e kmem:kmalloc -a -g",
            "slab_debug=U,kmalloc-1024 (before 6.9 slub_debug=U,kmalloc-1024) the file \
             /sys/kernel/debug/slab/kmalloc-1024/alloc_traces (before 5.16 /sys/kernel/slab/kmalloc-1024/alloc_calls)",
            "the text has 6 of 95 caches",
        ],
    );
}

/// Which cache holds the most memory?
#[test]
fn sorted() {
    check(
        "sorted.txt",
        &[
            "No problem: 82 % of the caches in the text, 64.3 MiB, is counted as reclaimable and has a shrinker",
            "most is radix_tree_node (nodes of XArrays and radix trees), 25.3 MiB",
            "Cache",
            "radix_tree_node pages 25952",
            "ext4_inode_cache yes 17984",
            "radix_tree_node has 32 %",
        ],
    );
}

/// 2.4 million dentries: normal?
#[test]
fn dentries() {
    check(
        "dentry.txt",
        &[
            "dentry yes 451300",
            "of 2,368,980 directory entries 2,357,899 are unused (99.5 %)",
            "Many are normal",
            "2,318,380 are negative (98 %)",
            "read: 1 cache of /proc/slabinfo (line 5)",
            "read: 4 caches of slabtop",
            "1 cache is in two tables",
        ],
    );
}

/// What does "Unable to allocate memory on node -1" mean, and which cgroup?
#[test]
fn unable() {
    check(
        "unable.txt",
        &[
            "An allocation failed: no pages for a new slab of kmalloc-1024 for memory cgroup 1793, container \
             c8edefa90517 (2 times); its caller could not wait",
            "could not get pages for a new slab of kmalloc-1024 of memory cgroup 1793 \
             (c8edefa90517e21bc691deef20c17220af0f0ac69962cc51007d372e7dd40256) (2 times)",
            "SLUB: Unable to allocate memory on node -1, gfp=0x20",
            "from line 1 to line 4",
            "no node (NUMA_NO_NODE)",
            "GFP_ATOMIC in kernels before 4.4: the caller is atomic",
            "First order 3 (32 KiB), then order 0 (4 KiB)",
            "Not even a single page",
            "node 0: 664 slabs, 20,996 objects, 20.5 MiB in all. None of the objects is free",
            "the ID of a container",
            "docker ps --no-trunc | grep c8edefa90517",
            "This makes what is missing readable",
        ],
    );
}

#[test]
fn unable_in_newer_words() {
    check(
        "unable-new.txt",
        &[
            "An allocation failed: no pages for a new slab of page->ptl; its caller could not wait",
            "a new slab of page->ptl",
            "gfp=0x900(GFP_NOWAIT|__GFP_ZERO)",
            "Locks of page tables",
            "gfp=0x900 is GFP_NOWAIT|__GFP_ZERO: the caller is atomic",
            "Order 0 (4 KiB)",
            "node 0: 236 slabs, 13,216 objects, 944 KiB in all",
            "sysctl vm.min_free_kbytes",
        ],
    );
}

/// 14.9 GB of slab: a problem?
#[test]
fn meminfo() {
    check(
        "meminfo.txt",
        &[
            "No problem: 99.6 % of slab memory, 14.1 GiB, is counted as reclaimable",
            "Slab 15,233,126,400",
            "SUnreclaim 67,248,128",
            "14.1 GiB of 14.2 GiB of slab memory (99.6 %) are reclaimable",
            "the kernel frees unused ones by itself",
            "which caches hold the memory",
        ],
    );
    let state = read(&Input { path: Some(sample("meminfo.txt")), ..Input::default() }).unwrap();
    assert!(!answer(&state).contains("large kmallocs"), "without caches, what is outside of them is unknown");
    // Cut off in the last of the three lines: the kernel prints the first as the sum of the others.
    let text = sample_text("meminfo.txt");
    let cut = &text[..text.find("SUnreclaim:").unwrap() + 18];
    says(&answer(&state_of(cut.as_bytes()).unwrap()), &["No problem: 99.6 %", "SUnreclaim 67,248,128"]);
    let most = "MemTotal: 24592560 kB\nSlab: 14876100 kB\nSReclaimable: 810428 kB\nSUnrec";
    says(
        &answer(&state_of(most.as_bytes()).unwrap()),
        &[
            "Not reclaimable: 95 % of slab memory, 13.4 GiB",
            "13.4 of 23.5 GiB of the machine's memory (57 %)",
        ],
    );
}

/// Slabs with little memory are no alarm, whoever frees them.
#[test]
fn little() {
    check("older.txt", &["No problem: the caches in the text have 196 KiB, too little to matter"]);
    check("uutils.txt", &["No problem", "8.2 MiB", "most is kmalloc-8k", "It is too little to matter now"]);
    let meminfo = "MemTotal: 24592560 kB\nSlab: 145000 kB\nSReclaimable: 428 kB\nSUnreclaim: 144572 kB\n";
    says(
        &answer(&state_of(meminfo.as_bytes()).unwrap()),
        &["No problem: slabs have 142 MiB of 23.5 GiB of the machine's memory (0.6 %), too little to matter"],
    );
}

#[test]
fn older_procps() {
    check(
        "older.txt",
        &[
            "10 caches",
            "ip4-frags no 32",
            "read: 10 caches of slabtop (lines 1 to 10)",
            "assumed: The kernel has the allocator SLAB: the sizes of 3 caches fit only slabs",
        ],
    );
}

/// What holds 16 MB in an empty container?
#[test]
fn memcg() {
    check(
        "memcg.txt",
        &[
            "No problem: the caches in the text have 14.7 MiB, too little to matter to the machine",
            "inode_cache yes 8060",
            "inode_cache has 54 %",
            "inode_cache is reclaimable",
            "one memory cgroup",
            "bytes of active objects, as its program says",
        ],
    );
}

#[test]
fn uutils() {
    check(
        "uutils.txt",
        &["kmalloc-8k no 5056", "kmalloc-8k has", "read: 6 caches of slabtop", "for 3 caches"],
    );
}

/// The head of slabtop counts more than the rows have.
#[test]
fn a_part_of_the_total() {
    let text = sample_text("ebitmap.txt");
    let without: String =
        text.lines().filter(|line| !line.contains("ebitmap")).map(|line| format!("{line}\n")).collect();
    says(
        &answer(&state_of(without.as_bytes()).unwrap()),
        &["Unknown: the rows in the text have 707 MiB of 45.2 GiB (2 %) by the head of slabtop"],
    );
    let half = text.replace("47376581.93K", "67376581.93K");
    says(
        &answer(&state_of(half.as_bytes()).unwrap()),
        &["Not reclaimable: ebitmap_node", "the rows in the text have 44.5 of 64.3 GiB (69 %) by the head"],
    );
}

#[test]
fn two_snapshots_are_compared() {
    let first = sample_text("sorted.txt");
    let second = first.replace("47807  50589", "90000 100800").replace("2409   2409", "4800   4800");
    let text = format!("before:\n{first}\nafter a week:\n{second}");
    let state = state_of(text.as_bytes()).unwrap();
    assert_eq!(state.cache("dentry").unwrap().slabs, 4800);
    says(&answer(&state), &["dentry grew by 9.3 MiB", "the last of 2 snapshots", "growth has no rate"]);
    // A reply that quotes the mail before it.
    let state = state_of(format!("{first}\nwrote:\n> {}", first.replace('\n', "\n> ")).as_bytes()).unwrap();
    assert_eq!(state.earlier().len(), 0);
}

#[test]
fn oom_reports() {
    let text = "\
        [ 1234.5] stress invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0\n\
        [ 1234.5] CPU: 1 PID: 1234 Comm: stress Not tainted 5.4.0-42-generic #46-Ubuntu\n\
        [ 1234.5] Mem-Info:\n\
        [ 1234.5] active_anon:1000 inactive_anon:2000 isolated_anon:0\n\
        [ 1234.5]  slab_reclaimable:5000 slab_unreclaimable:800000\n\
        [ 1234.5] Node 0 active_anon:4000kB inactive_anon:8000kB\n\
        [ 1234.5] 1048576 pages RAM\n\
        [ 1234.5] Unreclaimable slab info:\n\
        [ 1234.5] Name                      Used          Total\n\
        [ 1234.5] kmalloc-4k           3000000KB    3000032KB\n\
        [ 1234.5] filp                     512KB        640KB\n\
        [ 1234.5] Tasks state (memory values in pages):\n\
        [ 1234.5] Out of memory: Killed process 1234 (stress) total-vm:1234kB\n";
    let state = state_of(text.as_bytes()).unwrap();
    assert_eq!(state.dump.release.as_deref(), Some("5.4.0-42-generic"));
    assert!(state.caches.iter().all(|cache| cache.bytes_only));
    says(
        &answer(&state),
        &[
            "Not reclaimable, and slabs are the cause: stress invoked the OOM killer, which killed stress; 3.1 of 4 GiB \
             of memory (76 %) are unreclaimable slabs, most in kmalloc-4k",
            "Linux 5.4.0-42-generic",
            "kmalloc-4k no 3000032",
            "stress invoked the OOM killer, which killed stress: 3.1 GiB of unreclaimable slabs, 19.5 MiB reclaimable \
             of 4 GiB of memory",
            "slabs are the cause",
            "read: 2 caches of an OOM report (lines 10 to 11)",
            "1 of 13 lines were not understood, the first is line 12",
        ],
    );
    // The files of this release only.
    let said = answer(&state);
    says(&said, &["slub_debug=U,kmalloc-4k the file /sys/kernel/slab/kmalloc-4k/alloc_calls lists"]);
    assert!(!said.contains("alloc_traces"));
    let little = text.replace("unreclaimable:800000", "unreclaimable:8000");
    let little: String =
        little.lines().filter(|line| !line.contains("KB")).map(|line| format!("{line}\n")).collect();
    let little = little.replace("Unreclaimable slab info:", "").replace("Name                      Used", "");
    says(
        &answer(&state_of(little.as_bytes()).unwrap()),
        &[
            "No problem of slabs: stress invoked the OOM killer",
            "but only 31.2 MiB of 4 GiB of memory (0.8 %)",
        ],
    );
}

#[test]
fn texts_without_slabs_are_refused_by_their_first_line() {
    let error = state_of(b"\nHello,\nmy machine has 47 GB of slabs, 99% of it.\n").unwrap_err();
    assert!(error.ends_with("the first is line 2: `Hello,`"), "{error}");
    let error = state_of(b"total 47G\n").unwrap_err();
    assert!(error.contains("none of the 1 lines"), "{error}");
}
