//! Sections, and the gate that a fork closes.
//!
//! A thread that holds a lock or a slot is in a section: a counter of its own says so, without an atomic
//! operation. A fork makes all others leave theirs and stay out: it closes the gate, asks the kernel for a
//! barrier on every thread, and waits until no counter is above zero. A thread at the outermost entry looks
//! at the gate after it counted itself; one that is inside goes on.
//!
//! **Passes.** The gate is closed while the C library forks, and the C library then takes locks of its own:
//! the one of the list of streams. A thread that holds such a lock and waits at the gate for memory would
//! wait for ever, as would the fork. So malloc enters a section for a whole request, a *pass*: then no lock
//! that it takes waits at the gate. A thread that gets no pass within [`PATIENCE_NS`] is served without one,
//! as a signal handler is.

use crate::{area, local, system, thread};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*, compiler_fence, fence};

/// Closed while somebody forks: the forking thread's own sections are let through.
static GATE: AtomicU32 = AtomicU32::new(0);
/// Sections of threads without a number.
static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
/// Whether the kernel has no barrier for all threads: then entering a section takes one of its own.
static NO_BARRIER: AtomicBool = AtomicBool::new(false);

/// Holding a lock or a slot; fork waits until nobody does.
#[derive(Debug)]
pub(crate) struct Section {
    /// Where this section is counted: a thread may get its number inside one.
    counter: &'static AtomicU32,
}

/// How long a request waits for a fork: many times what a fork of a large process takes with the gate closed.
const PATIENCE_NS: u64 = 5_000_000;

impl Section {
    #[inline]
    pub(crate) fn enter() -> Section {
        let Some(counter) = thread::sections() else { return Section::enter_elsewhere() };
        let depth = counter.load(Relaxed);
        counter.store(depth + 1, Relaxed);
        // The gate is read after the count is visible: the one who closes it sees to that with a barrier on
        // this thread.
        compiler_fence(SeqCst);
        // Acquire: pairs with the gate's opening after a fork.
        if depth == 0 && (GATE.load(Acquire) != 0 || NO_BARRIER.load(Relaxed)) {
            Section::wait(counter);
        }
        Section { counter }
    }

    #[cold]
    fn enter_elsewhere() -> Section {
        come(&ELSEWHERE);
        while local::sections() == 1 && GATE.load(SeqCst) != 0 {
            go(&ELSEWHERE);
            wait_for_gate();
            come(&ELSEWHERE);
        }
        Section { counter: &ELSEWHERE }
    }

    #[cold]
    fn wait(counter: &AtomicU32) {
        fence(SeqCst);
        while GATE.load(SeqCst) != 0 {
            counter.store(0, SeqCst);
            wait_for_gate();
            counter.store(1, SeqCst);
        }
    }
}

/// A section around a whole request. What the request locks does not wait at the gate; what interrupts it
/// finds it as if it were in no section (`is_in`).
#[derive(Debug)]
pub struct Pass {
    /// How many sections were passes before.
    before: usize,
    _section: Section,
}

impl Pass {
    /// `None` for a signal handler in the middle of a request, and where the gate stays closed for longer
    /// than a request should wait.
    #[inline]
    pub(crate) fn enter() -> Option<Pass> {
        if is_interrupted() { None } else { Pass::try_enter().or_else(Pass::enter_patiently) }
    }

    /// [`Pass::enter`] that does not wait.
    pub(crate) fn now() -> Option<Pass> {
        if is_interrupted() { None } else { Pass::try_enter() }
    }

    /// `None` where the gate is closed.
    #[inline]
    fn try_enter() -> Option<Pass> {
        // In a section a thread gets no number.
        thread::enter();
        let (counter, before) = (counter(), local::passes());
        let depth = if std::ptr::eq(counter, &ELSEWHERE) {
            come(&ELSEWHERE);
            local::sections()
        } else {
            let depth = counter.load(Relaxed) + 1;
            counter.store(depth, Relaxed);
            // As in `Section::enter`: the gate is read after the count is visible.
            compiler_fence(SeqCst);
            if NO_BARRIER.load(Relaxed) {
                fence(SeqCst);
            }
            depth as usize
        };
        let section = Section { counter };
        // Acquire: pairs with the gate's opening after a fork.
        if depth == 1 && GATE.load(Acquire) != 0 {
            return None;
        }
        local::set_passes(depth);
        Some(Pass { before, _section: section })
    }

    #[cold]
    fn enter_patiently() -> Option<Pass> {
        let until = system::now_ns() + PATIENCE_NS;
        loop {
            system::futex_wait_for(&GATE, 1, PATIENCE_NS);
            if let Some(pass) = Pass::try_enter() {
                return Some(pass);
            }
            if system::now_ns() >= until {
                return None;
            }
        }
    }
}

impl Drop for Pass {
    #[inline]
    fn drop(&mut self) {
        // The section is left afterwards: fields are dropped after `drop` ran.
        local::set_passes(self.before);
    }
}

impl Drop for Section {
    #[inline]
    fn drop(&mut self) {
        if std::ptr::eq(self.counter, &ELSEWHERE) {
            go(&ELSEWHERE);
        } else {
            compiler_fence(SeqCst);
            self.counter.store(self.counter.load(Relaxed) - 1, Release);
        }
    }
}

/// Counts this thread in once more, whatever the gate says.
fn come(counter: &'static AtomicU32) {
    if std::ptr::eq(counter, &ELSEWHERE) {
        local::set_sections(local::sections() + 1);
        ELSEWHERE.fetch_add(1, SeqCst);
    } else {
        counter.store(counter.load(Relaxed) + 1, SeqCst);
    }
}

/// Takes that back.
fn go(counter: &'static AtomicU32) {
    if std::ptr::eq(counter, &ELSEWHERE) {
        ELSEWHERE.fetch_sub(1, SeqCst);
        local::set_sections(local::sections() - 1);
    } else {
        counter.store(counter.load(Relaxed) - 1, SeqCst);
    }
}

/// How many sections this thread is in.
fn depth() -> usize {
    thread::sections().map_or_else(local::sections, |counter| counter.load(Relaxed) as usize)
}

/// Where this thread counts its sections.
fn counter() -> &'static AtomicU32 {
    thread::sections().unwrap_or(&ELSEWHERE)
}

/// Whether this code is a signal handler that interrupted its thread while the thread held a lock or a slot,
/// or was in a hot operation.
#[inline]
pub(crate) fn is_interrupted() -> bool {
    area::is_hidden() || is_in()
}

/// Whether this thread is in a section that is no pass.
#[inline]
pub(crate) fn is_in() -> bool {
    match thread::sections() {
        Some(counter) => counter.load(Relaxed) as usize > local::passes(),
        // It gets a number before it holds anything.
        None => {
            thread::enter();
            depth() > local::passes()
        }
    }
}

fn wait_for_gate() {
    while GATE.load(Acquire) != 0 {
        system::futex_wait(&GATE, 1);
    }
}

/// Makes forks safe. May allocate: what it allocates from has started.
pub(crate) fn watch_forks() {
    // Known before anybody is in a section: one who entered without a fence could be overlooked.
    if !system::membarrier() {
        NO_BARRIER.store(true, SeqCst);
    }
    system::around_fork(before_fork, after_fork, in_child);
}

/// Waits until no other thread is in a section, and keeps them out. Two threads that fork at once take turns.
/// While it lasts, this thread is in a section itself, so that the gate holds neither it nor its signal
/// handlers.
extern "C" fn before_fork() {
    thread::enter();
    let (mine, nested) = (counter(), depth() > 0);
    come(mine);
    // A signal handler in the middle of a section: those whom the gate would wait for may wait for this
    // thread.
    if nested {
        return;
    }
    while GATE.compare_exchange(0, 1, SeqCst, SeqCst).is_err() {
        go(mine);
        wait_for_gate();
        come(mine);
    }
    if !system::membarrier() {
        NO_BARRIER.store(true, SeqCst);
    }
    let busy = |counter: &'static AtomicU32| counter.load(Acquire) > 0 && !std::ptr::eq(mine, counter);
    while ELSEWHERE.load(SeqCst) as usize > local::sections() || thread::all_sections().any(busy) {
        system::pause();
    }
}

extern "C" fn after_fork() {
    if depth() == 1 {
        GATE.store(0, Release);
        system::futex_wake_all(&GATE);
    }
    go(counter());
}

/// Who is told in a fork's child, where only the forking thread is.
static ON_CHILD: OnceLock<fn()> = OnceLock::new();

/// Asks for `hook` in every fork's child.
pub(crate) fn on_child(hook: fn()) {
    let _ = ON_CHILD.set(hook);
}

extern "C" fn in_child() {
    // Who looked at the gate when the fork was made counted itself for a moment.
    ELSEWHERE.store(local::sections() as u32, SeqCst);
    thread::alone();
    // Whoever closed it need not be here.
    GATE.store(0, Release);
    go(counter());
    if let Some(hook) = ON_CHILD.get() {
        hook();
    }
}
