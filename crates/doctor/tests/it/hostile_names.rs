//! Names that a stranger chose: no renderer passes on a character that steers a terminal, reorders text, or
//! makes a spreadsheet compute.

use crate::csv_check::with_apostrophe;
use crate::name_check::{HOSTILE, check_characters, check_names};
use crate::state::tars::folder;
use slablab_doctor::measure::SortKey;
use slablab_doctor::output::{Shown, doctor_answer, what_answer, what_list_answer, whatif_answer};
use slablab_doctor::state::{self, Input, State};
use slablab_doctor::what::Known;
use slablab_doctor::whatif::{Against, Change, predict};
use slablab_doctor::{Options, examine};

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
    let answer = doctor_answer(&report, &shown);
    for form in ["table", "csv", "prometheus", "json"] {
        check_names(form, &answer.text_of(form, true).expect("the doctor has this form"));
    }
    check_names("the page", &answer.page("slablab doctor"));
    let change = Change { max_order: Some(0), ..Change::default() };
    let predictions = [predict(&state, &change).expect("predicted")];
    let against = Against::new(&predictions[0], &state);
    let answer = whatif_answer(&state, &predictions, Some(&against), Some(&predictions[0]), 10);
    let form = |word| answer.text_of(word, false).expect("an answer for one change has every form");
    check_names("whatif's table", &form("table"));
    check_names("whatif's CSV", &form("csv"));
    check_names("whatif's JSON", &form("json"));
    check_characters("whatif's mail", &form("mail"));
    check_names("whatif's page", &answer.page("slablab whatif"));
}

#[test]
fn names_alone_have_an_apostrophe_in_csv() {
    let mut state = evil();
    let change = Change { max_order: Some(0), ..Change::default() };
    for (second, expected) in [("plain", vec![]), (HOSTILE[1], vec![r"'=cmd|/C+OWNED!A1\x9b\x7f\u2028"])] {
        state.caches[1].name = second.into();
        let report = examine(&state, &Options::default()).expect("examined");
        let predictions = [predict(&state, &change).expect("predicted")];
        let shown = Shown { sort: SortKey::Loss, lines: 10, aliases: true, bytes: false };
        let csv = doctor_answer(&report, &shown).csv().expect("a row for each cache");
        let answer = whatif_answer(&state, &predictions, None, None, 0);
        for csv in [csv, answer.csv().expect("rows")] {
            assert_eq!(with_apostrophe(&csv), expected, "{csv}");
        }
    }
}

/// Every text of an entry is hostile.
#[test]
fn what_passes_on_no_control_characters() {
    for (at, name) in HOSTILE.into_iter().enumerate() {
        let text = toml::Value::String(name.into()).to_string();
        let keys = ["name", "subsystem", "what", "created_by", "grows_with"];
        let texts: String = keys.iter().map(|key| format!("{key} = {text}\n")).collect();
        let method = format!("[method.m]\nhow = {text}\nrun = {text}\ncost = {text}\n");
        let path = folder(&format!("what-{at}")).join("caches.toml");
        std::fs::write(&path, format!("{method}[[cache]]\n{texts}shrink = [\"m\"]\n")).expect("a file");
        let known = Known::read(&path).expect("a file of caches");
        let entry = known.find(name).expect("the entry");
        let one = what_answer(&known, &[name.into(), ":0000024".into()], &[], &[]);
        let list = what_list_answer(&known, name, &[entry]);
        for (what, answer) in [("what", one), ("the list", list)] {
            for form in ["table", "json"] {
                check_names(what, &answer.text_of(form, true).expect("every answer has it"));
            }
        }
    }
}

#[test]
fn errors_show_control_characters() {
    let path = folder("bad-\u{1b}[2J").join("slabinfo");
    std::fs::write(&path, "slabinfo - version: 2.1\nOWNED\x1b[31m 1\n").expect("a file");
    let input = Input { path: Some(path), ..Input::default() };
    let error = state::read(&input).expect_err("a damaged line").to_string();
    check_names("the error", &error);
}
