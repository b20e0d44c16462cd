//! The sentences that answers begin with, in the situations that they tell apart; lines that fit.

use crate::pasted::sample;
use slablab_doctor::measure::SortKey;
use slablab_doctor::orders::{Question, Sizes, machines};
use slablab_doctor::output::{Shown, doctor_answer, orders_answer, what_answer, what_list_answer};
use slablab_doctor::state::{Input, State, read};
use slablab_doctor::what::{Entry, Failure, Known};
use slablab_doctor::{Options, examine};
use slablab_report::{Answer, text};
use slablab_slabs::order::OrderRule;
use std::path::Path;

/// The answer's first words are `sentence`, in every form. No line of its text is wider than a terminal, but
/// for commands and words that have no blank.
#[track_caller]
fn check(answer: &Answer, sentence: &str) {
    let said = answer.sentence();
    assert!(said.starts_with(sentence) && said.ends_with('.'), "{said}");
    assert_eq!(answer.json()["answer"], said);
    assert!(answer.markdown().starts_with(said), "{said}");
    let first = |text: &str| text.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    for wide in [false, true] {
        assert_eq!(first(&answer.text(wide)), first(said));
    }
    for line in answer.text(false).lines() {
        let is_command = line.starts_with("    ") && !line.starts_with("     ");
        let is_word = line.split_whitespace().count() <= 1;
        assert!(line.chars().count() <= text::width() || is_command || is_word, "too wide: {line:?}");
        assert_eq!(line, line.trim_end(), "blanks at the end");
    }
}

fn state(below: &str) -> State {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(below);
    read(&Input { path: Some(path), page_size: Some(4096), cpus: Some(2) }).expect("a dump")
}

#[test]
fn of_the_doctor() {
    let leak = |name: &str| state(&format!("testdata/leak/{name}.tar.xz"));
    let pasted = |name: &str| state(&format!("../readers/testdata/pasted/{name}.txt"));
    let cases: [(State, &[State], &str); 8] = [
        (leak("after"), &[leak("before")], "Climbing and not reclaimable: 431 MiB of growth in caches"),
        (leak("after"), &[], "No problem: 66 % of slab memory, 1.0 GiB, is counted as reclaimable"),
        (leak("before"), &[], "No problem: 91 % of slab memory, 816 MiB, is counted as reclaimable"),
        (state("../../examples/dumps/ppc64_smp160.after.tar.xz"), &[], "Not reclaimable"),
        (pasted("ebitmap"), &[], "Not reclaimable: ebitmap_node (SELinux: pieces of bitmaps) holds 43.8 of"),
        (pasted("meminfo"), &[], "No problem: 99.6 % of slab memory, 14.1 GiB, is counted as reclaimable"),
        (pasted("older"), &[], "No problem: the caches in the text have 196 KiB, too little to matter"),
        (pasted("unable"), &[], "An allocation failed: no pages for a new slab of kmalloc-1024"),
    ];
    for (state, since, sentence) in &cases {
        for (sort, bytes) in [(SortKey::CacheSize, false), (SortKey::Growth, true)] {
            let shown = Shown { sort, lines: 600, aliases: true, bytes };
            for hours in [None, Some(2.0)] {
                let options =
                    Options { since, hours: hours.filter(|_| !since.is_empty()), ..Options::default() };
                check(&doctor_answer(&examine(state, &options).expect("examined"), &shown), sentence);
            }
        }
    }
}

/// A name that is wider than the table has room for is cut, and whole with all columns.
#[test]
fn long_names_of_caches() {
    let name = "a_cache_of_a_module_with_a_name_that_is_longer_than_the_names_of_the_kernel";
    let mut state = state("../../examples/dumps/amd64_smp4.after.tar.xz");
    state.caches[0].name = name.into();
    let report = examine(&state, &Options::default()).expect("examined");
    let answer =
        doctor_answer(&report, &Shown { sort: SortKey::Name, lines: 600, aliases: false, bytes: false });
    check(&answer, "");
    assert!(!answer.text(false).contains(name) && answer.text(false).contains("a_cache_of_a_module_wi"));
    assert!(answer.text(true).contains(name));
}

#[test]
fn of_caches_and_messages() {
    let known = Known::builtin();
    let words = "SLUB: Unable to allocate memory on node -1 (gfp=0x20)";
    let one = Failure::in_text(words, 4096);
    let many = Failure::in_text(&std::fs::read_to_string(sample("unable.txt")).expect("a text"), 4096);
    let several = [many.clone(), Failure::in_text(words, 4096)].concat();
    let cases: [(&[&str], &[Failure], &str); 12] = [
        (
            &["dentry"],
            &[],
            "dentry (VFS): Directory entries: the cache of file names that were looked up, with the inode each leads to; the kernel frees unused ones when it needs memory.",
        ),
        (
            &["filp"],
            &[],
            "filp (VFS): Open files (struct file), one for every open() of anything: file, socket, pipe, eventfd; no shrinker frees them: they go with what holds them.",
        ),
        (
            &["buffer_head"],
            &[],
            "buffer_head (VFS): Buffer heads: one per block of a page in the page cache, where a file system or block device maps pages block by block (what was written on ext4, its metadata, raw block devices); the kernel frees them with the pages that they are for.",
        ),
        (
            &["lsm_inode_cache"],
            &[],
            "lsm_inode_cache (security): The state of the security modules for an inode; the kernel frees them with unused inodes when it needs memory.",
        ),
        (
            &["ebitmap_node"],
            &[],
            "ebitmap_node (security): SELinux: pieces of bitmaps: types and roles of the policy, and the category sets of contexts; no shrinker frees them: they go with what holds them.",
        ),
        (&["ext4_inod"], &[], "ext4_inod (ext4): "),
        (
            &[":0000024"],
            &[],
            ":0000024 is SLUB's name for caches of 24 bytes an object that share their slabs; seen in it: ",
        ),
        (
            &[":0009999"],
            &[],
            ":0009999 is SLUB's name for caches of 9999 bytes an object that share their slabs.",
        ),
        (
            &["dentry", "filp", ":0000024"],
            &[],
            "The kernel frees unused objects of dentry when it needs memory; no shrinker frees objects of filp; who frees objects of :0000024 depends on the kernel.",
        ),
        (
            &["dentry"],
            &one,
            "An allocation failed: no pages for a new slab of a cache that the text does not name; its caller could not wait",
        ),
        (
            &[],
            &many,
            "An allocation failed: no pages for a new slab of kmalloc-1024 for memory cgroup 1793, container c8edefa90517 (2 times); its caller could not wait for memory to be reclaimed. The cgroup's limit on kernel memory, or too little free memory: explained below.",
        ),
        (
            &[],
            &several,
            "An allocation failed: no pages for a new slab of kmalloc-1024 for memory cgroup 1793",
        ),
    ];
    for (names, messages, sentence) in cases {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        check(&what_answer(known, &names, messages, &[]), sentence);
    }
    // Every cache that is known, each by itself.
    for entry in known.entries() {
        check(&what_answer(known, std::slice::from_ref(&entry.name), &[], &[]), &entry.name);
    }
    let all: Vec<&Entry> = known.entries().iter().collect();
    check(&what_list_answer(known, "*", &all), &format!("{} caches are known.", all.len()));
    check(&what_list_answer(known, "d*", &all[..2]), &format!("2 of {} known caches match d*.", all.len()));
}

#[test]
fn of_order_rules() {
    let rule = |name: &str| OrderRule::parse(name).expect("a rule");
    let question = |policy: &str, against: Option<&str>, page_sizes: &[u64], cpus: &[u32]| Question {
        rule: rule(policy),
        against: against.map(rule),
        page_sizes: page_sizes.to_vec(),
        cpus: cpus.to_vec(),
        min_order: 0,
        max_order: 3,
        min_objects: 0,
        sizes: None,
    };
    let two = &[16, 160];
    let cases = [
        (
            question("patel-v3", Some("clamped"), &[65536], &[16]),
            "patel-v3 gives 69 of 65,536 sizes another order than clamped on 64K pages and 16 CPUs: 69 a larger one, 0 a smaller one.",
        ),
        (
            question("patel-v3", Some("clamped"), &[65536], &[160]),
            "patel-v3 gives each of 65,536 sizes the order of clamped on 64K pages and 160 CPUs.",
        ),
        (
            question("patel-v3", Some("clamped"), &[4096, 16384, 65536], two),
            "patel-v3 gives sizes another order than clamped on 3 of 6 machines; most on 16K pages and 16 CPUs: 683 of 16,384 sizes.",
        ),
        (
            question("patel-v3", Some("clamped"), &[4096], two),
            "patel-v3 gives every size the order of clamped on all 2 machines.",
        ),
        (
            question("clamped", None, &[4096], &[8]),
            "clamped gives 4,096 sizes slabs of orders 0 to 3 on 4K pages and 8 CPUs.",
        ),
        (question("single", None, &[4096], two), "single chooses orders 0 to 3 on 2 machines."),
        (
            Question { max_order: 0, ..question("single", None, &[4096], &[1]) },
            "single gives 512 sizes slabs of order 0 on 4K pages and 1 CPU.",
        ),
        (
            Question { max_order: 10, ..question("lean", None, &[4096], two) },
            "lean chooses orders 0 to 10 on 2 machines.",
        ),
        (
            Question {
                sizes: Some(Sizes { first: 1, last: 1 << 23, step: 1 }),
                ..question("patel-v3", Some("slab-index"), &[65536], &[1])
            },
            "patel-v3 gives ",
        ),
    ];
    for (question, sentence) in cases {
        check(&orders_answer(&question, &machines(&question)), sentence);
    }
}
