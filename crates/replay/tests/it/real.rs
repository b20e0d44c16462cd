//! The model, compared with real kernels: figures that must not get worse.

use slablab_machines::{MachineFile, NodeFile};
use slablab_platform::Event;
use slablab_replay::import::{self, Input};
use slablab_replay::replay::before::Before;
use slablab_replay::replay::outcome::Counts;
use slablab_replay::replay::{Options, Replay, replay};
use slablab_replay::verify::counters::start_of;
use slablab_replay::verify::{Verified, verify_change, verify_counters};
use slablab_slabs::Preset;
use slablab_trace::Reader;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn root(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

fn open(path: &Path, recording: Option<&str>) -> Reader {
    import::open(Input { path, recording, formats: None }, &mut |_| {}).expect("the recording is right")
}

fn bundled() -> (Reader, PathBuf) {
    let path = root("../../examples/data/hackbench-6.18.perf.data.xz");
    (open(&path, None), path)
}

/// Real and predicted counters of one cache.
fn check_counters(json: &serde_json::Value, cache: &str) {
    let caches = json["caches"].as_array().expect("a list");
    let found = caches.iter().find(|entry| entry["cache"] == cache).expect("the cache was verified");
    let of = |counter: &str, side: &str| found["counters"][counter][side].as_i64().unwrap_or(0);
    for (fast, slow) in [("alloc_fastpath", "alloc_slowpath"), ("free_fastpath", "free_slowpath")] {
        let share = |side| 100.0 * of(fast, side) as f64 / (of(fast, side) + of(slow, side)) as f64;
        let off = (share("predicted") - share("real")).abs();
        assert!(off <= 2.0, "{cache} {fast}: {:.1} %, really {:.1} %", share("predicted"), share("real"));
    }
    for (counter, both) in found["counters"].as_object().expect("an object") {
        let (real, predicted) = (both["real"].as_i64().unwrap_or(0), both["predicted"].as_i64().unwrap_or(0));
        let off = (predicted - real).abs();
        assert!(real <= 100 || off * 10 <= real, "{cache} {counter}: {predicted}, really {real}");
    }
}

#[test]
fn counters_of_a_kernel_that_counted() {
    let run = root("testdata/slub_smp4_numa4");
    let reader = open(&run, Some("trace_s1"));
    let before = start_of(&run, "trace_s1").expect("the state is right");
    let options = Options { before: Some(before), kernel_only: true, ..Options::default() };
    let (verified, answer) = verify_counters(&run, "trace_s1", &reader, (&options, 1), &|_, _| {})
        .expect("the run can be verified");
    assert_eq!(answer.outcomes[0].preset.to_string(), "slub@6.1", "the recording says which kernel it was");
    let json = json_of(&verified, &answer);
    check_counters(&json, "skbuff_head_cache");
    check_counters(&json, "kmalloc-512");
    assert!(json["caches"].as_array().is_some_and(|caches| caches.len() == 20), "{:?}", verified.summary);
}

/// A preset that is not the kernel's has larger errors of all counters together than the right preset, by at
/// least this factor.
#[test]
fn wrong_presets_are_worse_at_the_counters() {
    let run = root("testdata/slub_smp4_numa4");
    let reader = open(&run, Some("trace_s1"));
    let errors = |engine: &str| {
        let options = Options {
            engines: vec![Preset::parse(engine).expect("a preset").into()],
            before: Some(start_of(&run, "trace_s1").expect("the state is right")),
            ..Options::default()
        };
        let (verified, answer) =
            verify_counters(&run, "trace_s1", &reader, (&options, 1), &|_, _| {}).expect("verified");
        println!("{}", verified.summary[1]);
        json_of(&verified, &answer)["errors"].as_u64().expect("a number")
    };
    let right = errors("slub@6.1");
    for (wrong, times) in [
        ("slub@5.10", 3),
        ("slub@6.18", 6),
        ("slub@2.6.29", 15),
        ("slub@2.6.32", 15),
        ("slub@6.1,cpu_partial=0", 6),
        ("slub@6.1,max_order=0", 8),
        ("slub@7.0", 25),
        ("slab@6.1", 25),
        ("slqb@2009-09", 40),
        ("slob@6.1", 100),
    ] {
        let errors = errors(wrong);
        assert!(errors >= times * right, "{wrong}: {errors}, slub@6.1: {right}");
    }
}

/// The four nodes of the guest that counted under SLAB.
fn four_nodes() -> MachineFile {
    let node = |id: u16| NodeFile {
        memory: 0x3000_0000,
        cpus: vec![id],
        distances: (0..4).map(|other| if other == id { 10 } else { 20 }).collect(),
        ..NodeFile::default()
    };
    MachineFile { cpus: Some(4), nodes: (0..4).map(node).collect(), ..MachineFile::default() }
}

/// What /proc/slabinfo of a kernel with SLAB counted for one cache, by the columns' names.
fn slabinfo_change(run: &Path, cache: &str) -> impl Fn(&str) -> i64 {
    let text = std::fs::read_to_string(run.join("slabinfo.csv")).expect("the file is there");
    let rows: Vec<Vec<String>> =
        text.lines().map(|line| line.split(',').map(String::from).collect()).collect();
    let of = |phase: &str| rows.iter().find(|row| row[1] == phase && row[2] == cache).expect("a row").clone();
    let (header, before, after) = (rows[0].clone(), of("before"), of("after"));
    move |column| {
        let at = header.iter().position(|name| name == column).expect("a column");
        let number = |row: &[String]| row[at].parse::<i64>().expect("a number");
        number(&after) - number(&before)
    }
}

#[test]
fn counters_of_a_kernel_with_slab() {
    const EVENTS: [(&str, Event); 7] = [
        ("c_allochit", Event::SlabAllocHit),
        ("c_allocmiss", Event::SlabAllocMiss),
        ("c_freehit", Event::SlabFreeHit),
        ("c_freemiss", Event::SlabFreeMiss),
        ("g_nodefrees", Event::SlabNodeFree),
        ("g_overflows", Event::SlabNodeOverflow),
        ("g_grown", Event::SlabGrown),
    ];
    let run = root("testdata/slab_smp4_numa4");
    let reader = open(&run, Some("trace_s1"));
    let options = Options {
        engines: vec![Preset::parse("slab@6.1").expect("a preset").into()],
        machine: four_nodes(),
        ..Options::default()
    };
    let answer = replay(&reader, &run, &options, &|_, _| {}).expect("it can be replayed");
    let total = &slablab_replay::output::replay_answer(&answer, 0).json()["engines"][0]["total"];
    assert!(total["lock_alien"].is_u64(), "the locks of alien arrays are among the figures: {total}");
    for cache in ["skbuff_head_cache", "kmalloc-512"] {
        let real = slabinfo_change(&run, cache);
        let found = answer.outcomes[0].caches.iter().find(|found| found.name == cache).expect("the cache");
        let (allocs, frees) = (real("c_allochit") + real("c_allocmiss"), found.traffic.frees as i64);
        for (column, event) in EVENTS {
            let (real, predicted) = (real(column), found.counts.get(event) as i64);
            println!("{cache} {}: {predicted}, really {real}", event.name());
            let whole = if column.starts_with("c_alloc") || column == "g_grown" { allocs } else { frees };
            let off = 100.0 * (predicted - real) as f64 / whole as f64;
            assert!(
                off.abs() <= 0.2,
                "{cache} {}: {predicted}, really {real}: {off:.2} points",
                event.name()
            );
        }
    }
}

/// The load of forks begins on a kernel that ran others before: its arrays are not empty.
#[test]
fn a_kernel_with_slab_begins_with_its_arrays() {
    let run = root("testdata/slab_smp4_numa4");
    let reader = open(&run, Some("trace_fork"));
    let before = start_of(&run, "trace_fork").expect("the state is right");
    let options = Options { before: Some(before), kernel_only: true, ..Options::default() };
    let (verified, answer) = verify_counters(&run, "trace_fork", &reader, (&options, 1), &|_, _| {})
        .expect("the run can be verified");
    assert_eq!(answer.outcomes[0].preset.to_string(), "slab@6.1", "its slabinfo says which kernel it was");
    println!("{}", verified.summary.join("\n"));
    let json = json_of(&verified, &answer);
    let caches = json["caches"].as_array().expect("caches");
    assert_eq!(caches.len(), 23, "those whose trace is complete");
    let mut grown = (0, 0);
    for cache in caches {
        for (counter, both) in cache["counters"].as_object().expect("counters") {
            let number = |key: &str| both[key].as_i64().expect("a number");
            let (real, predicted) = (number("real"), number("predicted"));
            if counter == "grown" {
                grown = (grown.0 + real, grown.1 + predicted);
            }
            let off = (predicted - real).abs();
            assert!(
                real <= 100 || off * 20 <= real,
                "{} {counter}: {predicted}, really {real}",
                cache["cache"]
            );
        }
    }
    // With empty arrays 55 slabs are made.
    assert!(grown.0 == 19 && (10..=25).contains(&grown.1), "slabs made: {grown:?}");
}

#[test]
fn a_slab_run_says_what_is_missing() {
    let run = root("testdata/slab_smp4_numa4");
    let error = start_of(&run, "trace_q7").expect_err("no such workload").to_string();
    let expected = "slabinfo.csv: no rows of \"trace_q7\", before; it has trace_s1, trace_fork";
    assert!(error.contains(expected), "{error}");
    let verify = |label: &str| {
        let options = Options { before: start_of(&run, label).ok(), kernel_only: true, ..Options::default() };
        let reader = open(&run, Some(label));
        let verified = verify_counters(&run, label, &reader, (&options, 1), &|_, _| {});
        verified.map(drop).expect_err("it cannot be verified").to_string()
    };
    // Of the sockets run only two caches' events are there, without marks.
    let error = verify("trace_s1");
    assert!(error.contains("trace_check.csv: no cache of \"trace_s1\" has its trace whole"), "{error}");
    let before = start_of(&run, "trace_s1").ok();
    let options = Options { before, kernel_only: true, ..Options::default() };
    let error = replay(&open(&run, Some("trace_s1")), &run, &options, &|_, _| {}).map(drop);
    let error = error.expect_err("nothing is counted").to_string();
    assert!(error.contains("expected the marks `PH before_end` and `PH after_begin`"), "{error}");
}

/// What `verify` says of the bundled recording, as JSON.
fn change(engine: &str) -> serde_json::Value {
    let (reader, path) = bundled();
    let start = root("../../examples/data/hackbench-6.18.slabinfo-start.txt");
    let end = root("../../examples/data/hackbench-6.18.slabinfo-end.txt");
    let options = Options {
        engines: vec![Preset::parse(engine).expect("a preset").into()],
        before: Some(Before::read(&start).expect("slabinfo is right")),
        ..Options::default()
    };
    let (verified, answer) =
        verify_change(&reader, &path, &end, (&options, 1), &|_, _| {}).expect("it can be verified");
    println!("{}", verified.summary.join("\n"));
    json_of(&verified, &answer)
}

fn json_of(verified: &Verified, replay: &Replay) -> serde_json::Value {
    slablab_replay::output::verify_answer(verified, replay, usize::MAX).json()
}

/// Skill in bytes of slabs, and by how many percent of the pages the slabs taken and returned are off.
fn skill(engine: &str) -> (f64, f64) {
    let verified = change(engine);
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    (number(&verified["skill_slab_bytes"]), number(&verified["slab_pages"]["error_percent"]))
}

/// The cells of one column of a table in docs/results/fidelity.md, by preset; `head` begins the table.
fn page_column(head: &str, column: usize) -> Vec<(String, String)> {
    let page = std::fs::read_to_string(root("../../docs/results/fidelity.md")).expect("the page is there");
    let table = &page[page.find(head).expect("the page has the table")..];
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(2);
    let cells = rows.map(|row| row.split('|').map(|cell| cell.replace("**", "").trim().to_owned()).collect());
    cells
        .flat_map(|cells: Vec<String>| {
            let presets: Vec<String> = cells[1].split('`').skip(1).step_by(2).map(str::to_owned).collect();
            presets.into_iter().map(move |preset| (preset, cells[column].clone()))
        })
        .collect()
}

/// The tables of docs/results/fidelity.md have the figures that `verify` finds for the bundled recording, and
/// wrong presets are worse than the kernel's own.
#[test]
fn change_of_a_real_6_18() {
    let skills = page_column("| preset | hackbench, perf | hackbench, ftrace | find, perf", 2);
    let pages = page_column("| preset | hackbench, perf | off |", 3);
    assert_eq!(skills.len(), 12, "presets on the page");
    let mut found = HashMap::new();
    for ((preset, said), (of_pages, said_off)) in skills.iter().zip(&pages) {
        assert_eq!(preset, of_pages, "the tables have the same presets");
        let (skill, off) = skill(preset);
        let decimals = said.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        assert_eq!(&format!("{skill:.decimals$}"), said, "{preset}: skill");
        let decimals = said_off.split_once('.').map_or(0, |(_, rest)| rest.find(' ').unwrap_or(0));
        assert_eq!(&format!("{off:.decimals$} %"), said_off, "{preset}: pages");
        found.insert(preset.as_str(), (skill, off));
    }
    let right = found["slub@6.18"];
    assert!(right.0 >= 0.7 && right.1 <= 1.5, "{right:?}");
    // By how much less the skill is, and by how many percent the pages are off, at least.
    for (wrong, less, off) in [
        ("slub@5.10", 0.1, 1.5),
        ("slub@2.6.29", 0.2, 1.5),
        ("slub@6.18,max_order=1", 0.2, 5.0),
        ("slub@6.18,max_order=0", 0.2, 100.0),
        ("slub@6.18,order_cpus=64", 0.2, 100.0),
        ("slob@6.1", 0.5, 100.0),
        ("slab@6.1", 2.0, 50.0),
        ("slub@7.0", 3.0, 40.0),
        ("slqb@2009-09", 5.0, 50.0),
    ] {
        let found = found[wrong];
        assert!(found.0 <= right.0 - less && found.1 >= off, "{wrong}: {found:?}, slub@6.18: {right:?}");
    }
    // Of the policies in which these differ, sheaves for two caches alone move slabs here
    // (docs/results/fidelity.md).
    for alike in ["slub@6.1", "slub@6.12"] {
        let found = found[alike];
        assert!((right.0 - found.0).abs() <= 0.05 && found.1 <= 1.5, "{alike}: {found:?}");
    }
}

/// A dump fits many starts: draws differ, the first is the answer itself, and threads change nothing.
#[test]
fn draws_of_the_start_have_a_range() {
    let run = root("testdata/slub_smp4_numa4");
    let reader = open(&run, Some("trace_s1"));
    let verify = |seeds| {
        let before = Some(start_of(&run, "trace_s1").expect("the state is right"));
        let options = Options { before, kernel_only: true, ..Options::default() };
        let answer = verify_counters(&run, "trace_s1", &reader, (&options, seeds), &|_, _| {});
        let (verified, replay) = answer.expect("the run can be verified");
        (json_of(&verified, &replay), verified.summary)
    };
    let ((one, _), (five, summary)) = (verify(1), verify(5));
    assert_eq!(one["seeds"], serde_json::json!({}));
    assert_eq!(one["caches"], five["caches"], "the answer is the first draw");
    let exact = &five["seeds"]["error_percent"];
    let values: Vec<f64> =
        exact["by_rank"].as_array().expect("a list").iter().filter_map(|value| value.as_f64()).collect();
    assert!(values.len() == 5 && values.is_sorted() && values[0] < values[4], "{values:?}");
    let alone =
        100.0 * one["errors"].as_f64().expect("a number") / one["counted_real"].as_f64().expect("a number");
    assert!(values.contains(&alone), "{alone} in {values:?}");
    assert!(summary.iter().any(|text| text.contains("over 5 draws of the start")), "{summary:?}");
    assert_eq!(verify(5).0["seeds"], five["seeds"]);
}

/// As counted in perf's text of the same recording, by other means.
#[test]
fn slabs_that_page_events_show() {
    let verified = change("slub@6.18");
    let orders = verified["slab_pages"]["orders"].as_array().expect("a list");
    let number = |order: &serde_json::Value, key: &str| order[key].as_u64().expect("a number");
    let real: Vec<_> = orders
        .iter()
        .map(|order| {
            (number(order, "order"), number(order, "slabs_taken_real"), number(order, "slabs_returned_real"))
        })
        .collect();
    assert_eq!(real, [(0, 987, 942), (1, 901, 893), (2, 5, 0), (3, 15, 3)]);
}

/// Bytes are those of the engine's own slabs, not of the kernel's.
#[test]
fn slabs_have_their_own_size() {
    let verified = change("slub@6.18,max_order=0");
    let number = |cache: &serde_json::Value, key: &str| cache[key].as_i64().expect("a number");
    let caches = verified["caches"].as_array().expect("a list");
    let kernels = |name: &str, slab: i64| {
        let cache = caches.iter().find(|cache| cache["cache"] == name).expect("it changed");
        let (slabs, bytes) = (number(cache, "slabs_change_real"), number(cache, "slab_bytes_change_real"));
        assert!(slabs != 0 && bytes == slabs * slab, "{name}: {slabs} slabs, {bytes} bytes");
    };
    kernels("task_struct", 8 << 12);
    kernels("kmalloc-128", 1 << 12);
    for cache in caches.iter().filter(|cache| cache["cache"] != "task_struct") {
        let slabs = number(cache, "slabs_change_predicted");
        assert_eq!(number(cache, "slab_bytes_change_predicted"), slabs << 12, "{cache}");
    }
}

fn all_engines(reader: &Reader, path: &Path) -> Replay {
    let presets = [
        "slub@2.6.29",
        "slub@2.6.32",
        "slub@3.2",
        "slub@6.1",
        "slub@6.18",
        "slub@7.0",
        "slqb@2009-01",
        "slqb@2009-09",
        "slab@2.6.29",
        "slab@6.1",
        "slob@2.6.32",
        "slob@6.1",
    ];
    let engines = presets.iter().map(|text| Preset::parse(text).expect("a preset").into()).collect();
    replay(reader, path, &Options { engines, ..Options::default() }, &|_, _| {}).expect("it can be replayed")
}

#[test]
fn every_engine_sees_the_same_events() {
    let (reader, path) = bundled();
    let answer = all_engines(&reader, &path);
    let (allocs, frees) = (answer.outcomes[0].traffic().allocs, answer.outcomes[0].traffic().frees);
    assert!(allocs > 90_000 && frees > 90_000, "{allocs} allocations, {frees} frees");
    for outcome in &answer.outcomes {
        let (total, traffic) = (outcome.total(), outcome.traffic());
        assert_eq!((traffic.allocs, traffic.frees), (allocs, frees), "{}", outcome.preset);
        // Sheaves, arrays and SLAB's off-slab lists are objects too.
        let extra = (total.allocs() - allocs, total.frees() - frees);
        let own = outcome.preset.engine() == "slab" || total.get(Event::SheafAlloc) > 0;
        assert!(extra == (0, 0) || (own && extra.0 >= extra.1), "{}: {extra:?}", outcome.preset);
        let split = outcome.split();
        assert_eq!(split.slabs, outcome.end_frames * outcome.page_size, "{}", outcome.preset);
        assert_eq!(split.live + split.parked + split.free + split.tail, split.slabs, "{}", outcome.preset);
        let slow = [Event::AllocRefill, Event::AllocFromPartial, Event::AllocSlab];
        let parts = |counts: &Counts| slow.iter().map(|event| counts.get(*event)).sum::<u64>();
        if outcome.preset.to_string() == "slub@6.1" {
            assert_eq!(total.get(Event::AllocSlowpath), parts(&total), "the identity of the slow path");
        }
    }
}

/// Engines whose slabs have other orders, and SLOB that has walks besides: one order of rows, counts by order
/// together.
#[test]
fn rows_of_all_engines_are_in_order() {
    let (reader, path) = bundled();
    let engines = ["slob@6.1", "slub@6.1,min_order=2", "slub@6.1"];
    let engines = engines.map(|text| Preset::parse(text).expect("a preset").into()).to_vec();
    let answer =
        replay(&reader, &path, &Options { engines, ..Options::default() }, &|_, _| {}).expect("right");
    let table = slablab_replay::output::replay_answer(&answer, 0).text(true);
    let names: Vec<&str> = table.lines().map(|line| line.trim().split("  ").next().unwrap_or(line)).collect();
    let place =
        |name| names.iter().position(|found| *found == name).unwrap_or_else(|| panic!("{name}: {table}"));
    let between = &names[place("slabs taken") + 1..place("slabs returned")];
    assert_eq!(between, ["of order 0", "of order 1", "of order 2", "of order 3", "pages"], "{table}");
}

#[test]
fn a_replay_is_the_same_every_time() {
    let (reader, path) = bundled();
    let text = |replay: &Replay| slablab_replay::output::replay_answer(replay, 0).json().to_string();
    let (first, second) = (all_engines(&reader, &path), all_engines(&reader, &path));
    assert_eq!(text(&first), text(&second));
}

/// The room in slabs that each parked object needs where a load's peak is gone: what `whatif` takes for other
/// releases (docs/whatif.md), over the caches of which the recording frees more than a thousand objects.
/// Frees of maple nodes are not recorded.
#[test]
fn room_of_parked_objects_is_what_whatif_takes() {
    let (reader, path) = bundled();
    let engines = vec![Preset::parse("slub@7.1").expect("a preset").into()];
    let answer = replay(&reader, &path, &Options { engines, ..Options::default() }, &|_, _| {});
    let outcome = &answer.expect("it can be replayed").outcomes[0];
    let freed =
        outcome.caches.iter().filter(|cache| cache.traffic.frees > 1000 && cache.name != "maple_node");
    let rooms: Vec<f64> = freed
        .map(|cache| (cache.end.parked + cache.end.free_in_partial) as f64 / cache.end.parked as f64)
        .map(f64::ln)
        .collect();
    let count = rooms.len() as f64;
    let mean = rooms.iter().sum::<f64>() / count;
    let deviation = (rooms.iter().map(|ln| (ln - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    let (room, factor) = slablab_doctor::whatif::sheaves::ROOM;
    assert_eq!(rooms.len(), 6, "{rooms:?}");
    assert!((mean.exp() - room).abs() < 0.05, "{} {room}", mean.exp());
    assert!((deviation.exp() - factor).abs() < 0.05, "{} {factor}", deviation.exp());
}
