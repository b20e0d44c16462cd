//! `slablab pressure`.

use crate::common::{argument, check_error, check_order, folder, slablab, text};

/// A text with its lines as one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const RECORD: &str = "crates/readers/corpus/vmrecord/slabfill";

#[test]
fn show_has_counters_and_pages_in_all_formats() {
    let record = argument(RECORD);
    let said = slablab(&["pressure", "show"], &[&record]);
    assert_eq!(said.status.code(), Some(0));
    let words = [
        "slabfill 11,368 pages were swapped out and 0 in.",
        "minflt",
        "swapout",
        "anon_fill",
        "28672",
        "11368",
        "present",
        "17319",
        "11353",
    ];
    check_order(&[&record], &one_line(&text(&said.stdout)), &words);
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
    let cut = argument("crates/readers/corpus/vmrecord/frag-cut");
    let said = slablab(&["pressure", "show"], &[&cut]);
    assert_eq!(said.status.code(), Some(3));
    assert!(one_line(&text(&said.stdout)).contains("it has no @end"), "{}", text(&said.stdout));
    let bad = folder("pressure").join("bad");
    std::fs::write(&bad, "@phase a\nelapsed 1\n").expect("a file");
    let said = slablab(&["pressure", "show"], &[bad.to_str().expect("UTF-8")]);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("bad: line 2: expected a line of a phase"), "{}", text(&said.stderr));
    let empty = folder("pressure").join("empty");
    std::fs::write(&empty, "").expect("a file");
    let said = slablab(&["pressure", "show"], &[empty.to_str().expect("UTF-8")]);
    assert_eq!(said.status.code(), Some(2));
    let words = "empty: the file is empty: expected a record of a script's run";
    assert!(one_line(&text(&said.stderr)).contains(words), "{}", text(&said.stderr));
    let said = slablab(&["pressure", "show"], &[&cut, "-o", &cut]);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("the same file as the input"), "{}", text(&said.stderr));
}

#[test]
fn judge_says_what_is_compared() {
    let scripts = argument("examples/data/vm");
    let of_one = ["pressure", "judge", "--scenario", "scan2", "--vm", "vm@6.1,lru_gen", "--seeds", "1"];
    let judged = |threads: &str| slablab(&of_one, &[&scripts, "--threads", threads, "--format", "csv"]);
    let said = judged("1");
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let cells = text(&said.stdout);
    check_order(&[&scripts], &cells, &["scenario,machine,", "scan2,61-mglru,,", ",majflt,"]);
    assert!(!cells.contains("61-classic") && !cells.contains("uniswap"), "{cells}");
    assert_eq!(cells, text(&judged("3").stdout), "the same on any number of threads");
    let words =
        ["judged counts of 61-mglru none differs", "Judged counts:", "61-mglru", "Pages:", "61-mglru"];
    check_order(&[], &text(&slablab(&of_one, &[&scripts]).stdout), &words);
    let page = text(&slablab(&of_one, &[&scripts, "--format", "html"]).stdout);
    check_order(&[], &page, &["<!DOCTYPE html>", "How much agrees", "scan2"]);
    for (option, given, expected) in [
        ("--scenario", "scan3", "no scenario of the records is called scan3: expected perhaps scan2"),
        (
            "--vm",
            "vm@6.1,lru",
            "no machine of the records is called vm@6.1,lru: expected perhaps vm@6.1,lru_gen",
        ),
    ] {
        let said = slablab(&["pressure", "judge"], &[&scripts, option, given]);
        assert_eq!(said.status.code(), Some(2));
        assert!(text(&said.stderr).contains(expected), "{}", text(&said.stderr));
    }
}

#[test]
fn explain_takes_page_replacement_apart() {
    let script = folder("explain-vm").join("small.t");
    std::fs::write(&script, "anon a 128\nphase fill\nacc x1 a seq m w\nphase again\nacc x1 a seq m r\n")
        .expect("a file");
    let script = script.to_str().expect("UTF-8");
    let said = slablab(
        &["explain"],
        &[script, "vm@6.1", "vm@6.1,lru_gen,page_cluster=0", "--count", "majflt", "--format", "json"],
    );
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let groups: Vec<&str> =
        answer["groups"].as_array().expect("groups").iter().filter_map(|one| one["group"].as_str()).collect();
    assert_eq!(groups, ["page_cluster", "lists"]);
    let rows = answer["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["row"] == "again, majflt"), "{answer}");
    for row in rows {
        let measure = &row["measures"][0];
        let parts = measure["parts"].as_array().expect("parts");
        let sum: f64 = parts.iter().filter_map(|part| part["value"].as_f64()).sum();
        let change = measure["change"].as_f64().expect("a number");
        assert!((sum - change).abs() < 1e-6, "{sum} of {change}");
    }
    for (arguments, expected) in [
        (
            ["vm@6.1", "slub@6.1", "--count", "pswpin"],
            "B slub@6.1: no policy of page replacement is called `slub`; near it: vm",
        ),
        (["vm@6.1", "vm@6.1,lru_gn", "--count", "pswpin"], "B vm@6.1,lru_gn: "),
        (["vm@6.1", "vm@6.12", "--count", "pswpim"], "no count is called pswpim: expected one of pswpin"),
    ] {
        let said = slablab(&["explain", script], &arguments);
        assert_eq!(said.status.code(), Some(2));
        assert!(text(&said.stderr).contains(expected), "{}", text(&said.stderr));
    }
}

#[test]
fn vm_lists_policies_and_choices() {
    let list = text(&slablab(&["vm"], &[]).stdout);
    check_order(&[], &list, &["vm@2.6.29", "vm@6.1:", "vm@6.1,lru_gen", "vm@6.18,lru_gen"]);
    let one = text(&slablab(&["vm", "vm@6.12,lru_gen,swappiness=10"], &[]).stdout);
    let words = [
        "vm@6.12,lru_gen,swappiness=10: generations",
        "before it: vm@6.1,lru_gen",
        "swappiness: 10 (before: 60)",
        "ager: eviction (before: round)\n    kswapd ages before each of its rounds, or as eviction needs it",
        "round | eviction",
    ];
    check_order(&[], &one, &words);
    let said = slablab(&["vm", "vm@5.9"], &[]);
    assert_eq!(said.status.code(), Some(0), "a release between presets has the one before it");
    let said = slablab(&["vm", "wm@6.1"], &[]);
    assert_eq!(said.status.code(), Some(2));
    assert!(
        text(&said.stderr).contains("no policy of page replacement is called `wm`; near it: vm"),
        "{}",
        text(&said.stderr)
    );
}

/// Writes a script; returns its path.
fn script(folder: &std::path::Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_string()
}

/// A script that is wrong: its file, its line, what was expected, and names near it.
#[test]
fn run_says_what_is_wrong_with_a_script() {
    let folder = folder("bad-scripts");
    let check = |name: &str, text: &str, words: &[&str]| {
        let path = script(&folder, name, text);
        check_error(&["pressure", "run"], &[&path], &[&[name], words].concat());
    };
    check("object.t", "anon abc 4\nphase p\nacc x1 abd seq m r\n", &["line 3", "found `abd`; near it: abc"]);
    check("command.t", "anon abc 4\nfase p\n", &["line 2: expected a command", "near it: file, free, phase"]);
    check("spawned.t", "phase p\nspawn child nothere.t\n", &["line 2", "nothere.t", "No such file"]);
    check("child.t", "anon a 1\nspawn one two.t\ngo on\n", &["line 2", "two.t"]);
    check("page.t", "anon a 0.003\n", &["line 1: expected MiB", "at least one page of 4096 bytes"]);
    check(
        "huge.t",
        "phase p\nanon a 300000\n",
        &["huge.t:2: a has 76800000 pages: expected at most 256 GiB"],
    );
    check(
        "beyond.t",
        "anon a 1\nacc 300 a stride:300 m w\n",
        &["beyond.t:2: page 256 is behind the end of a"],
    );
    let setting = ["setting.t:2: /proc/sys/vm/swapines is not modelled", "/proc/sys/vm/swappiness"];
    check("setting.t", "anon a 1\nset /proc/sys/vm/swapines 1\n", &setting);
    check("number.t", "set /proc/sys/vm/swappiness x\n", &["number.t:1: ", "is a number, but \"x\" is none"]);
    check("stuck.t", "anon a 1\ninter 1000000000 512 a seq m w\n", &["512,000,000,000 accesses", "--force"]);
    check("empty.t", "# nothing\n", &["it has no command: expected one a line, such as `anon NAME MiB`"]);
    let binary = folder.join("binary.t");
    std::fs::write(&binary, b"anon a 1\n\xff").expect("a file");
    let binary = binary.to_str().expect("UTF-8");
    check_error(
        &["pressure", "run"],
        &[binary],
        &["binary.t", "expected a script in UTF-8, found the byte 0xff at 9"],
    );
    check_error(&["pressure", "run"], &["nothere.t"], &["nothere.t: No such file"]);
}

/// A machine or a policy that cannot be: what was given, and what was expected.
#[test]
fn run_says_what_is_wrong_with_its_options() {
    let folder = folder("bad-options");
    let path = script(&folder, "ok.t", "anon a 1\nphase p\nacc x1 a seq m w\n");
    let check = |options: &[&str], words: &[&str]| {
        check_error(&["pressure", "run"], &[&[path.as_str()], options].concat(), words);
    };
    check(&["--vm", "vm@6.1,swapiness=3"], &["--vm: no knob is called `swapiness`; near it: swappiness"]);
    check(&["--vm", "vm@6.1,swappiness=300"], &["swappiness=`300`: expected a number from 0 to 200"]);
    check(&["--vm", "vm@1.0"], &["`1.0` is no release that has a preset"]);
    check(&["--set", "fre=1"], &["--set: no knob is called `fre`", "or free, a fact of the machine"]);
    check(&["--set", "free=x"], &["free=x: expected free=NUMBER"]);
    check(&["--set", "free=36000"], &["free=36000: expected at most the 35676 managed pages"]);
    check(&["--set", "managed=4000000000"], &["managed=4000000000: expected 1024 to 4194304 pages"]);
    check(&["--set", "min_free_kib=90000"], &["min_free_kib=90000: expected at most 71352"]);
    check(&["--engine", "slb@6.1"], &["no engine is called `slb`; near it: slub"]);
    let era = "slub@6.1 is of 3.0 or later, but vm@2.4.10 of 2.4: expected perhaps slab@2.4";
    check(&["--vm", "vm@2.4.10", "--engine", "slub@6.1"], &["--engine: ", era]);
    check(
        &["--engine", "slqb@2009-01"],
        &["is of 2.6, but vm@6.1 of 3.0 or later: expected perhaps slub@6.1"],
    );
    check(&["--machine", "vm-gest"], &["vm-gest: no file", "near it: vm-guest"]);
    check(&["--machine", "laptop"], &["laptop: it has no [disk.swap]: expected [disk.swap] and [disk.data]"]);
    check(&["--machine", "kulesa-2001"], &["kulesa-2001: it has no [disk.swap]"]);
    check(&["--machine", "power16"], &["power16: its pages have 65536 bytes: expected 4096"]);
}

/// Memory and swap that are too small are a result: who was killed, what each had, and the phases before.
#[test]
fn out_of_memory_is_a_result_with_its_table() {
    let folder = folder("oom");
    let main = "spawn one one.t\nuntil one\nanon a 8\nphase before\nacc x1 a seq m w\nphase both\n\
                go one\njoin one\nphase after\n";
    let path = script(&folder, "main.t", main);
    script(&folder, "one.t", "anon b 420\nready\nphase too_much\nacc x1 b seq m w\n");
    let run = || slablab(&["pressure", "run"], &[&path, "--set", "free=4000"]);
    let said = run();
    assert_eq!(said.status.code(), Some(3), "{}", text(&said.stderr));
    let words = ["out of memory at ", "a block of order 0", "killed one.", "(script)", "one  "];
    check_order(&[], &text(&said.stderr), &words);
    check_order(&[], &text(&said.stdout), &["before", "minflt", "both"]);
    assert_eq!(run(), said, "two runs say the same");
}

/// A scenario of the user's own in the layout of real records: scripts in scen, records beside it, of one
/// kernel.
#[test]
fn judge_takes_scenarios_that_do_not_come_with_it() {
    let root = folder("judge-own");
    let _ = std::fs::remove_dir_all(&root);
    let run = root.join("mine/61-mglru-r1");
    std::fs::create_dir_all(root.join("scen")).expect("a folder");
    std::fs::create_dir_all(&run).expect("a folder");
    let script = root.join("scen/mine.t");
    std::fs::write(&script, "anon a 1\nphase fill\nacc x1 a seq m w\n").expect("a file");
    let record = "@phase fill\nelapsed_ns 1\nuptime_ns 1\nrusage minflt=256 majflt=0 inblock=0 oublock=0 \
                  utime_us=0 stime_us=0 nvcsw=0 nivcsw=0\ncounts ok=0 fail=0 stats=0\n@end\n";
    std::fs::write(run.join("rec"), record).expect("a file");
    let path = root.to_str().expect("UTF-8");
    let judge = || slablab(&["pressure", "judge", "--seeds", "1", "--threads", "1"], &[path]);
    let said = judge();
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    // No null answer, no repeats, no counts of /proc/vmstat: two of the process.
    let summary = text(&said.stdout);
    let row: Vec<&str> = summary
        .lines()
        .find(|line| line.starts_with(" 61-mglru"))
        .expect("a row")
        .split_whitespace()
        .collect();
    assert_eq!(row[..7], ["61-mglru", "2", "2", "0", "0", "-", "-"], "{summary}");
    let refuse = |expected: &str| {
        let said = judge();
        assert_eq!(said.status.code(), Some(2), "{expected}");
        assert!(text(&said.stderr).contains(expected), "{}", text(&said.stderr));
    };
    std::fs::write(root.join("scen/mine.sh"), "LIM=300\nNET=user\n").expect("a file");
    refuse("mine.sh: line 2: NET is not modelled");
    std::fs::remove_file(root.join("scen/mine.sh")).expect("it was written");
    std::fs::write(&script, "anon a 1\nacc x1 b seq m w\n").expect("a file");
    refuse("mine.t: line 2: expected the name of an object");
    std::fs::rename(&script, root.join("scen/other.t")).expect("it was written");
    refuse(
        "mine.t: no script of the scenario mine of the records: expected this file, or only --scenario other",
    );
    std::fs::write(run.join("rec"), "@phase fill\nelapsed 1\n").expect("a file");
    refuse("rec: line 2: expected a line of a phase");
    std::fs::write(&script, "anon a 1\nphase fill\nacc x1 a seq m w\n").expect("a file");
    std::fs::write(run.join("rec"), record).expect("a file");
    std::fs::rename(root.join("mine/61-mglru-r1"), root.join("mine/26-r1")).expect("a folder");
    let said = judge();
    assert_eq!(said.status.code(), Some(3));
    let expected = "mine 26: this machine is not modelled: expected one of 61-classic";
    assert!(text(&said.stderr).contains(expected), "{}", text(&said.stderr));
}

/// Folders that lack scripts or records, and records that lack something: what, where, and what was expected.
#[test]
fn judge_says_what_is_missing() {
    let root = folder("judge-missing");
    let _ = std::fs::remove_dir_all(&root);
    let run = root.join("mine/61-mglru-r1");
    std::fs::create_dir_all(root.join("scen")).expect("a folder");
    std::fs::create_dir_all(&run).expect("a folder");
    let path = root.to_str().expect("UTF-8");
    let judge = |path: &str| slablab(&["pressure", "judge", "--seeds", "1", "--threads", "1"], &[path]);
    let refuse = |path: &str, words: &[&str]| {
        let said = judge(path);
        assert_eq!(said.status.code(), Some(2), "{words:?}");
        check_order(&[path], &text(&said.stderr), words);
    };
    let folder = "expected a folder with a script for each scenario, SCENARIO.t, found";
    refuse("nothere", &["nothere: ", folder, "nothing"]);
    refuse(path, &["scen: ", folder, "no script"]);
    std::fs::write(root.join("scen/mine.t"), "anon a 1\nphase fill\nacc x1 a seq m w\n").expect("a file");
    refuse(root.join("scen/mine.t").to_str().expect("UTF-8"), &["mine.t: ", folder, "a file"]);
    refuse(path, &["mine/61-mglru-r1: it has no record: expected rec or rec.xz"]);
    std::fs::write(run.join("rec.child"), "@end\n").expect("a file");
    refuse(path, &["mine/61-mglru-r1: expected rec or rec.xz", "script's own process, found rec.child"]);
    std::fs::write(run.join("rec"), "").expect("a file");
    refuse(path, &["mine/61-mglru-r1/rec: the file is empty: expected a record"]);
    std::fs::remove_file(run.join("rec.child")).expect("it was written");
    let phase = |name: &str| {
        format!(
            "@phase {name}\nelapsed_ns 1\nuptime_ns 1\nrusage minflt=256 majflt=0 inblock=0 oublock=0 utime_us=0 \
             stime_us=0 nvcsw=0 nivcsw=0\ncounts ok=0 fail=0 stats=0\n"
        )
    };
    // What can be judged is: the answer is incomplete.
    for (record, expected, sentence) in [
        (
            phase("fill"),
            "mine 61-mglru: 1 of its records have no @end",
            "Of 2 judged counts of 61-mglru none differs from the real kernel's.\n",
        ),
        (
            phase("fil") + "@end\n",
            "mine 61-mglru: the records have phases that the script has not: fil",
            "The records have no count that is judged.\n",
        ),
    ] {
        std::fs::write(run.join("rec"), record).expect("a file");
        let said = judge(path);
        assert_eq!(said.status.code(), Some(3), "{expected}");
        check_order(&[], &text(&said.stderr), &[expected]);
        assert!(text(&said.stdout).starts_with(sentence), "{}", text(&said.stdout));
    }
    std::fs::write(run.join("rec"), phase("fill") + "@end\n").expect("a file");
    std::fs::rename(&run, root.join("mine/6.1-mglru-r1")).expect("a folder");
    let said = judge(path);
    assert_eq!(said.status.code(), Some(3));
    check_order(
        &[],
        &text(&said.stderr),
        &["mine 6.1-mglru: this machine is not modelled", "near it: 61-mglru"],
    );
}

/// A scenario of the records without a script: the file, and the scenarios that can be chosen.
#[test]
fn judge_names_scripts_that_are_there() {
    let folder = folder("judge-some");
    script(&folder, "uniswap.t", "anon a 1\nphase p\nacc x1 a seq m w\n");
    let expected = ["closeall_lifo.t: no script of the scenario closeall_lifo", "or only --scenario uniswap"];
    check_error(&["pressure", "judge"], &[folder.to_str().expect("UTF-8")], &expected);
}
