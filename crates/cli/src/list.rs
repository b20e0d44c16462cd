//! `slablab list`: what the program has by name, each list as a table, JSON or CSV.

use crate::listed::How;
use crate::outcome::{Done, Failure};
use crate::{engines, machines, schema, vm};
use slablab_experiment::output::experiments_list;
use slablab_experiment::workload::{Kind, Workload};
use slablab_experiment::workloads::WORKLOADS;
use slablab_experiment::{ExperimentFile, INSTALLED};
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_report::text;

/// Lists what the program has by name.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab list engines\n  slablab list engines slub@7.0 --format json\n  slablab list vm vm@6.1,lru_gen\n  slablab list machines numa8 > mine.toml\n  slablab list workloads --format csv"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Engines, releases and knobs
    Engines(engines::Args),
    /// Policies of page replacement, or every choice of one
    Vm(vm::Args),
    /// Machines that come with the program, or the file of one
    Machines(machines::Args),
    /// Experiments that come with the program
    Experiments(How),
    /// Workloads of experiments, with parameters and metrics
    Workloads(How),
    /// JSON Schemas of what verbs write with --format json
    Schemas(How),
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    match args.what {
        What::Engines(args) => engines::run(args),
        What::Vm(args) => vm::run(&args),
        What::Machines(args) => machines::run(args),
        What::Experiments(how) => experiments(&how),
        What::Workloads(how) => workloads(&how),
        What::Schemas(how) => schema::list(&how),
    }
}

fn experiments(how: &How) -> Result<Done, Failure> {
    let file = |text| ExperimentFile::parse(text).expect("installed experiments are read by a test");
    let rows: Vec<_> = INSTALLED.iter().map(|installed| (installed.name, file(installed.text))).collect();
    let columns = Columns::default()
        .key("experiment", |(name, _): &(&str, ExperimentFile)| Cell::Text((*name).into()))
        .key("title", |(_, file)| Cell::Text(file.title.clone()))
        .key("published", |(_, file)| Cell::Text(if file.has_published() { "yes" } else { "no" }.into()));
    how.write("experiments", || Ok(experiments_list()), &columns, &rows)
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

fn workloads(how: &How) -> Result<Done, Failure> {
    let rows: Vec<Item> = WORKLOADS.iter().copied().flat_map(items).collect();
    let columns = Columns::default()
        .key("workload", |row: &Item| Cell::Text(row.workload.name.into()))
        .key("what", |row| Cell::Text(row.workload.about.into()))
        .key("kind", |row| Cell::Text(row.kind.into()))
        .key("name", |row| Cell::Text(row.name.into()))
        .key("about", |row| Cell::Text(row.about.into()))
        .key("quick", |row| Cell::Text(row.defaults[0].clone()))
        .key("standard", |row| Cell::Text(row.defaults[1].clone()))
        .key("full", |row| Cell::Text(row.defaults[2].clone()))
        .key("allowed", |row| Cell::Text(row.allowed.clone()));
    let table = || {
        let mut out = String::new();
        for workload in WORKLOADS.iter().copied() {
            out += &text::wrapped(&format!("{}: {}", workload.name, workload.about), "", "  ");
            let names = |kind: &str| {
                let names = items(workload).filter(|item| item.kind == kind).map(|item| item.name);
                names.collect::<Vec<_>>().join(", ")
            };
            out += &text::wrapped(&format!("parameters: {}", names("parameter")), "  ", "    ");
            out += &text::wrapped(&format!("metrics: {}", names("metric")), "  ", "    ");
        }
        Ok(out)
    };
    how.write("workloads", table, &columns, &rows)
}
