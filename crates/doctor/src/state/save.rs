//! The running machine's files as a tar: to examine later, on another machine, or by another person.
//!
//! The archive has the bytes that were read under the same paths, and links as links. It contains only files
//! that this program reads.

use super::archive::{self, Content, member};
use super::folder::Folder;
use super::input::Input;
use super::machine::State;
use super::read::{live_from, state};
use slablab_report::AtomicFile;
use slablab_report::error::{At, Error, Result};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Reads the running machine, writes the files that it read to `path`, and returns the state. The ending of
/// `path` selects the format: `.tar`, `.tar.gz` or `.tgz`, `.tar.zst`, `.tar.xz`.
///
/// # Errors
/// Another name, a machine that cannot be read, a file that cannot be written.
pub fn save(path: &Path) -> Result<State> {
    let packing = Packing::of(path)?;
    let (state, folder) = gathered()?;
    let file = AtomicFile::create(path)?;
    let file = packing.write(file, |tar| write(tar, &folder, &state)).at(path)?;
    file.commit()?;
    Ok(state)
}

/// Reads the running machine. Returns the files that it read as the bytes of a tar.zst, and the state.
///
/// # Errors
/// A machine that cannot be read.
pub fn dump() -> Result<(Vec<u8>, State)> {
    let (state, folder) = gathered()?;
    let bytes = Packing::Zstd.write(Vec::new(), |tar| write(tar, &folder, &state)).at(&state.path)?;
    Ok((bytes, state))
}

fn gathered() -> Result<(State, Folder)> {
    let root = Path::new("/");
    // Unlike a state alone, it has what costs the kernel a little: it is read once.
    let mut folder = Folder::list(root, &["proc/pagetypeinfo"]);
    folder.kept = Some(Vec::new());
    let state = state(&Input::default(), root.to_path_buf(), live_from(&mut folder)?)?;
    Ok((state, folder))
}

fn write(tar: &mut dyn Write, folder: &Folder, state: &State) -> io::Result<()> {
    let seconds = state.taken_s.unwrap_or(0);
    for (name, content) in folder.kept.iter().flatten() {
        member(tar, name, Content::File(content), seconds)?;
    }
    for (name, target) in &folder.links {
        member(tar, name, Content::Link(target), seconds)?;
    }
    archive::end(tar)
}

/// How a tar is compressed.
#[derive(Clone, Copy)]
enum Packing {
    None,
    Gzip,
    Zstd,
    Xz,
}

impl Packing {
    fn of(path: &Path) -> Result<Packing> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let known = [
            (".tar", Packing::None),
            (".tar.gz", Packing::Gzip),
            (".tgz", Packing::Gzip),
            (".tar.zst", Packing::Zstd),
            (".tar.xz", Packing::Xz),
        ];
        let found = known.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, packing)| packing);
        found.ok_or_else(|| {
            Error::new(path, "expected a name that ends in .tar, .tar.gz, .tgz, .tar.zst or .tar.xz")
        })
    }

    fn write<W: Write>(self, file: W, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<W> {
        let mut file = BufWriter::new(file);
        match self {
            Packing::None => fill(&mut file)?,
            Packing::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(&mut file, flate2::Compression::default());
                fill(&mut encoder)?;
                encoder.finish()?;
            }
            Packing::Zstd => {
                let mut encoder = zstd::Encoder::new(&mut file, 3)?;
                fill(&mut encoder)?;
                encoder.finish()?;
            }
            // The smallest dictionary: a machine whose slabs are examined is often short of memory.
            Packing::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(&mut file, 0);
                fill(&mut encoder)?;
                encoder.finish()?;
            }
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_file_once() {
        let path = Path::new("/no-such-folder/state.tar");
        let error = AtomicFile::create(path).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "/no-such-folder/state.tar: No such file or directory (os error 2)");
    }
}
