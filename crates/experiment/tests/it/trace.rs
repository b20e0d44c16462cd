//! Recordings as Perfetto traces.

use crate::trace_decode::{Shown, read};
use slablab_experiment::output::write_perfetto;
use slablab_sim::record::{Holds, Limits, Recorder};

/// Slices are recorded when they end, so the inner before the outer one. The trace has the outer first, and
/// slices that overlap without nesting on a track of their own.
#[test]
fn a_recording_becomes_a_trace() {
    let recorder = Recorder::new(Limits::default());
    let [first, second] = ["CPU 0", "CPU 1"].map(|name| recorder.track("CPUs", || name.into()));
    let memory = recorder.track_of("Memory", || "slabs".into(), Holds::Bytes);
    let [task, lock, refill] = ["task", "list_lock", "refill"].map(|name| recorder.name(|| name.into()));
    recorder.slice(first, lock, 2_000, 4_000);
    recorder.instant(first, refill, 3_000);
    recorder.slice(first, task, 1_000, 5_000);
    recorder.slice(first, task, 5_000, 8_000);
    recorder.slice(second, lock, 1_000, 3_000);
    recorder.slice(second, lock, 2_000, 5_000);
    recorder.slice(second, lock, 3_000, 4_000);
    recorder.value(memory, 7_000, 0);
    recorder.value(memory, 1_000, 4096);
    let read = read(&write_perfetto(&recorder.take(), Vec::new()).expect("writing to memory"));
    let slice = |depth, name: &str, from, to| Shown::Slice(depth, name.into(), from, to);
    let expected = [
        ("CPUs", vec![]),
        ("Memory", vec![]),
        (
            "CPUs/CPU 0",
            vec![
                slice(0, "task", 1, 5),
                slice(1, "list_lock", 2, 4),
                Shown::Instant("refill".into(), 3),
                slice(0, "task", 5, 8),
            ],
        ),
        ("CPUs/CPU 1", vec![slice(0, "list_lock", 1, 3), slice(0, "list_lock", 3, 4)]),
        ("CPUs/CPU 1", vec![slice(0, "list_lock", 2, 5)]),
        ("Memory/slabs", vec![Shown::Value(1, 4096), Shown::Value(7, 0)]),
    ];
    assert_eq!(read.tracks, expected.map(|(name, events)| (name.to_string(), events)));
}
