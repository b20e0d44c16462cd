//! Sections, and the gate that a fork closes.
//!
//! A thread that holds a lock or a slot is in a section, which it counts in a word of its own, without an
//! atomic operation. A forking thread closes the gate, asks the kernel for a barrier on every thread, and
//! waits until no counter of another thread is above zero. An outermost entry increments its counter and then
//! checks the gate; nested entries never wait.
//!
//! **Passes.** The gate is closed while the C library forks, and the C library then takes locks of its own,
//! such as the one of the list of streams. If a thread that holds such a lock waited at the gate for memory,
//! the thread and the fork would wait for each other. So malloc enters one section for a whole request, a
//! *pass*: no lock that the request takes waits at the gate. A thread that gets no pass within
//! [`PATIENCE_NS`] is served without one, as a signal handler is.

use crate::{current, local, system, thread};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*, compiler_fence, fence};

/// 1 while a thread forks. The forking thread's own sections pass a closed gate.
static GATE: AtomicU32 = AtomicU32::new(0);
/// Counts the sections of all threads that have no number.
static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
/// Whether the kernel has no barrier for all threads. Then each entry of a section has a fence.
static NO_BARRIER: AtomicBool = AtomicBool::new(false);

/// A stretch of code in which this thread holds a lock or a slot. A fork waits until no other thread is in
/// one.
#[derive(Debug)]
pub(crate) struct Section {
    /// The word that counts this section. It is kept here because a thread may get its number, and a counter
    /// of its own, inside of a section.
    counter: &'static AtomicU32,
}

/// How long a request waits for a fork. A fork of a large process keeps the gate closed for a fraction of it.
const PATIENCE_NS: u64 = 5_000_000;

impl Section {
    #[inline]
    pub(crate) fn enter() -> Section {
        let Some(counter) = thread::sections() else { return Section::enter_elsewhere() };
        let depth = counter.load(Relaxed);
        counter.store(depth + 1, Relaxed);
        // The gate is read after the count is visible: the forking thread has the kernel run a barrier on
        // this thread after it closed the gate.
        compiler_fence(SeqCst);
        // Acquire: pairs with the gate's opening after a fork.
        if depth == 0 && (GATE.load(Acquire) != 0 || NO_BARRIER.load(Relaxed)) {
            Section::wait(counter);
        }
        Section { counter }
    }

    /// Enters a section, unless it would wait for a fork, and unless the thread has no number.
    #[inline]
    pub(crate) fn try_enter() -> Option<Section> {
        let counter = thread::sections()?;
        let section = Section { counter };
        let depth = counter.load(Relaxed);
        counter.store(depth + 1, Relaxed);
        // As in `enter`.
        compiler_fence(SeqCst);
        if depth == 0 && (GATE.load(Acquire) != 0 || NO_BARRIER.load(Relaxed)) {
            return None;
        }
        Some(section)
    }

    #[cold]
    fn enter_elsewhere() -> Section {
        count_in(&ELSEWHERE);
        while local::sections() == 1 && GATE.load(SeqCst) != 0 {
            count_out(&ELSEWHERE);
            wait_for_gate();
            count_in(&ELSEWHERE);
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

/// A section around a whole request. Locks that the request takes do not wait at the gate. A signal handler
/// that interrupts the request outside of its locks may allocate: `is_in` does not count passes.
#[derive(Debug)]
pub struct Pass {
    /// [`local::passes`] before this pass began.
    before: usize,
    _section: Section,
}

impl Pass {
    /// Begins a pass; waits at a closed gate for [`PATIENCE_NS`] at most. `None` if the gate stays closed,
    /// and for a signal handler that interrupted a request.
    #[inline]
    pub(crate) fn enter() -> Option<Pass> {
        if is_interrupted() { None } else { Pass::try_enter().or_else(Pass::enter_patiently) }
    }

    /// Begins a pass without waiting. `None` if the gate is closed, and for a signal handler that interrupted
    /// a request.
    pub(crate) fn now() -> Option<Pass> {
        if is_interrupted() { None } else { Pass::try_enter() }
    }

    /// Begins a pass; `None` if the gate is closed.
    #[inline]
    fn try_enter() -> Option<Pass> {
        // First: a thread that is in a section gets no number.
        thread::enter();
        let (counter, before) = (counter(), local::passes());
        let depth = if std::ptr::eq(counter, &ELSEWHERE) {
            count_in(&ELSEWHERE);
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
        // The section ends afterwards: fields are dropped after this function.
        local::set_passes(self.before);
    }
}

impl Drop for Section {
    #[inline]
    fn drop(&mut self) {
        if std::ptr::eq(self.counter, &ELSEWHERE) {
            count_out(&ELSEWHERE);
        } else {
            compiler_fence(SeqCst);
            self.counter.store(self.counter.load(Relaxed) - 1, Release);
        }
    }
}

/// Counts this thread into a section, whether the gate is closed or not.
fn count_in(counter: &'static AtomicU32) {
    if std::ptr::eq(counter, &ELSEWHERE) {
        local::set_sections(local::sections() + 1);
        ELSEWHERE.fetch_add(1, SeqCst);
    } else {
        counter.store(counter.load(Relaxed) + 1, SeqCst);
    }
}

/// Undoes one [`count_in`].
fn count_out(counter: &'static AtomicU32) {
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

/// The word that counts this thread's sections.
fn counter() -> &'static AtomicU32 {
    thread::sections().unwrap_or(&ELSEWHERE)
}

/// Whether this code is a signal handler that interrupted its thread while the thread held a lock or a slot,
/// or was in a hot operation.
#[inline]
pub(crate) fn is_interrupted() -> bool {
    current::is_hidden() || is_in()
}

/// Whether this thread is in a section that is not a pass.
#[inline]
pub(crate) fn is_in() -> bool {
    match thread::sections() {
        Some(counter) => counter.load(Relaxed) as usize > local::passes(),
        // The thread gets a number here, before it holds a lock or a slot.
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

/// Registers the handlers of forks. May allocate, so the heap must have started.
pub(crate) fn watch_forks() {
    // Found out before any thread enters a section: an entry without a fence could be overlooked.
    if !system::membarrier() {
        NO_BARRIER.store(true, SeqCst);
    }
    system::around_fork(before_fork, after_fork, in_child);
}

/// Runs before a fork: closes the gate and waits until no other thread is in a section. Two threads that fork
/// at once take turns. This thread is in a section itself until the fork is over, so that neither it nor its
/// signal handlers wait at the gate.
extern "C" fn before_fork() {
    thread::enter();
    let (mine, nested) = (counter(), depth() > 0);
    count_in(mine);
    // This is a signal handler that interrupted a section. Waiting for other threads could be a deadlock:
    // they may wait for a lock that this thread holds.
    if nested {
        return;
    }
    while GATE.compare_exchange(0, 1, SeqCst, SeqCst).is_err() {
        count_out(mine);
        wait_for_gate();
        count_in(mine);
    }
    if !system::membarrier() {
        NO_BARRIER.store(true, SeqCst);
    }
    let busy = |counter: &'static AtomicU32| counter.load(Acquire) > 0 && !std::ptr::eq(mine, counter);
    while ELSEWHERE.load(SeqCst) as usize > local::sections() || thread::all_sections().any(busy) {
        system::pause();
    }
}

/// Runs in the parent after a fork: opens the gate.
extern "C" fn after_fork() {
    if depth() == 1 {
        GATE.store(0, Release);
        system::futex_wake_all(&GATE);
    }
    count_out(counter());
}

/// The function that a fork's child calls.
static ON_CHILD: OnceLock<fn()> = OnceLock::new();

/// Has every fork's child call `hook`. The forking thread is the only one there.
pub(crate) fn on_child(hook: fn()) {
    let _ = ON_CHILD.set(hook);
}

/// Runs in the child after a fork: forgets the other threads, and opens the gate.
extern "C" fn in_child() {
    // A thread that checked the gate at the moment of the fork was counted.
    ELSEWHERE.store(local::sections() as u32, SeqCst);
    thread::forget_other_threads();
    // Another thread may have closed the gate: a handler that forks does not wait for its turn.
    GATE.store(0, Release);
    count_out(counter());
    if let Some(hook) = ON_CHILD.get() {
        hook();
    }
}
