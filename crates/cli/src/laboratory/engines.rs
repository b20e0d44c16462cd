//! `slablab list engines`: what can be written after `--engine`.

use crate::laboratory::choice::preset;
use crate::laboratory::listed::{self, How};
use crate::outcome::{Done, Failure};
use serde_json::Value;
use slablab_engines::registered;
use slablab_report::Answer;
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_slabs::Preset;
use slablab_slabs::knob::Setting;
use slablab_slabs::partition::Partition;
use slablab_slabs::wrap::Wrap;

/// Lists presets and knobs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// List this engine only: slub, slqb, slab or slob; or every knob of one choice, as slub@7.0 or
    /// slub@6.1,max_order=0
    engine: Option<String>,
    #[command(flatten)]
    how: How,
}

/// A knob of a preset, or one that is around any engine.
struct Row {
    preset: Option<Preset>,
    setting: Setting,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let own = registered().iter().flat_map(|own| own.presets()).map(Preset::Registered);
    let all: Vec<Preset> = Preset::all().chain(own).collect();
    let asked = args.engine.as_deref();
    let is_listed = |preset: &Preset| asked.is_none_or(|engine| engine == preset.engine());
    let presets: Vec<Preset> = all.into_iter().filter(is_listed).collect();
    // A name of an engine is all its presets; any other word is one choice.
    let choice = match asked {
        Some(asked) if presets.is_empty() => Some(preset(asked, "list engines")?),
        _ => None,
    };
    let presets: Vec<Preset> = choice.into_iter().chain(presets).collect();
    let of = |preset: &Preset| {
        let preset = *preset;
        (0..).map_while(move |index| Some(Row { preset: Some(preset), setting: preset.setting(index)? }))
    };
    let wrap = Wrap::KNOBS.iter().map(|knob| knob.setting(&Wrap::default()));
    let kmalloc = Partition::KNOBS.iter().map(|knob| knob.setting(&Partition::default()));
    let around = wrap.chain(kmalloc).filter(|_| asked.is_none());
    let around = around.map(|setting| Row { preset: None, setting });
    let rows: Vec<Row> = presets.iter().flat_map(of).chain(around).collect();
    let sentence = match choice {
        Some(choice) => format!("{choice} has {} knobs.", rows.len()),
        None => sentence(&presets, &rows),
    };
    let answer = listed::answer("engines", sentence, &columns(), &rows);
    args.how.write(&match choice {
        Some(choice) => one(answer, &choice),
        None => all_of(answer, &presets, &rows),
    })
}

/// How many presets each engine has, and the newest one.
fn sentence(presets: &[Preset], rows: &[Row]) -> String {
    let engines: Vec<&[Preset]> = presets.chunk_by(|one, next| one.engine() == next.engine()).collect();
    let of = |presets: &&[Preset]| {
        let newest = presets[presets.len() - 1];
        format!("{} (to {})", newest.engine(), newest.release())
    };
    let names: Vec<String> = engines.iter().map(of).collect();
    let around = rows.iter().filter(|row| row.preset.is_none()).count();
    let around = if around > 0 { format!("; {around} knobs are around any engine") } else { String::new() };
    let engine = if engines.len() == 1 { "engine" } else { "engines" };
    format!("{} {engine} with {} presets: {}{around}.", engines.len(), presets.len(), names.join(", "))
}

/// The JSON Schema of a row.
pub(crate) fn row_schema() -> Value {
    columns().schema(&Row { preset: None, setting: Wrap::KNOBS[0].setting(&Wrap::default()) })
}

fn columns() -> Columns<Row> {
    let of = |preset: &Option<Preset>, get: fn(&Preset) -> String| {
        Cell::Text(preset.as_ref().map_or(String::new(), get))
    };
    Columns::default()
        .key("engine", move |row: &Row| of(&row.preset, |preset| preset.engine().into()))
        .key("release", move |row| of(&row.preset, |preset| preset.release().to_string()))
        .key("knob", |row| Cell::Text(row.setting.name.into()))
        .key("value", |row| Cell::Text(row.setting.to_string()))
        .key("allowed", |row| Cell::Text(row.setting.values.to_string()))
        .key("what", |row| Cell::Text(row.setting.what.into()))
}

/// The engines with their releases, and each knob with its value in the releases.
fn all_of(answer: Answer, presets: &[Preset], rows: &[Row]) -> Answer {
    let answer = presets.chunk_by(|one, next| one.engine() == next.engine()).fold(answer, described);
    let around: Vec<&Setting> =
        rows.iter().filter(|row| row.preset.is_none()).map(|row| &row.setting).collect();
    if around.is_empty() {
        return answer;
    }
    let answer = answer.heading("around any engine, with `slablab replay`");
    around.into_iter().fold(answer, |answer, setting| knob(answer, setting, format!("default: {setting}")))
}

/// The knobs of one choice.
fn one(answer: Answer, preset: &Preset) -> Answer {
    (0..)
        .map_while(|index| preset.setting(index))
        .fold(answer.heading(preset.to_string()), |answer, setting| {
            knob(answer, &setting, format!("value: {setting}"))
        })
}

/// The presets of one engine, oldest first.
fn described(answer: Answer, presets: &[Preset]) -> Answer {
    let releases: Vec<String> = presets.iter().map(|preset| preset.release().to_string()).collect();
    let answer = answer.heading(format!("{}: releases {}", presets[0].engine(), releases.join(" ")));
    (0..)
        .map_while(|index| presets[0].setting(index).map(|setting| (index, setting)))
        .fold(answer, |answer, (index, setting)| {
            knob(answer, &setting, format!("default: {}", defaults(presets, index)))
        })
}

fn knob(answer: Answer, setting: &Setting, value: String) -> Answer {
    // Long lists of values break after a choice.
    let values = setting.values.to_string().replace('|', " | ");
    answer.entry(format!("{}: {values}", setting.name), [setting.what.to_string(), value])
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
