//! Names that a stranger chose: no renderer passes on a character that steers a terminal, reorders text, or
//! makes a spreadsheet compute.

use crate::csv_check::with_apostrophe;
use crate::name_check::{HOSTILE, check_characters, check_names};
use crate::state::tars::folder;
use slablab_doctor::measure::SortKey;
use slablab_doctor::output::{
    Shown, doctor_csv, doctor_json, doctor_page, doctor_prometheus, doctor_table, whatif_csv, whatif_json,
    whatif_mail, whatif_page, whatif_table,
};
use slablab_doctor::state::{self, Input, State};
use slablab_doctor::what::{self, Entry, Known, Merged, Method, line, page, slot_json, slot_page};
use slablab_doctor::whatif::{Against, Change, predict};
use slablab_doctor::{Options, examine};
use slablab_report::json;

/// Two caches whose names set a terminal's title, colour it, turn the direction of text and start a formula.
const EVIL: &str = "slabinfo - version: 2.1\n\
    # name <active_objs>\n\
    \x1b]0;OWNED\x07\x1b[31mred\u{202e} 1000 8000 256 16 1 : tunables 0 0 0 : slabdata 500 500 0\n\
    =cmd|/C+calc!A1\u{9b}\u{7f} 100 800 256 16 1 : tunables 0 0 0 : slabdata 50 50 0\n";

fn evil() -> State {
    let path = folder("evil-\u{1b}[2J").join("slabinfo");
    std::fs::write(&path, EVIL).expect("a file");
    state::read(&Input { path: Some(path), page_size: Some(4096), cpus: Some(4) }).expect("readable")
}

#[test]
fn no_renderer_passes_on_control_characters() {
    let mut state = evil();
    let name = state.caches[0].name.clone();
    state.caches[0].aliases = vec![name];
    let report = examine(&state, &Options::default()).expect("examined");
    let shown = Shown { sort: SortKey::Loss, lines: 10, aliases: true, bytes: false };
    check_names("the table", &doctor_table(&report, &shown));
    check_names("CSV", &doctor_csv(&report));
    check_names("Prometheus", &doctor_prometheus(&report));
    check_names("JSON", &json::document(&doctor_json(&report)));
    check_names("the page", &doctor_page(&report, "slablab doctor", &shown));
    let change = Change { max_order: Some(0), ..Change::default() };
    let predictions = [predict(&state, &change).expect("predicted")];
    let against = Against::new(&predictions[0], &state);
    check_names("whatif's table", &whatif_table(&state, &predictions, Some(&against), 10));
    check_names("whatif's CSV", &whatif_csv(&predictions));
    check_names("whatif's JSON", &json::document(&whatif_json(&state, &predictions, Some(&against))));
    check_characters("whatif's mail", &whatif_mail(&predictions[0], Some(&predictions[0])));
    check_names("whatif's page", &whatif_page(&state, &predictions, Some(&against), "slablab whatif", 10));
}

#[test]
fn names_alone_have_an_apostrophe_in_csv() {
    let mut state = evil();
    let change = Change { max_order: Some(0), ..Change::default() };
    for (second, expected) in [("plain", vec![]), (HOSTILE[1], vec![r"'=cmd|/C+OWNED!A1\x9b\x7f\u2028"])] {
        state.caches[1].name = second.into();
        let report = examine(&state, &Options::default()).expect("examined");
        let predictions = [predict(&state, &change).expect("predicted")];
        for csv in [doctor_csv(&report), whatif_csv(&predictions)] {
            assert_eq!(with_apostrophe(&csv), expected, "{csv}");
        }
    }
}

/// Every text of an entry, and the name by which the user asked, are hostile.
#[test]
fn what_passes_on_no_control_characters() {
    let known = Known::builtin();
    for name in HOSTILE {
        let text = || name.to_string();
        let method = Method { how: text(), cost: Some(text()), run: Some(text()), ..first_method(known) };
        let entry = Entry {
            name: text(),
            also: vec![text()],
            subsystem: text(),
            what: text(),
            created_by: text(),
            grows_with: Some(text()),
            shrink: vec![method],
            cannot_shrink: Some(text()),
            ..known.entries()[0].clone()
        };
        let merged = Merged::parse(":0000024").expect("a merged cache's name");
        check_names("an entry", &page(known, &entry, name, 80));
        check_names("an entry's line", &line(&entry, 20, 80));
        check_names("an entry's JSON", &json::document(&what::json(known, &entry, name)));
        check_names("a merged cache", &slot_page(known, &merged, name, 80));
        check_names("a merged cache's JSON", &json::document(&slot_json(known, &merged, name)));
    }
}

fn first_method(known: &Known) -> Method {
    let mut methods = known.entries().iter().flat_map(|entry| &entry.shrink);
    methods.next().expect("some cache can be shrunk").clone()
}

#[test]
fn errors_show_control_characters() {
    let path = folder("bad-\u{1b}[2J").join("slabinfo");
    std::fs::write(&path, "slabinfo - version: 2.1\nOWNED\x1b[31m 1\n").expect("a file");
    let input = Input { path: Some(path), ..Input::default() };
    let error = state::read(&input).expect_err("a damaged line").to_string();
    check_names("the error", &error);
}
