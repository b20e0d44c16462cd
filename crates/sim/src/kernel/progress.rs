//! Whether programs still get anywhere, in simulated time.
//!
//! Without daemons a kernel whose tasks wait for each other has no event left, and [`Kernel::run`] returns.
//! With daemons it never ends: their timers go on. So each time that a daemon runs it is asked for how long
//! no task of a program has run and no device has interrupted. If that is long, and every program's task
//! waits for another one, the run has failed.

use super::{Entry, Kernel, Task};
use crate::kernel::tally::Failed;
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use std::cell::Cell;
use std::rc::Rc;

/// Time in which nothing but daemons runs, after which the tasks are looked at: longer than any request of a
/// disk, so that a task that waits for one is not taken for a task that waits for ever.
const IDLE_MOST: Ps = 600_000_000_000_000;

/// When programs or devices did something last.
#[derive(Default)]
pub(super) struct Progress {
    last: Cell<Ps>,
}

impl Progress {
    /// A task runs from now on. True if it is time to look for progress.
    #[inline]
    pub(super) fn runs(&self, is_daemon: bool) -> bool {
        let now = Timed::clock();
        if is_daemon {
            return now.saturating_sub(self.last.get()) > IDLE_MOST;
        }
        self.last.set(now);
        false
    }

    /// A device interrupts.
    pub(super) fn device(&self) {
        self.last.set(Timed::clock());
    }
}

impl Kernel {
    /// Starts a task of the kernel's own. It may wait for ever: a run ends without it.
    pub(crate) fn start_daemon(self: &Rc<Self>, program: impl FnOnce(&Task) + 'static) -> TaskId {
        let id = self.start(0, None, program);
        self.tasks.borrow_mut()[id.0 as usize].is_daemon = true;
        id
    }

    /// Ends a run whose programs wait for each other.
    #[cold]
    pub(super) fn look_for_progress(&self) {
        // Looked at again only after as long a time: programs that sleep for hours cost nothing.
        self.progress.last.set(Timed::clock());
        let waits = |task: &Entry| task.waiting.is_some() && !task.has_timer;
        let is_stuck = {
            let tasks = self.tasks.borrow();
            let mut programs = tasks.iter().filter(|task| task.alive && !task.is_daemon).peekable();
            programs.peek().is_some() && programs.all(waits)
        };
        if is_stuck {
            self.fail(Failed::Stuck(self.stuck_programs()));
        }
    }
}
