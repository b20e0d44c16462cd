//! Dumps as lists of members, to be put together again in every form an input can have.

use slablab_doctor::state::{self, Input, State};
use slablab_readers::compressed::Decompressed;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tar::{Archive, Builder, EntryType, Header};

/// The path of a real dump.
pub(crate) fn real(run: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../readers/testdata/{run}/before.tar.xz"))
}

/// A new empty folder. Tests run side by side: no two calls give the same folder.
pub(crate) fn folder(name: &str) -> PathBuf {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Relaxed);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("state").join(format!("{name}-{call}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[track_caller]
pub(crate) fn read(path: impl AsRef<Path>) -> State {
    try_read(path).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn try_read(path: impl AsRef<Path>) -> Result<State, String> {
    let path = Some(path.as_ref().to_path_buf());
    state::read(&Input { path, ..Input::default() }).map_err(|error| error.to_string())
}

/// The members of a dump: files, and links with their targets.
#[derive(Clone, Default)]
pub(crate) struct Members {
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) links: Vec<(String, String)>,
}

impl Members {
    /// Those of a tar.
    pub(crate) fn of(path: &Path) -> Members {
        let mut members = Members::default();
        let mut archive = Archive::new(Decompressed::new(File::open(path).unwrap()).unwrap());
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut content = Vec::new();
            match entry.header().entry_type() {
                EntryType::Regular => {
                    entry.read_to_end(&mut content).unwrap();
                    members.files.push((name, content));
                }
                EntryType::Symlink => {
                    let target = entry.link_name().unwrap().unwrap().display().to_string();
                    members.links.push((name, target));
                }
                _ => {}
            }
        }
        members
    }

    pub(crate) fn file(mut self, path: &str, content: &str) -> Members {
        self.files.retain(|(name, _)| name != path);
        self.files.push((path.into(), content.into()));
        self
    }

    /// Without the files whose paths begin with `prefix`.
    pub(crate) fn without(mut self, prefix: &str) -> Members {
        self.files.retain(|(name, _)| !name.starts_with(prefix));
        self
    }

    /// A tar, below `top`.
    pub(crate) fn tar(&self, top: &str) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, content) in &self.files {
            append(&mut builder, &format!("{top}{name}"), content);
        }
        for (name, target) in &self.links {
            let mut header = header(EntryType::Symlink, 0);
            builder.append_link(&mut header, format!("{top}{name}"), target).unwrap();
        }
        builder.into_inner().unwrap()
    }

    /// What `grep -r . FILES; ls -l /sys/kernel/slab; date -u` would print.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, content) in &self.files {
            for line in content.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                text.extend([b"/", name.as_bytes(), b":", line, b"\n"].concat());
            }
        }
        for (name, target) in &self.links {
            let name = name.rsplit('/').next().unwrap();
            writeln!(text, "lrwxrwxrwx 1 root root 0 Nov 20 10:00 {name} -> {target}").unwrap();
        }
        text.extend(b"Fri Nov 20 10:00:00 UTC 2026\n");
        text
    }

    /// Writes a directory.
    pub(crate) fn unpack(&self, to: &Path) {
        for (name, content) in &self.files {
            let path = to.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        for (name, target) in &self.links {
            let path = to.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, path).unwrap();
        }
    }
}

/// A header with all but name and sum. Times are those of a day in 2026.
pub(crate) fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o444);
    header.set_mtime(1_795_168_800);
    header
}

/// Appends a file with whatever name, also those that the crate would refuse.
pub(crate) fn append(builder: &mut Builder<impl Write>, name: &str, content: &[u8]) {
    let mut header = header(EntryType::Regular, content.len() as u64);
    match name.len() {
        ..100 => {
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, content).unwrap();
        }
        _ => builder.append_data(&mut header, name, content).unwrap(),
    }
}

pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
