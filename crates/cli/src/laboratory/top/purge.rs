//! A purge that another process does: one word asks for it, three answer.

use super::directory::{Bad, Directory};
use super::process::{Memory, Process};
use slablab_malloc::shared::note::{PURGE_ANSWERED, PURGE_ASKED, PURGE_BYTES, PURGE_THREADS, PURGES_AT};
use std::time::{Duration, Instant};

/// How long the process may take until one of its threads comes to a slow path.
const WAIT: Duration = Duration::from_secs(2);
/// Between two looks at the answer.
const LOOK: Duration = Duration::from_millis(5);

/// What the process said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Purged {
    pub(super) given_back_bytes: u64,
    /// Its threads whose slots still hold objects, as far as they did before.
    pub(super) threads: u64,
}

/// Has the process purge. `None`: no thread of it came to a slow path in time; the next one that does will.
pub(super) fn ask(process: &Process, directory: &Directory) -> Result<Option<Purged>, Bad> {
    let word = |index: usize| directory.get(PURGES_AT) + index as u64 * 8;
    let asked = process.word(word(PURGE_ASKED))?.wrapping_add(1);
    process.write_word(word(PURGE_ASKED), asked)?;
    let begun = Instant::now();
    while begun.elapsed() < WAIT {
        if process.word(word(PURGE_ANSWERED))? == asked {
            let given_back_bytes = process.word(word(PURGE_BYTES))?;
            return Ok(Some(Purged { given_back_bytes, threads: process.word(word(PURGE_THREADS))? }));
        }
        std::thread::sleep(LOOK);
    }
    Ok(None)
}
