//! The workload `recording`: a recording as tasks that wait for each other, and what an experiment may say.

use super::experiment::{folder, options};
use slablab_experiment::recorded::recorded;
use slablab_experiment::{Change, Experiment, Folder, Plan, Results, join, run};
use slablab_replay::import::{self, Input};
use slablab_sim::recorded::{Recorded, What};
use slablab_trace::Counts;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const EXPERIMENT: &str = r#"name = "small"
title = "a recording"
machines = ["laptop"]
engines = ["slub@6.18"]
workload = "recording"
repeats = 2
[parameters]
file = "events.txt"
placement = ["scheduled", "recorded"]
"#;

/// What an event of the kernel's text says of an object.
fn line(task: &str, cpu: u16, us: u32, event: &str, object: u32) -> String {
    let sizes = match event {
        "kmem_cache_alloc" => " bytes_req=192 bytes_alloc=192 gfp_flags=GFP_KERNEL name=filp",
        "kmalloc" => " bytes_req=100 bytes_alloc=128 gfp_flags=GFP_KERNEL",
        _ => "",
    };
    let object = 0xffff_8881_0000_0000u64 + u64::from(object) * 0x100;
    format!("  {task}  [{cpu:03}]  1.{us:06}: {event}: call_site=ffffffff81150f33 ptr={object:x}{sizes}\n")
}

fn events() -> String {
    [
        line("a-11", 0, 10, "kmem_cache_alloc", 1),
        line("a-11", 0, 14, "kmalloc", 2),
        line("b-12", 1, 20, "kmem_cache_free", 1),
        line("a-11", 0, 21, "kfree", 9),
        line("c-13", 1, 27, "kfree", 2),
        line("a-11", 1, 29, "kmalloc", 2),
    ]
    .concat()
}

/// An experiment and its recording in a folder of their own.
fn written(name: &str, experiment: &str, events: &str) -> PathBuf {
    let folder = folder(name);
    fs::write(folder.join("events.txt"), events).expect("a file can be written");
    let path = folder.join("experiment.toml");
    fs::write(&path, experiment).expect("a file can be written");
    path
}

fn results(experiment: &Path, into: Option<&Path>) -> Results {
    let experiment = Experiment::find(experiment).unwrap_or_else(|bad| panic!("{bad}"));
    let into = into.map(|into| Folder::open(into).unwrap_or_else(|bad| panic!("{bad}")));
    run(&experiment, &options("test", 2), into.as_ref(), &|_, _| {}).unwrap_or_else(|bad| panic!("{bad}"))
}

/// Tasks by pid in the order of their first event. A gap is the time in which neither the task nor its CPU
/// has an event; the free of an object from before is left out.
#[test]
fn a_recording_is_tasks_with_steps() {
    let path = written("recorded-small", EXPERIMENT, &events()).with_file_name("events.txt");
    let found = recorded(&path).unwrap_or_else(|bad| panic!("{bad}"));
    let Recorded { script, elapsed_ns, frees, elsewhere, left_out } = &found;
    assert_eq!((*elapsed_ns, *frees, *elsewhere, *left_out), (19_000, 2, 2, 1));
    let steps = |at: usize| -> Vec<_> {
        let steps = script.tasks[at].steps.iter();
        steps.map(|step| (step.place, step.object, step.gap_ns, step.cpu, step.what)).collect()
    };
    let names: Vec<&str> = script.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!((names, script.objects, script.steps), (vec!["a-11", "b-12", "c-13"], 3, 5));
    let of_a = [
        (0, 0, 0, 0, What::Alloc(0)),
        (1, 1, 4_000, 0, What::Kmalloc(100)),
        (4, 2, 2_000, 1, What::Kmalloc(100)),
    ];
    assert_eq!(steps(0), of_a);
    assert_eq!(steps(1), [(2, 0, 0, 1, What::Free)]);
    assert_eq!(steps(2), [(3, 1, 7_000, 1, What::Free)]);
    assert_eq!(script.caches[0].name, "filp");
    assert_eq!(script.caches[0].spec.known_size, 192);
}

/// The bundled recording: every free comes after its allocation, and frees on other CPUs are those that the
/// import counted.
#[test]
fn the_bundled_recording_is_whole() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/hackbench-6.18.perf.data.xz");
    let found = recorded(&path).unwrap_or_else(|bad| panic!("{bad}"));
    let reader = import::open(Input { path: &path, recording: None, formats: None }, &mut |_| ())
        .expect("a recording");
    let metadata = reader.metadata();
    let kmalloc = &metadata.import.as_ref().expect("import made it").kmalloc;
    let counts = metadata.caches.iter().map(|cache| &cache.counts);
    let counts: Vec<_> = counts.chain(kmalloc.iter().map(|cache| &cache.counts)).collect();
    let sum = |of: &dyn Fn(&Counts) -> u64| counts.iter().map(|counts| of(counts)).sum::<u64>();
    assert_eq!(found.frees, sum(&|counts| counts.frees - counts.unseen_frees + counts.implied_frees));
    let (traced, implied) = (sum(&|counts| counts.frees_other_cpu), sum(&|counts| counts.implied_frees));
    assert!(
        (traced..=traced + implied).contains(&found.elsewhere),
        "{traced} {implied}: {}",
        found.elsewhere
    );
    assert_eq!(u64::from(found.script.objects), sum(&|counts| counts.allocs));
    let mut steps: Vec<_> = found.script.tasks.iter().flat_map(|task| &task.steps).collect();
    assert!(found.script.tasks.iter().all(|task| task.steps.is_sorted_by_key(|step| step.place)));
    steps.sort_by_key(|step| step.place);
    assert_eq!(steps.len(), found.script.steps as usize);
    let mut live = BTreeMap::new();
    for (place, step) in (0..).zip(steps) {
        assert_eq!(step.place, place);
        match step.what {
            What::Free => assert!(live.remove(&step.object).is_some(), "step {place}"),
            _ => assert_eq!(live.insert(step.object, place), None, "step {place}"),
        }
    }
    assert!(found.script.tasks.len() > 80 && found.script.objects > 80_000, "{}", found.script.objects);
}

/// The results have the recording beside them, so that a report reads it; another recording of the same name
/// is another cell.
#[test]
fn a_recording_travels_with_its_results() {
    let path = written("recorded-results", EXPERIMENT, &events());
    let into = path.with_file_name("results");
    let first = results(&path, Some(&into));
    assert_eq!(first.computed, 2);
    assert!(first.runs.iter().flatten().flatten().all(|run| run.is_ok()));
    assert_eq!(results(&path, Some(&into)).computed, 0);
    assert_eq!(fs::read_to_string(into.join("recording-0")).expect("the copy"), events());
    let joined = join(std::slice::from_ref(&into)).unwrap_or_else(|bad| panic!("{bad}"));
    assert_eq!(joined.runs, first.runs);
    let longer = format!("{}{}", events(), line("a-11", 0, 99, "kfree", 2));
    fs::write(path.with_file_name("events.txt"), longer).expect("a file can be written");
    assert_eq!(results(&path, Some(&into)).computed, 2);
}

#[test]
fn wrong_recordings_are_refused() {
    let check = |name: &str, text: &str, events: &str, words: &[&str]| {
        let path = written(&format!("recorded-{name}"), text, events);
        let found = Experiment::find(&path).and_then(|found| Plan::new(&found, &Change::default()));
        let said = found.expect_err(name).to_string();
        for words in words {
            assert!(said.contains(words), "{name}: no {words:?} in {said}");
        }
    };
    let without = EXPERIMENT.replace("file = \"events.txt\"\n", "");
    check("missing", &without, "", &["line 1", "recording needs [parameters] file = "]);
    let other = |file: &str| EXPERIMENT.replace("events.txt", file);
    let outside = "this file is outside of the folder: expected a recording in the experiment's folder";
    fs::write(folder("recorded").join("other.txt"), events()).expect("a file can be written");
    check("outside", &other("../recorded/other.txt"), "", &["line 8", "../recorded/other.txt", outside]);
    check("nothing", &other("nothing.txt"), "", &["line 8", "nothing.txt: No such file"]);
    check("no-recording", EXPERIMENT, "hello\n", &["events.txt", "expected a perf.data"]);
    let pages = "  a-11  [000]  1.000010: mm_page_free: page=ffffea0000000040 pfn=0x1 order=0\n";
    check("no-allocation", EXPERIMENT, pages, &["the recording has no allocation"]);
    let many = line("a-11", 31, 10, "kmalloc", 2);
    check("cpus", EXPERIMENT, &many, &["placement = recorded: expected at least 32 CPUs, found 8"]);
}
