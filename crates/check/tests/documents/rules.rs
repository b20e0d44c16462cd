//! The rules of docs/fidelity.md and the rows of docs/published.md name sections, functions and tests that
//! exist.

use crate::{Text, cited_sections, headings, path_at, prose, report, section, texts};
use std::collections::HashSet;

/// The page whose tables name the function and the test of each rule.
const RULES: &str = "docs/fidelity.md";

/// All words of the sources.
fn words(texts: &[Text]) -> HashSet<&str> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let sources = texts.iter().filter(|text| text.path.ends_with(".rs"));
    sources.flat_map(|text| &text.lines).flat_map(|line| line.split(move |c| !part(c))).collect()
}

/// The names in the cells of a row that no source contains. `each_is_found_in_*` matches all names that begin
/// like it.
fn unknown<'a>(cells: &[&'a str], words: &HashSet<&str>) -> Vec<&'a str> {
    let mut unknown = Vec::new();
    for token in cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
        let names = token.split(['{', '}', ',', ' ', ':', '(', ')', '*', '/', '.', '&']);
        let known = |name: &str| {
            words.contains(name) || (token.ends_with('*') && words.iter().any(|word| word.starts_with(name)))
        };
        unknown.extend(names.filter(|name| name.len() > 3 && !name.contains('=') && !known(name)));
    }
    unknown
}

#[test]
fn every_rule_names_a_section_a_function_and_a_test() {
    let texts = texts();
    let words = words(&texts);
    let page_at = |path: &str| texts.iter().find(|text| text.path == path).expect("the page is there");
    let (mut sections, mut in_rules, mut rows, mut wrong) = (HashSet::new(), false, 0, Vec::new());
    for (line, content) in prose(page_at(RULES)) {
        if let Some(at) = content.find("docs/theory/").filter(|_| content.starts_with("Rules are those of")) {
            sections = headings(page_at(path_at(content, at))).filter_map(section).collect();
        }
        in_rules =
            content.starts_with("| rule | function | test |") || (in_rules && content.starts_with('|'));
        let cells: Vec<&str> = content.split(" | ").collect();
        let ([rule, names @ ..], true) = (&cells[..], in_rules) else { continue };
        rows += 1;
        // "3.2.1" is step 1 of section 3.2.
        for number in cited_sections(&format!(" {}", rule.trim_start_matches("| "))) {
            let above = number.rsplit_once('.').map_or("", |(above, _)| above);
            if !sections.contains(number) && !sections.contains(above) {
                wrong.push(format!("{RULES}:{line}: no section {number}"));
            }
        }
        let unknown = unknown(names, &words);
        wrong.extend(unknown.iter().map(|name| format!("{RULES}:{line}: nothing is named {name}")));
    }
    report(&wrong);
    println!("{rows} rules");
    assert!(rows > 100, "only {rows} rules were found: the reader of this test is broken");
}

#[test]
fn every_published_figure_names_a_test() {
    let texts = texts();
    let words = words(&texts);
    let page = texts.iter().find(|text| text.path == "docs/published.md").expect("the page is there");
    let rows = prose(page).filter(|(_, line)| line.starts_with('|') && line.split(" | ").count() == 4);
    let mut wrong = Vec::new();
    for (line, row) in rows {
        let test = row.rsplit(" | ").next().unwrap_or_default();
        let unknown = unknown(&[test], &words);
        wrong.extend(unknown.iter().map(|name| format!("{}:{line}: nothing is named {name}", page.path)));
    }
    report(&wrong);
}

/// In the call trees of the engines' pages, the names before the remark are functions. Two spaces separate
/// the remark.
#[test]
fn every_call_tree_names_functions() {
    let texts = texts();
    let words = words(&texts);
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let (mut wrong, mut names) = (Vec::new(), 0);
    for page in texts.iter().filter(|text| text.path.starts_with("docs/engines/")) {
        let mut tree = false;
        for (number, line) in page.lines.iter().enumerate() {
            tree = if line.starts_with("```") { line == "```text" } else { tree };
            let calls =
                line.trim_start_matches([' ', '│', '├', '└', '─']).split("  ").next().unwrap_or_default();
            let is_call =
                |name: &&str| name.contains('_') && name.chars().next().is_some_and(char::is_alphabetic);
            for name in calls.split(|c| !part(c)).filter(|_| tree).filter(is_call) {
                names += 1;
                if !words.contains(name) {
                    wrong.push(format!("{}:{}: nothing is named {name}", page.path, number + 1));
                }
            }
        }
    }
    report(&wrong);
    assert!(names > 50, "only {names} names were found: the reader of this test is broken");
}
