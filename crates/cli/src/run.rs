//! `slablab run EXPERIMENT`: experiments on modelled machines. And `slablab report`, which joins their parts.

use crate::input::Progress;
use crate::outcome::{Done, Failure};
use crate::output::write_out;
use slablab_lab::experiment::run::program;
use slablab_lab::experiment::{
    Change, Experiment, Folder, Options, Plan, Results, Shard, Size, join, run as run_cells,
};
use slablab_lab::output::{
    experiment_avg_std, experiment_csv, experiment_description, experiment_json, experiment_markdown,
    experiment_mmtests, experiment_table, experiments_list, reproduce_csv, reproduce_json,
    reproduce_markdown, reproduce_table,
};
use slablab_report::json::document;
use std::path::{Path, PathBuf};

/// Runs an experiment.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab run --list\n  slablab run 2026 --quick\n  slablab run mine.toml -o results --format mmtests --wrap 72\n  slablab run mine.toml -o part3 --shard 3/8"
)]
pub(crate) struct Args {
    /// Experiment: a file (TOML), or the name of one that comes with the program (--list)
    #[arg(required_unless_present = "list")]
    experiment: Option<PathBuf>,
    /// Print what the experiment consists of, and run nothing
    #[arg(long)]
    describe: bool,
    /// List the experiments that come with the program
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    how: How,
    /// Run a part of the cells, as 3/8; `slablab report` joins the folders of all parts
    #[arg(long, value_name = "PART/PARTS", value_parser = Shard::parse, requires = "output")]
    shard: Option<Shard>,
    #[command(flatten)]
    look: Look,
}

/// How much is run, and where the results go.
#[derive(clap::Args)]
pub(crate) struct How {
    /// Folder for inputs, samples (Parquet) and summary (JSON); an interrupted run into it goes on
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Short runs, at most 3 of each cell
    #[arg(long)]
    quick: bool,
    /// Runs of each cell
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: Option<u32>,
    /// Seed of everything that varies from run to run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Threads; results do not depend on their number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Run although the estimate of time or memory is too much for this machine
    #[arg(long)]
    force: bool,
}

/// How an answer is printed.
#[derive(clap::Args)]
pub(crate) struct Look {
    /// Format of the answer
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// The widest line, 72 for a mail
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(40..=1000))]
    pub(crate) wrap: Option<u16>,
}

/// Forms of the answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Text
    Table,
    /// JSON
    Json,
    /// CSV
    Csv,
    /// Markdown
    Markdown,
    /// The table of mmtests
    Mmtests,
    /// AVG and STD, as in the mails of 2009
    Avgstd,
}

impl How {
    /// The options for an experiment that repeats its cells `repeats` times.
    pub(crate) fn options(&self, repeats: u32, sensitivity: bool) -> Result<Options, Failure> {
        let change = Change {
            size: self.quick.then_some(Size::Quick),
            repeats: self.repeats.or(self.quick.then_some(repeats.min(3))),
            seed: self.seed,
            sensitivity,
        };
        let path = std::env::current_exe()?;
        Ok(Options {
            change,
            shard: None,
            threads: self.threads.map(usize::from),
            force: self.force,
            program: program(env!("CARGO_PKG_VERSION"), &path)?,
        })
    }
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let Some(path) = args.experiment.filter(|_| !args.list) else {
        write_out(&experiments_list(), None)?;
        return Ok(Done::Complete);
    };
    let experiment = Experiment::find(&path)?;
    let options = Options { shard: args.shard, ..args.how.options(experiment.file.repeats, false)? };
    if args.describe {
        let plan = Plan::new(&experiment, &options.change)?;
        write_out(&experiment_description(&experiment, &plan), None)?;
        return Ok(Done::Complete);
    }
    let results = answer(&experiment, &options, args.how.output.as_deref())?;
    write_out(&args.look.text(&results, false), None)?;
    Ok(done(&results))
}

/// Runs an experiment, with progress on a terminal.
pub(crate) fn answer(
    experiment: &Experiment,
    options: &Options,
    folder: Option<&Path>,
) -> Result<Results, Failure> {
    let folder = folder.map(Folder::open).transpose()?;
    let progress = Progress::new("run");
    // In milliseconds of one core.
    let tick = |done: u64, whole: u64| progress.at(done / 1_000_000, whole / 1_000_000);
    Ok(run_cells(experiment, options, folder.as_ref(), &tick)?)
}

/// Runs that failed leave cells without numbers.
pub(crate) fn done(results: &Results) -> Done {
    let failed = |runs: &Vec<_>| runs.iter().any(Result::is_err);
    match results.runs.iter().flatten().any(failed) {
        true => Done::Incomplete,
        false => Done::Complete,
    }
}

impl Look {
    /// The answer of `slablab run`, or of `slablab reproduce` if `published` asks for it.
    pub(crate) fn text(&self, results: &Results, published: bool) -> String {
        let wrap = self.wrap.map(usize::from);
        match (self.format, published) {
            (Format::Table, false) => experiment_table(results, wrap),
            (Format::Table, true) => reproduce_table(results, wrap),
            (Format::Json, false) => document(&experiment_json(results)),
            (Format::Json, true) => document(&reproduce_json(results)),
            (Format::Csv, false) => experiment_csv(results),
            (Format::Csv, true) => reproduce_csv(results),
            (Format::Markdown, false) => experiment_markdown(results),
            (Format::Markdown, true) => reproduce_markdown(results),
            (Format::Mmtests, _) => experiment_mmtests(results, wrap),
            (Format::Avgstd, _) => experiment_avg_std(results, wrap),
        }
    }
}

/// Joins the folders of all parts of an experiment.
#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    /// Folders that `slablab run` or `slablab reproduce` wrote
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Also write the joined results to FOLDER, as one run of all cells would
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
}

pub(crate) fn report(args: ReportArgs) -> Result<Done, Failure> {
    let results = join(&args.folders)?;
    if let Some(folder) = &args.output {
        results.write_whole(&Folder::open(folder)?)?;
    }
    write_out(&args.look.text(&results, results.plan.sensitivity), None)?;
    Ok(done(&results))
}
