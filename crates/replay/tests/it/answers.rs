//! The sentence of each answer in the situations that it tells apart; no line of a text is wider than 80
//! columns.

use slablab_readers::allocinfo::AllocSite;
use slablab_readers::tracked::Tracked;
use slablab_replay::explain::{Question, explain};
use slablab_replay::import::{self, Input, Report};
use slablab_replay::output::{
    Weight, cache_answer, explain_answer, import_answer, replay_answer, sites_answer,
};
use slablab_replay::replay::{Evidence, Options, Replay, replay};
use slablab_replay::sites::{self, Counted, Growth, List, Recorded, Sites, TrackedSites};
use slablab_report::Answer;
use slablab_slabs::Preset;
use slablab_slabs::preset::Choice;
use slablab_trace::{CutOff, Reader};
use std::path::{Path, PathBuf};

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/hackbench-6.18.perf.data.xz")
}

fn open(path: &Path) -> Reader {
    let input = Input { path, recording: None, formats: None };
    import::open(input, &mut |_| {}).expect("the recording is right")
}

/// The answer says `expected`, and fits 80 columns.
#[track_caller]
fn check(answer: &Answer, expected: &str) {
    assert_eq!(answer.sentence(), expected);
    let text = answer.text(false);
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{text}");
    assert!(text.starts_with(expected.split(' ').next().expect("a word")), "{text}");
}

fn options(engines: &[&str]) -> Options {
    let engines = engines.iter().map(|text| Choice::parse(text).expect("a preset").into()).collect();
    Options { engines, evidence: Evidence::Pages, ..Options::default() }
}

fn replayed(engines: &[&str]) -> Replay {
    let path = recording();
    replay(&open(&path), &path, &options(engines), &|_, _| {}).expect("it can be replayed")
}

#[test]
fn replays() {
    type Case<'a> = (&'a [&'a str], fn(&mut Replay), &'a str);
    let one = "the recording peaks at 10.9 MiB of slab memory, ends with 4.37 MiB and takes 1,903 slabs; 87.5 % of \
               allocations and 5.2 % of frees are fast.";
    let cases: [Case<'_>; 7] = [
        (&["slub@6.18"], |_| {}, &format!("Under slub@6.18 {one}")),
        (
            &[],
            |_| {},
            "slub@6.18 peaks lowest, at 10.9 MiB of slab memory: 528 KiB (4.5 %) less than slab@6.1 and 3.07 MiB \
             (22.0 %) less than slob@6.1; slub@7.3 takes fewest slabs, 1,263.",
        ),
        (
            &["slub@6.18", "slab@6.1", "slub@6.18"],
            |_| {},
            "slub@6.18 and slub@6.18 peak lowest, at 10.9 MiB of slab memory: 528 KiB (4.5 %) less than slab@6.1; \
             they also take fewest slabs, 1,903.",
        ),
        (
            &["slub@6.1", "slub@6.1"],
            |_| {},
            "Under each of 2 engines the recording peaks at 10.9 MiB of slab memory; each takes 1,898 slabs.",
        ),
        (
            &["slub@7.1,debug=FZPU,quarantine=64K", "slub@6.1,max_order=0,cpu_partial=0", "slob"],
            |_| {},
            "Debugging in slub@7.1,debug=FZPU,quarantine=64K finds rows that free what was not allocated (27); \
             slub@6.1,max_order=0,cpu_partial=0 peaks lowest, at 11.3 MiB of slab memory: 2.63 MiB (18.8 %) less \
             than slob@6.1 and 3.45 MiB (23.3 %) less than slub@7.1,debug=FZPU,quarantine=64K; \
             slub@7.1,debug=FZPU,quarantine=64K takes fewest slabs, 1,814.",
        ),
        (
            &["slub@6.18"],
            |replay| replay.outcomes[0].violations.freed_again = 2,
            &format!(
                "Debugging in slub@6.18 finds rows that free an address again (2); under slub@6.18 {one}"
            ),
        ),
        (
            &["slub@6.18", "slub@6.1,debug=FZPU"],
            |replay| replay.outcomes[0].violations.never_allocated = 1,
            "Debugging in slub@6.18 finds rows that free what was not allocated (1), as does that in 1 more; \
             slub@6.18 peaks lowest, at 10.9 MiB of slab memory: 3.48 MiB (24.2 %) less than slub@6.1,debug=FZPU; \
             slub@6.1,debug=FZPU takes fewest slabs, 1,883.",
        ),
    ];
    for (engines, change, expected) in cases {
        let mut replay = replayed(engines);
        change(&mut replay);
        check(&replay_answer(&replay, 5), expected);
        replay.metadata.losses.records = 1;
        let said = replay_answer(&replay, 5);
        assert!(said.said().next().is_some_and(|line| line.starts_with("INCOMPLETE: ")), "{engines:?}");
    }
}

#[test]
fn one_cache() {
    let check_cache = |engines: &[&str], expected: &str| {
        check(&cache_answer(&replayed(engines), "dentry", 5).expect("it is there"), expected);
    };
    check_cache(
        &["slub@6.18"],
        "dentry ends with 64 KiB of slabs under slub@6.18: 16 slabs for 276 active objects; 91.1 % of allocations \
         and 6.9 % of frees are fast.",
    );
    check_cache(
        &[],
        "dentry ends with least slab memory under slob@6.1, 48 KiB: 16 KiB (25.0 %) less than slub@6.18 and 40 KiB \
         (45.5 %) less than slub@7.3.",
    );
    check_cache(&["slub@6.1", "slub@6.1"], "dentry ends with 64 KiB of slabs under each of 2 engines.");
    assert!(cache_answer(&replayed(&["slub@6.18"]), "nobody", 5).is_none());
}

#[test]
fn explanations() {
    let explained = |from: &str, to: &str, cache: Option<&str>, exact| {
        let preset = |text| Preset::parse(text).expect("a preset");
        let mut question = Question::new(preset(from), preset(to));
        (question.exact, question.samples) = (exact, 8);
        question.cache = cache.map(String::from);
        let path = recording();
        let found = explain(&open(&path), &path, &options(&[]), &question, &|_, _| {});
        explain_answer(&found.expect("it can be explained"))
    };
    let cases = [
        ("slub@6.1", "slub@6.1", None, 10, "slub@6.1 and slub@6.1 are the same here: nothing differs."),
        (
            "slub@6.1",
            "slub@6.1,link=start",
            None,
            10,
            "slub@6.1 and slub@6.1,link=start differ in one policy, and in nothing that happens here: no counter \
             differs.",
        ),
        (
            "slub@6.1",
            "slub@6.1,max_order=0",
            None,
            10,
            "From slub@6.1 to slub@6.1,max_order=0 slab memory at the end changes by +172 KiB, from 4.31 MiB to 4.48 \
             MiB; max_order is the only policy that differs.",
        ),
        (
            "slub@6.18",
            "slub@7.0",
            None,
            10,
            "From slub@6.18 to slub@7.0 slab memory at the end changes by +2.92 MiB, from 4.37 MiB to 7.29 MiB; \
             sheaves carries +3.32 MiB, the other policies together -403 KiB.",
        ),
        (
            "slub@2.6.29",
            "slub@6.18",
            None,
            0,
            "From slub@2.6.29 to slub@6.18 slab memory at the end changes by +428 KiB, from 3.95 MiB to 4.37 MiB; \
             most of that is carried by cpu_partial_rule: +311 KiB (estimated along 8 sampled orders).",
        ),
        (
            "slub@6.1",
            "slub@6.18",
            Some("dentry"),
            2,
            "From slub@6.1 to slub@6.18 dentry's slab memory at the end stays the same; 3 policies differ, and 3 \
             counters with them.",
        ),
    ];
    for (from, to, cache, exact, expected) in cases {
        check(&explained(from, to, cache, exact), expected);
    }
}

#[test]
fn imports() {
    let path = recording();
    let metadata = open(&path).metadata().clone();
    let report = Report { input: path, output: PathBuf::from("load.trace.parquet"), metadata };
    let check_import = |change: fn(&mut Report), expected: &str| {
        let mut report = report.clone();
        change(&mut report);
        check(&import_answer(&report), expected);
    };
    check_import(
        |_| {},
        "The trace has 193,094 rows of 0.154 s on 2 CPUs: of its frees 480 have no allocation in it and 56 are inferred.",
    );
    check_import(
        |report| report.metadata.import = None,
        "The trace has 193,094 rows of 0.154 s on 2 CPUs: every free has its allocation.",
    );
    check_import(
        |report| (report.metadata.losses.records, report.metadata.losses.events) = (3, 12_345),
        "The trace has 193,094 rows of 0.154 s on 2 CPUs: the recording lost 12,345 events, of its frees 480 have no allocation in it and 56 are inferred.",
    );
    check_import(
        |report| report.metadata.losses.records = 3,
        "The trace has 193,094 rows of 0.154 s on 2 CPUs: the recording lost events, of its frees 480 have no allocation in it and 56 are inferred.",
    );
    check_import(
        |report| report.metadata.cut_off = Some(CutOff::default()),
        "The trace has 193,094 rows of 0.154 s on 2 CPUs: the recording ended early, of its frees 480 have no allocation in it and 56 are inferred.",
    );
}

#[test]
fn call_sites_of_a_recording() {
    let path = recording();
    let found = Recorded::of(&open(&path), &path, &sites::Options::default(), &|_, _| {});
    let mut found = found.expect("it has call sites");
    let answer = |found: &Recorded| sites_answer(&Sites::Recorded(Box::new(found.clone())), 5, Weight::Live);
    check(
        &answer(&found),
        "Of 90,766 allocations in the recording 916 live at its end, with 463 KiB; 224 KiB of these, 48.3 %, are from 0xffffffff813549fa in cache task_struct.",
    );
    found.metadata.losses.records = 1;
    let lost = answer(&found);
    assert!(lost.said().next().is_some_and(|line| line.starts_with("INCOMPLETE: ")));
    found.sites.iter_mut().for_each(|site| site.live_bytes = 0);
    check(&answer(&found), "Of 90,766 allocations in the recording none lives at its end.");
}

#[test]
fn lines_of_code() {
    let line = |bytes, before| {
        let file = "drivers/gpu/drm/amd/amdgpu/../display/amdgpu_dm/amdgpu_dm.c".to_string();
        let (module, function) = (Some("amdgpu".to_string()), "dm_allocate_gpu_mem".to_string());
        let now = AllocSite { bytes, calls: 2, file, line: 1200, function, module, accurate: true };
        Growth { now, before }
    };
    let check_lines = |lines: Vec<Growth>, expected: &str| {
        let since = lines.iter().any(|line| line.before.is_some()).then(|| PathBuf::from("monday"));
        let counted =
            Counted { path: PathBuf::from("/proc/allocinfo"), since, sites: lines, notes: Vec::new() };
        check(&sites_answer(&Sites::Counted(counted), 1, Weight::Live), expected);
    };
    let place = "dm_allocate_gpu_mem (drivers/gpu/drm/amd/amdgpu/../display/amdgpu_dm/amdgpu_dm.c:1200)";
    check_lines(Vec::new(), "No line of code holds memory.");
    check_lines(vec![line(8192, None), line(1024, None)], &format!("{place} holds most: 8 KiB of 9 KiB."));
    check_lines(vec![line(8192, Some((1024, 1)))], &format!("{place} grew most: by 7 KiB, to 8 KiB."));
    check_lines(vec![line(8192, Some((9216, 3)))], "No line of code grew.");
    let mut pages = line(9216, None);
    pages.now.function = "alloc_slab_page".into();
    check_lines(vec![pages, line(8192, None)], &format!("{place} holds most: 8 KiB of 8 KiB."));
}

#[test]
fn debugging_lists() {
    let entry = |count| Tracked {
        count,
        site: Some("security_sk_alloc_and_a_function_with_a_long_name+0x2d/0x5d".into()),
        module: Some("af_packet".into()),
        waste: Some((96, 32)),
        age: Some([1, 20_000_000, 300_000_000]),
        pids: Some((1, 4_194_303)),
        cpus: (0..128).step_by(2).collect(),
        nodes: vec![0, 2],
        ..Tracked::default()
    };
    let check_list = |of_frees, counts: &[u64], expected: &str| {
        let sites = counts.iter().map(|count| entry(*count)).collect();
        let list = List { cache: Some("dentry".into()), of_frees, slab_size: Some(192), sites };
        let lists = TrackedSites { path: PathBuf::from("slab"), lists: vec![list], empty: 2, hz: None };
        check(&sites_answer(&Sites::Tracked(lists), 1, Weight::Live), expected);
    };
    let site = "security_sk_alloc_and_a_function_with_a_long_name+0x2d/0x5d [af_packet]";
    let allocated = format!("Of 15 tracked objects of dentry {site} allocated 12 (80.0 %), most of all.");
    check_list(false, &[12, 3], &allocated);
    check_list(
        true,
        &[3],
        &format!("Of 3 tracked objects of dentry {site} freed 3 (100.0 %) last, most of all."),
    );
}
