//! What is asked of the operating system. `unsafe`: calls of the C library.
//!
//! Nothing here allocates: these run inside `malloc`. No call here is a cancellation point (`pthread_cancel`):
//! a thread that ended inside `malloc` would keep its locks. So files are read, and messages written, by
//! `libc::syscall`.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// Reserves address space without access: it counts neither as data (`RLIMIT_DATA`) nor as committed. `None`
/// if there is none.
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes, libc::PROT_NONE, libc::MAP_NORESERVE)
}

/// Bytes of address space that this process may still map (`RLIMIT_AS`); `usize::MAX` without a limit.
pub(crate) fn address_space_left() -> usize {
    match limit(libc::RLIMIT_AS) {
        usize::MAX => usize::MAX,
        limit => limit.saturating_sub(mapped().unwrap_or(limit / 2)),
    }
}

/// Bytes of data that this process may have (`RLIMIT_DATA`); `usize::MAX` without a limit.
pub(crate) fn data() -> usize {
    limit(libc::RLIMIT_DATA)
}

fn limit(resource: libc::__rlimit_resource_t) -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let known = getrlimit(resource, &mut limit) == 0;
    let limited = known && limit.rlim_cur != libc::RLIM_INFINITY;
    if limited { limit.rlim_cur as usize } else { usize::MAX }
}

/// Bytes that this process has mapped; `None` if the kernel does not tell.
fn mapped() -> Option<usize> {
    let mut text = [0; 128];
    let text = read_file(c"/proc/self/statm", &mut text)?;
    let pages = text.split(|byte| *byte == b' ').next()?;
    let pages: usize = std::str::from_utf8(pages).ok()?.parse().ok()?;
    Some(pages * page_size())
}

fn map(bytes: usize, protection: libc::c_int, flags: libc::c_int) -> Option<NonNull<u8>> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address the kernel chooses touches no memory of ours.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED { None } else { NonNull::new(at.cast()) }
}

/// Address space of its own for one block, `bytes` a multiple of the page, at a multiple of `align`. `None`
/// if there is none.
pub fn map_block(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let slack = align.saturating_sub(page_size());
    // Counted by the kernel, which refuses what is obviously more than there is.
    let whole = map(bytes.checked_add(slack)?, libc::PROT_READ | libc::PROT_WRITE, 0)?;
    let before = whole.addr().get().next_multiple_of(align.max(1)) - whole.addr().get();
    let behind = slack - before;
    // SAFETY: `map` returned `before + bytes + behind` bytes, and no other thread knows their address.
    unsafe {
        let block = whole.byte_add(before);
        if before > 0 {
            unmap_block(whole.as_ptr(), before);
        }
        if behind > 0 {
            unmap_block(block.byte_add(bytes).as_ptr(), behind);
        }
        Some(block)
    }
}

/// Makes a block of [`map_block`] another number of pages long, moved if it `may_move`; what is new reads as
/// zeros. `None`, and it stays as it was, if the kernel cannot.
///
/// # Safety
/// The block is what `map_block` gave, and nobody uses it.
pub unsafe fn resize_block(at: *mut u8, bytes: usize, wanted: usize, may_move: bool) -> Option<NonNull<u8>> {
    let flags = if may_move { libc::MREMAP_MAYMOVE } else { 0 };
    // SAFETY: `map_block` returned the range (`# Safety` above): no other mapping loses pages.
    let moved = unsafe { libc::mremap(at.cast(), bytes, wanted, flags) };
    if moved == libc::MAP_FAILED { None } else { NonNull::new(moved.cast()) }
}

/// Unmaps a block of [`map_block`], or whole pages at one end of it.
///
/// # Safety
/// `map_block` or [`reserve`] returned a range that these pages are in, and no thread uses them.
pub unsafe fn unmap_block(at: *mut u8, bytes: usize) {
    // SAFETY: the pages are of a mapping of ours that is not used (`# Safety` above).
    unsafe { libc::munmap(at.cast(), bytes) };
}

/// Bytes of a page.
pub fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Relaxed) {
        0 => {
            let size = sysconf(libc::_SC_PAGESIZE) as usize;
            SIZE.store(size, Relaxed);
            size
        }
        size => size,
    }
}

/// Sleeps while the word is `value`.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    futex(word, libc::FUTEX_WAIT, value, None);
}

/// Sleeps while the word is `value`, for some nanoseconds at most.
pub(crate) fn futex_wait_for(word: &AtomicU32, value: u32, ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    futex(word, libc::FUTEX_WAIT, value, Some(&time));
}

/// Wakes one sleeper.
pub(crate) fn futex_wake(word: &AtomicU32) {
    futex(word, libc::FUTEX_WAKE, 1, None);
}

/// Wakes every sleeper.
pub(crate) fn futex_wake_all(word: &AtomicU32) {
    futex(word, libc::FUTEX_WAKE, i32::MAX as u32, None);
}

/// The system call `futex`, for a word that only this process uses. `timeout` is for `FUTEX_WAIT` alone.
fn futex(word: &AtomicU32, operation: libc::c_int, value: u32, timeout: Option<&libc::timespec>) {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel reads `word` and `timeout`, which the two references keep alive, and writes nothing.
    // A null timeout is none.
    unsafe {
        libc::syscall(libc::SYS_futex, word, operation, value, timeout.map_or(ptr::null(), ptr::from_ref))
    };
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPUs this process may use.
pub fn cpus_usable() -> u32 {
    // SAFETY: a set of zeros is a valid empty set, and the kernel writes at most its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) {
            0 => libc::CPU_COUNT(&set) as u32,
            _ => 1,
        }
    }
}

/// Reads the start of a file into `room`. `None` if it cannot be read.
pub(crate) fn read_file<'a>(path: &CStr, room: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: the path ends with 0; the kernel writes at most the room's length; the descriptor is ours to
    // close.
    let got = unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags);
        if file < 0 {
            return None;
        }
        let got = libc::syscall(libc::SYS_read, file, room.as_mut_ptr(), room.len());
        libc::syscall(libc::SYS_close, file);
        got
    };
    room.get(..usize::try_from(got).ok()?)
}

/// Another number of what standard error is; -1 while nobody asked for one.
static KEPT_ERROR: AtomicI32 = AtomicI32::new(-1);

/// Keeps what standard error is now for who writes at the program's end, when programs such as `ls` have
/// closed it.
pub fn keep_standard_error() {
    // SAFETY: no memory is involved.
    let kept = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 3) };
    KEPT_ERROR.store(kept, Relaxed);
}

/// Writes to standard error, as far as it takes it; where it was closed, to what was kept of it.
pub fn complain(text: &[u8]) {
    // SAFETY: the kernel reads the text.
    let write = |to: i32| unsafe { libc::syscall(libc::SYS_write, to, text.as_ptr(), text.len()) };
    if write(libc::STDERR_FILENO) < 0 {
        write(KEPT_ERROR.load(Relaxed));
    }
}

/// Says why, and ends the process with a core dump.
pub fn die(why: &str) -> ! {
    complain(why.as_bytes());
    std::process::abort()
}

/// The CPU of the machine this thread runs on, a moment ago.
pub(crate) fn cpu_of_machine() -> u32 {
    u32::try_from(sched_getcpu()).unwrap_or(0)
}

/// Makes what every running thread of the process did before visible here, and what this thread did visible
/// to them. `false` where the kernel cannot.
pub(crate) fn membarrier() -> bool {
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    let barrier = |command: i32| barrier(command, 0, 0);
    barrier(PRIVATE_EXPEDITED) || (barrier(REGISTER_PRIVATE_EXPEDITED) && barrier(PRIVATE_EXPEDITED))
}

/// Aborts the restartable sequence that a CPU is in for this process, or those that all CPUs are in; and what
/// [`membarrier`] does for these CPUs. `false` where the kernel cannot.
pub(crate) fn fence_sequences(cpu: Option<u32>) -> bool {
    const PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 7;
    const REGISTER_PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 8;
    const ONE_CPU: u32 = 1;
    let flags = if cpu.is_some() { ONE_CPU } else { 0 };
    let fence = |command: i32, flags: u32| barrier(command, flags, cpu.unwrap_or(0));
    fence(PRIVATE_EXPEDITED_RSEQ, flags)
        || (fence(REGISTER_PRIVATE_EXPEDITED_RSEQ, 0) && fence(PRIVATE_EXPEDITED_RSEQ, flags))
}

/// The system call `membarrier`; whether the kernel knows the command and did it.
fn barrier(command: i32, flags: u32, cpu: u32) -> bool {
    // SAFETY: the arguments are numbers: the kernel reads and writes no memory of the process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) == 0 }
}

/// Bytes of a thread's area for restartable sequences that the kernel writes; 0 from one that does not say.
pub(crate) fn area_bytes() -> u32 {
    const FEATURE_SIZE: libc::c_ulong = 27;
    getauxval(FEATURE_SIZE) as u32
}

/// Runs `f` without being interrupted by signals.
pub fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: a set of signals is words of bits: zeros are the set without signals.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before = all;
    sigfillset(&mut all);
    pthread_sigmask(libc::SIG_SETMASK, &all, Some(&mut before));
    let result = f();
    pthread_sigmask(libc::SIG_SETMASK, &before, None);
    result
}

/// Lets other threads run for a moment.
pub fn pause() {
    // No thread wakes this word.
    static ASLEEP: AtomicU32 = AtomicU32::new(0);
    futex_wait_for(&ASLEEP, 0, 50_000);
}

/// Asks for `hook` when a thread that calls [`mark_thread`] ends.
pub(crate) fn on_thread_exit(hook: extern "C" fn(*mut c_void)) -> Option<u32> {
    let mut key = 0;
    (pthread_key_create(&mut key, Some(hook)) == 0).then_some(key)
}

/// Says that this thread has something that its end must undo.
pub(crate) fn mark_thread(key: u32) {
    pthread_setspecific(key, ptr::without_provenance(1));
}

/// Asks to be called around every fork.
pub(crate) fn around_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    pthread_atfork(Some(before), Some(parent), Some(child));
}

// The C library's functions. SAFETY: the signatures are those of glibc's headers, a reference in place of a
// pointer that must be valid during the call and an `Option` of one where null may stand. A function is `safe`
// if it asks nothing else of its caller: it takes numbers, such references, and functions that live as long
// as the program, and writes only through the references.
unsafe extern "C" {
    static environ: *const *const libc::c_char;
    safe fn getrlimit(resource: libc::__rlimit_resource_t, limit: &mut libc::rlimit) -> libc::c_int;
    safe fn sysconf(name: libc::c_int) -> libc::c_long;
    safe fn getauxval(kind: libc::c_ulong) -> libc::c_ulong;
    safe fn clock_gettime(clock: libc::clockid_t, time: &mut libc::timespec) -> libc::c_int;
    safe fn sched_getcpu() -> libc::c_int;
    safe fn sigfillset(set: &mut libc::sigset_t) -> libc::c_int;
    safe fn pthread_sigmask(
        how: libc::c_int,
        set: &libc::sigset_t,
        before: Option<&mut libc::sigset_t>,
    ) -> libc::c_int;
    safe fn pthread_key_create(
        key: &mut libc::pthread_key_t,
        hook: Option<extern "C" fn(*mut c_void)>,
    ) -> libc::c_int;
    // The value is only compared with null: the hook of `on_thread_exit` does not read through it.
    safe fn pthread_setspecific(key: libc::pthread_key_t, value: *const c_void) -> libc::c_int;
    safe fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> libc::c_int;
    safe fn atexit(hook: extern "C" fn()) -> libc::c_int;
    safe fn dladdr(at: *const c_void, known: &mut libc::Dl_info) -> libc::c_int;
    // This thread's word, for as long as the thread runs; a `Cell` stays in its thread.
    safe fn __errno_location() -> &'static Cell<libc::c_int>;
}

/// Does something, and leaves `errno` as it was.
#[inline]
pub fn keeping_errno<R>(f: impl FnOnce() -> R) -> R {
    let before = __errno_location().get();
    let result = f();
    __errno_location().set(before);
    result
}

/// Calls `f` with the name and value of every environment variable that is text.
pub fn each_variable(mut f: impl FnMut(&str, &str)) {
    // SAFETY: the environment is an array of texts that ends with null; at a process's start nobody changes
    // it.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            if let Some((name, value)) =
                CStr::from_ptr(*at).to_str().ok().and_then(|text| text.split_once('='))
            {
                f(name, value);
            }
            at = at.add(1);
        }
    }
}

/// A number that nobody outside the process knows.
pub fn secret() -> u64 {
    let mut secret = 0u64;
    // SAFETY: the kernel writes to `secret`, which is ours.
    let got =
        unsafe { libc::syscall(libc::SYS_getrandom, &raw mut secret, size_of::<u64>(), libc::GRND_NONBLOCK) };
    // Before the kernel has any, an address and the time have to do.
    if got == size_of::<u64>() as i64 { secret } else { now_ns() ^ (&raw const secret).addr() as u64 }
}

/// Asks for a call when the process ends.
pub fn at_exit(hook: extern "C" fn()) {
    atexit(hook);
}

/// Calls `note` with the return address of each call on the stack, innermost first, until it answers `false`.
///
/// Inlined: its frame would be one of the few that are kept.
#[inline(always)]
pub(crate) fn each_call(mut note: &mut dyn FnMut(usize) -> bool) {
    extern "C" fn one(context: *mut c_void, note: *mut c_void) -> libc::c_int {
        const GO_ON: libc::c_int = 0;
        const END: libc::c_int = 5;
        // SAFETY: the unwinder passes its context, and what `each_call` passed to it.
        let goes_on = unsafe { (*note.cast::<&mut dyn FnMut(usize) -> bool>())(_Unwind_GetIP(context)) };
        if goes_on { GO_ON } else { END }
    }
    // SAFETY: `one` is called with `note` before this returns.
    unsafe { _Unwind_Backtrace(one, (&raw mut note).cast()) };
}

/// Where the program's headers are: at the start of its image.
pub(crate) fn program_headers() -> usize {
    getauxval(libc::AT_PHDR) as usize
}

/// What the dynamic linker knows of an address.
pub(crate) struct Symbol {
    /// Where the image starts; null where none is known.
    pub(crate) image: *const c_void,
    pub(crate) file: Option<&'static CStr>,
    /// The function's name, and where it starts.
    pub(crate) symbol: Option<(&'static CStr, u64)>,
}

/// Asks the dynamic linker, who may have to finish opening a library first.
pub(crate) fn symbol_at(at: usize) -> Symbol {
    let mut known = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    if dladdr(ptr::without_provenance(at), &mut known) == 0 {
        return Symbol { image: ptr::null(), file: None, symbol: None };
    }
    // SAFETY: the linker's texts stay as long as the image.
    let text = |text: *const libc::c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    let symbol = text(known.dli_sname).map(|name| (name, known.dli_saddr.addr() as u64));
    Symbol { image: known.dli_fbase, file: text(known.dli_fname), symbol }
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        note: extern "C" fn(*mut c_void, *mut c_void) -> libc::c_int,
        argument: *mut c_void,
    ) -> libc::c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}
