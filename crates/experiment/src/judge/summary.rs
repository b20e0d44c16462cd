//! What is written of an experiment: every sample as Parquet, the statistics of each cell as JSON.

use crate::plan::{Cell, values_json};
use crate::run::folder::{Folder, failed_json};
use crate::run::results::{Results, keys};
use crate::workload::Metric;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::{Map, Value as Json, json};
use slablab_report::error::{At, Result};
use slablab_report::frame::Frame;
use slablab_report::html::Cell as Shown;
use slablab_stats::table::Better;
use std::sync::Arc;

/// A row is one number of one run.
const SCHEMA: &str = "message samples {
    required int32 cell;
    required binary machine (utf8);
    required binary engine (utf8);
    required binary parameters (utf8);
    required binary costs (utf8);
    required int32 repeat;
    required binary name (utf8);
    required int64 value (integer(64, false));
}";

/// Every number of every run, as a Parquet file.
///
/// # Errors
/// What the Parquet library refuses.
pub fn samples(results: &Results) -> Result<Vec<u8>> {
    write(results).at(&results.experiment.path)
}

/// Every number of every run, as the rows of [`samples`].
pub fn samples_frame(results: &Results) -> Frame {
    let keys = ["cell", "machine", "engine", "parameters", "costs", "repeat", "name", "value"];
    let mut frame = Frame::new(keys);
    for (at, (cell, runs)) in results.plan.cells.iter().zip(&results.runs).enumerate() {
        let texts = texts(results, cell).map(Shown::Text);
        for (repeat, sample) in runs.iter().flatten().enumerate() {
            let Ok(sample) = sample else { continue };
            for (name, value) in sample.numbers() {
                let number = [Shown::Count(repeat as u64), Shown::Text(name), Shown::Count(value)];
                frame.row([Shown::Count(at as u64)].into_iter().chain(texts.iter().cloned()).chain(number));
            }
        }
    }
    frame
}

/// The columns of a file of samples.
#[derive(Default)]
struct Columns {
    numbers: [Vec<i32>; 2],
    texts: [Vec<ByteArray>; 5],
    values: Vec<i64>,
}

fn write(results: &Results) -> parquet::errors::Result<Vec<u8>> {
    let mut columns = Columns::default();
    for (at, (cell, runs)) in results.plan.cells.iter().zip(&results.runs).enumerate() {
        let texts = texts(results, cell);
        for (repeat, sample) in runs.iter().flatten().enumerate() {
            let Ok(sample) = sample else { continue };
            for (name, value) in sample.numbers() {
                columns.numbers[0].push(at as i32);
                columns.numbers[1].push(repeat as i32);
                for (column, text) in columns.texts.iter_mut().zip(texts.iter().cloned().chain([name])) {
                    column.push(ByteArray::from(text.into_bytes()));
                }
                columns.values.push(value as i64);
            }
        }
    }
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = WriterProperties::builder().set_compression(compression).build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let [cells, repeats] = &columns.numbers;
    let [machines, engines, parameters, costs, names] = &columns.texts;
    numbers(&mut group, cells)?;
    for texts in [machines, engines, parameters, costs] {
        words(&mut group, texts)?;
    }
    numbers(&mut group, repeats)?;
    words(&mut group, names)?;
    if let Some(mut column) = group.next_column()? {
        column.typed::<Int64Type>().write_batch(&columns.values, None, None)?;
        column.close()?;
    }
    group.close()?;
    writer.into_inner()
}

fn numbers(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    numbers: &[i32],
) -> parquet::errors::Result<()> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<Int32Type>().write_batch(numbers, None, None)?;
    column.close()
}

fn words(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    words: &[ByteArray],
) -> parquet::errors::Result<()> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<ByteArrayType>().write_batch(words, None, None)?;
    column.close()
}

/// Machine, engine, parameters and changed costs of a cell.
fn texts(results: &Results, cell: &Cell) -> [String; 4] {
    let experiment = &results.experiment;
    [
        experiment.machines[cell.machine].name.clone(),
        experiment.file.engines[cell.engine].0.clone(),
        values_json(&cell.values).to_string(),
        experiment.words(cell.scaled),
    ]
}

/// The statistics of each cell, as a document.
pub fn summary(results: &Results) -> Json {
    let cells = results.plan.cells.iter().enumerate().filter_map(|(at, cell)| {
        let runs = results.runs[at].as_ref()?;
        let [machine, engine, _, costs] = texts(results, cell);
        let metrics = results.experiment.file.workload.metrics.iter();
        let of = |metric: &Metric| Some((metric.name.to_string(), statistics(results, at, metric)?));
        let metrics: Map<String, Json> = metrics.filter_map(of).collect();
        let failed: Vec<Json> = runs.iter().filter_map(|run| run.as_ref().err()).map(failed_json).collect();
        Some(json!({
            "cell": at,
            "machine": machine,
            "engine": engine,
            "parameters": values_json(&cell.values),
            "costs": costs,
            "runs": runs.len(),
            "failed": failed,
            "metrics": metrics,
        }))
    });
    let file = &results.experiment.file;
    let mut document = json!({
        "schema": "slablab.experiment.1",
        "name": file.name,
        "title": file.title,
        "workload": file.workload.name,
        "size": results.plan.size.name(),
        "repeats": results.plan.repeats.least,
        "seed": results.plan.seed,
        "metric": file.workload.metrics[file.metric].name,
        "metrics": file.workload.metrics.iter().map(metric).collect::<Vec<_>>(),
        "cells": cells.collect::<Vec<_>>(),
    });
    results.plan.repeats.add_to(&mut document);
    document
}

/// How a metric's numbers are shown: in `unit`, of which each has `per_unit` of the numbers' own.
fn metric(metric: &Metric) -> Json {
    json!({
        "name": metric.name,
        "unit": metric.unit,
        "per_unit": metric.per_unit,
        "decimals": metric.decimals,
        "better": metric.better.map(|better| match better {
            Better::Lower => "lower",
            Better::Higher => "higher",
        }),
    })
}

/// The statistics of one number over the repeats. Two or more have an interval of the mean.
fn statistics(results: &Results, at: usize, metric: &Metric) -> Option<Json> {
    let sample = results.sample(at, metric)?;
    if sample.n() == 1 {
        return Some(json!({ "n": 1, "mean": sample.mean() }));
    }
    let interval = results.interval(at, metric);
    let ends = interval.map_or([Json::Null, Json::Null], |ends| [json!(ends.low), json!(ends.high)]);
    let [low, high] = ends;
    let mut found = json!({
        "n": sample.n(),
        "mean": sample.mean(),
        "sd": sample.sd(),
        "median": sample.median(),
        "min": sample.min(),
        "max": sample.max(),
        "mean_low_95": low,
        "mean_high_95": high,
    });
    if let Some(parts) = results.parts(at, metric) {
        found["placements"] = json!({
            "sd_within": parts.within.sqrt(),
            "sd_between": parts.between.sqrt(),
            "share_between": parts.share_between(),
            "p": parts.p,
        });
    }
    Some(found)
}

impl Results {
    /// Writes everything but `host.json`: these files are the same from run to run.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write(&self, folder: &Folder) -> Result<()> {
        folder.write("samples.parquet", &samples(self)?)?;
        folder.write_json("summary.json", &summary(self))
    }

    /// Writes joined parts as if they had been run at once.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write_whole(&self, folder: &Folder) -> Result<()> {
        let keys = keys(&self.experiment, &self.plan, &self.program);
        folder.write_inputs(&self.experiment)?;
        folder.write_plan(&self.plan.json(&self.program, &keys))?;
        for (key, runs) in keys.iter().zip(&self.runs) {
            folder.keep(key, runs.as_ref().expect("joined parts have all cells"))?;
        }
        self.write(folder)
    }
}
