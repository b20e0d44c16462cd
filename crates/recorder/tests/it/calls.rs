//! The library preloaded into programs in C and C++, and the traces of their calls.

use crate::common::{built, converted, folder, record, the_one};
use slablab_recorder::{LIMIT, Process, Summary};
use slablab_trace::{Batch, Columns, EventKind, Metadata, flags};
use std::process::Command;

/// A row of a trace, as tests compare it.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    event: EventKind,
    site: String,
    bytes: u32,
    alloc: u32,
    cpu: u16,
    thread: i32,
    object: u32,
    flags: u8,
}

/// A process's trace.
fn trace(process: &Process) -> (Vec<Call>, Metadata, Summary) {
    let (reader, summary) = converted(process);
    let (mut batches, mut batch) = (reader.batches(Columns::ALL), Batch::default());
    let mut calls = Vec::new();
    let mut last_ns = 0;
    while batches.next(&mut batch).expect("a trace") {
        for row in 0..batch.len() {
            let site = batches.texts().call_site.get(batch.call_site[row]).unwrap_or("").to_string();
            assert!(batch.time_ns[row] >= last_ns, "rows are in the order of time");
            last_ns = batch.time_ns[row];
            calls.push(Call {
                event: EventKind::from_u8(batch.event[row]).expect("a known event"),
                site,
                bytes: batch.bytes_req[row],
                alloc: batch.bytes_alloc[row],
                cpu: batch.cpu[row],
                thread: batch.pid[row],
                object: batch.object[row],
                flags: batch.flags[row],
            });
        }
    }
    check_objects(&calls);
    (calls, reader.metadata().clone(), summary)
}

/// Each free is of the last allocation with its number, and no number is allocated twice.
fn check_objects(calls: &[Call]) {
    let mut live = std::collections::HashMap::new();
    for call in calls.iter().filter(|call| call.object != u32::MAX && call.flags & flags::UNSEEN == 0) {
        if call.event.is_alloc() {
            assert_eq!(live.insert(call.object, call.bytes), None, "{call:?}");
        } else {
            assert_eq!(live.remove(&call.object), Some(call.bytes), "{call:?}");
        }
    }
}

/// The rows of calls with these sizes.
fn of_sizes(calls: &[Call], sizes: std::ops::Range<u32>) -> Vec<&Call> {
    calls.iter().filter(|call| sizes.contains(&call.bytes)).collect()
}

#[test]
fn known_calls_give_these_rows() {
    let folder = folder("known");
    let program = built(&folder, "cc", "known.c", &["-std=gnu11", "-O0"]).expect("a C compiler");
    let (output, all) = record(&folder, &mut Command::new(&program), "");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let (calls, metadata, summary) = trace(the_one(&all, "known"));
    let from = calls.iter().position(|call| call.bytes == 70001).expect("the first known call");
    // Event, call site, requested bytes, bytes of the class or of whole pages, and 'n' for no object.
    let expected = "\
        kmalloc malloc 70001 73728\nkmalloc calloc 210006 212992\nkfree realloc 70001 73728\n\
        kmalloc realloc 70003 73728\nkfree free 0 0 n\nkfree free 210006 212992\n\
        kmalloc memalign 4096 70004 73728\nkmalloc memalign 64 70016 73728\nkmalloc memalign 128 777 896\n\
        kmalloc realloc 70005 73728\nkmalloc realloc 70010 73728\nkmalloc malloc 0 16\n\
        kfree free 70003 73728\nkfree free 70004 73728\nkfree free 70016 73728\nkfree free 777 896\n\
        kfree free 70005 73728\nkfree free 70010 73728\nkfree free 0 16\n\
        kmalloc malloc 33 48\nkfree realloc 33 48\nkmalloc realloc 33 48\nkfree free 33 48";
    let lines = calls[from..].iter().map(|call| {
        let none = if call.object == u32::MAX { " n" } else { "" };
        format!("{} {} {} {}{none}", call.event.name(), call.site, call.bytes, call.alloc)
    });
    let lines: Vec<String> = lines.take(expected.lines().count()).collect();
    assert_eq!(lines.join("\n"), expected);
    assert_eq!(metadata.source.expect("a source").kind, slablab_recorder::KIND);
    assert!(metadata.pairing_only && metadata.losses.events == 0);
    assert_eq!((summary.lost, summary.unseen_frees, summary.threads), (0, 0, [1, 1]));
    assert!(summary.peak[0] >= 350_040, "{summary:?}");
}

#[test]
fn threads_are_cpus() {
    let folder = folder("threads");
    let program = built(&folder, "cc", "threads.c", &["-std=gnu11", "-O1", "-pthread"]).expect("cc");
    let (output, all) = record(&folder, Command::new(&program).args(["4", "5"]), "");
    assert!(output.status.success(), "{output:?}");
    let (calls, metadata, summary) = trace(the_one(&all, "threads"));
    let known = of_sizes(&calls, 1000..1004);
    let frees = known.iter().filter(|call| call.event == EventKind::Kfree);
    assert_eq!((known.len(), frees.count()), (5000 * 4 * 9, 5000 * 4 * 4));
    // The main thread and four others at a time; ended threads leave their numbers to the next ones.
    assert_eq!((summary.threads[0], summary.lost, summary.unseen_frees), (21, 0, 0));
    assert!(summary.threads[1] <= 5 && metadata.statistics.cpu_ids <= 5, "{summary:?}");
    check_cpus(&calls);
}

/// A thread has one CPU. Threads that allocate at the same time have different ones, and some do.
fn check_cpus(calls: &[Call]) {
    let mut threads = std::collections::HashMap::new();
    for (row, call) in calls.iter().enumerate() {
        let (cpu, rows) = threads.entry(call.thread).or_insert((call.cpu, row..row));
        assert_eq!(*cpu, call.cpu, "thread {}", call.thread);
        rows.end = row;
    }
    let all: Vec<_> = threads.values().collect();
    let mut together = 0;
    for (index, (cpu, rows)) in all.iter().enumerate() {
        for (other, others) in &all[..index] {
            if rows.start < others.end && others.start < rows.end {
                assert_ne!(cpu, other, "{all:?}");
                together += 1;
            }
        }
    }
    assert!(together > 0, "{all:?}");
}

#[test]
fn each_process_has_its_file() {
    let folder = folder("forks");
    let program = built(&folder, "cc", "forks.c", &["-std=gnu11", "-O1"]).expect("a C compiler");
    let (output, all) = record(&folder, &mut Command::new(&program), "");
    assert!(output.status.success(), "{output:?}");
    let of_forks: Vec<&Process> = all.iter().filter(|process| process.name() == "forks").collect();
    let [parent, child] = of_forks[..] else { panic!("{all:?}") };
    assert_eq!((child.parent, the_one(&all, "ls").lost), (parent.pid, 0));
    for (process, sizes, count) in [(parent, 2001..2002, 200), (child, 2002..2003, 400)] {
        let (calls, _, _) = trace(process);
        assert_eq!(of_sizes(&calls, sizes).len(), count, "{process:?}");
        assert_eq!(of_sizes(&calls, 2001..2003).len(), count, "{process:?}");
    }
    // The child frees a block that its parent allocated.
    assert_eq!((trace(parent).2.unseen_frees, trace(child).2.unseen_frees), (0, 1));
}

#[test]
fn a_handler_may_allocate() {
    let folder = folder("signals");
    let program = built(&folder, "cc", "signals.c", &["-std=gnu11", "-O1"]).expect("a C compiler");
    let (output, all) = record(&folder, &mut Command::new(&program), "");
    assert!(output.status.success(), "{output:?}");
    let (calls, _, summary) = trace(the_one(&all, "signals"));
    assert_eq!(summary.lost, 0);
    let of = |sizes, event| of_sizes(&calls, sizes).iter().filter(|call| call.event == event).count();
    assert_eq!(of(3002..3003, EventKind::Kmalloc), of(3002..3003, EventKind::Kfree));
    assert_eq!(of(3001..3002, EventKind::Kmalloc), of(3001..3002, EventKind::Kfree));
}

#[test]
fn a_killed_program_leaves_its_calls() {
    let folder = folder("killed");
    let program = built(&folder, "cc", "killed.c", &["-std=gnu11", "-O1"]).expect("a C compiler");
    let (output, all) = record(&folder, &mut Command::new(&program), "");
    assert!(!output.status.success());
    let (calls, _, summary) = trace(the_one(&all, "killed"));
    assert_eq!((of_sizes(&calls, 4001..4002).len(), summary.lost), (10000, 0));
    assert!(summary.end[0] >= 40_010_000, "{summary:?}");
}

/// Beyond the limit calls are counted, and the program goes on.
#[test]
fn calls_beyond_the_limit_are_counted() {
    let folder = folder("limit");
    let program = built(&folder, "cc", "killed.c", &["-std=gnu11", "-O1"]).expect("a C compiler");
    let (_, all) = record(&folder, Command::new(&program).env(LIMIT, "140000"), "");
    let (calls, metadata, summary) = trace(the_one(&all, "killed"));
    // Two chunks of 2,730 events: the first of each names the thread, and the third may say how much memory
    // the process has.
    let kept = calls.iter().filter(|call| call.event != EventKind::Lost).count() as u64;
    assert!((2 * 2728..=2 * 2729).contains(&kept), "{kept}");
    assert!((10_000..10_100).contains(&(kept + summary.lost)), "{summary:?}");
    assert_eq!(metadata.losses.events, summary.lost);
    assert_eq!(calls.last().expect("rows").event, EventKind::Lost);
}

/// The operators of the C++ library, and those of an allocator that brings its own.
#[test]
fn operators_of_cpp_are_recorded_once() {
    let folder = folder("operators");
    let Some(program) = built(&folder, "c++", "operators.cpp", &["-std=c++17", "-O0"]) else { return };
    let (output, all) = record(&folder, &mut Command::new(&program), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "thrown\n", "{output:?}");
    let (calls, _, _) = trace(the_one(&all, "operators"));
    let sites = |bytes| {
        let found = calls.iter().filter(move |call| call.bytes == bytes);
        found.map(|call| (call.site.as_str(), call.object != u32::MAX)).collect::<Vec<_>>()
    };
    assert_eq!(sites(4936), [("operator new", true), ("operator delete", true)]);
    assert_eq!(sites(34568), [("operator new", true), ("operator delete", true)]);
    assert_eq!(sites(512), [("memalign 256", true), ("operator delete", true)]);
    assert_eq!(sites(1536), [("memalign 256", true), ("operator delete", true)]);
}
