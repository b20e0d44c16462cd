//! Two engines over every workload: what the suite consists of, and what it says.

use slablab_experiment::output::{SuiteLook, suite_answer, suite_list};
use slablab_experiment::suite::{SuiteResults, join, pairs};
use slablab_experiment::workloads::WORKLOADS;
use slablab_experiment::{Change, Options, Shard, Size, Suite};
use slablab_slabs::Preset;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn suite(engines: [&str; 2], only: &[&str]) -> Suite {
    let engines = engines.map(|name| (name.to_string(), Preset::parse(name).expect("an engine")));
    let only: Vec<String> = only.iter().map(ToString::to_string).collect();
    Suite::new(engines, &only).unwrap_or_else(|bad| panic!("{bad}"))
}

fn quick(repeats: u32) -> Options {
    let change = Change { size: Some(Size::Quick), repeats: Some(repeats), ..Change::default() };
    Options { change, program: "p".into(), threads: Some(2), ..Options::default() }
}

fn run(suite: &Suite, options: &Options, folder: Option<&Path>) -> SuiteResults {
    suite.run(options, folder, &|_, _| {}).unwrap_or_else(|bad| panic!("{bad}"))
}

/// The text of an answer, of which no line is wider than 80 columns.
fn text(suite: &SuiteResults, all: bool) -> String {
    let text = suite_answer(suite, SuiteLook { all, ..SuiteLook::default() }).text(false);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

fn csv(suite: &SuiteResults) -> String {
    suite_answer(suite, SuiteLook::default()).csv().expect("rows")
}

/// The answer begins with `sentence`.
#[track_caller]
fn check_sentence(suite: &SuiteResults, sentence: &str) {
    let answer = suite_answer(suite, SuiteLook::default());
    assert_eq!(answer.sentence(), sentence);
    assert_eq!(answer.json()["answer"], sentence);
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite").join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

/// Every registered workload is there, but one that needs a file, and its experiments can be planned. The
/// whole is a matter of minutes on two cores, a quick one of one.
#[test]
fn every_workload_is_in_the_suite() {
    let whole = suite(["slub@6.18", "slub@7.1"], &[]);
    for workload in WORKLOADS {
        let of = whole.pairs.iter().filter(|(_, one)| one.file.workload.name == workload.name);
        assert_eq!(of.count() > 0, workload.name != "recording", "{}", workload.name);
    }
    assert_eq!(whole.pairs.len(), pairs().count());
    let check = |size: Size, repeats: u32, seconds: u64| {
        let change = Change { size: Some(size), repeats: Some(repeats), ..Change::default() };
        let each = whole.estimates(&change).unwrap_or_else(|bad| panic!("{bad}"));
        let found = each.iter().sum::<u64>() / 2 / 1_000_000_000;
        assert!(found <= seconds, "{}: {found} s on two cores: {each:?}", size.name());
    };
    check(Size::Quick, 3, 60);
    check(Size::Standard, 5, 1_200);
}

/// An engine is not different from itself, on any pair.
#[test]
fn an_engine_and_itself_do_not_differ() {
    let answer = run(&suite(["slub@7.1", "slub@7.1"], &[]), &quick(2), None);
    let json = suite_answer(&answer, SuiteLook::default()).json();
    let rows = json["rows"].as_array().expect("rows");
    assert!(rows.len() >= pairs().count(), "{} rows", rows.len());
    for row in rows {
        assert_eq!(row["result"], "no difference can be told", "{row}");
        assert!(row["base_mean"].as_f64().is_some_and(|mean| mean > 0.0), "{row}");
        // Equal runs, not only runs that scatter too much.
        let sides = ["mean", "sd"].map(|what| (&row[format!("base_{what}")], &row[format!("other_{what}")]));
        assert!(sides.iter().all(|(base, other)| base == other), "{row}");
        assert_eq!(row["differences"].as_array().map(Vec::len), Some(0), "{row}");
    }
    let workloads: BTreeSet<&str> = rows.iter().filter_map(|row| row["workload"].as_str()).collect();
    let (workloads, rows) = (workloads.len(), rows.len());
    let sentence = format!(
        "No difference between slub@7.1 and slub@7.1 is certain in {workloads} workloads ({rows} rows)."
    );
    check_sentence(&answer, &sentence);
    let said = text(&answer, false);
    assert!(said.contains("No difference can be told in any row"), "{said}");
    assert!(said.contains("No difference is certain in ") && said.contains("ublk numa8"), "{said}");
    assert!(!said.contains("what else differs") && !said.contains("gain %"), "{said}");
    assert!(text(&answer, true).contains("not certain"), "every row is there");
}

/// Memory on 2 of 8 nodes: 7.0 is slower, the table says so, and why.
#[test]
fn what_differs_is_said_with_its_reasons() {
    let answer = run(&suite(["slub@6.18", "slub@7.0"], &["ublk"]), &quick(4), None);
    let json = suite_answer(&answer, SuiteLook::default()).json();
    let row = &json["rows"][0];
    assert_eq!((&row["machine"], &row["result"]), (&"numa8".into(), &"worse".into()), "{row}");
    let differences = row["differences"].as_array().expect("a list");
    let waits = differences.iter().find(|one| one["name"] == "list_lock waits").expect("waits differ");
    assert!(waits["other"].as_f64() > waits["base"].as_f64(), "{waits}");
    let rows = json["rows"].as_array().expect("rows");
    let differ = rows.iter().filter(|row| row["result"] != "no difference can be told");
    let gain = |row: &serde_json::Value| row["gain_percent"].as_f64().expect("a number");
    let [best, worst] = [f64::max, f64::min].map(|of| differ.clone().map(gain).reduce(of).expect("a row"));
    assert!(best > 0.0 && worst < 0.0, "numa8-full gains, numa8 loses: {rows:?}");
    let sentence = format!(
        "Against slub@6.18, slub@7.0 differs in 1 of 1 workload ({} of {} rows): the largest gain is {best:.2} % \
         (ublk numa8-full) and the largest loss is {:.2} % (ublk numa8).",
        differ.count(),
        rows.len(),
        worst.abs()
    );
    check_sentence(&answer, &sentence);
    let look = SuiteLook { wrap: Some(72), page: true, ..SuiteLook::default() };
    let said = suite_answer(&answer, look).text(false);
    assert!(said.lines().all(|line| line.chars().count() <= 72), "{said}");
    assert!(said.contains("  list_lock waits"), "{said}");
    let page = suite_answer(&answer, look).page("slablab suite");
    for word in ["slub@7.0 against slub@6.18", "list_lock waits", "ublk numa8", "memory on 2 of 8 nodes"] {
        assert!(page.contains(word), "{word}");
    }
}

/// Parts join to the same answer as a whole run, and a second run into a folder computes nothing.
#[test]
fn parts_are_joined_and_kept() {
    let suite = suite(["slub@6.18", "slub@7.0"], &["micro", "ublk"]);
    let whole = folder("whole");
    let first = run(&suite, &quick(2), Some(&whole));
    let again = run(&suite, &quick(2), Some(&whole));
    let computed =
        |answer: &SuiteResults| answer.results.iter().flatten().map(|one| one.computed).sum::<usize>();
    assert_eq!((computed(&first) > 0, computed(&again)), (true, 0));
    assert_eq!(csv(&first), csv(&again));
    let parts = [0, 1].map(|part| {
        let folder = folder(&format!("part{part}"));
        let shard = Some(Shard { part, of: 2 });
        let answer = run(&suite, &Options { shard, ..quick(2) }, Some(&folder));
        assert!(answer.results.iter().any(Option::is_none), "a part is not the whole");
        folder
    });
    let joined = folder("joined");
    let answer = join(&parts, Some(&joined)).unwrap_or_else(|bad| panic!("{bad}"));
    let json = |suite: &SuiteResults| suite_answer(suite, SuiteLook::default()).json();
    assert_eq!(json(&answer), json(&first));
    assert_eq!(csv(&join(&[joined], None).unwrap_or_else(|bad| panic!("{bad}"))), csv(&first));
    let said = join(&parts[..1], None).err().map(|bad| bad.to_string()).expect("a part is missing");
    assert!(said.contains("are missing"), "{said}");
}

/// The list names each pair, in lines of a terminal and as rows.
#[test]
fn the_pairs_are_listed() {
    let list = suite_list();
    let (text, csv) = (list.text(false), list.csv().expect("rows"));
    assert_eq!(list.sentence(), format!("The suite runs {} pairs of workload and machine.", pairs().count()));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(csv.lines().count(), 1 + pairs().count());
    for (workload, pair) in pairs() {
        assert!(text.contains(&format!("{} on {}", workload.name, pair.machine)), "{text}");
    }
}
