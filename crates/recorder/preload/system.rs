//! Functions of the C library, and numbers of Linux. `unsafe`: declares and calls them.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

/// `RTLD_NEXT`: the libraries behind this one.
pub(crate) const NEXT: *mut c_void = usize::MAX as *mut c_void;

/// What `dladdr` says of an address.
#[repr(C)]
pub(crate) struct Found {
    pub(crate) file: *const c_char,
    pub(crate) base: *mut c_void,
    symbol: *const c_char,
    at: *mut c_void,
}

#[repr(C)]
struct Time {
    seconds: i64,
    nanoseconds: c_long,
}

/// A set of signals: 1,024 bits in the C libraries of Linux.
pub(crate) type Signals = [u64; 16];

unsafe extern "C" {
    pub(crate) fn abort() -> !;
    pub(crate) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dladdr(at: *const c_void, found: *mut Found) -> c_int;
    pub(crate) fn mmap(
        at: *mut c_void,
        bytes: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub(crate) fn munmap(at: *mut c_void, bytes: usize) -> c_int;
    pub(crate) fn madvise(at: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    fn openat(folder: c_int, path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn read(fd: c_int, to: *mut c_void, bytes: usize) -> isize;
    fn write(fd: c_int, from: *const c_void, bytes: usize) -> isize;
    fn flock(fd: c_int, operation: c_int) -> c_int;
    fn ftruncate(fd: c_int, bytes: i64) -> c_int;
    fn fallocate(fd: c_int, mode: c_int, offset: i64, bytes: i64) -> c_int;
    // Null in a process with more rights than its user, who may not command it.
    #[link_name = "secure_getenv"]
    fn getenv(name: *const c_char) -> *const c_char;
    fn getpid() -> c_int;
    fn getppid() -> c_int;
    fn getpagesize() -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    pub(crate) fn sched_yield() -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    pub(crate) fn pthread_key_create(key: *mut u32, end: Option<unsafe extern "C" fn(*mut c_void)>) -> c_int;
    pub(crate) fn pthread_getspecific(key: u32) -> *mut c_void;
    pub(crate) fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    pub(crate) fn pthread_atfork(
        before: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const Signals, old: *mut Signals) -> c_int;
    fn __errno_location() -> *mut c_int;
}

pub(crate) const PROT: c_int = 3; // readable, writable
pub(crate) const MAP_SHARED: c_int = 0x1;
pub(crate) const MAP_PRIVATE: c_int = 0x2;
pub(crate) const MAP_FIXED: c_int = 0x10;
pub(crate) const MAP_ANONYMOUS: c_int = 0x20;
pub(crate) const MAP_NORESERVE: c_int = 0x4000;
pub(crate) const MAP_POPULATE: c_int = 0x8000;
pub(crate) const MADV_DONTFORK: c_int = 10;
pub(crate) const MADV_WIPEONFORK: c_int = 18;
pub(crate) const O_RDONLY: c_int = 0;
pub(crate) const O_RDWR: c_int = 2;
pub(crate) const O_WRONLY: c_int = 1;
pub(crate) const O_CREAT: c_int = 0o100;
pub(crate) const O_APPEND: c_int = 0o2000;
/// Paths are from the folder that the process works in.
pub(crate) const AT_FDCWD: c_int = -100;
const O_NONBLOCK: c_int = 0o4000;
const O_CLOEXEC: c_int = 0o2000000;
#[cfg(target_arch = "x86_64")]
const O_NOFOLLOW: c_int = 0o400000;
#[cfg(not(target_arch = "x86_64"))]
const O_NOFOLLOW: c_int = 0o100000;
const MODE: c_int = 0o600;
const LOCK_SHARED_NOW: c_int = 1 | 4;
const CLOCK_MONOTONIC: c_int = 1;
const SIG_SETMASK: c_int = 2;
#[cfg(target_arch = "x86_64")]
const SYS_GETTID: c_long = 186;
#[cfg(not(target_arch = "x86_64"))]
const SYS_GETTID: c_long = 178;

/// A text that is put together, with a zero byte at its end.
pub(crate) struct Text<const BYTES: usize>([u8; BYTES], usize);

/// A path of a file.
pub(crate) type Path = Text<1024>;

/// The name of a file, without a folder.
pub(crate) type Name = Text<64>;

impl<const BYTES: usize> Text<BYTES> {
    pub(crate) const EMPTY: Text<BYTES> = Text([0; BYTES], 0);
    /// The most bytes, without the zero at the end.
    pub(crate) const MOST: usize = BYTES - 1;

    /// Puts a piece at the end, or as much of it as there is room for.
    #[inline]
    pub(crate) fn put(&mut self, piece: &[u8]) {
        let length = piece.len().min(Self::MOST - self.1);
        self.0[self.1..self.1 + length].copy_from_slice(&piece[..length]);
        self.1 += length;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// An open file. Its end closes it.
pub(crate) struct Open(c_int);

impl Open {
    /// Opens `path`, from the folder `at`; no link, and without waiting for the other end of a pipe.
    pub(crate) fn at(at: c_int, path: &Path, flags: c_int) -> Option<Open> {
        let flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
        // SAFETY: the path ends with a zero byte.
        let fd = unsafe { openat(at, path.0.as_ptr().cast(), flags, MODE) };
        (fd >= 0).then(|| Open(fd))
    }

    /// Reads the file's next bytes: their number. What cannot be read stays as it is.
    pub(crate) fn read(&self, to: &mut [u8]) -> usize {
        // SAFETY: the bytes may be written.
        unsafe { read(self.0, to.as_mut_ptr().cast(), to.len()).max(0) as usize }
    }

    /// Writes all bytes at the file's end, as far as there is room.
    pub(crate) fn write(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // SAFETY: the bytes may be read.
            let written = unsafe { write(self.0, bytes.as_ptr().cast(), bytes.len()) };
            if written <= 0 {
                return;
            }
            bytes = &bytes[written as usize..];
        }
    }

    /// Whether the file has no lock of another process now.
    pub(crate) fn is_unlocked(&self) -> bool {
        // SAFETY: the descriptor is open.
        unsafe { flock(self.0, LOCK_SHARED_NOW) == 0 }
    }

    /// Allocates `bytes` bytes behind the first `from`. `false`: the disk is full.
    pub(crate) fn grow(&self, from: u64, bytes: u64) -> bool {
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
    pub(crate) unsafe fn map(&self, at: *mut c_void, offset: u64, bytes: usize) -> *mut u8 {
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

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this file's.
        unsafe { close(self.0) };
    }
}

/// Whether the last call failed because the disk, or the user's part of it, is full.
fn is_full() -> bool {
    const ENOSPC: c_int = 28;
    const EDQUOT: c_int = 122;
    matches!(errno(), ENOSPC | EDQUOT)
}

/// A variable of the environment; nothing without one.
pub(crate) fn variable(name: &CStr) -> &'static [u8] {
    // SAFETY: the name is a C string. The answer is null or a C string, which the program changes no sooner
    // than it runs.
    unsafe { getenv(name.as_ptr()).as_ref().map_or(&[], |text| CStr::from_ptr(text).to_bytes()) }
}

/// The numbers of this process and of its parent.
pub(crate) fn processes() -> (u64, u64) {
    // SAFETY: the functions have no preconditions.
    unsafe { (getpid() as u64, getppid() as u64) }
}

/// The library that an address is in.
pub(crate) fn library_of(at: *const c_void) -> Option<Found> {
    let mut found = MaybeUninit::<Found>::zeroed();
    // SAFETY: `found` may be written, and zeros are a value of it.
    unsafe { (dladdr(at, found.as_mut_ptr()) != 0).then(|| found.assume_init()) }
}

/// The C library's function that walks the stack: `backtrace`. Null: it has none.
fn walker() -> *mut c_void {
    const DEFAULT: *mut c_void = null_mut();
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    static SOUGHT: AtomicBool = AtomicBool::new(false);
    if !SOUGHT.load(Acquire) {
        // SAFETY: the name is a C string.
        FOUND.store(unsafe { dlsym(DEFAULT, c"backtrace".as_ptr()) }, Relaxed);
        SOUGHT.store(true, Release);
    }
    FOUND.load(Relaxed)
}

/// Whether stacks can be walked.
pub(crate) fn can_walk() -> bool {
    !walker().is_null()
}

/// The addresses behind the calls that lead here, from the innermost, by the tables that code has for it:
/// their number.
pub(crate) fn walk(frames: &mut [usize]) -> usize {
    let walker = walker();
    if walker.is_null() {
        return 0;
    }
    // SAFETY: the C library's name for a function of this type; the frames may be written.
    unsafe {
        let walk =
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut usize, c_int) -> c_int>(walker);
        walk(frames.as_mut_ptr(), frames.len() as c_int).max(0) as usize
    }
}

/// Bytes of a page.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: the function has no preconditions.
    unsafe { getpagesize() as usize }
}

/// CLOCK_MONOTONIC in ns.
#[inline]
pub(crate) fn now() -> u64 {
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` may be written.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// The calling thread's number in the kernel.
pub(crate) fn thread() -> u64 {
    // SAFETY: the call takes no arguments.
    unsafe { syscall(SYS_GETTID) as u64 }
}

/// The thread's error number.
pub(crate) fn errno() -> c_int {
    // SAFETY: the address is that of the thread's number.
    unsafe { *__errno_location() }
}

/// Sets the thread's error number.
pub(crate) fn set_errno(number: c_int) {
    // SAFETY: the address is that of the thread's number.
    unsafe { *__errno_location() = number }
}

/// While it lives, no signal handler runs on this thread. Its end restores the thread's error number, too.
pub(crate) struct Quiet(Signals, c_int);

impl Quiet {
    pub(crate) fn new() -> Quiet {
        let (all, mut old, errno) = ([u64::MAX; 16], [0; 16], errno());
        // SAFETY: both sets are of the C library's size. It leaves out the signals that it needs itself.
        unsafe { pthread_sigmask(SIG_SETMASK, &all, &mut old) };
        Quiet(old, errno)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: the set that was in force.
        unsafe { pthread_sigmask(SIG_SETMASK, &self.0, null_mut()) };
        set_errno(self.1);
    }
}
