//! Evidence as people paste it: each sample of crates/readers/testdata/pasted with the question that was
//! asked, and the same tables in other dress.

use slablab_doctor::measure::SortKey;
use slablab_doctor::output::{Shown, doctor_csv, doctor_json, doctor_page, doctor_prometheus, doctor_table};
use slablab_doctor::state::{Input, State, read};
use slablab_doctor::{Options, examine};
use std::path::{Path, PathBuf};

const SHOWN: Shown = Shown { sort: SortKey::CacheSize, lines: 15, aliases: false, bytes: false };

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../readers/testdata/pasted").join(name)
}

fn sample_text(name: &str) -> String {
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
    let page = doctor_page(&report, "slablab doctor", &SHOWN);
    doctor_json(&report);
    doctor_csv(&report);
    let metrics = doctor_prometheus(&report);
    let said = doctor_table(&report, &SHOWN);
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
            "Verdict: not reclaimable: ebitmap_node (SELinux: pieces of bitmaps) holds 43.8 of 44.5 GiB (98 %), and \
             no shrinker frees it: suspect of a leak",
            "ebitmap_node no 45906648",
            "Findings",
            "ebitmap_node has 98 %",
            "SELinux",
            "no shrinker of the kernel frees it: a suspect of a leak",
            "a bug of the kernel: look for a fix",
            "a second snapshot, hours later",
            "read: 8 caches of slabtop (lines 9 to 16)",
            "the head of slabtop counts all 129 caches: 740,008,326 objects of 47,376,581 KiB together",
            "1 row is cut off, the first in line 17: `51488",
            "the text has 8 of 129 caches",
            "SReclaimable and SUnreclaim",
            "leaves one size for 7 of 8",
            "This makes what is missing readable: sudo sh -c",
        ],
    );
}

/// Every kmalloc grows with about the same number of objects: who?
#[test]
fn rocm() {
    check(
        "rocm.txt",
        &[
            "not reclaimable: kmalloc-1024, kmalloc-512, kmalloc-256, kmalloc-96 hold 1.9 of 2.4 GiB (78 %) with nearly \
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
            "no problem: 82 % of the caches in the text, 64.3 MiB, is counted as reclaimable and has a shrinker",
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
            "Verdict: an allocation failed: no pages for a new slab of kmalloc-1024 for memory cgroup 1793, container \
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
            "Verdict: an allocation failed: no pages for a new slab of page->ptl; its caller could not wait",
            "a new slab of page->ptl",
            "gfp=0x900(GFP_NOWAIT|__GFP_ZERO)",
            "Locks of page tables",
            "gfp=0x900 is GFP_NOWAIT|__GFP_ZERO: the caller is atomic",
            "Order 0 (4 KiB)",
            "node 0: 236 slabs, 13,216 objects, 929 KiB in all",
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
            "no problem: 99.6 % of slab memory, 14.1 GiB, is counted as reclaimable",
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
    says(&answer(&state_of(cut.as_bytes()).unwrap()), &["no problem: 99.6 %", "SUnreclaim 67,248,128"]);
    let most = "MemTotal: 24592560 kB\nSlab: 14876100 kB\nSReclaimable: 810428 kB\nSUnrec";
    says(
        &answer(&state_of(most.as_bytes()).unwrap()),
        &[
            "not reclaimable: 95 % of slab memory, 13.4 GiB",
            "13.4 of 23.5 GiB of the machine's memory (57 %)",
        ],
    );
}

/// Slabs with little memory are no alarm, whoever frees them.
#[test]
fn little() {
    check("older.txt", &["no problem: the caches in the text have 196 KiB, too little to matter"]);
    check("uutils.txt", &["no problem", "8.2 MiB", "most is kmalloc-8k", "It is too little to matter now"]);
    let meminfo = "MemTotal: 24592560 kB\nSlab: 145000 kB\nSReclaimable: 428 kB\nSUnreclaim: 144572 kB\n";
    says(
        &answer(&state_of(meminfo.as_bytes()).unwrap()),
        &["no problem: slabs have 142 MiB of 23.5 GiB of the machine's memory (0.6 %), too little to matter"],
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
            "no problem: the caches in the text have 14.7 MiB, too little to matter to the machine",
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

/// The slabinfo of the samples, in a dress. The same ten caches with the same bytes come out.
#[track_caller]
fn check_dress(name: &str, text: &str) {
    let plain = state_of(sample_text("sorted.txt").as_bytes()).unwrap();
    let dressed = state_of(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(dressed.caches, plain.caches, "{name}");
    let pasted = dressed.dump.pasted.as_ref().unwrap();
    assert_eq!(pasted.cut, [], "{name}");
}

#[test]
fn slabinfo_in_every_dress() {
    let plain = sample_text("sorted.txt");
    let each = |dress: &dyn Fn(&str) -> String| plain.lines().map(dress).collect::<String>();
    check_dress(
        "mail",
        &format!("Hello,\n\nwhat is this?\n\n{}\nThanks", each(&|line| format!("> > {line}\n"))),
    );
    check_dress("deep", &each(&|line| format!(">>> {line}\n")));
    check_dress("indented", &each(&|line| format!("\t    {line}\n")));
    check_dress("fence", &format!("```console\n{plain}```\n"));
    check_dress("jira", &format!("{{noformat}}\n{plain}{{noformat}}\n"));
    check_dress("crlf", &plain.replace('\n', "\r\n"));
    check_dress("tabs", &each(&|line| line.split_whitespace().collect::<Vec<_>>().join("\t") + "\n"));
    check_dress("blanks", &each(&|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n"));
    check_dress("web", &plain.replace("  ", "&nbsp; "));
    check_dress("wide", &plain.replace("  ", "\u{a0}\u{a0}"));
    check_dress(
        "table",
        &each(&|line| format!("| {} |\n", line.split_whitespace().collect::<Vec<_>>().join(" | "))),
    );
    check_dress("journal", &each(&|line| format!("Nov 24 01:33:42 host collect[17]: {line}\n")));
    check_dress("dmesg", &each(&|line| format!("[12345.678901] {line}\n")));
    check_dress(
        "iso",
        &each(&|line| {
            format!("2026-11-24T01:33:42.123456+00:00 host slab: {line}\n").replace(" slab:", " slab[1]:")
        }),
    );
    check_dress(
        "numbered",
        &plain.lines().enumerate().map(|(at, line)| format!("{:6}\t{line}\n", at + 1)).collect::<String>(),
    );
    check_dress("kubernetes", &each(&|line| format!("2026-11-24T01:33:42.123456789Z stdout F {line}\n")));
    check_dress("compose", &each(&|line| format!("web-1  | {line}\n")));
    check_dress("android", &each(&|line| format!("<4>[ 12.345678] (0)[123:kworker/0:1]{line}\n")));
    check_dress("breaks", &each(&|line| format!("{line}<br>\n")));
    check_dress("grep", &each(&|line| format!("/proc/slabinfo:{line}\n")));
    check_dress("ansi", &each(&|line| format!("\u{1b}[1;31m{line}\u{1b}[0m\n")));
    check_dress(
        "screen",
        &plain
            .lines()
            .enumerate()
            .map(|(at, line)| format!("\u{1b}[{};1H{line}\u{1b}[K", at + 8))
            .collect::<String>(),
    );
    check_dress("a line", &plain.replace('\n', " "));
    check_dress("bytes that are no UTF-8", &format!("{plain}\nGr\u{fffd}\u{fffd}e\n"));
    check_dress("utf-16", &plain);
    // Wrapped by a mail program, at several widths, quoted before and after.
    for width in [72, 76, 60] {
        let wrapped = |mark: &str| {
            each(&|line| {
                let (mut out, mut column) = (String::from(mark), 0);
                for word in line.split_whitespace() {
                    if column + word.len() + 1 > width {
                        out += &format!("\n{mark}");
                        column = 0;
                    }
                    out += &format!("{word} ");
                    column += word.len() + 1;
                }
                out + "\n"
            })
        };
        check_dress(&format!("wrapped at {width}"), &wrapped(""));
        check_dress(&format!("wrapped at {width}, quoted"), &wrapped("> "));
    }
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(plain.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(state_of(&utf16).unwrap().caches.len(), 10);
    let utf16: Vec<u8> =
        [0xfe, 0xff].into_iter().chain(plain.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    assert_eq!(state_of(&utf16).unwrap().caches.len(), 10);
}

/// A list of slabtop, as a mail has it that was saved as it was sent, with its names broken at their hyphens,
/// and with commas of thousands.
#[test]
fn slabtop_in_a_mail() {
    let plain = state_of(sample_text("rocm.txt").as_bytes()).unwrap();
    let text = sample_text("rocm.txt");
    // Lines of 76 bytes at most, the last of each an equals sign.
    let quoted = |line: &str| {
        let line = line.replace('=', "=3D");
        let parts: Vec<&str> =
            (0..line.len()).step_by(40).map(|at| &line[at..line.len().min(at + 40)]).collect();
        let end = if line.ends_with(' ') { "=20" } else { "" };
        parts.join("=\n") + end + "\n"
    };
    let mail: String = text.lines().map(quoted).collect();
    let grouped = |word: &str| match word.strip_suffix('K').unwrap_or(word).parse::<u64>() {
        Ok(number) if number >= 1000 => {
            format!("{}{}", slablab_report::text::grouped(number), if word.ends_with('K') { "K" } else { "" })
        }
        _ => word.to_string(),
    };
    let commas = |line: &str| line.split(' ').map(grouped).collect::<Vec<_>>().join(" ") + "\n";
    for (name, text) in [
        ("quoted", mail.clone()),
        ("quoted, with its head", format!("Content-Transfer-Encoding: quoted-printable\n\n{mail}")),
        ("hyphens", text.replace("kmalloc-", "kmalloc-\n")),
        ("hyphens, cut before", text.replace(" kmalloc-", "\nkmalloc-\n")),
        ("commas", text.lines().map(commas).collect()),
    ] {
        let state = state_of(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(state.caches, plain.caches, "{name}");
    }
}

/// The head of slabtop counts more than the rows have.
#[test]
fn a_part_of_the_total() {
    let text = sample_text("ebitmap.txt");
    let without: String =
        text.lines().filter(|line| !line.contains("ebitmap")).map(|line| format!("{line}\n")).collect();
    says(
        &answer(&state_of(without.as_bytes()).unwrap()),
        &["Verdict: unknown: the rows in the text have 707 MiB of 45.2 GiB (2 %) by the head of slabtop"],
    );
    let half = text.replace("47376581.93K", "67376581.93K");
    says(
        &answer(&state_of(half.as_bytes()).unwrap()),
        &["not reclaimable: ebitmap_node", "the rows in the text have 44.5 of 64.3 GiB (69 %) by the head"],
    );
}

#[test]
fn columns_of_awk_and_vmstat() {
    let plain = state_of(sample_text("sorted.txt").as_bytes()).unwrap();
    let columns = |count: usize| -> String {
        let row = |line: &str| line.split_whitespace().take(count).collect::<Vec<_>>().join(" ") + "\n";
        sample_text("sorted.txt").lines().map(row).collect()
    };
    // Slabs and pages follow from the numbers of objects, as long as no slab fell back to a smaller order.
    for (name, text) in [
        ("six columns", columns(6)),
        ("five columns", columns(5)),
        ("vmstat", format!("Cache                       Num  Total   Size  Pages\n{}", columns(5))),
    ] {
        let state = state_of(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let of = |state: &State| {
            state.caches.iter().map(|cache| (cache.name.clone(), cache.bytes(4096))).collect::<Vec<_>>()
        };
        assert_eq!(of(&state), of(&plain), "{name}");
        says(
            &answer(&state),
            &["vmstat -m or columns of /proc/slabinfo", "Slabs are objects over objects in a slab"],
        );
    }
}

#[test]
fn cut_texts() {
    let plain = sample_text("sorted.txt");
    let text = plain.trim_end();
    // Cut in the last row: nine caches are whole, and of the tenth what is there counts.
    let row = text.rfind("ftrace_event_field").unwrap();
    for (at, caches) in [(row + 10, 9), (row + 40, 9), (row + 62, 10), (text.len() - 10, 10)] {
        let state = state_of(&text.as_bytes()[..at]).unwrap();
        assert_eq!(state.caches.len(), caches, "{}", &text[row..at]);
        let said = answer(&state);
        says(&said, &["line 10"]);
    }
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
            "Linux 5.4.0-42-generic",
            "not reclaimable, and slabs are the cause: stress invoked the OOM killer, which killed stress; 3.1 of 4 GiB \
             of memory (76 %) are unreclaimable slabs, most in kmalloc-4k",
            "kmalloc-4k no 3000032",
            "stress invoked the OOM killer, which killed stress: 3.1 GiB of unreclaimable slabs, 19.5 MiB reclaimable \
             of 4 GiB of memory",
            "slabs are the cause",
            "read: 2 caches of an OOM report (lines 10 to 11)",
            "2 of 13 lines were not understood, the first is line 4",
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
            "no problem of slabs: stress invoked the OOM killer",
            "but only 31.2 MiB of 4 GiB of memory (0.8 %)",
        ],
    );
}

#[test]
fn messages_in_logs() {
    let text = sample_text("unable.txt");
    let dressed: Vec<String> = vec![
        text.replace("\n", "\n> "),
        text.lines().map(|line| format!("Nov 24 01:33:42 host kernel: {line}\n")).collect(),
        text.lines().map(|line| format!("<4>{line}\n")).collect(),
        text.replace(", default", ",\ndefault"),
        text.replace(" (gfp", "\n(gfp"),
        // As mail programs break lines at 72 columns: before a long word, and at a hyphen.
        text.replace("cache: ", "cache:\n").replace("), object", "),\nobject"),
        text.replace("cache: ", "cache:\n")
            .replace("kmalloc-", "kmalloc-\n")
            .replace("min order: ", "min order:\n"),
        text.lines().map(|line| format!("2026-11-24T01:33:42.123456789Z stdout F {line}\n")).collect(),
        text.lines().map(|line| format!("web-1  | {line}\n")).collect(),
        text.lines().enumerate().map(|(at, line)| format!("{:6}\t{line}\n", at + 1)).collect(),
    ];
    for text in dressed {
        let state = state_of(text.as_bytes()).unwrap();
        says(
            &answer(&state),
            &["kmalloc-1024 of memory cgroup 1793", "GFP_ATOMIC", "First order 3", "20,996 objects"],
        );
    }
    // Whoever makes a container names its cgroup: in a command the name is quoted.
    let id = "c8edefa90517e21bc691deef20c17220af0f0ac69962cc51007d372e7dd40256";
    let state = state_of(text.replace(id, "a;id|sh #").as_bytes()).unwrap();
    says(&answer(&state), &["/sys/fs/cgroup/memory/*/'a;id|sh #'*/memory.kmem."]);
}

/// A bundle of SUSE's, as folder and as tar in bzip2.
#[test]
fn supportconfig() {
    let slabinfo = format!("slabinfo - version: 2.1\n# name <active_objs>\n{}", sample_text("sorted.txt"));
    let section =
        |kind: &str, what: &str, content: &str| format!("#==[ {kind} ]=====#\n# {what}\n{content}\n\n");
    let texts = [
        (
            "basic-environment.txt",
            section("Command", "/bin/date", "Sat Nov 21 06:42:04 UTC 2026")
                + &section(
                    "Command",
                    "/bin/uname -a",
                    "Linux host 5.14.21-150500-default #1 SMP x86_64 GNU/Linux",
                ),
        ),
        ("hardware.txt", section("Command", "/usr/bin/lscpu", "CPU(s):              8")),
        (
            "memory.txt",
            section("Command", "/usr/bin/free -k", "total used")
                + &section("File", "/proc/meminfo", "Slab: 90000 kB"),
        ),
        ("proc.txt", section("Command", "/bin/cat /proc/slabinfo", &slabinfo)),
    ];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("supportconfig");
    let _ = std::fs::remove_dir_all(&folder);
    let inside = folder.join("scc_host_261121_0642");
    std::fs::create_dir_all(&inside).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in &texts {
        std::fs::write(inside.join(name), text).unwrap();
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("scc_host_261121_0642/{name}"), text.as_bytes()).unwrap();
    }
    let archive = folder.join("scc_host_261121_0642.tbz");
    let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    std::io::Write::write_all(&mut packed, &tar.into_inner().unwrap()).unwrap();
    std::fs::write(&archive, packed.finish().unwrap()).unwrap();
    for path in [folder.clone(), inside, archive] {
        let state = read(&Input { path: Some(path.clone()), ..Input::default() });
        let state = state.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(state.caches.len(), 10, "{}", path.display());
        assert_eq!(state.dump.release.as_deref(), Some("5.14.21-150500-default"));
        assert_eq!(state.cpus.map(|cpus| cpus.online), Some(8));
        assert_eq!(state.dump.meminfo["Slab"], 90000);
        assert_eq!(state.taken_s, Some(1_795_243_324));
    }
}

/// scripts/vmcore.py, with a stand-in for drgn that has two caches.
#[test]
fn vmcore_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tar = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vmcore.tar");
    let output = std::process::Command::new("python3")
        .args(["-B", "-W", "error"])
        .arg(root.join("../../scripts/vmcore.py"))
        .arg("--")
        .arg(&tar)
        .env("PYTHONPATH", root.join("testdata/drgn"))
        .output()
        .expect("python3 is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let state = read(&Input { path: Some(tar), ..Input::default() }).unwrap();
    let dentry = state.cache("dentry").unwrap();
    assert_eq!(
        (dentry.active_objects, dentry.total_objects, dentry.slabs, dentry.order),
        (2050, 2100, 100, 0)
    );
    assert_eq!(dentry.attrs.as_ref().unwrap().reclaim_account, Some(true));
    assert_eq!(state.cache("skbuff_small").unwrap().name, "kmalloc-512");
    assert_eq!(state.dump.meminfo["SUnreclaim"], 80);
    assert_eq!(state.dump.cpus_online, [0, 1, 2, 5]);
    assert_eq!(state.dump.cmdline.as_deref(), Some("quiet nokaslr"));
    assert_eq!(state.page_size, 4096);
}

#[test]
fn texts_without_slabs_are_refused_by_their_first_line() {
    let error = state_of(b"\nHello,\nmy machine has 47 GB of slabs, 99% of it.\n").unwrap_err();
    assert!(error.ends_with("the first is line 2: `Hello,`"), "{error}");
    let error = state_of(b"total 47G\n").unwrap_err();
    assert!(error.contains("none of the 1 lines"), "{error}");
}
