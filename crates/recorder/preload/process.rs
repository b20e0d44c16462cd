//! What is known of this process: its file, its threads and their windows. `unsafe`: maps memory and files.
//!
//! All state is in one mapping that a forked child finds as zeros (MADV_WIPEONFORK), so the child is a new
//! process here: no file, no thread, no lock that is held.
//!
//! Each chunk's file is opened by its path and closed again, because programs close descriptors that they did
//! not open. Its bytes are allocated before they are mapped: on a full disk events are lost, and the program
//! does not get SIGBUS.
//!
//! | what fails | what happens |
//! |---|---|
//! | a chunk: the limit, a full disk, no descriptor, no memory | calls are counted as lost; another try after [`PAUSE_NS`] |
//! | the process's own file: it gave up the right | it begins another file, which names the first one |
//! | the folder: it gave up the right, or has another root | it counts in a file of the other folder; tries as above |
//! | both folders | it counts in memory, until a file can be opened |
//! | the recorder is dead | nothing is recorded any more |
//!
//! Between two tries a call costs less than a recorded one: no lock, no system call.

use super::folder;
use super::raw::{CHUNK_BYTES, EVENT_BYTES, word};
use super::system::{self, *};
use core::ffi::c_void;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// The time between two tries after a failure in ns. It grows with what a try takes, so that tries take a
/// sixteenth of the time at most.
const PAUSE_NS: u64 = 20_000_000;

/// How often the process looks whether its recorder lives, in ns.
const LOOK_NS: u64 = 100_000_000;

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
    /// The file of the chunk: its [`word::START`].
    file: AtomicU64,
    /// What decides which allocations have a call chain.
    pub(crate) dice: Dice,
}

/// When a thread's next call chain is due. Zeros: it is not decided.
#[repr(C)]
pub(crate) struct Dice {
    /// Bytes to be allocated until then.
    pub(crate) until: AtomicU64,
    /// The state of the thread's random numbers.
    pub(crate) random: AtomicU64,
    /// A chain is being recorded: allocations meanwhile have none.
    pub(crate) busy: AtomicBool,
}

#[repr(C)]
pub(super) struct State {
    pub(super) lock: AtomicU32,
    /// The head of the file, mapped; null without a file.
    pub(super) head: AtomicPtr<AtomicU64>,
    /// The file has a head alone.
    pub(super) counts: AtomicBool,
    /// The time of the next try after a failure; 0 without one.
    pub(super) pause_ns: AtomicU64,
    /// When the process last looked for its recorder.
    pub(super) looked_ns: AtomicU64,
    /// The start of the process's first file; 0 without a file.
    pub(super) first: AtomicU64,
    /// The start of the file, which is a part of its name.
    pub(super) start: AtomicU64,
    /// The start of a file that is not begun yet.
    pub(super) tried: AtomicU64,
    /// Lost calls that are not in a head yet.
    pub(super) early: AtomicU64,
    /// Bytes of the files before.
    pub(super) spent: AtomicU64,
    /// Bytes of the file that are in use.
    pub(super) bytes: AtomicU64,
    /// Bytes of the file that are allocated on the disk.
    pub(super) grown: AtomicU64,
    /// When the process last looked how many pages it has in memory, and last copied its mappings.
    pub(super) resident_ns: AtomicU64,
    pub(super) mapped_ns: AtomicU64,
    /// Code that the last copy of the mappings has: beginnings and ends.
    pub(super) code_count: AtomicUsize,
    pub(super) code: [(AtomicUsize, AtomicUsize); CODE],
    pub(super) serials: AtomicU64,
    /// Threads that were ever in use.
    pub(super) threads: AtomicUsize,
    pub(super) free_threads: AtomicUsize,
    pub(super) left_count: AtomicUsize,
    /// Chunks with room: offset, and bytes that are used.
    pub(super) left: [(AtomicU64, AtomicU64); LEFT],
}

/// Mappings of code that are known. More are not, and the file has them all the same.
pub(super) const CODE: usize = 512;

const STATE_BYTES: usize = size_of::<State>().next_multiple_of(4096);
const THREADS_BYTES: usize = THREADS * size_of::<Thread>();

static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());
/// Nothing is recorded: no folder is named, or the kernel refuses.
static OFF: AtomicBool = AtomicBool::new(false);
/// The thread's window; valid if there is a state.
static KEY: AtomicU32 = AtomicU32::new(0);

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

/// The state, if there is one yet.
#[inline]
pub(super) fn known() -> Option<&'static State> {
    // SAFETY: the mapping stays, and zeros are a state.
    unsafe { STATE.load(Acquire).as_ref() }
}

impl State {
    /// A word of the head; `None` without a file.
    pub(super) fn word(&self, word: usize) -> Option<&AtomicU64> {
        let head = self.head.load(Acquire);
        // SAFETY: the head has the word, and is mapped as long as the process lives.
        (!head.is_null()).then(|| unsafe { &*head.add(word) })
    }
}

/// The state, made by the first call.
fn state() -> Option<&'static State> {
    static MAKING: AtomicBool = AtomicBool::new(false);
    if let Some(state) = known() {
        return Some(state);
    }
    if is_off() || MAKING.swap(true, Acquire) {
        // Another thread makes it. Before the C library has an environment there is one thread.
        return None;
    }
    // Another thread may have made it just before.
    let made = known().or_else(make);
    MAKING.store(false, Release);
    made
}

fn make() -> Option<&'static State> {
    if environ_is_missing() {
        return None;
    }
    let off = || {
        OFF.store(true, Relaxed);
        None
    };
    // SAFETY: `MAKING` is held, and there is no state yet.
    if !unsafe { folder::read_environment() } {
        return off();
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
    known()
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
    pub(super) state: &'static State,
    _quiet: Quiet,
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.state.lock.store(0, Release);
    }
}

/// Locks the state. `None`: nothing is recorded.
pub(crate) fn lock() -> Option<Locked> {
    let quiet = Quiet::new();
    let state = state()?;
    while state.lock.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
        // SAFETY: the function has no preconditions.
        unsafe { sched_yield() };
    }
    Some(Locked { state, _quiet: quiet })
}

/// Whether a try at this time is too early after one that failed.
pub(crate) fn pauses(time_ns: u64) -> bool {
    known().is_some_and(|state| time_ns < state.pause_ns.load(Relaxed))
}

/// Counts a call that could not be written.
#[cold]
pub(crate) fn lost() {
    if let Some(state) = known() {
        state.word(word::LOST).unwrap_or(&state.early).fetch_add(1, Relaxed);
    }
}

impl Locked {
    /// Gives a thread a window on a chunk with room. `thread` is the caller's own, or null: then it gets one.
    /// `None`: see the table at the top.
    pub(crate) fn give(&self, thread: *mut Thread, time_ns: u64) -> Option<&'static Thread> {
        // Another thread may have failed while this one waited for the lock.
        if is_off() || pauses(time_ns) {
            return None;
        }
        let given = self.try_to_give(thread, time_ns);
        if given.is_none() {
            let now = system::now();
            let tried = now.saturating_sub(time_ns);
            self.state.pause_ns.store(now + PAUSE_NS + 16 * tried, Relaxed);
        }
        given
    }

    fn try_to_give(&self, thread: *mut Thread, time_ns: u64) -> Option<&'static Thread> {
        if time_ns.saturating_sub(self.state.looked_ns.load(Relaxed)) > LOOK_NS {
            self.state.looked_ns.store(time_ns, Relaxed);
            if folder::is_abandoned() {
                OFF.store(true, Relaxed);
                return None;
            }
        }
        if !self.has_file() || !self.has_room() {
            return None;
        }
        let file = self.file()?;
        // SAFETY: a thread's own window, in the mapping that stays. A forked child finds zeros there, and
        // takes another one.
        let thread = match unsafe { thread.as_ref() }.filter(|thread| thread.serial.load(Relaxed) != 0) {
            Some(thread) => thread,
            None => self.new_thread()?,
        };
        let (chunk, used) = self.chunk(&file)?;
        let end = thread.end.load(Relaxed);
        let at = if end == 0 { null_mut() } else { (end - WINDOW_BYTES) as *mut c_void };
        // SAFETY: no address, or that of the thread's window, whose chunk is full.
        let base = unsafe { file.map(at, chunk, CHUNK_BYTES) };
        if base.is_null() {
            return None;
        }
        thread.chunk.store(chunk, Relaxed);
        thread.file.store(self.state.start.load(Relaxed), Relaxed);
        thread.turn.fetch_add(1, Relaxed);
        thread.end.store(base as usize + WINDOW_BYTES, Relaxed);
        thread.next.store(base as usize + used as usize, Release);
        Some(thread)
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
            let is_here = thread.file.load(Relaxed) == self.state.start.load(Relaxed);
            if is_here && used + 16 * EVENT_BYTES < WINDOW_BYTES && left < LEFT {
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
