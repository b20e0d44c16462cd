//! What answers are shown with. This crate knows tables, pages and charts, and no answer.
//!
//! | module | what |
//! |---|---|
//! | [`answer`](mod@answer) | the answer of a verb, from which every form comes |
//! | [`document`](mod@document) | the documents of JSON, each a type with its JSON Schema |
//! | [`typed_dict`] | the types of Python of a document |
//! | [`column`](mod@column) | the columns of an answer, written once for all four renderers |
//! | [`text`] | tables and paragraphs for a terminal |
//! | [`csv`], [`json`] | files for programs |
//! | [`frame`] | rows for programs: CSV, or typed columns |
//! | [`html`] | self-contained pages with charts |
//! | [`perfetto`] | traces that ui.perfetto.dev opens |
//! | [`pprof`] | profiles that pprof opens |
//! | [`visible`] | names from outside, without characters that steer a terminal |
//! | [`nearest`](mod@nearest) | names that look like a wrong one |
//! | [`error`] | the error every room reports: the file, and what is wrong with it |
//! | [`files`], [`AtomicFile`] | files that are read whole up to a limit; files that appear whole |
//! | [`sink`] | the way of text to a terminal, a pipe, a file: no control character passes |

pub mod answer;
#[cfg(unix)]
mod atomic_file;
pub mod column;
pub mod csv;
pub mod document;
pub mod error;
pub mod files;
pub mod frame;
pub mod html;
pub mod json;
pub mod nearest;
pub mod paint;
pub mod perfetto;
pub mod pprof;
pub mod sink;
mod style;
pub mod text;
pub mod typed_dict;
#[cfg(not(unix))]
mod unwritten;
pub mod visible;

pub use answer::Answer;
#[cfg(unix)]
pub use atomic_file::{AtomicFile, end_of_links};
pub use document::Document;
pub use error::{Error, Result};
pub use files::{Limit, read_at_most, read_text_at_most};
#[cfg(not(unix))]
pub use unwritten::AtomicFile;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
