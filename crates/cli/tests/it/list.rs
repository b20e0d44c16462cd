//! `slablab list`, and what is known of a name that is only nearly one.

use crate::common::{self, check_error, check_narrow, check_order, text};
use serde_json::Value;

fn json(args: &[&str]) -> Vec<Value> {
    let output = common::slablab(&["list"], &[args, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["schema"], "slablab.list.1");
    assert_eq!(document["list"], args[0]);
    document["rows"].as_array().expect("rows").clone()
}

#[test]
fn each_list_has_three_forms() {
    for (list, keys) in [
        ("engines", "engine,release,knob,value,allowed,what"),
        ("vm", "vm,about,knob,value,allowed,what"),
        ("experiments", "experiment,title,published"),
        ("workloads", "workload,what,kind,name,about,quick,standard,full,allowed"),
        ("schemas", "schema,title"),
    ] {
        let rows = json(&[list]);
        let csv = text(&common::slablab(&["list"], &[list, "--format", "csv"]).stdout);
        assert_eq!(csv.lines().next(), Some(keys));
        let keys: Vec<&str> = keys.split(',').collect();
        for row in &rows {
            let row = row.as_object().expect("an object");
            assert!(row.len() == keys.len() && keys.iter().all(|key| row[*key].is_string()), "{row:?}");
        }
        let table = text(&common::slablab(&["list"], &[list]).stdout);
        let name = rows[0][keys[0]].as_str().expect("a name");
        assert!(rows.len() > 10 && table.contains(name), "{list}: no {name} in {table}");
        let first = table.lines().next().expect("a sentence");
        assert!(first.starts_with(|first: char| first.is_ascii_digit()), "{list} is counted: {first}");
        check_narrow(&table);
        let wide = text(&common::slablab(&["list"], &[list, "--wide"]).stdout);
        assert_eq!(wide, table, "{list} leaves out no column");
    }
    let machines = |args: &[&str]| text(&common::slablab(&["list", "machines"], args).stdout);
    assert_eq!(machines(&["--wide"]), machines(&[]), "it leaves out no column either");
}

/// A row of the list of engines or of policies.
#[track_caller]
fn check_knob(args: &[&str], knob: &str, value: &str) {
    let rows = json(args);
    let found: Vec<&Value> = rows.iter().filter(|row| row["knob"] == knob).collect();
    let values: Vec<&str> = found.iter().map(|row| row["value"].as_str().expect("text")).collect();
    assert_eq!(values, [value], "{args:?}: {knob}");
}

#[test]
fn one_choice_has_its_values() {
    for (choice, knob, value) in [
        ("slub@7.0", "sheaves", "all"),
        ("slub@6.18", "sheaves", "opt-in"),
        ("slub@6.1,max_order=0", "max_order", "0"),
        ("slqb", "hiwater", ""),
    ] {
        let engine = &["engines", choice];
        if value.is_empty() {
            assert!(json(engine).iter().any(|row| row["knob"] == knob), "{choice}");
        } else {
            check_knob(engine, knob, value);
        }
    }
    check_knob(&["vm", "vm@6.12,swappiness=10"], "swappiness", "10");
    let table = text(&common::slablab(&["list", "engines"], &["slub@6.1,max_order=0"]).stdout);
    check_order(&["slub@6.1"], &table, &["slub@6.1,max_order=0\n", "max_order", "value: 0"]);
}

/// The exit code, and what standard output and standard error have; nothing where a stream is empty.
#[track_caller]
fn check(args: &[&str], code: i32, answer: &[&str], said: &[&str]) {
    let output = common::slablab(&[], args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
    for (stream, words) in [(text(&output.stdout), answer), (text(&output.stderr), said)] {
        assert_eq!(stream.is_empty(), words.is_empty(), "{args:?}: {stream}");
        check_order(args, &stream, words);
    }
}

#[test]
fn what_is_nearly_known_is_answered_or_refused() {
    check(&["engines", "slub@7.0"], 0, &["slub@7.0\n", "max_order"], &[]);
    check(
        &["engines", "slub@9.0"],
        0,
        &["slub@7.3\n"],
        &["slub@9.0: the newest preset that is not newer is slub@7.3"],
    );
    check(&["engines", "sheaves"], 0, &["slub@7.3\n"], &[]);
    check(&["vm", "vm@6.18"], 0, &["vm@6.18: "], &[]);
    check(&["vm", "vm@9.0"], 0, &["vm@7.2: "], &["vm@9.0: the newest preset that is not newer is vm@7.2"]);
    check(
        &["vm", "vm@6.12.117+deb12"],
        0,
        &["vm@6.12: "],
        &["the newest preset that is not newer is vm@6.12"],
    );
    check(
        &["pressure", "run", "examples/data/vm/scan2.t", "--vm", "vm@9.0"],
        0,
        &["vm@7.2"],
        &["--vm vm@9.0: the newest preset that is not newer is vm@7.2"],
    );
    for (args, words) in [
        (&["engines", "slub@1.0"][..], &["slub@1.0", "no release that has a preset"][..]),
        (&["engines", "slubb@7.0"], &["slubb", "near", "slub"]),
        (&["engines", "slub@7.0,max_ordr=1"], &["max_ordr", "max_order"]),
        (&["vm", "vm@1.0"], &["vm@1.0", "1.0"]),
        (&["vm", "vm@9"], &["vm@9", "no release that has a preset", "slablab list vm"]),
        (&["vm", "wm@6.1"], &["wm@6.1"]),
    ] {
        check_error(&[], args, words);
    }
}

#[test]
fn what_explains_the_known_and_names_the_unknown() {
    let unknown = "nothing is known about a cache \"dentri\"; did you mean dentry";
    check(&["what", "dentry", "dentri"], 3, &["dentry ("], &[unknown]);
    check(&["what", "dentri", "dentry", "nonono"], 3, &["dentry ("], &[unknown, "\"nonono\""]);
    check(&["what", "dentry", "dentri", "--format", "json"], 3, &["\"dentry\""], &[unknown]);
    check(&["what", "dentri"], 2, &[], &[unknown]);
    check(&["what", "dentri", "nonono"], 2, &[], &[unknown, "\"nonono\""]);
    check(&["what", "dentry", "kmalloc-1k"], 0, &["dentry (", "kmalloc-1k ("], &[]);
}
