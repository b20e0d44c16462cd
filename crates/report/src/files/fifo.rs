//! Files of a system with FIFOs.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// How long a FIFO may have no writer. A shell's `program > fifo &` opens it within milliseconds.
const PATIENCE: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// Opens a file for reading. A FIFO that gets no writer within three seconds is refused: an ordinary open
/// would wait for ever.
///
/// # Errors
/// Those of the system; a FIFO without a writer.
pub fn open(path: &Path) -> io::Result<File> {
    // The links of /proc/PID/fd and most FIFOs (`<(command)` in a shell) are opened in this way, too.
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    if file.metadata().is_ok_and(|found| is_fifo(&found)) {
        await_writer(&file)?;
    }
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// The bytes of a file; `None` for what is no file.
pub(super) fn length(file: &File) -> io::Result<Option<u64>> {
    let found = file.metadata()?;
    Ok(found.is_file().then_some(found.len()))
}

fn is_fifo(found: &Metadata) -> bool {
    found.file_type().is_fifo()
}

/// Waits until a FIFO has a writer.
fn await_writer(file: &File) -> io::Result<()> {
    let mut waiting = [PollFd::new(file, PollFlags::IN)];
    poll(&mut waiting, Some(&PATIENCE))?;
    // There are bytes, or all writers have closed it.
    if !waiting[0].revents().is_empty() {
        return Ok(());
    }
    // No bytes yet: the kernel answers "try again" if a program has it open for writing, and otherwise that
    // it is at its end.
    match rustix::io::read(file, &mut [0; 1]) {
        Ok(0) => Err(io::Error::other("no program writes to this FIFO: expected a file")),
        // The byte is gone.
        Ok(_) => Err(io::Error::other("the FIFO's writer came late: try again")),
        Err(_) => Ok(()),
    }
}

/// Whether there is a regular file.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// The size of a file in bytes.
///
/// # Errors
/// A file that cannot be looked at.
pub fn size(path: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(path)?.len())
}
