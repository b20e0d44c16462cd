//! Questions about scripts of page accesses.

use crate::answered::{Result, words};
use crate::recordings::Words;
use serde::Deserialize;
use slablab_experiment::output::run_answer;
use slablab_experiment::pressure::run::{MACHINE_USUALLY, Options, SEED_USUALLY, VM_USUALLY, usual_engine};
use slablab_experiment::pressure::script;
use slablab_report::Answer;
use std::path::Path;
use std::sync::Arc;

/// A script, under one policy of page replacement.
#[derive(Deserialize)]
pub(crate) struct Pressed {
    script: String,
    #[serde(default)]
    vm: Option<String>,
    #[serde(default)]
    seed: Option<u64>,
}

impl Pressed {
    /// The words that ask the same.
    pub(crate) fn command(&self) -> Words {
        let vm = ("--vm", self.vm.clone().unwrap_or_default());
        let seed = ("--seed", self.seed.map(|seed| seed.to_string()).unwrap_or_default());
        (vec!["run".into(), self.script.clone()], vec![vm, seed])
    }

    /// What happens to the memory.
    pub(crate) fn answer(&self) -> Result<Answer> {
        let path = Path::new(&self.script);
        let script = Arc::new(script::load(path).map_err(words)?);
        script::affordable(&script).map_err(words)?;
        let vm = self.vm.as_deref().unwrap_or(VM_USUALLY);
        let engine = usual_engine(vm).map_err(words)?;
        let options = Options::of(vm, engine, Path::new(MACHINE_USUALLY), &[]).map_err(words)?;
        options.check_era().map_err(words)?;
        let run = options.run(&script, self.seed.unwrap_or(SEED_USUALLY)).map_err(words)?;
        Ok(run_answer(path, &[(options.vm.to_string(), vec![&run])], &[]))
    }
}
