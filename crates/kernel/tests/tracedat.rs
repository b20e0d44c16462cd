//! trace.dat against the tidy CSV of the same recording, event for event.

mod common;

use std::io::Cursor;

use common::{Words, drain, sample, words};
use slablab_kernel::Source;
use slablab_kernel::tidy::Tidy;
use slablab_kernel::tracedat::TraceDat;

/// Compares all events of `recording` with the rows of `csv`, whose times are microseconds since the first event.
#[track_caller]
fn compare(
    recording: impl std::io::Read + std::io::Seek,
    csv: &[u8],
) -> TraceDat<impl std::io::Read + std::io::Seek> {
    let mut source = TraceDat::new(recording).unwrap();
    let mut tidy = Tidy::new(csv).unwrap();
    let (events, _) = drain(&mut source).unwrap();
    let (expected, _) = drain(&mut tidy).unwrap();
    let micros = |ns: u64| (ns + 500) / 1000;
    let first = micros(events[0].time_ns);
    for (index, (event, expected)) in events.iter().zip(&expected).enumerate() {
        let found =
            Words { time: micros(event.time_ns) - first, ..words(event, source.names(), source.header()) };
        let expected =
            Words { time: expected.time_ns / 1000, ..words(expected, tidy.names(), tidy.header()) };
        assert_eq!(found, expected, "event {index}");
    }
    assert_eq!(events.len(), expected.len());
    assert_eq!((source.tally().events, source.tally().late), (events.len() as u64, 0));
    source
}

/// Whole recordings, which are not in the project: `SLABLAB_TRACE_DAT=trace.dat SLABLAB_EVENTS_CSV=W.events.csv.gz`.
#[test]
#[ignore = "needs a recording outside the project"]
fn a_whole_recording_is_its_csv() {
    let path = |name| std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"));
    let recording = sample(path("SLABLAB_TRACE_DAT").to_str().unwrap());
    let csv = sample(path("SLABLAB_EVENTS_CSV").to_str().unwrap());
    let source = compare(Cursor::new(recording), &csv);
    println!("{:?}", source.tally());
    println!("{:?}", source.header().warnings);
}
