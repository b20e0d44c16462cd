//! What an answer about a leak is made from.

use crate::recorded;
use crate::sites::{self, Options, Recorded, Sites};
use slablab_doctor::state::{Input, Moment, State, read, read_at};
use slablab_readers::recording::BEFORE;
use slablab_report::error::Result;
use std::path::{Path, PathBuf};

/// States of a machine, and a recording of the time between them.
pub struct Evidence {
    /// The newest state.
    pub after: State,
    /// Earlier states, in any order.
    pub earlier: Vec<State>,
    /// Call sites of the time between them; `None` without a recording.
    pub sites: Option<Recorded>,
    /// What is not there, and why: sentences.
    pub lacks: Vec<String>,
}

/// Functions that hear how far the reading of a recording is: events that were imported, rows of all rows.
pub type Progress<'a> = (&'a mut dyn FnMut(u64), &'a dyn Fn(u64, u64));

impl Evidence {
    /// Reads a file of `slablab record` or `slablab leak --save`, a dump or a text, and earlier snapshots.
    ///
    /// # Errors
    /// What is no state of a machine, or is damaged.
    pub fn read(input: &Input, since: &[PathBuf], progress: Progress) -> Result<Evidence> {
        let after = read(input)?;
        let before = |path: &PathBuf| {
            let input = Input { path: Some(path.clone()), ..input.clone() };
            read_at(&input, Moment::Before)
        };
        let mut earlier = since.iter().map(before).collect::<Result<Vec<State>>>()?;
        let members = input.path.as_deref().map(recorded::members).transpose()?.flatten();
        let Some((members, path)) = members.zip(input.path.as_deref()) else {
            earlier.extend(after.earlier());
            let lacks = vec![NO_RECORDING.to_string()];
            return Ok(Evidence { after, earlier, sites: None, lacks });
        };
        if members.get(BEFORE).is_some() {
            earlier.push(read_at(input, Moment::Before)?);
        }
        let (sites, lacks) = match members.events() {
            Some(_) => called(path, progress),
            None => (None, vec![NO_RECORDING.to_string()]),
        };
        Ok(Evidence { after, earlier, sites, lacks })
    }
}

const NO_RECORDING: &str = "there is no recording, so the code that allocates is not known";

/// The call sites of a recording. The states tell much without them, so that an error is no end.
fn called(path: &Path, (tick, at): Progress) -> (Option<Recorded>, Vec<String>) {
    match sites::read(Some(path), &Options::default(), tick, at) {
        Ok(Sites::Recorded(recorded)) => (Some(*recorded), Vec::new()),
        Ok(Sites::Counted(_) | Sites::Tracked(_) | Sites::Program(_)) => {
            (None, vec![NO_RECORDING.to_string()])
        }
        Err(error) => (None, vec![format!("the call sites are not known: {error}")]),
    }
}
