//! The tables of an explanation's text.

use super::columns::{self, Differing, Moving, Together};
use super::{method_words, strong_pairs, subject};
use crate::explain::{Explained, Explanation};
use crate::output::replay::recording_line;
use slablab_report::column::Style;
use slablab_report::html::Cell;
use slablab_report::{Answer, text};

/// Policies side by side: more go into a table below.
const COLUMNS: usize = 5;

/// What differs, what each policy carries, and which policies act together.
pub(super) fn tables(answer: Answer, explained: &Explained) -> Answer {
    let answer = answer.line(recording_line(&explained.replay)).line(format!(
        "{}: {}",
        subject(explained),
        method_words(explained)
    ));
    if explained.items.is_empty() {
        return answer;
    }
    let (carrying, idle): (Vec<usize>, Vec<usize>) =
        (0..explained.items.len()).partition(|item| explained.carries(*item));
    let mut answer = answer.table(items(explained), &["what"]);
    if !idle.is_empty() {
        let names: Vec<&str> = idle.iter().map(|item| explained.items[*item].name.as_str()).collect();
        answer = answer.line(format!("without any effect here: {}", names.join(", ")));
    }
    let moving: Vec<&Explanation> = explained.measures.iter().filter(|measure| measure.moves()).collect();
    for policies in carrying.chunks(COLUMNS) {
        answer = answer.table(parts(explained, &moving, policies, carrying.len() > COLUMNS), &[]);
    }
    let pairs = strong_pairs(explained);
    if !pairs.is_empty() {
        answer = answer.table(together(explained, &pairs), &["of what moves"]);
    }
    match moving.is_empty() {
        true => answer,
        false => answer
            .line("The parts of a row add up to its change. 0 is exactly zero; +0 and -0 are less than one."),
    }
}

fn items(explained: &Explained) -> text::Table {
    let name = |item: &Differing| Cell::Name(item.0.name.clone());
    let rows = columns::differing(explained);
    let keys = ["from", "to", "what"];
    let table = columns::items(explained).text(("policy", &name), &keys, &rows, Style::Grouped);
    table.numbers(0..0).heads_in_lines().names(1..3)
}

fn parts(explained: &Explained, moving: &[&Explanation], policies: &[usize], more: bool) -> text::Table {
    // Of several tables each has the rows in which its policies do something.
    let does = |row: &&&Explanation| !more || policies.iter().any(|item| row.parts[*item].moves);
    let rows: Vec<Moving> = moving.iter().filter(does).map(|row| Moving::new(row)).collect();
    let keys = columns::keys(explained, policies);
    columns::measures(&explained.items).text(("", &Moving::name), &keys, &rows, Style::Grouped)
}

fn together(explained: &Explained, pairs: &[Together]) -> text::Table {
    let both = |pair: &Together| columns::both(explained, pair);
    let keys = ["counter", "together", "of_moving"];
    columns::pairs().text(("together", &both), &keys, pairs, Style::Grouped).numbers(2..4)
}
