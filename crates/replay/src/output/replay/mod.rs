//! A replay as text, JSON, CSV and a page.

mod columns;
mod csv;
mod figures;
mod json;
mod page;
mod table;
mod violations;

pub use csv::{cache_csv, caches_csv, caches_frame, engines_frame, timeline_frame};
pub use json::{cache_json, replay_json};
pub use page::replay_page;
pub(in crate::output) use page::{facts, recorded};
pub(crate) use table::busiest;
pub(in crate::output) use table::warn;
pub use table::{cache_table, caches_table, engines_table, remarks};

/// Percent of a cache's events that must rest on assumptions before it is marked.
pub const MARK_ABOVE_PERCENT: f64 = 1.0;
