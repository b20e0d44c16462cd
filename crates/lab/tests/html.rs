//! Pages without a browser: what holds of all of them, of hostile names, of long time lines. What a browser makes of them
//! is tested with the program (crates/cli/tests/it/screenshots.rs).

#[path = "../../report/tests/it/page_check.rs"]
mod page_check;

use page_check::check_page;
use slablab_lab::doctor::rounding::Rounding;
use slablab_lab::doctor::{self, SortKey, examine};
use slablab_lab::html::{doctor_page, replay_page, verify_page, whatif_page};
use slablab_lab::import::{self, Input};
use slablab_lab::output::Shown;
use slablab_lab::replay::before::Before;
use slablab_lab::replay::{Options, Replay, replay};
use slablab_lab::state::{self, State};
use slablab_lab::verify::counters::start_of;
use slablab_lab::verify::{verify_change, verify_counters};
use slablab_lab::whatif::{Against, Grid, Policy, Prediction, predict};
use slablab_slabs::preset::Choice;
use slablab_workloads::Reader;
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
    import::open(Input { path, recording }, &mut |_| {}).expect("the recording is right")
}

fn replayed(engines: &[&str]) -> Replay {
    let path = root("../../examples/data/hackbench-6.18.perf.data.xz");
    let engines = engines.iter().map(|text| Choice::parse(text).expect("a preset")).collect();
    let options = Options { engines, ..Options::default() };
    replay(&open(&path, None), &path, &options, &|_, _| {}).expect("it can be replayed")
}

#[test]
fn a_replay_is_a_page() {
    let answer = replayed(&["slub@6.18", "slub@6.1,max_order=0", "slqb"]);
    let page = replay_page(&answer, COMMAND, 15);
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
        replay_page(&replayed(&["slub@6.18", "slub@6.1,max_order=0", "slqb"]), COMMAND, 15),
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
        verify_change(&open(&path, None), &path, &after, &options, &|_, _| {}).expect("verified");
    let page = verify_page(&verified, &answer, COMMAND);
    check_page(&page, COMMAND);
    for words in ["skill 0.", "Figure 2.", "task_struct", "one node of 64 GiB"] {
        assert!(page.contains(words), "no {words:?}");
    }
    assert!(!page.contains("<script"), "nothing long, no script");

    let run = root("testdata/slub_smp4_numa4");
    let before = start_of(&run, "trace_s1").expect("the state is right");
    let options = Options { before: Some(before), kernel_only: true, ..Options::default() };
    let (verified, answer) =
        verify_counters(&run, "trace_s1", &open(&run, Some("trace_s1")), &options, &|_, _| {})
            .expect("verified");
    let page = verify_page(&verified, &answer, COMMAND);
    check_page(&page, COMMAND);
    for words in ["alloc_fastpath", "kmalloc-512", "counters exact"] {
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
    let page = replay_page(&answer, HOSTILE[1], 1000);
    check_page(&page, "");
    assert!(!page.contains("<script>alert") && !page.contains("<img"), "a name became markup");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "a name is not there");

    let mut machine = state("../../examples/data/hackbench-6.18.before.tar.xz");
    for (index, cache) in machine.caches.iter_mut().enumerate() {
        let name = HOSTILE[index % HOSTILE.len()];
        cache.name = name.into();
        cache.aliases = vec![name.into()];
        if let Some(attrs) = &mut cache.attrs {
            attrs.name = name.into();
        }
    }
    machine.path = PathBuf::from(HOSTILE[2].replace('/', ""));
    machine.assumed.push(HOSTILE[0].into());
    let report = examine(&machine, &doctor::Options::default()).expect("examined");
    let grid = Grid { max_orders: vec![0], ..Grid::default() };
    let predictions = predictions(&machine, &grid);
    let against = Against::new(&predictions[0], &machine);
    assert!(!against.mismatches.is_empty(), "no name is in the table of shapes");
    let pages = [
        doctor_page(&report, HOSTILE[1], &SHOWN),
        whatif_page(&machine, &predictions, Some(&against), HOSTILE[1], 1000),
    ];
    for page in pages {
        check_page(&page, "");
        assert!(!page.contains("<script>alert") && !page.contains("<img"), "a name became markup");
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "a name is not there");
    }
}

const SHOWN: Shown = Shown { sort: SortKey::CacheSize, lines: 15, aliases: true, bytes: false };

fn state(below: &str) -> State {
    let input = state::Input { path: Some(root(below)), page_size: Some(4096), cpus: Some(2) };
    state::read(&input).expect("the dump is right")
}

#[test]
fn what_the_doctor_found_is_a_page() {
    let machine = state("../../examples/data/hackbench-6.18.before.tar.xz");
    let path = root("../../examples/data/hackbench-6.18.perf.data.xz");
    let rounding = Rounding::read(&path, &open(&path, None)).expect("the recording is right");
    let options = doctor::Options { rounding: Some(&rounding), ..doctor::Options::default() };
    let report = examine(&machine, &options).expect("examined");
    let page = doctor_page(&report, COMMAND, &SHOWN);
    check_page(&page, COMMAND);
    for words in ["in use", "meminfo Slab", "kmalloc-", "what kmalloc&#39;s classes cost", "Evidence"] {
        assert!(page.to_lowercase().contains(&words.to_lowercase()), "no {words:?}");
    }
    for said in report
        .findings
        .iter()
        .map(|finding| &finding.text)
        .chain(report.actions.iter().map(|action| &action.command))
    {
        assert!(page.contains(&slablab_report::html::escape(said)), "not said: {said}");
    }

    let (now, before) = (
        state("../../examples/data/hackbench-6.18.slabinfo-end.txt"),
        [state("../../examples/data/hackbench-6.18.slabinfo-start.txt")],
    );
    let options = doctor::Options { since: &before, hours: Some(2.0), rounding: None };
    let report = examine(&now, &options).expect("examined");
    let page = doctor_page(&report, COMMAND, &SHOWN);
    check_page(&page, COMMAND);
    for words in ["first snapshot", "Grown an hour", "task_struct"] {
        assert!(page.contains(words), "no {words:?}");
    }
}

fn predictions(state: &State, grid: &Grid) -> Vec<Prediction> {
    let changes = grid.changes().expect("not too many");
    changes.iter().map(|change| predict(state, change).expect("predicted")).collect()
}

#[test]
fn what_would_be_is_a_page() {
    let machine = state("../../examples/data/hackbench-6.18.before.tar.xz");
    let all = Policy::parse("patel-v3").into_iter().chain(Policy::parse("halving")).collect();
    let cases: [(Grid, usize, &[&str]); 4] = [
        (Grid { max_orders: vec![0], ..Grid::default() }, 1, &["With max_order=0", "today", "\u{2192}"]),
        (
            Grid { max_orders: vec![0, 1, 2, 3], page_sizes: vec![4096, 65536], ..Grid::default() },
            3,
            &["page_size=64K", "class=\"band", "max_order=3 "],
        ),
        (Grid { cpus: vec![1, 16, 160], ..Grid::default() }, 3, &["doubling", "cpus=160"]),
        (Grid { policies: all, ..Grid::default() }, 1, &["policy=patel-v3", "tail of slabs"]),
    ];
    for (grid, figures, words) in cases {
        let page = whatif_page(&machine, &predictions(&machine, &grid), None, COMMAND, 15);
        check_page(&page, COMMAND);
        assert_eq!(page.matches("<figure").count(), figures, "{grid:?}");
        for words in words {
            assert!(page.contains(words), "no {words:?} for {grid:?}");
        }
    }
}
