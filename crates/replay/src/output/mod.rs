//! The answers as text tables, pages, JSON, CSV. A fact has one name in all of them.

mod explain;
mod map;
mod replay;
mod sites;
mod verify;

pub use explain::{explain_frame, explain_json, explain_page, explain_pairs_frame, explain_table};
pub use map::map_page;
pub use replay::{
    MARK_ABOVE_PERCENT, cache_csv, cache_json, cache_table, caches_csv, caches_frame, caches_table,
    engines_frame, engines_table, remarks, replay_json, replay_page, timeline_frame,
};
pub use sites::{Weight, sites_csv, sites_folded, sites_json, sites_page, sites_remarks, sites_table};
pub use verify::{verify_answer, verify_schemas};
