//! Stacks of callers: return addresses, each stack kept once, and the names of functions.
//!
//! A stack is known by a number, its index in a table of fixed size + 1. A stack that finds no place has
//! number 0, which prints as `?`. Nothing here allocates.

use crate::{region, system, thread};
use std::ffi::{CStr, c_void};
use std::fmt::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Return addresses kept of a stack, the innermost ones.
const DEPTH: usize = 10;
/// Stacks kept, a power of two.
const STACKS: usize = 1 << 16;
/// Entries of the table that a stack may be in.
const TRIES: usize = 16;
/// Most lines printed of a stack.
const SHOWN: usize = 8;

/// Words of a stack: its hash, 0 where no stack is kept, and its calls.
const WORDS: usize = 1 + DEPTH;

static TABLE: OnceLock<&'static [[AtomicU64; WORDS]]> = OnceLock::new();

/// Keeps stacks from now on. Without memory for the table every stack has number 0.
pub fn want() {
    if TABLE.get().is_none()
        && let Some(words) = region::words(STACKS * WORDS)
    {
        // Where another thread was first, its table serves, and nothing writes this one.
        let _ = TABLE.set(words.as_chunks().0);
    }
}

/// The number of this thread's stack; 0 if stacks are not kept or the table has no place.
#[inline(never)]
pub fn here() -> u64 {
    let Some(table) = TABLE.get() else { return 0 };
    // The unwinder may allocate, under a lock of its own. That allocation, and one by a signal handler that
    // interrupts the unwinder, must not walk the stack again.
    let Some(walking) = thread::walking().filter(|walking| !walking.swap(true, Relaxed)) else { return 0 };
    let (mut calls, mut count) = ([0; DEPTH], 0);
    system::each_call(&mut |call| {
        calls[count] = call as u64;
        count += 1;
        count < DEPTH
    });
    walking.store(false, Relaxed);
    let mixed = |hash: u64, call: &u64| (hash ^ call).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let hash = calls.iter().fold(1, mixed).max(1);
    for place in (0..TRIES).map(|n| (hash as usize).wrapping_add(n) % STACKS) {
        let [kept, places @ ..] = &table[place];
        match kept.compare_exchange(0, hash, Relaxed, Relaxed) {
            Ok(_) => places.iter().zip(calls).for_each(|(to, call)| to.store(call, Relaxed)),
            Err(there) if there != hash => continue,
            Err(_) => {}
        }
        return place as u64 + 1;
    }
    0
}

/// The calls of a stack, innermost first, without those of this library. In a program that contains this
/// code, all calls.
fn calls(stack: u64) -> impl Iterator<Item = Call> {
    let kept = stack.checked_sub(1).and_then(|index| TABLE.get()?.get(index as usize));
    let own = Call::at(here as *const () as u64).image;
    let calls = kept.into_iter().flat_map(|stack| &stack[1..]).map(|call| call.load(Relaxed));
    let calls = calls.take_while(|call| *call != 0).map(Call::at);
    calls.skip_while(move |call| call.image == own && !own.is_null() && !is_program(own))
}

/// Whether an image is the program itself. The kernel tells where the program's headers are.
fn is_program(image: *const c_void) -> bool {
    let headers = system::program_headers();
    // The headers are in the image's first page.
    headers.wrapping_sub(image.addr()) < system::page_size()
}

/// Writes the innermost call of a stack, or `?` for number 0.
pub fn write(stack: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match calls(stack).next() {
        Some(call) => write!(f, "{call}"),
        None => f.write_str("?"),
    }
}

/// The calls of a stack without the innermost one, eight at most.
pub fn others(stack: u64) -> impl Iterator<Item = impl fmt::Display> {
    calls(stack).skip(1).take(SHOWN)
}

/// A return address, and its image, file and symbol as the dynamic linker knows them.
struct Call {
    at: u64,
    image: *const c_void,
    file: Option<&'static CStr>,
    symbol: Option<(&'static CStr, u64)>,
}

impl Call {
    fn at(at: u64) -> Call {
        let known = system::symbol_at(at as usize);
        Call { at, image: known.image, file: known.file, symbol: known.symbol }
    }
}

/// `symbol+0x1d (file+0x11aa)`, or as much of it as is known.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |f: &mut fmt::Formatter<'_>, text: &[u8]| {
            text.utf8_chunks().try_for_each(|chunk| f.write_str(chunk.valid()))
        };
        let Some(file) = self.file else { return write!(f, "{:#x}", self.at) };
        let file = file.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if let Some((name, start)) = self.symbol {
            text(f, name.to_bytes())?;
            write!(f, "+{:#x} (", self.at - start)?;
        }
        text(f, file)?;
        write!(f, "+{:#x}", self.at - self.image.addr() as u64)?;
        if self.symbol.is_some() { f.write_char(')') } else { Ok(()) }
    }
}
