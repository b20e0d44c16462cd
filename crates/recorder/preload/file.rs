//! The process's file: opened when the process first calls, and in other folders if it may not write there.
//! `unsafe`: maps the head, and writes to it.

use super::folder::{self, Folder};
use super::next;
use super::process::Locked;
use super::raw::{ALLOCATOR_AT, CHUNK_BYTES, COMMAND_AT, HEAD_BYTES, MAGIC, TEXT_BYTES, word};
use super::system::{self, AT_FDCWD, Name, O_APPEND, O_CREAT, O_RDONLY, O_RDWR, O_WRONLY, Open, Path};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// The most bytes by which the file grows at once.
const STEP_MAX: u64 = 16 << 20;

impl Locked {
    /// Whether the process has a file for events. Opens one if it has none yet; if that fails, one for
    /// counts.
    pub(super) fn has_file(&self) -> bool {
        let is_there = || !self.state.head.load(Relaxed).is_null();
        let has = is_there() && !self.state.counts.load(Relaxed) || self.begin(Folder::Raw).is_some();
        if !is_there() {
            self.begin(Folder::Counts);
        }
        if let Some(lost) = self.state.word(word::LOST) {
            lost.fetch_add(self.state.early.swap(0, Relaxed), Relaxed);
        }
        has
    }

    /// Whether the process may use another chunk.
    pub(super) fn has_room(&self) -> bool {
        let used = self.state.spent.load(Relaxed) + self.state.bytes.load(Relaxed);
        self.state.left_count.load(Relaxed) > 0 || used + CHUNK_BYTES as u64 <= folder::limit()
    }

    /// The process's file, open; another one if the process gave up the right to the one that it had.
    pub(super) fn file(&self) -> Option<Open> {
        // A child of vfork has another number, and its parent's file.
        let pid = self.state.word(word::PID)?.load(Relaxed);
        let name = name(pid, self.state.start.load(Relaxed), b".raw");
        Folder::Raw.open(name.bytes(), O_RDWR).or_else(|| self.begin(Folder::Raw))
    }

    /// Begins a file, `PID-TIME.raw`, and writes its head.
    fn begin(&self, folder: Folder) -> Option<Open> {
        let state = self.state;
        let (pid, parent) = system::processes();
        // A try that failed may have left the file without a head.
        let _ = state.tried.compare_exchange(0, system::now(), Relaxed, Relaxed);
        let start = state.tried.load(Relaxed);
        let file = folder.open(name(pid, start, b".raw").bytes(), O_RDWR | O_CREAT)?;
        if !file.grow(0, HEAD_BYTES as u64) {
            return None;
        }
        // SAFETY: no address is asked for.
        let head = unsafe { file.map(null_mut(), 0, HEAD_BYTES) };
        if head.is_null() {
            return None;
        }
        let words: *mut AtomicU64 = head.cast();
        let write = |word: usize, value: u64| {
            // SAFETY: a word of the head, which is mapped.
            unsafe { (*words.add(word)).store(value, Relaxed) }
        };
        let _ = state.first.compare_exchange(0, start, Relaxed, Relaxed);
        write(word::PID, pid);
        write(word::PARENT, parent);
        write(word::START, start);
        write(word::FIRST, state.first.load(Relaxed));
        write(word::PAGE, system::page_bytes() as u64);
        let sample = folder::sample();
        write(word::SAMPLE, if sample != 0 && !system::can_walk() { word::NO_CHAINS } else { sample });
        let text = |at: usize| {
            // SAFETY: the head has `TEXT_BYTES` bytes there, and nobody else writes them.
            unsafe { core::slice::from_raw_parts_mut(head.add(at), TEXT_BYTES - 1) }
        };
        let allocator = next::allocator();
        let length = allocator.len().min(TEXT_BYTES - 1);
        text(ALLOCATOR_AT)[..length].copy_from_slice(&allocator[..length]);
        let mut path = Path::EMPTY;
        path.put(b"/proc/self/cmdline");
        if let Some(command) = Open::at(AT_FDCWD, &path, O_RDONLY) {
            command.read(text(COMMAND_AT));
        }
        write(word::MAGIC, MAGIC);
        state.start.store(start, Relaxed);
        state.spent.fetch_add(state.bytes.swap(HEAD_BYTES as u64, Relaxed), Relaxed);
        state.grown.store(HEAD_BYTES as u64, Relaxed);
        // They are in the file before.
        state.left_count.store(0, Relaxed);
        state.tried.store(0, Relaxed);
        state.counts.store(folder == Folder::Counts, Relaxed);
        // Pairs with the load in `lost`.
        state.head.store(words, Release);
        Some(file)
    }

    /// A chunk: what an ended thread left, or a new one at the file's end. Returns its offset, and the bytes
    /// that are used.
    pub(super) fn chunk(&self, file: &Open) -> Option<(u64, u64)> {
        let left = self.state.left_count.load(Relaxed);
        if left > 0 {
            self.state.left_count.store(left - 1, Relaxed);
            let (chunk, used) = &self.state.left[left - 1];
            return Some((chunk.load(Relaxed), used.load(Relaxed)));
        }
        let chunk = self.state.bytes.load(Relaxed);
        let (end, grown) = (chunk + CHUNK_BYTES as u64, self.state.grown.load(Relaxed));
        if end > grown {
            // By a quarter: a file of gigabytes is allocated in few steps, and a small one stays small.
            let step = (grown / 4).next_multiple_of(CHUNK_BYTES as u64).clamp(CHUNK_BYTES as u64, STEP_MAX);
            if file.grow(grown, step) {
                self.state.grown.store(grown + step, Relaxed);
            } else if file.grow(grown, end - grown) {
                self.state.grown.store(end, Relaxed);
            } else {
                return None;
            }
        }
        self.state.bytes.store(end, Relaxed);
        Some((chunk, 0))
    }
}

impl Locked {
    /// The file that copies of the process's mappings are added to.
    pub(super) fn maps(&self) -> Option<Open> {
        let pid = self.state.word(word::PID)?.load(Relaxed);
        let name = name(pid, self.state.start.load(Relaxed), b".maps");
        Folder::Raw.open(name.bytes(), O_WRONLY | O_CREAT | O_APPEND)
    }
}

/// The name of a process's file.
fn name(pid: u64, start: u64, end: &[u8]) -> Name {
    let (mut name, mut digits) = (Name::EMPTY, [0; 20]);
    name.put(decimal(pid, &mut digits));
    name.put(b"-");
    name.put(decimal(start, &mut digits));
    name.put(end);
    name
}

/// The digits of a number.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}
