//! Files of `slablab record`: a recording with the states around it.

use slablab_readers::recording::{ABOUT, BEFORE, Members};
use slablab_readers::slabinfo::Slabinfo;
use slablab_report::error::{At, Result};
use slablab_report::files;
use std::path::Path;

/// Whether the file at `path` is a recording that has the state before it.
///
/// # Errors
/// A file that cannot be read.
pub fn has_start(path: &Path) -> Result<bool> {
    Ok(members(path)?.is_some_and(|members| members.get(BEFORE).is_some()))
}

/// The members of the file at `path`; `None` if it is no recording with states.
pub(crate) fn members(path: &Path) -> Result<Option<Members>> {
    // A pipe's bytes would be gone.
    if !files::is_file(path) {
        return Ok(None);
    }
    Members::of(files::open(path).at(path)?).at(path)
}

/// Bytes of a recording's events, and why the recorder ended before its command or time did; `None` if it did
/// not.
pub(crate) fn ended_early(path: &Path) -> Result<Option<(u64, String)>> {
    let Some(members) = members(path)? else { return Ok(None) };
    let Some((about, events)) = members.get(ABOUT).zip(members.events()) else { return Ok(None) };
    let text = about.read(files::open(path).at(path)?).at(path)?;
    let about: serde_json::Value = serde_json::from_slice(&text).at(path)?;
    Ok(about["cut_off"].as_str().map(|why| (events.size, why.to_string())))
}

/// The /proc/slabinfo that a recording has in its member `name`.
pub(crate) fn slabinfo(path: &Path, name: &str) -> Result<Option<Slabinfo>> {
    let Some(members) = members(path)? else { return Ok(None) };
    let Some(member) = members.get(name) else { return Ok(None) };
    let text = member.read(files::open(path).at(path)?).at(path)?;
    Ok(Some(Slabinfo::parse(&text).at(path)?))
}
