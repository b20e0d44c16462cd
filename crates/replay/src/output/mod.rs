//! The answers as text tables, pages, JSON, CSV. A fact has one name in all of them.

mod explain;
mod import;
mod leak;
mod map;
mod recording;
mod replay;
mod sites;
mod verify;

pub use explain::{explain_answer, explain_frame, explain_pairs_frame};
pub use import::import_answer;
pub use leak::leak_answer;
pub use map::map_page;
pub use replay::{
    cache_answer, caches_frame, engines_frame, patch_answer, remarks, replay_answer, timeline_frame,
};
pub use sites::{Weight, sites_answer, sites_profile};
pub use verify::verify_answer;

use slablab_report::document::Named;

/// The schemas of these answers.
pub fn schemas() -> Vec<Named> {
    let own = [explain::schema(), import::schema(), leak::schema(), replay::schema(), sites::schema()];
    [&own[..], &verify::schemas()].concat()
}
