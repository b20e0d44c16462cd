//! The running machine's files as a tar: to examine later, on another machine, or by another person.
//!
//! The archive has the bytes that were read under the same paths, and links as links. It contains only files
//! that this program reads.

use super::{Input, State, folder::Folder, live_from, state};
use slablab_report::error::{At, Error, Result};
use slablab_workloads::AtomicFile;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Reads the running machine, writes the files that it read to `path`, and returns the state. The ending of
/// `path` selects the format: `.tar`, `.tar.gz` or `.tgz`, `.tar.zst`, `.tar.xz`.
///
/// # Errors
/// Another name, a machine that cannot be read, a file that cannot be written.
pub fn save(path: &Path) -> Result<State> {
    let packing = Packing::of(path)?;
    let root = Path::new("/");
    // Unlike a state alone, it has what costs the kernel a little: it is read once.
    let mut folder = Folder::list(root, &["proc/pagetypeinfo"]);
    folder.kept = Some(Vec::new());
    let state = state(&Input::default(), root.to_path_buf(), live_from(&mut folder)?)?;
    let file = AtomicFile::create(path).at(path)?;
    let kept = folder.kept.take().unwrap_or_default();
    let file = packing.write(file, |tar| {
        let seconds = state.taken_s.unwrap_or(0);
        for (name, content) in &kept {
            member(tar, name, Content::File(content), seconds)?;
        }
        for (name, target) in &folder.links {
            member(tar, name, Content::Link(target), seconds)?;
        }
        // The end: two blocks of zeros.
        tar.write_all(&[0; 2 * BLOCK])
    });
    file.at(path)?.commit().at(path)?;
    Ok(state)
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

    fn write(
        self,
        file: AtomicFile,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<AtomicFile> {
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

const BLOCK: usize = 512;

enum Content<'a> {
    File(&'a [u8]),
    Link(&'a str),
}

/// Writes a member in the ustar format, with GNU's members for what is too long for it.
fn member(tar: &mut dyn Write, name: &str, content: Content, seconds: u64) -> io::Result<()> {
    let (kind, bytes, target) = match content {
        Content::File(bytes) => (b'0', bytes, ""),
        Content::Link(target) => (b'2', &[][..], target),
    };
    for (long, text) in [(b'L', name), (b'K', target)] {
        if text.len() > 100 {
            tar.write_all(&header("././@LongLink", long, text.len() + 1, "", seconds))?;
            padded(tar, &[text.as_bytes(), &[0]].concat())?;
        }
    }
    tar.write_all(&header(name, kind, bytes.len(), target, seconds))?;
    padded(tar, bytes)
}

fn padded(tar: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    tar.write_all(bytes)?;
    tar.write_all(&[0; BLOCK][..bytes.len().wrapping_neg() % BLOCK])
}

fn header(name: &str, kind: u8, size: usize, target: &str, seconds: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, limit: usize, bytes: &[u8]| {
        let len = bytes.len().min(limit);
        block[at..at + len].copy_from_slice(&bytes[..len]);
    };
    put(0, 100, name.as_bytes());
    put(100, 8, b"0000444\0");
    put(108, 8, b"0000000\0");
    put(116, 8, b"0000000\0");
    put(124, 12, format!("{size:011o}\0").as_bytes());
    put(136, 12, format!("{seconds:011o}\0").as_bytes());
    put(148, 8, b"        ");
    put(156, 1, &[kind]);
    put(157, 100, target.as_bytes());
    put(257, 8, b"ustar\x0000");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}
