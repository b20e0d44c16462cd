//! `slablab engines`: what can be written after `--engine`.

use crate::outcome::{Done, Failure};
use crate::output::write_out;
use slablab_slabs::engines::slab::SlabPolicy;
use slablab_slabs::engines::slob::SlobPolicy;
use slablab_slabs::engines::slqb::SlqbPolicy;
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::knob::{Knob, Policy, Values};
use slablab_slabs::wrap::Wrap;
use std::fmt::Write;

/// Lists presets and knobs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// List this engine only: slub, slqb, slab or slob
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
    if args.engine.is_none() {
        writeln!(text, "around any engine, with `slablab replay`:")?;
        for knob in Wrap::KNOBS {
            list(&mut text, knob, &knob.setting(&Wrap::default()).to_string())?;
        }
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
    T::KNOBS.iter().try_for_each(|knob| list(text, knob, &defaults(knob)))
}

fn list<T>(text: &mut String, knob: &Knob<T>, default: &str) -> std::fmt::Result {
    let values = match knob.values {
        Values::Number(least, most) => format!("{least}..{most}"),
        Values::Auto(least, most) => format!("auto, {least}..{most}"),
        Values::Words(words) => words.join("|"),
        Values::Bytes(most) => format!("bytes, as 64K or 1M, at most {}M", most >> 20),
        Values::Letters(letters) => format!("off, letters of {letters}"),
    };
    writeln!(text, "  {:<18} {values}", knob.name)?;
    writeln!(text, "  {:<18}   {}", "", knob.what)?;
    writeln!(text, "  {:<18}   default: {default}", "")
}

/// A knob's value in the presets: the oldest one's, and each that differs from the one before it.
fn defaults<T: Policy>(knob: &Knob<T>) -> String {
    let mut text = String::new();
    let mut last = None;
    for preset in T::PRESETS {
        let value = (knob.get)(preset);
        if last.replace(value) == Some(value) {
            continue;
        }
        let shown = match (knob.values, value) {
            (Values::Words(words), index) => words[index as usize].to_string(),
            (_, slablab_slabs::knob::AUTO) => "auto".into(),
            (_, number) => number.to_string(),
        };
        if text.is_empty() {
            text = shown;
        } else {
            text += &format!(", since {} {shown}", preset.release());
        }
    }
    text
}
