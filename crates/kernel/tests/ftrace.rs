//! Text recordings against the tidy CSV or the binary recording of the same events.

mod common;

use common::{Words, drain, sample, words};
use slablab_kernel::Source;
use slablab_kernel::ftrace::Ftrace;
use slablab_kernel::tidy::Tidy;

/// Compares all events of the text with the rows of `csv`, whose times are microseconds since the first event.
#[track_caller]
fn compare<'a>(text: &'a [u8], csv: &[u8]) -> Ftrace<&'a [u8]> {
    let mut source = Ftrace::new(text);
    let mut tidy = Tidy::new(csv).unwrap();
    let (events, _) = drain(&mut source).unwrap();
    let (expected, _) = drain(&mut tidy).unwrap();
    let first = events[0].time_ns;
    for (index, (event, expected)) in events.iter().zip(&expected).enumerate() {
        let found = Words { time: event.time_ns - first, ..words(event, source.names(), source.header()) };
        assert_eq!(found, words(expected, tidy.names(), tidy.header()), "event {index}");
    }
    assert_eq!(events.len(), expected.len());
    assert_eq!((source.tally().events, source.tally().late), (events.len() as u64, 0));
    source
}

/// Whole recordings, which are not in the project: `SLABLAB_REPORT=W.report.txt.gz SLABLAB_EVENTS_CSV=W.events.csv.gz`.
#[test]
#[ignore = "needs a recording outside the project"]
fn a_whole_report_is_its_csv() {
    let path = |name| std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"));
    let report = sample(path("SLABLAB_REPORT").to_str().unwrap());
    let csv = sample(path("SLABLAB_EVENTS_CSV").to_str().unwrap());
    println!("{:?}", compare(&report, &csv).tally());
}
