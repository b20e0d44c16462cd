//! What killed recorders left behind.

use crate::outcome::tell;
use slablab_recorder::Left;
use std::path::Path;

/// Names what recorders left in `folders`. Removes it, if it has no calls.
pub(super) fn clear(folders: &[&Path]) {
    for left in Left::find(folders) {
        let path = left.path.display();
        if left.bytes > 0 {
            tell(format_args!(
                "{path}: a recording of {:.1} MB, whose slablab ended before it made the trace",
                left.bytes as f64 / 1e6
            ));
            tell_kept(&left.path);
            continue;
        }
        match left.remove() {
            Ok(()) => tell(format_args!("{path}: removed; a slablab that has ended had left it")),
            Err(error) => tell(format_args!("{path}: a slablab that has ended left it: {error}")),
        }
    }
}

/// Says how to make the trace of a recording that is still there, and how to remove it.
pub(super) fn tell_kept(folder: &Path) {
    let path = folder.display();
    tell(format_args!(
        "`slablab record --malloc --recover {path} -o FILE` makes the trace, `rm -r {path}` removes the recording"
    ));
}
