//! Traces that lost events, that another program wrote, or that say what no kernel says.

use super::program::{LINEAR_MAP, open, trace};
use super::{PRESETS, presets, run};
use slablab_replay::replay::{Options, Replay, replay};
use slablab_trace::{EventKind, Metadata, NONE, Row, Writer};
use std::path::Path;

#[test]
fn losses_are_carried() {
    let replay = run(&trace("6.1.0", "cache filp 256; 0 alloc filp 0; lost 7"), &Options::default());
    assert_eq!(replay.metadata.losses.records, 1);
    let said = slablab_replay::output::remarks(&replay);
    assert!(said.iter().any(|remark| remark.contains("lost") && remark.contains("incomplete")), "{said:?}");
}

/// A trace that says what no kernel says.
fn hostile(rows: &[Row], metadata: Metadata) -> Result<Replay, String> {
    let mut writer = Writer::new(Vec::new()).expect("memory");
    let filp = writer.texts().cache.id("filp");
    for row in rows {
        writer.push(&Row { cache: if row.cache == 0 { filp } else { NONE }, ..*row }).expect("memory");
    }
    let reader = open(&writer.finish(metadata).expect("memory").0);
    let options = Options { engines: presets(&PRESETS), ..Options::default() };
    replay(&reader, Path::new("hostile"), &options, &|_, _| {}).map_err(|error| error.to_string())
}

#[test]
fn hostile_traces() {
    let alloc = Row {
        event: EventKind::Kmalloc as u8,
        object: 0,
        address: LINEAR_MAP,
        bytes_alloc: 256,
        bytes_req: 256,
        ..Row::default()
    };
    let refused = |row: Row, words: &str| {
        let error = hostile(&[row], Metadata::default()).expect_err("it cannot be replayed");
        assert!(error.starts_with("hostile: ") && error.contains(words), "{error}");
    };
    refused(Row { object: NONE - 1, ..alloc }, "dense ids");
    let pages = Row { event: EventKind::PageAlloc as u8, pfn: i64::MAX, order: 127, ..Row::default() };
    let taken = |rows: &[Row]| hostile(rows, Metadata::default()).expect("it can be replayed");
    taken(&[pages, alloc]);
    for bytes_alloc in [0, 1, 100, 1 << 30, u32::MAX] {
        taken(&[Row { bytes_alloc, ..alloc }, Row { event: EventKind::Kfree as u8, ..alloc }]);
    }
    for address in [1, u64::MAX] {
        taken(&[Row { address, ..alloc }, Row { event: EventKind::Kfree as u8, address, ..alloc }]);
    }
    taken(&[Row { node: i16::MAX, ..alloc }, Row { event: 200, ..alloc }, Row { gfp: u32::MAX, ..alloc }]);
    // Years between two events.
    taken(&[alloc, Row { time_ns: i64::MAX as u64, event: EventKind::Kfree as u8, ..alloc }]);
    taken(&[Row { time_ns: i64::MAX as u64, ..alloc }, Row { event: EventKind::Kfree as u8, ..alloc }]);
    taken(&[Row { cpu: 4095, ..alloc }]);
    taken(&[]);
}

/// Only the kinds of kmalloc that a recording has are listed by import; other writers need not list any.
#[test]
fn a_trace_of_another_program() {
    let alloc = Row {
        event: EventKind::Kmalloc as u8,
        object: 0,
        address: LINEAR_MAP,
        bytes_alloc: 256,
        bytes_req: 200,
        ..Row::default()
    };
    let replay = hostile(&[alloc], Metadata::default()).expect("it can be replayed");
    assert_eq!((replay.outcomes[0].large.allocs, replay.outcomes[0].traffic().allocs), (0, 1));
}
