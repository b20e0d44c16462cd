//! `slablab vm`: what can be written after `--vm`.

use crate::outcome::{Done, Failure};
use crate::output::write_out;
use slablab_experiment::pressure::preset::Preset;
use std::fmt::Write;

/// Lists policies of page replacement, or the choices of one.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab vm\n  slablab vm vm@6.1,lru_gen\n  slablab vm vm@6.12,swappiness=10\n\ndocs/vm.md explains how policies are run, docs/theory/vm.md what they do."
)]
pub(crate) struct Args {
    /// Show every choice of this policy, as vm@6.12,lru_gen or vm@6.1,swappiness=10
    vm: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let text = match &args.vm {
        None => list()?,
        Some(name) => choices(&Preset::parse(name).map_err(|bad| format!("{name}: {bad}"))?)?,
    };
    write_out(&text, None)?;
    Ok(Done::Complete)
}

/// A line for each preset.
fn list() -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for preset in Preset::all() {
        writeln!(text, "{:<26} {}", preset.to_string(), preset.what)?;
    }
    Ok(text)
}

/// A preset's choices; behind one that differs from the preset before it, the value there.
fn choices(preset: &Preset) -> Result<String, std::fmt::Error> {
    let before = before(preset);
    let mut text = format!("{preset}: {}\n", preset.what);
    match &before {
        Some(before) => writeln!(text, "before it: {before}, {}\n", before.what)?,
        None => writeln!(text, "the oldest of its kind\n")?,
    }
    for (place, setting) in preset.settings().enumerate() {
        let had = before.and_then(|before| before.setting(place)).filter(|had| had.value != setting.value);
        let had = had.map_or(String::new(), |had| format!(" (before: {had})"));
        writeln!(text, "  {:<18} {setting}{had}", setting.name)?;
        writeln!(text, "  {:<18}   {}; {}", "", setting.what, setting.values)?;
    }
    Ok(text)
}

/// The newest older preset of the same family: the other families have other choices.
fn before(preset: &Preset) -> Option<Preset> {
    let all = Preset::all();
    let own =
        all.iter().position(|other| other.release == preset.release && other.family() == preset.family())?;
    all[..own].iter().rfind(|other| other.family() == preset.family()).copied()
}
