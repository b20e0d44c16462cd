//! A replay: every engine beside the others, and one cache of all of them.

mod basis;
mod columns;
mod document;
mod figures;
mod frames;
mod page;
mod sentence;
mod table;
mod violations;

use crate::replay::Replay;
pub use basis::remarks;
pub(in crate::output) use basis::{leading, recorded, recording_line, rests_on};
use document::ReplayDocument;
pub use frames::{caches_frame, engines_frame, timeline_frame};
use slablab_report::Answer;
use slablab_report::document::{Named, named};
use slablab_report::html::name_of;

/// The answer of `replay`: text and page list `top` caches for each engine.
pub fn replay_answer(replay: &Replay, top: usize) -> Answer {
    let answer = whole(replay, sentence::of_all(replay));
    page::blocks(table::engines(answer, replay, top), replay, top)
}

/// The answer of `linux patch --replay`: what differs between two engines, with the change, and `top` of the
/// caches that differ.
pub fn patch_answer(replay: &Replay, top: usize) -> Answer {
    let answer = whole(replay, sentence::of_patch(&table::differences(replay)));
    page::blocks(table::patched(answer, replay, top), replay, top)
}

fn whole(replay: &Replay, sentence: String) -> Answer {
    begun(replay, sentence).document(&ReplayDocument::new(replay, &|_| true)).rows(caches_frame(replay))
}

/// The answer of `replay --cache`: every counter of one cache, by directory or alias. `None` if no engine has
/// it. Totals in the document and the page are of all caches; the page lists `top` for each engine.
pub fn cache_answer(replay: &Replay, name: &str, top: usize) -> Option<Answer> {
    let rows = table::of_cache(replay, name);
    let found = rows.iter().flatten().next()?.cache.index;
    let answer = begun(replay, sentence::of_cache(&rows))
        .document(&ReplayDocument::new(replay, &|cache| cache.index == found))
        .rows(columns::caches().frame(rows.iter().flatten()));
    let answer = page::cache_block(table::cache(answer, replay, &rows), replay, &rows);
    Some(page::blocks(answer, replay, top))
}

fn begun(replay: &Replay, sentence: String) -> Answer {
    Answer::new(format!("Replay of {}", name_of(&replay.path)), sentence)
        .warnings(leading(replay))
        .remarks(rests_on(replay))
        .line(recording_line(replay))
}

/// The schema of a replay.
pub(in crate::output) fn schema() -> Named {
    named::<ReplayDocument>()
}
