//! Figures and addresses from the C library. `unsafe`: calls it.

use std::ffi::CStr;
use std::mem::MaybeUninit;

/// What the kernel counts for a process, since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// CPU time of all threads outside the kernel, in ns.
    pub(crate) user_ns: u64,
    /// CPU time of all threads in the kernel, in ns.
    pub(crate) system_ns: u64,
    /// Page faults, of memory and of files.
    pub(crate) faults: u64,
}

/// The kernel's counts for this process.
pub(crate) fn usage() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes into `usage`, of which every bit pattern is a value, zeros too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        faults: (usage.ru_minflt + usage.ru_majflt) as u64,
    }
}

/// The C library's `free(NULL)`.
pub(crate) fn free_null() {
    // SAFETY: null may be freed.
    unsafe { libc::free(std::ptr::null_mut()) }
}

/// Bytes that the C library has allocated, in all arenas and as mappings.
pub(crate) fn libc_bytes() -> usize {
    // SAFETY: the function has no preconditions.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// Returns an error if `malloc` is not the C library's: a preloaded library would be measured as glibc.
pub(crate) fn malloc_is_libc() -> Result<(), String> {
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
