//! The rig from end to end, with a hundredth of its usual operations.

use serde_json::Value;
use slablab_bench::child::{self, Child};
use slablab_bench::clock::Sample;
use slablab_bench::costs::Costs;
use slablab_bench::memory::{FIGURES, Footprint, Held};
use slablab_bench::output::{bench_answer, native_answer};
use slablab_bench::own;
use slablab_bench::patterns::{Contestant, Group, Workload};
use slablab_bench::predicted;
use slablab_bench::report::{Report, Verdict, verdict};
use slablab_bench::rig::{self, Lane, MEMORY, Options, Ran, Results, Watcher};
use slablab_bench::stats::Estimate;
use slablab_bench::subject::Role;

/// Continues for this number of samples.
struct Until(u64);

impl Watcher for Until {
    fn at(&self, done: u64, _whole: u64) -> bool {
        done < self.0
    }
}

/// A child that is this test program; see `child_process`.
fn child() -> Child {
    Child {
        program: std::env::current_exe().expect("it runs"),
        args: ["child_process", "--exact", "--nocapture", "--"].map(String::from).to_vec(),
        env: vec![("SLABLAB_BENCH_CHILD".into(), "1".into())],
    }
}

/// The code that a child process runs. In the test run itself it has no effect.
#[test]
fn child_process() {
    if std::env::var_os("SLABLAB_BENCH_CHILD").is_none() {
        return;
    }
    let args: Vec<String> = std::env::args().collect();
    let [name, bytes, seed] = &args[args.len() - 3..] else { unreachable!("three are sliced") };
    let number = |text: &str| text.parse().expect("a number");
    println!("\n{}", child::serve(name, number(bytes), number(seed)).expect("it is an allocator"));
}

fn options(workloads: &[&str], allocators: &[&str]) -> Options {
    Options {
        workloads: workloads.iter().map(|name| name.to_string()).collect(),
        allocators: allocators.iter().map(|name| name.to_string()).collect(),
        repeats: 3,
        scale: 0.01,
        seed: 5,
        child: Some(child()),
        memory_bytes: 2_000_000,
    }
}

/// Every contestant runs every workload, and every block is proved to be its allocator's.
#[test]
fn everything_runs() {
    let results = rig::run(&options(&[], &[]), &Until(u64::MAX)).expect("all proofs hold");
    assert_eq!(results.blocks, 3);
    let cpus = slablab_bench::threads::cpus().len();
    let usual = |workload: &Workload| workload.cpus <= cpus && !workload.group.is_long();
    let expected = own::workloads().into_iter().filter(usual);
    for (ran, workload) in results.ran.iter().zip(expected) {
        assert_eq!(ran.workload.name, workload.name);
        assert_eq!(ran.lanes.len(), workload.contestants.len(), "{}", workload.name);
        for lane in &ran.lanes {
            assert_eq!(lane.samples.len(), 3, "{} of {}", lane.contestant.name, workload.name);
            let walls = workload.group == Group::Threads || workload.group.is_alone();
            assert!(lane.samples.iter().all(|one| one.ops > 0 && one.wall_ns.is_some() == walls));
            assert!(lane.samples.iter().all(|one| one.costs.is_some() == workload.group.is_alone()));
        }
    }
    assert!(results.memory.iter().all(|(_, all)| all.len() == 3));
    let (_, glibc) =
        results.memory.iter().find(|(held, _)| held.name == "glibc").expect("it is always there");
    assert!((0.9..2.0).contains(&glibc[0].bytes_per_byte), "{glibc:?}");
    let report = Report::new(&results);
    let answer = bench_answer(&report);
    let text = answer.text(true);
    for words in [
        "pair64",
        "slablab",
        "glibc",
        "LOST",
        "false alarms",
        "later still",
        "tls-list-pair",
        "large-slots",
        "medium-slots",
        "fault share %",
    ] {
        // At this size it is random whether a row is lost.
        assert!(words == "LOST" || text.contains(words), "no {words:?} in {text}");
    }
    assert!(text.lines().all(|line| line == line.trim_end()), "blanks at line ends: {text}");
    let page = answer.page("slablab bench");
    assert!(page.contains("batch4096x64") && page.contains("</html>"));
    check_machines(&report);
}

/// Checks that JSON and CSV have equal figures.
fn check_machines(report: &Report) {
    let answer = bench_answer(report);
    let json = answer.json();
    assert_eq!(json["schema"], "slablab.bench.1");
    let workloads = json["workloads"].as_array().expect("a list");
    assert_eq!(workloads.len(), report.rows.len());
    let csv = answer.csv().expect("rows");
    let mut lines = csv::Reader::from_reader(csv.as_bytes());
    let records: Vec<csv::StringRecord> =
        lines.records().map(|line| line.expect("a row as long as the header")).collect();
    for workload in workloads {
        for cell in workload["cells"].as_array().expect("a list") {
            let same = |record: &&csv::StringRecord| {
                record[0] == workload["name"] && record[2] == cell["name"] && &record[4] == "cpu"
            };
            let record = records.iter().find(same).expect("a line per figure");
            let median = cell["cpu_ns"]["median"].as_f64().expect("a number");
            assert_eq!(record[6], format!("{median:.4}"));
            let samples = cell["samples_ns"].as_array().expect("a list");
            assert_eq!(samples.len(), report.blocks);
            // Every sample of this one has as many operations as the first.
            if workload["name"] == "cfrac-like" {
                let costs = cell["process"]["samples"].as_array().expect("a list");
                let number = |value: &Value| value.as_f64().expect("a number");
                let ns = |one: &Value| number(&one["user_ns"]) + number(&one["system_ns"]);
                let per_op: Vec<f64> = costs.iter().map(|one| ns(one) / number(&workload["ops"])).collect();
                assert_eq!(samples.iter().map(number).collect::<Vec<f64>>(), per_op);
            }
        }
    }
    let of_memory = records.iter().filter(|record| &record[1] == "memory").count();
    assert_eq!(of_memory, report.memory.len() * FIGURES.len());
}

/// The workloads that run only if they are named: each call is timed, and the day of a service is whole.
#[test]
fn latencies_and_a_day() {
    let mut options = options(&["latency", "service"], &["slablab", "glibc", "harness"]);
    (options.repeats, options.scale) = (1, 0.002);
    let results = rig::run(&options, &Until(u64::MAX)).expect("all proofs hold");
    let report = Report::new(&results);
    let names: Vec<(&str, usize)> = report.rows.iter().map(|row| (row.name, row.cells.len())).collect();
    assert_eq!(names, [("latency", 3), ("latency-threads", 3), ("service", 2)]);
    for cell in report.rows[..2].iter().flat_map(|row| &row.cells) {
        let calls = cell.calls.expect("each call is timed");
        for (call, times) in calls.each() {
            let all = times.calls + times.left_out;
            assert!((30_000..200_000).contains(&all), "{call} of {}: {all}", cell.name);
            let order = [times.p50_ns, times.p99_ns, times.p99_9_ns, times.p99_99_ns, times.longest_ns];
            assert!(order.is_sorted() && order[4] > 0.0, "{call} of {}: {times:?}", cell.name);
        }
        assert_eq!((cell.ratio, cell.day), (None, None), "CPU time is the clock's");
    }
    for cell in &report.rows[2].cells {
        let day = cell.day.expect("it is a service");
        let [ramp, peak, flushed] = [5, 11, 12].map(|at| day.moments[at].live_mb);
        assert!(ramp < peak && flushed < peak / 2.0, "{}: {day:?}", cell.name);
        let live = report.rows[2].cells[0].day.expect("it is a service").moments.map(|moment| moment.live_mb);
        assert_eq!(day.moments.map(|moment| moment.live_mb), live, "every allocator has the same requests");
        assert!(day.moments.iter().all(|moment| moment.resident_mb > 0.5 * moment.live_mb), "{day:?}");
    }
    let answer = bench_answer(&report);
    let (text, csv, page) = (answer.text(true), answer.csv().expect("rows"), answer.page("slablab bench"));
    for words in
        ["malloc of latency: ", "free of latency-threads: ", "p99.99", "MB resident at shares", "live"]
    {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    for line in
        ["latency,latency,glibc,peer,malloc p99.99,ns,", "service,service,slablab,ours,resident at 0.60,MB,"]
    {
        assert!(csv.contains(line), "no {line:?} in {csv}");
    }
    assert!(page.contains("share of the day") && page.contains("p99.99 of free"));
    assert!(answer.within(Some(80)).text(false).lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn only_chosen_workloads_and_allocators_run() {
    let results = rig::run(&options(&["pair64", "caches"], &["slablab", "tls-list"]), &Until(u64::MAX));
    let results = results.expect("all proofs hold");
    let ran: Vec<(&str, Vec<&str>)> = results
        .ran
        .iter()
        .map(|ran| (ran.workload.name, ran.lanes.iter().map(|lane| lane.contestant.name).collect()))
        .collect();
    let list = || vec!["tls-list"];
    let expected =
        [("pair64", vec!["slablab"]), ("cache64", list()), ("cache4096", list()), ("cache64-many", list())];
    assert_eq!(ran, expected);
    assert!(results.memory.is_empty(), "memory was not asked for");
    let memory = rig::run(&options(&[MEMORY], &["glibc"]), &Until(u64::MAX)).expect("a child answers");
    assert!(memory.ran.is_empty());
    assert_eq!(memory.memory.len(), 1);
}

#[test]
fn an_interrupted_run_has_complete_blocks() {
    // Two contestants: five samples are two and a half blocks.
    let results = rig::run(&options(&["pair64"], &["slablab", "glibc"]), &Until(5)).expect("it is no error");
    assert_eq!(results.blocks, 2);
    assert!(results.ran[0].lanes.iter().all(|lane| lane.samples.len() == 2));
    assert!(results.notes.iter().any(|note| note == "interrupted: 2 of 3 blocks are complete"));
    let nothing = rig::run(&options(&["pair64"], &[]), &Until(0)).expect("it is no error");
    assert!(Report::new(&nothing).rows.is_empty());
}

/// A child that fails is an error, except when the run is to end: the child got the signal, too.
#[test]
fn a_child_that_fails() {
    let mut options = options(&["cfrac-like"], &["glibc"]);
    let fails = Child { program: "/bin/false".into(), args: Vec::new(), env: Vec::new() };
    options.child = Some(fails);
    let error = rig::run(&options, &Until(u64::MAX)).expect_err("the child fails");
    assert!(error.starts_with("cfrac-like: a process of cfrac-like/glibc: exit status: 1"), "{error}");
    let ended = rig::run(&options, &Until(1)).expect("it is no error");
    assert_eq!(ended.blocks, 0);
    options.child = None;
    let left_out = rig::run(&options, &Until(u64::MAX)).expect("nothing runs");
    assert!(left_out.ran.is_empty());
    assert_eq!(left_out.notes[0], "cfrac-like needs a process of its own: left out");
}

#[test]
fn unknown_names_are_errors() {
    for (workloads, allocators, said) in [
        (&["pair65"][..], &[][..], "--workloads pair65: expected some of single, threads,"),
        (&[], &["libc"], "--allocators libc: expected some of slablab, slub@6.1,"),
    ] {
        let error = rig::run(&options(workloads, allocators), &Until(0)).expect_err("the name is unknown");
        assert!(error.starts_with(said), "{error}");
    }
}

/// Results with given samples in ns per operation: ours, a slow peer, a fast peer, the twin.
fn results(times: [&[f64]; 4]) -> Results {
    let names = [("a", Role::Ours), ("b", Role::Peer), ("c", Role::Peer), ("t", Role::Twin)];
    let sample = |ns: &f64| Sample { ops: 1000, cpu_ns: (ns * 1000.0) as u64, ..Sample::default() };
    let lane = |((name, role), times): ((&'static str, Role), &[f64])| Lane {
        contestant: Contestant { name, role, evidence: "none", run: |_| Ok(Sample::default()) },
        samples: times.iter().map(sample).collect(),
    };
    let mut workload = own::workloads().remove(0);
    workload.contestants.clear();
    Results {
        options: options(&[], &[]),
        ran: vec![Ran { workload, lanes: names.into_iter().zip(times).map(lane).collect() }],
        memory: Vec::<(Held, _)>::new(),
        blocks: times[0].len(),
        notes: Vec::new(),
        load: [0.0, 0.0],
    }
}

/// Peaks are compared with those of the leanest peer, block by block; the price of the faults is a share of
/// the CPU time.
#[test]
fn costs_of_known_samples() {
    let mut results = results([&[2.0; 8], &[9.0; 8], &[4.0; 8], &[2.0; 8]]);
    // Peaks in MB in even and in odd blocks.
    let peaks = [[30, 60], [20, 40], [50, 90], [30, 60]];
    for (lane, peaks) in results.ran[0].lanes.iter_mut().zip(peaks) {
        for (block, sample) in lane.samples.iter_mut().enumerate() {
            sample.costs = Some(Costs {
                user_ns: 500,
                system_ns: sample.cpu_ns - 500,
                faults: 4,
                peak_bytes: peaks[block % 2] * 1_000_000,
                fault_ns: 100.0,
            });
        }
    }
    let report = Report::new(&results);
    let row = &report.rows[0];
    assert_eq!((row.best_peer, row.leanest_peer), (Some("c"), Some("b")));
    let process = |cell: usize| row.cells[cell].process.as_ref().expect("every sample has costs");
    let ratio = Estimate { median: 1.5, low: 1.5, high: 1.5 };
    assert_eq!((process(0).peak_ratio, process(0).peak_verdict), (Some(ratio), Some(Verdict::Lost)));
    assert_eq!((process(1).peak_ratio, process(1).peak_mb.median), (None, 30.0));
    // 1000 operations in 2000 ns, 1500 of them in the kernel; 4 faults of 100 ns.
    assert_eq!(process(0).figures, [4.0, 100.0, 20.0, 75.0, 1.6]);
    let csv = bench_answer(&report).csv().expect("rows");
    for line in [
        ",peak,MB,45.0000,30.0000,60.0000,8,",
        ",peak ratio,,1.5000,1.5000,1.5000,8,b,lost",
        ",fault share,%,20.0000,,,8,",
    ] {
        assert!(csv.contains(line), "no {line:?} in {csv}");
    }
    // A sample that ran beside others has no costs: then the row has none.
    results.ran[0].lanes[1].samples[3].costs = None;
    let report = Report::new(&results);
    assert!(report.rows[0].cells[1].process.is_none() && report.rows[0].leanest_peer == Some("c"));
}

/// Ratios are computed inside blocks, so a machine that is slower in some blocks does not change them.
#[test]
fn ratios_of_known_samples() {
    let speeds = [1.0, 3.0, 1.0, 2.0, 1.0, 5.0, 1.0, 1.0];
    let times = |ns: f64| speeds.map(|speed| ns * speed);
    let cases = [(2.0, 0.5, Verdict::Won), (4.0, 1.0, Verdict::Even), (6.0, 1.5, Verdict::Lost)];
    for (ours, ratio, said) in cases {
        let report = Report::new(&results([&times(ours), &times(9.0), &times(4.0), &times(ours)]));
        let row = &report.rows[0];
        assert_eq!(row.best_peer, Some("c"), "the one with the least");
        assert_eq!(row.twin, Some(Estimate { median: 1.0, low: 1.0, high: 1.0 }));
        assert_eq!(row.cells[0].ratio, Some(Estimate { median: ratio, low: ratio, high: ratio }));
        assert_eq!(row.cells[0].verdict, Some(said));
        assert_eq!((row.cells[1].ratio, row.cells[2].ratio), (None, None), "peers are not compared");
        assert_eq!(row.cells[0].cpu_ns.median, ours);
        assert_eq!(report.false_alarms(), (0, 1));
        assert_eq!(report.lost().len(), usize::from(said == Verdict::Lost));
    }
    let alarm = Report::new(&results([&times(2.0), &times(9.0), &times(4.0), &times(2.1)]));
    assert_eq!(alarm.false_alarms(), (1, 1));
    let interval = |low, high| verdict(&Estimate { median: 1.0, low, high });
    assert_eq!(
        [interval(0.9, 1.1), interval(0.8, 0.99), interval(1.01, 2.0)],
        [Verdict::Even, Verdict::Won, Verdict::Lost]
    );
}

/// Runs that give no verdict, each with a word of the reason: in each the ratios stay, and the verdicts go.
#[test]
fn a_busy_machine_gives_no_verdict() {
    let calm = [2.0; 8];
    // The twin over slablab, block by block: half of the blocks are far off.
    let wild = [2.0, 4.0, 1.0, 6.0, 0.5, 2.0, 8.0, 1.0];
    let cpus = slablab_bench::threads::cpus().len() as f64;
    for (twin, load, blocks, why) in [
        (calm, [0.0, 0.0], 8, None),
        (calm, [cpus, cpus + 1.0], 8, None),
        (calm, [cpus + 1.0, 0.0], 8, Some("other threads wanted to run")),
        (calm, [0.0, cpus + 2.0], 8, Some("other threads wanted to run")),
        (wild, [0.0, 0.0], 8, Some("slablab against itself is known to")),
        (calm, [0.0, 0.0], 7, Some("7 blocks are too few")),
    ] {
        let mut results =
            results([&calm[..blocks], &[9.0; 8][..blocks], &[4.0; 8][..blocks], &twin[..blocks]]);
        results.load = load;
        let report = Report::new(&results);
        let cells = &report.rows[0].cells;
        assert!(cells[0].ratio.is_some() && cells[3].ratio.is_some(), "{why:?}");
        assert_eq!(cells[3].verdict, None, "the twin is not ours");
        let expected = if why.is_none() { [1, 0, 0] } else { [0, 0, 0] };
        assert_eq!(report.tally(), expected, "{why:?}: {:?}", report.no_verdict);
        let answer = bench_answer(&report).within(Some(1000));
        let text = answer.text(false);
        assert_eq!(text.starts_with("No verdict: "), why.is_some(), "{text}");
        assert!(text.contains(why.unwrap_or("win 1, are even in 0 and lose 0")), "{text}");
        assert_eq!(text.contains("] won"), why.is_none(), "{text}");
        let page = answer.page("bench");
        let lede = &page[page.find("<p class=\"lede\">").expect("a lede")..];
        let lede = &lede[..lede.find("</p>").expect("its end")];
        assert!(lede.contains(why.unwrap_or("win 1, are even in 0 and lose 0")), "{lede}");
        assert!(page.contains("95 % interval"), "bars have intervals");
    }
}

/// What is asked, in one sentence, in each situation; nothing of the text is wider than a terminal.
#[test]
fn the_answer_is_one_sentence() {
    let check = |results: &Results, expected: &str| {
        let answer = bench_answer(&Report::new(results));
        assert_eq!(answer.sentence(), expected);
        let text = answer.text(false);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    };
    let compared = results([&[2.0; 8], &[9.0; 8], &[4.0; 8], &[2.0; 8]]);
    check(
        &compared,
        "Compared with each workload's best peer, slablab's allocators win 1, are even in 0 and lose 0.",
    );
    let few = results([&[2.0; 7], &[9.0; 7], &[4.0; 7], &[2.0; 7]]);
    check(&few, "No verdict: 7 blocks are too few for intervals: expected 8 or more.");
    let mut alone = results([&[2.0; 8], &[9.0; 8], &[4.0; 8], &[2.0; 8]]);
    alone.ran[0].lanes.truncate(1);
    check(&alone, "Times of allocators; none of them is compared with a peer.");
    let mut memory = results([&[], &[], &[], &[]]);
    check(&memory, "Nothing was measured: no block is complete.");
    let held = |name, bytes_per_byte| {
        let footprint = Footprint { bytes_per_byte, ..footprint() };
        (Held { name, role: Role::Peer }, vec![footprint])
    };
    memory.memory = vec![held("a", 1.25), held("b", 1.125)];
    check(&memory, "Of 2 allocators b has the least resident memory: 1.125 bytes for each live byte.");
}

fn footprint() -> Footprint {
    Footprint {
        start_bytes: 0.0,
        thread_bytes: 1e3,
        bytes_per_byte: 1.0,
        churn_peak_per_byte: 1.0,
        churn_ns: 1.0,
        kept_most_bytes: 1e6,
        kept_most_later_bytes: 1e6,
        kept_bytes: 1e6,
        kept_later_bytes: 1e6,
    }
}

/// Native costs beside the model's, but for the row that the model is fitted to.
#[test]
fn a_model_is_judged_in_one_sentence() {
    let row = |pattern, native, modelled, fitted| {
        let native = [native, native, native + 1.0];
        predicted::Row { pattern, engine: "slqb", native, modelled, fitted }
    };
    let check = |rows: &[predicted::Row], expected: &str| {
        let answer = native_answer(rows);
        assert_eq!(answer.sentence(), expected);
        let text = answer.text(false);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(answer.json()["rows"].as_array().map(Vec::len), Some(rows.len()));
    };
    let fitted = row("pair", 10.0, 10.0, true);
    check(std::slice::from_ref(&fitted), "No cost was measured beside the one that the model is fitted to.");
    check(
        &[fitted, row("batch of 10", 20.0, 30.0, false), row("batch of 100", 20.0, 10.0, false)],
        "The model predicts 0.50 to 1.50 times the native cost of 2 rows that it is not fitted to; it is off most \
         in \"batch of 100\" of slqb: 10.0 ns, where 20.0 ns were measured.",
    );
}

/// Three false alarms in eight workloads have a chance of 0.6 %.
#[test]
fn false_alarms_of_many_workloads_take_the_verdicts() {
    for (alarms, why) in [(2, None), (3, Some("slablab differs from itself in 3 of 8 workloads"))] {
        let mut all = results([&[2.0; 8], &[9.0; 8], &[4.0; 8], &[2.0; 8]]);
        for index in 1..8 {
            let twin = if index <= alarms { 2.1 } else { 2.0 };
            all.ran.extend(results([&[2.0; 8], &[9.0; 8], &[4.0; 8], &[twin; 8]]).ran);
        }
        let report = Report::new(&all);
        assert_eq!(report.false_alarms(), (alarms, 8));
        assert_eq!(report.no_verdict.first().map(|said| &said[..why.map_or(0, str::len)]), why);
        assert_eq!(report.tally()[0], if why.is_none() { 8 } else { 0 });
    }
}
