//! Scripts from files, and how long they are.

use slablab_report::text::grouped;
use slablab_report::{Error, Limit, read_at_most};
use slablab_trace::script::Script;
use std::path::Path;

/// A script: a million lines.
const SCRIPT: Limit = Limit::mib("a script", 64);

/// Steps of the longest script that runs without `--force`: some minutes of the host.
pub const STEPS_MOST: u64 = 1_000_000_000;

/// Refuses a script that takes very long.
///
/// # Errors
/// Its steps, and what to do.
pub fn affordable(script: &Script) -> Result<(), Error> {
    let steps = script.steps();
    if steps <= STEPS_MOST {
        return Ok(());
    }
    let estimate = match steps {
        u64::MAX => "more than 18,000,000,000,000,000,000".into(),
        steps => format!("about {}", grouped(steps)),
    };
    let what = format!(
        "{estimate} accesses of pages, lookups and messages: expected at most {}; --force runs it",
        grouped(STEPS_MOST)
    );
    Err(Error::new(&script.file, what))
}

/// Reads a script, and those that it spawns from the same folder.
///
/// # Errors
/// A file that cannot be read, is no text or has no command; the first line that is not in the language, with
/// its file.
pub fn load(path: &Path) -> Result<Script, Error> {
    let read = |path: &str| {
        let bytes = read_at_most(Path::new(path), SCRIPT).map_err(|error| error.what)?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!("expected a script in UTF-8, found the byte {:#04x} at {at}", error.as_bytes()[at])
        })
    };
    let name = path.to_str().ok_or_else(|| Error::new(path, "expected a path in UTF-8"))?;
    let text = read(name).map_err(|why| Error::new(path, why))?;
    if text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#')) {
        return Err(Error::new(path, "it has no command: expected one a line, such as `anon NAME MiB`"));
    }
    Script::parse(name, &text, &mut |path| read(path)).map_err(|error| Error::new(&error.file, error.what()))
}
