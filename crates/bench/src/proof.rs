//! Figures and addresses from the C library. `unsafe`: calls it.

use rustix::process::Pid;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the kernel counts for a process, since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// CPU time of all threads outside the kernel, in ns.
    pub(crate) user_ns: u64,
    /// CPU time of all threads in the kernel, in ns.
    pub(crate) system_ns: u64,
    /// Page faults, of memory and of files.
    pub(crate) faults: u64,
    /// How often the kernel took the CPU away, or the thread gave it up.
    pub(crate) switches: u64,
}

/// The kernel's counts for this process.
pub(crate) fn usage() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

/// The kernel's counts for this thread.
pub(crate) fn thread_usage() -> Usage {
    usage_of(libc::RUSAGE_THREAD)
}

fn usage_of(who: libc::c_int) -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes into `usage`, of which every bit pattern is a value, zeros too.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    Usage::of(&usage)
}

impl Usage {
    fn of(usage: &libc::rusage) -> Usage {
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Usage {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            faults: (usage.ru_minflt + usage.ru_majflt) as u64,
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
        }
    }
}

/// How a child ended, and what it and the children that it waited for took.
pub(crate) struct Ended {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) usage: Usage,
    /// The largest resident set of one process.
    pub(crate) peak_bytes: u64,
}

/// Waits for a child's end. Nothing else may wait for it.
pub(crate) fn end_of(child: Pid) -> io::Result<Ended> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the call writes into `status` and `usage`, of which every bit pattern is a value, zeros too.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(child.as_raw_nonzero().get(), &mut status, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    match waited {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(Ended {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            usage: Usage::of(&usage),
            peak_bytes: usage.ru_maxrss as u64 * 1024,
        }),
    }
}

/// Has a command begin in a copy of this process's own memory, not in the memory itself: the kernel counts
/// the peak of what a process was before it executed a program as the program's.
pub(crate) fn apart(command: &mut Command) -> &mut Command {
    // SAFETY: the function does nothing; that there is one has the library call `fork`.
    unsafe { command.pre_exec(|| Ok(())) }
}

/// The C library's `free(NULL)`.
pub(crate) fn free_null() {
    // SAFETY: null may be freed.
    unsafe { libc::free(std::ptr::null_mut()) }
}

/// Bytes that the C library has allocated, in all arenas and as mappings. musl does not count them.
pub(crate) fn libc_bytes() -> usize {
    #[cfg(target_env = "musl")]
    return 0;
    #[cfg(not(target_env = "musl"))]
    {
        // SAFETY: the function has no preconditions.
        let info = unsafe { libc::mallinfo2() };
        info.uordblks + info.hblkhd
    }
}

/// Returns an error if `malloc` is not the C library's: a preloaded library would be measured as glibc.
pub(crate) fn malloc_is_libc() -> Result<(), String> {
    if cfg!(target_env = "musl") {
        return Err("this program is linked with musl, whose malloc is not this machine's: \
                    compare programs (`bench -- PROGRAM`), or build slablab for glibc"
            .into());
    }
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: the name ends with a zero byte, and `info` may be written.
    let found = unsafe {
        let malloc = libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr());
        libc::dladdr(malloc, &mut info)
    };
    if found == 0 || info.dli_fname.is_null() {
        return Err("cannot find the library that malloc is in: run without LD_PRELOAD".into());
    }
    // SAFETY: `dladdr` succeeded, so the name is a C string of the loader.
    let file = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    match file.contains("libc.so") || file.contains("libc-") {
        true => Ok(()),
        false => Err(format!("malloc is that of {file}, not the C library's: run without LD_PRELOAD")),
    }
}
