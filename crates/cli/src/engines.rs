//! `slablab list engines`: what can be written after `--engine`.

use crate::input::preset;
use crate::listed::How;
use crate::outcome::{Done, Failure};
use slablab_engines::registered;
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_slabs::Preset;
use slablab_slabs::knob::Setting;
use slablab_slabs::wrap::Wrap;
use std::fmt::Write;

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
    let around = Wrap::KNOBS.iter().filter(|_| asked.is_none());
    let around = around.map(|knob| Row { preset: None, setting: knob.setting(&Wrap::default()) });
    let rows: Vec<Row> = presets.iter().flat_map(of).chain(around).collect();
    let table = || match choice {
        Some(choice) => one(&choice),
        None => table(&presets, &rows),
    };
    args.how.write("engines", || Ok(table()?), &columns(), &rows)
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
fn table(presets: &[Preset], rows: &[Row]) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for of_one in presets.chunk_by(|one, next| one.engine() == next.engine()) {
        describe(of_one, &mut text)?;
    }
    let mut around = rows.iter().filter(|row| row.preset.is_none()).peekable();
    if around.peek().is_some() {
        writeln!(text, "around any engine, with `slablab replay`:")?;
        around
            .try_for_each(|Row { setting, .. }| list(&mut text, setting, &format!("default: {setting}")))?;
    }
    Ok(text)
}

/// The knobs of one choice.
fn one(preset: &Preset) -> Result<String, std::fmt::Error> {
    let mut text = format!("{preset}\n");
    let mut settings = (0..).map_while(|index| preset.setting(index));
    settings.try_for_each(|setting| list(&mut text, &setting, &format!("value: {setting}")))?;
    Ok(text)
}

/// The presets of one engine, oldest first.
fn describe(presets: &[Preset], text: &mut String) -> std::fmt::Result {
    let releases: Vec<String> = presets.iter().map(|preset| preset.release().to_string()).collect();
    writeln!(text, "{}: releases {}", presets[0].engine(), releases.join(" "))?;
    let mut settings = (0..).map_while(|index| presets[0].setting(index).map(|setting| (index, setting)));
    settings.try_for_each(|(index, setting)| {
        list(text, &setting, &format!("default: {}", defaults(presets, index)))
    })
}

fn list(text: &mut String, setting: &Setting, value: &str) -> std::fmt::Result {
    writeln!(text, "  {:<18} {}", setting.name, setting.values)?;
    writeln!(text, "  {:<18}   {}", "", setting.what)?;
    writeln!(text, "  {:<18}   {value}", "")
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
