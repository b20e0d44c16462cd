//! `slablab list experiments` and `slablab list workloads`.

use crate::laboratory::listed::{self, How};
use crate::outcome::{Done, Failure};
use serde_json::Value;
use slablab_experiment::workload::{Kind, Workload};
use slablab_experiment::workloads::WORKLOADS;
use slablab_experiment::{ExperimentFile, INSTALLED};
use slablab_report::column::Columns;
use slablab_report::html::Cell;

/// An experiment and its name.
type Named = (&'static str, ExperimentFile);

fn named() -> Vec<Named> {
    let file = |text| ExperimentFile::parse(text).expect("installed experiments are read by a test");
    INSTALLED.iter().map(|installed| (installed.name, file(installed.text))).collect()
}

fn experiment_columns() -> Columns<Named> {
    Columns::default()
        .key("experiment", |(name, _): &Named| Cell::Text((*name).into()))
        .key("title", |(_, file)| Cell::Text(file.title.clone()))
        .key("published", |(_, file)| Cell::Text(if file.has_published() { "yes" } else { "no" }.into()))
        .described("yes if the experiment has published figures")
}

pub(crate) fn experiments(how: &How) -> Result<Done, Failure> {
    let rows = named();
    let published = rows.iter().filter(|(_, file)| file.has_published()).count();
    let sentence = format!(
        "{} experiments come with the program, {published} of them with published figures.",
        rows.len()
    );
    let items = rows.iter().map(|(name, file)| format!("{name}: {}", file.title));
    let answer = listed::answer("experiments", sentence, &experiment_columns(), &rows);
    how.write(&answer.heading("Experiments").list(items))
}

/// A parameter or a metric of a workload.
struct Item {
    workload: &'static Workload,
    kind: &'static str,
    name: &'static str,
    about: &'static str,
    /// Its values in quick, standard and full runs; a metric has none.
    defaults: [String; 3],
    allowed: String,
}

fn items(workload: &'static Workload) -> impl Iterator<Item = Item> {
    let parameters = workload.parameters.iter().map(move |parameter| {
        let (defaults, allowed) = match parameter.kind {
            Kind::Number { least, most, defaults } => {
                (defaults.map(|number| number.to_string()), format!("{least}..{most}"))
            }
            Kind::Word(words) => ([0; 3].map(|_| words[0].to_string()), words.join("|")),
            Kind::File => (Default::default(), "file".into()),
        };
        Item { workload, kind: "parameter", name: parameter.name, about: parameter.about, defaults, allowed }
    });
    parameters.chain(workload.metrics.iter().map(move |metric| Item {
        workload,
        kind: "metric",
        name: metric.name,
        about: metric.about,
        defaults: Default::default(),
        allowed: String::new(),
    }))
}

fn workload_columns() -> Columns<Item> {
    Columns::default()
        .key("workload", |row: &Item| Cell::Text(row.workload.name.into()))
        .key("what", |row| Cell::Text(row.workload.about.into()))
        .key("kind", |row| Cell::Text(row.kind.into()))
        .key("name", |row| Cell::Text(row.name.into()))
        .key("about", |row| Cell::Text(row.about.into()))
        .key("quick", |row| Cell::Text(row.defaults[0].clone()))
        .key("standard", |row| Cell::Text(row.defaults[1].clone()))
        .key("full", |row| Cell::Text(row.defaults[2].clone()))
        .key("allowed", |row| Cell::Text(row.allowed.clone()))
}

pub(crate) fn workloads(how: &How) -> Result<Done, Failure> {
    let rows: Vec<Item> = WORKLOADS.iter().copied().flat_map(items).collect();
    let of = |kind: &str| rows.iter().filter(|row| row.kind == kind).count();
    let sentence = format!(
        "{} workloads with {} parameters and {} metrics together.",
        WORKLOADS.len(),
        of("parameter"),
        of("metric")
    );
    let answer = listed::answer("workloads", sentence, &workload_columns(), &rows).heading("Workloads");
    how.write(&WORKLOADS.iter().copied().fold(answer, |answer, workload| {
        let names = |kind: &str| {
            let names = items(workload).filter(|item| item.kind == kind).map(|item| item.name);
            names.collect::<Vec<_>>().join(", ")
        };
        let below = [format!("parameters: {}", names("parameter")), format!("metrics: {}", names("metric"))];
        answer.entry(format!("{}: {}", workload.name, workload.about), below)
    }))
}

/// The JSON Schemas of a row of each list.
pub(crate) fn row_schemas() -> [Value; 2] {
    let item = WORKLOADS.iter().copied().flat_map(items).next().expect("a workload has metrics");
    [experiment_columns().schema(&named()[0]), workload_columns().schema(&item)]
}
