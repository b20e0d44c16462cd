//! Names that a stranger chose: no renderer passes on a character that steers a terminal, reorders text, or
//! makes a spreadsheet compute.

use slablab_doctor::diagnosis::{Options, SortKey, examine};
use slablab_doctor::output::{
    Shown, doctor_csv, doctor_json, doctor_page, doctor_prometheus, doctor_table, whatif_csv, whatif_json,
    whatif_page, whatif_table,
};
use slablab_doctor::state::{self, Input, State};
use slablab_doctor::whatif::{Against, Change, predict};
use slablab_report::json;
use std::path::PathBuf;

/// Two caches whose names set a terminal's title, colour it, turn the direction of text and start a formula.
const EVIL: &str = "slabinfo - version: 2.1\n\
    # name <active_objs>\n\
    \x1b]0;OWNED\x07\x1b[31mred\u{202e} 1000 8000 256 16 1 : tunables 0 0 0 : slabdata 500 500 0\n\
    =cmd|/C+calc!A1\u{9b}\u{7f} 100 800 256 16 1 : tunables 0 0 0 : slabdata 50 50 0\n";

fn evil() -> State {
    let name = format!("slablab-evil-\u{1b}[2J-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("slabinfo");
    std::fs::write(&path, EVIL).expect("a file");
    let state =
        state::read(&Input { path: Some(path), page_size: Some(4096), cpus: Some(4) }).expect("readable");
    std::fs::remove_dir_all(&folder).expect("removed");
    state
}

/// Whether a terminal, a label or a viewer would act on the character.
fn acts(char: char) -> bool {
    (char.is_control() && char != '\n')
        || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[track_caller]
fn check(renderer: &str, text: &str) {
    let found = text.lines().find(|line| line.chars().any(acts));
    assert!(found.is_none(), "{renderer} passes on {found:?}");
    assert!(text.contains("OWNED"), "{renderer} does not name the cache");
}

#[test]
fn no_renderer_passes_on_control_characters() {
    let mut state = evil();
    let name = state.caches[0].name.clone();
    state.caches[0].aliases = vec![name];
    let report = examine(&state, &Options::default()).expect("examined");
    let shown = Shown { sort: SortKey::Loss, lines: 10, aliases: true, bytes: false };
    check("the table", &doctor_table(&report, &shown));
    check("CSV", &doctor_csv(&report));
    check("Prometheus", &doctor_prometheus(&report));
    check("JSON", &json::document(&doctor_json(&report)));
    check("the page", &doctor_page(&report, "slablab doctor", &shown));
    let change = Change { max_order: Some(0), ..Change::default() };
    let predictions = [predict(&state, &change).expect("predicted")];
    let against = Against::new(&predictions[0], &state);
    check("whatif's table", &whatif_table(&state, &predictions, Some(&against), 10));
    check("whatif's CSV", &whatif_csv(&predictions));
    check("whatif's JSON", &json::document(&whatif_json(&state, &predictions, Some(&against))));
    check("whatif's page", &whatif_page(&state, &predictions, Some(&against), "slablab whatif", 10));
}

#[test]
fn no_csv_cell_starts_a_formula() {
    let state = evil();
    let report = examine(&state, &Options::default()).expect("examined");
    let csv = doctor_csv(&report);
    assert!(csv.lines().any(|line| line.starts_with("'=cmd|/C+calc!A1\\x9b\\x7f,")), "{csv}");
}

#[test]
fn errors_show_control_characters() {
    let path = std::env::temp_dir().join(format!("slablab-bad-\u{1b}[2J-{}", std::process::id()));
    std::fs::write(&path, "slabinfo - version: 2.1\nOWNED\x1b[31m 1\n").expect("a file");
    let input = Input { path: Some(PathBuf::from(&path)), ..Input::default() };
    let error = state::read(&input).expect_err("a damaged line").to_string();
    std::fs::remove_file(&path).expect("removed");
    check("the error", &error);
}
