//! Runs that end without memory, or with tasks that wait for ever: each is a result with a table. And what
//! `run` shows beside the answer: locks, a trace of allocations.

use crate::experiment::{folder, options};
use slablab_experiment::output::{Look, allocation_trace, experiment_answer, locks_table};
use slablab_experiment::run::observe;
use slablab_experiment::workloads::WORKLOADS;
use slablab_experiment::{Experiment, Plan, Results, run};
use slablab_sim::tally::Failed;
use std::fs;

/// The experiment with this text, on the laptop with this memory.
fn on_laptop(name: &str, memory: &str, text: &str) -> Experiment {
    let folder = folder(name);
    let laptop = slablab_machines::INSTALLED.iter().find(|machine| machine.name == "laptop");
    let laptop = laptop.expect("the laptop is installed").text;
    let line = laptop.lines().find(|line| line.starts_with("memory = ")).expect("the laptop has memory");
    fs::write(folder.join("small.toml"), laptop.replacen(line, &format!("memory = {memory}"), 1))
        .expect("a file can be written");
    let path = folder.join("experiment.toml");
    let head = "name = \"small\"\ntitle = \"small\"\nmachines = [\"small.toml\"]\nsize = \"quick\"\n";
    fs::write(&path, format!("{head}{text}")).expect("a file can be written");
    Experiment::find(&path).unwrap_or_else(|bad| panic!("{bad}"))
}

fn results(experiment: &Experiment) -> Results {
    run(experiment, &options("ends", 2), None, &|_, _| {}).unwrap_or_else(|bad| panic!("{bad}"))
}

/// Programs on a machine of 2 MiB: each ends without memory, or needs less.
#[test]
fn programs_end_without_memory_with_a_table() {
    let mut ended = Vec::new();
    let names = ["aim7", "aim9", "brk1", "hackbench"];
    for workload in WORKLOADS.iter().filter(|workload| names.contains(&workload.name)) {
        let text = format!("engines = [\"slub@6.18\"]\nrepeats = 1\nworkload = \"{}\"\n", workload.name);
        let experiment = on_laptop(workload.name, "\"2M\"", &text);
        // The workload itself: an experiment of it is refused where its parameters contradict the machine.
        let file = &experiment.file;
        let plan = Plan::new(&experiment, &Default::default()).unwrap_or_else(|bad| panic!("{bad}"));
        let setup = experiment.setup(&plan.cells[0], 1);
        match (file.workload.observe)(&setup, &plan.cells[0].values, 1, &Default::default()) {
            Err(Failed::OutOfMemory { events, caches }) => {
                assert!(events > 0 && !caches.is_empty(), "{}: {events}, {caches:?}", workload.name);
                ended.push(workload.name);
            }
            Err(failed) => panic!("{}: {failed}", workload.name),
            Ok(_) => {}
        }
    }
    assert!(ended.contains(&"hackbench"), "without memory ended {ended:?}");
}

/// SLQB of January 2009 where no CPU has memory of its own takes a page for each object, and mkfs needs pages
/// for itself.
#[test]
fn a_cell_without_memory_says_what_each_cache_holds() {
    let text = "engines = [\"slub@2.6.29\"]\nrepeats = 1\nworkload = \"mkfs\"\n[parameters]\nprocesses = 2\n\
                mib = 352\nblock_bytes = 512\n";
    let results = results(&on_laptop("table", "\"16M\"", text));
    let found = experiment_answer(&results, Look::default()).text(false);
    for words in ["out of memory after", "buffer_head", "objects", "KiB"] {
        assert!(found.contains(words), "no {words:?} in\n{found}");
    }
}

#[test]
fn tasks_that_wait_for_ever_are_told() {
    let text = "engines = [\"slub@6.18\"]\nrepeats = 1\nworkload = \"micro\"\n";
    let mut results = results(&on_laptop("stuck", "\"1G\"", text));
    let waits = "task 3 on CPU 1: to read from socket 8";
    results.runs[0] = Some(vec![Err(Failed::Stuck(vec![waits.into()]))]);
    let found = experiment_answer(&results, Look::default()).text(false);
    for words in ["1 tasks wait for ever", waits] {
        assert!(found.contains(words), "no {words:?} in\n{found}");
    }
}

/// The summary of a trace has the counters of the run; lines have the mail's form.
#[test]
fn a_trace_has_the_mails_form() {
    let text = "engines = [\"slab@2.6.29\"]\nrepeats = 1\nworkload = \"mkfs\"\n[parameters]\nprocesses = 2\n\
                mib = 128\n";
    let experiment = on_laptop("trace", "\"1G\"", text);
    let results = results(&experiment);
    let trace = observe::trace(&experiment, &results.plan, 0).unwrap_or_else(|bad| panic!("{bad}"));
    let found = allocation_trace(&trace);
    let mut lines = found.lines();
    assert_eq!(lines.next(), Some("timestamp cpu pid function format tag cache gfp"));
    let first: Vec<&str> = lines.next().expect("a line").split(' ').collect();
    assert_eq!(&first[3..6], ["__cache_alloc", "misc:", "0x0"], "{first:?}");
    assert_eq!((first.len(), first[7]), (8, "0xd0"), "{first:?}");
    let total = trace.total();
    assert!(total.refills > 10 && total.depth_max >= 5 && total.fallbacks == 0, "{total:?}");
    let last = found.lines().last().expect("a summary");
    assert!(last.trim_start().starts_with("total"), "{last}");
    assert!(last.contains(&format!(" {} ", total.refills)), "{last}");

    let micro = on_laptop("no-trace", "\"1G\"", "engines = [\"slub@6.18\"]\nworkload = \"micro\"\n");
    let plan = Plan::new(&micro, &Default::default()).unwrap_or_else(|bad| panic!("{bad}"));
    let refused = observe::trace(&micro, &plan, 0).expect_err("micro has no kernel");
    assert!(refused.to_string().contains("the workload micro traces no allocation"), "{refused}");
}

#[test]
fn locks_are_a_table() {
    let text = "engines = [\"slab@2.6.29\"]\nrepeats = 2\nworkload = \"hackbench\"\n[parameters]\ngroups = 1\n\
                loops = 2\n";
    let results = results(&on_laptop("locks", "\"1G\"", text));
    let found = locks_table(&results).print();
    let row = found.lines().find(|line| line.contains("list_lock")).unwrap_or_else(|| panic!("{found}"));
    let numbers: Vec<f64> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [taken, .., hold_each, _, holds, of_a_message] = numbers[..] else { panic!("{row}") };
    // Mean times count are the sum, and 800 messages share it; all rounded.
    assert!((hold_each * taken / 1e3 - holds).abs() < 0.01 + taken * 0.5e-6, "{row}");
    assert!((holds * 1e6 / 800.0 - of_a_message).abs() < 0.5 + 0.005e6 / 800.0, "{row}");
}
