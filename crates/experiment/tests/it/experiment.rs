//! Experiments: what their files may say, which cells they have, what a folder of results holds.

use slablab_experiment::Result;
use slablab_experiment::output::{Look, description_answer, experiment_answer};
use slablab_experiment::workloads::WORKLOADS;
use slablab_experiment::{
    Change, Experiment, ExperimentFile, Folder, INSTALLED, Options, Plan, Results, Shard, Size, join, run,
};
use slablab_sim::params::Given;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const SMALL: &str = r#"name = "small"
title = "pairs and batches"
machines = ["numa8-full"]
engines = ["slub@6.18", "slub@7.1"]
workload = "micro"
repeats = 2
[parameters]
pattern = ["pair", "batch"]
bytes = [64, 256]
objects = 2000
[[published]]
cell = { engine = "slub@7.1", bytes = 64 }
metric = "wall_ps"
value = 12.5
unit = "ns"
source = "a mail"
[[expect]]
name = "batches"
base = { engine = "slub@6.18", pattern = "batch" }
other = { engine = "slub@7.1", pattern = "batch" }
sign = "lower"
"#;

pub(crate) fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("experiment").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder can be made");
    path
}

/// The text in a file of a folder of its own.
fn written(name: &str, text: &str) -> PathBuf {
    let path = folder(name).join("experiment.toml");
    fs::write(&path, text).expect("a file can be written");
    path
}

pub(crate) fn options(program: &str, threads: usize) -> Options {
    Options { program: program.into(), threads: Some(threads), ..Options::default() }
}

fn run_into(path: &Path, options: &Options) -> Result<Results> {
    let experiment = Experiment::find(&path.with_file_name("experiment.toml"))?;
    run(&experiment, options, Some(&Folder::open(path)?), &|_, _| {})
}

/// Every file of a folder of results but the one that says where and how long it ran.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "host.json") {
                let name = path.strip_prefix(folder).expect("inside").to_path_buf();
                found.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

#[test]
fn errors_have_the_line_and_the_nearest_names() {
    ExperimentFile::parse(SMALL).unwrap_or_else(|bad| panic!("{bad}"));
    let check = |from: &str, to: &str, words: &[&str]| {
        assert!(SMALL.contains(from), "{from}");
        let bad = ExperimentFile::parse(&SMALL.replacen(from, to, 1)).err();
        let said = bad.unwrap_or_else(|| panic!("{to} was read")).to_string();
        words.iter().for_each(|word| assert!(said.contains(word), "{to}: no {word:?} in {said}"));
    };
    check("name = \"small\"", "nmae = \"small\"", &["line 1", "`nmae`", "near it: name"]);
    check("title = \"pairs and batches\"\n", "", &["line 1", "no title", "expected title ="]);
    check("title = \"pairs", "title = pairs", &["line 2"]);
    check("\"slub@7.1\"]", "\"slub@7.1\", \"slub@7.1\"]", &["line 4", "twice"]);
    check("\"slub@7.1\"]", "\"slup@7.1\"]", &["line 4", "slub"]);
    check("workload = \"micro\"", "workload = \"mirco\"", &["line 5", "near it: micro"]);
    check("workload = \"micro\"", "workload = 5", &["line 5", "text"]);
    check("repeats = 2", "repeats = 0", &["line 6", "from 1 to 10000"]);
    check("repeats = 2", "noise_percent = nan", &["line 6", "from 0 to 100"]);
    check("repeats = 2", "size = \"fast\"", &["line 6", "\"quick\""]);
    check("repeats = 2", "metric = \"cpu\"", &["line 6", "near it: cpu_ps"]);
    check("pattern = [", "patern = [", &["line 8", "near it: pattern"]);
    check("\"batch\"]", "\"bacth\"]", &["line 8", "near it: batch"]);
    check("[64, 256]", "[64, 64]", &["line 9", "different values"]);
    check("[64, 256]", "[]", &["line 9", "different values"]);
    check("[64, 256]", "[7]", &["line 9", "8 to"]);
    check("[64, 256]", "-1", &["line 9", "8 to"]);
    check("bytes = 64 }", "bytes = 128 }", &["line 12", "no cell has bytes = 128"]);
    check("engine = \"slub@7.1\", bytes", "engine = \"slub@7.0\", bytes", &["line 12", "near it: slub@7.1"]);
    check(
        "engine = \"slub@7.1\", bytes",
        "engne = \"slub@7.1\", bytes",
        &["line 12", "no parameter of micro"],
    );
    check("metric = \"wall_ps\"", "metric = \"wal_ps\"", &["line 13", "near it: wall_ps"]);
    check("value = 12.5", "value = -1", &["line 14", "a number from 0"]);
    check("unit = \"ns\"", "unit = \"us\"", &["line 15", "expected \"ns\""]);
    check("source = \"a mail\"\n", "", &["line 11", "source is missing"]);
    check("sign = \"lower\"", "sign = \"less\"", &["line 21", "\"lower\""]);
    check("sign = \"lower\"", "", &["line 17", "nothing is expected"]);
    check(
        "other = { engine = \"slub@7.1\"",
        "other = { engine = \"slub@6.18\"",
        &["line 17", "the same cells"],
    );
    check("sign = \"lower\"", "base_metric = \"cpu\"", &["line 21", "near it: cpu_ps"]);
    check("sign = \"lower\"", "base_metric = \"cpu_mcycles\"", &["line 17", "expected a metric in ns"]);
}

#[test]
fn every_combination_is_a_cell() {
    let path = written("cells", SMALL);
    let experiment = Experiment::find(&path).expect("an experiment");
    let check = |change: Change, cells: usize, runs: u32| {
        let plan = Plan::new(&experiment, &change).expect("a plan");
        assert_eq!(plan.cells.len(), cells, "{change:?}");
        assert_eq!(plan.cells.iter().map(|cell| plan.runs(cell)).sum::<u32>(), runs, "{change:?}");
    };
    check(Change::default(), 8, 16);
    check(Change { repeats: Some(5), size: Some(Size::Quick), ..Change::default() }, 8, 40);
    // The four cells of the relation are drawn, eight times until the first look.
    check(Change { draws: Some(64), ..Change::default() }, 8 + 4, 16 + 4 * 8);
    check(Change { draws: Some(4), ..Change::default() }, 8 + 4, 16 + 4 * 4);
    let plan = Plan::new(&experiment, &Change::default()).expect("a plan");
    let names: Vec<String> = plan
        .cells
        .iter()
        .map(|cell| {
            format!("{} {} {}", cell.values.word("pattern"), cell.values.number("bytes"), cell.engine)
        })
        .collect();
    let expected = ["pair 64 0", "pair 64 1", "pair 256 0", "pair 256 1", "batch 64 0", "batch 64 1"];
    assert_eq!(names[..6], expected);
    assert_eq!(plan.selected(&experiment, &experiment.file.published[0].cell), [1, 5]);
}

#[test]
fn machines_are_found_or_named() {
    let machine =
        slablab_machines::INSTALLED.iter().find(|machine| machine.name == "laptop").expect("a laptop");
    let check = |machines: &str, words: &[&str]| {
        let path = written("machines", &SMALL.replace("\"numa8-full\"", machines));
        fs::write(path.with_file_name("mine.toml"), machine.text).expect("a file can be written");
        fs::write(path.with_file_name("broken.toml"), "cpus = 0\n").expect("a file can be written");
        let said = match Experiment::find(&path) {
            Ok(experiment) => experiment.machines.iter().map(|on| format!("{} ", on.name)).collect(),
            Err(error) => error.to_string(),
        };
        words.iter().for_each(|word| assert!(said.contains(word), "{machines}: no {word:?} in {said}"));
    };
    check("\"numa8\", \"mine.toml\"", &["numa8 ", "laptop"]);
    check("\"numa9\"", &["experiment.toml: line 3", "numa9", "near it: numa8"]);
    check("\"../cells/experiment.toml\"", &["line 3", "outside of the folder"]);
    check("\"/etc/passwd\"", &["line 3", "outside of the folder"]);
    check("\"broken.toml\"", &["broken.toml: line 1", "cpus"]);
    check("\"nothing.toml\"", &["nothing.toml", "No such file"]);
    check("\"laptop\", \"mine.toml\"", &["line", "the second one of the name laptop"]);
    let missing = Experiment::find(Path::new("2025")).err().map(|error| error.to_string());
    assert!(missing.is_some_and(|said| said.contains("near it: 2026")));
}

#[test]
fn installed_experiments_are_whole() {
    for installed in INSTALLED {
        let experiment = Experiment::find(Path::new(installed.name)).expect(installed.name);
        assert_eq!(experiment.file.name, installed.name);
        let plan = Plan::new(&experiment, &Change::default()).expect(installed.name);
        let answer = description_answer(&experiment, &plan);
        let said = answer.text(false);
        let workload = experiment.file.workload;
        let named = workload.parameters.iter().map(|parameter| parameter.name);
        for word in
            named.chain(workload.metrics.iter().map(|metric| metric.name)).chain(["kernel objects of"])
        {
            assert!(said.contains(word), "{}: no {word} in {said}", installed.name);
        }
        // A single word, such as an engine with its knobs, is not broken.
        let fits = |line: &str| line.chars().count() <= 80 || !line.trim().contains(' ');
        assert!(said.lines().all(fits), "{said}");
        let json = answer.json();
        for (parameter, shown) in
            workload.parameters.iter().zip(json["parameters"].as_array().expect("a list"))
        {
            let of = |cell: &slablab_experiment::plan::Cell| cell.values.0[parameter.name].to_string();
            let used: BTreeSet<String> = plan.cells.iter().map(of).collect();
            let said = shown["values"].as_array().expect("a list").iter();
            let said =
                said.map(|value| value.as_str().map_or_else(|| value.to_string(), String::from)).collect();
            assert_eq!((shown["name"].as_str(), used), (Some(parameter.name), said), "{}", installed.name);
        }
        let numbers = [&json["cells"], &json["machines"][0]["cpus"]].map(serde_json::Value::as_u64);
        let cpus = experiment.machines[0].machine.spec.cpu_node.len() as u64;
        assert_eq!(numbers, [Some(plan.cells.len() as u64), Some(cpus)], "{}", installed.name);
        assert!(json["objects"][0]["objects"][0]["source"].is_string(), "{}: {json}", installed.name);
        let of_size = |(_, size): (&str, Size)| {
            let change = Change { size: Some(size), ..Change::default() };
            Plan::new(&experiment, &change).expect(installed.name)
        };
        let plans = Size::NAMES.map(of_size);
        for row in &experiment.file.published {
            let is_there = |plan: &Plan| !plan.selected(&experiment, &row.cell).is_empty();
            assert!(plans.iter().any(is_there), "{}: {:?}", installed.name, row.cell);
        }
    }
}

/// Mappings are freed after grace periods, on all CPUs at once, so that speed rises and falls with them. A
/// window of one grace period shows one burst or none: with 512 processes brk1 came out at 10 thousand
/// operations in a second in it, where eight of them have 140 million.
#[test]
fn windows_hold_whole_grace_periods() {
    let of_mappings: Vec<Experiment> = INSTALLED
        .iter()
        .map(|installed| Experiment::find(Path::new(installed.name)).expect(installed.name))
        .filter(|experiment| matches!(experiment.file.workload.name, "brk1" | "mmap1"))
        .collect();
    assert!(of_mappings.len() > 8, "{}", of_mappings.len());
    for experiment in &of_mappings {
        let longest = experiment.machines.iter().map(|on| on.machine.spec.grace_period_ns).max();
        let longest = longest.expect("a machine");
        for cell in Plan::new(experiment, &Change::default()).expect("a plan").cells {
            let [warm_up, window] = ["warm_up_us", "window_us"].map(|name| 1_000 * cell.values.number(name));
            // A callback waits for one to two grace periods: the third has the callbacks of the first.
            assert!(
                warm_up >= 3 * longest && window >= 8 * longest,
                "{}: {warm_up}, {window}",
                experiment.file.name
            );
        }
    }
}

/// A workload says which costs it is never charged: doubling one of them changes no number.
#[test]
fn ignored_costs_change_nothing() {
    let quick = Change { size: Some(Size::Quick), ..Change::default() };
    for name in ["2026", "micro"] {
        let experiment = Experiment::find(Path::new(name)).expect(name);
        let plan = Plan::new(&experiment, &quick).expect(name);
        let cell = &plan.cells[1];
        let setup = experiment.setup(cell, 7);
        let workload = experiment.file.workload;
        let sample = workload.run(&setup, &cell.values, 7).expect("a run");
        let priced = &experiment.machines[cell.machine].machine.priced;
        let ignored: Vec<_> =
            priced.sources.iter().filter(|source| (workload.ignores)(source.cost)).collect();
        assert!(ignored.len() > 5, "{name}: {ignored:?}");
        for source in ignored {
            let mut setup = setup.clone();
            setup.hardware.costs = priced.scaled(source, 2, 1);
            assert_eq!(
                workload.run(&setup, &cell.values, 7).as_ref(),
                Ok(&sample),
                "{name}: {}",
                source.cost
            );
        }
    }
    assert!(WORKLOADS.iter().all(|workload| !(workload.ignores)("l1")));
}

#[test]
fn results_do_not_depend_on_threads_and_parts() {
    let path = written("threads", SMALL);
    let into = |name: &str| path.with_file_name(name);
    let sensitive = |options: Options| {
        let change = Change { draws: Some(8), repeats: Some(3), ..Change::default() };
        Options { change, ..options }
    };
    run_into(&into("one"), &sensitive(options("p", 1))).expect("one thread");
    run_into(&into("eight"), &sensitive(options("p", 8))).expect("eight threads");
    let one = files(&into("one"));
    assert!(one.len() > 12 && one.contains_key(Path::new("samples.parquet")), "{:?}", one.keys());
    assert_eq!(one, files(&into("eight")));
    let parts: Vec<PathBuf> = (1..=3).map(|part| into(&format!("part{part}"))).collect();
    for (part, folder) in parts.iter().enumerate() {
        let shard = Some(Shard { part, of: 3 });
        run_into(folder, &Options { shard, ..sensitive(options("p", 2)) }).expect("a part");
    }
    let joined = join(&parts).expect("three parts");
    joined.write_whole(&Folder::open(&into("joined")).expect("a folder")).expect("joined parts");
    assert_eq!(one, files(&into("joined")));
    let said = join(&parts[..2]).err().map(|error| error.to_string()).expect("a part is missing");
    assert!(said.contains("cells are missing"), "{said}");
    run_into(&into("other"), &sensitive(options("q", 2))).expect("another program");
    let mixed = [parts[0].clone(), into("other")];
    let said = join(&mixed).err().map(|error| error.to_string()).expect("two programs");
    assert!(said.contains("another program"), "{said}");
}

#[test]
fn what_has_not_changed_is_not_run_again() {
    let path = written("again", SMALL);
    let folder = path.with_file_name("results");
    let check = |options: &Options, expected: usize| {
        let results = run_into(&folder, options).expect("results");
        assert_eq!(results.computed, expected, "{options:?}");
    };
    check(&options("p", 2), 8);
    let first = files(&folder);
    check(&options("p", 2), 0);
    assert_eq!(first, files(&folder));
    // A cell that was damaged, and one that is gone.
    let cells: Vec<PathBuf> =
        fs::read_dir(folder.join("cells")).expect("cells").map(|cell| cell.unwrap().path()).collect();
    fs::write(&cells[0], "{").expect("a file can be written");
    fs::remove_file(&cells[1]).expect("a file can be removed");
    check(&options("p", 2), 2);
    assert_eq!(first, files(&folder));
    check(&options("another version", 2), 8);
    let change = Change { seed: Some(9), ..Change::default() };
    check(&Options { change, ..options("p", 2) }, 8);
    // One more size: its four cells alone are new.
    fs::write(&path, SMALL.replace("bytes = [64, 256]", "bytes = [64, 256, 512]"))
        .expect("a file can be written");
    check(&options("p", 2), 4);
}

#[test]
fn a_folder_has_one_writer_and_nothing_else() {
    let path = written("locked", SMALL);
    let folder = path.with_file_name("results");
    let held = Folder::open(&folder).expect("a new folder");
    let said = run_into(&folder, &options("p", 1)).err().map(|error| error.to_string()).expect("two runs");
    assert!(said.contains("another slablab runs into this folder"), "{said}");
    drop(held);
    run_into(&folder, &options("p", 1)).expect("the folder is free");
    let said = Folder::open(path.parent().expect("a folder")).err().map(|error| error.to_string());
    assert!(said.is_some_and(|said| said.contains("holds other files")));
}

#[test]
fn too_much_is_refused_unless_forced() {
    let path = written("much", &SMALL.replace("objects = 2000", "objects = 4000000000"));
    let experiment = Experiment::find(&path).expect("an experiment");
    let said = run(&experiment, &options("p", 2), None, &|_, _| {}).err().map(|error| error.to_string());
    assert!(
        said.as_deref().is_some_and(|said| said.contains("minutes") && said.contains("--force")),
        "{said:?}"
    );
}

/// A run that cannot go on is a cell without numbers: the others have theirs.
#[test]
fn a_run_out_of_memory_is_a_result() {
    let machine =
        slablab_machines::INSTALLED.iter().find(|machine| machine.name == "numa8-full").expect("numa8-full");
    let text = SMALL.replace("\"numa8-full\"", "\"mine.toml\"").replace("[64, 256]", "[64, 4096]");
    let path = written("memory", &text.replace("objects = 2000", "objects = 20000\nbatch = 20000"));
    let small = machine.text.replace("memory = \"8G\"", "memory = \"4M\"");
    fs::write(path.with_file_name("mine.toml"), small).expect("a file can be written");
    let experiment = Experiment::find(&path).expect("an experiment");
    let results = run(&experiment, &options("p", 2), None, &|_, _| {}).expect("results");
    let failed: Vec<bool> = (0..results.runs.len()).map(|cell| results.failure(cell).is_some()).collect();
    assert_eq!(failed, [false, false, false, false, false, false, true, true]);
    assert!(results.plan.cells.iter().all(|cell| !cell.drawn));
    let said = experiment_answer(&results, Look::default()).text(false);
    assert!(said.contains("out of memory after ") && said.contains("  kmalloc-4k "), "{said}");
    // A folder keeps the table of caches, and its reader finds the same.
    let folder = path.with_file_name("results");
    let written = run_into(&folder, &options("p", 2)).expect("results");
    let again = run_into(&folder, &options("p", 2)).expect("results");
    assert_eq!((again.computed, &again.runs), (0, &written.runs));
    let summary = experiment_answer(&again, Look::default()).json();
    let failed = &summary["cells"][7]["failed"][0];
    assert_eq!(failed["kind"], "out of memory");
    assert!(
        failed["caches"]
            .as_array()
            .is_some_and(|caches| caches.iter().any(|one| one["name"] == "kmalloc-4k"))
    );
}
