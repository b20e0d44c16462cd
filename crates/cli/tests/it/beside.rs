//! Options that would change nothing are refused.

use crate::common::{argument, check_error};

#[test]
fn an_option_that_changes_nothing_is_refused() {
    let (recording, dump) = (
        argument("examples/data/git-grep.trace.parquet"),
        argument("crates/doctor/testdata/leak/after.tar.xz"),
    );
    let (recording, dump) = (recording.as_str(), dump.as_str());
    let script = argument("examples/data/vm/scan2.t");
    let script = script.as_str();
    let two = ["slub@6.1", "slub@6.8"];
    let check = |verbs: &[&str], args: &[&str], words: &[&str]| check_error(verbs, args, words);
    check(
        &["doctor"],
        &[dump, "--once"],
        &["--once: it is of the live screen: expected --watch, and no INPUT"],
    );
    check(&["doctor"], &[dump, "--delay", "2"], &["--delay: ", "expected --watch"]);
    check(&["doctor"], &[dump, "-s", "r"], &["-s r: sorts by growth: expected an earlier snapshot: --since"]);
    check(&["sites"], &[recording, "--force"], &["--force: ", "--kallsyms"]);
    check(&["sites"], &[recording, "--weight", "waste"], &["--weight: ", "--format folded or --html"]);
    check(&["sites"], &[recording, "--format", "folded", "--top", "3"], &["--top: ", "--format folded"]);
    check(&["record"], &["--limit", "3", "--", "true"], &["--limit: ", "expected --malloc"]);
    let explained = |others: &[&str], words: &str| {
        check(&["explain"], &[&[recording, two[0], two[1]], others].concat(), &[words]);
    };
    explained(&["--repeats", "4"], "--repeats: it is of experiments: a recording has none");
    explained(&["--metric", "x"], "--metric: it is of experiments: a recording has none");
    explained(&["--count", "x"], "--count: it is of scripts: a recording has none");
    explained(&["--engine", "slub"], "--engine: it is of experiments: a recording has none");
    check(&["explain"], &["2026", two[0], two[1], "--exact", "3"], &["--exact: it is of recordings"]);
    check(&["explain"], &["2026", two[0], two[1], "--count", "x"], &["--count: it is of scripts"]);
    let pressed = [script, "vm@6.1", "vm@6.1,lru_gen", "--metric", "x"];
    check(&["explain"], &pressed, &["--metric: it is of experiments: expected --count"]);
    check(
        &["verify"],
        &[recording, "trace_s1", "--before", dump],
        &["--before: it is of dumps around a recording"],
    );
    check(&["whatif"], &[dump, "--max-order", "0,1", "-N", "3"], &["--lines: a list of changes"]);
    check(&["run"], &["2026", "--describe", "--folder", "x"], &["--folder: --describe runs nothing"]);
    check(&["run"], &["2026", "--describe", "--functions"], &["--functions: --describe runs nothing"]);
    check(&["run"], &["2026", "--vmstat", "--functions"], &["--functions: --vmstat, --meminfo and --ps"]);
    check(
        &["run"],
        &["2026", "--wrap", "72", "--format", "json"],
        &["--wrap: lines of this form are not wrapped"],
    );
    check(
        &["run"],
        &["2026", "--functions", "--format", "mmtests"],
        &["--functions: this form has no functions"],
    );
    check(&["suite"], &[two[0], two[1], "--functions"], &["--functions: it is of an experiment's cells"]);
    check(&["suite"], &["--list", "--quick"], &["--quick: --list runs nothing"]);
    check(&["suite"], &["--list", two[0], two[1]], &["A: --list runs nothing"]);
    check(&["bench"], &["--list", "--repeats", "3"], &["--repeats: --list runs nothing"]);
    let of_tree = |verb: &str, others: &[&str], words: &str| {
        check(&["linux", verb], &[&["a..b", "--replay", recording], others].concat(), &[words]);
    };
    of_tree("commits", &["--functions"], "--functions: a series compares numbers");
    of_tree("patch", &["--functions"], "--functions: it is of experiments, whose machine has clocks");
    of_tree("patch", &["--locks"], "--locks: it is of experiments");
    of_tree("patch", &["--threads", "2"], "a replay has one run");
    check(&["linux", "patch"], &["a", "--functions"], &["--functions: it is of an experiment's cells"]);
    check(&["pressure", "run"], &[script, "--vmstat", "--wide"], &["--wide: these forms have all columns"]);
}
