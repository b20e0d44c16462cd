//! Every knob of the presets stands in a test: its name, as a word, in a table or in a preset's text.

use slablab_vm::Preset;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The text of all tests below a folder: whole files of `tests`, and what follows the first `mod tests` of a
/// source.
fn tests(folder: &Path, is_source: bool) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).expect("a folder of the crate") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            text += &tests(&path, is_source);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = fs::read_to_string(&path).expect("UTF-8");
            let from = if is_source { file.find("mod tests {").unwrap_or(file.len()) } else { 0 };
            text += &file[from..];
        }
    }
    text
}

#[test]
fn every_knob_stands_in_a_test() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = tests(&crate_root.join("src"), true) + &tests(&crate_root.join("tests"), false);
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words: BTreeSet<&str> = text.split(|letter| !is_word(letter)).collect();
    let presets = Preset::all();
    let knobs: BTreeSet<&str> =
        presets.iter().flat_map(|preset| preset.settings().map(|setting| setting.name)).collect();
    assert!(knobs.len() >= 80, "{} knobs of {} presets", knobs.len(), presets.len());
    let missing: Vec<&&str> = knobs.iter().filter(|knob| !words.contains(*knob)).collect();
    assert!(
        missing.is_empty(),
        "no test names {missing:?}: add a row to the table of the rule that it changes"
    );
}
