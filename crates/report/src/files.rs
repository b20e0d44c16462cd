//! Files that are read whole, each up to a stated size. A page in a browser reads those that it was given.

#[cfg(unix)]
mod fifo;
#[cfg(not(unix))]
mod given;

use crate::error::{At, Error, Result};
use crate::text::grouped;
#[cfg(unix)]
use fifo::length;
#[cfg(unix)]
pub use fifo::{is_file, open, size};
#[cfg(not(unix))]
use given::length;
#[cfg(not(unix))]
pub use given::{File, forget, give, is_file, open, size};
use std::io::Read;
use std::path::Path;

/// The largest file of a kind that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The kind, as `a machine file`.
    pub what: &'static str,
    /// Bytes.
    pub bytes: u64,
}

impl Limit {
    /// At most `mib` MiB.
    pub const fn mib(what: &'static str, mib: u64) -> Limit {
        Limit { what, bytes: mib << 20 }
    }

    /// The refusal of a larger file; `found` is its size if it is known.
    fn refused(&self, path: &Path, found: Option<u64>) -> Error {
        let found = found.map_or("more".into(), |bytes| format!("{} bytes", grouped(bytes)));
        Error::new(path, format!("expected {} of at most {} MiB, found {found}", self.what, self.bytes >> 20))
    }

    /// Reads all of `from`, which is at `path`.
    ///
    /// # Errors
    /// What cannot be read, or is larger than the limit.
    pub fn read(&self, from: impl Read, path: &Path) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        from.take(self.bytes + 1).read_to_end(&mut bytes).at(path)?;
        if bytes.len() as u64 > self.bytes {
            return Err(self.refused(path, None));
        }
        Ok(bytes)
    }
}

/// Reads a whole file of at most `limit`. A file that is larger is refused before it is read; a device or a
/// pipe that does not end, once it has given more.
///
/// # Errors
/// What cannot be read, or is larger than the limit; a FIFO without a writer.
pub fn read_at_most(path: &Path, limit: Limit) -> Result<Vec<u8>> {
    let file = open(path).at(path)?;
    let length = length(&file).at(path)?;
    if length.is_some_and(|length| length > limit.bytes) {
        return Err(limit.refused(path, length));
    }
    limit.read(file, path)
}

/// As [`read_at_most`], for text.
///
/// # Errors
/// Those of [`read_at_most`]; bytes that are no UTF-8.
pub fn read_text_at_most(path: &Path, limit: Limit) -> Result<String> {
    String::from_utf8(read_at_most(path, limit)?).map_err(|_| Error::new(path, "expected text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    const SMALL: Limit = Limit { what: "a note", bytes: 1 << 20 };

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let path = std::env::temp_dir().join(format!("slablab-limit-{}", std::process::id()));
        let check = |bytes: u64, expected: Option<&str>| {
            File::create(&path).and_then(|file| file.set_len(bytes)).expect("a sparse file");
            let refused = read_at_most(&path, SMALL).map(|read| assert_eq!(read.len() as u64, bytes));
            let refused = refused.err().map(|error| error.what);
            assert_eq!(refused.as_deref(), expected, "{bytes} bytes");
        };
        check(0, None);
        check(1 << 20, None);
        check((1 << 20) + 1, Some("expected a note of at most 1 MiB, found 1,048,577 bytes"));
        check(10 << 30, Some("expected a note of at most 1 MiB, found 10,737,418,240 bytes"));
        std::fs::remove_file(&path).expect("it is there");
        let refused = read_at_most(Path::new("/dev/zero"), SMALL).expect_err("it does not end");
        assert_eq!(refused.to_string(), "/dev/zero: expected a note of at most 1 MiB, found more");
    }

    #[test]
    fn a_fifo_needs_a_writer() {
        let path = std::env::temp_dir().join(format!("slablab-fifo-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo runs").success());
        let refused = read_at_most(&path, SMALL).expect_err("nobody writes");
        assert_eq!(refused.what, "no program writes to this FIFO: expected a file");
        // A writer that comes later, and one that thinks before it writes.
        for (before_ms, after_ms) in [(300, 0), (0, 300)] {
            let pause = |ms| std::thread::sleep(std::time::Duration::from_millis(ms));
            let to = path.clone();
            let writer = std::thread::spawn(move || {
                pause(before_ms);
                let mut file = File::options().write(true).open(to).expect("a FIFO");
                pause(after_ms);
                file.write_all(b"words").expect("a reader");
            });
            assert_eq!(read_at_most(&path, SMALL).expect("a writer"), b"words");
            writer.join().expect("it wrote");
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}
