//! Signals after the end of the recorded program, when there is no program that they could be passed to.

use crate::outcome::{Failure, tell};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// From [`Ending::begin`] on SIGINT, SIGTERM and SIGHUP end this process, with 128 + signal as exit code. The
/// recording stays where it is, and the message says how to make the trace of it.
pub(super) struct Ending {
    has_begun: Arc<AtomicBool>,
    whole: Arc<Mutex<()>>,
}

impl Ending {
    /// Made before the program starts, so that no signal is lost between its end and [`Ending::begin`].
    pub(super) fn new(folder: PathBuf) -> Result<Ending, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let ending = Ending { has_begun: Arc::default(), whole: Arc::default() };
        let (has_begun, whole) = (ending.has_begun.clone(), ending.whole.clone());
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if has_begun.load(Relaxed) {
                    let _whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                    tell(format_args!("ended by signal {signal}, before the trace was made"));
                    super::left::tell_kept(&folder);
                    std::process::exit(128 + signal);
                }
            }
        });
        Ok(ending)
    }

    /// The program has ended.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Relaxed);
    }

    /// No signal ends this process as long as the guard lives.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
