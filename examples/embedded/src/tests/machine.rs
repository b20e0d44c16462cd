//! The machine around the CPU: an interrupt controller that strikes where the platform is asked something.

use crate::cpu;
use crate::memory::OneCpu;
use crate::world::{self, Kernel};
use slablab_platform::conformance::{Racer, Testable, Verdict};
use slablab_platform::{CpuId, Event, Work};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

/// What an interrupt runs.
type Handler = Rc<dyn Fn()>;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Struck {
    /// Questions the platform was asked outside interrupts.
    pub(crate) questions: u64,
    /// Interrupts that came at once.
    pub(crate) at_once: u64,
    /// Interrupts that waited until interrupts were on.
    pub(crate) late: u64,
    /// Slots that were held when an interrupt wanted them.
    pub(crate) refused: u64,
}

/// When interrupts come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    /// The question at which the first interrupt comes, counted from 1; with 0 none comes.
    pub(crate) first: u64,
    /// Questions between two interrupts; with 0 there is one interrupt.
    pub(crate) every: u64,
}

static NEXT: OneCpu<Cell<When>> = OneCpu(Cell::new(When { first: 0, every: 0 }));
static STRUCK: OneCpu<Cell<Struck>> =
    OneCpu(Cell::new(Struck { questions: 0, at_once: 0, late: 0, refused: 0 }));
static WAITS: OneCpu<Cell<bool>> = OneCpu(Cell::new(false));
static HANDLER: OneCpu<RefCell<Option<Handler>>> = OneCpu(RefCell::new(None));

/// Runs `f` on the machine as it is at boot. There is one: others wait.
pub(crate) fn booted<R>(f: impl FnOnce() -> R) -> R {
    static MACHINE: Mutex<()> = Mutex::new(());
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    world::forget();
    f()
}

/// Runs `f` while interrupts come as `when` says, for `handler`. To be called on a booted machine.
pub(crate) fn interrupted(when: When, handler: Handler, f: impl FnOnce()) -> Struck {
    STRUCK.0.set(Struck::default());
    WAITS.0.set(false);
    HANDLER.0.replace(Some(handler));
    NEXT.0.set(when);
    f();
    NEXT.0.set(When { first: 0, every: 0 });
    HANDLER.0.replace(None);
    assert!(!cpu::interrupts_off() && !WAITS.0.get(), "an interrupt was lost");
    STRUCK.0.get()
}

/// The platform was asked something.
pub(crate) fn asked() {
    if cpu::in_interrupt() {
        return;
    }
    let mut struck = STRUCK.0.get();
    struck.questions += 1;
    let mut when = NEXT.0.get();
    let strikes = when.first == 1;
    when.first = if strikes { when.every } else { when.first.saturating_sub(1) };
    NEXT.0.set(when);
    match (strikes, cpu::interrupts_off()) {
        (false, _) => {}
        (true, true) => {
            struck.late += 1;
            WAITS.0.set(true);
        }
        (true, false) => struck.at_once += 1,
    }
    STRUCK.0.set(struck);
    if strikes && !cpu::interrupts_off() {
        deliver();
    }
}

/// A slot was held when another caller wanted it.
pub(crate) fn refused() {
    let struck = STRUCK.0.get();
    STRUCK.0.set(Struck { refused: struck.refused + u64::from(cpu::in_interrupt()), ..struck });
}

/// Interrupts are on again.
pub(crate) fn enabled() {
    if WAITS.0.replace(false) {
        deliver();
    }
}

fn deliver() {
    let handler = HANDLER.0.borrow().clone().expect("a handler");
    cpu::interrupt(|| handler());
}

impl Testable for Kernel {
    fn on_cpu<R>(_cpu: CpuId, f: impl FnOnce() -> R) -> R {
        f()
    }
    fn set_online(_cpu: CpuId, online: bool) {
        Kernel::stop(!online);
    }
    fn still<R>(f: impl FnOnce() -> R) -> R {
        Kernel::stop(true);
        let result = f();
        Kernel::stop(false);
        result
    }
    fn advance(ns: u64) {
        cpu::advance_ns(ns);
    }
    fn end_grace_period() {
        Kernel::nobody_reads();
    }
    fn due() -> Option<(CpuId, Work)> {
        Kernel::due().map(|work| (CpuId(0), work))
    }
    fn counted(event: Event) -> u64 {
        Kernel::counted(event)
    }
    fn race<S: 'static>(shared: S, first: Racer<S>, second: Racer<S>, last: fn(&S) -> Verdict) -> Verdict {
        (first.1)(&shared)?;
        (second.1)(&shared)?;
        last(&shared)
    }
}
