//! What a dump or a kernel's counters say of the start.

use super::program::trace;
use super::{FOUR_CPUS, check_with, machine, presets, run};
use slablab_replay::replay::before::Before;
use slablab_replay::replay::{Evidence, Options};
use std::path::Path;

#[test]
fn a_dump_merges_names() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a_dump_merges_names");
    let _ = std::fs::remove_dir_all(&folder);
    let slab = folder.join("sys/kernel/slab");
    std::fs::create_dir_all(slab.join(":0000256")).expect("a folder can be made");
    for (name, content) in [
        ("slab_size", "256\n"),
        ("object_size", "256\n"),
        ("objs_per_slab", "16\n"),
        ("order", "0\n"),
        ("align", "64\n"),
        ("slabs", "3 N0=3\n"),
        ("objects", "40 N0=40\n"),
        ("partial", "1 N0=1\n"),
        ("objects_partial", "8 N0=8\n"),
        ("cpu_slabs", "1 N0=1\n"),
    ] {
        std::fs::write(slab.join(":0000256").join(name), content).expect("a file can be written");
    }
    for alias in ["filp", "bio-248"] {
        std::os::unix::fs::symlink(":0000256", slab.join(alias)).expect("a link can be made");
    }
    let before = || Some(Before::read(&folder).expect("a dump"));
    let options = || Options { engines: presets(&["slub@6.1"]), before: before(), ..Options::default() };
    // Three slabs: the CPU's, without a free object in the recording; one with 8 free; one full.
    check_with(
        "cache filp 248; cache bio-248 256; 0 alloc filp 0; 0 alloc bio-248 0; 0 alloc bio-248 1",
        "6.1.0",
        &options(),
        ":0000256: slabs_start=3 objects_start=40 allocs=3 slabs=3 partial=0 alloc_from_partial=1",
    );
    let replay = run(&trace("6.1.0", "cache filp 248; 0 alloc filp 0"), &options());
    for name in ["filp", "bio-248", ":0000256"] {
        assert!(slablab_replay::output::cache_answer(&replay, name, 0).is_some(), "{name} finds the cache");
    }
}

#[test]
fn a_cache_counts_in_its_window() {
    use slablab_readers::counters::{ConstRow, StateRow};
    use slablab_readers::text::{Breakdown, Count};
    let total = |value| Breakdown { total: Count { value, slabs: None }, ..Breakdown::default() };
    let constant = |cache: &str| ConstRow {
        cache: cache.into(),
        aliases: Vec::new(),
        object_size: 256,
        slab_size: 256,
        order: 0,
        objs_per_slab: 16,
        cpu_partial: 52,
        min_partial: 5,
        align: 8,
        hwcache_align: false,
        destroy_by_rcu: false,
        reclaim_account: false,
        cache_dma: None,
        remote_node_defrag_ratio: None,
    };
    let state = |cache: &str| StateRow {
        label: "s1".into(),
        phase: "before".into(),
        cache: cache.into(),
        slabs: total(2),
        objects: total(32),
        total_objects: total(32),
        ..StateRow::default()
    };
    let constants = [constant("filp"), constant("dentry")];
    let before =
        || Some(Before::from_counters(Path::new("run"), &constants, &[state("filp"), state("dentry")], "s1"));
    let options = || Options { engines: presets(&["slub@6.1"]), before: before(), ..Options::default() };
    check_with(
        "cache filp 256; 0 alloc filp 0-4; mark SB filp; 0 alloc filp 5-7; 0 free filp 0-1; 0 free filp 5;
         mark SA filp; 0 free filp 6-7",
        "6.1.0",
        &options(),
        // Objects 0 and 1 are old ones in the window; what is after it does not count.
        "filp: slabs_start=2 allocs=3 frees=3 frees_old=2; total: allocs=3 frees=3",
    );
    // A cache that never was between marks has no window, and does not disturb the balance.
    check_with(
        "cache filp 256; cache dentry 256; mark SB filp; 0 alloc filp 0-2; 0 alloc dentry 0-2; mark SA filp",
        "6.1.0",
        &options(),
        "filp: allocs=3; total: allocs=3",
    );
}

/// A dump of one cache: `filp` with 16 objects a slab, and these files of its directory.
fn filp(name: &str, files: &[(&str, &str)]) -> Before {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    let filp = folder.join("sys/kernel/slab/filp");
    std::fs::create_dir_all(&filp).expect("a folder can be made");
    let shape =
        [("slab_size", "256\n"), ("object_size", "256\n"), ("objs_per_slab", "16\n"), ("order", "0\n")];
    for (name, content) in shape.iter().chain(files) {
        std::fs::write(filp.join(name), content).expect("a file can be written");
    }
    Before::read(&folder).expect("a dump")
}

/// Eight slabs, all partial, with these objects in use.
fn eight_partial(name: &str, in_use: &str) -> Before {
    let counts = [("slabs", "8 N0=8\n"), ("partial", "8 N0=8\n"), ("cpu_slabs", "0\n")];
    filp(name, &[&counts[..], &[("objects_partial", in_use)]].concat())
}

/// One object of each slab is freed: the dump says whether it was the last.
#[test]
fn a_slab_of_which_only_frees_are_seen_is_as_full_as_the_dump_says() {
    let frees = (63..71).map(|slab| format!("0 free filp {}", slab * 16)).collect::<Vec<_>>().join("; ");
    let program = format!("cache filp 256; {frees}");
    let check = |name: &str, in_use: &str, expected: &str| {
        let before = Some(eight_partial(name, in_use));
        let options = Options { engines: presets(&["slub@6.1"]), before, ..Options::default() };
        check_with(&program, "6.1.0", &options, expected);
    };
    // While the node's list has five slabs, an empty one goes back.
    check("last_ones", "8 N0=8\n", "filp: slabs_start=8 objects_start=8 frees_old=8 free_slab=4 slabs=4");
    check("many", "112 N0=112\n", "filp: slabs_start=8 objects_start=112 frees_old=8 free_slab=0 slabs=8");
}

/// A CPU's partial list holds slabs of any node: a free puts them there.
#[test]
fn a_list_of_a_cpu_has_slabs_of_other_nodes() {
    let files = [
        ("slabs", "10 N0=2 N1=8\n"),
        ("partial", "0\n"),
        ("objects_partial", "0\n"),
        ("cpu_slabs", "8 N1=8\n"),
        ("slabs_cpu_partial", "96(6) C0=96(6)\n"),
    ];
    let options = Options {
        engines: presets(&["slub@6.1"]),
        before: Some(filp("foreign_slabs", &files)),
        machine: machine(FOUR_CPUS),
        ..Options::default()
    };
    // Two full slabs become partial: the list of seven goes to the node's list before the second.
    check_with(
        "cache filp 256; 0 free filp 1008; 0 free filp 1024",
        "6.1.0",
        &options,
        "filp: slabs_start=10 frees_old=2 cpu_partial_free=2 cpu_partial_drain=1 free_add_partial=7",
    );
}

/// A page that is freed holds no object: for other engines, not for predictions of the kernel's own pages.
#[test]
fn page_frees_prove_slabs_empty_where_they_are_evidence() {
    let program = "cache filp 256; 0 free filp 1008-1009; 0 free filp 1024-1025; 0 return filp 1008";
    let check = |evidence, expected: &str, used: Option<&str>| {
        let options = Options { engines: presets(&["slub@6.1"]), evidence, ..Options::default() };
        check_with(program, "6.1.0", &options, expected);
        let answer = run(&trace("6.1.0", program), &options);
        let said = answer.assumed.iter().find(|text| text.contains("freed their pages"));
        assert_eq!(said.map(|text| &text[..7]), used, "{said:?}");
        let json = slablab_replay::output::replay_answer(&answer, 0).json();
        let proven = json["start"]["slabs_empty_by_page_frees"].as_u64().filter(|slabs| *slabs > 0);
        assert_eq!(proven, used.map(|_| 1));
        // What was inferred is one line, of text and of JSON.
        let line = "inferred: 2 of the start's slabs, by the addresses of 4 objects in later events";
        let line = line.to_string() + used.map_or("", |_| "; objects of 1 slabs, by frees of their pages");
        assert_eq!(json["start"]["inferred"], line);
        assert!(slablab_replay::output::remarks(&answer).contains(&line));
    };
    check(Evidence::None, "filp: slabs_start=2 objects_start=32 frees_old=4", None);
    check(Evidence::Pages, "filp: slabs_start=2 objects_start=18 frees_old=4", Some("1 slabs"));
}

#[test]
fn verify_does_not_take_page_frees() {
    let before = || Some(eight_partial("circular", "8 N0=8\n"));
    let options = Options { before: before(), evidence: Evidence::Pages, ..Options::default() };
    let reader = trace("6.1.0", "cache filp 256; 0 free filp 1008");
    let path = Path::new("program");
    let refused = slablab_replay::verify::verify_change(&reader, path, path, (&options, 1), &|_, _| {});
    let refused = refused.expect_err("page frees are what verify predicts").to_string();
    assert!(refused.contains("they cannot set the start"), "{refused}");
}
