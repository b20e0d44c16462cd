//! The lessons of docs/lessons.md for the page. A lesson has a title, its text, and in a comment the
//! questions that its commands ask, with the place of the exercise's answer in the text of the second one:
//!
//! ```text
//! ## 1. A title
//! The idea. (Paragraphs, up to the first command.)
//! See: what to see in the answer.
//! Exercise: what to find out.
//! <!-- lesson: {"shown": QUESTION, "asked": QUESTION, "answer": "REGULAR EXPRESSION WITH ONE GROUP"} -->
//! ```

use std::path::Path;

/// The document.
const LESSONS: &str = "docs/lessons.md";
const MARK: &str = "<!-- lesson: {";

/// The lessons that the page has, as JSON.
pub(crate) fn bundled(root: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root.join(LESSONS)).map_err(|error| format!("{LESSONS}: {error}"))?;
    text.split("\n## ").skip(1).map(lesson).collect()
}

fn lesson(section: &str) -> Result<String, String> {
    let (title, body) = section.split_once('\n').unwrap_or((section, ""));
    let wrong = |what: &str| format!("{LESSONS}: {title}: expected {what}");
    let (text, rest) = body.split_once(MARK).ok_or_else(|| wrong("a comment with the questions"))?;
    let (questions, _) = rest.split_once("-->").ok_or_else(|| wrong("an end of the comment"))?;
    let paragraphs = paragraphs(text);
    let begins = |word: &str| paragraphs.iter().find_map(|paragraph| paragraph.strip_prefix(word));
    let idea: Vec<&str> = paragraphs.iter().map_while(|paragraph| idea_of(paragraph)).collect();
    let see = begins("See: ").ok_or_else(|| wrong("a paragraph that begins with See:"))?;
    let exercise = begins("Exercise: ").ok_or_else(|| wrong("a paragraph that begins with Exercise:"))?;
    let idea = idea.join(" ");
    let questions = questions.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(format!(
        "{{\"title\":{title:?},\"idea\":{idea:?},\"see\":{see:?},\"exercise\":{exercise:?},{questions}"
    ))
}

/// Paragraphs, each in one line, without commands.
fn paragraphs(text: &str) -> Vec<String> {
    let outside = text.split("```").step_by(2);
    let parts = outside.flat_map(|part| part.split("\n\n"));
    let lines = parts.map(|part| part.lines().collect::<Vec<_>>().join(" ").trim().replace('`', ""));
    lines.filter(|line| !line.is_empty()).collect()
}

/// A paragraph before what is to be seen.
fn idea_of(paragraph: &str) -> Option<&str> {
    (!paragraph.starts_with("See: ")).then_some(paragraph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_becomes_a_lesson() {
        let check = |section: &str, expected: Result<&str, &str>| match (lesson(section), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(expected)) => assert_eq!(found, format!("{LESSONS}: 1. A: expected {expected}")),
            (found, _) => panic!("{section}: {found:?}"),
        };
        let text = "1. A\n\nOne\n`two`.\n\nThree.\n\n```sh\ncommand\n```\n\nSee: it.\n\nExercise: what?\n\n";
        let whole =
            format!("{text}```sh\nother\n```\n\n<!-- lesson: {{\"shown\": {{}},\n\"answer\": \"a\"}} -->\n");
        let expected = "{\"title\":\"1. A\",\"idea\":\"One two. Three.\",\"see\":\"it.\",\"exercise\":\"what?\",\
                        \"shown\": {}, \"answer\": \"a\"}";
        check(&whole, Ok(expected));
        check(text, Err("a comment with the questions"));
        check(&whole.replace("-->", ""), Err("an end of the comment"));
        check(&whole.replace("See", "Look"), Err("a paragraph that begins with See:"));
        check(&whole.replace("Exercise", "Do"), Err("a paragraph that begins with Exercise:"));
    }
}
