//! `slablab reproduce [NAME...]`: the experiments of mails, published beside modelled.

use crate::laboratory::form::write_form;
use crate::laboratory::installed;
use crate::laboratory::listed;
use crate::laboratory::run::{Format, How, Look, answer, check_page};
use crate::outcome::{Done, Failure};
use crate::output::write_out;
use slablab_experiment::file::ranges::{DRAWS_FIRST, DRAWS_MAX};
use slablab_experiment::output::joined_answer;
use slablab_experiment::source::of_mail;
use slablab_experiment::{Experiment, INSTALLED, Options};
use std::path::{Path, PathBuf};

/// Reproduces published figures.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab reproduce 2026\n  slablab reproduce 003 --quick\n  slablab reproduce 000 --full --no-ranges --folder results\n  slablab reproduce 2026 --folder results --format markdown\n  slablab reproduce 004 --folder results --threads 2\n  slablab reproduce 003-netio --draws 16\n  slablab reproduce mine.toml --quick"
)]
pub(crate) struct Args {
    /// Experiments: files (TOML), or names of those that come with the program. A name stands for all
    /// experiments of its mail, such as 003 for 003-hackbench and 003-netperf, which are then also judged
    /// together. Without a name: all that have published figures, each alone
    experiments: Vec<PathBuf>,
    /// List the experiments that come with the program: as `slablab list experiments`
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    how: How,
    /// Leave out the draws: runs with all costs, and what the experiment's `[ranges]` name, drawn together
    #[arg(long)]
    no_ranges: bool,
    /// Draws of a cell at most; 64, with --quick 8. A relation that is clear needs fewer. With --folder an
    /// interrupted run goes on where it was
    #[arg(long, value_name = "N", conflicts_with = "no_ranges",
          value_parser = clap::value_parser!(u32).range(2..=DRAWS_MAX as i64))]
    draws: Option<u32>,
    /// Also write a page with charts of one experiment to FILE: self-contained HTML for any browser. Runs the
    /// first repeat of each cell again to see where the time went
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
}

impl Args {
    /// Draws of a cell, at most: those of the first look if the run is quick.
    fn draws(&self) -> Option<u32> {
        let usual = if self.how.is_quick() { DRAWS_FIRST } else { DRAWS_MAX };
        (!self.no_ranges).then(|| self.draws.unwrap_or(usual))
    }
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    if args.list {
        return installed::experiments(&listed::How::default());
    }
    let mails = match args.experiments.is_empty() {
        true => all()?,
        false => args.experiments.iter().map(|given| mail(given)).collect::<Result<Vec<_>, _>>()?,
    };
    if mails.len() > 1 && args.look.format == Format::Json {
        return Err("--format json has one document: expected one name".into());
    }
    let names: Vec<&str> =
        mails.iter().flat_map(|mail| &mail.experiments).map(|one| one.file.name.as_str()).collect();
    if args.html.is_some() && names.len() > 1 {
        let names = names.join(", ");
        return Err(format!("--html is the page of one experiment: expected one of {names}").into());
    }
    check_page(&args.html, &args.experiments)?;
    let mut done = Done::Complete;
    for (at, mail) in mails.iter().enumerate() {
        if at > 0 {
            write_out("\n", None)?;
        }
        if matches!(reproduce(mail, &args)?, Done::Incomplete) {
            done = Done::Incomplete;
        }
    }
    Ok(done)
}

/// Experiments that are answered together.
struct Mail {
    name: String,
    experiments: Vec<Experiment>,
}

/// Each experiment that comes with the program and has relations, alone.
fn all() -> Result<Vec<Mail>, Failure> {
    let mut mails = Vec::new();
    for installed in INSTALLED {
        let experiment = Experiment::find(Path::new(installed.name))?;
        if experiment.file.has_published() {
            mails.push(Mail { name: installed.name.into(), experiments: vec![experiment] });
        }
    }
    Ok(mails)
}

/// The experiments of a mail that come with the program, or one experiment.
fn mail(given: &Path) -> Result<Mail, Failure> {
    let name = given.display().to_string();
    let names = of_mail(&name);
    let paths = if names.is_empty() { vec![given] } else { names.into_iter().map(Path::new).collect() };
    let experiments = paths.into_iter().map(Experiment::find).collect::<Result<Vec<_>, _>>()?;
    experiments.iter().try_for_each(Experiment::expect_published)?;
    Ok(Mail { name, experiments })
}

/// Prints the answer of each experiment when it is done, and then that of all together.
fn reproduce(mail: &Mail, args: &Args) -> Result<Done, Failure> {
    let is_joined = mail.experiments.len() > 1;
    let is_document = args.look.format == Format::Json;
    let mut all = Vec::new();
    for experiment in &mail.experiments {
        let options = args.how.options(experiment.file.repeats.least, args.draws())?;
        let options = Options { shard: None, ..options };
        let folder = args.how.folder.as_ref().map(|folder| folder.join(&experiment.file.name));
        let results = answer(experiment, &options, folder.as_deref())?;
        // The document of a mail has those of its experiments.
        if !(is_joined && is_document) {
            write_out(if all.is_empty() { "" } else { "\n" }, None)?;
            args.look.answer(&results, true, (args.html.as_deref(), options.threads))?;
        }
        all.push(results);
    }
    let joined = joined_answer(&mail.name, &all, args.look.wrap());
    // Rows and tables of mails are those of the experiments.
    if is_joined && matches!(args.look.format, Format::Table | Format::Markdown | Format::Json) {
        write_out(if is_document { "" } else { "\n" }, None)?;
        write_form(&joined, args.look.format, args.look.wide, None)?;
    }
    let is_incomplete =
        all.iter().any(|results| matches!(crate::laboratory::run::done(results), Done::Incomplete));
    Ok(if is_incomplete { Done::Incomplete } else { Done::Complete })
}
