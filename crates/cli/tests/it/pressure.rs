//! `slablab pressure`.

use crate::common::{argument, check_order, folder, slablab, text};

const RECORD: &str = "crates/kernel/corpus/vmrecord/slabfill";

#[test]
fn show_has_counters_and_pages_in_all_formats() {
    let record = argument(RECORD);
    let said = slablab(&["pressure", "show"], &[&record]);
    assert_eq!(said.status.code(), Some(0));
    let words = [
        "slabfill: 1 phases",
        "minflt",
        "swapout",
        "anon_fill",
        "28672",
        "11368",
        "present",
        "17319",
        "11353",
    ];
    check_order(&[&record], &text(&said.stdout), &words);
    assert!(!text(&said.stdout).contains("swapin"), "a counter of zeros is left out");
    let said = text(&slablab(&["pressure", "show"], &[&record, "--format", "csv"]).stdout);
    check_order(
        &[],
        &said,
        &[
            "record,phase,elapsed_ms,minflt,",
            ",pgsteal_kswapd,",
            ",anon_fill,870,28672,0,0,0,0,11368,6826,6995,",
        ],
    );
    let said = text(&slablab(&["pressure", "show"], &[&record, "--format", "json"]).stdout);
    check_order(
        &[],
        &said,
        &["\"phase\": \"anon_fill\"", "\"swapped\": 11353", "\"slabs_scanned\"", "\"schema\""],
    );
}

#[test]
fn show_says_what_is_incomplete_and_what_is_wrong() {
    let cut = argument("crates/kernel/corpus/vmrecord/frag-cut");
    let said = slablab(&["pressure", "show"], &[&cut]);
    assert_eq!(said.status.code(), Some(3));
    assert!(text(&said.stdout).contains("it has no @end"), "{}", text(&said.stdout));
    let bad = folder("pressure").join("bad");
    std::fs::write(&bad, "@phase a\nelapsed 1\n").expect("a file");
    let said = slablab(&["pressure", "show"], &[bad.to_str().expect("UTF-8")]);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("bad: line 2: expected a line of a phase"), "{}", text(&said.stderr));
    let said = slablab(&["pressure", "show"], &[&cut, "-o", &cut]);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("the same file as the input"), "{}", text(&said.stderr));
}
