//! The answer of a verb: one value from which every form comes.
//!
//! ```text
//! Answer ─┬─ text      the sentence, warnings, tables within the terminal's width, remarks
//!         ├─ csv       the rows of its first table for programs
//!         ├─ json      its document, whose JSON Schema comes from the same type
//!         └─ page      the sentence, facts, sections with tables and charts, evidence
//! ```
//!
//! A verb makes one `Answer`; `cli` and `python` ask it for a form and add nothing.

use crate::document::Document;
use crate::frame::Frame;
use crate::html::chart::Chart;
use crate::html::{self, Cell, Page};
use crate::{json, text};
use serde_json::Value;

/// An answer.
pub struct Answer {
    title: String,
    sentence: String,
    warnings: Vec<String>,
    blocks: Vec<Block>,
    remarks: Vec<String>,
    frame: Option<Frame>,
    document: Value,
}

/// What follows the sentence, in the order in which it is read.
enum Block {
    /// A heading of the page.
    Section(String),
    /// Numbers of the page.
    Facts(Vec<(&'static str, Cell)>),
    /// A paragraph of the page.
    Text(String),
    /// A table of the text.
    TextTable(text::Table, Vec<&'static str>),
    /// A line of the text.
    Line(String),
    /// A table of the page.
    Table(String, html::Table),
    /// A chart of the page and its numbers.
    Figure(String, Box<dyn Chart>, html::Table),
}

impl Answer {
    /// An answer of `sentence`, which says what was asked for; `title` is a page's.
    pub fn new(title: impl Into<String>, sentence: impl Into<String>) -> Answer {
        Answer {
            title: title.into(),
            sentence: sentence.into(),
            warnings: Vec::new(),
            blocks: Vec::new(),
            remarks: Vec::new(),
            frame: None,
            document: Value::Null,
        }
    }

    /// What the answer lacks, which a reader must not miss.
    #[must_use]
    pub fn warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Answer {
        self.warnings.extend(warnings);
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
    /// first of them first, until it fits; a line names them.
    #[must_use]
    pub fn table(self, table: text::Table, leave_out: &[&'static str]) -> Answer {
        self.add(Block::TextTable(table, leave_out.to_vec()))
    }

    /// A line of the text.
    #[must_use]
    pub fn line(self, line: impl Into<String>) -> Answer {
        self.add(Block::Line(line.into()))
    }

    /// A table of the page.
    #[must_use]
    pub fn page_table(self, caption: &str, table: html::Table) -> Answer {
        self.add(Block::Table(caption.into(), table))
    }

    /// A chart of the page with its numbers.
    #[must_use]
    pub fn figure(self, caption: &str, chart: impl Chart + 'static, table: html::Table) -> Answer {
        self.add(Block::Figure(caption.into(), Box::new(chart), table))
    }

    /// Sentences with the basis of the answer: what was assumed, and the error.
    #[must_use]
    pub fn remarks(mut self, remarks: impl IntoIterator<Item = String>) -> Answer {
        self.remarks.extend(remarks);
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
        self.document = document.value();
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

    /// The answer for a terminal of [`text::width`] columns. With `wide` no column is left out.
    pub fn text(&self, wide: bool) -> String {
        let mut out: String = self.warnings.iter().map(|line| text::wrapped(line, "", "  ")).collect();
        out += &text::wrapped(&self.sentence, "", "");
        for block in &self.blocks {
            match block {
                Block::TextTable(table, _) if wide => out = out + "\n" + &table.to_text(),
                Block::TextTable(table, order) => out = out + "\n" + &table.fitted(text::width(), order),
                Block::Line(line) => out += &text::wrapped(line, "", "  "),
                Block::Section(_)
                | Block::Facts(_)
                | Block::Text(_)
                | Block::Table(..)
                | Block::Figure(..) => {}
            }
        }
        if !self.remarks.is_empty() {
            out.push('\n');
            self.remarks.iter().for_each(|line| out += &text::wrapped(line, "", "  "));
        }
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
        let mut document = json::with_program(self.document.clone());
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
                Block::Table(caption, table) => {
                    page.table(caption, table);
                }
                Block::Figure(caption, chart, table) => {
                    page.figure(caption, chart.as_ref(), table);
                }
                Block::TextTable(..) | Block::Line(_) => {}
            }
        }
        page.evidence(&self.remarks);
        page.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{Columns, Style};
    use schemars::JsonSchema;
    use serde::Serialize;

    #[derive(Serialize, JsonSchema)]
    struct Slabs {
        /// How many.
        slabs: u64,
    }

    impl Document for Slabs {
        const NAME: &str = "slablab.test.1";
        const TITLE: &str = "a test";
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
            .page_table("All.", columns.html(("cache", &label), &["slabs"], &rows))
            .remarks(["nothing was assumed".into()])
            .rows(columns.frame(rows))
            .document(&Slabs { slabs: 15 })
    }

    #[test]
    fn every_form_comes_from_one_answer() {
        let text = answer().text(false);
        let table = " cache   slabs\n dentry      3\n filp       12\n";
        let lost = "the recording lost 2 events\n";
        assert_eq!(text, format!("{lost}Two caches have 15 slabs.\n\n{table}\nnothing was assumed\n"));
        assert_eq!(answer().csv().as_deref(), Some("cache,slabs\ndentry,3\nfilp,12\n"));
        let page = answer().page("slablab test");
        for part in ["Two caches have 15 slabs.", "lost 2 events", "<h2>Caches</h2>", "nothing was assumed"] {
            assert!(page.contains(part), "{part}");
        }
        let json = answer().json();
        assert_eq!(json["answer"], "Two caches have 15 slabs.");
        assert_eq!((&json["schema"], &json["slabs"]), (&"slablab.test.1".into(), &15.into()));
        let schema = crate::document::schema_of::<Slabs>();
        assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&json), "{schema:#}");
    }
}
