//! Calls of the operating system. `unsafe`: calls of the C library.
//!
//! Nothing here allocates: these run inside `malloc`. No call here is a cancellation point
//! (`pthread_cancel`): a thread that ended inside `malloc` would keep its locks. So files are read, and
//! messages written, by `libc::syscall`.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// Reserves address space without access: it counts neither as data (`RLIMIT_DATA`) nor as committed. `None`
/// if there is none.
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes, libc::PROT_NONE, libc::MAP_NORESERVE)
}

/// Bytes of address space that this process may still map (`RLIMIT_AS`); `usize::MAX` without a limit.
pub(crate) fn address_space_left() -> usize {
    match limit(libc::RLIMIT_AS as libc::c_int) {
        usize::MAX => usize::MAX,
        limit => limit.saturating_sub(mapped().unwrap_or(limit / 2)),
    }
}

/// Bytes of data that this process may have (`RLIMIT_DATA`); `usize::MAX` without a limit.
pub(crate) fn data() -> usize {
    limit(libc::RLIMIT_DATA as libc::c_int)
}

/// A resource is an `int` for musl and an `unsigned` for glibc.
fn limit(resource: libc::c_int) -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let known = getrlimit(resource, &mut limit) == 0;
    let limited = known && limit.rlim_cur != libc::RLIM_INFINITY;
    if limited { limit.rlim_cur as usize } else { usize::MAX }
}

/// Bytes that this process has mapped; `None` if /proc cannot be read.
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

/// Maps a block of `bytes`, a multiple of the page size, at a multiple of `align`. `None` if the kernel
/// refuses.
pub fn map_block(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let slack = align.saturating_sub(page_size());
    // Counts as committed, so the kernel refuses sizes far beyond the machine's memory.
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

/// Resizes a block of [`map_block`] to `wanted` bytes; the kernel may move it if `may_move`. New pages read
/// as zeros. `None` if the kernel refuses; the block stays as it was then.
///
/// # Safety
/// `map_block` returned the block, and no thread uses it.
pub unsafe fn resize_block(at: *mut u8, bytes: usize, wanted: usize, may_move: bool) -> Option<NonNull<u8>> {
    let flags = if may_move { libc::MREMAP_MAYMOVE } else { 0 };
    // SAFETY: `map_block` returned the range (`# Safety` above): no other mapping loses pages.
    let moved = unsafe { libc::mremap(at.cast(), bytes, wanted, flags) };
    if moved == libc::MAP_FAILED { None } else { NonNull::new(moved.cast()) }
}

/// Unmaps a block of [`map_block`], or whole pages at one end of it.
///
/// # Safety
/// `map_block` or `reserve` returned a range that these pages are in, and no thread uses them.
pub unsafe fn unmap_block(at: *mut u8, bytes: usize) {
    // SAFETY: the pages are of a mapping of ours that is not used (`# Safety` above).
    unsafe { libc::munmap(at.cast(), bytes) };
}

/// Bytes of a page.
pub fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Relaxed) {
        0 => {
            // Not from `sysconf`, whose table of jumps is on a page of the C library that few programs read.
            let size = getauxval(libc::AT_PAGESZ) as usize;
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

/// Sleeps while the word is `value`, for `ns` nanoseconds at most.
pub(crate) fn futex_wait_for(word: &AtomicU32, value: u32, ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    futex(word, libc::FUTEX_WAIT, value, Some(&time));
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
    keeping_errno(|| unsafe {
        libc::syscall(libc::SYS_futex, word, operation, value, timeout.map_or(ptr::null(), ptr::from_ref))
    });
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Number of CPUs that this process may use.
pub fn cpus_usable() -> u32 {
    // SAFETY: a set of zeros is a valid empty set, and the kernel writes at most its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        // Not by the C library's function: 64 KiB of it would be resident for that alone.
        let (bytes, set_at) = (size_of::<libc::cpu_set_t>(), &raw mut set);
        match libc::syscall(libc::SYS_sched_getaffinity, 0, bytes, set_at) {
            1.. => libc::CPU_COUNT(&set) as u32,
            _ => 1,
        }
    }
}

/// Reads the start of a file into `room`. `None` if it cannot be read.
pub fn read_file<'a>(path: &CStr, room: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: the path ends with 0; the kernel writes at most the room's length; no other thread knows the
    // descriptor.
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

/// A duplicate of standard error's descriptor; -1 before [`keep_standard_error`].
static KEPT_ERROR: AtomicI32 = AtomicI32::new(-1);

/// Duplicates standard error, for messages at the program's end: programs such as `ls` have closed it then.
pub fn keep_standard_error() {
    // SAFETY: no memory is involved.
    let kept = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, 3) };
    KEPT_ERROR.store(kept, Relaxed);
}

/// Writes to standard error; if that fails, to the duplicate of it.
pub fn complain(text: &[u8]) {
    // SAFETY: the kernel reads the text.
    let write = |to: i32| unsafe { libc::syscall(libc::SYS_write, to, text.as_ptr(), text.len()) };
    if write(libc::STDERR_FILENO) < 0 {
        write(KEPT_ERROR.load(Relaxed));
    }
}

/// Page faults of this process so far: minor ones, and major ones, which waited for a disk.
pub fn faults() -> (u64, u64) {
    let mut usage = libc::rusage::default();
    getrusage(libc::RUSAGE_SELF, &mut usage);
    (usage.ru_minflt as u64, usage.ru_majflt as u64)
}

/// Prints `why` and ends the process with a core dump.
pub fn die(why: &str) -> ! {
    complain(why.as_bytes());
    std::process::abort()
}

/// The machine's CPU that this thread runs on; the thread may be moved at any time.
pub(crate) fn cpu_of_machine() -> u32 {
    u32::try_from(sched_getcpu()).unwrap_or(0)
}

/// Runs a memory barrier on every running thread of the process. `false` if the kernel has none.
pub(crate) fn membarrier() -> bool {
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    let barrier = |command: i32| barrier(command, 0, 0);
    barrier(PRIVATE_EXPEDITED) || (barrier(REGISTER_PRIVATE_EXPEDITED) && barrier(PRIVATE_EXPEDITED))
}

/// Aborts this process's restartable sequence on one CPU, or those on all CPUs, and runs a memory barrier
/// there as [`membarrier`] does. `false` if the kernel cannot.
pub(crate) fn fence_sequences(cpu: Option<u32>) -> bool {
    const PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 7;
    const REGISTER_PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 8;
    const ONE_CPU: u32 = 1;
    let flags = if cpu.is_some() { ONE_CPU } else { 0 };
    let fence = |command: i32, flags: u32| barrier(command, flags, cpu.unwrap_or(0));
    fence(PRIVATE_EXPEDITED_RSEQ, flags)
        || (fence(REGISTER_PRIVATE_EXPEDITED_RSEQ, 0) && fence(PRIVATE_EXPEDITED_RSEQ, flags))
}

/// The system call `membarrier`. `false` if the kernel does not know the command, or refuses.
fn barrier(command: i32, flags: u32, cpu: u32) -> bool {
    // SAFETY: the arguments are numbers: the kernel reads and writes no memory of the process.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) == 0 })
}

/// Bytes that the kernel writes of a thread's area for restartable sequences; 0 from an older kernel, which
/// does not state it.
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
    sleep(50_000);
}

/// Sleeps for `ns` nanoseconds; less if a signal handler runs.
pub fn sleep(ns: u64) {
    // No thread wakes this word.
    static ASLEEP: AtomicU32 = AtomicU32::new(0);
    futex_wait_for(&ASLEEP, 0, ns);
}

/// Starts a thread that runs no signal handler and that no thread waits for. The C library may allocate
/// memory for it. `false` if there can be none.
pub fn start_thread(run: extern "C" fn(*mut c_void) -> *mut c_void, stack_bytes: usize) -> bool {
    let mut attributes = MaybeUninit::uninit();
    keeping_errno(|| {
        if pthread_attr_init(&mut attributes) != 0 {
            return false;
        }
        let mut thread = MaybeUninit::uninit();
        let started = pthread_attr_setstacksize(&mut attributes, stack_bytes) == 0
            && pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED) == 0
            && without_signals(|| pthread_create(&mut thread, &attributes, run, ptr::null_mut())) == 0;
        pthread_attr_destroy(&mut attributes);
        started
    })
}

/// Has the C library call `hook` at the end of each thread that called [`mark_thread`] with the returned key.
pub(crate) fn on_thread_exit(hook: extern "C" fn(*mut c_void)) -> Option<u32> {
    let mut key = 0;
    (pthread_key_create(&mut key, Some(hook)) == 0).then_some(key)
}

/// Has the hook of [`on_thread_exit`] called when this thread ends.
pub(crate) fn mark_thread(key: u32) {
    pthread_setspecific(key, ptr::without_provenance(1));
}

/// Has `before` called before every fork, `parent` and `child` after it.
pub(crate) fn around_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    pthread_atfork(Some(before), Some(parent), Some(child));
}

// The C library's functions. SAFETY: the signatures are those of glibc's headers, a reference in place of a
// pointer that must be valid during the call and an `Option` of one where null may stand. A function is
// `safe` if it asks nothing else of its caller: it takes numbers, such references, and functions that live as
// long as the program, and writes only through the references.
unsafe extern "C" {
    static environ: *const *const libc::c_char;
    safe fn getrlimit(resource: libc::c_int, limit: &mut libc::rlimit) -> libc::c_int;
    safe fn getauxval(kind: libc::c_ulong) -> libc::c_ulong;
    safe fn clock_gettime(clock: libc::clockid_t, time: &mut libc::timespec) -> libc::c_int;
    safe fn getrusage(who: libc::c_int, usage: &mut libc::rusage) -> libc::c_int;
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
    safe fn pthread_attr_init(attributes: &mut MaybeUninit<libc::pthread_attr_t>) -> libc::c_int;
    // Those below get attributes that `pthread_attr_init` made.
    safe fn pthread_attr_setstacksize(
        attributes: &mut MaybeUninit<libc::pthread_attr_t>,
        bytes: libc::size_t,
    ) -> libc::c_int;
    safe fn pthread_attr_setdetachstate(
        attributes: &mut MaybeUninit<libc::pthread_attr_t>,
        state: libc::c_int,
    ) -> libc::c_int;
    safe fn pthread_attr_destroy(attributes: &mut MaybeUninit<libc::pthread_attr_t>) -> libc::c_int;
    // `argument` is passed on to `run`, and not read through.
    safe fn pthread_create(
        thread: &mut MaybeUninit<libc::pthread_t>,
        attributes: &MaybeUninit<libc::pthread_attr_t>,
        run: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> libc::c_int;
    safe fn atexit(hook: extern "C" fn()) -> libc::c_int;
    safe fn dladdr(at: *const c_void, known: &mut libc::Dl_info) -> libc::c_int;
    // This thread's word, for as long as the thread runs; a `Cell` stays in its thread.
    safe fn __errno_location() -> &'static Cell<libc::c_int>;
}

/// Calls `f`, and restores `errno`.
#[inline]
pub fn keeping_errno<R>(f: impl FnOnce() -> R) -> R {
    let before = __errno_location().get();
    let result = f();
    __errno_location().set(before);
    result
}

/// Whether the process has rights that its user does not have (`AT_SECURE`): a set-user-ID or set-group-ID
/// program, or one with file capabilities.
fn has_more_rights() -> bool {
    getauxval(libc::AT_SECURE) != 0
}

/// Calls `f` with the name and value of every environment variable that begins with `prefix` and is UTF-8. In
/// a process with more rights than its user there is none: the environment is the user's, who may not command
/// the process.
pub fn each_variable(prefix: &[u8], mut f: impl FnMut(&str, &str)) {
    if has_more_rights() {
        return;
    }
    // SAFETY: the environment is an array of texts that ends with null. It is read when the process first
    // allocates, usually before another thread could change it.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            // Most begin otherwise: neither their length nor their other bytes are looked at. The text's end
            // is in no prefix, so nothing behind it is read.
            let begins = (0..).zip(prefix).all(|(index, byte)| *(*at).add(index) as u8 == *byte);
            if begins
                && let Some((name, value)) =
                    CStr::from_ptr(*at).to_str().ok().and_then(|text| text.split_once('='))
            {
                f(name, value);
            }
            at = at.add(1);
        }
    }
}

/// A random number that is not known outside of the process.
pub fn secret() -> u64 {
    let mut secret = 0u64;
    // SAFETY: the kernel writes to `secret`, 8 bytes at most.
    let got =
        unsafe { libc::syscall(libc::SYS_getrandom, &raw mut secret, size_of::<u64>(), libc::GRND_NONBLOCK) };
    // Early after boot the kernel has no random numbers: an address and the time serve then.
    if got == size_of::<u64>() as i64 { secret } else { now_ns() ^ (&raw const secret).addr() as u64 }
}

/// Has `hook` called when the process ends.
pub fn at_exit(hook: extern "C" fn()) {
    atexit(hook);
}

/// Calls `note` with the return address of each call on the stack, innermost first, until it answers `false`.
/// In a signal handler the last address is the one at which the handler interrupted the thread.
///
/// The walk ends there because the interrupted function's caller cannot be found: compilers keep their unwind
/// tables right at calls, not at every instruction. LLVM can move the instruction that frees a frame before a
/// branch, and leave its entry in the table behind the branch. Between the two, the unwinder takes another
/// word of the stack for the return address, and reads the code there.
///
/// Inlined: a frame of its own would take the place of one that is recorded.
#[inline(always)]
pub(crate) fn each_call(mut note: &mut dyn FnMut(usize) -> bool) {
    extern "C" fn one(context: *mut c_void, note: *mut c_void) -> libc::c_int {
        const GO_ON: libc::c_int = 0;
        const END: libc::c_int = 5;
        // Not 0 if the address is of an instruction that a signal interrupted, and not behind a call.
        let mut interrupted = 0;
        // SAFETY: the unwinder passes its context, and the address of `note` that `each_call` passed to it.
        let goes_on = unsafe {
            let call = _Unwind_GetIPInfo(context, &mut interrupted);
            (*note.cast::<&mut dyn FnMut(usize) -> bool>())(call)
        };
        if goes_on && interrupted == 0 { GO_ON } else { END }
    }
    // SAFETY: `one` is called with `note` before this returns.
    unsafe { _Unwind_Backtrace(one, (&raw mut note).cast()) };
}

/// Address of the program's headers, in the first page of its image.
pub(crate) fn program_headers() -> usize {
    getauxval(libc::AT_PHDR) as usize
}

/// An address's image, file and function, as the dynamic linker knows them.
pub(crate) struct Symbol {
    /// Address of the image; null if unknown.
    pub(crate) image: *const c_void,
    pub(crate) file: Option<&'static CStr>,
    /// The function's name and address.
    pub(crate) symbol: Option<(&'static CStr, u64)>,
}

/// Looks an address up. The dynamic linker may first wait for a library that is being opened.
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
    fn _Unwind_GetIPInfo(context: *mut c_void, interrupted: &mut libc::c_int) -> usize;
}
