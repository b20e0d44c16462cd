//! `slablab list vm`: what can be written after `--vm`.

use crate::laboratory::choice::tell_vm_stand_in;
use crate::laboratory::listed::{self, How};
use crate::outcome::{Done, Failure};
use serde_json::Value;
use slablab_experiment::pressure::knob::Setting;
use slablab_experiment::pressure::preset::Preset;
use slablab_report::Answer;
use slablab_report::column::Columns;
use slablab_report::html::Cell;

/// Lists policies of page replacement, or the choices of one.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab list vm\n  slablab list vm vm@6.1,lru_gen\n  slablab list vm vm@6.12,swappiness=10 --format json\n\ndocs/vm.md explains how policies are run, docs/theory/vm.md what they do."
)]
pub(crate) struct Args {
    /// Show every choice of this policy, as vm@6.12,lru_gen or vm@6.1,swappiness=10
    vm: Option<String>,
    #[command(flatten)]
    how: How,
}

/// A choice of a preset.
struct Row {
    preset: Preset,
    setting: Setting,
}

pub(crate) fn run(args: &Args) -> Result<Done, Failure> {
    let choice = match &args.vm {
        None => None,
        Some(name) => {
            let preset = Preset::parse(name).map_err(|bad| format!("{name}: {bad}"))?;
            tell_vm_stand_in(name, "list vm");
            Some(preset)
        }
    };
    let presets = choice.map_or_else(Preset::all, |preset| vec![preset]);
    let of = |preset: &Preset| {
        let preset = *preset;
        preset.settings().map(move |setting| Row { preset, setting })
    };
    let rows: Vec<Row> = presets.iter().flat_map(of).collect();
    let sentence = match &choice {
        None => format!(
            "{} policies of page replacement; the newest is {}.",
            presets.len(),
            presets[presets.len() - 1]
        ),
        Some(preset) => format!("{preset} has {} choices: {}.", rows.len(), preset.what),
    };
    let answer = listed::answer("vm", sentence, &columns(), &rows);
    args.how.write(&match &choice {
        None => {
            answer.heading("Policies").list(presets.iter().map(|preset| format!("{preset}: {}", preset.what)))
        }
        Some(preset) => choices(answer, preset),
    })
}

/// The JSON Schema of a row.
pub(crate) fn row_schema() -> Value {
    let preset = Preset::all()[0];
    let setting = preset.setting(0).expect("it has choices");
    columns().schema(&Row { preset, setting })
}

fn columns() -> Columns<Row> {
    Columns::default()
        .key("vm", |row: &Row| Cell::Text(row.preset.to_string()))
        .key("about", |row| Cell::Text(row.preset.what.into()))
        .key("knob", |row| Cell::Text(row.setting.name.into()))
        .key("value", |row| Cell::Text(row.setting.to_string()))
        .key("allowed", |row| Cell::Text(row.setting.values.to_string()))
        .key("what", |row| Cell::Text(row.setting.what.into()))
}

/// A preset's choices; behind one that differs from the preset before it, the value there.
fn choices(answer: Answer, preset: &Preset) -> Answer {
    let before = before(preset);
    let answer = answer.heading(match &before {
        Some(before) => format!("{preset}: {}; before it: {before}, {}", preset.what, before.what),
        None => format!("{preset}: {}; the oldest of its kind", preset.what),
    });
    preset.settings().enumerate().fold(answer, |answer, (place, setting)| {
        let had = before.and_then(|before| before.setting(place)).filter(|had| had.value != setting.value);
        let had = had.map_or(String::new(), |had| format!(" (before: {had})"));
        let values = setting.values.to_string().replace('|', " | ");
        answer.entry(format!("{}: {setting}{had}", setting.name), [setting.what.to_string(), values])
    })
}

/// The newest older preset of the same family: the other families have other choices.
fn before(preset: &Preset) -> Option<Preset> {
    let all = Preset::all();
    let own =
        all.iter().position(|other| other.release == preset.release && other.family() == preset.family())?;
    all[..own].iter().rfind(|other| other.family() == preset.family()).copied()
}
