//! What the C library says of itself. `unsafe`: asks it.

use std::ffi::CStr;

/// Bytes that the C library has handed out, in all arenas and as mappings.
pub(crate) fn libc_bytes() -> usize {
    // SAFETY: it has no conditions.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// Says so if `malloc` is not the C library's: a preloaded library would stand in its row.
pub(crate) fn malloc_is_libc() -> Result<(), String> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: the name is a text, and `info` is there to be written.
    let found = unsafe {
        let malloc = libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr());
        libc::dladdr(malloc, &mut info)
    };
    if found == 0 || info.dli_fname.is_null() {
        return Err("nobody knows where malloc is".into());
    }
    // SAFETY: `dladdr` answered with a text of the loader's.
    let file = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    match file.contains("libc.so") || file.contains("libc-") {
        true => Ok(()),
        false => Err(format!("malloc is that of {file}, not the C library's: run without LD_PRELOAD")),
    }
}
