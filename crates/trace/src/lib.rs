//! What is run: the trace format of slablab, and scripts of page accesses ([`script`]).
//!
//! The trace format: one recording of a kernel's allocations as a Parquet file.
//!
//! A trace is a table of rows in the order in which events took effect. Each row is an event ([`EventKind`]).
//! The file's footer describes the recording ([`Metadata`]). docs/trace-format.md describes the format for
//! use with other programs. `tests/it/document.rs` compares that page with the column table of this crate
//! ([`COLUMNS`]).
//!
//! Written and read in row groups of bounded size ([`Writer`], [`Reader`]), so that a recording larger than
//! memory works. A reader takes only the columns asked for and hands out batches as one vector per column
//! ([`Batch`]), because a replay has 100 ns for an event and decoding is a part of that.
//!
//! ```
//! use slablab_trace::{Batch, Columns, EventKind, Metadata, Reader, Row, Writer};
//!
//! let mut writer = Writer::new(Vec::new())?;
//! let filp = writer.texts().cache.id("filp");
//! let event = EventKind::CacheAlloc as u8;
//! writer.push(&Row { time_ns: 7, event, object: 0, cache: filp, ..Row::default() })?;
//! let (file, _) = writer.finish(Metadata::default())?;
//!
//! let reader = Reader::new(bytes::Bytes::from(file))?;
//! let (mut batches, mut batch) = (reader.batches(Columns::REPLAY), Batch::default());
//! assert!(batches.next(&mut batch)?);
//! assert_eq!(batches.texts().cache.get(batch.cache[0]), Some("filp"));
//! # Ok::<(), slablab_trace::Error>(())
//! ```
//!
//! This crate knows no kernel, no engine and no model: what an event means to them is theirs.

mod batch;
mod error;
mod event;
mod meta;
mod pages;
mod positioned;
mod quiet;
mod reader;
mod rewrite;
mod schema;
mod texts;
mod writer;

pub mod script;

pub use batch::{Batch, COLUMNS, Column, Columns, Form, Row, Values};
pub use error::Error;
pub use event::{ANY_NODE, EventKind, NO_CONTEXT, NONE, flags};
pub use meta::{
    CacheCounts, Counts, CutOff, Import, Loss, Losses, MAJOR, MINOR, Metadata, Node, Repairs, Source,
    Statistics, Symbol, Topology,
};
pub use positioned::Positioned;
pub use reader::{Batches, Reader};
pub use rewrite::rewrite;
pub use texts::{Table, Texts};
pub use writer::Writer;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
