//! Explanations of real differences: parts add up to the difference, a preset compared with itself has no
//! parts, and the ends are the replays of the two presets.

use crate::page_check::check_page;
use serde_json::Value;
use slablab_machines::{MachineFile, NodeFile};
use slablab_replay::explain::measures::Unit;
use slablab_replay::explain::{Explained, Explanation, Question, explain};
use slablab_replay::import::{self, Input};
use slablab_replay::output::{cache_answer, explain_answer, replay_answer};
use slablab_replay::replay::{Options, replay};
use slablab_slabs::Preset;
use slablab_stats::shapley::{Interaction, Mean};
use slablab_trace::Reader;
use std::path::{Path, PathBuf};

const COMMAND: &str = "slablab explain 'a & b' A B --html page.html";

fn open() -> (Reader, PathBuf) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/hackbench-6.18.perf.data.xz");
    let reader = import::open(Input { path: &path, recording: None, formats: None }, &mut |_| {});
    (reader.expect("the recording is right"), path)
}

fn preset(text: &str) -> Preset {
    Preset::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

fn ask(from: &str, to: &str, change: impl Fn(&mut Question), machine: MachineFile) -> Explained {
    let (reader, path) = open();
    let mut question = Question::new(preset(from), preset(to));
    change(&mut question);
    let options = Options { machine, ..Options::default() };
    explain(&reader, &path, &options, &question, &|_, _| {}).expect("it can be explained")
}

fn named<'a>(explained: &'a Explained, measure: &str) -> &'a Explanation {
    let found = explained.measures.iter().find(|one| one.measure.name == measure);
    found.unwrap_or_else(|| panic!("no measure is called {measure}"))
}

/// Checks properties of every answer: the items, parts that add up, ends that are the replays of the presets,
/// and JSON with the same values.
fn check(explained: &Explained, items: &str) {
    let names: Vec<&str> = explained.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names.join(" "), items);
    assert!(explained.measures.len() > 30, "{} measures", explained.measures.len());
    for one in &explained.measures {
        for part in &one.parts {
            assert_eq!(part.mean.over, one.parts[0].mean.over);
        }
        let sum: i128 = one.parts.iter().map(|part| part.mean.sum).sum();
        let over = one.parts.first().map_or(1, |part| part.mean.over);
        assert_eq!(sum, one.change() * over, "{:?}", one.measure);
    }
    check_json(explained);
    check_text(explained);
    check_page(&explain_answer(explained).page(COMMAND), COMMAND);
}

fn check_json(explained: &Explained) {
    let json = explain_answer(explained).json();
    assert_eq!(json["schema"], "slablab.explain.1");
    assert_eq!(json["policies"].as_array().map(Vec::len), Some(explained.items.len()));
    for measure in json["measures"].as_array().expect("a list") {
        let of = |key: &str| measure[key].as_i64().expect("a number");
        assert_eq!(of("to") - of("from"), of("change"), "{measure}");
        // By the fractions alone, over their common denominator.
        let parts = measure["parts"].as_object().expect("parts by policy");
        assert_eq!(parts.len(), explained.items.len(), "policies have names of their own");
        let over: i128 = (1..=10).product::<i128>() * 64;
        let sum: i128 = parts
            .values()
            .map(|part| {
                let text = part["exact"].as_str().expect("a fraction");
                let (sum, below) = text.split_once('/').unwrap_or((text, "1"));
                let below: i128 = below.parse().expect("a number");
                assert_eq!(over % below, 0, "{text}");
                sum.parse::<i128>().expect("a number") * (over / below)
            })
            .sum();
        assert!(parts.is_empty() || sum == i128::from(of("change")) * over, "{measure}");
    }
}

/// The rounded parts of a line add up as well; only short tables have all in one line.
fn check_text(explained: &Explained) {
    let text = explain_answer(explained).text(true);
    assert!(text.lines().all(|line| line == line.trim_end()), "blanks at line ends do not survive mail");
    let carrying = (0..explained.items.len()).filter(|item| explained.carries(*item)).count();
    if carrying > 5 || explained.sampled.is_some() {
        return;
    }
    for one in explained.measures.iter().filter(|one| one.moves()) {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(&one.measure.name));
        let line = line.unwrap_or_else(|| panic!("no line for {} in {text}", one.measure.name));
        let numbers: Vec<i128> = line
            .split_whitespace()
            .skip(1)
            .map(|number| number.replace([',', '+'], "").parse().expect("a number"))
            .collect();
        assert_eq!(numbers.len(), 3 + carrying, "{line}");
        assert_eq!(numbers[..3], [i128::from(one.from), i128::from(one.to), one.change()], "{line}");
        assert_eq!(numbers[3..].iter().sum::<i128>(), one.change(), "{line}");
    }
}

#[test]
fn releases_of_one_engine() {
    let explained = ask("slub@6.1", "slub@6.12,max_order=1", |_| {}, MachineFile::default());
    check(&explained, "order max_order partial_frozen");
    assert_eq!((explained.replays, explained.sampled), (8, None));
    let slabs = named(&explained, "slab_end_bytes");
    assert!(slabs.change() < 0 && slabs.parts[1].mean.sum < 0, "smaller slabs waste less: {slabs:?}");
    assert!(explained.carries(1) && explained.carries(2));
    let frozen = named(&explained, "free_frozen");
    assert!(frozen.parts[2].mean.value() < -1000.0, "nothing on a CPU's list is frozen: {frozen:?}");

    // The ends are what the presets say by themselves.
    let (reader, path) = open();
    let engines = ["slub@6.1", "slub@6.12,max_order=1"].map(|text| preset(text).into()).to_vec();
    let alone = replay(&reader, &path, &Options { engines, ..Options::default() }, &|_, _| {});
    let json = replay_answer(&alone.expect("it can be replayed"), 0).json();
    for engine in [0, 1] {
        let of = |one: &Explanation| [one.from, one.to][engine];
        let total = &json["engines"][engine]["total"];
        for key in ["slab_peak_bytes", "slab_end_bytes", "tail_bytes", "slabs_taken_order_1", "allocs"] {
            assert_eq!(total[key].as_u64(), Some(of(named(&explained, key))), "{key} of engine {engine}");
        }
        let waste = ["slab_end_bytes", "live_bytes"].map(|key| total[key].as_u64().expect("a number"));
        assert_eq!(of(named(&explained, "loss_bytes")), waste[0] - waste[1]);
        let slow = |cache: &Value| cache["counters"]["alloc_slowpath"].as_u64().unwrap_or(0);
        let caches = json["engines"][engine]["caches"].as_array().expect("a list");
        assert_eq!(of(named(&explained, "alloc_slowpath")), caches.iter().map(slow).sum::<u64>());
    }
}

/// The way back has the same parts with the other sign: to the last fraction.
#[test]
fn the_way_back_is_the_same_way() {
    let (from, to) = (
        "slub@6.1,min_partial=2",
        "slub@6.1,max_order=1,cpu_partial=6,remote_search=unless-thisnode,link=start",
    );
    let there = ask(from, to, |_| {}, MachineFile::default());
    let back = ask(to, from, |_| {}, MachineFile::default());
    check(&there, "max_order min_partial cpu_partial remote_search link");
    assert_eq!(there.measures.len(), back.measures.len());
    for (one, other) in there.measures.iter().zip(&back.measures) {
        assert_eq!((one.from, one.to, &one.measure), (other.to, other.from, &other.measure));
        let parts =
            |of: &Explanation, sign| of.parts.iter().map(|part| sign * part.mean.sum).collect::<Vec<_>>();
        assert_eq!(parts(one, 1), parts(other, -1), "{:?}", one.measure);
        let ends = |of: &Explanation| of.parts.iter().map(|part| (part.alone, part.last)).collect::<Vec<_>>();
        assert_eq!(ends(one), ends(other).iter().map(|(alone, last)| (-last, -alone)).collect::<Vec<_>>());
    }
    // What nothing depends on has nothing at all, however many others there are; on one node with enough
    // memory that is:
    for idle in [3, 4] {
        assert!(!there.carries(idle), "{}", there.items[idle].name);
        for one in &there.measures {
            assert_eq!(one.parts[idle].mean.exact(), "0", "{:?}", one.measure);
            assert!(one.interactions.iter().all(|pair| !pair.players.contains(&idle)), "{:?}", one.measure);
        }
    }
}

#[test]
fn one_policy_carries_all() {
    let explained = ask("slub@6.1", "slub@6.1,cpu_partial=0", |_| {}, MachineFile::default());
    check(&explained, "cpu_partial");
    for one in &explained.measures {
        let part = &one.parts[0];
        assert_eq!([part.mean.sum, part.alone, part.last], [one.change(); 3], "{:?}", one.measure);
    }
}

#[test]
fn nothing_differs() {
    let explained = ask("slub@6.1", "slub@6.1,max_order=3", |_| {}, MachineFile::default());
    check(&explained, "");
    assert_eq!(explained.replays, 1);
    assert!(explained.measures.iter().all(|one| one.change() == 0 && !one.moves()));
    assert!(explain_answer(&explained).text(true).contains("nothing differs"));
}

#[test]
fn two_engines() {
    let explained = ask("slub@2.6.32", "slqb@2009-09", |_| {}, MachineFile::default());
    check(&explained, "engine orders");
    let orders = named(&explained, "slabs_taken_order_3");
    assert!(orders.change() < 0 && orders.parts[1].mean.sum < orders.parts[0].mean.sum, "{orders:?}");
    // SLUB with SLQB's orders has no slab of order 3, and SLQB with SLUB's has some.
    assert_eq!(orders.parts[1].alone, -i128::from(orders.from), "{orders:?}");
    assert!(orders.from > 0 && orders.parts[1].last < 0, "{orders:?}");
    assert!(explained.notes.iter().any(|note| note.contains("memoryless is part of engine")));

    // With a node without memory the node rule matters, and both engines know it by one name.
    let node = |memory| NodeFile { memory, ..NodeFile::default() };
    let nodes = || MachineFile {
        nodes: vec![node(8 << 30), node(0)],
        memoryless_nodes: Some(true),
        ..MachineFile::default()
    };
    let explained = ask("slub@2.6.32", "slqb@2009-01,memoryless=nearest", |_| {}, nodes());
    check(&explained, "engine orders memoryless");
    assert!(explained.carries(2), "the node rule does something where a node has no memory");
    let pair = named(&explained, "slab_end_bytes").interactions.iter().find(|pair| pair.players == [0, 2]);
    assert!(pair.is_some(), "the rule does not mean the same in both engines");
}

/// SLAB's slabs take another engine's orders too; their objects and lists follow from them.
#[test]
fn orders_of_slab() {
    let explained = ask("slub@6.1", "slab@6.1", |_| {}, MachineFile::default());
    check(&explained, "engine orders");
    let orders = named(&explained, "slabs_taken_order_3");
    // SLUB with SLAB's orders has no slab of order 3; SLAB with SLUB's has some.
    assert!(orders.from > 0 && orders.parts[1].alone == -i128::from(orders.from), "{orders:?}");
    assert!(orders.parts[1].last < 0, "{orders:?}");
    let explained = ask("slab@2.6.29", "slob@2.6.32", |_| {}, MachineFile::default());
    check(&explained, "engine");
    assert!(explained.notes.iter().any(|note| note.contains("orders of slabs are part of engine")));
}

#[test]
fn one_cache() {
    let with_cache = |question: &mut Question| question.cache = Some("skbuff_head_cache".into());
    let explained = ask("slub@6.1", "slqb", with_cache, MachineFile::default());
    check(&explained, "engine orders pages");
    assert_eq!(explained.cache.as_deref(), Some("skbuff_head_cache"));
    let (reader, path) = open();
    let options = Options { engines: vec![preset("slub@6.1").into()], ..Options::default() };
    let alone = replay(&reader, &path, &options, &|_, _| {}).expect("it can be replayed");
    let json = cache_answer(&alone, "skbuff_head_cache", 0).expect("the cache is there").json();
    let cache = &json["engines"][0]["caches"][0];
    for key in
        ["slab_bytes", "order", "objects", "slabs", "partial", "allocs", "frees_other_cpu", "parked_bytes"]
    {
        let found = explained.measures.iter().find(|one| one.measure.name == key).map_or(0, |one| one.from);
        assert_eq!(cache[key].as_u64(), Some(found), "{key}");
    }
    assert_eq!(cache["counters"]["alloc_fastpath"].as_u64(), Some(named(&explained, "alloc_fastpath").from));

    let mut question = Question::new(preset("slub@6.1"), preset("slqb"));
    question.cache = Some("nobody".into());
    let error =
        explain(&reader, &path, &Options::default(), &question, &|_, _| {}).expect_err("no such cache");
    assert!(error.to_string().contains("no cache is called nobody"), "{error}");
}

#[test]
fn names_of_others_are_only_names() {
    let mut explained = ask("slub@6.1", "slub@6.1,max_order=0", |_| {}, MachineFile::default());
    let hostile = "<script>alert(1)</script>";
    explained.cache = Some(hostile.into());
    explained.replay.metadata.release = Some(hostile.into());
    explained.replay.path = PathBuf::from("\"><img src=x>");
    let page = explain_answer(&explained).page(hostile);
    check_page(&page, "");
    assert!(!page.contains("<script>alert") && !page.contains("<img"), "a name became markup");
    assert!(page.contains("&lt;script&gt;alert(1)"), "a name is not there");
    assert!(page.matches("<figure").count() > 3 && page.contains("max_order"), "no figures");
}

/// Sampled parts add up as well, and are near the exact ones.
#[test]
fn sampled() {
    let sampled = |question: &mut Question| (question.exact, question.samples) = (0, 7);
    let (from, to) = ("slub@6.1", "slub@6.12,max_order=1,cpu_partial=6,empty=at-once,min_partial_rule=log2");
    let (found, exact) =
        (ask(from, to, sampled, MachineFile::default()), ask(from, to, |_| {}, MachineFile::default()));
    check(&exact, "order max_order cpu_partial partial_frozen empty min_partial_rule");
    assert_eq!((found.sampled, exact.sampled, exact.replays), (Some(8), None, 64));
    assert!(found.replays < 50, "{} replays", found.replays);
    let json = explain_answer(&found).json();
    assert_eq!(
        (&json["method"]["kind"], &json["method"]["interval_percent"]),
        (&"sampled".into(), &95.into())
    );
    let (mut near, mut all) = (0, 0);
    for (one, other) in found.measures.iter().zip(&exact.measures) {
        let sum: i128 = one.parts.iter().map(|part| part.mean.sum).sum();
        assert_eq!(sum, 8 * one.change(), "{:?}", one.measure);
        for (part, exact) in one.parts.iter().zip(&other.parts) {
            let half = part.mean.give_or_take.expect("an interval");
            near += usize::from((part.mean.value() - exact.mean.value()).abs() <= half + 0.5);
            all += 1;
        }
    }
    assert!(near * 100 >= all * 90, "{near} of {all} intervals hold");
    let again = ask(from, to, sampled, MachineFile::default());
    assert_eq!(
        explain_answer(&again).json().to_string(),
        json.to_string(),
        "the same question, the same answer"
    );
    assert!(explain_answer(&found).text(true).contains("\u{b1}"), "intervals are shown");
    assert!(explain_answer(&found).page("slablab").contains("\u{b1}"), "intervals are shown");

    // A pair has its interval in both.
    let mut found = found;
    let mean = Mean { sum: 1 << 40, over: 1, give_or_take: Some(77_777.0) };
    found.measures[0].interactions = vec![Interaction { players: [0, 1], mean, seen: Some(9) }];
    found.measures[0].measure.unit = Unit::Count;
    assert!(explain_answer(&found).text(true).contains("\u{b1}77,777"), "the interval of a pair is shown");
    assert!(
        explain_answer(&found).page("slablab").contains("\u{b1} 77,777"),
        "the interval of a pair is shown"
    );
}
