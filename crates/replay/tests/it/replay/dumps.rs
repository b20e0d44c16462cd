//! What is joined from dumps, and what engines take over from them.

use super::program::trace;
use super::{FOUR_CPUS, check_with, machine, presets, run};
use slablab_replay::replay::Options;
use slablab_replay::replay::before::Before;
use slablab_replay::replay::before::nodes::NodeSpan;
use std::path::{Path, PathBuf};

/// A directory with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dumps").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("below a folder")).expect("a folder can be made");
        std::fs::write(path, content).expect("a file can be written");
    }
    folder
}

/// A /proc/slabinfo with one row.
fn slabinfo(row: &str) -> String {
    format!("slabinfo - version: 2.1\n{row}\n")
}

/// Three slabs of 16 objects: a CPU's, one with 8 free objects, a full one. `more` has other attributes.
fn sysfs(name: &str, directory: &str, row: &str, more: &[(&str, &str)]) -> PathBuf {
    let attributes = [
        ("slab_size", "256\n"),
        ("object_size", "256\n"),
        ("objs_per_slab", "16\n"),
        ("order", "0\n"),
        ("slabs", "3 N0=3\n"),
        ("objects", "40 N0=40\n"),
        ("total_objects", "48 N0=48\n"),
        ("partial", "1 N0=1\n"),
        ("objects_partial", "8 N0=8\n"),
        ("cpu_slabs", "1 N0=1\n"),
    ];
    let path = |name: &str| format!("sys/kernel/slab/{directory}/{name}");
    let mut files: Vec<(String, &str)> = attributes.iter().map(|(name, text)| (path(name), *text)).collect();
    files.extend(more.iter().map(|(name, text)| match name.contains('/') {
        true => (name.to_string(), *text),
        false => (path(name), *text),
    }));
    let row = slabinfo(row);
    files.push(("proc/slabinfo".into(), &row));
    folder(name, &files.iter().map(|(path, text)| (path.as_str(), *text)).collect::<Vec<_>>())
}

const ROW: &str = "filp 40 48 256 16 1 : tunables 0 0 0 : slabdata 3 3 0";

fn options(engine: &str, before: &Path) -> Options {
    let before = Some(Before::read(before).expect("a dump"));
    Options { engines: presets(&[engine]), before, ..Options::default() }
}

/// An archive without links still has the merged caches: by their numbers.
#[test]
fn a_directory_without_its_links_is_found() {
    let options = options("slub@6.1", &sysfs("links", ":0000256", ROW, &[]));
    let program = "cache filp 256; 0 alloc filp 0";
    check_with(program, "6.1.0", &options, "filp: slabs_start=3 objects_start=40");
    let answer = run(&trace("6.1.0", program), &options);
    assert_eq!(answer.warnings, Vec::<String>::new());
    let said =
        answer.assumed.iter().filter(|text| text.contains("1 merged caches were found by their numbers"));
    assert_eq!(said.count(), 1, "{:?}", answer.assumed);
}

/// The text of /proc/slabinfo, read later, has the totals; sysfs says how many slabs are partial.
#[test]
fn a_newer_slabinfo_has_the_totals() {
    let newer = "filp 60 80 256 16 1 : tunables 0 0 0 : slabdata 5 5 0";
    let old = sysfs("older", "filp", ROW, &[]);
    let new = folder("newer", &[("slabinfo", &slabinfo(newer))]).join("slabinfo");
    for paths in [[old.clone(), new.clone()], [new.clone(), old.clone()]] {
        let before = Before::read_all(&paths).expect("two dumps").expect("a state");
        let (_, cache) = before.find("filp").expect("the cache");
        let total = |counts: &Option<slablab_readers::text::Breakdown>| {
            counts.as_ref().map(|counts| (counts.total.value, counts.nodes_sum()))
        };
        // 20 objects are free, which one slab does not hold; sysfs had one partial slab.
        assert_eq!(total(&cache.slabs), Some((5, 5)));
        assert_eq!((total(&cache.partial), total(&cache.objects_partial)), (Some((2, 2)), Some((12, 12))));
        let options = Options { engines: presets(&["slub@6.1"]), before: Some(before), ..Options::default() };
        let program = "cache filp 256; 0 alloc filp 0";
        check_with(program, "6.1.0", &options, "filp: slabs_start=5 objects_start=60");
    }
    let check = |paths: &[&PathBuf], expected: &str| {
        let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
        let error = Before::read_all(&paths).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&[&old, &old], "both have sys/kernel/slab");
    check(&[&new, &new], "neither has sys/kernel/slab");
    check(&[&old, &new, &new], "at most two");
    let other = slabinfo("filp 60 80 512 8 1 : tunables 0 0 0 : slabdata 10 10 0");
    let other = folder("other", &[("slabinfo", &other)]).join("slabinfo");
    check(&[&old, &other], "filp: 8 objects of 512 bytes in a slab");
}

#[test]
fn other_slabs_than_the_dump_has_are_a_warning() {
    let row = "filp 16 16 256 16 1 : tunables 0 0 0 : slabdata 1 1 0";
    let start = folder("fewer", &[("slabinfo", &slabinfo(row))]).join("slabinfo");
    let program = "cache filp 256; cache dentry 256; 0 free filp 1000; 0 free filp 1100; 0 free dentry 1000";
    let answer = run(&trace("6.1.0", program), &options("slub@6.1", &start));
    let warnings = answer.warnings.join("\n");
    assert!(warnings.contains("filp 2 slabs, not 1"), "{warnings}");
    assert!(warnings.contains("1 cache is not in") && warnings.ends_with(": dentry"), "{warnings}");
    let remarks = slablab_replay::output::remarks(&answer);
    assert!(remarks[0].starts_with("warning: ") && remarks[1].starts_with("warning: "), "{remarks:?}");
}

/// A free of an object on another node's slab goes to an alien array.
#[test]
fn zoneinfo_tells_the_node_of_an_old_slab() {
    let zone = |node: u32, first: u64, spanned: u64| {
        format!(
            "Node {node}, zone   Normal\n  pages free     1\n        spanned  {spanned}\n  start_pfn:           {first}\n"
        )
    };
    // Objects of the program's first cache are between 1 and 2 GiB.
    let check = |name: &str, boundary: u64, expected: &str| {
        let zones = zone(0, 1, boundary - 1) + &zone(1, boundary, 0x80000);
        let before = sysfs(name, "filp", ROW, &[("proc/zoneinfo", &zones)]);
        let mut options = options("slab@6.1", &before);
        let spans = &options.before.as_ref().expect("a state").nodes;
        let (first, end) = (boundary << 12, (boundary + 0x80000) << 12);
        assert_eq!(spans[1], NodeSpan { first, end, node: 1 });
        options.machine = machine(FOUR_CPUS);
        check_with("cache filp 256; 0 free filp 1000", "6.1.0", &options, expected);
    };
    check("node-1", 0x40000, "filp: node_frees=1");
    check("node-0", 0x80000, "filp: node_frees=0");
}

/// Two slabs are filled on one CPU and emptied on another.
const EMPTIED: &str = "cache filp 256; 0 alloc filp 0-47; 1 free filp 0-31";

#[test]
fn an_engine_of_the_family_has_the_kernels_limits() {
    let check = |name: &str, knobs: &[(&str, &str)], engine: &str, expected: &str| {
        let empty = "filp 0 0 256 16 1 : tunables 0 0 0 : slabdata 0 0 0";
        let none = ["slabs", "objects", "total_objects", "partial", "objects_partial", "cpu_slabs"];
        let mut more: Vec<(&str, &str)> = none.map(|name| (name, "0\n")).to_vec();
        more.extend(knobs);
        let options = options(engine, &sysfs(name, "filp", empty, &more));
        check_with(EMPTIED, "6.1.0", &options, expected);
    };
    let (usual, off) = ([("cpu_partial", "52\n"), ("min_partial", "5\n")], [("cpu_partial", "0\n")]);
    check("usual", &usual, "slub@6.1", "filp: cpu_partial_free=2 free_add_partial=0");
    check("off", &off, "slub@6.1", "filp: cpu_partial_free=0 free_add_partial=2 free_slab=0");
    // What the command line asks for wins.
    check("asked", &off, "slub@6.1,cpu_partial=30", "filp: cpu_partial_free=2 free_add_partial=0");
    // Another release of the family has the administrator's value too; another family has no such thing.
    check("release", &off, "slub@5.16", "filp: cpu_partial_free=0 free_add_partial=2");
    let none = [("cpu_partial", "0\n"), ("min_partial", "0\n")];
    check("none", &none, "slub@6.1", "filp: free_add_partial=2 free_remove_partial=2 free_slab=2");
    check("none-asked", &none, "slub@6.1,min_partial=5", "filp: free_add_partial=2 free_slab=0");
    // A value that is the recording kernel's rule is no value for another release.
    check("rule", &usual, "slub@3.2", "filp: cpu_partial_free=2");
    let red = [("red_zone", "1\n"), ("cpu_partial", "0\n")];
    check("debugged", &red, "slub@6.1", "filp: alloc_fastpath=0 cpu_partial_free=0");
}

#[test]
fn arrays_are_as_large_as_slabinfo_says() {
    let check = |name: &str, tunables: &str, engine: &str, expected: &str| {
        let row = slabinfo(&format!("filp 0 0 256 16 1 : tunables {tunables} : slabdata 0 0 0"));
        let start = folder(name, &[("slabinfo", &row)]).join("slabinfo");
        let options = options(engine, &start);
        check_with("cache filp 256; 0 alloc filp 0-7; 0 free filp 0-7", "6.1.0", &options, expected);
    };
    // Four allocations out of eight find the array of four empty; each full array gives back two.
    check("slab", "4 2 0", "slab@6.1", "filp: allocmiss=4 freemiss=2");
    check("slab-rule", "120 60 8", "slab@6.1", "filp: allocmiss=1 freemiss=0");
    check("slab-asked", "4 2 0", "slab@6.1,limit=120", "filp: allocmiss=1 freemiss=0");
}
