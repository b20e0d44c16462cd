//! `slablab run EXPERIMENT`: experiments on modelled machines.

use crate::input::{Progress, command_line};
use crate::interrupts::Interrupts;
use crate::laboratory::form::write_form;
use crate::laboratory::installed;
use crate::laboratory::listed;
use crate::laboratory::logs::{Logs, MS, greatest_common_divisor};
use crate::outcome::{Done, Failure, tell};
use crate::output::{Form, check, named, write_out};
use slablab_experiment::Pulse;
use slablab_experiment::output::{
    Look as Blocks, allocation_trace, description_answer, experiment_answer, reproduce_answer, slabinfo,
    slabinfo_activity, write_perfetto,
};
use slablab_experiment::pressure::run::RUN;
use slablab_experiment::run::observe;
use slablab_experiment::run::program;
use slablab_experiment::{Change, Experiment, Folder, Options, Plan, Results, Shard, Size, run as run_cells};
use slablab_report::{Answer, AtomicFile, visible};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Milliseconds between two samples of logs that have none: a minute.
const LOGGED_EVERY: u64 = 60_000;

/// What says how an experiment runs, and so does not go with --join.
const NO_JOIN: [&str; 15] = [
    "experiment",
    "describe",
    "list",
    "shard",
    "quick",
    "full",
    "repeats",
    "seed",
    "threads",
    "force",
    "perfetto",
    "trace",
    "logs",
    "slabs",
    "cell",
];

/// Runs an experiment.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab list experiments\n  slablab run 2026 --quick\n  slablab run mine.toml --folder results --format mmtests --wrap 72\n  slablab run mine.toml --folder part3 --shard 3/8\n  slablab run --join part1 part2 part3 --folder results"
)]
pub(crate) struct Args {
    /// Experiment: a file (TOML), or the name of one that comes with the program (slablab list experiments)
    #[arg(required_unless_present_any = ["list", "join"])]
    experiment: Option<PathBuf>,
    /// Print what the experiment consists of, and run nothing; with --format json as JSON
    #[arg(long)]
    describe: bool,
    /// List the experiments that come with the program: as `slablab list experiments`
    #[arg(long, hide = true, exclusive = true)]
    list: bool,
    /// Join the folders of all parts of an experiment or of a suite, run nothing, and print the tables. With
    /// --folder also write the joined results, as one run of all cells would
    #[arg(long, value_name = "FOLDER", num_args = 1.., conflicts_with_all = NO_JOIN)]
    join: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
    /// Run a part of the cells, as 3/8; --join joins the folders of all parts
    #[arg(long, value_name = "PART/PARTS", value_parser = Shard::parse, requires = "folder")]
    shard: Option<Shard>,
    #[command(flatten)]
    look: Look,
    #[command(flatten)]
    views: Views,
    #[command(flatten)]
    logs: Logs,
    #[command(flatten)]
    slabs: SlabTexts,
}

/// Joins the folders of all parts of an experiment.
#[derive(clap::Args)]
pub(crate) struct Joined {
    /// Folders that `slablab run`, `slablab reproduce` or `slablab suite` wrote
    #[arg(required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// Also write the joined results to FOLDER, as one run of all cells would
    #[arg(short = 'd', long = "folder", alias = "output", short_alias = 'o', value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Also write a page with charts to FILE: self-contained HTML for any browser. Runs the first repeat of
    /// each cell again to see where the time went
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) look: Look,
}

impl Args {
    /// What --join asks for; the arguments themselves without it.
    pub(crate) fn joined(self) -> Result<Joined, Box<Args>> {
        match self.join.is_empty() {
            true => Err(Box::new(self)),
            false => Ok(Joined {
                folders: self.join,
                folder: self.how.folder,
                html: self.views.html,
                look: self.look,
            }),
        }
    }
}

/// The kernel's own texts of slab caches, which are printed instead of the answer.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("slabs").multiple(true).conflicts_with_all(["logs", "perfetto", "trace", "html", "format", "locks", "folder"])))]
struct SlabTexts {
    /// Print /proc/slabinfo at the end of one repeat of a cell instead of the table
    #[arg(long, group = "slabs")]
    slabinfo: bool,
    /// Print `slabinfo -AD` at the end of one repeat of a cell instead of the table: caches by activity, and
    /// how many allocations and frees were fast
    #[arg(short = 'A', long = "activity", group = "slabs")]
    activity: bool,
    /// With -A, as the tool is called
    #[arg(short = 'D', hide = true, requires = "activity")]
    display_active: bool,
}

impl SlabTexts {
    /// Whether there are any.
    fn are_wanted(&self) -> bool {
        self.slabinfo || self.activity
    }

    /// Each of them.
    fn texts(&self, caches: &[observe::CacheState]) -> Vec<String> {
        let proc = self.slabinfo.then(|| slabinfo(caches));
        [proc, self.activity.then(|| slabinfo_activity(caches))].into_iter().flatten().collect()
    }
}

/// Files to look at beside the answer.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("recorded").multiple(true).args(["perfetto", "trace", "vmstat", "meminfo", "ps", "slabinfo", "activity"])))]
struct Views {
    /// Also write a page with charts to FILE: self-contained HTML for any browser. Runs the first repeat of
    /// each cell again to see where the time went
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also record one repeat of a cell for ui.perfetto.dev: tasks on CPUs, lock waits, slow paths, slab
    /// memory
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Also write 002's trace of allocations to FILE, or - for standard output, before the answer: the
    /// functions that each allocation enters, made from the events of one repeat of a cell, and a summary
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The cell to record, to trace or to log, by its number on the page
    #[arg(long, value_name = "N", default_value = "1", requires = "recorded", value_parser = clap::value_parser!(u32).range(1..))]
    cell: u32,
}

impl Views {
    /// Refuses files that are the experiment's own or each other, and those that cannot be written.
    fn check(&self, experiment: &Experiment) -> Result<(), Failure> {
        let folder = experiment.path.parent().unwrap_or(Path::new(""));
        let machines: Vec<PathBuf> =
            experiment.machines.iter().map(|machine| folder.join(&machine.given)).collect();
        let inputs = named("the experiment", [&experiment.path]).chain(named("the machine", &machines));
        let trace = || named("--trace", self.trace.as_ref().filter(|path| *path != Path::new("-")));
        let views = named("--html", &self.html).chain(named("--perfetto", &self.perfetto));
        check(inputs, views.chain(trace()))?;
        for (_, path) in trace() {
            drop(AtomicFile::create(path)?);
        }
        for (label, path) in named("--html", &self.html).chain(named("--perfetto", &self.perfetto)) {
            if path == Path::new("-") {
                return Err(format!("{label} writes a file: expected its name, found -").into());
            }
            drop(AtomicFile::create(path)?);
        }
        Ok(())
    }

    /// Whether there are any.
    fn are_wanted(&self) -> bool {
        self.html.is_some() || self.perfetto.is_some() || self.trace.is_some()
    }

    /// The place of the cell to record.
    fn at(&self) -> usize {
        self.cell as usize - 1
    }

    /// Writes what is recorded of a cell.
    fn write(&self, Results { experiment, plan, .. }: &Results) -> Result<(), Failure> {
        if let Some(path) = &self.trace {
            let text = allocation_trace(&observe::trace(experiment, plan, self.at())?);
            write_out(&text, Some(path))?;
        }
        if let Some(path) = &self.perfetto {
            let recording = observe::record(experiment, plan, self.at())?;
            let file = BufWriter::new(AtomicFile::create(path)?);
            let fail = |error: std::io::Error| format!("{}: {error}", visible::path(path));
            let file = write_perfetto(&recording, file).map_err(fail)?;
            file.into_inner().map_err(|error| fail(error.into_error()))?.commit()?;
            if recording.left_out > 0 {
                let kept = observe::RECORDED_EVENTS;
                let left_out = recording.left_out;
                tell(format!(
                    "{}: the first {kept} events; {left_out} more are left out",
                    visible::path(path)
                ));
            }
        }
        Ok(())
    }
}

/// Refuses a page that cannot be written, or that is one of the inputs.
pub(crate) fn check_page<'a>(
    path: &'a Option<PathBuf>,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if path == Path::new("-") {
        return Err("--html writes a file: expected its name, found -".into());
    }
    check(named("the input", inputs), named("--html", [path]))?;
    drop(AtomicFile::create(path)?);
    Ok(())
}

/// How much is run, and where the results go.
#[derive(clap::Args)]
pub(crate) struct How {
    /// Folder for inputs, samples (Parquet) and summary (JSON); an interrupted run into it goes on
    #[arg(short = 'd', long = "folder", alias = "output", short_alias = 'o', value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Short runs, at most 3 of each cell
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Runs as long as the real program, or what the experiment's `[parameters.full]` say
    #[arg(long)]
    full: bool,
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
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    pub(crate) wide: bool,
    /// Also print each cell's locks: how often they were taken, waits and holds
    #[arg(long, conflicts_with = "format")]
    locks: bool,
    /// Also print the time, cache misses and locks of each function of a kernel tree's allocator
    /// (linux:NAME). Runs the first repeat of each cell again
    #[arg(long)]
    functions: bool,
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

impl Form for Format {}

impl How {
    /// Whether it says anything that a replay does not have.
    pub(crate) fn is_of_runs(&self) -> bool {
        let numbers = self.repeats.is_some() || self.seed.is_some() || self.threads.is_some();
        self.quick || self.full || self.force || numbers
    }

    /// Whether runs are short.
    pub(crate) fn is_quick(&self) -> bool {
        self.quick
    }

    /// The options for an experiment that repeats its cells `repeats` times.
    pub(crate) fn options(&self, repeats: u32, draws: Option<u32>) -> Result<Options, Failure> {
        let asked = match self.quick {
            true => Change::quick(repeats),
            false => Change { size: self.full.then_some(Size::Full), ..Change::default() },
        };
        let path = std::env::current_exe()?;
        Ok(Options {
            change: Change { repeats: self.repeats.or(asked.repeats), seed: self.seed, draws, ..asked },
            shard: None,
            cells: None,
            threads: self.threads.map(usize::from),
            force: self.force,
            program: program(env!("CARGO_PKG_VERSION"), &path)?,
            pulse: Pulse::default(),
        })
    }
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let Some(path) = args.experiment.as_ref().filter(|_| !args.list) else {
        return installed::experiments(&listed::How::default());
    };
    let experiment = Experiment::find(path)?;
    let options = Options { shard: args.shard, ..args.how.options(experiment.file.repeats.least, None)? };
    if args.describe {
        let plan = Plan::new(&experiment, &options.change)?;
        let answer = description_answer(&experiment, &plan).within(args.look.wrap());
        write_form(&answer, args.look.format, args.look.wide, None)?;
        return Ok(Done::Complete);
    }
    args.views.check(&experiment)?;
    if args.views.perfetto.is_some() || args.views.trace.is_some() {
        observe::expect_cell(&experiment, &Plan::new(&experiment, &options.change)?, args.views.at())?;
    }
    if args.logs.are_wanted() {
        return logs(&experiment, &options, &args);
    }
    if args.slabs.are_wanted() {
        let plan = Plan::new(&experiment, &options.change)?;
        let caches = observe::slabs(&experiment, &plan, args.views.at())?;
        write_out(&args.slabs.texts(&caches).join("\n"), None)?;
        return Ok(Done::Complete);
    }
    let results = answer(&experiment, &options, args.how.folder.as_deref())?;
    args.views.write(&results)?;
    args.look.answer(&results, false, (args.views.html.as_deref(), options.threads))?;
    Ok(done(&results))
}

/// Prints logs of one repeat of a cell; nothing else runs.
fn logs(experiment: &Experiment, options: &Options, args: &Args) -> Result<Done, Failure> {
    let is_other = args.look.format != Format::Table || args.look.locks;
    if is_other || args.how.folder.is_some() || args.views.are_wanted() {
        let what = "--vmstat, --meminfo and --ps are text of one repeat of a cell: expected no --format, --locks, --folder, \
                    --html, --perfetto or --trace beside them";
        return Err(what.into());
    }
    let plan = Plan::new(experiment, &options.change)?;
    let every =
        args.logs.times().into_iter().flatten().reduce(greatest_common_divisor).unwrap_or(LOGGED_EVERY);
    let progress = Progress::of_runs("run", &options.pulse);
    let _interrupts = Interrupts::new(&progress)?;
    progress.at(0, RUN);
    let beat = options.pulse.run(RUN);
    let (looked, failed) = observe::looked(experiment, &plan, args.views.at(), every * MS, beat)?;
    drop(progress);
    write_out(&args.logs.texts(&looked).join("\n"), None)?;
    failed.iter().for_each(|failed| tell(format!("cell {}: {failed}", args.views.cell)));
    Ok(if failed.is_some() { Done::Incomplete } else { Done::Complete })
}

/// Runs an experiment, with progress on a terminal.
pub(crate) fn answer(
    experiment: &Experiment,
    options: &Options,
    folder: Option<&Path>,
) -> Result<Results, Failure> {
    let folder = folder.map(Folder::open).transpose()?;
    let progress = Progress::of_runs("run", &options.pulse);
    let _interrupts = Interrupts::new(&progress)?;
    Ok(run_cells(experiment, options, folder.as_ref(), &|done, whole| progress.at(done, whole))?)
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
    /// The option that asks for a table of each cell, if one is given.
    pub(crate) fn of_cells(&self) -> Option<&'static str> {
        let options = [(self.locks, "--locks"), (self.functions, "--functions")];
        options.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// The widest line, if it is given.
    pub(crate) fn wrap(&self) -> Option<usize> {
        self.wrap.map(usize::from)
    }

    /// Prints the answer of `slablab run`, or of `slablab reproduce` if `published` asks for it. Writes its
    /// page to a file, if there is one: the first repeat of each cell runs again for it, on so many threads.
    pub(crate) fn answer(
        &self,
        results: &Results,
        published: bool,
        (page, threads): (Option<&Path>, Option<usize>),
    ) -> Result<(), Failure> {
        let wanted = page.is_some() || self.functions;
        let seen = wanted.then(|| observe::seen(&results.experiment, &results.plan, threads));
        let blocks = Blocks {
            wrap: self.wrap(),
            locks: self.locks,
            functions: seen.as_deref().filter(|_| self.functions),
            seen: seen.as_deref().filter(|_| page.is_some()),
        };
        let answer = if published { reproduce_answer } else { experiment_answer }(results, blocks);
        self.print(&answer, page)
    }

    /// Prints an answer; writes its page to a file, if there is one.
    pub(crate) fn print(&self, answer: &Answer, page: Option<&Path>) -> Result<(), Failure> {
        page.map_or(Ok(()), |path| write_out(&answer.page(&command_line()), Some(path)))?;
        write_form(answer, self.format, self.wide, None)
    }
}
