//! What the contract's checks ask of this world beyond the contract.

use crate::memory::Wishes;
use crate::object::Object;
use crate::per_cpu::Owner;
use crate::world::{Native, Trusted};
use crate::{area, memory, per_cpu, thread, timers};
use slablab_platform::conformance::{Racer, Testable, Verdict};
use slablab_platform::{CpuId, Event, Topology, Work};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

impl<A: Trusted> Native<A> {
    /// Runs `f` in slot 0 of a world that nobody used yet. There is one world in a process: others wait, and
    /// whatever was in it is gone. For the contract's checks.
    #[doc(hidden)]
    pub fn enter_fresh<R>(f: impl FnOnce() -> R) -> R {
        Self::enter(false, f)
    }

    /// The same; with slots per CPU, this thread's CPU is what the checks say, and no kernel is needed for
    /// it.
    #[doc(hidden)]
    pub fn enter_pretending<R>(f: impl FnOnce() -> R) -> R {
        Self::enter(wanted() == Owner::Cpu, f)
    }

    fn enter<R>(pretending: bool, f: impl FnOnce() -> R) -> R {
        static ENTERED: Mutex<()> = Mutex::new(());
        let _entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
        Self::start_with(Wishes { slots: wanted(), ..Wishes::default() });
        memory::forget();
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

/// Whose slots tests want.
fn wanted() -> Owner {
    match std::env::var("SLABLAB_SLOTS") {
        Ok(slots) if slots == "cpu" => Owner::Cpu,
        _ => Owner::Thread,
    }
}

/// For tests over several threads: objects' contents, and threads that go before they end.
#[doc(hidden)]
impl<A: Trusted> Native<A> {
    /// Fills an object with a word.
    pub fn stamp(object: Object, bytes: u32, word: u64) {
        (0..bytes).step_by(8).for_each(|offset| memory::word(object, offset).store(word, Relaxed));
    }
    /// The offset of the first word that is another.
    pub fn unstamped(object: Object, bytes: u32, word: u64) -> Option<u32> {
        (0..bytes).step_by(8).find(|offset| memory::word(object, *offset).load(Relaxed) != word)
    }
    /// Goes to another CPU, where a thread's CPU is what it says ([`Native::enter_pretending`]), and whose
    /// slot refuses nothing for want of credit.
    pub fn go_to(cpu: CpuId) {
        per_cpu::go_to(cpu);
        area::renew_credit(cpu);
    }
    /// Lets go of this thread's slot, as its end would.
    pub fn leave() {
        thread::leave();
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
