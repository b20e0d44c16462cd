//! The answer of a verb: one value from which every form comes.
//!
//! ```text
//! Answer ─┬─ text      the sentence, warnings, tables within the terminal's width, remarks
//!         ├─ markdown  the text for a mail or a report, with all columns
//!         ├─ csv       the rows of its first table for programs
//!         ├─ json      its document, whose JSON Schema comes from the same type
//!         ├─ page      the sentence, facts, sections with tables and charts, evidence
//!         └─ others    forms of one verb alone, such as that of mmtests
//! ```
//!
//! A verb makes one `Answer`; `cli` and `python` ask it for a form and add nothing.

use crate::document::Document;
use crate::frame::Frame;
use crate::html::chart::Chart;
use crate::html::{self, Cell, Page};
use crate::{json, text, visible};
use serde_json::Value;

/// The blanks that do not break, with which numbers of pages are written, as plain ones.
fn plain(words: &str) -> String {
    words.replace(['\u{202f}', '\u{a0}'], " ")
}

/// An answer.
pub struct Answer {
    title: String,
    sentence: String,
    warnings: Vec<String>,
    blocks: Vec<Block>,
    remarks: Vec<String>,
    frame: Option<Frame>,
    document: Option<Box<dyn Fn() -> Value + Send + Sync>>,
    width: Option<usize>,
    others: Vec<(&'static str, String)>,
}

/// What follows the sentence, in the order in which it is read.
enum Block {
    /// A heading of the page.
    Section(String),
    /// Numbers of the page.
    Facts(Vec<(&'static str, Cell)>),
    /// A paragraph of the page.
    Text(String),
    /// A heading of the text.
    Heading(String),
    /// A table of the text.
    TextTable(text::Table, Vec<&'static str>),
    /// A line of the text, and lines that belong to it.
    Line(String, Vec<String>),
    /// Items of a list of the text.
    List(Vec<String>),
    /// A table of the page; whether it is folded.
    Table(String, html::Table, bool),
    /// Lines to type, of the text and of the page.
    Command(String),
    /// A chart of the page and its numbers.
    Figure(String, Box<dyn Chart + Send + Sync>, html::Table),
}

impl Answer {
    /// An answer of `sentence`, which says what was asked for; `title` is a page's.
    pub fn new(title: impl Into<String>, sentence: impl Into<String>) -> Answer {
        Answer {
            title: title.into(),
            sentence: plain(&sentence.into()),
            warnings: Vec::new(),
            blocks: Vec::new(),
            remarks: Vec::new(),
            frame: None,
            document: None,
            width: None,
            others: Vec::new(),
        }
    }

    /// What the answer lacks, which a reader must not miss.
    #[must_use]
    pub fn warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Answer {
        self.warnings.extend(warnings.into_iter().map(|line| plain(&line)));
        self
    }

    /// Numbers of the page that a reader looks for first: name and value.
    #[must_use]
    pub fn facts(self, facts: impl IntoIterator<Item = (&'static str, Cell)>) -> Answer {
        self.add(Block::Facts(facts.into_iter().collect()))
    }

    /// Begins a section of the page.
    #[must_use]
    pub fn section(self, title: &str) -> Answer {
        self.add(Block::Section(title.into()))
    }

    /// A paragraph of the page.
    #[must_use]
    pub fn paragraph(self, words: &str) -> Answer {
        self.add(Block::Text(words.into()))
    }

    /// A table of the text. If it is wider than the terminal, the columns with these heads are left out, the
    /// first of them first, until it fits; a line names them. What does not fit even so follows in further
    /// blocks.
    #[must_use]
    pub fn table(self, table: text::Table, leave_out: &[&'static str]) -> Answer {
        self.add(Block::TextTable(table, leave_out.to_vec()))
    }

    /// Begins a part of the text.
    #[must_use]
    pub fn heading(self, words: impl Into<String>) -> Answer {
        self.add(Block::Heading(plain(&words.into())))
    }

    /// A line of the text.
    #[must_use]
    pub fn line(self, line: impl Into<String>) -> Answer {
        self.entry(line, [])
    }

    /// A line of the text; the lines that belong to it stand below it, further in.
    #[must_use]
    pub fn entry(self, line: impl Into<String>, below: impl IntoIterator<Item = String>) -> Answer {
        let below = below.into_iter().map(|line| plain(&line)).collect();
        self.add(Block::Line(plain(&line.into()), below))
    }

    /// A list of the text.
    #[must_use]
    pub fn list(self, items: impl IntoIterator<Item = String>) -> Answer {
        self.add(Block::List(items.into_iter().map(|item| plain(&item)).collect()))
    }

    /// A table of the page.
    #[must_use]
    pub fn page_table(self, caption: &str, table: html::Table) -> Answer {
        self.add(Block::Table(caption.into(), table, false))
    }

    /// A chart of the page with its numbers.
    #[must_use]
    pub fn figure(
        self,
        caption: &str,
        chart: impl Chart + Send + Sync + 'static,
        table: html::Table,
    ) -> Answer {
        self.add(Block::Figure(caption.into(), Box::new(chart), table))
    }

    /// Sentences with the basis of the answer: what was assumed, and the error.
    #[must_use]
    pub fn remarks(mut self, remarks: impl IntoIterator<Item = String>) -> Answer {
        self.remarks.extend(remarks.into_iter().map(|line| plain(&line)));
        self
    }

    /// The rows of CSV.
    #[must_use]
    pub fn rows(mut self, frame: Frame) -> Answer {
        self.frame = Some(frame);
        self
    }

    /// The document of JSON.
    #[must_use]
    pub fn document<D: Document>(mut self, document: &D) -> Answer {
        let document = document.value();
        self.document = Some(Box::new(move || document.clone()));
        self
    }

    /// A form that this verb alone has: its word of `--format`, and the text.
    #[must_use]
    pub fn form(mut self, word: &'static str, text: String) -> Answer {
        self.others.push((word, text));
        self
    }

    fn add(mut self, block: Block) -> Answer {
        self.blocks.push(block);
        self
    }

    /// The sentence.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// The answer in the form of a word of `--format`; `None` if it has no such form.
    pub fn text_of(&self, form: &str, wide: bool) -> Option<String> {
        match form {
            "table" => Some(self.text(wide)),
            "markdown" => Some(self.markdown()),
            "json" => self.document.as_ref().map(|_| json::document(&self.json())),
            "csv" => self.csv(),
            other => self.others.iter().find(|(word, _)| *word == other).map(|(_, text)| text.clone()),
        }
    }

    /// The answer for a terminal of [`text::width`] columns. With `wide` no column is left out.
    pub fn text(&self, wide: bool) -> String {
        let width = self.width.unwrap_or_else(text::width);
        let wrapped =
            |line: &str, first: &str, others: &str| text::wrapped_within(width, line, first, others);
        let mut out = wrapped(&self.sentence, "", "");
        self.warnings.iter().for_each(|line| out += &wrapped(line, "", "  "));
        let mut is_headed = false;
        for block in &self.blocks {
            match block {
                Block::Heading(words) => out = out + "\n" + &wrapped(words, "", ""),
                Block::TextTable(table, order) => {
                    out += if is_headed { "" } else { "\n" };
                    out += &if wide { table.to_text() } else { table.fitted(width, order) };
                }
                Block::Line(line, below) => {
                    out += &wrapped(line, "", "  ");
                    below.iter().for_each(|line| out += &wrapped(line, "    ", "    "));
                }
                Block::List(items) => {
                    items.iter().for_each(|item| out += &wrapped(item, "- ", "  "));
                }
                Block::Command(lines) => {
                    visible::lines(lines).lines().for_each(|line| out = format!("{out}    {line}\n"));
                }
                Block::Section(_)
                | Block::Facts(_)
                | Block::Text(_)
                | Block::Table(..)
                | Block::Figure(..) => {}
            }
            is_headed = matches!(block, Block::Heading(_));
        }
        if !self.remarks.is_empty() {
            out.push('\n');
            self.remarks.iter().for_each(|line| out += &wrapped(line, "", "  "));
        }
        out
    }

    /// The answer in Markdown: the text, with every column.
    pub fn markdown(&self) -> String {
        let visible = |line: &str| visible::name(line).into_owned();
        let mut out = visible(&self.sentence) + "\n";
        self.warnings.iter().for_each(|line| out = format!("{out}\n{}\n", visible(line)));
        for block in &self.blocks {
            match block {
                Block::Heading(words) => out = format!("{out}\n### {}\n", visible(words)),
                Block::TextTable(table, _) => {
                    out = format!("{out}\n{}", table.markdown());
                }
                Block::Line(line, below) => {
                    out = format!("{out}\n{}\n", visible(line));
                    below.iter().for_each(|line| out = format!("{out}- {}\n", visible(line)));
                }
                Block::List(items) => {
                    out.push('\n');
                    items.iter().for_each(|item| out = format!("{out}- {}\n", visible(item)));
                }
                Block::Command(lines) => out = format!("{out}\n```sh\n{}\n```\n", visible::lines(lines)),
                Block::Section(_)
                | Block::Facts(_)
                | Block::Text(_)
                | Block::Table(..)
                | Block::Figure(..) => {}
            }
        }
        self.remarks.iter().for_each(|line| out = format!("{out}\n{}\n", visible(line)));
        out
    }

    /// The rows as CSV; `None` for an answer without rows.
    pub fn csv(&self) -> Option<String> {
        self.frame.clone().map(Frame::csv)
    }

    /// The rows for programs.
    pub fn frame(&self) -> Option<&Frame> {
        self.frame.as_ref()
    }

    /// The document of JSON, with the sentence and the program that gave it.
    pub fn json(&self) -> Value {
        let mut document = json::with_program(self.document.as_ref().map_or(Value::Null, |make| make()));
        document["answer"] = self.sentence.as_str().into();
        document
    }

    /// The answer as a page; `command` is what made it.
    pub fn page(&self, command: &str) -> String {
        let mut page = Page::new(&self.title, command);
        for line in &self.warnings {
            page.warning(line);
        }
        page.lede(&self.sentence);
        for block in &self.blocks {
            match block {
                Block::Section(title) => {
                    page.section(title);
                }
                Block::Facts(facts) => {
                    page.facts(facts.iter().cloned());
                }
                Block::Text(words) => {
                    page.text(words);
                }
                Block::Table(caption, table, false) => {
                    page.table(caption, table);
                }
                Block::Table(caption, table, true) => {
                    page.folded(caption, table);
                }
                Block::Command(lines) => {
                    page.command(lines);
                }
                Block::Figure(caption, chart, table) => {
                    page.figure(caption, chart.as_ref(), table);
                }
                Block::Heading(_) | Block::TextTable(..) | Block::Line(..) | Block::List(_) => {}
            }
        }
        page.evidence(&self.remarks);
        page.finish()
    }

    /// Lines to type, of the text and of the page. They are not wrapped, so that they can be copied.
    #[must_use]
    pub fn command(self, lines: impl Into<String>) -> Answer {
        self.add(Block::Command(lines.into()))
    }

    /// A table of the page that most readers do not need.
    #[must_use]
    pub fn folded_table(self, caption: &str, table: html::Table) -> Answer {
        self.add(Block::Table(caption.into(), table, true))
    }

    /// What the answer lacks, then its basis: what is said beside a form that has rows alone.
    pub fn said(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().chain(&self.remarks).map(String::as_str)
    }

    /// The document of JSON, made when it is asked for: for what costs time that no other form needs.
    #[must_use]
    pub fn document_of<D: Document>(mut self, make: impl Fn() -> D + Send + Sync + 'static) -> Answer {
        self.document = Some(Box::new(move || make().value()));
        self
    }

    /// The words of the forms that it has.
    pub fn forms(&self) -> Vec<&'static str> {
        let usual = [
            ("table", true),
            ("markdown", true),
            ("json", self.document.is_some()),
            ("csv", self.frame.is_some()),
        ];
        let usual = usual.into_iter().filter(|(_, is_there)| *is_there).map(|(word, _)| word);
        usual.chain(self.others.iter().map(|(word, _)| *word)).collect()
    }

    /// Lines of the text have at most so many columns, whatever the terminal has.
    #[must_use]
    pub fn within(mut self, width: Option<usize>) -> Answer {
        self.width = width;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{Columns, Style};
    use schemars::JsonSchema;
    use serde::Serialize;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[derive(Serialize, JsonSchema)]
    struct Slabs {
        /// How many.
        slabs: u64,
    }

    impl Document for Slabs {
        const NAME: &str = "slablab.test.1";
        const TITLE: &str = "a test";
    }

    #[test]
    fn text_has_plain_blanks() {
        let answer = Answer::new("Slabs", "They take 4\u{202f}KiB.")
            .warnings(["5\u{a0}% were lost".into()])
            .entry("6\u{202f}KiB", ["7\u{202f}KiB".to_string()])
            .remarks(["8\u{202f}KiB".into()]);
        assert_eq!(answer.sentence(), "They take 4 KiB.");
        assert!(answer.markdown().is_ascii() && answer.text(false).is_ascii(), "{}", answer.markdown());
    }

    fn answer() -> Answer {
        let columns = Columns::default()
            .add("cache", "cache", "cache", |row: &(&str, u64)| Cell::Name(row.0.into()))
            .add("slabs", "slabs", "slabs", |row| Cell::Count(row.1));
        let rows = [("dentry", 3), ("filp", 12)];
        let label = |row: &(&str, u64)| Cell::Name(row.0.into());
        Answer::new("Slabs", "Two caches have 15 slabs.")
            .warnings(["the recording lost 2 events".into()])
            .facts([("Slabs", Cell::Count(15))])
            .section("Caches")
            .table(columns.text(("cache", &label), &["slabs"], &rows, Style::Kib), &["slabs"])
            .list(["read slabinfo".into()])
            .command("cat /proc/slabinfo")
            .folded_table("All.", columns.html(("cache", &label), &["slabs"], &rows))
            .remarks(["nothing was assumed".into()])
            .rows(columns.frame(rows))
            .document(&Slabs { slabs: 15 })
    }

    #[test]
    fn every_form_comes_from_one_answer() {
        let text = answer().text(false);
        let table = " cache   slabs\n dentry      3\n filp       12\n";
        let lost = "the recording lost 2 events\n";
        let (command, nothing) = ("cat /proc/slabinfo", "nothing was assumed\n");
        assert_eq!(
            text,
            format!("Two caches have 15 slabs.\n{lost}\n{table}- read slabinfo\n    {command}\n\n{nothing}")
        );
        let table = "| cache | slabs |\n|---|---:|\n| dentry | 3 |\n| filp | 12 |\n";
        let markdown = answer().text_of("markdown", false).expect("every answer has it");
        assert_eq!(
            markdown,
            format!(
                "Two caches have 15 slabs.\n\n{lost}\n{table}\n- read slabinfo\n\n```sh\n{command}\n```\n\n{nothing}"
            )
        );
        assert_eq!(answer().text_of("mail", false), None);
        assert_eq!(
            answer().form("mail", String::new()).forms(),
            ["table", "markdown", "json", "csv", "mail"]
        );
        assert_eq!(Answer::new("", "").text_of("json", false), None);
        assert_eq!(answer().form("mail", "Hello".into()).text_of("mail", false).as_deref(), Some("Hello"));
        assert_eq!(answer().csv().as_deref(), Some("cache,slabs\ndentry,3\nfilp,12\n"));
        let page = answer().page("slablab test");
        for part in [
            "Two caches have 15 slabs.",
            "lost 2 events",
            "<h2>Caches</h2>",
            command,
            "<details>",
            nothing.trim(),
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!(
            answer().said().collect::<Vec<_>>(),
            ["the recording lost 2 events", "nothing was assumed"]
        );
        let json = answer().json();
        assert_eq!(json["answer"], "Two caches have 15 slabs.");
        assert_eq!((&json["schema"], &json["slabs"]), (&"slablab.test.1".into(), &15.into()));
        let schema = crate::document::schema_of::<Slabs>();
        assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&json), "{schema:#}");
    }

    #[test]
    fn a_table_without_an_order_leaves_out_no_column() {
        let answer = |heads: [&str; 3]| {
            let mut table = text::Table::new(heads).heads_in_lines();
            table.row(["slabs taken by a cache whose name is long", "12", "1,234"]);
            Answer::new("Slabs", "Two engines take slabs.").table(table, &[])
        };
        let check = |heads: [&str; 3], parts: usize| {
            let text = answer(heads).text(false);
            assert_eq!(text.matches("slabs taken").count(), parts, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains("1,234"), "{text}");
            let all = answer(heads).text(true);
            assert_eq!(all.matches("slabs taken").count(), 1, "{all}");
            let markdown = answer(heads).markdown();
            assert!(markdown.contains(&heads[1].replace('_', "\\_")), "{markdown}");
        };
        check(["", "slub@6.18", "slub@7.1"], 1);
        check(["", "slub@6.18,max_order=0,cpu_partial=0", "slub@7.1,max_order=0,min_partial=0"], 1);
        check(["", "an engine with no knob at all", "an engine with no knob either"], 2);
    }

    #[test]
    fn lines_keep_to_a_width_that_is_given() {
        let text = answer().within(Some(12)).text(false);
        let table = " cache\n dentry\n filp\nNot shown:\n  slabs\n  (--wide).\n";
        assert_eq!(
            text.split_once("\n\n").and_then(|(_, rest)| rest.split_once("- ")).map(|(table, _)| table),
            Some(table)
        );
        assert!(text.starts_with("Two caches\nhave 15\nslabs.\n"), "{text}");
    }

    #[test]
    fn a_document_is_made_when_it_is_asked_for() {
        let made = std::sync::Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let answer = answer().document_of(move || {
            count.fetch_add(1, Relaxed);
            Slabs { slabs: 7 }
        });
        assert_eq!((answer.text(true).is_empty(), made.load(Relaxed)), (false, 0));
        assert_eq!((&answer.json()["slabs"], made.load(Relaxed)), (&7.into(), 1));
    }
}
