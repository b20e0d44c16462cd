//! Functions of the C library, and numbers of Linux. `unsafe`: declares and calls them.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;

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
    pub(crate) fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub(crate) fn close(fd: c_int) -> c_int;
    pub(crate) fn read(fd: c_int, to: *mut c_void, bytes: usize) -> isize;
    pub(crate) fn ftruncate(fd: c_int, bytes: i64) -> c_int;
    pub(crate) fn fallocate(fd: c_int, mode: c_int, offset: i64, bytes: i64) -> c_int;
    // Null in a process with more rights than its user, who may not command it.
    #[link_name = "secure_getenv"]
    pub(crate) fn getenv(name: *const c_char) -> *const c_char;
    pub(crate) fn getpid() -> c_int;
    pub(crate) fn getppid() -> c_int;
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
pub(crate) const O_CREATE_NEW: c_int = 0o302; // read and write
pub(crate) const O_RDWR: c_int = 2;
pub(crate) const O_CLOEXEC: c_int = 0o2000000;
pub(crate) const MODE: c_int = 0o600;
const CLOCK_MONOTONIC: c_int = 1;
const SIG_SETMASK: c_int = 2;
#[cfg(target_arch = "x86_64")]
const SYS_GETTID: c_long = 186;
#[cfg(not(target_arch = "x86_64"))]
const SYS_GETTID: c_long = 178;

/// The library that an address is in.
pub(crate) fn library_of(at: *const c_void) -> Option<Found> {
    let mut found = MaybeUninit::<Found>::zeroed();
    // SAFETY: `found` may be written, and zeros are a value of it.
    unsafe { (dladdr(at, found.as_mut_ptr()) != 0).then(|| found.assume_init()) }
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
