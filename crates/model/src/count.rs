//! Level `count`: no clocks.

use crate::level::Level;
use crate::state::{Entered, State};
use slablab_platform::Rank;

/// Level `count`: every counter exact, no clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {}

impl Level for Count {
    const TIMED: bool = false;
    type Line = ();
    type LockLines = ();
    type Beside = ();
    type Lines = ();
    type Waiters = ();
    type Held<'a> = ();
    type Clocks = ();

    #[inline(always)]
    fn line() {}
    #[inline(always)]
    fn lines(_words: u32, _home: u16) {}
    #[inline(always)]
    fn lock_lines() {}
    #[inline(always)]
    fn lock<R: Rank>(_waiters: &(), _lines: ()) {}
    #[inline(always)]
    fn try_lock<R: Rank>(_waiters: &(), _lines: ()) -> Option<()> {
        Some(())
    }
}

impl Entered for Count {
    #[inline]
    fn with<T>(f: impl FnOnce(&State<Self>) -> T) -> T {
        MACHINE.with(f)
    }
    fn enter<T>(state: &State<Self>, f: impl FnOnce() -> T) -> T {
        MACHINE.set(state, f)
    }
    #[inline]
    fn now_ns(state: &State<Self>) -> u64 {
        state.event_ns()
    }
    #[inline]
    fn advance_to(state: &State<Self>, now_ns: u64) {
        state.set_event_ns(now_ns);
    }
}

scoped_tls::scoped_thread_local!(static MACHINE: State<Count>);
