//! Work that takes long: without the interpreter's lock, with progress, ended by Ctrl-C.
//!
//! ```text
//! calling thread    started ── every 50 ms: signals, progress(done, whole) ── the result
//!                       │                         │ raises: cancel
//! a thread and a pool   └── job ── at(done, whole) ── ends by `Cancelled`
//! ```
//!
//! Each call has threads of its own, so that a process that was forked from one that worked, as by
//! `multiprocessing`, can work too.

use crate::errors::{Raised, usage};
use pyo3::prelude::*;
use slablab_experiment::{Cancelled, Pulse};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Time between two looks at signals and progress.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What the thread that works tells the calling one.
#[derive(Default)]
pub(crate) struct Work {
    done: AtomicU64,
    whole: AtomicU64,
    /// Also ends simulated runs in their middle.
    pulse: Pulse,
}

impl Work {
    /// The work is so far, of a whole in the same unit. Unwinds if the caller does not wait any more.
    pub(crate) fn at(&self, done: u64, whole: u64) {
        self.done.store(done, Relaxed);
        self.whole.store(whole, Relaxed);
        if self.pulse.is_cancelled() {
            Cancelled::throw();
        }
    }

    /// What simulated runs tell, and by what they are ended.
    pub(crate) fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// Looks for signals and calls `progress`.
    fn look(&self, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            let Some(progress) = progress else { return Ok(()) };
            let (done, whole) = (self.done.load(Relaxed), self.whole.load(Relaxed));
            if whole > 0 {
                progress.call1(py, ((done + self.pulse.partial()).min(whole), whole))?;
            }
            Ok(())
        })
    }
}

/// Does a job on `threads` threads, as many as there are CPUs if `None`. `progress` is called with what is
/// done and the whole, from the calling thread; an exception in it ends the job.
pub(crate) fn work<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
    job: impl FnOnce(&Work) -> slablab_report::Result<T> + Send,
) -> PyResult<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    let pool = pool.map_err(|error| usage(format!("threads: {error}")))?;
    let work = Work::default();
    py.detach(|| {
        std::thread::scope(|scope| {
            let (send, receive) = sync_channel(1);
            let working = &work;
            scope.spawn(move || {
                let done = catch_unwind(AssertUnwindSafe(|| pool.install(|| job(working))));
                // The receiver waits for it, whatever happened.
                let _ = send.send(done);
            });
            loop {
                match receive.recv_timeout(LOOK_EVERY) {
                    Ok(Ok(result)) => {
                        work.look(progress.as_ref())?;
                        return result.raised();
                    }
                    Ok(Err(panic)) => resume_unwind(panic),
                    Err(RecvTimeoutError::Disconnected) => panic!("the thread ended without a result"),
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if let Err(raised) = work.look(progress.as_ref()) {
                    work.pulse.cancel();
                    // The scope waits for the thread: what it borrowed is used no more.
                    return Err(raised);
                }
            }
        })
    })
}
