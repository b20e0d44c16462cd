//! The file of this process, and the state of its threads. `unsafe`: maps memory and files.
//!
//! All state is in one mapping that a forked child finds as zeros (MADV_WIPEONFORK), so the child is a new
//! process here: no file, no thread, no lock that is held.
//!
//! Each chunk's file is opened by its path and closed again, because programs close descriptors that they did
//! not open. Its bytes are allocated before they are mapped: on a full disk events are lost, and the program
//! does not get SIGBUS.

use super::next;
use super::raw::{ALLOCATOR_AT, CHUNK_BYTES, COMMAND_AT, EVENT_BYTES, HEAD_BYTES, MAGIC, TEXT_BYTES, word};
use super::system::{self, *};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Variables of the environment: the folder of the files, and the most bytes of each.
const FOLDER: &CStr = c"SLABLAB_RECORD";
const LIMIT: &CStr = c"SLABLAB_RECORD_LIMIT";

/// Threads of a process that live at once. Calls of more threads count as lost.
const THREADS: usize = 1 << 16;
/// Chunks that ended threads left with room. More stay as they are.
const LEFT: usize = 256;

/// A thread's window on its chunk. Zeros: it has none.
#[repr(C, align(64))]
pub(crate) struct Thread {
    /// Address of the next event.
    pub(crate) next: AtomicUsize,
    /// Address of the end of the window; 0 without one.
    pub(crate) end: AtomicUsize,
    /// Number of changes of the chunk.
    pub(crate) turn: AtomicU64,
    /// Offset of the chunk in the file.
    chunk: AtomicU64,
    /// The thread's number in this process, from 1.
    serial: AtomicU64,
    /// The next one on the list of ended threads, as an index + 1.
    free: AtomicUsize,
}

#[repr(C)]
struct State {
    lock: AtomicU32,
    /// The head of the file, mapped; null before the first event, and if there is no file.
    head: AtomicPtr<AtomicU64>,
    failed: AtomicBool,
    /// Bytes of the file that are in use.
    bytes: AtomicU64,
    /// Bytes of the file that are allocated on the disk.
    grown: AtomicU64,
    serials: AtomicU64,
    /// Threads that were ever in use.
    threads: AtomicUsize,
    free_threads: AtomicUsize,
    left_count: AtomicUsize,
    /// Chunks with room: offset, and bytes that are used.
    left: [(AtomicU64, AtomicU64); LEFT],
}

const STATE_BYTES: usize = size_of::<State>().next_multiple_of(4096);
const THREADS_BYTES: usize = THREADS * size_of::<Thread>();

static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());
/// Nothing is recorded: no folder is named, or the kernel refuses.
static OFF: AtomicBool = AtomicBool::new(false);
/// The thread's window; valid if there is a state.
static KEY: AtomicU32 = AtomicU32::new(0);
static LIMIT_BYTES: AtomicU64 = AtomicU64::new(u64::MAX);

/// The path of the folder, which a program may remove from its environment later.
struct Path(UnsafeCell<[u8; 1024]>);

// SAFETY: written once, before `STATE` is set, and only read afterwards.
unsafe impl Sync for Path {}

static FOLDER_PATH: Path = Path(UnsafeCell::new([0; 1024]));

/// The calling thread's window; null if it has none yet, or nothing is recorded.
#[inline]
pub(crate) fn current() -> *mut Thread {
    if STATE.load(Acquire).is_null() {
        return null_mut();
    }
    // SAFETY: the key was made before the state was set.
    unsafe { pthread_getspecific(KEY.load(Relaxed)).cast() }
}

/// Whether nothing is recorded.
#[inline]
pub(crate) fn is_off() -> bool {
    OFF.load(Relaxed)
}

/// The state, made by the first call.
fn state() -> Option<&'static State> {
    static MAKING: AtomicBool = AtomicBool::new(false);
    let state = STATE.load(Acquire);
    // SAFETY: the mapping stays, and zeros are a state.
    if let Some(state) = unsafe { state.as_ref() } {
        return Some(state);
    }
    if is_off() || MAKING.swap(true, Acquire) {
        // Another thread makes it. Before the C library has an environment there is one thread.
        return None;
    }
    let made = make();
    MAKING.store(false, Release);
    made
}

fn make() -> Option<&'static State> {
    // SAFETY: the names are C strings. The C library's answers are null or C strings.
    let (folder, limit) = unsafe {
        if environ_is_missing() {
            return None;
        }
        let text = |name: &CStr| getenv(name.as_ptr()).as_ref().map(|text| CStr::from_ptr(text).to_bytes());
        (text(FOLDER), text(LIMIT))
    };
    let off = || {
        OFF.store(true, Relaxed);
        None
    };
    let Some(folder) = folder.filter(|folder| !folder.is_empty() && folder.len() < 960) else { return off() };
    // SAFETY: `MAKING` is held, and nobody reads before `STATE` is set. The path fits.
    unsafe { (&mut *FOLDER_PATH.0.get())[..folder.len()].copy_from_slice(folder) };
    if let Some(limit) = limit {
        let digits = limit.iter().filter(|digit| digit.is_ascii_digit());
        let bytes =
            digits.fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
        LIMIT_BYTES.store(bytes, Relaxed);
    }
    let mut key = 0;
    // SAFETY: memory of its own, and a function that takes a thread's window.
    let memory = unsafe {
        if pthread_key_create(&mut key, Some(super::events::thread_ends)) != 0 {
            return off();
        }
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        let memory = mmap(null_mut(), STATE_BYTES + THREADS_BYTES, PROT, flags, -1, 0);
        if memory as isize == -1 {
            return off();
        }
        if madvise(memory, STATE_BYTES + THREADS_BYTES, MADV_WIPEONFORK) != 0 {
            pthread_atfork(None, None, Some(forget));
        }
        memory
    };
    KEY.store(key, Relaxed);
    STATE.store(memory.cast(), Release);
    // SAFETY: just mapped, and zeros are a state.
    unsafe { memory.cast::<State>().as_ref() }
}

/// Whether the program's environment is not there yet: the loader still runs.
fn environ_is_missing() -> bool {
    unsafe extern "C" {
        static environ: *const *const u8;
    }
    // SAFETY: the C library's variable.
    unsafe { (&raw const environ).read_volatile().is_null() }
}

/// In a child, if the kernel does not know MADV_WIPEONFORK: the same by hand.
unsafe extern "C" fn forget() {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    let state = STATE.load(Relaxed);
    // SAFETY: replaces the mapping by zeros. A forked child has one thread.
    unsafe { mmap(state.cast(), STATE_BYTES + THREADS_BYTES, PROT, flags, -1, 0) };
}

/// The state with its lock held. Signals are blocked while it lives.
pub(crate) struct Locked {
    state: &'static State,
    _quiet: Quiet,
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.state.lock.store(0, Release);
    }
}

/// Locks the state of a process that has a file. `None`: nothing is recorded.
pub(crate) fn lock() -> Option<Locked> {
    let quiet = Quiet::new();
    let state = state()?;
    while state.lock.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
        // SAFETY: the function has no preconditions.
        unsafe { sched_yield() };
    }
    let locked = Locked { state, _quiet: quiet };
    if state.head.load(Relaxed).is_null() && !state.failed.load(Relaxed) {
        locked.open();
    }
    (!state.head.load(Relaxed).is_null()).then_some(locked)
}

/// Counts an event that could not be written.
#[cold]
pub(crate) fn lost() {
    // SAFETY: the mappings of state and head stay.
    let head = unsafe { STATE.load(Acquire).as_ref() }.map(|state| state.head.load(Acquire));
    // SAFETY: the head has the word, and is mapped as long as the process lives.
    if let Some(lost) = head.and_then(|head| unsafe { head.add(word::LOST).as_ref() }) {
        lost.fetch_add(1, Relaxed);
    }
}

impl Locked {
    /// Opens the process's file, `FOLDER/PID-TIME.raw`, and writes its head.
    fn open(&self) {
        let (mut path, start) = ([0; 1024], system::now());
        // SAFETY: the functions have no preconditions.
        let (pid, parent) = unsafe { (getpid() as u64, getppid() as u64) };
        self.path_of(pid, start, &mut path);
        let head = match File::open(&path, O_CREATE_NEW) {
            // SAFETY: no address is asked for.
            Some(file) if file.grow(0, HEAD_BYTES as u64) => unsafe { file.map(null_mut(), 0, HEAD_BYTES) },
            _ => null_mut(),
        };
        if head.is_null() {
            return self.state.failed.store(true, Relaxed);
        }
        let words: *mut AtomicU64 = head.cast();
        let write = |word: usize, value: u64| {
            // SAFETY: a word of the head, which is mapped.
            unsafe { (*words.add(word)).store(value, Relaxed) }
        };
        write(word::PID, pid);
        write(word::PARENT, parent);
        write(word::START, start);
        write(word::PAGE, system::page_bytes() as u64);
        let text = |at: usize| {
            // SAFETY: the head has `TEXT_BYTES` bytes there, and nobody else writes them.
            unsafe { core::slice::from_raw_parts_mut(head.add(at), TEXT_BYTES - 1) }
        };
        let allocator = next::allocator();
        let length = allocator.len().min(TEXT_BYTES - 1);
        text(ALLOCATOR_AT)[..length].copy_from_slice(&allocator[..length]);
        // SAFETY: the path is a C string; the text has `TEXT_BYTES` - 1 bytes.
        unsafe {
            let fd = system::open(c"/proc/self/cmdline".as_ptr(), O_CLOEXEC);
            if fd >= 0 {
                read(fd, text(COMMAND_AT).as_mut_ptr().cast(), TEXT_BYTES - 1);
                close(fd);
            }
        }
        write(word::MAGIC, MAGIC);
        self.state.bytes.store(HEAD_BYTES as u64, Relaxed);
        self.state.grown.store(HEAD_BYTES as u64, Relaxed);
        // Pairs with the load in `lost`.
        self.state.head.store(words, Release);
    }

    fn path_of(&self, pid: u64, start: u64, path: &mut [u8; 1024]) {
        // SAFETY: written before there was a state.
        let folder = unsafe { &*FOLDER_PATH.0.get() };
        let mut at = folder.iter().position(|byte| *byte == 0).unwrap_or(0);
        path[..at].copy_from_slice(&folder[..at]);
        let mut put = |bytes: &[u8]| {
            path[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(b"/");
        let mut digits = [0; 20];
        put(decimal(pid, &mut digits));
        put(b"-");
        put(decimal(start, &mut digits));
        put(b".raw");
    }

    /// Gives a thread a window on a chunk with room. `thread` is the caller's own, or null: then it gets one.
    /// `None`: no memory, no disk space, or the limit is reached.
    pub(crate) fn give(&self, thread: *mut Thread) -> Option<&'static Thread> {
        // SAFETY: a thread's own window, in the mapping that stays. A forked child finds zeros there, and
        // takes another one.
        let thread = match unsafe { thread.as_ref() }.filter(|thread| thread.serial.load(Relaxed) != 0) {
            Some(thread) => thread,
            None => self.new_thread()?,
        };
        let head = self.state.head.load(Relaxed).cast::<u64>();
        // SAFETY: the head is mapped.
        let (pid, start) = unsafe { (*head.add(word::PID), *head.add(word::START)) };
        let mut path = [0; 1024];
        self.path_of(pid, start, &mut path);
        let file = File::open(&path, O_RDWR)?;
        let (chunk, used) = self.chunk(&file)?;
        let end = thread.end.load(Relaxed);
        let at = if end == 0 { null_mut() } else { (end - WINDOW_BYTES) as *mut c_void };
        // SAFETY: no address, or that of the thread's window, whose chunk is full.
        let base = unsafe { file.map(at, chunk, CHUNK_BYTES) };
        if base.is_null() {
            return None;
        }
        thread.chunk.store(chunk, Relaxed);
        thread.turn.fetch_add(1, Relaxed);
        thread.end.store(base as usize + WINDOW_BYTES, Relaxed);
        thread.next.store(base as usize + used as usize, Release);
        Some(thread)
    }

    /// A chunk: what an ended thread left, or a new one at the file's end. Returns its offset, and the bytes
    /// that are used.
    fn chunk(&self, file: &File) -> Option<(u64, u64)> {
        let left = self.state.left_count.load(Relaxed);
        if left > 0 {
            self.state.left_count.store(left - 1, Relaxed);
            let (chunk, used) = &self.state.left[left - 1];
            return Some((chunk.load(Relaxed), used.load(Relaxed)));
        }
        let chunk = self.state.bytes.load(Relaxed);
        if chunk + CHUNK_BYTES as u64 > LIMIT_BYTES.load(Relaxed) {
            return None;
        }
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

    fn new_thread(&self) -> Option<&'static Thread> {
        let (free, used) = (self.state.free_threads.load(Relaxed), self.state.threads.load(Relaxed));
        let index = match free {
            0 if used == THREADS => return None,
            0 => {
                self.state.threads.store(used + 1, Relaxed);
                used
            }
            _ => free - 1,
        };
        // SAFETY: the mapping has `THREADS` of them behind the state, and zeros are one.
        let thread = unsafe {
            let base = (self.state as *const State).cast::<u8>().add(STATE_BYTES);
            &*base.cast::<Thread>().add(index)
        };
        self.state.free_threads.store(thread.free.load(Relaxed), Relaxed);
        thread.serial.store(self.state.serials.fetch_add(1, Relaxed) + 1, Relaxed);
        // SAFETY: the key's values are threads, or null.
        unsafe { pthread_setspecific(KEY.load(Relaxed), (thread as *const Thread).cast()) };
        Some(thread)
    }

    /// The calling thread ends: its chunk is for another one.
    pub(crate) fn take_back(&self, thread: &'static Thread) {
        let end = thread.end.swap(0, Relaxed);
        if end != 0 {
            let base = end - WINDOW_BYTES;
            let used = thread.next.load(Relaxed) - base;
            let left = self.state.left_count.load(Relaxed);
            // A chunk that is nearly full is not worth another thread's events.
            if used + 16 * EVENT_BYTES < WINDOW_BYTES && left < LEFT {
                self.state.left[left].0.store(thread.chunk.load(Relaxed), Relaxed);
                self.state.left[left].1.store(used as u64, Relaxed);
                self.state.left_count.store(left + 1, Relaxed);
            }
            // SAFETY: the thread's own window; its handlers are blocked.
            unsafe { munmap(base as *mut c_void, CHUNK_BYTES) };
        }
        thread.serial.store(0, Relaxed);
        let index = (thread as *const Thread as usize - self.state as *const State as usize - STATE_BYTES)
            / size_of::<Thread>();
        thread.free.store(self.state.free_threads.swap(index + 1, Relaxed), Relaxed);
        // SAFETY: as in `new_thread`.
        unsafe { pthread_setspecific(KEY.load(Relaxed), null()) };
    }
}

impl Thread {
    /// The thread's number in this process.
    pub(crate) fn serial(&self) -> u64 {
        self.serial.load(Relaxed)
    }
}

/// Bytes of a window that hold events.
pub(crate) const WINDOW_BYTES: usize = CHUNK_BYTES / EVENT_BYTES * EVENT_BYTES;

/// The most bytes by which the file grows at once.
const STEP_MAX: u64 = 16 << 20;

/// The process's file, open.
struct File(i32);

impl File {
    fn open(path: &[u8; 1024], flags: i32) -> Option<File> {
        // SAFETY: the path ends with a zero byte.
        let fd = unsafe { system::open(path.as_ptr().cast(), flags | O_CLOEXEC, MODE) };
        (fd >= 0).then_some(File(fd))
    }

    /// Allocates `bytes` bytes behind the first `from`. `false`: the disk is full.
    fn grow(&self, from: u64, bytes: u64) -> bool {
        // SAFETY: the descriptor is open. Where a file system cannot allocate, the file gets longer.
        unsafe {
            fallocate(self.0, 0, from as i64, bytes as i64) == 0
                || (!is_full() && ftruncate(self.0, (from + bytes) as i64) == 0)
        }
    }

    /// Maps a part of the file; null if the kernel refuses.
    ///
    /// # Safety
    /// `at` is null, or a mapping of that size which nobody uses.
    unsafe fn map(&self, at: *mut c_void, offset: u64, bytes: usize) -> *mut u8 {
        let fixed = if at.is_null() { 0 } else { MAP_FIXED };
        let flags = MAP_SHARED | MAP_POPULATE | fixed;
        // SAFETY: the caller's promise.
        unsafe {
            let base = mmap(at, bytes, PROT, flags, self.0, offset as i64);
            if base as isize == -1 {
                return null_mut();
            }
            madvise(base, bytes, MADV_DONTFORK);
            base.cast()
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this file's.
        unsafe { close(self.0) };
    }
}

/// Whether the last call failed because the disk, or the user's part of it, is full.
fn is_full() -> bool {
    const ENOSPC: i32 = 28;
    const EDQUOT: i32 = 122;
    matches!(system::errno(), ENOSPC | EDQUOT)
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
