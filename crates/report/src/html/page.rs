//! The page: blocks in the order in which they are said.

use super::chart::{Chart, Width};
use super::escape::{escape, json_in_script};
use super::movie::{self, Cast, Movie};
use super::table::{Cell, Table};
use crate::text::counted;
use std::fmt::{Arguments, Write};
use std::path::Path;

/// Rows of a figure's table above which it is folded.
const FOLD_ABOVE: usize = 12;

/// Rows of any table above which it is folded.
const FOLD_TABLE_ABOVE: usize = 60;

const STYLE: &str = include_str!("style.css");
const UPLOT_STYLE: &str = include_str!("uplot/uPlot.min.css");
const UPLOT: &str = include_str!("uplot/uPlot.iife.min.js");
const UPLOT_LICENCE: &str = include_str!("uplot/LICENSE");
const LIVE: &str = include_str!("live.js");
const FLAME: &str = include_str!("flame.js");

/// A self-contained page.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
    figures: usize,
    /// Some figure can be zoomed: the page carries the script.
    live: bool,
    /// The page plays movies.
    plays: bool,
    /// Some figure is a flame graph: the page carries the script that zooms those.
    flames: bool,
}

impl Page {
    /// A page with its title and the command that made it.
    pub fn new(title: &str, command: &str) -> Page {
        let body = format!(
            "<header>\n<h1>{}</h1>\n<pre class=\"command\">{}</pre>\n</header>\n",
            escape(title),
            escape(command)
        );
        Page { title: title.into(), body, figures: 0, live: false, plays: false, flames: false }
    }

    fn add(&mut self, markup: Arguments<'_>) -> &mut Page {
        self.body.write_fmt(markup).expect("a string");
        self
    }

    /// The answer in a sentence or two.
    pub fn lede(&mut self, text: &str) -> &mut Page {
        self.add(format_args!("<p class=\"lede\">{}</p>\n", escape(text)))
    }

    /// A sentence that a reader must not miss: what the answer lacks.
    pub fn warning(&mut self, text: &str) -> &mut Page {
        self.add(format_args!("<p class=\"warning\" role=\"note\">{}</p>\n", escape(text)))
    }

    /// The numbers that one looks for first: name and value.
    pub fn facts<'a>(&mut self, facts: impl IntoIterator<Item = (&'a str, Cell)>) -> &mut Page {
        self.add(format_args!("<dl class=\"facts\">\n"));
        for (name, value) in facts {
            self.add(format_args!(
                "<div><dt>{}</dt><dd>{}</dd></div>\n",
                escape(name),
                escape(&value.plain())
            ));
        }
        self.add(format_args!("</dl>\n"))
    }

    /// Begins a section.
    pub fn section(&mut self, title: &str) -> &mut Page {
        self.add(format_args!("<h2>{}</h2>\n", escape(title)))
    }

    /// Begins an entry inside a section: a finding, an action.
    pub fn entry(&mut self, title: &str) -> &mut Page {
        self.add(format_args!("<h3>{}</h3>\n", escape(title)))
    }

    /// A paragraph.
    pub fn text(&mut self, text: &str) -> &mut Page {
        self.add(format_args!("<p>{}</p>\n", escape(text)))
    }

    /// A remark in small print.
    pub fn note(&mut self, text: &str) -> &mut Page {
        self.add(format_args!("<p class=\"note\">{}</p>\n", escape(text)))
    }

    /// Lines to type.
    pub fn command(&mut self, lines: &str) -> &mut Page {
        self.add(format_args!("<pre class=\"command\">{}</pre>\n", escape(lines)))
    }

    /// A table. A very long one is folded.
    pub fn table(&mut self, caption: &str, table: &Table) -> &mut Page {
        if table.rows.len() > FOLD_TABLE_ABOVE {
            return self.folded(caption, table);
        }
        let html = table.html(Some(caption));
        self.add(format_args!("{html}"))
    }

    /// A table that most readers do not need.
    pub fn folded(&mut self, caption: &str, table: &Table) -> &mut Page {
        let (caption, html) = (escape(caption), table.html(None));
        let rows = counted(table.rows.len() as u64, "row");
        self.add(format_args!("<details><summary>{caption} {rows}.</summary>\n{html}</details>\n"))
    }

    /// A chart, and the table of its numbers. A long table is folded.
    pub fn figure(&mut self, caption: &str, chart: &dyn Chart, table: &Table) -> &mut Page {
        self.figures += 1;
        let number = self.figures;
        self.add(format_args!(
            "<figure id=\"figure-{number}\">\n<figcaption><b>Figure {number}.</b> {}</figcaption>\n",
            escape(caption)
        ));
        let keys = chart.keys();
        if !keys.is_empty() {
            self.add(format_args!("<ul class=\"keys\">"));
            for (sign, name) in &keys {
                self.add(format_args!("<li>{}{}</li>", sign.sign(), escape(name)));
            }
            self.add(format_args!("</ul>\n"));
        }
        let description = chart.describe();
        for (width, class) in [(Width::Wide, "wide"), (Width::Narrow, "narrow")] {
            let picture =
                chart.draw(width).picture(&format!("figure-{number}-{class}"), caption, &description);
            self.add(format_args!("<div class=\"drawn {class}\">{picture}</div>\n"));
        }
        if let Some(live) = chart.live() {
            self.live = true;
            let json = json_in_script(&live);
            self.add(format_args!("<script type=\"application/json\" class=\"live\">{json}</script>\n"));
        }
        self.flames |= chart.is_flame();
        let rows = table.rows.len();
        let html = table.html(None);
        if rows > FOLD_ABOVE {
            self.add(format_args!(
                "<details><summary>The numbers: {}</summary>\n{html}</details>\n",
                counted(rows as u64, "row")
            ));
        } else {
            self.add(format_args!("{html}"));
        }
        self.add(format_args!("</figure>\n"))
    }

    /// Movies, played together on one time line that begins at `zero_ns`. `at_ns` is shown first, or the end.
    /// A page has this once.
    pub fn movies(&mut self, movies: &[Movie], cast: &Cast, zero_ns: u64, at_ns: Option<u64>) -> &mut Page {
        self.plays = true;
        let markup = movie::markup(movies, cast, (zero_ns, at_ns));
        self.add(format_args!("{markup}"))
    }

    /// The basis of the answer: lost events, assumptions, and the error of the model.
    pub fn evidence(&mut self, sentences: &[String]) -> &mut Page {
        self.add(format_args!("<section class=\"evidence\">\n<h2>Evidence</h2>\n"));
        if sentences.is_empty() {
            self.add(format_args!("<p>Nothing was lost and nothing was assumed.</p>\n"));
        } else {
            self.add(format_args!("<ul>\n"));
            for sentence in sentences {
                self.add(format_args!("<li>{}</li>\n", escape(sentence)));
            }
            self.add(format_args!("</ul>\n"));
        }
        self.add(format_args!("</section>\n"))
    }

    /// The page as one file.
    pub fn finish(&self) -> String {
        let has_script = self.live || self.plays || self.flames;
        let scripts = if has_script { " script-src 'unsafe-inline';" } else { "" };
        let mut out = format!(
            r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<meta name="generator" content="slablab {}"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline';{scripts}"/>
<title>{}</title>
<style>
{STYLE}</style>
"#,
            env!("CARGO_PKG_VERSION"),
            escape(&self.title)
        );
        if self.live {
            writeln!(out, "<style>{UPLOT_STYLE}</style>").expect("a string");
        }
        if self.plays {
            writeln!(out, "<style>{}</style>", movie::STYLE).expect("a string");
        }
        write!(out, "</head>\n<body>\n<main>\n{}", self.body).expect("a string");
        let zoom = if self.live {
            " Charts that can be zoomed are drawn by uPlot 1.6.32 (MIT licence)."
        } else {
            ""
        };
        write!(out, "</main>\n<footer>slablab {}.{zoom}</footer>\n", env!("CARGO_PKG_VERSION"))
            .expect("a string");
        if self.live {
            write!(out, "<script>/*\n{UPLOT_LICENCE}*/\n{UPLOT}\n{LIVE}</script>\n").expect("a string");
        }
        if self.plays {
            write!(out, "<script>\n{}</script>\n", movie::SCRIPT).expect("a string");
        }
        if self.flames {
            writeln!(out, "<script>{FLAME}</script>").expect("a string");
        }
        out.push_str("</body>\n</html>\n");
        out
    }
}

/// A file's name without its folders, for titles.
pub fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
