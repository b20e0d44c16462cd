//! `slablab engines`: what can be written after `--engine`.

use crate::{Done, Failure};
use slablab_slabs::preset::{Policy, Values};
use slablab_slabs::slqb::SlqbPolicy;
use slablab_slabs::slub::SlubPolicy;

/// Lists presets and knobs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this engine
    engine: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let wanted = |name: &str| args.engine.as_deref().is_none_or(|engine| engine == name);
    let mut any = false;
    if wanted(SlubPolicy::ENGINE) {
        any = true;
        print::<SlubPolicy>();
    }
    if wanted(SlqbPolicy::ENGINE) {
        any = true;
        print::<SlqbPolicy>();
    }
    if !any {
        slablab_slabs::Preset::parse(args.engine.as_deref().unwrap_or_default())
            .map_err(|bad| bad.to_string())?;
    }
    Ok(Done::Complete)
}

fn print<T: Policy>() {
    let releases: Vec<String> = T::PRESETS.iter().map(|preset| preset.release().to_string()).collect();
    println!("{}: releases {}", T::ENGINE, releases.join(" "));
    let newest = T::PRESETS.last().expect("every engine has a preset");
    for knob in T::KNOBS {
        let values = match knob.values {
            Values::Number(least, most) => format!("{least}..{most}"),
            Values::Auto(least, most) => format!("auto, {least}..{most}"),
            Values::Words(words) => words.join("|"),
        };
        let default = match (knob.values, (knob.get)(newest)) {
            (Values::Words(words), index) => words[index as usize].to_string(),
            (_, slablab_slabs::preset::AUTO) => "auto".into(),
            (_, number) => number.to_string(),
        };
        println!("  {:<18} {values}  [{}: {default}]", knob.name, newest.release());
        println!("  {:<18}   {}", "", knob.what);
    }
}
