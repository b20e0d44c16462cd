//! Functions for tests: the conformance suite's [`Testable`], and what tests of this world need besides.

use crate::object::Object;
use crate::per_cpu::Owner;
use crate::region::Trusted;
use crate::start::Wishes;
use crate::world::Native;
use crate::{area, memory, per_cpu, thread, timers};
use slablab_platform::conformance::{Racer, Testable, Verdict};
use slablab_platform::{CpuId, Event, Topology, Work};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

impl<A: Trusted> Native<A> {
    /// For the contract's checks: runs `f` in slot 0 of an empty world. A process has one world, so other
    /// threads that call this wait, and everything that was in the world before is gone.
    #[doc(hidden)]
    pub fn enter_fresh<R>(f: impl FnOnce() -> R) -> R {
        Self::enter(false, f)
    }

    /// For the contract's checks: runs `f` in slot 0 of an empty world, as [`Native::enter_fresh`]. With
    /// slots per CPU the checks choose this thread's CPU, without the kernel.
    #[doc(hidden)]
    pub fn enter_pretending<R>(f: impl FnOnce() -> R) -> R {
        Self::enter(wanted() == Owner::Cpu, f)
    }

    fn enter<R>(pretending: bool, f: impl FnOnce() -> R) -> R {
        static ENTERED: Mutex<()> = Mutex::new(());
        let _entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
        Self::start_with(Wishes { slots: wanted(), ..Wishes::default() });
        memory::forget(Self::HEAP);
        timers::clear();
        timers::advance(1);
        if pretending {
            per_cpu::pretend();
        }
        thread::as_slot(CpuId(1), || ());
        let result = thread::as_slot(CpuId(0), f);
        if pretending {
            per_cpu::stop_pretending();
        }
        result
    }
}

/// What slots belong to in this run of the tests (`SLABLAB_SLOTS`).
fn wanted() -> Owner {
    match std::env::var("SLABLAB_SLOTS") {
        Ok(slots) if slots == "cpu" => Owner::Cpu,
        _ => Owner::Thread,
    }
}

/// For tests with several threads: the contents of objects, and threads that release their slot before they
/// end.
#[doc(hidden)]
impl<A: Trusted> Native<A> {
    /// Writes `word` to every word of an object of `bytes` bytes.
    pub fn stamp(object: Object, bytes: u32, word: u64) {
        (0..bytes).step_by(8).for_each(|offset| Self::HEAP.word(object, offset).store(word, Relaxed));
    }
    /// The offset of the first word of an object of `bytes` bytes that is not `word`.
    pub fn unstamped(object: Object, bytes: u32, word: u64) -> Option<u32> {
        (0..bytes).step_by(8).find(|offset| Self::HEAP.word(object, *offset).load(Relaxed) != word)
    }
    /// Moves this thread to another CPU, under [`Native::enter_pretending`], and renews the credit of its
    /// slot.
    pub fn go_to(cpu: CpuId) {
        per_cpu::go_to(cpu);
        area::renew_credit(cpu);
    }
    /// Releases this thread's slot, as the thread's end would.
    pub fn release_slot() {
        thread::release();
    }
}

impl<A: Trusted> Testable for Native<A> {
    const COUNTS: bool = false;
    const SYMMETRIC: bool = false;

    fn claims_live() -> bool {
        per_cpu::on()
    }
    fn on_cpu<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
        thread::as_slot(cpu, f)
    }
    fn set_online(cpu: CpuId, online: bool) {
        thread::set_live(cpu, online);
    }
    fn still<R>(f: impl FnOnce() -> R) -> R {
        let live: Vec<CpuId> = (0..Self::cpus()).map(CpuId).filter(|cpu| Self::cpu_online(*cpu)).collect();
        live.iter().for_each(|cpu| thread::set_live(*cpu, false));
        let result = f();
        live.iter().for_each(|cpu| thread::set_live(*cpu, true));
        result
    }
    fn advance(ns: u64) {
        timers::advance(ns);
    }
    fn end_grace_period() {
        Self::advance(timers::GRACE_NS);
    }
    fn due() -> Option<(CpuId, Work)> {
        timers::due()
    }
    fn counted(_event: Event) -> u64 {
        0
    }
    fn race<S: 'static>(shared: S, first: Racer<S>, second: Racer<S>, last: fn(&S) -> Verdict) -> Verdict {
        Self::on_cpu(first.0, || (first.1)(&shared))?;
        Self::on_cpu(second.0, || (second.1)(&shared))?;
        last(&shared)
    }
}
