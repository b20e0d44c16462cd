//! `slablab reproduce [NAME...]`: the experiments of mails, published beside modelled.

use crate::outcome::{Done, Failure};
use crate::output::write_out;
use crate::run::{Format, How, Look, answer};
use slablab_lab::experiment::{Experiment, INSTALLED, Options};
use std::path::PathBuf;

/// Reproduces published figures.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab reproduce 2026\n  slablab reproduce 2026 -o results --format markdown\n  slablab reproduce mine.toml --quick"
)]
pub(crate) struct Args {
    /// Experiments: files (TOML), or names of those that come with the program; without any, all of these
    /// that have published figures
    experiments: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
    /// Leave out the runs with assumed costs halved and doubled
    #[arg(long)]
    no_ranges: bool,
    #[command(flatten)]
    look: Look,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let given = match args.experiments.is_empty() {
        true => INSTALLED.iter().map(|installed| PathBuf::from(installed.name)).collect(),
        false => args.experiments.clone(),
    };
    let mut experiments = given.iter().map(|path| Experiment::find(path)).collect::<Result<Vec<_>, _>>()?;
    if args.experiments.is_empty() {
        experiments.retain(|experiment| !experiment.file.expect.is_empty());
    }
    if let Some(bare) = experiments.iter().find(|experiment| experiment.file.expect.is_empty()) {
        let name = &bare.file.name;
        return Err(
            format!("{name}: the experiment has no [[expect]]: `slablab run` shows its figures").into()
        );
    }
    if experiments.len() > 1 && args.look.format == Format::Json {
        return Err("--format json has one document: expected the name of one experiment".into());
    }
    let mut done = Done::Complete;
    for (at, experiment) in experiments.iter().enumerate() {
        let options = args.how.options(experiment.file.repeats.least, !args.no_ranges)?;
        let options = Options { shard: None, ..options };
        let folder = args.how.output.as_ref().map(|folder| folder.join(&experiment.file.name));
        let results = answer(experiment, &options, folder.as_deref())?;
        let between = if at > 0 { "\n" } else { "" };
        write_out(&format!("{between}{}", args.look.text(&results, true)), None)?;
        if matches!(crate::run::done(&results), Done::Incomplete) {
            done = Done::Incomplete;
        }
    }
    Ok(done)
}
