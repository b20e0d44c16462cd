//! Every dump of a folder of recorded machines: sums to the byte, and the table of docs/results/doctor.md.

use super::{check_parts, check_sums, read, report};
use slablab_doctor::state::{self, Input, State};
use std::path::{Path, PathBuf};

/// Files below a folder, in the order of their names.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// A row of the table: KiB, and what explains the difference.
fn row(name: &str, state: &State) -> String {
    let report = report(state);
    let kib = |bytes: i64| bytes / 1024;
    let (caches, loss) = (report.measured.lines.len(), kib(report.measured.total.loss()));
    let bytes = kib(report.measured.total.bytes as i64);
    let Some(meminfo) = &report.measured.meminfo else {
        return format!("| {name} | {caches} | {loss} | {bytes} | not in the dump | | | |");
    };
    let (gap, lag) = (meminfo.gap, meminfo.lag.expect("CPUs") as i64);
    let explained = match gap {
        0 => "equal",
        gap if gap > lag => "large kmallocs",
        1.. => "large kmallocs, or lag",
        gap if -gap <= lag => "lag",
        _ => "unexplained",
    };
    let (slab, gap, lag) = (kib(meminfo.slab as i64), kib(gap), kib(lag));
    format!("| {name} | {caches} | {loss} | {bytes} | {slab} | {gap:+} | {lag} | {explained} |")
}

#[test]
#[ignore = "reads the folder of recorded machines that SLABLAB_TRUTH names"]
fn every_recorded_machine_adds_up() {
    let Ok(truth) = std::env::var("SLABLAB_TRUTH").map(PathBuf::from) else {
        return eprintln!("SLABLAB_TRUTH is not set: left out");
    };
    let mut found = Vec::new();
    files(&truth, &mut found);
    println!("| dump | caches | loss | slabinfo | meminfo Slab | difference | may lag | explained by |");
    println!("|---|---|---|---|---|---|---|---|");
    let (mut dumps, mut tables) = (0, 0);
    for path in found {
        let name = path.strip_prefix(&truth).unwrap().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".tar.xz") {
            let state = read(path.clone());
            check_sums(&state, name);
            let row = row(name, &state);
            assert!(!row.contains("unexplained"), "{row}");
            println!("{row}");
            dumps += 1;
        } else if name.contains("/slabinfo_") && (name.ends_with(".csv") || name.ends_with(".txt")) {
            let page_size = if name.starts_with("ppc64") { 65536 } else { 4096 };
            let input = Input { path: Some(path), page_size: Some(page_size), cpus: None };
            let state = state::read(&input).unwrap_or_else(|error| panic!("{error}"));
            let shown = report(&state);
            check_parts(&shown, &name);
            // Without sysfs the size is the padded one: slabinfo -L on such a file says the same.
            check_sums(&state, &name);
            assert_eq!(shown.measured.unknown_sizes, shown.measured.lines.len(), "{name}");
            tables += 1;
        }
    }
    println!("{dumps} dumps, {tables} slabinfos alone");
    assert!(dumps > 0 && tables > 0);
}
