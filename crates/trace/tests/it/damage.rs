//! Files that are not what they should be, files of later versions, and rewriting them.

use std::sync::Arc;

use crate::common::{Line, Random, random_lines, read, write};
use bytes::Bytes;
use parquet::basic::{Repetition, Type as Physical};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use slablab_trace::{Batch, Columns, Error, Metadata, Reader, Row, rewrite};

/// The same file with footer keys changed and columns `extra` added, as another program would do it.
fn remake(file: &Bytes, keys: &[(&str, &str)], extra: &[TypePtr], drop: &[&str]) -> Bytes {
    let reader = SerializedFileReader::new(file.clone()).unwrap();
    let footer = reader.metadata();
    let old = footer.file_metadata();
    let kept = |name: &str| !drop.contains(&name);
    let ours = old.schema().get_fields().iter().filter(|field| kept(field.name())).cloned();
    let fields = ours.chain(extra.iter().cloned()).collect();
    let schema = Type::group_type_builder("schema").with_fields(fields).build().unwrap();
    let mut out = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Default::default()).unwrap();
    for group in footer.row_groups() {
        let mut copy = out.next_row_group().unwrap();
        for column in group.columns().iter().filter(|column| kept(column.column_path().string().as_str())) {
            let copied = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: group.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            copy.append_column(file, copied).unwrap();
        }
        let rows = group.num_rows() as usize;
        for column in extra {
            let mut writer = copy.next_column().unwrap().unwrap();
            match column.get_physical_type() {
                Physical::DOUBLE => {
                    let values: Vec<f64> = (0..rows).map(|row| row as f64 / 3.0).collect();
                    writer.typed::<DoubleType>().write_batch(&values, None, None).unwrap();
                }
                Physical::INT64 => {
                    let levels: Vec<i16> = (0..rows).map(|row| (row % 3 != 0) as i16).collect();
                    let values: Vec<i64> = (0..rows as i64).filter(|row| row % 3 != 0).collect();
                    writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None).unwrap();
                }
                _ => {
                    let values: Vec<ByteArray> =
                        (0..rows).map(|row| ByteArray::from(&*format!("n{row}"))).collect();
                    writer.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
                }
            }
            writer.close().unwrap();
        }
        copy.close().unwrap();
    }
    for entry in old.key_value_metadata().unwrap() {
        let new = keys.iter().find(|(key, _)| *key == entry.key).map(|(_, value)| value.to_string());
        out.append_key_value_metadata(KeyValue::new(entry.key.clone(), new.or(entry.value.clone())));
    }
    for (key, value) in keys.iter().filter(|(key, _)| !key.starts_with("slablab.format")) {
        out.append_key_value_metadata(KeyValue::new(key.to_string(), value.to_string()));
    }
    out.into_inner().unwrap().into()
}

fn column(name: &str, physical: Physical, repetition: Repetition) -> TypePtr {
    Arc::new(Type::primitive_type_builder(name, physical).with_repetition(repetition).build().unwrap())
}

/// Every value of a leaf, as text.
fn leaf(file: &Bytes, name: &str) -> Vec<String> {
    let reader = SerializedFileReader::new(file.clone()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap());
    let cell = |row: parquet::record::Row| {
        row.get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field.to_string()).unwrap()
    };
    rows.map(cell).collect()
}

#[test]
fn columns_and_keys_of_others_survive_a_rewrite() {
    let lines = random_lines(5, 1000);
    let extra = [
        column("weight", Physical::DOUBLE, Repetition::REQUIRED),
        column("cgroup", Physical::INT64, Repetition::OPTIONAL),
        column("note", Physical::BYTE_ARRAY, Repetition::REQUIRED),
    ];
    let keys = [("slablab.format", "\"1.7\""), ("slablab.mood", "{\"a\": [1, 2]}"), ("pandas", "{}")];
    let file = remake(&write(&lines, 300, Metadata::default()), &keys, &extra, &[]);
    assert_eq!(
        Reader::new(file.clone()).unwrap().extra_columns().collect::<Vec<_>>(),
        ["weight", "cgroup", "note"]
    );

    let edit = |batch: &mut slablab_trace::Batch, texts: &mut slablab_trace::Texts| {
        let cache = texts.cache.id("renamed");
        batch.cache.iter_mut().for_each(|cell| *cell = cache);
        batch.cpu.iter_mut().for_each(|cpu| *cpu /= 2);
    };
    let describe = |metadata: &mut Metadata| metadata.release = Some("7.0".into());
    let copy: Bytes = rewrite(file.clone(), Vec::new(), edit, describe).unwrap().into();

    let mut expected = lines;
    for line in &mut expected {
        (line.cache, line.row.cpu) = (Some("renamed".into()), line.row.cpu / 2);
    }
    assert!(read(copy.clone(), Columns::ALL, 128).unwrap() == expected);
    for name in ["weight", "cgroup", "note"] {
        assert_eq!(leaf(&copy, name), leaf(&file, name), "{name}");
    }
    let reader = Reader::new(copy).unwrap();
    let metadata = reader.metadata();
    assert_eq!(metadata.other["mood"]["a"][1], 2);
    assert_eq!(metadata.foreign, [("pandas".to_string(), Some("{}".to_string()))]);
    assert_eq!(metadata.release.as_deref(), Some("7.0"));
}

#[track_caller]
fn refused(file: Bytes, expected: &str) {
    let error = read(file, Columns::ALL, 100).unwrap_err().to_string();
    assert!(error.contains(expected), "expected an error with {expected:?}, found {error:?}");
}

#[test]
fn what_is_not_a_trace_is_refused() {
    let file = write(&random_lines(6, 500), 200, Metadata::default());
    refused(
        remake(&file, &[("slablab.format", "\"2.0\"")], &[], &[]),
        "format 2.0, this program reads up to 1.x",
    );
    refused(remake(&file, &[("slablab.format", "two")], &[], &[]), "expected \"major.minor\", found two");
    refused(remake(&file, &[], &[], &["object"]), "column \"object\" is missing");
    refused(remake(&file, &[("slablab.losses", "3")], &[], &[]), "slablab.losses");
    refused(remake(&file, &[("slablab.losses", "{")], &[], &[]), "slablab.losses");
    let event = column("event", Physical::DOUBLE, Repetition::REQUIRED);
    refused(remake(&file, &[], &[event], &["event"]), "column \"event\": expected uint8, found DOUBLE");
    let low = r#"{"object_ids": 5}"#;
    refused(remake(&file, &[("slablab.statistics", low)], &[], &[]), "the footer says that ids are below 5");
    refused(Bytes::from_static(b""), "expected a whole Parquet file");
    refused(Bytes::from_static(b"PAR1 but then nothing of the kind PAR1"), "expected a whole Parquet file");
}

/// A column of an older minor version or of another program: absent, wider, nullable.
#[test]
fn columns_may_be_absent_or_wider_or_nullable() {
    let lines: Vec<Line> =
        (0..90).map(|cpu| Line::new(Row { cpu, ..Row::default() }, "a", "b", "c")).collect();
    let wide = column("cpu", Physical::INT64, Repetition::OPTIONAL);
    let file =
        remake(&write(&lines, 40, Metadata::default()), &[], &[wide], &["cpu", "comm", "node", "flags"]);
    let found = read(file, Columns::ALL, 7).unwrap();
    for (row, line) in found.iter().enumerate() {
        // `remake` fills the column with the row's number in its group, and nulls at multiples of 3.
        let number = row as u16 % 40;
        assert_eq!(line.row.cpu, if number.is_multiple_of(3) { 0 } else { number });
        assert_eq!((line.row.node, line.row.flags, &line.comm), (-1, 0, &None));
    }
}

#[test]
fn a_truncated_file_is_refused() {
    let file = write(&random_lines(7, 2000), 500, Metadata::default());
    for length in (0..file.len()).step_by(97).chain([file.len() - 1]) {
        let error = Reader::new(file.slice(..length)).err().expect("a truncated file has no footer");
        assert!(matches!(error, Error::NotParquet(_)), "{length} bytes: {error}");
    }
}

/// Flipped bytes: rows or an error, never a panic.
#[test]
fn damaged_bytes_do_not_panic() {
    let file = write(&random_lines(8, 600), 150, Metadata::default());
    let mut random = Random(9);
    let mut errors = 0;
    for _ in 0..600 {
        let mut bytes = file.to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        errors += u32::from(read(bytes.into(), Columns::ALL, 256).is_err());
    }
    assert!(errors > 200, "only {errors} of 600 damaged files were noticed");
}

/// A column's dictionary page is damaged so that the Parquet decoder panics: the reader answers with an
/// error.
#[test]
fn a_page_that_makes_the_decoder_panic_is_refused() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dictionary-missing.parquet");
    let file = Bytes::from(std::fs::read(path).expect("the file is there"));
    let reader = Reader::new(file).expect("the footer is whole");
    let (mut batches, mut batch) = (reader.batches(Columns::ALL), Batch::default());
    let error = loop {
        match batches.next(&mut batch) {
            Ok(more) => assert!(more, "the damage was not seen"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("Decoder for dict should have been set"), "{error}");
}

/// The panic of the test above is no text on standard error: a program that reads the file prints one error.
#[test]
fn a_panic_of_the_decoder_prints_nothing() {
    let test = "damage::a_page_that_makes_the_decoder_panic_is_refused";
    let run = std::process::Command::new(std::env::current_exe().expect("a test has a file"))
        .args(["--exact", test, "--nocapture"])
        .output()
        .expect("the test runs");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && !said.contains("panicked"), "{said}");
    assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"), "the test was not found");
}
