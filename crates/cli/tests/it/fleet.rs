//! `slablab fleet` as a user meets it.

use crate::common::{self, argument, check_order, folder, text};
use std::fmt::Write;
use std::path::Path;

#[track_caller]
fn check(args: &[&str], code: i32, words: &[&str]) -> String {
    let output = common::slablab(&["fleet"], args);
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}{said}");
    check_order(args, &said, words);
    said
}

/// A dump of a machine with 8 GiB: slabs of a page of each cache, by name.
fn dump(folder: &Path, host: &str, up_s: u64, caches: &[(&str, u64)]) {
    let path = folder.join(format!("{host}-{up_s}"));
    let write = |name: &str, content: &str| {
        let path = path.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    };
    let mut slabinfo = String::from("slabinfo - version: 2.1\n# name\n");
    for (name, slabs) in caches {
        let objects = slabs * 21;
        writeln!(
            slabinfo,
            "{name} {objects} {objects} 192 21 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0"
        )
        .expect("a string");
    }
    write("proc/slabinfo", &slabinfo);
    let kb: u64 = caches.iter().map(|(_, slabs)| slabs * 4).sum();
    let meminfo = "MemTotal: 8388608 kB\nMemFree: 4000000 kB\n";
    write("proc/meminfo", &format!("{meminfo}Slab: {kb} kB\nSReclaimable: 0 kB\nSUnreclaim: {kb} kB\n"));
    write("proc/sys/kernel/osrelease", "6.12.1\n");
    write("proc/version", "Linux version 6.12.1 (a@b) (gcc) #1 SMP\n");
    write("proc/sys/kernel/hostname", &format!("{host}\n"));
    write("proc/uptime", &format!("{up_s}.00 0.00\n"));
    write("sys/devices/system/cpu/possible", "0-3\n");
    write("sys/devices/system/cpu/online", "0-3\n");
}

#[test]
fn one_machine_stands_out_among_alike() {
    let folder = folder("fleet-outlier");
    for number in 0..12u64 {
        let filp = if number == 7 { 200_000 } else { 1000 + 10 * number };
        dump(&folder, &format!("host{number}"), 1000, &[("filp", filp), ("dentry", 5000)]);
    }
    let path = folder.to_str().expect("UTF-8");
    let said = check(&[path], 0, &["12 machines have", "1 stands out", "filp", "Stands out", "Cache"]);
    assert!(said.contains("host7") || said.contains("host7-1000"), "{said}");
    // The answer does not depend on the order of the dumps, nor on threads.
    assert_eq!(said, check(&[path], 0, &[]));
    let csv = check(&[path, "--format", "csv"], 0, &["machine,dump,group,memory_bytes,slab_bytes"]);
    assert_eq!(csv.lines().count(), 13);
    let json = check(&[path, "--format", "json"], 0, &["slablab.fleet.1"]);
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["outliers"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(document["outliers"][0]["cache"], "filp");
}

#[test]
fn machines_that_are_alike_do_not_stand_out() {
    let folder = folder("fleet-alike");
    for number in 0..12u64 {
        dump(&folder, &format!("host{number}"), 1000, &[("filp", 50_000 + 900 * number)]);
    }
    let path = folder.to_str().expect("UTF-8");
    check(&[path], 0, &["12 machines have", "of their memory", "none stands out"]);
    // What no machine predicts saves nothing that is known.
    let said = check(&[path, "--engine", "slqb"], 0, &["Group", "slqb", "is not predicted on 12 machines"]);
    assert!(!said.contains("One change on all machines") && !said.contains("0 bytes"), "{said}");
    check(&[&format!("{path}/host3-1000")], 0, &["1 machine has", "of its memory"]);
}

#[test]
fn a_dump_that_cannot_be_read_is_named() {
    let folder = folder("fleet-unread");
    dump(&folder, "host", 1000, &[("filp", 1000)]);
    std::fs::write(folder.join("notes.txt"), "nothing of slabs\n").expect("a file");
    let path = folder.to_str().expect("UTF-8");
    check(&[path], 3, &["1 machine has", "1 file is no dump, or not a whole one", "notes.txt"]);
    // The beginning of one counts, and is told.
    let whole = std::fs::read(argument("crates/doctor/testdata/leak/after.tar.xz")).expect("a dump");
    let cut = folder.join("cut.tar.xz");
    std::fs::write(&cut, &whole[..3000]).expect("a file");
    let cut = cut.to_str().expect("UTF-8");
    check(&[cut], 3, &["1 machine has", "1 file is no dump, or not a whole one", "cut.tar.xz: cut off"]);
    let none = argument("README.md");
    common::check_error(&["fleet"], &[&none], &["none of 1 dumps could be read"]);
    common::check_error(&["fleet"], &["/no/such/folder"], &["No such file"]);
    common::check_error(&["fleet"], &[], &["required"]);
    common::check_error(&["fleet"], &["-"], &["standard input is not read"]);
}
