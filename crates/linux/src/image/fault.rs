//! Faults of a tree's code: a trap of BUG() or WARN(), a bad address, a call of a symbol that is only data, a
//! loop without an end.
//! `unsafe`: a signal handler that ends the running call of the image in which the fault was, and a timer of
//! the thread's CPU time, whose signal finds calls that do not end.
//!
//! The handler knows the images of all threads by their addresses. It writes what it saw into the image's
//! place in the table, and lets the thread go on at `slablab_escape`. Faults elsewhere are left to whoever
//! had the signal before.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// Images at once.
const PLACES: usize = 256;
/// Return addresses that a fault keeps.
pub(crate) const CHAIN: usize = 24;
/// Seconds of CPU time after which a call does not end any more.
pub(crate) const ENDLESS_S: u32 = 20;

/// What an image's fault was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) signal: i32,
    /// The instruction.
    pub(crate) at: u64,
    /// The address that it could not reach.
    pub(crate) address: u64,
    /// Addresses of the image's code on the stack, innermost first; 0 ends them.
    pub(crate) chain: [u64; CHAIN],
}

struct Place {
    /// 0: free.
    start: AtomicU64,
    end: AtomicU64,
    code_end: AtomicU64,
    /// The address of the word with the running call, and that of slablab_escape.
    current: AtomicU64,
    escape: AtomicU64,
    /// How many calls were made.
    calls: AtomicU64,
    /// How many had been made at the last tick of the timer, and ticks since then.
    ticked: [AtomicU64; 2],
    fault: UnsafeCell<Option<Fault>>,
}

// SAFETY: an image is used by one thread at a time; its fault is written by that thread's signal handler and
// read by that thread afterwards.
unsafe impl Sync for Place {}

static TABLE: [Place; PLACES] = [const {
    Place {
        start: AtomicU64::new(0),
        end: AtomicU64::new(0),
        code_end: AtomicU64::new(0),
        current: AtomicU64::new(0),
        escape: AtomicU64::new(0),
        calls: AtomicU64::new(0),
        ticked: [AtomicU64::new(0), AtomicU64::new(0)],
        fault: UnsafeCell::new(None),
    }
}; PLACES];

/// An image's place in the table of the handler, and its timer.
#[derive(Debug)]
pub(crate) struct Watched(usize, Option<libc::timer_t>);

impl Watched {
    /// Faults between `start` and `end` are the image's from now on. `None`: too many images.
    pub(crate) fn new((start, end): (u64, u64), code_end: u64, current: u64, escape: u64) -> Option<Watched> {
        static HANDLED: Once = Once::new();
        HANDLED.call_once(handle_signals);
        for (index, place) in TABLE.iter().enumerate() {
            // The end stays 0 until all is written, so the handler skips a place that is half made.
            if place.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                place.code_end.store(code_end, Ordering::Relaxed);
                place.current.store(current, Ordering::Relaxed);
                place.escape.store(escape, Ordering::Relaxed);
                place.end.store(end, Ordering::Release);
                return Some(Watched(index, timer()));
            }
        }
        None
    }

    /// A call of the image begins.
    #[inline]
    pub(crate) fn begins(&self) {
        let calls = &TABLE[self.0].calls;
        calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The fault that ended the last call, if one did.
    pub(crate) fn take(&self) -> Option<Fault> {
        // SAFETY: the handler wrote it on this thread, before the call returned.
        unsafe { (*TABLE[self.0].fault.get()).take() }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: the timer is this image's, and is deleted once.
        self.1.into_iter().for_each(|timer| unsafe {
            libc::timer_delete(timer);
        });
        TABLE[self.0].end.store(0, Ordering::Release);
        TABLE[self.0].start.store(0, Ordering::Release);
    }
}

const SIGNALS: [i32; 6] =
    [libc::SIGILL, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGTRAP, libc::SIGVTALRM];

/// A timer that sends a signal to this thread after each second of its CPU time. `None`: the system has none
/// to give, and calls without an end are not found.
fn timer() -> Option<libc::timer_t> {
    // SAFETY: plain calls with valid structures.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGVTALRM;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer: libc::timer_t = std::mem::zeroed();
        if libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut event, &raw mut timer) != 0 {
            return None;
        }
        let second = libc::timespec { tv_sec: 1, tv_nsec: 0 };
        let each = libc::itimerspec { it_interval: second, it_value: second };
        libc::timer_settime(timer, 0, &raw const each, std::ptr::null_mut());
        Some(timer)
    }
}

/// Whether the call that runs has been the same one for [`ENDLESS_S`] ticks.
fn is_endless(place: &Place) -> bool {
    let calls = place.calls.load(Ordering::Relaxed);
    let [seen, ticks] = &place.ticked;
    if seen.swap(calls, Ordering::Relaxed) != calls {
        ticks.store(0, Ordering::Relaxed);
    }
    ticks.fetch_add(1, Ordering::Relaxed) >= u64::from(ENDLESS_S)
}

/// Who had the signals before.
struct Before(UnsafeCell<[Option<libc::sigaction>; SIGNALS.len()]>);

// SAFETY: written once, before the handler is set; read by handlers afterwards.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new([None; SIGNALS.len()]));

fn handle_signals() {
    for (index, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: plain calls of sigaction with valid structures; `BEFORE` is written before this handler can
        // read its entry.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut before);
            (*BEFORE.0.get())[index] = Some(before);
            let mut own: libc::sigaction = std::mem::zeroed();
            own.sa_sigaction =
                handler as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
            own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER | libc::SA_RESTART;
            libc::sigaction(signal, &raw const own, std::ptr::null_mut());
        }
    }
}

extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over the context of the interrupted thread, which this handler may change. The
    // stack of a thread that runs an image holds at least its call.
    unsafe {
        let is_tick = signal == libc::SIGVTALRM;
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let at = registers[libc::REG_RIP as usize] as u64;
        let stack = registers[libc::REG_RSP as usize] as u64;
        // A call of a wild address: who called it is on top of the stack.
        let caller = || if is_tick { None } else { place_of(*(stack as usize as *const u64)) };
        let place = place_of(at).or_else(caller);
        if is_tick && !place.is_some_and(is_endless) {
            return;
        }
        let Some(place) = place else { return pass_on(signal, info, context) };
        let call = *(place.current.load(Ordering::Relaxed) as usize as *const u64);
        if call == 0 {
            return pass_on(signal, info, context);
        }
        let mut fault = Fault { signal, at, address: (*info).si_addr() as u64, chain: [0; CHAIN] };
        // The stack at the call is the call's ninth word.
        let bottom = *((call + 64) as usize as *const u64);
        let mut found = 0;
        for slot in (stack..bottom).step_by(8) {
            let word = *(slot as usize as *const u64);
            let is_code =
                place.start.load(Ordering::Relaxed) <= word && word < place.code_end.load(Ordering::Relaxed);
            if is_code && found < CHAIN {
                fault.chain[found] = word;
                found += 1;
            }
        }
        *place.fault.get() = Some(fault);
        registers[libc::REG_RIP as usize] = place.escape.load(Ordering::Relaxed) as i64;
        registers[libc::REG_RDI as usize] = call as i64;
    }
}

/// The image that an address is in.
fn place_of(address: u64) -> Option<&'static Place> {
    TABLE.iter().find(|place| {
        let end = place.end.load(Ordering::Acquire);
        end != 0 && place.start.load(Ordering::Relaxed) <= address && address < end
    })
}

/// The fault is not an image's.
unsafe fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let index = SIGNALS.iter().position(|known| *known == signal);
    // SAFETY: as the kernel would have called the handler before; without one, the default is set again, and
    // the instruction that faulted runs once more.
    unsafe {
        let before = index.and_then(|index| (*BEFORE.0.get())[index]);
        let Some(before) = before.filter(|before| before.sa_sigaction > libc::SIG_IGN) else {
            libc::signal(signal, libc::SIG_DFL);
            return;
        };
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(before.sa_sigaction);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(i32) = std::mem::transmute(before.sa_sigaction);
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks while one call runs, and while calls follow each other.
    #[test]
    fn a_call_that_lasts_so_many_ticks_is_endless() {
        let place = Place {
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            code_end: AtomicU64::new(0),
            current: AtomicU64::new(0),
            escape: AtomicU64::new(0),
            calls: AtomicU64::new(7),
            ticked: [AtomicU64::new(0), AtomicU64::new(0)],
            fault: UnsafeCell::new(None),
        };
        let endless_after = || (0..100).position(|_| is_endless(&place));
        assert_eq!(endless_after(), Some(ENDLESS_S as usize));
        place.calls.store(8, Ordering::Relaxed);
        assert_eq!(endless_after(), Some(ENDLESS_S as usize), "the next call begins anew");
        for call in 9..9 + 3 * u64::from(ENDLESS_S) {
            place.calls.store(call, Ordering::Relaxed);
            assert!(!is_endless(&place), "call {call} has just begun");
        }
    }
}
