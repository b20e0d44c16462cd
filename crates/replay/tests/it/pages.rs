//! Pages without a browser: what holds of all of them, of hostile names, of long time lines. What a browser
//! makes of them is tested with the program (crates/cli/tests/it/screenshots.rs).

use crate::page_check::check_page;
use slablab_replay::import::{self, Input};
use slablab_replay::output::{replay_answer, verify_answer};
use slablab_replay::replay::before::Before;
use slablab_replay::replay::{Options, Replay, replay};
use slablab_replay::verify::counters::start_of;
use slablab_replay::verify::{verify_change, verify_counters};
use slablab_slabs::preset::Choice;
use slablab_trace::Reader;
use std::path::{Path, PathBuf};

const COMMAND: &str = "slablab replay 'a & b' --html page.html";

/// What others may call a cache, a file or a kernel.
const HOSTILE: [&str; 5] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "]]></svg></script><!--",
    "a\u{0}\u{1b}[2J\u{202e}b&amp;&c;",
    "",
];

fn root(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

fn open(path: &Path, recording: Option<&str>) -> Reader {
    import::open(Input { path, recording, formats: None }, &mut |_| {}).expect("the recording is right")
}

fn replayed(engines: &[&str]) -> Replay {
    let path = root("../../examples/data/hackbench-6.18.perf.data.xz");
    let engines = engines.iter().map(|text| Choice::parse(text).expect("a preset").into()).collect();
    let options = Options { engines, ..Options::default() };
    replay(&open(&path, None), &path, &options, &|_, _| {}).expect("it can be replayed")
}

#[test]
fn a_replay_is_a_page() {
    let answer = replayed(&["slub@6.18", "slub@6.1,max_order=0", "slqb"]);
    let page = replay_answer(&answer, 15).page(COMMAND);
    check_page(&page, COMMAND);
    for words in [
        "6.18.44",
        "slub@6.1,max_order=0",
        "skbuff_head_cache",
        "193,094",
        "Evidence",
        "one node of 64 GiB",
        "uPlot",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
    assert_eq!(
        page,
        replay_answer(&replayed(&["slub@6.18", "slub@6.1,max_order=0", "slqb"]), 15).page(COMMAND),
        "same input, same bytes"
    );
}

#[test]
fn the_time_line_ends_as_the_run_does() {
    for outcome in replayed(&["slub@2.6.32", "slub@6.1", "slub@6.18", "slqb"]).outcomes {
        let (name, samples) = (outcome.preset, &outcome.timeline.samples);
        let (first, last) = (samples.first().expect("a start"), samples.last().expect("an end"));
        assert!((100..=2048).contains(&samples.len()), "{name}: {} samples", samples.len());
        assert!(samples.is_sorted_by(|a, b| a.time_ns < b.time_ns), "{name}");
        assert_eq!(first.slab_bytes, outcome.start_frames * outcome.page_size, "{name}");
        assert_eq!(last.slab_bytes, outcome.end_frames * outcome.page_size, "{name}");
        let peak = samples.iter().map(|sample| sample.slab_bytes).max().unwrap_or(0);
        let real = outcome.peak_frames * outcome.page_size;
        assert!(peak <= real && peak * 10 >= real * 9, "{name}: {peak} of {real} bytes");
        assert!(samples.iter().all(|sample| sample.live_bytes <= sample.slab_bytes), "{name}");
        // Sheaves made in the run are objects that no row tells of.
        let live = outcome.split().live;
        let sheaves = if name.to_string().contains("6.18") { 64 << 10 } else { 0 };
        assert!(
            (live - sheaves..=live).contains(&last.live_bytes),
            "{name}: {} of {live} bytes",
            last.live_bytes
        );
    }
}

#[test]
fn verifications_are_pages() {
    let path = root("../../examples/data/hackbench-6.18.perf.data.xz");
    let before =
        Before::read(&root("../../examples/data/hackbench-6.18.slabinfo-start.txt")).expect("it is right");
    let options = Options { before: Some(before), kernel_only: true, ..Options::default() };
    let after = root("../../examples/data/hackbench-6.18.slabinfo-end.txt");
    let (verified, answer) =
        verify_change(&open(&path, None), &path, &after, (&options, 1), &|_, _| {}).expect("verified");
    let page = verify_answer(&verified, &answer, usize::MAX).page(COMMAND);
    check_page(&page, COMMAND);
    for words in ["skill 0.", "Figure 2.", "task_struct", "one node of 64 GiB"] {
        assert!(page.contains(words), "no {words:?}");
    }
    assert!(!page.contains("<script"), "nothing long, no script");

    let run = root("testdata/slub_smp4_numa4");
    let before = start_of(&run, "trace_s1").expect("the state is right");
    let options = Options { before: Some(before), kernel_only: true, ..Options::default() };
    let (verified, answer) =
        verify_counters(&run, "trace_s1", &open(&run, Some("trace_s1")), (&options, 1), &|_, _| {})
            .expect("verified");
    let page = verify_answer(&verified, &answer, usize::MAX).page(COMMAND);
    check_page(&page, COMMAND);
    for words in ["alloc_fastpath", "kmalloc-512", "counters of a kernel that counts"] {
        assert!(page.contains(words), "no {words:?}");
    }
}

#[test]
fn names_of_others_are_only_names() {
    let mut answer = replayed(&["slub@6.18"]);
    for (index, cache) in answer.outcomes[0].caches.iter_mut().enumerate() {
        cache.name = HOSTILE[index % HOSTILE.len()].into();
    }
    answer.metadata.release = Some(HOSTILE[0].into());
    answer.metadata.warnings.push(HOSTILE[1].into());
    answer.path = PathBuf::from(HOSTILE[2].replace('/', ""));
    let page = replay_answer(&answer, 1000).page(HOSTILE[1]);
    check_page(&page, "");
    assert!(!page.contains("<script>alert") && !page.contains("<img"), "a name became markup");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "a name is not there");
}
