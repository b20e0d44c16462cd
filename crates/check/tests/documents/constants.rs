//! The table of constants in docs/theory/sheaves.md and the knobs of the newest SLUB are the same.

use crate::{prose, report, texts};
use slablab_slabs::knob::Values;
use slablab_slabs::preset::Preset;
use std::collections::BTreeMap;

const PAGE: &str = "docs/theory/sheaves.md";
const PRESET: &str = "slub@7.3";

/// Each knob that is a number, with its value as the grammar has it.
fn knobs() -> BTreeMap<String, String> {
    let preset = Preset::parse(PRESET).expect("a preset");
    let settings = (0..).map_while(|index| preset.setting(index));
    let numbers = settings.filter(|setting| !matches!(setting.values, Values::Words(_)));
    numbers.map(|setting| (setting.name.to_owned(), setting.to_string())).collect()
}

#[test]
fn every_constant_is_a_knob_with_that_value() {
    let texts = texts();
    let page = texts.iter().find(|text| text.path == PAGE).expect("the page is there");
    let mut knobs = knobs();
    let (mut in_table, mut wrong) = (false, Vec::new());
    for (line, content) in prose(page) {
        in_table =
            content.starts_with("| constant | value | knob |") || (in_table && content.starts_with('|'));
        let cells: Vec<&str> = content.trim_matches(['|', ' ']).split(" | ").collect();
        let ([_, value, knob], true) = (&cells[..], in_table && content.contains('`')) else { continue };
        match knobs.remove(knob.trim_matches('`')) {
            Some(found) if found == *value => {}
            Some(found) => wrong.push(format!("{PAGE}:{line}: {knob} of {PRESET} is {found}")),
            None => wrong.push(format!("{PAGE}:{line}: {PRESET} has no number {knob}")),
        }
    }
    wrong.extend(knobs.keys().map(|knob| format!("{PAGE}: no constant for the knob {knob} of {PRESET}")));
    report(&wrong);
}
