//! What is written is read: any rows, any sizes of row group and batch, any columns.

use crate::common::{Line, random_lines, read, write};
use slablab_trace::{
    Batch, COLUMNS, Columns, EventKind, Form, Metadata, Node, Reader, Row, Topology, Values,
};

#[track_caller]
fn check(lines: &[Line], group_rows: usize, batch_rows: usize) {
    let file = write(lines, group_rows, Metadata::default());
    let found = read(file.clone(), Columns::ALL, batch_rows).unwrap();
    assert_eq!(found.len(), lines.len());
    if let Some(row) = (0..lines.len()).find(|&row| found[row] != lines[row]) {
        panic!("row {row}: wrote {:?}, read {:?}", lines[row], found[row]);
    }
    assert_eq!(Reader::new(file).unwrap().rows(), lines.len() as u64);
}

#[test]
fn rows_come_back() {
    check(&[], 10, 10);
    check(&[Line::new(Row::default(), "", "", "")], 10, 10);
    for seed in 0..12 {
        let lines = random_lines(seed, 300 + 700 * seed as usize);
        check(&lines, 1 << 20, 1 << 14);
        check(&lines, 1000, 64);
        check(&lines, 77, 1000);
    }
}

/// A column with more strings than a dictionary page takes is written plain from there on.
#[test]
fn strings_without_a_dictionary_come_back() {
    let site = |index: usize| format!("{index:0>2000}");
    let lines: Vec<Line> =
        (0..6000).map(|index| Line::new(Row::default(), "bash", "", &site(index % 5000))).collect();
    check(&lines, 10_000, 256);
}

#[test]
fn runs_of_nulls_come_back() {
    let name = |index: usize| if (index / 500).is_multiple_of(2) { "" } else { "dentry" };
    let lines: Vec<Line> =
        (0..5000).map(|index| Line::new(Row::default(), "", name(index), "f+0x1")).collect();
    check(&lines, 5000, 300);
}

#[test]
fn only_the_columns_asked_for_are_read() {
    let file = write(&random_lines(1, 500), 100, Metadata::default());
    let reader = Reader::new(file).unwrap();
    let mut batch = Batch::default();
    let mut batches = reader.batches(Columns::EVENT | Columns::CACHE);
    assert!(batches.next(&mut batch).unwrap());
    assert_eq!((batch.len(), batch.event.len(), batch.cache.len()), (100, 100, 100));
    assert_eq!((batch.cpu.len(), batch.call_site.len(), batch.time_ns.len()), (0, 0, 0));
}

#[test]
fn every_column_is_taken_in_the_type_that_the_file_has() {
    let reader = Reader::new(write(&random_lines(1, 500), 100, Metadata::default())).unwrap();
    let mut batch = Batch::default();
    let mut batches = reader.batches(Columns::ALL);
    assert!(batches.next(&mut batch).unwrap());
    let whole = batch.clone();
    let number = |bits, signed| Form::Number { bits, signed };
    for column in COLUMNS {
        let (rows, form) = match batch.take(column, batches.texts()) {
            Values::U8(values) => (values.len(), number(8, false)),
            Values::I8(values) => (values.len(), number(8, true)),
            Values::U16(values) => (values.len(), number(16, false)),
            Values::I16(values) => (values.len(), number(16, true)),
            Values::U32(values) => (values.len(), number(32, false)),
            Values::I32(values) => (values.len(), number(32, true)),
            Values::U64(values) => (values.len(), number(64, false)),
            Values::I64(values) => (values.len(), number(64, true)),
            Values::Times(values) => {
                assert_eq!((column.name, &values), ("time_ns", &whole.time_ns));
                (values.len(), number(64, true))
            }
            Values::Texts(ids, table) => {
                let is_known = |id: &u32| *id == slablab_trace::NONE || table.get(*id).is_some();
                assert!(ids.iter().all(is_known), "{}", column.name);
                (ids.len(), Form::Text)
            }
        };
        assert_eq!((rows, form), (100, column.form), "{}", column.name);
    }
    assert_eq!(batch.len(), 100);
    assert!(batch.time_ns.is_empty() && batch.stack.is_empty());
}

#[test]
fn statistics_and_metadata_come_back() {
    let row = |event: EventKind, object, cpu, time_ns| {
        let row = Row { event: event as u8, object, cpu, time_ns, ..Row::default() };
        Line::new(row, "", "dentry", "")
    };
    let lines = [
        row(EventKind::Kmalloc, 0, 3, 10),
        row(EventKind::Kfree, 7, 1, 40),
        row(EventKind::Kmalloc, 2, 0, 30),
    ];
    let nodes = vec![Node { node: 1, cpus: vec![0, 1], memory_bytes: Some(1 << 40), distances: vec![10] }];
    let metadata = Metadata {
        release: Some("6.18.44".into()),
        page_size_bytes: Some(65536),
        topology: Topology { cpus_online: Some(4), nodes, ..Topology::default() },
        warnings: vec!["a \"quoted\" warning".into()],
        ..Metadata::default()
    };
    let reader = Reader::new(write(&lines, 2, metadata.clone())).unwrap();
    let found = reader.metadata();
    assert_eq!(found.release, metadata.release);
    assert_eq!(found.topology, metadata.topology);
    assert_eq!(found.warnings, metadata.warnings);
    let statistics = &found.statistics;
    assert_eq!((statistics.rows, statistics.object_ids, statistics.cpu_ids), (3, 8, 4));
    assert_eq!((statistics.first_time_ns, statistics.last_time_ns), (10, 40));
    assert_eq!(statistics.events["kmalloc"], 2);
    assert_eq!(found.caches.iter().map(|cache| &*cache.name).collect::<Vec<_>>(), ["dentry"]);
}
