//! Pages of the doctor without a browser, of hostile names too.

use crate::page_check::check_page;
use slablab_doctor::measure::SortKey;
use slablab_doctor::measure::rounding::Rounding;
use slablab_doctor::output::{Shown, doctor_answer, whatif_answer};
use slablab_doctor::state::{self, State};
use slablab_doctor::whatif::{Against, Grid, Policy, Prediction, predict};
use slablab_doctor::{Options, examine};
use slablab_trace::Losses;
use std::path::{Path, PathBuf};

const COMMAND: &str = "slablab doctor 'a & b' --html page.html";

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

#[test]
fn names_of_others_are_only_names() {
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
    let report = examine(&machine, &Options::default()).expect("examined");
    let grid = Grid { max_orders: vec![0], ..Grid::default() };
    let predictions = predictions(&machine, &grid);
    let against = Against::new(&predictions[0], &machine);
    assert!(!against.mismatches.is_empty(), "no name is in the table of shapes");
    let pages = [
        doctor_answer(&report, &SHOWN).page(HOSTILE[1]),
        whatif_answer(&machine, &predictions, Some(&against), None, 1000).page(HOSTILE[1]),
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
    let rounding = Rounding {
        path: PathBuf::from("hackbench.perf.data"),
        objects: 30,
        requested: 30 * 520,
        allocated: 30 * 1024,
        classes: [(1024, (30, 30 * 520))].into(),
        losses: Losses::default(),
    };
    let options = Options { rounding: Some(&rounding), ..Options::default() };
    let report = examine(&machine, &options).expect("examined");
    let page = doctor_answer(&report, &SHOWN).page(COMMAND);
    check_page(&page, COMMAND);
    for words in ["in use", "meminfo Slab", "kmalloc-", "what kmalloc&#39;s classes cost", "Evidence"] {
        assert!(page.to_lowercase().contains(&words.to_lowercase()), "no {words:?}");
    }
    for said in report
        .found
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
    let options = Options { since: &before, hours: Some(2.0), ..Options::default() };
    let report = examine(&now, &options).expect("examined");
    let page = doctor_answer(&report, &SHOWN).page(COMMAND);
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
        let page = whatif_answer(&machine, &predictions(&machine, &grid), None, None, 15).page(COMMAND);
        check_page(&page, COMMAND);
        assert_eq!(page.matches("<figure").count(), figures, "{grid:?}");
        for words in words {
            assert!(page.contains(words), "no {words:?} for {grid:?}");
        }
    }
}
