//! What answers are shown with. This crate knows tables, pages and charts, and no answer.
//!
//! | module | what |
//! |---|---|
//! | [`text`] | tables and paragraphs for a terminal |
//! | [`html`] | self-contained pages with charts |
//! | [`error`] | the error every room reports: the file, and what is wrong with it |

pub mod error;
pub mod html;
pub mod text;

pub use error::{Error, Result};
