//! The folders of the recording, as the environment names them. `unsafe`: keeps them in a static.
//!
//! A process that gave up rights may reach its folder no longer by a path: a folder above is closed to it, or
//! it changed its root. A recorder that is root hands down a descriptor of the folder, which its programs
//! inherit as long as they do not close it. A program may also have put another file in the descriptor's
//! place, so the path from there begins with `..` and the folder's own name, which is random.

use super::system::{AT_FDCWD, Name, O_RDONLY, Open, Path, variable};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int};

const RAW: &CStr = c"SLABLAB_RECORD";
const COUNTS: &CStr = c"SLABLAB_RECORD_COUNTS";
const LIMIT: &CStr = c"SLABLAB_RECORD_LIMIT";
const SAMPLE: &CStr = c"SLABLAB_RECORD_SAMPLE";
const DESCRIPTOR: &CStr = c"SLABLAB_RECORD_DESCRIPTOR";

/// A file that the recorder has locked as long as it lives.
const LOCK: &[u8] = b"lock";

/// The folder of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folder {
    /// Raw files with events.
    Raw,
    /// Heads alone: the lost calls of processes that cannot write to the other folder.
    Counts,
}

/// What the environment says. A program may change its environment later, so this is a copy.
struct Settings {
    raw: Path,
    counts: Path,
    /// The most bytes of a process's file.
    limit: u64,
    /// Bytes in each of which about one allocation has its call chain recorded; 0: none.
    sample: u64,
    /// The descriptor of the folder of raw files; none below 0.
    descriptor: c_int,
}

struct Place(UnsafeCell<Settings>);

// SAFETY: written once, before the process has a state, and only read afterwards.
unsafe impl Sync for Place {}

static SETTINGS: Place = Place(UnsafeCell::new(Settings {
    raw: Path::EMPTY,
    counts: Path::EMPTY,
    limit: u64::MAX,
    sample: 0,
    descriptor: -1,
}));

fn settings() -> &'static Settings {
    // SAFETY: written before there was a state, which the callers have.
    unsafe { &*SETTINGS.0.get() }
}

/// Reads the environment. `false`: no folder is named.
///
/// # Safety
/// One thread calls it, before the process has a state.
pub(crate) unsafe fn read_environment() -> bool {
    let number = |name: &CStr, without: u64| match variable(name) {
        [] => without,
        digits => digits
            .iter()
            .filter(|digit| digit.is_ascii_digit())
            .fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))),
    };
    let (raw, counts) = (variable(RAW), variable(COUNTS));
    // With room for a name.
    if raw.is_empty() || raw.len().max(counts.len()) > Path::MOST - Name::MOST {
        return false;
    }
    // SAFETY: nobody else reads or writes yet, by the caller's promise.
    let settings = unsafe { &mut *SETTINGS.0.get() };
    settings.raw.put(raw);
    settings.counts.put(counts);
    settings.limit = number(LIMIT, u64::MAX);
    settings.sample = number(SAMPLE, 0).min(1 << 40);
    settings.descriptor = c_int::try_from(number(DESCRIPTOR, u64::MAX)).unwrap_or(-1);
    true
}

/// The most bytes of a process's file.
pub(crate) fn limit() -> u64 {
    settings().limit
}

/// Bytes in each of which about one allocation has its call chain recorded; 0: none.
#[inline]
pub(crate) fn sample() -> u64 {
    settings().sample
}

impl Folder {
    /// Opens a file of the folder.
    pub(crate) fn open(self, name: &[u8], flags: c_int) -> Option<Open> {
        let settings = settings();
        let folder = match self {
            Folder::Raw => settings.raw.bytes(),
            Folder::Counts => settings.counts.bytes(),
        };
        if folder.is_empty() {
            return None;
        }
        let mut path = Path::EMPTY;
        path.put(folder);
        path.put(b"/");
        path.put(name);
        let open = Open::at(AT_FDCWD, &path, flags);
        if open.is_some() || self == Folder::Counts || settings.descriptor < 0 {
            return open;
        }
        let mut path = Path::EMPTY;
        path.put(b"../");
        path.put(folder.rsplit(|byte| *byte == b'/').next().unwrap_or(folder));
        path.put(b"/");
        path.put(name);
        Open::at(settings.descriptor, &path, flags)
    }
}

/// Whether the recorder has ended and left the folder: it was killed. A folder without a lock belongs to a
/// recorder that could not lock a file of it.
pub(crate) fn is_abandoned() -> bool {
    Folder::Raw.open(LOCK, O_RDONLY).is_some_and(|lock| lock.is_unlocked())
}
