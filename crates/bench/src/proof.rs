//! Figures and addresses from the C library. `unsafe`: calls it.

use std::ffi::CStr;

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
