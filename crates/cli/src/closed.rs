//! Whether standard output can take bytes. `unsafe`: the attribute that puts a function into a section.
//!
//! The standard library opens /dev/null in the place of a closed standard output before `main` runs, and
//! takes the refusal of a descriptor that is open for reading alone for success. So an answer would vanish
//! without an error. The loader calls [`look`] before the library is ready.

#![expect(unsafe_code, reason = "the attribute link_section")]

use rustix::fs::{OFlags, fcntl_getfl};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// The C library's start calls each function of this section.
// SAFETY: the section holds pointers to functions that take no argument they must use and return nothing.
// `look` allocates nothing, takes no lock, and needs nothing that the standard library sets up: one system
// call and one store.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let flags = fcntl_getfl(rustix::stdio::stdout());
    let takes = flags.is_ok_and(|flags| flags.intersection(OFlags::RWMODE) != OFlags::RDONLY);
    CLOSED.store(!takes, Relaxed);
}

/// Whether standard output was closed, or not open for writing, when the program began.
pub(crate) fn output() -> bool {
    CLOSED.load(Relaxed)
}
