//! What is written of an experiment: every sample as Parquet, the statistics of each cell as JSON.

use crate::plan::Cell;
use crate::repeats::MoreRepeats;
use crate::run::folder::{Ended, Folder};
use crate::run::results::Results;
use crate::workload::{Metric, Values};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use slablab_report::error::{At, Result};
use slablab_report::frame::Frame;
use slablab_report::html::Cell as Shown;
use slablab_stats::table::Better;
use std::collections::BTreeMap;
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
        json!(cell.values).to_string(),
        (if cell.drawn { "drawn" } else { "" }).into(),
    ]
}

/// The statistics of each cell.
#[derive(Clone, Serialize, JsonSchema)]
pub struct Summary {
    /// slablab.experiment.1
    schema: &'static str,
    name: String,
    title: String,
    workload: &'static str,
    size: &'static str,
    /// Runs of each cell and placement, at least.
    repeats: u32,
    #[serde(flatten)]
    more_repeats: MoreRepeats,
    /// The seed of random numbers.
    seed: u64,
    /// The metric that is compared first.
    metric: &'static str,
    metrics: Vec<MetricDocument>,
    cells: Vec<CellDocument>,
}

/// How a metric's numbers are shown: in `unit`, of which each has `per_unit` of the numbers' own.
#[derive(Clone, Serialize, JsonSchema)]
struct MetricDocument {
    name: &'static str,
    unit: &'static str,
    per_unit: f64,
    decimals: usize,
    /// Which values are better, lower or higher; null if neither is.
    better: Option<&'static str>,
}

#[derive(Clone, Serialize, JsonSchema)]
struct CellDocument {
    /// Its place in the experiment.
    cell: usize,
    machine: String,
    engine: String,
    /// The workload's parameters that the experiment sets.
    parameters: Values,
    /// What is changed of the machine's costs.
    costs: String,
    runs: usize,
    failed: Vec<Ended>,
    /// Statistics of each metric over the repeats, by its name.
    metrics: BTreeMap<&'static str, Statistics>,
}

/// The statistics of one number over the repeats. Two or more have an interval of the mean.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum Statistics {
    One {
        n: usize,
        mean: f64,
    },
    Several {
        n: usize,
        mean: f64,
        sd: f64,
        median: f64,
        min: f64,
        max: f64,
        mean_low_95: Option<f64>,
        mean_high_95: Option<f64>,
        /// The variance within and between placements, if there are several.
        #[serde(skip_serializing_if = "Option::is_none")]
        placements: Option<PlacementsDocument>,
    },
}

#[derive(Clone, Serialize, JsonSchema)]
struct PlacementsDocument {
    sd_within: f64,
    sd_between: f64,
    share_between: f64,
    /// The probability of such means if placements make no difference; null if there is no scatter.
    #[schemars(with = "Option<f64>")]
    p: f64,
}

/// The statistics of each cell, as a document.
pub fn summary(results: &Results) -> Summary {
    let cells = results.plan.cells.iter().enumerate().filter_map(|(at, cell)| {
        let runs = results.runs[at].as_ref()?;
        let [machine, engine, _, costs] = texts(results, cell);
        let metrics = results.experiment.file.workload.metrics.iter();
        let of = |metric: &'static Metric| Some((metric.name, statistics(results, at, metric)?));
        Some(CellDocument {
            cell: at,
            machine,
            engine,
            parameters: cell.values.clone(),
            costs,
            runs: runs.len(),
            failed: runs.iter().filter_map(|run| run.as_ref().err()).map(Ended::from).collect(),
            metrics: metrics.filter_map(of).collect(),
        })
    });
    let file = &results.experiment.file;
    let metric = |metric: &'static Metric| MetricDocument {
        name: metric.name,
        unit: metric.unit,
        per_unit: metric.per_unit,
        decimals: metric.decimals,
        better: metric.better.map(Better::word),
    };
    Summary {
        schema: "slablab.experiment.1",
        name: file.name.clone(),
        title: file.title.clone(),
        workload: file.workload.name,
        size: results.plan.size.name(),
        repeats: results.plan.repeats.least,
        more_repeats: results.plan.repeats.more(),
        seed: results.plan.seed,
        metric: file.workload.metrics[file.metric].name,
        metrics: file.workload.metrics.iter().map(metric).collect(),
        cells: cells.collect(),
    }
}

fn statistics(results: &Results, at: usize, metric: &Metric) -> Option<Statistics> {
    let sample = results.sample(at, metric)?;
    if sample.n() == 1 {
        return Some(Statistics::One { n: 1, mean: sample.mean() });
    }
    let interval = results.interval(at, metric);
    let placements = results.parts(at, metric).map(|parts| PlacementsDocument {
        sd_within: parts.within.sqrt(),
        sd_between: parts.between.sqrt(),
        share_between: parts.share_between(),
        p: parts.p,
    });
    Some(Statistics::Several {
        n: sample.n(),
        mean: sample.mean(),
        sd: sample.sd(),
        median: sample.median(),
        min: sample.min(),
        max: sample.max(),
        mean_low_95: interval.map(|ends| ends.low),
        mean_high_95: interval.map(|ends| ends.high),
        placements,
    })
}

impl Results {
    /// Writes everything but `host.json`: these files are the same from run to run.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write(&self, folder: &Folder) -> Result<()> {
        folder.write("samples.parquet", &samples(self)?)?;
        folder.write_json("summary.json", &json!(summary(self)))
    }

    /// Writes joined parts as if they had been run at once.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write_whole(&self, folder: &Folder) -> Result<()> {
        let keys = self.plan.keys(&self.experiment, &self.program);
        folder.begin(&self.experiment, &self.plan.json(&self.program, &keys))?;
        for (key, runs) in keys.iter().zip(&self.runs) {
            folder.keep(key, runs.as_ref().expect("joined parts have all cells"))?;
        }
        self.write(folder)
    }
}
