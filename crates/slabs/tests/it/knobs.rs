//! Every knob of the engines stands in a test, of this crate or of one that runs the engines: its name, as a
//! word, in a table or in a preset's text.

use slablab_slabs::engines::slab::SlabPolicy;
use slablab_slabs::engines::slob::SlobPolicy;
use slablab_slabs::engines::slqb::SlqbPolicy;
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::knob::Policy;
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
