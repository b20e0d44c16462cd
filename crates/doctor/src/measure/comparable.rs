//! Whether two states belong together: one machine, one kernel, one boot.

use crate::state::State;
use slablab_report::error::{Error, Result};

/// Seconds by which the boot time of one boot differs, as two snapshots tell it: clocks are set, and a dump's
/// files are written for some time.
const BOOT_WITHIN_S: f64 = 120.0;

/// Refuses `other` if it is not of the machine, the kernel and the boot of `now`. With `force`, only another
/// page size is refused, since bytes of slabs cannot be compared then.
///
/// # Errors
/// The first thing that differs, with what both have.
pub(crate) fn check(other: &State, now: &State, force: bool) -> Result<()> {
    if other.page_size != now.page_size {
        let (theirs, ours) = (other.page_size, now.page_size);
        let what =
            format!("has pages of {theirs} bytes; expected {ours}, as on the machine that is examined");
        return Err(Error::new(&other.path, what));
    }
    let Some((what, theirs, ours)) = difference(other, now).filter(|_| !force) else { return Ok(()) };
    let text = format!(
        "another {what}, {theirs}; expected {ours}, as in {}: growth between them is none of one machine; \
         --force compares them all the same",
        if now.path == std::path::Path::new("/") {
            "this machine".into()
        } else {
            now.path.display().to_string()
        }
    );
    Err(Error::new(&other.path, text))
}

/// Whether nothing says that two states are of different boots.
pub(crate) fn one_boot(other: &State, now: &State) -> bool {
    difference(other, now).is_none()
}

/// What differs, as both have it. What one of the two does not tell is taken to be equal.
fn difference(other: &State, now: &State) -> Option<(&'static str, String, String)> {
    let (a, b) = (&other.dump, &now.dump);
    let texts = [
        ("machine", &a.host, &b.host),
        ("architecture", &a.arch, &b.arch),
        ("kernel", &a.release, &b.release),
        ("boot", &a.boot_id, &b.boot_id),
    ];
    let known = texts.into_iter().filter_map(|(what, a, b)| Some((what, a.as_ref()?, b.as_ref()?)));
    let mut differ = known.filter(|(_, a, b)| a != b);
    if let Some((what, theirs, ours)) = differ.next() {
        return Some((what, theirs.clone(), ours.clone()));
    }
    let present = |state: &State| state.cpus.map(|cpus| cpus.present);
    if let (Some(theirs), Some(ours)) = (present(other), present(now))
        && theirs != ours
    {
        return Some(("number of CPUs", theirs.to_string(), ours.to_string()));
    }
    // An id of the boot is better than clocks.
    if a.boot_id.is_some() && b.boot_id.is_some() {
        return None;
    }
    // The time of archived files is not that of the dump if both have the same: they were packed anew.
    let booted = |state: &State| Some(state.taken_s? as f64 - state.up_s?);
    let (theirs, ours) = (booted(other)?, booted(now)?);
    let packed = other.taken_s == now.taken_s;
    let differs = !packed && (theirs - ours).abs() > BOOT_WITHIN_S;
    let said = |seconds: f64| format!("booted {:.0} s after 1970", seconds);
    differs.then(|| ("boot", said(theirs), said(ours)))
}
