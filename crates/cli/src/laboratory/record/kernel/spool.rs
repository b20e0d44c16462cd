//! What a recorder hands over, compressed in a file without a name: however this process ends, nothing of it
//! is left.

use rustix::fs::{Mode, OFlags, fstatvfs};
use rustix::process::{Resource, getrlimit, setpriority_process};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// zstd's level: events shrink to a tenth, at a few hundred megabytes a second.
const LEVEL: i32 = 1;

/// Bytes that stay free for what comes after the recording: the second dump, the file's own description.
const RESERVE: u64 = 16 << 20;

/// Set when there is no room for more: what recorders still have in their buffers is not kept.
pub(super) static CLOSED: AtomicBool = AtomicBool::new(false);

/// Bytes that all spools together have on disk.
pub(super) static SPOOLED: AtomicU64 = AtomicU64::new(0);

/// Bytes that are compressed at once, as a frame of zstd. A disk that is full ends a stream between frames.
const FRAME: usize = 512 << 10;

/// Puts this thread in front of others: a recorded load of hundreds of tasks would keep it from the buffers
/// until they overflow. Only root may; without it more events are lost.
pub(super) fn hurry() {
    let _ = setpriority_process(None, -20);
}

/// One stream of events, being compressed.
pub(super) struct Spool {
    file: File,
    pending: Vec<u8>,
    size: u64,
    bytes: u64,
    stopped: Option<io::Error>,
}

/// A stream that ended.
pub(super) struct Spooled {
    file: File,
    /// Bytes on disk.
    pub(super) size: u64,
    /// Bytes before compression.
    pub(super) bytes: u64,
    /// Why it ended before its end: there was no room for more.
    pub(super) stopped: Option<io::Error>,
}

impl Spool {
    /// A spool in `folder`.
    pub(super) fn new(folder: &Path) -> io::Result<Spool> {
        Ok(Spool { file: nameless(folder)?, pending: Vec::new(), size: 0, bytes: 0, stopped: None })
    }

    /// Takes the next bytes: whole records, as the stream may end behind them. Returns whether it did: then
    /// they are not kept, nor are others behind them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        if self.stopped.is_none() && CLOSED.load(Relaxed) {
            self.stopped = Some(io::ErrorKind::StorageFull.into());
        }
        if self.stopped.is_none() {
            self.pending.extend_from_slice(bytes);
            if self.pending.len() >= FRAME {
                self.flush();
            }
        }
        self.stopped.is_some()
    }

    fn flush(&mut self) {
        let written = zstd::bulk::compress(&self.pending, LEVEL).and_then(|frame| {
            self.file.write_all(&frame)?;
            Ok(frame.len() as u64)
        });
        match written {
            Ok(size) => {
                self.size += size;
                self.bytes += self.pending.len() as u64;
                SPOOLED.fetch_add(size, Relaxed);
            }
            Err(error) => self.stopped = Some(error),
        }
        self.pending.clear();
    }

    /// Ends the stream.
    pub(super) fn finish(mut self) -> io::Result<Spooled> {
        if !self.pending.is_empty() {
            self.flush();
        }
        let Spool { mut file, size, bytes, stopped, .. } = self;
        // A part of a frame may be behind the whole ones.
        file.set_len(size)?;
        file.rewind()?;
        Ok(Spooled { file, size, bytes, stopped })
    }
}

impl Spooled {
    /// Stands at the beginning again.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.file.rewind()
    }
}

impl Read for Spooled {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

fn nameless(folder: &Path) -> io::Result<File> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        return Ok(File::from(file));
    }
    // The file system has none that begin without a name.
    let number = COUNT.fetch_add(1, Relaxed);
    let path = folder.join(format!(".slablab-record.{}.{number}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// The room on the disk that a recording grows on.
pub(super) struct Room(File);

impl Room {
    pub(super) fn of(folder: &Path) -> io::Result<Room> {
        File::open(folder).map(Room)
    }

    /// Whether a file of all spools together, which is written when they have ended, would still fit.
    pub(super) fn is_enough(&self) -> bool {
        let needed = SPOOLED.load(Relaxed) + RESERVE;
        let free = fstatvfs(&self.0).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        needed <= free && needed <= limit
    }
}
