//! Scripts from files.

use slablab_report::Error;
use slablab_workloads::script::Script;
use std::path::Path;

/// Reads a script, and those that it spawns from the same folder.
///
/// # Errors
/// A file that cannot be read; the first line that is not in the language, with its file.
pub fn load(path: &Path) -> Result<Script, Error> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let name = path.to_str().ok_or_else(|| Error::new(path, "expected a path in UTF-8"))?;
    let text = read(name).map_err(|why| Error::new(path, why))?;
    Script::parse(name, &text, &mut |path| read(path)).map_err(|error| Error::new(&error.file, error.what()))
}
