//! Memory pressure: the bundled runs, and the judge on real and on made runs.

use slablab_experiment::Pulse;
use slablab_experiment::output::judgement_answer;
use slablab_experiment::pressure::judge::{Judgement, SEEDS_LEAST, Spread, Verdict, judge};
use slablab_experiment::pressure::looked::Recorder;
use slablab_experiment::pressure::measure::MEASURES;
use slablab_experiment::pressure::outcome::Share;
use slablab_experiment::pressure::run::{Options, RUN};
use slablab_experiment::pressure::runs::{Run, Runs};
use slablab_experiment::pressure::script;
use slablab_experiment::pressure::tally::{Tally, null_tallies, repeat_tallies, tallies};
use slablab_readers::vmrecord::{Counter, ObjectResidency, Phase, Record, Residency, State};
use slablab_trace::script::Script;
use std::path::Path;
use std::sync::{Arc, LazyLock};

static REAL: LazyLock<Runs> = LazyLock::new(Runs::bundled);

#[test]
fn the_bundled_runs_are_whole() {
    assert_eq!(REAL.scenarios.len(), 13);
    for (scenario, machines) in &REAL.scenarios {
        let names: Vec<&str> = machines.keys().map(String::as_str).collect();
        assert_eq!(names, ["61-classic", "61-mglru", "612-classic", "612-mglru"], "{scenario}");
        let processes = match scenario.as_str() {
            "closeall_lifo" => 6,
            "compete" => 3,
            _ => 1,
        };
        for (machine, repeats) in machines {
            assert_eq!(repeats.len(), 2, "{scenario} {machine}");
            assert!(repeats.iter().all(|run| run.len() == processes), "{scenario} {machine}");
        }
    }
}

/// Every phase of a script is in its records, in the script's order.
#[test]
fn records_have_the_phases_of_their_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/vm");
    for (scenario, machines) in &REAL.scenarios {
        let script = script::load(&folder.join(format!("{scenario}.t"))).unwrap();
        let phases = script.commands.iter().filter_map(|line| match &line.command {
            slablab_trace::script::Command::Phase(label) => Some(label.as_str()),
            _ => None,
        });
        let phases: Vec<&str> = phases.collect();
        for (machine, run) in
            machines.iter().flat_map(|(machine, runs)| runs.iter().map(move |run| (machine, run)))
        {
            let record = &run[""];
            let recorded: Vec<&str> = record.phases.iter().map(|phase| phase.name.as_str()).collect();
            assert!(phases.starts_with(&recorded), "{scenario} {machine}: {recorded:?}");
            assert_eq!(record.is_complete, recorded.len() == phases.len(), "{scenario} {machine}");
            for object in &record.phases[0].residency {
                let declared = script.objects.iter().find(|declared| declared.name == object.name);
                assert_eq!(declared.map(|declared| declared.pages), Some(object.pages.pages()), "{scenario}");
            }
        }
    }
}

/// The values that the record shows, in pages, faults and objects.
#[test]
fn measures_of_a_real_phase() {
    let record = &REAL.scenarios["uniswap"]["61-classic"][0][""];
    let values = MEASURES.iter().map(|measure| measure.of(record, "uni_read"));
    let expected = [6894, 6917, 6917, 6917, 6593, 6931, 6917, 22].map(Some);
    assert_eq!(values.take(8).collect::<Vec<_>>(), expected);
    let freed = MEASURES.iter().find(|measure| measure.name == "slab_objects_freed").unwrap();
    let slabfill = &REAL.scenarios["slabfill"]["61-mglru"][0][""];
    assert_eq!([freed.of(record, "uni_read"), freed.of(slabfill, "stat1")], [None, None]);
    assert!(freed.of(slabfill, "anon_fill").unwrap() > 10_000);
}

/// The judge on real runs alone gives the numbers that docs/results/pressure.md has. A run beside itself
/// agrees in all.
#[test]
fn real_runs_as_a_model() {
    let same = tallies(&judge(&REAL, &REAL));
    for tally in &same {
        assert_eq!((tally.differs(), tally.same_signs), (0, tally.signs), "{tally:?}");
        let repeats = tally.repeats.unwrap();
        assert!(tally.agreement > repeats && repeats > tally.random, "{tally:?}");
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/pressure.md");
    let page = std::fs::read_to_string(page).unwrap();
    let check = |name: &str, tallies: &[Tally], value: &dyn Fn(&Tally) -> String| {
        let row = format!("| {name} | {} |", tallies.iter().map(value).collect::<Vec<_>>().join(" | "));
        assert!(page.contains(&row), "docs/results/pressure.md lacks\n{row}");
    };
    check("judged cells", &same, &|tally| tally.cells.to_string());
    for machine in ["61-classic", "61-mglru", "612-classic", "612-mglru"] {
        let tallies = tallies(&judge(&REAL, &REAL.all_as(machine)));
        check(&format!("real {machine} for all"), &tallies, &|tally| tally.differs().to_string());
    }
    check("one real repeat by the other", &repeat_tallies(&REAL), &|tally| tally.differs().to_string());
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    check("maps", &same, &|tally| tally.maps.to_string());
    check("real repeats", &same, &|tally| percent(tally.repeats.unwrap()));
    check("as many pages, at random", &same, &|tally| percent(tally.random));
    check("real 61-classic", &same, &|tally| percent(tally.null_machine.unwrap()));
    check("signs", &same, &|tally| tally.signs.to_string());
    let said = said(&judge(&REAL, &REAL), &REAL, "table");
    assert!(said.contains("frag 61-mglru: completed: real 1 of 2, modelled 1 of 2"), "{said}");
}

/// The answer in a form, beside the null answers of real runs.
fn said(judgement: &Judgement, real: &Runs, form: &str) -> String {
    let answer = judgement_answer(judgement, &null_tallies(real), &repeat_tallies(real));
    answer.text_of(form, true).expect("a form of the answer")
}

fn run(pswpout: i64, pages: &[State], is_complete: bool) -> Arc<Run> {
    let counter = |name: &str, delta| Counter { name: name.into(), delta, value: 0 };
    let phase = Phase {
        name: "fill".into(),
        elapsed_ns: 1_000_000 * pswpout as u64,
        vmstat: vec![counter("pswpout", pswpout), counter("pgsteal_kswapd", 7 * pswpout)],
        residency: vec![ObjectResidency { name: "a".into(), pages: Residency::of(pages.iter().copied()) }],
        ..Phase::default()
    };
    Arc::new(Run::from([(String::new(), Record { phases: vec![phase], notes: Vec::new(), is_complete })]))
}

const IN: State = State::Present;
const OUT: State = State::Swapped;

/// Runs of one scenario: for each machine the counts of its repeats.
fn made(scenario: &str, machines: &[(&str, &[i64])]) -> Runs {
    let mut runs = Runs::default();
    for (machine, counts) in machines {
        for count in *counts {
            runs.add(scenario.into(), machine.to_string(), run(*count, &[IN, OUT, IN, OUT], *count > 0));
        }
    }
    runs
}

fn verdict(judgement: &Judgement, measure: &str) -> Verdict {
    judgement.cells.iter().find(|cell| cell.measure.name == measure).unwrap().verdict
}

#[test]
fn verdicts_at_their_thresholds() {
    for (real, modelled, expected) in [
        (&[1000, 2000][..], &[1000][..], Verdict::Inside),
        (&[1000, 2000], &[2000, 2000], Verdict::Inside),
        (&[1000, 1000], &[850], Verdict::Near),
        (&[1000, 1000], &[849], Verdict::Differs),
        (&[1000, 1000], &[1150], Verdict::Near),
        (&[1000, 1000], &[1151], Verdict::Differs),
        (&[1000, 1000], &[500, 1500], Verdict::Inside),
        (&[0, 0], &[63], Verdict::Small),
        (&[0, 0], &[64], Verdict::Differs),
        (&[63, 63], &[0], Verdict::Small),
        (&[64, 64], &[0], Verdict::Differs),
    ] {
        let judgement = judge(&made("s", &[("61-classic", real)]), &made("s", &[("61-classic", modelled)]));
        assert_eq!(verdict(&judgement, "pswpout"), expected, "{real:?} {modelled:?}");
        assert_eq!(verdict(&judgement, "majflt"), Verdict::Small);
    }
    let spread = Spread::of(&[3, 1, 5]).unwrap();
    assert_eq!((spread.mean, spread.min, spread.max), (3.0, 1, 5));
}

#[test]
fn signs_of_differences_beyond_the_spread() {
    #[track_caller]
    fn check(classic: &[i64], mglru: &[i64], modelled: [i64; 2], expected: &[bool]) {
        let machines = |counts: [&[i64]; 2]| made("s", &[("61-classic", counts[0]), ("61-mglru", counts[1])]);
        let judgement = judge(&machines([classic, mglru]), &machines([&[modelled[0]], &[modelled[1]]]));
        let signs = judgement.signs.iter().filter(|sign| sign.measure.name == "pswpout");
        assert_eq!(signs.map(|sign| sign.is_same()).collect::<Vec<_>>(), expected, "{classic:?} {mglru:?}");
    }
    check(&[100, 120], &[500, 600], [100, 101], &[true]);
    check(&[100, 120], &[500, 600], [101, 100], &[false]);
    check(&[100, 120], &[500, 600], [100, 100], &[false]);
    check(&[100, 550], &[500, 600], [100, 200], &[]);
    check(&[100, 100], &[160, 160], [100, 200], &[]);
    check(&[1000, 1000], &[1100, 1100], [100, 200], &[]);
}

#[test]
fn pages_beside_null_answers() {
    let mut real = Runs::default();
    real.add("s".into(), "61-mglru".into(), run(1, &[IN, IN, OUT, OUT], true));
    real.add("s".into(), "61-mglru".into(), run(1, &[IN, IN, IN, OUT], true));
    real.add("s".into(), "61-classic".into(), run(1, &[OUT, OUT, OUT, OUT], true));
    let mut modelled = Runs::default();
    modelled.add("s".into(), "61-mglru".into(), run(1, &[IN, OUT, OUT, OUT], true));
    let judgement = judge(&real, &modelled);
    let [cell] = &judgement.pages[..] else { panic!("{:?}", judgement.pages) };
    // Modelled: 3 and 2 of 4; repeats 3 of 4; at random 1/4 + 1/4 and 9/16 + 1/16; classic 2 and 1 of 4.
    assert_eq!((cell.agreement, cell.repeats), (0.625, Some(0.75)));
    assert_eq!((cell.random, cell.null_machine), (0.5625, Some(0.375)));
    assert!(cell.is_counted());
    let pages = said(&judgement, &real, "pages");
    assert!(pages.contains("s,61-mglru,,fill,a,62.5"), "{pages}");
}

#[test]
fn bimodal_scenarios_are_judged_by_their_outcomes() {
    let (real, modelled) =
        (made("compete", &[("61-mglru", &[0, 5000])]), made("compete", &[("61-mglru", &[64, 63, 1])]));
    let judgement = judge(&real, &modelled);
    let outcome = &judgement.outcomes[0];
    let shares = [Share { had: 1, runs: 2 }, Share { had: 1, runs: 3 }];
    assert_eq!([outcome.real, outcome.modelled], shares);
    assert_eq!(tallies(&judgement)[0].cells, 0);
    let csv = said(&judgement, &real, "csv");
    assert!(csv.contains("compete,61-mglru,,fill,pswpout,2500"), "{csv}");
    let judgement =
        judge(&made("frag", &[("61-mglru", &[0, 5])]), &made("frag", &[("61-mglru", &[0, 0, 1])]));
    assert_eq!([judgement.outcomes[0].real, judgement.outcomes[0].modelled], shares);
}

/// The sentence in the situations that it tells apart, and the columns that the text has at most.
#[test]
fn the_sentence_says_how_much_differs() {
    #[track_caller]
    fn check(real: &Runs, modelled: &Runs, expected: &str) {
        let judgement = judge(real, modelled);
        let answer = judgement_answer(&judgement, &null_tallies(real), &repeat_tallies(real));
        assert_eq!(answer.sentence(), expected);
        let text = answer.text(false);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let both = |counts: [&[i64]; 2]| made("s", &[("61-classic", counts[0]), ("61-mglru", counts[1])]);
    check(&Runs::default(), &Runs::default(), "The records have no count that is judged.");
    let two = made("compete", &[("61-mglru", &[0, 5000])]);
    let none = "None of the 8 judged counts of 61-mglru is of a scenario with one behaviour.";
    check(&two, &two, none);
    let pages = "100.0 % of pages are in the same state";
    let one = made("s", &[("61-mglru", &[1_000])]);
    check(
        &one,
        &one,
        &format!("Of 8 judged counts of 61-mglru none differs from the real kernel's; {pages}."),
    );
    let real = both([&[1_000, 1_000], &[1_000, 2_000]]);
    let of = "judged counts of 2 machines";
    let repeat = format!("from the real kernel's, where 2 differ between two real runs; {pages}.");
    check(&real, &both([&[1_000], &[1_500]]), &format!("Of 16 {of} none differs {repeat}"));
    check(&real, &both([&[1_000], &[9_000]]), &format!("Of 16 {of} 2 differ {repeat}"));
}

#[test]
fn two_behaviours_are_compared_as_distributions() {
    #[track_caller]
    fn check(machine: &str, real: &[i64], modelled: &[i64], expected: Verdict) {
        let of = |values| made("hotanon_stream_swp200", &[(machine, values)]);
        let judgement = judge(&of(real), &of(modelled));
        assert_eq!(verdict(&judgement, "pswpout"), expected, "{machine}: {real:?} {modelled:?}");
        let is_two = machine.starts_with("612-");
        assert_eq!(judgement.outcomes.len(), usize::from(is_two));
        assert_eq!(tallies(&judgement)[0].bimodal[0] > 0, is_two, "{machine}");
    }
    let apart = [0, 1, 2, 3, 4, 5, 6, 7];
    check("612-mglru", &[11_870, 12_354], &apart, Verdict::Differs);
    // One seed of eight has the other behaviour, on one side or between the repeats.
    check("612-mglru", &[11_870, 12_354], &[0, 1, 2, 3, 4, 5, 6, 12_000], Verdict::Alike);
    check("612-mglru", &[11_870, 12_354], &[0, 1, 2, 3, 4, 5, 6, 13_000], Verdict::Alike);
    // The mean of 1,500 would differ.
    check("612-mglru", &[0, 12_000], &[1_500; 8], Verdict::Alike);
    // Seven seeds are too few for two repeats, six are not for three.
    check("612-mglru", &[11_870, 12_354], &apart[..7], Verdict::Undecided);
    check("612-mglru", &[11_870, 12_000, 12_354], &apart[..6], Verdict::Differs);
    check("612-mglru", &[5, 63], &apart, Verdict::Small);
    // The other machines of the scenario have one behaviour.
    check("61-mglru", &[11_870, 12_354], &[0, 1, 2, 3, 4, 5, 6, 12_000], Verdict::Differs);
    assert_eq!(SEEDS_LEAST, 8);
}

/// A count of which the repeats lie apart by more than their mean is judged as a distribution and counted
/// apart; also where a repeat alone is the real side.
#[test]
fn two_behaviours_are_found_from_the_repeats() {
    #[track_caller]
    fn check(real: &[i64], modelled: &[i64], expected: Verdict, is_of_two: bool) {
        let of = |values| made("s", &[("61-mglru", values)]);
        let (real, modelled) = (of(real), of(modelled));
        let judgement = judge(&real, &modelled);
        assert_eq!(verdict(&judgement, "pswpout"), expected, "{real:?} {modelled:?}");
        // Swapped and stolen pages; the other six are 0 in all runs.
        let of_two = if is_of_two { 2 } else { 0 };
        for tally in tallies(&judgement).iter().chain(&repeat_tallies(&real)) {
            assert_eq!((tally.cells, tally.bimodal[0]), (8 - of_two, of_two), "{tally:?}");
        }
    }
    check(&[200, 500], &[900; 8], Verdict::Differs, false);
    check(&[100, 500], &[300; 8], Verdict::Alike, true);
    check(&[100, 500], &[900; 8], Verdict::Differs, true);
    check(&[100, 500], &[900; 7], Verdict::Undecided, true);
}

/// How runs end is a judged row of each scenario and machine.
#[test]
fn who_is_killed_is_judged() {
    // A run with no swapped page has no end here.
    for (real, modelled, differs) in
        [(&[5, 5][..], &[5][..], 0), (&[5, 5], &[0], 1), (&[0, 5], &[5, 5, 5], 0), (&[0, 0], &[5], 1)]
    {
        let of = |values| made("s", &[("61-mglru", values)]);
        let judgement = judge(&of(real), &of(modelled));
        assert_eq!(tallies(&judgement)[0].ends, [1, differs], "{real:?} {modelled:?}");
        let said = said(&judgement, &of(real), "table");
        assert!(
            said.contains(&format!("61-mglru: killed or not: {differs} of 1 scenarios differ")),
            "{said}"
        );
        let is_listed = said.contains("s 61-mglru: completed: real");
        assert_eq!(is_listed, real.contains(&0) || modelled.contains(&0), "{said}");
    }
}

/// Times are judged by their ranges, the short ones not.
#[test]
fn times_are_judged_by_ranges() {
    for (real, modelled, expected) in [
        (&[100, 200][..], &[200, 400][..], [1, 1]),
        (&[100, 200], &[201, 400], [1, 0]),
        (&[100, 200], &[1, 99], [1, 0]),
        (&[10, 63], &[63, 64], [0, 0]),
        (&[10, 20], &[64], [1, 0]),
    ] {
        let of = |values| made("s", &[("61-classic", values)]);
        let tally = tallies(&judge(&of(real), &of(modelled))).remove(0);
        assert_eq!(tally.times, expected, "{real:?} {modelled:?}");
        assert_eq!(tally.time_ratio.is_some(), expected[0] > 0, "{tally:?}");
    }
}

/// A count beside the null answer and the noise; records of one kernel have no null answer, and a record
/// without /proc/vmstat has no counts of it.
#[test]
fn counts_beside_null_answers() {
    let real = made("s", &[("61-classic", &[1_000, 1_200]), ("61-mglru", &[2_000, 2_400])]);
    let modelled = made("s", &[("61-mglru", &[1_100])]);
    let judgement = judge(&real, &modelled);
    let cell = judgement.cells.iter().find(|cell| cell.measure.name == "pswpout").unwrap();
    let (null, verdict) = cell.null_machine.unwrap();
    assert_eq!((null.mean, null.max, verdict), (1_100.0, 1_200, Verdict::Differs));
    assert!((cell.noise().unwrap() - 400.0 / 22.0).abs() < 1e-9);
    let csv = said(&judgement, &real, "csv");
    assert!(csv.contains("pswpout,2200,2000,2400,1100,1100,1100,1,differs,,18.182,1100,differs"), "{csv}");
    let table = said(&judgement, &real, "table");
    assert!(table.contains("1100  differs"), "{table}");

    let real = made("s", &[("61-mglru", &[2_000])]);
    let judgement = judge(&real, &modelled);
    let tally = &tallies(&judgement)[0];
    assert_eq!((tally.null_machine, tally.repeats, null_tallies(&real).len()), (None, None, 0));
    assert!(judgement.cells.iter().all(|cell| cell.null_machine.is_none()));
    let table = said(&judgement, &real, "table");
    assert!(table.contains("61-mglru"), "{table}");

    let mut record = real.scenarios["s"]["61-mglru"][0][""].clone();
    record.phases[0].vmstat.clear();
    let mut cut = Runs::default();
    cut.add("s".into(), "61-mglru".into(), Arc::new(Run::from([(String::new(), record)])));
    let names: Vec<&str> = judge(&cut, &modelled).cells.iter().map(|cell| cell.measure.name).collect();
    assert_eq!(names, ["majflt", "read_by_process", "elapsed_ms"]);
}

/// A folder laid out as the archive gives the same runs; other files in it are passed over.
#[test]
fn a_folder_is_read_as_the_archive() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pressure-runs");
    let _ = std::fs::remove_dir_all(&folder);
    for (machine, runs) in &REAL.scenarios["compete"] {
        for (run, number) in runs.iter().zip(1..) {
            let path = folder.join(format!("compete/{machine}-r{number}"));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("run.json"), "{}").unwrap();
            for (process, record) in run.iter() {
                let name = if process.is_empty() { "rec.xz".to_string() } else { format!("rec.{process}") };
                std::fs::write(path.join(name), record.write()).unwrap();
            }
        }
    }
    let read = Runs::open(&folder).unwrap();
    assert_eq!(read.scenarios["compete"], REAL.scenarios["compete"]);
    let bad = folder.join("compete/61-classic-r1/rec.x");
    std::fs::write(&bad, "@phase a\nbad\n").unwrap();
    let error = Runs::open(&folder).unwrap_err().to_string();
    assert!(error.contains("rec.x: line 2: expected a line of a phase"), "{error}");
    let error = Runs::open(&folder.join("compete")).unwrap_err().to_string();
    assert!(error.contains("expected SCENARIO/MACHINE-REPEAT/rec"), "{error}");
}

#[test]
fn a_script_error_names_its_file_and_line() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pressure-script");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("s.t"), "spawn a child.t\n").unwrap();
    std::fs::write(folder.join("child.t"), "anon heap 1\nacc x1 heep seq m w\n").unwrap();
    let error = script::load(&folder.join("s.t")).unwrap_err().to_string();
    assert!(error.contains("child.t: line 2: expected the name of an object"), "{error}");
    assert!(error.ends_with("near it: heap"), "{error}");
}

/// A run depends on its seed alone: where timers stand, what is free, how fast the host is.
#[test]
fn seeds_differ_and_repeat() {
    let text = "anon a 64\nphase fill\nacc x1 a seq m w\nphase read\nacc 2000 a uni m r\n";
    let script = Arc::new(Script::parse("s.t", text, &mut |_| Err(String::new())).unwrap());
    let set = ["free=12000".to_string(), "managed=20000".to_string()];
    let options = Options::of("vm@6.1,lru_gen", "slub@6.1", Path::new("vm-guest"), &set).unwrap();
    let runs: Vec<_> = [1, 2, 1].map(|seed| options.run(&script, seed).unwrap().records).into();
    assert_eq!(runs[0], runs[2]);
    let [one, two] = [&runs[0][0].1.phases[0], &runs[1][0].1.phases[0]];
    assert!(one.delta("pswpout") > 1_000 && one.delta("pswpout") != two.delta("pswpout"));
    assert_ne!(one.elapsed_ns, two.elapsed_ns);
    // What the real records say of the generations, the model says too.
    let generations = one.lru_gen().unwrap();
    let pages: u64 = generations.iter().map(|one| one.anon + one.file).sum();
    assert!(generations.len() >= 2 && (8_000..13_000).contains(&pages), "{generations:?}");
}

/// A run is the same whether it tells how far it is or not; at its end it has told the time of all of it, and
/// no part of it is left.
#[test]
fn a_run_that_tells_how_far_it_is_is_the_same() {
    let text = "anon a 32\nphase fill\nacc x1 a seq m w\nphase work\ncompute 3000\nacc 2000 a uni m r\n";
    let script = Arc::new(Script::parse("s.t", text, &mut |_| Err(String::new())).unwrap());
    let options = Options::of("vm@6.1", "slub@6.1", Path::new("vm-guest"), &[]).unwrap();
    let plain = options.run(&script, 1).unwrap();
    let pulse = Pulse::default();
    let recorder = Recorder::default().with_beat(pulse.run(RUN));
    let told = options.run_recorded(&script, 1, &recorder).unwrap();
    assert!(plain == told, "the records differ");
    let last = &told.records[0].1.phases[1];
    let (told, whole) = (pulse.simulated() / 1_000, last.uptime_ns);
    assert!(told <= whole && told > whole / 2, "told {told} ns of {whole}");
    assert!((1..RUN).contains(&pulse.partial()), "{}", pulse.partial());
    drop(recorder);
    assert_eq!(pulse.partial(), 0);
}

/// A node that is full of a file gives its pages to a request, if the mode says so, before another node does.
#[test]
fn a_node_is_reclaimed_before_another_one_gives_pages() {
    let text = "file f 60\nanon a 30\nphase read\nacc x1 f seq s r\nphase fill\nacc x1 a seq s w\n";
    let script = Arc::new(Script::parse("s.t", text, &mut |_| Err(String::new())).unwrap());
    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/machines/2-nodes.toml");
    let stolen = [0, 1].map(|mode| {
        let vm = format!("vm@6.1,zone_reclaim_mode={mode}");
        let options = Options::of(&vm, "slub@6.1", Path::new(machine), &[]).unwrap();
        let run = options.run(&script, 1).unwrap();
        run.records[0].1.phases.iter().map(|phase| phase.delta("pgsteal_direct")).sum::<i64>()
    });
    assert!(stolen[0] == 0 && stolen[1] > 1_000, "{stolen:?}");
}

/// The guests' CPU is emulated, and all that it does is slow: 40,000 lookups of cached names took 0.35 to
/// 1.54 s.
#[test]
fn cached_names_take_as_long_as_recorded() {
    let text = "phase new\nstat /data/tree 200 200 1\nphase cached\nstat /data/tree 200 200 1\n";
    let script = Arc::new(Script::parse("s.t", text, &mut |_| Err(String::new())).unwrap());
    let options = Options::of("vm@6.12", "slub@6.12", Path::new("vm-guest"), &[]).unwrap();
    let run = options.run(&script, 1).unwrap();
    let elapsed = run.records[0].1.phases[1].elapsed_ns;
    assert!((347_000_000..1_536_000_000).contains(&elapsed), "{elapsed}");
}
