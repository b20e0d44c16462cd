//! Questions about experiments, and about results side by side.

use crate::answered::{Result, words};
use crate::progress::progress;
use crate::recordings::Words;
use serde::Deserialize;
use slablab_compare::output::comparison_answer;
use slablab_compare::{Document, compare, names};
use slablab_experiment::file::ranges::DRAWS_FIRST;
use slablab_experiment::output::{Look, experiment_answer, reproduce_answer};
use slablab_experiment::run::observe::seen;
use slablab_experiment::source::of_mail;
use slablab_experiment::{Change, Experiment, Options, Results, run};
use slablab_report::Answer;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Short runs of an experiment: of a file, or one that comes with the program.
#[derive(Deserialize)]
pub(crate) struct Short {
    experiment: String,
    #[serde(default)]
    repeats: Option<NonZeroU32>,
    #[serde(default)]
    seed: Option<u64>,
}

impl Short {
    /// The words that ask for them.
    pub(crate) fn command(&self) -> Words {
        let repeats = self.repeats.map(|repeats| ("--repeats", repeats.to_string()));
        let seed = self.seed.map(|seed| ("--seed", seed.to_string()));
        (vec![self.experiment.clone()], repeats.into_iter().chain(seed).collect())
    }

    /// Runs them, with so many draws of what is assumed at most.
    fn results(&self, experiment: &Experiment, draws: Option<u32>) -> Result<Results> {
        let quick = Change::quick(experiment.file.repeats.least);
        let change = Change {
            repeats: self.repeats.map(NonZeroU32::get).or(quick.repeats),
            seed: self.seed,
            draws,
            ..quick
        };
        run(experiment, &Options { change, ..Options::default() }, None, &progress).map_err(words)
    }

    fn find(&self) -> Result<Experiment> {
        Experiment::find(self.experiment.as_ref()).map_err(words)
    }

    /// Engines side by side.
    pub(crate) fn ran(&self) -> Result<Answer> {
        let results = self.results(&self.find()?, None)?;
        Ok(shown(&results, experiment_answer))
    }

    /// Published beside modelled.
    pub(crate) fn reproduced(&self) -> Result<Answer> {
        let names = of_mail(&self.experiment);
        if names.len() > 1 {
            let name = &self.experiment;
            return Err(format!(
                "{name} has several experiments, which the program answers together: {}",
                names.join(", ")
            ));
        }
        let experiment = self.find()?;
        experiment.expect_published().map_err(words)?;
        let results = self.results(&experiment, Some(DRAWS_FIRST))?;
        Ok(shown(&results, reproduce_answer))
    }
}

/// An answer with its page.
fn shown(results: &Results, answer: impl Fn(&Results, Look<'_>) -> Answer) -> Answer {
    let seen = seen(&results.experiment, &results.plan, None);
    answer(results, Look { seen: Some(&seen), ..Look::default() })
}

/// Results that verbs wrote as JSON; the first is the base.
pub(crate) fn compared(results: &[String], force: bool) -> Result<Answer> {
    if results.len() < 2 {
        return Err("expected two results or more, each what a verb writes with --format json".into());
    }
    let paths: Vec<PathBuf> = results.iter().map(PathBuf::from).collect();
    let columns = names(&paths);
    let documents = columns.iter().zip(&paths).map(|(name, path)| Document::read(name, path));
    let documents = documents.collect::<slablab_report::Result<Vec<_>>>().map_err(words)?;
    let options = slablab_compare::Options { force, ..slablab_compare::Options::default() };
    Ok(comparison_answer(&compare(&documents, options).map_err(words)?))
}
