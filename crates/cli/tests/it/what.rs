//! `slablab what` as a user meets it.

use crate::common::{self, check_narrow, check_order, text};
use std::path::Path;
use std::process::Output;

fn slablab(args: &[&str]) -> Output {
    common::slablab(&["what"], args)
}

#[track_caller]
fn check_error(args: &[&str], words: &[&str]) {
    common::check_error(&["what"], args, words);
}

/// Exit code 0, nothing on standard error, and all of `words` on standard output, in this order.
fn check(args: &[&str], words: &[&str]) -> String {
    let output = slablab(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
    let said = text(&output.stdout);
    check_order(args, &said, words);
    said
}

#[test]
fn pages() {
    for (args, words) in [
        (
            &["ext4_inode_cache"][..],
            &[
                "ext4_inode_cache (ext4): Inodes",
                "\n\next4_inode_cache (ext4)\n- what: ",
                "- created by: ",
                "    sync; echo 2 >",
                "    modprobe -r ext4",
                "kernel",
                "object bytes",
                "6.18",
                "1120",
            ][..],
        ),
        (
            &["dentry", "filp"],
            &["The kernel frees unused objects of dentry", "\n\ndentry (VFS)", "\n\nfilp (VFS)"],
        ),
        // What a process makes grow leads to the verb that names it.
        (
            &["posix_timers_cache"],
            &[
                "- if it grows: A minute tells which process holds the POSIX timers",
                "sudo slablab leak --for 60s",
            ],
        ),
        (
            &["skbuff_head_cache"],
            &["which process holds the bytes of unread messages in UNIX sockets that grow"],
        ),
        (&["ebitmap_node"], &["- if it grows: A minute tells which process", "sudo slablab leak --for 60s"]),
        (&["kmalloc-1024"], &["the same cache as kmalloc-1k", "/sys/kernel/slab/kmalloc-1024/shrink"]),
        (&["ext4_inod"], &["of the family ext4_*", "near", "ext4_inode_cache"]),
        (&["ebitmap_node"], &["SELinux", "- reclaimable: no: no shrinker frees the objects"]),
        (&["kmem_cache"], &["object bytes  with", "248  4 nodes"]),
        (&[":a-0000104"], &["merged caches", "104 bytes", "a: counted as reclaimable", "buffer_head"]),
        (&[":0009999"], &["9999 bytes", "no flags"]),
    ] {
        let said = check(args, words);
        assert!(said.lines().all(|line| line == line.trim_end()), "blanks at line ends: {said}");
        let by_kernel = args.iter().all(|name| ["ext4_inode_cache", "ext4_inod"].contains(name));
        assert!(!by_kernel || !said.contains("slablab leak"), "{said}");
    }
}

/// The message of the kernel as an argument, in a file, and beside a cache.
#[test]
fn messages_of_the_kernel() {
    let message = "SLUB: Unable to allocate memory on node -1 (gfp=0x20)";
    let words = [
        "An allocation failed: no pages for a new slab",
        "SLUB: Unable to allocate memory on node -1, gfp=0x20 (message of the kernel)",
        "no node",
        "GFP_ATOMIC",
        "    sysctl vm.min_free_kbytes",
    ];
    check(&[message], &words);
    check(&[message, "dentry"], &["message of the kernel", "\n\ndentry (VFS)"]);
    let log = common::argument("crates/readers/testdata/pasted/unable.txt");
    check(
        &[&log],
        &["kmalloc-1024", "cgroup", "memory cgroup 1793", "    docker ps --no-trunc | grep c8edef"],
    );
    let table = common::argument("crates/readers/testdata/pasted/ebitmap.txt");
    check(&[&table], &["ebitmap_node (security)", "is a bug of the kernel", "kmalloc-512"]);
    let json = check(&[&log, "--format", "json"], &["slablab.what.1"]);
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["messages"][0]["cgroup"]["id"], 1793);
    assert_eq!(value["messages"][0]["may_sleep"], false);
    assert_eq!(value["messages"][0]["lines"], serde_json::json!([1, 4]));
    check_error(&[&common::argument("deny.toml")], &["deny.toml", "none of the"]);
    // A report of the kernel without the names of caches: what `doctor` says of it, and the verb.
    let report = common::argument("crates/readers/testdata/pasted/cases/o13-order0-arm.txt");
    let words =
        ["no known cache is in it, but a report", "not a single page for a new slab", "slablab doctor"];
    check_error(&[&report], &words);
}

#[test]
fn lists() {
    let all = check(&["--list"], &["Acpi-Namespace", "dentry", "zswap_entry"]);
    assert!(all.lines().count() > 500);
    check_narrow(&all);
    let some = check(&["--list", "jbd2*"], &["jbd2_inode", "jbd2_journal_head"]);
    assert!(
        some.starts_with("7 of ") && some.lines().skip(3).all(|line| line.starts_with(" jbd2")),
        "{some}"
    );
    let wide = check(&["--list", "--wide"], &["dentry", "with the inode each leads to"]);
    assert!(wide.lines().any(|line| line.chars().count() > 80), "whole sentences");
    check_error(&["--list", "no-such*"], &["no-such*", "expected"]);
}

#[test]
fn json() {
    let value = |args: &[&str]| -> serde_json::Value {
        serde_json::from_str(&check(args, &["slablab.what.1"])).expect("JSON")
    };
    let one = value(&["dentry", ":a-0000104", "kmalloc-1024", "--format", "json"]);
    assert_eq!(one["schema"], "slablab.what.1");
    let caches = one["caches"].as_array().expect("a list");
    assert_eq!(caches.len(), 3);
    assert_eq!(caches[0]["name"], "dentry");
    assert_eq!(caches[0]["reclaimable"], true);
    assert_eq!(caches[0]["shrink"][0]["id"], "drop-inodes");
    assert_eq!(caches[0]["sizes"][0]["object_bytes"], 192);
    assert_eq!(caches[0]["sizes"][0]["page_bytes"], 4096);
    assert_eq!(caches[1]["merged"]["slab_size_bytes"], 104);
    assert_eq!(caches[1]["merged"]["flags"][0]["letter"], "a");
    assert_eq!((&caches[2]["asked"], &caches[2]["name"]), (&"kmalloc-1024".into(), &"kmalloc-1k".into()));
    let list = value(&["--list", "jbd2_*", "--format", "json"]);
    let names = list["caches"].as_array().expect("a list").iter().map(|cache| &cache["name"]);
    assert!(names.clone().count() >= 6 && names.clone().all(|name| name.as_str().is_some()));
}

#[test]
fn unknown_names_have_neighbours() {
    check_error(&["dentri"], &["\"dentri\"", "did you mean dentry"]);
    // What is known is answered, and what is not is named.
    let output = common::slablab(&["what"], &["dentry", "qqqqqqq", "flip"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(common::text(&output.stdout).contains("dentry (VFS)"));
    for words in ["qqqqqqq", "--list", "\"flip\"", "filp"] {
        assert!(common::text(&output.stderr).contains(words), "{words}");
    }
    check_error(&[], &["--list"]);
    check_error(&["dentry", "--list", "x"], &["cannot be used with"]);
}

#[test]
fn data_of_the_users_own() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("what-cli.toml");
    let good =
        "[[cache]]\nname = \"my_cache\"\nsubsystem = \"mine\"\nwhat = \"Things.\"\ncreated_by = \"me\"\n";
    std::fs::write(&path, format!("{good}cannot_shrink = \"No.\"\n")).expect("a file can be written");
    let file = path.display().to_string();
    check(&["my_cache", "dentry", "--data", &file], &["my_cache (mine)", "Things.", "dentry (VFS)"]);
    std::fs::write(&path, good).expect("a file can be written");
    check_error(&["my_cache", "--data", &file], &[&file, "line 2", "cannot_shrink"]);
    let nowhere = folder.join("what-nowhere.toml").display().to_string();
    check_error(&["dentry", "--data", &nowhere], &[&nowhere]);
}
