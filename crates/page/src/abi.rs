//! Calls from JavaScript. It writes bytes into buffers that it asked for, and gives them back by number.
//!
//! Only the names need `unsafe`: whoever exports a name says that no other function has it.

use slablab_report::files;
use std::cell::RefCell;
use std::sync::{Mutex, Once, PoisonError};

thread_local! {
    /// Buffers that JavaScript fills or reads.
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// What was wrong when a call did not come back.
static DEFECT: Mutex<String> = Mutex::new(String::new());

/// Keeps the words of a panic, which ends the call.
fn watch() {
    static ONCE: Once = Once::new();
    let keep = |info: &std::panic::PanicHookInfo<'_>| {
        *DEFECT.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string();
    };
    ONCE.call_once(|| std::panic::set_hook(Box::new(keep)));
}

fn put(bytes: Vec<u8>) -> usize {
    BUFFERS.with_borrow_mut(|buffers| {
        buffers.push(bytes);
        buffers.len() - 1
    })
}

fn take(buffer: usize) -> Vec<u8> {
    BUFFERS.with_borrow_mut(|buffers| buffers.get_mut(buffer).map(std::mem::take)).unwrap_or_default()
}

/// A buffer of this many bytes, by its number.
#[allow(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn slablab_buffer(bytes: usize) -> usize {
    put(vec![0; bytes])
}

/// Where a buffer's bytes are.
#[allow(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: as for `slablab_buffer`.
#[unsafe(no_mangle)]
extern "C" fn slablab_at(buffer: usize) -> usize {
    BUFFERS.with_borrow(|buffers| buffers.get(buffer).map_or(0, |bytes| bytes.as_ptr() as usize))
}

/// How many bytes a buffer has.
#[allow(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: as for `slablab_buffer`.
#[unsafe(no_mangle)]
extern "C" fn slablab_length(buffer: usize) -> usize {
    BUFFERS.with_borrow(|buffers| buffers.get(buffer).map_or(0, Vec::len))
}

/// Makes a file of a buffer; its name is in another.
#[allow(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: as for `slablab_buffer`.
#[unsafe(no_mangle)]
extern "C" fn slablab_give(name: usize, bytes: usize) {
    files::give(String::from_utf8_lossy(&take(name)).into_owned(), take(bytes));
}

/// Answers the question in a buffer: a buffer with the reply, as JSON.
#[allow(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: as for `slablab_buffer`.
#[unsafe(no_mangle)]
extern "C" fn slablab_ask(question: usize) -> usize {
    watch();
    let reply = crate::answer(&take(question));
    put(serde_json::to_vec(&reply).unwrap_or_default())
}

/// A buffer with the words of the defect that ended a call.
#[allow(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: as for `slablab_buffer`.
#[unsafe(no_mangle)]
extern "C" fn slablab_defect() -> usize {
    put(DEFECT.lock().unwrap_or_else(PoisonError::into_inner).clone().into_bytes())
}
