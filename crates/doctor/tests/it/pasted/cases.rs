//! Small texts made after public reports of 2010 to 2026 (trackers, lists, forums): the kernel's own lines, with
//! hosts, containers and products replaced. Each has the sentences that its answer must have, and those that
//! it must not have. Where a text is refused, the refusal is the answer.

use super::{Options, SHOWN, doctor_answer, examine, read, sample};
use slablab_doctor::state::Input;

/// What the doctor says of a text, in one line of single blanks.
pub(super) fn said(name: &str) -> String {
    let path = sample("cases").join(format!("{name}.txt"));
    let state = match read(&Input { path: Some(path), ..Input::default() }) {
        Ok(state) => state,
        Err(error) => return error.to_string(),
    };
    let earlier = state.earlier();
    let report = examine(&state, &Options { since: &earlier, ..Options::default() }).unwrap();
    let text = doctor_answer(&report, &SHOWN).text_of("table", false).unwrap();
    println!("{name}: {}", text.lines().take(6).collect::<Vec<_>>().join(" "));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(name: &str, words: &[&str], never: &[&str]) {
    let said = said(name);
    for word in words {
        assert!(said.contains(word), "{name}: no {word:?} in {said}");
    }
    for word in never {
        assert!(!said.contains(word), "{name}: {word:?} in {said}");
    }
}

#[test]
fn all_say() {
    let folder = sample("cases");
    let mut names: Vec<String> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    for name in names {
        println!("== {} {}", name, said(name.trim_end_matches(".txt")).chars().take(600).collect::<String>());
    }
}
