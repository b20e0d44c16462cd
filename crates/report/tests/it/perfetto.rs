//! Traces as a reader sees them.

use crate::name_check::{HOSTILE, check_names};
use crate::trace_decode::{Shown, read};
use slablab_report::perfetto::{Trace, Unit};
use std::io::{self, Write};

fn slice(depth: usize, name: &str, from: u64, to: u64) -> Shown {
    Shown::Slice(depth, name.into(), from, to)
}

#[test]
fn slices_nest_and_tracks_have_their_order() -> io::Result<()> {
    let mut trace = Trace::new(Vec::new());
    let cpus = trace.group(None, "CPUs")?;
    let [first, second] = [trace.slices(Some(cpus), "CPU 0")?, trace.slices(Some(cpus), "CPU 1")?];
    let memory = trace.values(None, "slab memory", Unit::Bytes)?;
    trace.begin(first, 1_000, "task 1")?;
    trace.value(memory, 1_500, 4096)?;
    // Within a nanosecond: the order of the calls is kept.
    trace.begin(first, 2_100, "list_lock")?;
    trace.end(first, 2_900)?;
    trace.begin(first, 2_950, "list_lock")?;
    trace.instant(first, 3_000, "refill")?;
    trace.end(first, 7_999)?;
    trace.end(first, 7_999)?;
    trace.begin(first, 7_999, "task 2")?;
    // A track is not behind another.
    trace.begin(second, 500, "task 3")?;
    trace.end(second, 8_000)?;
    trace.value(memory, 9_000, -1)?;
    let read = read(&trace.finish()?);
    let expected = [
        ("CPUs", vec![]),
        (
            "CPUs/CPU 0",
            vec![
                slice(0, "task 1", 1, 7),
                slice(1, "list_lock", 2, 2),
                slice(1, "list_lock", 2, 7),
                Shown::Instant("refill".into(), 3),
                slice(0, "task 2", 7, u64::MAX),
            ],
        ),
        ("CPUs/CPU 1", vec![slice(0, "task 3", 0, 8)]),
        ("slab memory", vec![Shown::Value(1, 4096), Shown::Value(9, -1)]),
    ];
    assert_eq!(read.tracks, expected.map(|(name, events)| (name.to_string(), events)));
    assert_eq!(read.cleared, 1);
    Ok(())
}

#[test]
fn what_a_reader_would_misplace_is_refused() -> io::Result<()> {
    let check = |expected: &str, wrong: fn(&mut Trace<Vec<u8>>) -> io::Result<()>| {
        let error = wrong(&mut Trace::new(Vec::new())).expect_err(expected);
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::InvalidInput, expected));
    };
    check("track 0: a slice ends at 5 ps and none is open", |trace| {
        let track = trace.slices(None, "a")?;
        trace.end(track, 5)
    });
    check("track 0: an event at 4 ns after one at 5 ns", |trace| {
        let track = trace.slices(None, "a")?;
        trace.begin(track, 5_000, "b")?;
        trace.end(track, 4_999)
    });
    check("track 0 holds Group, not Slices", |trace| {
        let track = trace.group(None, "a")?;
        trace.instant(track, 5, "b")
    });
    check("track 0 holds Slices, not Values", |trace| {
        let track = trace.slices(None, "a")?;
        trace.value(track, 5, 1)
    });
    Ok(())
}

#[test]
fn names_from_outside_steer_no_viewer() -> io::Result<()> {
    for name in HOSTILE {
        let mut trace = Trace::new(Vec::new());
        let track = trace.slices(None, name)?;
        trace.values(None, name, Unit::Other(name))?;
        trace.begin(track, 0, name)?;
        trace.end(track, 1)?;
        let file = trace.finish()?;
        let read = read(&file);
        let Shown::Slice(_, shown, ..) = &read.tracks[0].1[0] else { panic!("no slice") };
        for text in [&read.tracks[0].0, &read.tracks[1].0, shown] {
            check_names("a trace", text);
        }
    }
    Ok(())
}

/// A million slices in 64 tracks, with more names than the writer's table keeps: the table is cleared now and
/// then, and no name is lost.
#[test]
fn a_million_events_and_names_without_end() -> io::Result<()> {
    const SLICES: u64 = 500_000;
    let mut trace = Trace::new(Vec::new());
    let tracks = (0..64).map(|cpu| trace.slices(None, &format!("CPU {cpu}")));
    let tracks = tracks.collect::<io::Result<Vec<_>>>()?;
    let name = |at: u64| format!("task {}", at % 40_000);
    for at in 0..SLICES {
        let track = tracks[at as usize % tracks.len()];
        trace.begin(track, at * 1_000, &name(at))?;
        trace.end(track, at * 1_000 + 999)?;
    }
    let file = trace.finish()?;
    let read = read(&file);
    assert_eq!(read.packets as u64, 64 + 2 * SLICES);
    assert!(read.cleared > 10, "the table was cleared {} times", read.cleared);
    for (cpu, (_, slices)) in read.tracks.iter().enumerate() {
        assert_eq!(slices.len() as u64, (SLICES - cpu as u64).div_ceil(64));
        let shown = |(turn, found): (usize, &Shown)| {
            let at = turn as u64 * 64 + cpu as u64;
            assert_eq!(*found, slice(0, &name(at), at, at));
        };
        slices.iter().enumerate().for_each(shown);
    }
    Ok(())
}

/// A full disk is an error, at the latest at the end.
#[test]
fn a_full_disk_is_an_error() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let write = |room: usize, values: u64| {
        let mut trace = Trace::new(Full(room));
        let track = trace.values(None, "a", Unit::Count)?;
        (0..values).try_for_each(|at| trace.value(track, at, 1))?;
        trace.finish()
    };
    for (room, values, fits) in [(1 << 20, 10_000, true), (10, 1, false), (1 << 17, 10_000, false)] {
        let found = write(room, values).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(found, if fits { Ok(()) } else { Err(io::ErrorKind::StorageFull) }, "{room} {values}");
    }
}
