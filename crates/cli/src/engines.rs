//! `slablab engines`: what can be written after `--engine`.

use crate::outcome::{Done, Failure};
use crate::output::write_out;
use slablab_engines::{parse, registered};
use slablab_slabs::Preset;
use slablab_slabs::knob::Setting;
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
    let own = registered().iter().flat_map(|own| own.presets()).map(Preset::Registered);
    let presets: Vec<Preset> = Preset::all().chain(own).filter(|preset| wanted(preset.engine())).collect();
    let mut text = String::new();
    for of_one in presets.chunk_by(|one, next| one.engine() == next.engine()) {
        describe(of_one, &mut text)?;
    }
    if args.engine.is_none() {
        writeln!(text, "around any engine, with `slablab replay`:")?;
        for knob in Wrap::KNOBS {
            let setting = knob.setting(&Wrap::default());
            list(&mut text, &setting, &setting.to_string())?;
        }
    }
    if text.is_empty() {
        parse(args.engine.as_deref().unwrap_or_default()).map_err(|bad| bad.to_string())?;
    }
    write_out(&text, None)?;
    Ok(Done::Complete)
}

/// The presets of one engine, oldest first.
fn describe(presets: &[Preset], text: &mut String) -> std::fmt::Result {
    let releases: Vec<String> = presets.iter().map(|preset| preset.release().to_string()).collect();
    writeln!(text, "{}: releases {}", presets[0].engine(), releases.join(" "))?;
    let settings = (0..).map_while(|index| presets[0].setting(index).map(|setting| (index, setting)));
    settings.into_iter().try_for_each(|(index, setting)| list(text, &setting, &defaults(presets, index)))
}

fn list(text: &mut String, setting: &Setting, default: &str) -> std::fmt::Result {
    writeln!(text, "  {:<18} {}", setting.name, setting.values)?;
    writeln!(text, "  {:<18}   {}", "", setting.what)?;
    writeln!(text, "  {:<18}   default: {default}", "")
}

/// The value of the knob of this index in the presets: the oldest one's, and each that differs from the one
/// before it.
fn defaults(presets: &[Preset], index: usize) -> String {
    let mut text = String::new();
    let mut last = None;
    for preset in presets {
        let Some(setting) = preset.setting(index) else { continue };
        if last.replace(setting.value) == Some(setting.value) {
            continue;
        }
        if text.is_empty() {
            text = setting.to_string();
        } else {
            text += &format!(", since {} {setting}", preset.release());
        }
    }
    text
}
