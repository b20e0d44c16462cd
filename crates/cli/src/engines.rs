//! `slablab engines`: what can be written after `--engine`.

use crate::input::write_out;
use crate::{Done, Failure};
use slablab_slabs::preset::{Policy, Values};
use slablab_slabs::slab_engine::SlabPolicy;
use slablab_slabs::slob::SlobPolicy;
use slablab_slabs::slqb::SlqbPolicy;
use slablab_slabs::slub::SlubPolicy;
use std::fmt::Write;

/// Lists presets and knobs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this engine
    engine: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let wanted = |name: &str| args.engine.as_deref().is_none_or(|engine| engine == name);
    let mut text = String::new();
    if wanted(SlubPolicy::ENGINE) {
        describe::<SlubPolicy>(&mut text)?;
    }
    if wanted(SlqbPolicy::ENGINE) {
        describe::<SlqbPolicy>(&mut text)?;
    }
    if wanted(SlabPolicy::ENGINE) {
        describe::<SlabPolicy>(&mut text)?;
    }
    if wanted(SlobPolicy::ENGINE) {
        describe::<SlobPolicy>(&mut text)?;
    }
    if text.is_empty() {
        slablab_slabs::Preset::parse(args.engine.as_deref().unwrap_or_default())
            .map_err(|bad| bad.to_string())?;
    }
    write_out(&text, None)?;
    Ok(Done::Complete)
}

fn describe<T: Policy>(text: &mut String) -> std::fmt::Result {
    let releases: Vec<String> = T::PRESETS.iter().map(|preset| preset.release().to_string()).collect();
    writeln!(text, "{}: releases {}", T::ENGINE, releases.join(" "))?;
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
        writeln!(text, "  {:<18} {values}  [{}: {default}]", knob.name, newest.release())?;
        writeln!(text, "  {:<18}   {}", "", knob.what)?;
    }
    Ok(())
}
