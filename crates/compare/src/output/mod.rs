//! A comparison as text for a mail, as JSON, CSV and a page.

mod columns;
mod page;
mod text;

pub use columns::{csv, json};
pub use page::page;
pub use text::text;
