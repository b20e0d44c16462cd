//! Every knob of the engines stands in a test, of this crate or of one that runs the engines: its name, as a
//! word, in a table or in a preset's text.

use slablab_slabs::engines::slab::SlabPolicy;
use slablab_slabs::engines::slob::SlobPolicy;
use slablab_slabs::engines::slqb::SlqbPolicy;
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::knob::{Policy, Setting, Values};
use slablab_slabs::{CacheSpec, Preset};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The text of all tests below a folder: whole files of folders `tests`, and what follows the first `mod
/// tests` of another source.
fn tests(folder: &Path, is_test: bool) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).expect("a folder of the crates") {
        let path = entry.expect("a file").path();
        if path.is_symlink() || path.ends_with("target") {
            continue;
        }
        if path.is_dir() {
            text += &tests(&path, is_test || path.ends_with("tests"));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = fs::read_to_string(&path).expect("UTF-8");
            let from = if is_test { 0 } else { file.find("mod tests {").unwrap_or(file.len()) };
            text += &file[from..];
        }
    }
    text
}

fn names<T: Policy>() -> impl Iterator<Item = &'static str> {
    T::KNOBS.iter().map(|knob| knob.name)
}

#[test]
fn every_knob_stands_in_a_test() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of the crates");
    let text = tests(crates, false);
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words: BTreeSet<&str> = text.split(|letter| !is_word(letter)).collect();
    let engines = names::<SlubPolicy>().chain(names::<SlqbPolicy>());
    let knobs: BTreeSet<&str> = engines.chain(names::<SlabPolicy>()).chain(names::<SlobPolicy>()).collect();
    assert!(knobs.len() >= 45, "only {} knobs were found", knobs.len());
    let missing: Vec<&&str> = knobs.iter().filter(|knob| !words.contains(*knob)).collect();
    assert!(
        missing.is_empty(),
        "no test names {missing:?}: add a row to the table of the rule that it changes"
    );
}

/// The numbers that a rule gives for objects of four sizes, as the table of constants prints them.
fn by_rule(preset: &Preset, knob: &str) -> String {
    let Preset::Slub(policy) = preset else { return "auto".into() };
    let of = |size: u32| match knob {
        "min_partial" => policy.min_partial_of(size),
        "cpu_partial" => policy.cpu_partial_of(size, 4096),
        "sheaf_capacity" => policy.sheaf_capacity_of(&CacheSpec::of_size(size), size, 4096, 8),
        _ => panic!("{knob}: a rule that this test does not know"),
    };
    format!("auto: {}", [8, 256, 1024, 4096].map(|size| of(size).to_string()).join(", "))
}

fn settings(preset: &Preset) -> impl Iterator<Item = Setting> {
    (0..).map_while(|index| preset.setting(index))
}

/// docs/theory/README.md has every knob that is a number, with its preset's value.
#[test]
fn constants_of_the_textbook_are_knobs() {
    let textbook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/theory/README.md");
    let textbook = fs::read_to_string(textbook).expect("the textbook");
    let (_, table) = textbook.split_once("## Constants").expect("the section");
    let mut told = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split('|').map(str::trim).collect();
        let [knob, _, preset, value] = cells[..] else { panic!("expected four cells: {row}") };
        let (knob, preset) = (knob.trim_matches('`'), preset.trim_matches('`'));
        let policy = Preset::parse(preset).unwrap_or_else(|error| panic!("{row}: {error}"));
        let setting = settings(&policy).find(|setting| setting.name == knob);
        let setting = setting.unwrap_or_else(|| panic!("{preset} has no knob {knob}"));
        let is = setting.to_string();
        let is = if is == "auto" && value != is { by_rule(&policy, knob) } else { is };
        assert_eq!(value, is, "{row}");
        told.insert((policy.engine(), knob.to_owned()));
    }
    let engines = ["slub@7.3", "slab@6.1", "slqb@2009-09", "slob@6.1"];
    let missing: Vec<String> = engines
        .map(|name| Preset::parse(name).expect("a preset"))
        .iter()
        .flat_map(|preset| settings(preset).map(|setting| (preset.engine(), setting)))
        .filter(|(_, setting)| matches!(setting.values, Values::Number(..) | Values::Auto(..)))
        .filter(|(engine, setting)| !told.contains(&(*engine, setting.name.to_owned())))
        .map(|(engine, setting)| format!("{engine} {}", setting.name))
        .collect();
    assert!(missing.is_empty(), "the textbook's table of constants lacks {missing:?}");
}
