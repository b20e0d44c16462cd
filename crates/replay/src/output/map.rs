//! The page of a slab map, and one moment of it as a drawing.

use super::remarks;
use crate::map::{CAST, SlabMap};
use crate::replay::Replay;
use slablab_report::html::movie::{Movie, frames};
use slablab_report::html::{Page, name_of};

/// The page that plays a slab map. `at_ns`: what it shows at first, or the end.
pub fn map_page(map: &SlabMap, replay: &Replay, command: &str, at_ns: Option<u64>) -> String {
    let mut page = Page::new(&format!("Slab map of {} in {}", map.cache, name_of(&replay.path)), command);
    page.lede(&lede(map));
    page.movies(&map.movies, &CAST, map.start_ns, at_ns);
    page.note(
        "A row is a slab, a square one of its objects. A slab that is returned leaves its row to the next one \
         that is taken. Squares show states when they are large enough: a bar from top to bottom is on a CPU's \
         list, one from left to right in its sheaf or array, a corner in another sheaf or array, a dot free in \
         its slab.",
    );
    let evidence: Vec<String> = map.remarks.iter().cloned().chain(remarks(replay)).collect();
    page.evidence(&evidence);
    page.finish()
}

fn lede(map: &SlabMap) -> String {
    let of = |movie: &Movie| {
        format!("{}: {} events, at most {} slabs at once", movie.name, movie.events.len(), movie.rows)
    };
    format!("{}.", map.movies.iter().map(of).collect::<Vec<_>>().join("; "))
}

impl SlabMap {
    /// One moment, or the end, as SVG: the engines below each other.
    pub fn drawing(&self, at_ns: Option<u64>) -> String {
        frames(&self.movies, &CAST, at_ns.unwrap_or(u64::MAX))
    }
}
